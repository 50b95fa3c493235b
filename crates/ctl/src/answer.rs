//! `rolebroker approve` and `rolebroker refuse`.

use std::time::Duration;

use client::proto::{
    ApprovalId, ApprovalRequest, ApprovalSettled, CallSettled, ListApprovals, Outcome,
};
use client::{Approver, Asked, Scope};

use crate::approvals::SOFTWARE;
use crate::call::now;
use crate::cli::{ApproveArgs, Place, RefuseArgs, ScopeArg};
use crate::exit::{self, Exit, NotDone, Usage};
use crate::terminal::Terminal;
use crate::{out, pager, printable, render};

/// Approves exactly what it shows.
///
/// # Errors
/// When there is no such approval, or the broker cannot be asked.
pub async fn approve(place: &Place, args: ApproveArgs) -> anyhow::Result<Exit> {
    let (mut approver, request) = find(place, &args.approval).await?;
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
    if !place.json {
        out::line(&render::settled(&settled));
    }
    let waits = settled.outcome == Outcome::Approved && args.wait > 0;
    let ended = if waits {
        let end = end(&mut approver, &request);
        tokio::time::timeout(Duration::from_secs(args.wait), end)
            .await
            .ok()
    } else {
        None
    };
    if place.json {
        let call = ended.and_then(Result::ok);
        let shown = serde_json::json!({ "request": request, "settled": settled, "call": call });
        out::json(&shown.to_string());
    } else if waits {
        out::line(&match ended {
            Some(Ok(call)) => render::end(&call),
            Some(Err(error)) => format!(
                "how the call ends is not known: {}",
                printable::message(&error.to_string())
            ),
            None => {
                "the call has not ended yet; `rolebroker approvals --settled` shows how it does"
                    .to_owned()
            }
        });
    }
    Ok(done(&settled, &[Outcome::Approved, Outcome::Counted]))
}

/// How the call ends that was approved.
async fn end(
    approver: &mut Approver,
    request: &ApprovalRequest,
) -> Result<CallSettled, client::Error> {
    let is_it = |call: &CallSettled| call.approval == request.approval && call.call == request.call;
    loop {
        match approver.next().await? {
            Asked::Ended(call) if is_it(&call) => return Ok(call),
            Asked::Ended(_) | Asked::Request(_) | Asked::Settled(_) => {}
            Asked::Missed(_) => {
                let all = approver.list(ListApprovals { settled: true }).await?;
                if let Some(call) = all.calls.into_iter().find(is_it) {
                    return Ok(call);
                }
            }
        }
    }
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
    if place.json {
        let shown = serde_json::json!({ "request": request, "settled": settled });
        out::json(&shown.to_string());
    } else {
        out::line(&render::settled(&settled));
    }
    Ok(done(&settled, &[Outcome::Refused]))
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

fn done(settled: &ApprovalSettled, wanted: &[Outcome]) -> Exit {
    if wanted.contains(&settled.outcome) {
        exit::DONE
    } else {
        exit::NOT_DONE
    }
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
