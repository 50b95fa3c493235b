//! `rolebroker`: the command for operators, approvers and scripts. Each command connects as one role, asks, prints
//! what came for a person or, with `--json`, for a program, and says by its exit code how it went.

pub mod accept;
pub mod answer;
pub mod approvals;
pub mod arguments;
pub mod audit;
pub mod backup;
pub mod call;
pub mod check;
pub mod cli;
pub mod demo;
pub mod exit;
pub mod explain;
pub mod grant;
mod hook;
pub mod init;
pub mod layout;
pub mod lookalike;
pub mod out;
mod pager;
pub mod past;
pub mod printable;
pub mod progress;
pub mod recall;
pub mod render;
pub mod replay;
pub mod restore;
pub mod seen;
pub mod steer;
pub mod tail;
mod terminal;
mod watch;
pub mod whole;
pub mod why;

use cli::{Cli, Command, SessionArgs, SessionsArgs};
use client::proto::Control;
use exit::Exit;

/// Runs one command line.
///
/// # Errors
/// What went wrong, in words for a person; [`exit::code_of`] gives its code.
pub async fn run(cli: Cli) -> anyhow::Result<Exit> {
    let Cli { place, command } = cli;
    match command {
        Command::Init(args) => init::run(&place, &args),
        Command::Call(args) => call::run(&place, args).await,
        Command::Approvals(args) => approvals::run(&place, args).await,
        Command::Approve(args) => answer::approve(&place, args).await,
        Command::Refuse(args) => answer::refuse(&place, args).await,
        Command::Status => steer::run(&place, Control::Status {}).await,
        Command::Reload => steer::run(&place, Control::Reload {}).await,
        Command::Drain => steer::run(&place, Control::Drain {}).await,
        Command::Declassify(args) => steer::run(&place, args.into()).await,
        Command::Endorse(args) => steer::run(&place, args.into()).await,
        Command::Sessions(SessionsArgs { role }) => {
            steer::run(&place, Control::Sessions { role }).await
        }
        Command::Session(SessionArgs { role, session }) => {
            steer::run(&place, Control::Session { role, session }).await
        }
        Command::Join(args) => steer::run(&place, args.into()).await,
        Command::Close(SessionArgs { role, session }) => {
            steer::run(&place, Control::CloseSession { role, session }).await
        }
        Command::Grants => steer::run(&place, Control::Grants {}).await,
        Command::Grant(args) => grant::run(&place, args).await,
        Command::Revoke(args) => steer::run(&place, args.into()).await,
        Command::Preapprove(args) => steer::run(&place, args.into()).await,
        Command::Tools => steer::run(&place, Control::Tools {}).await,
        Command::AcceptTool(args) => accept::run(&place, args).await,
        Command::Explain(args) => why::explain(&place, args).await,
        Command::Suggest(args) => why::suggest(&place, args).await,
        Command::Tail(args) => tail::run(&place, args).await,
        Command::Audit(args) => audit::run(&place, &args).await,
        Command::Replay(args) => replay::run(&place, &args),
        Command::Backup(args) => backup::run(&place, &args),
        Command::Restore(args) => restore::run(&place, &args),
        Command::Check(args) => check::run(&place, &args),
        Command::Demo => demo::run(&place).await,
    }
}
