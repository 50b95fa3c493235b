//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use client::Scope;
use client::proto::{ApprovalId, Digest, RoleName, SessionId, ToolName};

mod audit;
mod check;
mod help;
mod init;
mod operator;
mod past;
mod units;
mod why;

pub use audit::{
    AuditArgs, AuditCommand, BackupArgs, DecisionArg, RestoreArgs, StoreArgs, VerifyArgs,
};
pub use check::CheckArgs;
pub use help::{command, examples};
pub use init::InitArgs;
pub use operator::{
    AcceptToolArgs, DeclassifyArgs, EndorseArgs, GrantArgs, JoinArgs, PreapproveArgs, RevokeArgs,
    SessionArgs, SessionsArgs,
};
pub use past::{PastArgs, ReplayArgs};
pub use why::{ExplainArgs, RecordArgs, SeenArgs, SuggestArgs, TailArgs};

/// Talks to rolebrokerd: calls tools, brings approvals before you, tells how the broker is.
#[derive(Debug, Parser)]
#[command(name = "rolebroker", version)]
pub struct Cli {
    /// Where and how.
    #[command(flatten)]
    pub place: Place,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What every command takes: which socket, and for whom to print.
#[derive(Debug, Args)]
pub struct Place {
    /// The folder of the sockets [default: $ROLEBROKER_RUNTIME_DIR, /run/rolebroker, $XDG_RUNTIME_DIR/rolebroker]
    #[arg(long, global = true, value_name = "DIR")]
    pub runtime_dir: Option<PathBuf>,
    /// The role to connect as [default: agent, approver or operator, as the command needs]
    #[arg(long = "as", global = true, value_name = "ROLE")]
    pub connect_as: Option<RoleName>,
    /// The role's socket, wherever it is
    #[arg(long, global = true, value_name = "PATH", conflicts_with_all = ["runtime_dir", "connect_as"])]
    pub role_socket: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long, global = true)]
    pub json: bool,
}

impl Place {
    /// The socket to connect to; `usual` is the role if none was named.
    pub fn socket(&self, usual: &str) -> PathBuf {
        if let Some(path) = &self.role_socket {
            return path.clone();
        }
        let role = self.connect_as.as_ref().map_or(usual, RoleName::as_str);
        match &self.runtime_dir {
            Some(folder) => folder.join(format!("{role}.sock")),
            None => client::socket(role),
        }
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Write a configuration to start from, and say what to type next
    Init(InitArgs),
    /// Call a tool as an agent, and wait for the answer
    Call(CallArgs),
    /// Show the calls that wait for your answer
    Approvals(ApprovalsArgs),
    /// Approve a call: exactly the one that is shown, whole, page by page
    Approve(ApproveArgs),
    /// Refuse a call
    Refuse(RefuseArgs),
    /// Show how the broker and its roles are
    Status,
    /// Load the configuration anew, whole or not at all
    Reload,
    /// Take no new calls, and end when those in flight have ended
    Drain,
    /// Show the sessions of an agent role
    Sessions(SessionsArgs),
    /// Show one session: its label, which calls raised it, its standing approvals
    Session(SessionArgs),
    /// Carry the label of one session into another
    Join(JoinArgs),
    /// End a session
    Close(SessionArgs),
    /// Lower the class of a session
    Declassify(DeclassifyArgs),
    /// Trust a session again
    Endorse(EndorseArgs),
    /// Show every grant, and what is left of it
    Grants,
    /// Add an allow or a deny while the broker runs
    Grant(GrantArgs),
    /// Take away a grant that was added while the broker runs
    Revoke(RevokeArgs),
    /// Approve calls before they are asked about
    Preapprove(PreapproveArgs),
    /// Show every tool, and where its definition stands
    Tools,
    /// Accept what a runner says that its tool is, once you have read it
    AcceptTool(AcceptToolArgs),
    /// Explain a decision: each grant, and why it fell
    ///
    /// A past call by its number; or, with `--tool`, one that was never made, as it would be decided now. The daemon
    /// remembers the newest decisions; with --record they are read from the store, older ones too, under the rules of their
    /// time.
    Explain(ExplainArgs),
    /// Write the smallest grant that would have let a call through, or those for many past calls
    ///
    /// For the daemon as it is now; with --record, for the decision as it is in the store: at its label, under the newest
    /// rules that are recorded.
    ///
    /// With --past, for all calls of the role that the record has: grants that permit these and no others, as lines to
    /// append to the configuration. Calls in untrusted sessions are left out unless --session names them, and these are
    /// asked about. Every recorded decision is judged again with the grants, and comments say what else would change.
    /// Exits with 66 if what it reads cannot be read, and with 78 if the configuration would not be taken.
    Suggest(SuggestArgs),
    /// Follow what happens: calls, decisions, approvals, operators' changes
    Tail(TailArgs),
    /// Show what was decided and done, from the record that shows tampering
    Audit(AuditArgs),
    /// Judge the recorded decisions again, and show which would change under another configuration
    ///
    /// Each is judged by itself: with the label, the time, the arguments and the uses of then,
    /// what the runner offered then, and the same grants of run time on top. What one changed decision would change for
    /// later ones (a label that rises, a use that is spent, an approval) is not followed. Reads the store itself, also
    /// while the daemon runs or cannot.
    ///
    /// Exits with 0 if none changes and with 1 if some do, as diff does; with 66 if what it reads cannot be read, with 78
    /// if the configuration would not be taken, and with 70 if a decision is not what the rules of its time say.
    Replay(ReplayArgs),
    /// Copy the state into a file, also while the daemon runs
    Backup(BackupArgs),
    /// Put a copy of the state back, while no daemon runs: no label is lower by it
    Restore(RestoreArgs),
    /// Check a configuration: faults, a reviewer's warnings, and the ways by which data could leak unasked
    Check(CheckArgs),
    /// Show in one screen what the broker does, with real processes in a temporary folder
    Demo,
}

/// `call`.
#[derive(Debug, Args)]
pub struct CallArgs {
    /// The conversation: what it has seen decides what it may still do
    #[arg(long, default_value = "cli")]
    pub session: SessionId,
    /// The call's number; the same one again gets the stored answer [default: the time in milliseconds]
    #[arg(long, value_name = "N")]
    pub call: Option<u64>,
    /// The tool
    pub tool: ToolName,
    /// A JSON object, or KEY=TEXT and KEY:=JSON pairs
    #[arg(value_name = "ARGUMENTS")]
    pub arguments: Vec<String>,
}

/// `approvals`.
#[derive(Debug, Args)]
pub struct ApprovalsArgs {
    /// Show those of the last hour too that were settled
    #[arg(long)]
    pub settled: bool,
    /// Stay: show each call as it comes, and what becomes of it; with --json one object on each line
    #[arg(long, conflicts_with = "settled")]
    pub watch: bool,
    /// Run this program for each call that comes, without a shell, with the request as one line of JSON on its
    /// standard input. It is told, not asked: neither its output nor its exit code is an answer. At most 4 run at
    /// once, each for 30 s; what goes wrong is said, and the watch goes on
    #[arg(long, value_name = "PROGRAM", requires = "watch")]
    pub exec: Option<PathBuf>,
    /// What the program of --exec gets as its arguments, behind --
    #[arg(value_name = "ARGUMENT", last = true, requires = "exec")]
    pub exec_args: Vec<OsString>,
}

/// `approve`.
#[derive(Debug, Args)]
pub struct ApproveArgs {
    /// Which approval; see `rolebroker approvals`
    pub approval: ApprovalId,
    /// What it covers: this call, or more like it in its session
    #[arg(long, value_enum, default_value = "once")]
    pub scope: ScopeArg,
    /// A word that goes with the answer
    #[arg(long, default_value = "")]
    pub comment: String,
    /// Do not show and ask: approve it if it is what has this digest, as `approvals --json` told
    #[arg(long, value_name = "DIGEST")]
    pub digest: Option<Digest>,
    /// Wait so many seconds for the call's end, to tell it; 0 not at all
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(..=86_400))]
    pub wait: u64,
}

/// `refuse`.
#[derive(Debug, Args)]
pub struct RefuseArgs {
    /// Which approval; see `rolebroker approvals`
    pub approval: ApprovalId,
    /// A word that goes with the answer
    #[arg(long, default_value = "")]
    pub comment: String,
}

/// What an approval covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ScopeArg {
    /// This call
    Once,
    /// This call and more like it in its session, in the bounds that the grants state
    Session,
}

impl From<ScopeArg> for Scope {
    fn from(scope: ScopeArg) -> Scope {
        match scope {
            ScopeArg::Once => Scope::Once,
            ScopeArg::Session => Scope::Session,
        }
    }
}
