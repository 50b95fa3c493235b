//! Configuration text to a ruleset, and `decide` (DESIGN 6). Pure: no I/O, no clock.

pub mod config;
pub mod decision;
pub mod embedded;
pub mod limits;
pub mod paths;
pub mod ruleset;
pub mod separation;
pub mod suggest;
pub mod verdict;

mod canonical;
mod cover;
mod decide;
mod explain;
mod glob;
mod grant;
mod host;
mod matcher;
mod number;
mod path;
mod pins;
mod pointer;
mod remarks;
mod review;
mod tool;
mod words;

pub use config::{
    Config, ConfigError, Fault, LabelScope, OfferRule, Pin, Quota, Role, RoleKind, Settings,
};
pub use decision::{Ask, AskingGrant, Decision, Deny, Permit, Pins, Query, Standing, TraceLine};
pub use paths::{Bring, Meeting, Path, PathTool, Paths, Step, paths};
pub use ruleset::{EffectiveTool, GrantView, Ruleset, ToolFloor};
pub use suggest::{
    How, Left, Proposal, Restriction, Seen, SeenGrant, Suggestion, Why, suggest, suggest_seen,
};
pub use verdict::{PastCall, Verdict};
