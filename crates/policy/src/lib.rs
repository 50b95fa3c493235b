//! Configuration text to a ruleset, and `decide` (DESIGN 6). Pure: no I/O, no clock.

pub mod config;
pub mod decision;
pub mod embedded;
pub mod limits;
pub mod ruleset;

mod canonical;
mod decide;
mod glob;
mod grant;
mod host;
mod matcher;
mod number;
mod path;
mod pointer;
mod remarks;
mod tool;

pub use config::{
    Config, ConfigError, Fault, LabelScope, OfferRule, Pin, Quota, Role, RoleKind, Settings,
};
pub use decision::{Ask, AskingGrant, Decision, Deny, Permit, Pins, Query};
pub use ruleset::{EffectiveTool, GrantView, Ruleset, ToolFloor};
