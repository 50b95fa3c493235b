//! `rolebroker approvals`.

use client::Approver;
use client::proto::{ApprovalRequest, CallSettled, ListApprovals};

use crate::call::now;
use crate::cli::{ApprovalsArgs, Place};
use crate::exit::{self, Exit};
use crate::{out, render, watch};

pub(crate) const SOFTWARE: &str = concat!("rolebroker ", env!("CARGO_PKG_VERSION"));

/// Prints what waits for this approver, or goes on telling it.
///
/// # Errors
/// When the broker cannot be asked.
pub async fn run(place: &Place, args: ApprovalsArgs) -> anyhow::Result<Exit> {
    if args.watch {
        return watch::run(place, args).await;
    }
    let approver = Approver::connect_as(place.socket("approver"), SOFTWARE).await?;
    let settled = args.settled;
    let all = approver.list(ListApprovals { settled }).await?;
    if place.json {
        out::json(&serde_json::to_string(&all)?);
        return Ok(exit::DONE);
    }
    for request in &all.pending {
        out::text(&waiting(request));
    }
    if all.pending.is_empty() {
        out::line("nothing waits for you");
    }
    for settled in &all.settled {
        out::line(&render::settled(settled));
        let is_of_it = |call: &&CallSettled| call.approval == settled.approval;
        for call in all.calls.iter().filter(is_of_it) {
            out::line(&render::call_settled(call));
        }
    }
    // Of approvals that were given longer ago than those that are listed.
    let is_older = |call: &&CallSettled| {
        let mut listed = all.settled.iter();
        !listed.any(|settled| settled.approval == call.approval)
    };
    for call in all.calls.iter().filter(is_older) {
        out::line(&render::call_settled(call));
    }
    Ok(exit::DONE)
}

/// A request, and what to type to answer it.
pub(crate) fn waiting(request: &ApprovalRequest) -> String {
    let lines = render::request(request, now(), out::WIDTH).join("\n");
    let id = &request.approval;
    format!("{lines}\n  answer     rolebroker approve {id}, or rolebroker refuse {id}\n")
}
