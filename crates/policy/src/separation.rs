//! The rule that nobody sits on both sides of an approval (DESIGN 5), over uids: whoever has looked
//! them up asks here.

use std::collections::{BTreeMap, BTreeSet};

use proto::RoleName;

use crate::config::RoleKind;

/// Which side of an approval a role stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Agents and runners: what is watched.
    Watched,
    /// Approvers and operators: who watches.
    Watching,
}

impl Side {
    /// The side of a kind of role.
    pub fn of(kind: RoleKind) -> Side {
        match kind {
            RoleKind::Agent | RoleKind::Runner => Side::Watched,
            RoleKind::Approver | RoleKind::Operator => Side::Watching,
        }
    }
}

/// A uid on both sides, with one role of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shared<'a> {
    /// The uid.
    pub uid: u32,
    /// An agent or a runner.
    pub watched: &'a RoleName,
    /// An approver or an operator.
    pub watching: &'a RoleName,
}

/// Each uid that is named on both sides, in the order of uids.
pub fn shared<'a>(roles: &'a BTreeMap<RoleName, (Side, BTreeSet<u32>)>) -> Vec<Shared<'a>> {
    let first = |uid: u32, side: Side| {
        let found = roles
            .iter()
            .find(|(_, (s, uids))| *s == side && uids.contains(&uid));
        found.map(|(name, _)| name)
    };
    let every: BTreeSet<u32> = roles.values().flat_map(|(_, uids)| uids).copied().collect();
    let both = |uid: u32| {
        Some(Shared {
            uid,
            watched: first(uid, Side::Watched)?,
            watching: first(uid, Side::Watching)?,
        })
    };
    every.into_iter().filter_map(both).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uid_is_shared_only_across_the_sides() {
        let role = |name: &str, kind, uids: &[u32]| {
            let uids = uids.iter().copied().collect();
            (RoleName::new(name).unwrap(), (Side::of(kind), uids))
        };
        let roles: BTreeMap<_, _> = [
            role("bot", RoleKind::Agent, &[1, 2]),
            role("files", RoleKind::Runner, &[2, 3]),
            role("alice", RoleKind::Approver, &[3, 4]),
            role("admin", RoleKind::Operator, &[4, 1]),
        ]
        .into();
        let told: Vec<_> = shared(&roles)
            .iter()
            .map(|s| (s.uid, s.watched.as_str(), s.watching.as_str()))
            .collect();
        assert_eq!(told, [(1, "bot", "admin"), (3, "files", "alice")]);
    }
}
