//! Who may connect to which role: the configuration's names turned into uids and gids, and the rule
//! that nobody sits on both sides (DESIGN 5).

use std::collections::{BTreeMap, BTreeSet};

use nix::unistd::{Group, User};
use policy::Config;
pub use policy::separation::Side;
use policy::separation::{Shared, shared};
use proto::RoleName;

/// The uid that stands for users whom the kernel cannot name: it is nobody's, so nobody is admitted
/// by it.
pub const OVERFLOW_UID: u32 = 65534;

/// Why a peer is not admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The role does not name it.
    NotListed,
    /// It is the uid of users that the kernel cannot name.
    Unmapped,
    /// It could be on both sides.
    BothSides,
}

impl Refusal {
    /// The reason as the log writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Refusal::NotListed => "not_listed",
            Refusal::Unmapped => "unmapped_uid",
            Refusal::BothSides => "both_sides",
        }
    }
}

/// Who may connect to which role.
#[derive(Debug, Clone, Default)]
pub struct Admission {
    roles: BTreeMap<RoleName, Admitted>,
    shared_allowed: bool,
}

#[derive(Debug, Clone)]
struct Admitted {
    side: Side,
    uids: BTreeSet<u32>,
    gids: BTreeSet<u32>,
}

impl Admitted {
    fn has(&self, uid: u32, gid: u32) -> bool {
        self.uids.contains(&uid) || self.gids.contains(&gid)
    }
}

impl Admission {
    /// Looks up every user and group of a configuration. Gives warnings too.
    ///
    /// # Errors
    /// Every fault: users and groups that do not exist, uids on both sides.
    pub fn resolve(config: &Config) -> Result<(Self, Vec<String>), Vec<String>> {
        let mut faults = Vec::new();
        let mut warnings = Vec::new();
        let mut roles = BTreeMap::new();
        for (name, role) in &config.roles {
            let place = format!("roles.{name}");
            if role.users.is_empty() && role.groups.is_empty() {
                warnings.push(format!(
                    "{place}: users and groups are empty, so nobody may connect"
                ));
            }
            let uids = look_up(&place, "users", &role.users, uid_of, &mut faults);
            let gids = look_up(&place, "groups", &role.groups, gid_of, &mut faults);
            if uids.contains(&OVERFLOW_UID) {
                faults.push(format!(
                    "{place}: users has uid {OVERFLOW_UID}, which stands for users whom the kernel \
                     cannot name: name another user"
                ));
            }
            if let Some(group) = &role.group {
                look_up(
                    &place,
                    "group",
                    std::slice::from_ref(group),
                    gid_of,
                    &mut faults,
                );
            }
            let side = Side::of(role.kind);
            roles.insert(name.clone(), Admitted { side, uids, gids });
        }
        let admission = Self {
            roles,
            shared_allowed: config.settings.allow_shared_uid,
        };
        let named = admission.named_uids();
        for Shared {
            uid,
            watched,
            watching,
        } in shared(&named)
        {
            let what = format!("uid {uid} can be {watched} and also {watching}");
            if admission.shared_allowed {
                warnings.push(format!("roles are not separated: {what}"));
            } else {
                faults.push(format!(
                    "roles.{watched}, roles.{watching}: {what}, so it could approve its own calls: \
                     use another user, or say allow_shared_uid = true below [broker]"
                ));
            }
        }
        if faults.is_empty() {
            Ok((admission, warnings))
        } else {
            Err(faults)
        }
    }

    /// Whether a role admits a peer, by what the kernel says of it.
    ///
    /// # Errors
    /// Why not.
    pub fn admit(&self, role: &RoleName, uid: u32, gid: u32) -> Result<Side, Refusal> {
        if uid == OVERFLOW_UID || uid == u32::MAX {
            return Err(Refusal::Unmapped);
        }
        let own = self
            .roles
            .get(role)
            .filter(|admitted| admitted.has(uid, gid))
            .ok_or(Refusal::NotListed)?;
        let elsewhere = self
            .roles
            .values()
            .any(|other| other.side != own.side && other.has(uid, gid));
        if elsewhere && !self.shared_allowed {
            return Err(Refusal::BothSides);
        }
        Ok(own.side)
    }

    /// Whether one uid may be on both sides.
    pub fn shared_allowed(&self) -> bool {
        self.shared_allowed
    }

    /// The side of each role, and the uids that it names.
    fn named_uids(&self) -> BTreeMap<RoleName, (Side, BTreeSet<u32>)> {
        let named = |(name, admitted): (&RoleName, &Admitted)| {
            (name.clone(), (admitted.side, admitted.uids.clone()))
        };
        self.roles.iter().map(named).collect()
    }
}

/// The sides on which uids were seen. A uid whose primary group changes (newgrp) could otherwise be
/// admitted on one side now and on the other later.
#[derive(Debug, Default)]
pub struct Sides {
    seen: BTreeMap<u32, Side>,
}

/// Uids whose side is remembered; past it only known ones are admitted.
pub const MAX_SIDES: usize = 65_536;

impl Sides {
    /// Notes that a uid was admitted on a side; false if it was seen on the other one.
    #[must_use]
    pub fn note(&mut self, uid: u32, side: Side) -> bool {
        match self.seen.get(&uid) {
            Some(seen) => *seen == side,
            None if self.seen.len() >= MAX_SIDES => false,
            None => {
                self.seen.insert(uid, side);
                true
            }
        }
    }
}

/// The gid of a group, by name or decimal number.
///
/// # Errors
/// In words: there is none, or it cannot be looked up.
pub fn gid_of(name: &str) -> Result<u32, String> {
    if let Some(number) = decimal(name) {
        return Ok(number);
    }
    match Group::from_name(name) {
        Ok(Some(group)) => Ok(group.gid.as_raw()),
        Ok(None) => Err(format!("there is no group {name:?} on this machine")),
        Err(error) => Err(format!("group {name:?} cannot be looked up: {error}")),
    }
}

fn uid_of(name: &str) -> Result<u32, String> {
    if let Some(number) = decimal(name) {
        return Ok(number);
    }
    match User::from_name(name) {
        Ok(Some(user)) => Ok(user.uid.as_raw()),
        Ok(None) => Err(format!("there is no user {name:?} on this machine")),
        Err(error) => Err(format!("user {name:?} cannot be looked up: {error}")),
    }
}

/// `u32::MAX` is the system's "no id"; it falls through and is not found.
fn decimal(name: &str) -> Option<u32> {
    name.bytes()
        .all(|b| b.is_ascii_digit())
        .then(|| name.parse().ok())
        .flatten()
        .filter(|number| *number != u32::MAX)
}

fn look_up(
    place: &str,
    key: &str,
    names: &[String],
    find: fn(&str) -> Result<u32, String>,
    faults: &mut Vec<String>,
) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    for name in names {
        match find(name) {
            Ok(id) => {
                found.insert(id);
            }
            Err(why) => faults.push(format!("{place}: {key}: {why}")),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission(roles: &[(&str, Side, &[u32], &[u32])], shared_allowed: bool) -> Admission {
        Admission {
            roles: roles
                .iter()
                .map(|(name, side, uids, gids)| {
                    (
                        RoleName::new(name).expect("a role name"),
                        Admitted {
                            side: *side,
                            uids: uids.iter().copied().collect(),
                            gids: gids.iter().copied().collect(),
                        },
                    )
                })
                .collect(),
            shared_allowed,
        }
    }

    fn role(name: &str) -> RoleName {
        RoleName::new(name).expect("a role name")
    }

    #[test]
    fn a_role_admits_its_users_and_primary_groups_only() {
        let admission = admission(&[("bot", Side::Watched, &[1000], &[50])], false);
        let bot = role("bot");
        assert_eq!(admission.admit(&bot, 1000, 1), Ok(Side::Watched));
        assert_eq!(admission.admit(&bot, 1001, 50), Ok(Side::Watched));
        assert_eq!(admission.admit(&bot, 1001, 51), Err(Refusal::NotListed));
        assert_eq!(admission.admit(&bot, 0, 0), Err(Refusal::NotListed));
        assert_eq!(
            admission.admit(&role("other"), 1000, 50),
            Err(Refusal::NotListed)
        );
    }

    #[test]
    fn empty_lists_admit_nobody() {
        let admission = admission(&[("bot", Side::Watched, &[], &[])], false);
        assert_eq!(admission.admit(&role("bot"), 0, 0), Err(Refusal::NotListed));
    }

    #[test]
    fn the_uid_of_nobody_is_refused_even_where_its_group_is_named() {
        let admission = admission(&[("bot", Side::Watched, &[OVERFLOW_UID], &[50])], false);
        assert_eq!(
            admission.admit(&role("bot"), OVERFLOW_UID, 50),
            Err(Refusal::Unmapped)
        );
    }

    #[test]
    fn a_peer_that_two_sides_admit_is_refused_on_both() {
        let both: &[(&str, Side, &[u32], &[u32])] = &[
            ("bot", Side::Watched, &[], &[50]),
            ("ann", Side::Watching, &[1000], &[]),
        ];
        let strict = admission(both, false);
        assert_eq!(
            strict.admit(&role("bot"), 1000, 50),
            Err(Refusal::BothSides)
        );
        assert_eq!(
            strict.admit(&role("ann"), 1000, 50),
            Err(Refusal::BothSides)
        );
        assert_eq!(strict.admit(&role("ann"), 1000, 51), Ok(Side::Watching));
        let open = admission(both, true);
        assert_eq!(open.admit(&role("bot"), 1000, 50), Ok(Side::Watched));
    }

    #[test]
    fn a_uid_that_was_seen_on_one_side_does_not_come_back_on_the_other() {
        let mut sides = Sides::default();
        assert!(sides.note(1000, Side::Watched));
        assert!(sides.note(1000, Side::Watched));
        assert!(!sides.note(1000, Side::Watching));
        assert!(sides.note(1001, Side::Watching));
    }

    #[test]
    fn a_decimal_number_is_an_id_and_not_a_name() {
        assert_eq!(uid_of("1234567"), Ok(1_234_567));
        assert!(uid_of("no-such-user-here").is_err());
        assert!(uid_of("4294967295").is_err());
        assert!(uid_of("").is_err());
    }
}
