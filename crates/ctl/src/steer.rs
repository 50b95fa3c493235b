//! The operator's commands: each asks the broker for one thing.

use crate::out;
use anyhow::Context as _;
use client::proto::{Control, ControlReply, ErrorCode};
use client::{Error, Operator};

use crate::approvals::SOFTWARE;
use crate::call::now;
use crate::cli::Place;
use crate::exit::{self, Exit, NotDone};
use crate::render;
use crate::whole::whole;

/// Asks the broker for one thing and prints what it says.
///
/// # Errors
/// When the broker cannot be asked, or does not do it.
pub async fn run(place: &Place, control: Control) -> anyhow::Result<Exit> {
    let operator = connect(place).await?;
    let reply = ask(&operator, control).await?;
    show(place, &reply)
}

/// Prints what an operator is told.
///
/// # Errors
/// It is no JSON, which does not happen.
pub(crate) fn show(place: &Place, reply: &ControlReply) -> anyhow::Result<Exit> {
    if place.json {
        out::json(&serde_json::to_string(reply)?);
    } else {
        out::text(&render::reply(reply, now()));
    }
    Ok(exit::DONE)
}

pub(crate) async fn connect(place: &Place) -> anyhow::Result<Operator> {
    Ok(Operator::connect_as(place.socket("operator"), SOFTWARE).await?)
}

/// The broker's whole answer.
///
/// # Errors
/// When the broker cannot be asked; when it does not do it, with what to type next.
pub(crate) async fn ask(operator: &Operator, control: Control) -> anyhow::Result<ControlReply> {
    let next = next(&control);
    match operator.control(control).await {
        Ok(replies) => whole(replies).context("the broker said nothing"),
        Err(
            error @ Error::Rejected {
                code: ErrorCode::BadMessage,
                ..
            },
        ) if !next.is_empty() => Err(NotDone(format!("{error}; next: {next}")).into()),
        Err(error) => Err(error.into()),
    }
}

/// What helps on if the broker does not do this; may be empty.
fn next(control: &Control) -> String {
    match control {
        Control::Session { role, .. }
        | Control::JoinSession { role, .. }
        | Control::CloseSession { role, .. }
        | Control::Declassify { role, .. }
        | Control::Endorse { role, .. } => {
            format!("`rolebroker sessions {role}` shows its sessions and their labels")
        }
        Control::Grant { .. } => {
            "mend it: the lines that stand below [[grant]], an allow (with expires and max_uses) or a deny"
                .to_owned()
        }
        Control::Revoke { .. } => {
            "`rolebroker grants` shows those that were added at run time".to_owned()
        }
        Control::Preapprove { role, .. } => format!(
            "`rolebroker sessions {role}`, `rolebroker tools` and `rolebroker grants` show what there is"
        ),
        Control::Explain { role, .. } | Control::Suggest { role, .. } => format!(
            "`rolebroker tail` shows calls as they come; `rolebroker explain {role} SESSION --tool TOOL ARGUMENTS` \
             explains one that was never made"
        ),
        Control::ExplainRequest { .. } => "`rolebroker status` shows the roles".to_owned(),
        Control::AcceptTool { .. } => "`rolebroker tools` shows what is held now".to_owned(),
        Control::Status {}
        | Control::Reload {}
        | Control::Drain {}
        | Control::Sessions { .. }
        | Control::Grants {}
        | Control::Tools {}
        | Control::Tail {} => String::new(),
    }
}
