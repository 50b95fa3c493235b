//! What an operator types.

use std::path::PathBuf;

use clap::Args;
use client::proto::{Control, Digest, GrantId, RoleName, SessionId, ToolName};
use client::{DataClass, Label};

use super::units;

/// `sessions`.
#[derive(Debug, Args)]
pub struct SessionsArgs {
    /// The agent role
    pub role: RoleName,
}

/// `session` and `close`.
#[derive(Debug, Args)]
pub struct SessionArgs {
    /// The agent role
    pub role: RoleName,
    /// Its session
    pub session: SessionId,
}

/// `join`.
#[derive(Debug, Args)]
pub struct JoinArgs {
    /// The agent role
    pub role: RoleName,
    /// The session whose label is carried
    pub from: SessionId,
    /// The session that it is carried into; made, if there is none
    pub into: SessionId,
    /// End FROM with this; its standing approvals move along
    #[arg(long)]
    pub close: bool,
}

impl From<JoinArgs> for Control {
    fn from(args: JoinArgs) -> Control {
        Control::JoinSession {
            role: args.role,
            from: args.from,
            into: args.into,
            close: args.close,
        }
    }
}

/// `declassify`.
#[derive(Debug, Args)]
pub struct DeclassifyArgs {
    /// The agent role
    pub role: RoleName,
    /// Its session, or * for the role's own label
    pub session: String,
    /// The class that it has from now on: public, internal, confidential
    pub class: DataClass,
    /// Why; kept with the record once there is a store
    #[arg(long)]
    pub reason: String,
}

impl From<DeclassifyArgs> for Control {
    fn from(args: DeclassifyArgs) -> Control {
        Control::Declassify {
            role: args.role,
            session: args.session,
            class: args.class,
            reason: args.reason,
        }
    }
}

/// `endorse`.
#[derive(Debug, Args)]
pub struct EndorseArgs {
    /// The agent role
    pub role: RoleName,
    /// Its session, or * for the role's own label
    pub session: String,
    /// Why; kept with the record once there is a store
    #[arg(long)]
    pub reason: String,
}

impl From<EndorseArgs> for Control {
    fn from(args: EndorseArgs) -> Control {
        Control::Endorse {
            role: args.role,
            session: args.session,
            reason: args.reason,
        }
    }
}

/// `grant`.
#[derive(Debug, Args)]
pub struct GrantArgs {
    /// A file with the lines that stand below `[[grant]]` in a configuration, or - for standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Why; kept with the record once there is a store
    #[arg(long)]
    pub reason: String,
}

/// `revoke`.
#[derive(Debug, Args)]
pub struct RevokeArgs {
    /// Which grant; see `rolebroker grants`
    pub grant: GrantId,
    /// Why; kept with the record once there is a store
    #[arg(long)]
    pub reason: String,
}

impl From<RevokeArgs> for Control {
    fn from(args: RevokeArgs) -> Control {
        Control::Revoke {
            grant: args.grant,
            reason: args.reason,
        }
    }
}

/// `preapprove`.
#[derive(Debug, Args)]
pub struct PreapproveArgs {
    /// The agent role
    pub role: RoleName,
    /// Its session
    pub session: SessionId,
    /// The tool
    pub tool: ToolName,
    /// A grant that would ask; once for each of them
    #[arg(long = "grant", value_name = "ID", required = true)]
    pub grants: Vec<GrantId>,
    /// The arguments that are meant: those at the grants' pointers must be equal
    #[arg(long, value_name = "JSON", value_parser = units::object)]
    pub arguments: String,
    /// The highest label that it covers: a class, and untrusted if that is covered too
    #[arg(long, value_name = "CLASS[,untrusted]", value_parser = units::label)]
    pub label: Label,
    /// For how many calls
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub uses: u64,
    /// For how long, such as 30m or 1h
    #[arg(long, value_parser = units::millis)]
    pub ttl: u64,
    /// Why; kept with the record once there is a store
    #[arg(long)]
    pub reason: String,
}

impl From<PreapproveArgs> for Control {
    fn from(args: PreapproveArgs) -> Control {
        Control::Preapprove {
            role: args.role,
            session: args.session,
            tool: args.tool,
            grants: args.grants,
            arguments: args.arguments,
            label: args.label,
            uses: args.uses,
            ttl: args.ttl,
            reason: args.reason,
        }
    }
}

/// `accept-tool`.
#[derive(Debug, Args)]
pub struct AcceptToolArgs {
    /// The runner role that offers it
    pub runner: RoleName,
    /// The tool
    pub tool: ToolName,
    /// Why; kept with the record once there is a store
    #[arg(long)]
    pub reason: String,
    /// Accept no other definition than the one with this digest
    #[arg(long, value_name = "DIGEST")]
    pub definition: Option<Digest>,
    /// Do not ask on a terminal
    #[arg(long)]
    pub yes: bool,
}
