//! The configuration as it was understood: settings, roles, and the ruleset.

use std::collections::BTreeMap;

use proto::{DataClass, Digest, Effects, RoleName};
pub use proto::{LabelScope, RoleKind};
use sha2::Digest as _;
use toml::de::DeTable;

use self::faults::Faults;
use self::section::Section;
use crate::limits::MAX_TEXT;
use crate::ruleset::Ruleset;

mod broker;
mod changes;
mod constraints;
mod examples;
pub(crate) mod faults;
pub(crate) mod grants;
mod offers;
pub(crate) mod people;
mod roles;
pub(crate) mod section;
mod tools;
mod units;

const KEYS: &[&str] = &["approvers", "broker", "roles", "tool", "grant"];

/// A whole configuration. It exists only if every part of it is sound.
#[derive(Debug, Clone)]
pub struct Config {
    /// What it was read from.
    pub text: String,
    /// SHA-256 of the text.
    pub digest: Digest,
    /// `[broker]`.
    pub settings: Settings,
    /// `[roles.*]`.
    pub roles: BTreeMap<RoleName, Role>,
    /// `[[tool]]` and `[[grant]]`, and what roles may offer.
    pub ruleset: Ruleset,
}

impl Config {
    /// Reads a configuration. `file` names it in the faults.
    ///
    /// # Errors
    /// Every fault of the text at once.
    pub fn parse(file: &str, text: &str) -> Result<Config, ConfigError> {
        let mut faults = Faults::new(text);
        if text.len() > MAX_TEXT {
            faults.add(
                &(0..0),
                format!("the configuration has at most {MAX_TEXT} bytes"),
            );
            return Err(faults.into_error(file));
        }
        let (table, wrong) = DeTable::parse_recoverable(text);
        if !wrong.is_empty() {
            // What a broken text recovers to is guesswork: no further faults are told about it.
            syntax(&wrong, &mut faults);
            return Err(faults.into_error(file));
        }
        let (settings, roles, ruleset) = read(&table, &mut faults);
        if !faults.is_empty() {
            return Err(faults.into_error(file));
        }
        let digest = Digest::from_bytes(sha2::Sha256::digest(text.as_bytes()).into());
        Ok(Config {
            text: text.to_owned(),
            digest,
            settings,
            roles,
            ruleset,
        })
    }
}

/// Notes what is no TOML.
pub(crate) fn syntax(wrong: &[toml::de::Error], faults: &mut Faults) {
    for fault in wrong {
        faults.add(
            &fault.span().unwrap_or(0..0),
            format!("no TOML: {}", fault.message()),
        );
    }
}

fn read(
    table: &toml::Spanned<DeTable<'_>>,
    faults: &mut Faults,
) -> (Settings, BTreeMap<RoleName, Role>, Ruleset) {
    let place = "the configuration".to_owned();
    let top = Section::new(table.get_ref(), table.span(), place, KEYS, faults);
    let settings = broker::read(&top, faults);
    let roles = roles::read(&top, &settings, faults);
    let context = people::Context::read(&top, &roles, &settings, faults);
    let tools = tools::read(&top, &roles, faults);
    let grants = grants::read(&top, &context, &tools, faults);
    let ruleset = Ruleset::new(tools, roles.offers, grants, context);
    (settings, roles.roles, ruleset)
}

/// Why a configuration was not taken: every fault at once.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.faults.iter().map(|f| f.to_string()).collect::<Vec<_>>().join("\n"))]
pub struct ConfigError {
    /// In the order of the lines.
    pub faults: Vec<Fault>,
}

/// One fault: where, what, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {what}")]
pub struct Fault {
    /// The file's name as it was given.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// Which grant, tool or role; what is wrong; what to write instead.
    pub what: String,
}

/// `[broker]`. Times are milliseconds, sizes bytes. The defaults are those of DESIGN 10.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Where the sockets are.
    pub runtime_dir: String,
    /// Where the state is.
    pub state_dir: String,
    /// The largest frame, 4 KiB to 64 MiB.
    pub max_frame: u64,
    /// How long a call waits for a runner.
    pub runner_wait: u64,
    /// How long a runner may be silent.
    pub call_timeout: u64,
    /// How long a call may take in all.
    pub call_limit: u64,
    /// How long a runner has to answer a cancel.
    pub cancel_grace: u64,
    /// How long a begun frame may take.
    pub frame_timeout: u64,
    /// How long an outbox may make no progress.
    pub write_timeout: u64,
    /// How long a drain lasts.
    pub drain_timeout: u64,
    /// How long an approval is open, unanswered or unspent, where its grants say nothing.
    pub approval_ttl: u64,
    /// How long a refusal answers the same fingerprint.
    pub refusal_ttl: u64,
    /// How long an answer is kept.
    pub answer_ttl: u64,
    /// How long the record keeps arguments; 0: not at all.
    pub audit_arguments_ttl: u64,
    /// How long the record is kept at least, if it does not outgrow `audit_bytes`.
    pub audit_ttl: u64,
    /// Bytes of the record over which its oldest part is given up.
    pub audit_bytes: u64,
    /// How long a session may be idle.
    pub session_ttl: u64,
    /// Whether one uid may be agent or runner and also approver or operator.
    pub allow_shared_uid: bool,
}

/// One role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Role {
    /// Its name.
    pub name: RoleName,
    /// What it is.
    pub kind: RoleKind,
    /// Users that may connect, by name or decimal uid.
    pub users: Vec<String>,
    /// Primary groups that may connect, by name or decimal gid.
    pub groups: Vec<String>,
    /// The socket's mode, default 0o666.
    pub mode: u32,
    /// The socket's group, by name or decimal gid.
    pub group: Option<String>,
    /// Whose label decides; [`LabelScope::None`] for other kinds than agents.
    pub label_scope: LabelScope,
    /// Calls sent to one connection of a runner role.
    pub concurrency: u64,
    /// What a runner role may offer.
    pub offers: Vec<OfferRule>,
    /// The highest class that an approver role is shown.
    pub max_class: DataClass,
    /// Its bounds.
    pub quota: Quota,
}

/// What a role may hold at once. Named as in the configuration, and as in `busy: <quota>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Open connections.
    pub connections: u64,
    /// Calls that are not answered yet.
    pub in_flight: u64,
    /// Sessions that are not closed or shrunk.
    pub sessions: u64,
    /// Sessions that are closed or shrunk.
    pub closed_sessions: u64,
    /// Pending approvals of the role's calls, and its standing approvals.
    pub approvals: u64,
    /// Bytes that wait for or from the role.
    pub waiting_bytes: u64,
    /// Bytes of kept answers.
    pub stored_bytes: u64,
    /// Bytes of arguments that the record keeps of the role's calls; the oldest go first.
    pub arguments_bytes: u64,
    /// Frames per second, with a burst of as many.
    pub requests_per_second: u64,
}

/// What a runner role may offer, and what it counts as at least.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferRule {
    /// Globs over tool names, as written.
    pub tools: Vec<String>,
    /// At least internal where nothing is said.
    pub class: DataClass,
    /// True where nothing is said.
    pub untrusted: bool,
    /// `once` where nothing is said.
    pub effects: Effects,
    /// True where nothing is said.
    pub egress: bool,
    /// When a definition counts as read.
    pub pin: Pin,
}

/// When a tool's definition counts as read by somebody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pin {
    /// At first sight: the operator trusts the runner's first text.
    FirstUse,
    /// Once an operator accepted it.
    Accept,
}
