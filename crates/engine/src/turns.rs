//! The claimed calls of one runner role, in the order in which they are served: agent roles in
//! turn, then their sessions, then their calls as they came (DESIGN 7).

use std::collections::VecDeque;

use proto::{CallId, RoleName, SessionId, ToolName};

use crate::record::{CallKey, SessionKey};

/// Each with its tool, and the bytes of the frame that asks for it.
type Calls = VecDeque<(CallId, ToolName, u64)>;

#[derive(Debug, Default)]
pub(crate) struct Turns {
    roles: VecDeque<(RoleName, VecDeque<(SessionId, Calls)>)>,
}

impl Turns {
    pub(crate) fn is_empty(&self) -> bool {
        self.roles.is_empty()
    }

    pub(crate) fn push(&mut self, key: &CallKey, tool: ToolName, frame: u64) {
        let SessionKey { role, session } = &key.session;
        let sessions = entry(&mut self.roles, role);
        entry(sessions, session).push_back((key.call, tool, frame));
    }

    /// Takes the next call of which `served` says that its tool can be served, and a frame of so many
    /// bytes be taken, now.
    pub(crate) fn pop(&mut self, served: impl Fn(&ToolName, u64) -> bool) -> Option<CallKey> {
        let mut found = None;
        'search: for (r, (_, sessions)) in self.roles.iter().enumerate() {
            for (s, (_, calls)) in sessions.iter().enumerate() {
                if let Some(c) = calls
                    .iter()
                    .position(|(_, tool, frame)| served(tool, *frame))
                {
                    found = Some((r, s, c));
                    break 'search;
                }
            }
        }
        let (r, s, c) = found?;
        let (role, mut sessions) = self.roles.remove(r)?;
        let (session, mut calls) = sessions.remove(s)?;
        let (call, ..) = calls.remove(c)?;
        let key = CallKey {
            session: SessionKey {
                role: role.clone(),
                session: session.clone(),
            },
            call,
        };
        if !calls.is_empty() {
            sessions.push_back((session, calls));
        }
        if !sessions.is_empty() {
            self.roles.push_back((role, sessions));
        }
        Some(key)
    }

    pub(crate) fn remove(&mut self, key: &CallKey) {
        for (role, sessions) in &mut self.roles {
            if *role == key.session.role {
                for (session, calls) in sessions.iter_mut() {
                    if *session == key.session.session {
                        calls.retain(|(call, ..)| *call != key.call);
                    }
                }
                sessions.retain(|(_, calls)| !calls.is_empty());
            }
        }
        self.roles.retain(|(_, sessions)| !sessions.is_empty());
    }
}

fn entry<'a, K: Clone + PartialEq, V: Default>(
    ring: &'a mut VecDeque<(K, V)>,
    key: &K,
) -> &'a mut V {
    let at = ring.iter().position(|(k, _)| k == key).unwrap_or_else(|| {
        ring.push_back((key.clone(), V::default()));
        ring.len() - 1
    });
    &mut ring[at].1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(role: &str, session: &str, call: u64) -> CallKey {
        CallKey {
            session: SessionKey {
                role: RoleName::new(role).unwrap(),
                session: SessionId::new(session).unwrap(),
            },
            call: CallId(call),
        }
    }

    fn tool(name: &str) -> ToolName {
        ToolName::new(name).unwrap()
    }

    #[test]
    fn agent_roles_come_in_turn_then_their_sessions() {
        let mut turns = Turns::default();
        for (role, session, call) in [
            ("a", "s1", 1),
            ("a", "s1", 2),
            ("a", "s2", 3),
            ("b", "s1", 4),
            ("b", "s1", 5),
        ] {
            turns.push(&key(role, session, call), tool("t"), 1);
        }
        let order: Vec<u64> = std::iter::from_fn(|| turns.pop(|_, _| true))
            .map(|k| k.call.0)
            .collect();
        assert_eq!(order, [1, 4, 3, 5, 2]);
        assert!(turns.is_empty());
    }

    #[test]
    fn a_call_that_nobody_can_serve_now_holds_up_no_other() {
        let mut turns = Turns::default();
        turns.push(&key("a", "s", 1), tool("slow"), 1);
        turns.push(&key("a", "s", 2), tool("fast"), 9);
        turns.push(&key("a", "s", 3), tool("fast"), 1);
        let fast = |turns: &mut Turns, takes| turns.pop(|t, f| t.as_str() == "fast" && f <= takes);
        assert_eq!(fast(&mut turns, 5), Some(key("a", "s", 3)));
        assert_eq!(fast(&mut turns, 5), None);
        assert_eq!(fast(&mut turns, 9), Some(key("a", "s", 2)));
        turns.remove(&key("a", "s", 1));
        assert!(turns.is_empty());
    }
}
