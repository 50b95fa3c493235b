//! Grants as text for a person.

use std::fmt::Write as _;

use client::proto::control::GrantStatus;

use super::lapses;
use crate::printable;

/// A line for each grant, and its own reason below it; `now` in Unix milliseconds.
pub(super) fn all(grants: &[GrantStatus], now: u64) -> String {
    if grants.is_empty() {
        return "no grants: every call is denied; add a [[grant]] to the configuration\n"
            .to_owned();
    }
    let mut out = format!(
        "{:<24} {:<6} {:<8} {:>12}  {}\n",
        "grant", "effect", "from", "uses", "lapses"
    );
    for grant in grants {
        let uses = match grant.max_uses {
            0 => grant.uses.to_string(),
            most => format!("{} of {most}", grant.uses),
        };
        let from = if grant.runtime { "run time" } else { "file" };
        let lapses = match grant.expires.millis() {
            0 => "never".to_owned(),
            _ => lapses(grant.expires, now),
        };
        // Writing into a String does not fail.
        let _ = writeln!(
            out,
            "{:<24} {:<6} {from:<8} {uses:>12}  {lapses}",
            grant.grant.as_str(),
            printable::text(&grant.effect)
        );
        if !grant.why.is_empty() {
            let _ = writeln!(out, "    {}", printable::text(&grant.why));
        }
    }
    out
}
