//! The people of a configuration, looked up on this machine: who is missing, and who sits on both sides.

use std::collections::{BTreeMap, BTreeSet};

use nix::unistd::{Group, User};
use policy::Config;
use policy::separation::{Shared, Side, shared};

/// What rolebrokerd would find of the users and groups here, a line each. On another machine it may find others.
pub(super) fn warnings(config: &Config) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut named = BTreeMap::new();
    for (name, role) in &config.roles {
        let mut missing = |kind: &str, who: &str| {
            warnings.push(format!(
                "role `{name}`: there is no {kind} `{who}` on this machine; here rolebrokerd would not start (exit code \
                 78)"
            ));
        };
        let mut uids = BTreeSet::new();
        for user in &role.users {
            match uid(user) {
                Some(uid) => {
                    uids.insert(uid);
                }
                None => missing("user", user),
            }
        }
        for group in role.groups.iter().chain(&role.group) {
            if !has_group(group) {
                missing("group", group);
            }
        }
        if role.users.is_empty() && role.groups.is_empty() {
            warnings.push(format!(
                "role `{name}`: it names no users and no groups, so nobody may connect"
            ));
        }
        named.insert(name.clone(), (Side::of(role.kind), uids));
    }
    let then = if config.settings.allow_shared_uid {
        "it can approve its own calls"
    } else {
        "rolebrokerd would not start (exit code 78); use another user"
    };
    for Shared {
        uid,
        watched,
        watching,
    } in shared(&named)
    {
        warnings.push(format!(
            "uid {uid} can be `{watched}` and also `{watching}`: {then}"
        ));
    }
    warnings
}

fn uid(user: &str) -> Option<u32> {
    decimal(user).or_else(|| Some(User::from_name(user).ok()??.uid.as_raw()))
}

fn has_group(group: &str) -> bool {
    decimal(group).is_some() || matches!(Group::from_name(group), Ok(Some(_)))
}

/// A decimal number is an id and not a name.
fn decimal(name: &str) -> Option<u32> {
    let digits = name.bytes().all(|byte| byte.is_ascii_digit());
    name.parse().ok().filter(|_| digits)
}
