//! `rolebroker approve` and `rolebroker refuse`.

use crate::out;
use std::io::{BufRead as _, IsTerminal as _, Write as _};

use client::proto::{ApprovalId, ApprovalRequest, ApprovalSettled, ListApprovals, Outcome};
use client::{Approver, Scope};

use crate::approvals::SOFTWARE;
use crate::call::now;
use crate::cli::{ApproveArgs, Place, RefuseArgs};
use crate::exit::{self, Exit, NotDone, Usage};
use crate::render;

/// Approves exactly what it shows.
///
/// # Errors
/// When there is no such approval, or the broker cannot be asked.
pub async fn approve(place: &Place, args: ApproveArgs) -> anyhow::Result<Exit> {
    let (approver, request) = find(place, &args.approval).await?;
    let scope = Scope::from(args.scope);
    if !request.scopes.contains(&scope) {
        return Err(
            Usage("this approval can cover this call only: leave out --scope".to_owned()).into(),
        );
    }
    if !place.json {
        out::text(&render::request(&request, now()));
        if !args.yes && std::io::stdin().is_terminal() && !ask("approve this call?").await? {
            out::line("not answered; it still waits");
            return Ok(exit::NOT_DONE);
        }
    }
    let settled = approver.approve(&request, scope, args.comment).await?;
    told(
        place,
        &request,
        &settled,
        &[Outcome::Approved, Outcome::Counted],
    )
}

/// Refuses.
///
/// # Errors
/// When there is no such approval, or the broker cannot be asked.
pub async fn refuse(place: &Place, args: RefuseArgs) -> anyhow::Result<Exit> {
    let (approver, request) = find(place, &args.approval).await?;
    let settled = approver.refuse(&request, args.comment).await?;
    told(place, &request, &settled, &[Outcome::Refused])
}

async fn find(place: &Place, id: &ApprovalId) -> anyhow::Result<(Approver, ApprovalRequest)> {
    let approver = Approver::connect_as(place.socket("approver"), SOFTWARE).await?;
    let all = approver.list(ListApprovals { settled: true }).await?;
    if let Some(request) = all
        .pending
        .into_iter()
        .find(|request| request.approval == *id)
    {
        return Ok((approver, request));
    }
    if let Some(settled) = all.settled.iter().find(|settled| settled.approval == *id) {
        let settled = render::settled(settled);
        return Err(NotDone(format!("it is settled already: {settled}")).into());
    }
    Err(Usage(format!(
        "no approval {id} waits for this role; `rolebroker approvals` shows those that do"
    ))
    .into())
}

fn told(
    place: &Place,
    request: &ApprovalRequest,
    settled: &ApprovalSettled,
    wanted: &[Outcome],
) -> anyhow::Result<Exit> {
    if place.json {
        let shown = serde_json::json!({ "request": request, "settled": settled });
        out::json(&shown.to_string());
    } else {
        out::line(&render::settled(settled));
    }
    Ok(if wanted.contains(&settled.outcome) {
        exit::DONE
    } else {
        exit::NOT_DONE
    })
}

/// Asks on the terminal; anything but y or yes is no.
///
/// # Errors
/// When the terminal cannot be read.
pub(crate) async fn ask(question: &str) -> anyhow::Result<bool> {
    out::text(&format!("{question} [y/N] "));
    std::io::stdout().flush()?;
    let line = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line).map(|_| line)
    });
    let line = line.await??;
    Ok(matches!(
        line.trim().to_ascii_lowercase().as_str(),
        "y" | "yes"
    ))
}
