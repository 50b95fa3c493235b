//! `rolebroker approvals`.

use crate::out;
use client::Approver;
use client::proto::ListApprovals;

use crate::call::now;
use crate::cli::{ApprovalsArgs, Place};
use crate::exit::{self, Exit};
use crate::render;

pub(crate) const SOFTWARE: &str = concat!("rolebroker ", env!("CARGO_PKG_VERSION"));

/// Prints what waits for this approver.
///
/// # Errors
/// When the broker cannot be asked.
pub async fn run(place: &Place, args: ApprovalsArgs) -> anyhow::Result<Exit> {
    let approver = Approver::connect_as(place.socket("approver"), SOFTWARE).await?;
    let settled = args.settled;
    let all = approver.list(ListApprovals { settled }).await?;
    if place.json {
        out::json(&serde_json::to_string(&all)?);
        return Ok(exit::DONE);
    }
    for request in &all.pending {
        out::lines(&render::request(request, now(), out::WIDTH));
        out::line(&format!(
            "  answer     rolebroker approve {id}, or rolebroker refuse {id}",
            id = request.approval
        ));
    }
    if all.pending.is_empty() {
        out::line("nothing waits for you");
    }
    for settled in &all.settled {
        out::line(&render::settled(settled));
    }
    Ok(exit::DONE)
}
