//! `rolebroker approve` and `rolebroker refuse`.

use client::proto::{ApprovalId, ApprovalRequest, ApprovalSettled, ListApprovals, Outcome};
use client::{Approver, Scope};

use crate::approvals::SOFTWARE;
use crate::call::now;
use crate::cli::{ApproveArgs, Place, RefuseArgs, ScopeArg};
use crate::exit::{self, Exit, NotDone, Usage};
use crate::terminal::Terminal;
use crate::{out, pager, render};

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
    if !has_seen(place, &args, &request).await? {
        out::line("not answered; it still waits");
        return Ok(exit::NOT_DONE);
    }
    let settled = approver.approve(&request, scope, args.comment).await?;
    told(
        place,
        &request,
        &settled,
        &[Outcome::Approved, Outcome::Counted],
    )
}

/// Whether a person saw the request whole and says yes, or names the digest of what was read before.
async fn has_seen(
    place: &Place,
    args: &ApproveArgs,
    request: &ApprovalRequest,
) -> anyhow::Result<bool> {
    if let Some(read) = &args.digest {
        if *read != request.digest {
            return Err(NotDone(format!(
                "nothing is approved: {} does not ask for what you read, its digest is {}; read it with `rolebroker approvals`",
                request.approval, request.digest
            ))
            .into());
        }
        if !place.json {
            out::lines(&render::request(request, now(), out::WIDTH));
        }
        return Ok(true);
    }
    if place.json {
        return Err(unread(request).into());
    }
    let Some(terminal) = Terminal::open()? else {
        out::lines(&render::request(request, now(), out::WIDTH));
        return Err(unread(request).into());
    };
    let question = match args.scope {
        ScopeArg::Once => "approve this call?",
        ScopeArg::Session => "approve this and more like it?",
    };
    let request = request.clone();
    let asked = tokio::task::spawn_blocking(move || {
        let lay = |width| render::request(&request, now(), width);
        pager::shown_whole(&terminal, lay, question)
    });
    asked.await?
}

/// There is nobody to ask: what to type to approve just what was read.
fn unread(request: &ApprovalRequest) -> Usage {
    Usage(format!(
        "nothing is approved: there is no terminal to show it on; once you have read it, \
         here or with `rolebroker approvals --json`, add --digest {}",
        request.digest
    ))
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

/// Asks on the terminal; anything but y or yes is no, and so is what was typed before.
///
/// # Errors
/// When the terminal cannot be read.
pub(crate) async fn ask(question: &str) -> anyhow::Result<bool> {
    let Some(terminal) = Terminal::open()? else {
        return Ok(false);
    };
    let question = format!("{question} [y/N] ");
    let answer = tokio::task::spawn_blocking(move || terminal.ask(&question)).await??;
    Ok(matches!(answer.as_deref(), Some("y" | "yes")))
}
