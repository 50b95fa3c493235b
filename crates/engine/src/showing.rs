//! What operators are shown: status, sessions, grants, tools.

use std::collections::BTreeMap;

use proto::control::{
    GrantStatus, RoleStatus, SessionStatus, StandingStatus, ToolState, ToolStatus,
};
use proto::{ControlReply, Message, RoleKind, RoleName, SessionId, ToolName};

use crate::control::{Done, refused};
use crate::engine::Engine;
use crate::event::ConnId;
use crate::record::SessionKey;
use crate::tools::{Taken, offered_definition};

impl Engine {
    pub(crate) fn status(&self) -> ControlReply {
        let separated = !self.config.settings.allow_shared_uid;
        let shared = "allow_shared_uid is set: roles are not separated";
        ControlReply::Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started: self.started,
            now: self.now,
            ruleset: self.config.digest.clone(),
            draining: self.draining.is_some(),
            records: self.stored.0,
            head: self.stored.1.clone(),
            warnings: if separated {
                Vec::new()
            } else {
                vec![shared.to_owned()]
            },
            roles: self
                .config
                .roles
                .values()
                .map(|role| self.role_status(&role.name, role.kind))
                .collect(),
        }
    }

    fn role_status(&self, role: &RoleName, kind: RoleKind) -> RoleStatus {
        let usage = self.usage(role);
        RoleStatus {
            role: role.clone(),
            kind,
            connections: usage.connections,
            in_flight: usage.in_flight,
            sessions: usage.sessions,
            approvals: usage.approvals,
            waiting_bytes: usage.waiting_bytes,
            stored_bytes: usage.stored_bytes,
            dropped_replies: self.accounts.get(role).map_or(0, |a| a.dropped_replies),
        }
    }

    pub(crate) fn list_sessions(&mut self, conn: ConnId, id: u64, role: &RoleName) {
        let keys: Vec<SessionKey> = self
            .sessions
            .keys()
            .filter(|key| key.role == *role)
            .cloned()
            .collect();
        let listed = keys
            .iter()
            .filter_map(|key| self.session_status(key))
            .collect();
        self.send_list(conn, self.newest(), id, listed, |sessions| {
            Message::ControlReply(ControlReply::Sessions { sessions })
        });
    }

    fn session_status(&self, key: &SessionKey) -> Option<SessionStatus> {
        let session = self.sessions.get(key)?;
        Some(SessionStatus {
            session: key.session.clone(),
            owner: session.owner,
            label: self.deciding(key),
            closed: session.closed,
            went_into: session
                .went_into
                .as_ref()
                .map(SessionId::to_string)
                .unwrap_or_default(),
            in_flight: session.in_flight,
            watermark: session.watermark.map_or(0, |call| call.0),
            last_used: session.last_used,
        })
    }

    pub(crate) fn show_session(&self, role: &RoleName, session: &SessionId) -> Done {
        let key = SessionKey {
            role: role.clone(),
            session: session.clone(),
        };
        let (Some(status), Some(held)) = (self.session_status(&key), self.sessions.get(&key))
        else {
            return refused("there is no such session");
        };
        let standing = held
            .standing
            .iter()
            .map(|(approval, standing)| StandingStatus {
                approval: approval.clone(),
                tool: standing.tool.clone(),
                grants: standing
                    .grants
                    .iter()
                    .map(|(grant, _)| grant.clone())
                    .collect(),
                label: standing.label,
                uses_left: standing.uses_left,
                expires: standing.expires,
                by: standing.by.role.clone(),
            });
        let reply = ControlReply::Session {
            session: status,
            raised_by: held.raises.clone(),
            standing: standing.collect(),
        };
        Ok((reply, self.label_record(&key)))
    }

    pub(crate) fn list_grants(&mut self, conn: ConnId, id: u64) {
        let listed = self
            .ruleset
            .grants()
            .into_iter()
            .map(|grant| GrantStatus {
                uses: self.uses.get(&grant.id).copied().unwrap_or(0),
                grant: grant.id,
                effect: grant.effect.to_owned(),
                why: grant.why,
                runtime: grant.runtime,
                max_uses: grant.max_uses.unwrap_or(0),
                expires: grant.expires.unwrap_or_default(),
            })
            .collect();
        self.send_list(conn, self.newest(), id, listed, |grants| {
            Message::ControlReply(ControlReply::Grants { grants })
        });
    }

    pub(crate) fn list_all_tools(&mut self, conn: ConnId, id: u64) {
        let mut listed: BTreeMap<(RoleName, ToolName, bool), ToolStatus> = BTreeMap::new();
        let declared: Vec<_> = self.ruleset.declared().cloned().collect();
        for floor in declared {
            let state = match self
                .pins
                .contains_key(&(floor.runner.clone(), floor.name.clone()))
            {
                true if floor.definition.is_none() => ToolState::Pinned,
                true | false => ToolState::Declared,
            };
            let status = self.tool_status(&floor.runner, &floor.name, state);
            listed.insert((floor.runner, floor.name, false), status);
        }
        for (runner, name) in self.pins.keys() {
            let key = (runner.clone(), name.clone(), false);
            let status = || self.tool_status(runner, name, ToolState::Pinned);
            listed.entry(key).or_insert_with(status);
        }
        for (runner, spec) in self.held_offers() {
            let mut status = self.tool_status(&runner, &spec.name, ToolState::Held);
            status.definition = offered_definition(&spec);
            status.served_by = 0;
            let name = spec.name.clone();
            (status.description, status.input_schema) = (spec.description, spec.input_schema);
            listed.insert((runner, name, true), status);
        }
        let listed: Vec<ToolStatus> = listed.into_values().collect();
        self.send_list(conn, self.newest(), id, listed, |tools| {
            Message::ControlReply(ControlReply::Tools { tools })
        });
    }

    fn tool_status(&self, runner: &RoleName, name: &ToolName, state: ToolState) -> ToolStatus {
        let (description, input_schema) = self.shown_definition(runner, name);
        ToolStatus {
            runner: runner.clone(),
            tool: name.clone(),
            state,
            definition: self.definition(runner, name),
            description,
            input_schema,
            served_by: self.servers(runner, name),
        }
    }

    /// What connected runners offer and nobody has accepted.
    pub(crate) fn held_offers(&self) -> Vec<(RoleName, proto::ToolSpec)> {
        let mut held = Vec::new();
        for conn in self.conns.values() {
            for spec in conn.offer.iter().flat_map(|(specs, _)| specs) {
                if matches!(self.judge_offered(&conn.peer.role, spec), Taken::Held(_)) {
                    held.push((conn.peer.role.clone(), spec.clone()));
                }
            }
        }
        held
    }
}
