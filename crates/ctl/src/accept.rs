//! `rolebroker accept-tool`: a person reads what a runner says that its tool is, and accepts exactly that.

use crate::out;
use std::io::IsTerminal as _;

use client::proto::Control;
use client::proto::control::{ControlReply, ToolState, ToolStatus};

use crate::answer;
use crate::cli::{AcceptToolArgs, Place};
use crate::exit::{self, Exit, NotDone, Usage};
use crate::{render, steer};

/// Shows the held definition beside the one in force, asks, and accepts it.
///
/// # Errors
/// When nothing is held, nobody can be asked and `--yes` is not given, or the broker does not take it.
pub async fn run(place: &Place, args: AcceptToolArgs) -> anyhow::Result<Exit> {
    let operator = steer::connect(place).await?;
    let ControlReply::Tools { tools } = steer::ask(&operator, Control::Tools {}).await? else {
        anyhow::bail!("the broker answered with something else than its tools");
    };
    let (held, in_force) = find(&tools, &args)?;
    if !place.json {
        out::text(&render::definition(held, in_force));
    }
    if !args.yes {
        if place.json || !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
            return Err(unasked(held).into());
        }
        if !answer::ask("accept this definition?").await? {
            out::line("not accepted; it is still held");
            return Ok(exit::NOT_DONE);
        }
    }
    let accept = Control::AcceptTool {
        runner: held.runner.clone(),
        tool: held.tool.clone(),
        // Of what was shown: if the runner offers another text meanwhile, the broker refuses.
        definition: held.definition.clone(),
        reason: args.reason,
    };
    let reply = steer::ask(&operator, accept).await?;
    if place.json {
        let shown = serde_json::json!({ "held": held, "in_force": in_force, "reply": reply });
        out::json(&shown.to_string());
    } else {
        out::line("accepted");
    }
    Ok(exit::DONE)
}

/// The held definition that is meant, and the one that is in force.
fn find<'a>(
    tools: &'a [ToolStatus],
    args: &AcceptToolArgs,
) -> anyhow::Result<(&'a ToolStatus, Option<&'a ToolStatus>)> {
    let named = |tool: &&ToolStatus| tool.runner == args.runner && tool.tool == args.tool;
    let is_held = |tool: &&ToolStatus| tool.state == ToolState::Held;
    let held = tools.iter().filter(named).find(is_held).ok_or_else(|| {
        Usage(format!(
            "no connected runner offers {} as {} with a definition that waits; `rolebroker tools` shows those that do",
            args.tool, args.runner
        ))
    })?;
    if let Some(meant) = args
        .definition
        .as_ref()
        .filter(|it| **it != held.definition)
    {
        return Err(NotDone(format!(
            "{meant} is not held (any more), but {}; read that one: leave out --definition",
            held.definition
        ))
        .into());
    }
    let in_force = tools.iter().filter(named).find(|tool| !is_held(tool));
    Ok((held, in_force))
}

/// There is nobody to ask: what to type to accept just what was shown.
fn unasked(held: &ToolStatus) -> Usage {
    Usage(format!(
        "nothing is accepted: there is no terminal to ask on; once you have read it, add --yes --definition {}",
        held.definition
    ))
}
