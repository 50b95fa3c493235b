//! What operators do.

use std::collections::BTreeMap;

use proto::control::{
    GrantStatus, RoleStatus, SessionStatus, StandingStatus, ToolState, ToolStatus,
};
use proto::{
    Control, ControlReply, DataClass, JoinSession, Label, Message, RoleKind, RoleName, SessionId,
    ToolName,
};

use crate::effect::{Effect, Level};
use crate::engine::Engine;
use crate::event::{ConnId, RequestId};
use crate::limits::MAX_COMMENT;
use crate::record::{By, CallKey, Record, RecordId, SessionKey};
use crate::session::JoinError;
use crate::tools::{Taken, offered_definition};

/// Why an operator's request was not done.
enum No {
    Refused(String),
    Busy(&'static str),
}

type Done = Result<(ControlReply, Option<RecordId>), No>;

fn refused<T>(why: impl Into<String>) -> Result<T, No> {
    Err(No::Refused(why.into()))
}

impl Engine {
    pub(crate) fn control(&mut self, conn: ConnId, id: u64, control: Control) {
        let Some(by) = self.conns.get(&conn).map(|c| c.by()) else {
            return;
        };
        let done = match control {
            Control::Status {} => Ok((self.status(), None)),
            Control::Reload {} => {
                let request = RequestId { conn, id };
                self.reloads.insert(request, by);
                self.out.push(Effect::Reload { request });
                return;
            }
            Control::Drain {} => Ok(self.begin_drain(Some(by))),
            Control::Sessions { role } => return self.list_sessions(conn, id, &role),
            Control::Session { role, session } => self.show_session(&role, &session),
            Control::JoinSession {
                role,
                from,
                into,
                close,
            } => self.operator_joins(&role, &JoinSession { from, into, close }, by),
            Control::CloseSession { role, session } => self.operator_closes(role, session, by),
            Control::Declassify {
                role,
                session,
                class,
                reason,
            } => self.declassify(&role, &session, class, by, &reason),
            Control::Endorse {
                role,
                session,
                reason,
            } => self.endorse(&role, &session, by, &reason),
            Control::Grants {} => return self.list_grants(conn, id),
            Control::Grant { grant, reason } => self.grant(&grant, by, &reason),
            Control::Revoke { grant, reason } => self.revoke(&grant, by, &reason),
            preapprove @ Control::Preapprove { .. } => self.preapprove(preapprove, by),
            Control::Tools {} => return self.list_all_tools(conn, id),
            Control::AcceptTool {
                runner,
                tool,
                definition,
                reason,
            } => self.accept_tool(&runner, &tool, &definition, by, &reason),
            Control::Explain {
                role,
                session,
                call,
            } => {
                let session = SessionKey { role, session };
                return self.explain(conn, id, &CallKey { session, call });
            }
            Control::ExplainRequest {
                role,
                session,
                tool,
                arguments,
            } => {
                let session = SessionKey { role, session };
                return self.explain_request(conn, id, session, &tool, &arguments);
            }
            Control::Suggest {
                role,
                session,
                call,
            } => {
                let session = SessionKey { role, session };
                match self.suggest(&CallKey { session, call }) {
                    Ok(reply) => Ok((reply, self.newest())),
                    Err(why) => refused(why),
                }
            }
            Control::Tail {} => return self.begin_tail(conn, id),
        };
        match done {
            Ok((reply, after)) => {
                self.reply_after(conn, after, id, &Message::ControlReply(reply));
            }
            Err(No::Refused(why)) => self.bad_message(conn, id, &format!("msg.body: {why}")),
            Err(No::Busy(quota)) => self.busy(conn, id, quota),
        }
    }

    fn status(&self) -> ControlReply {
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

    fn list_sessions(&mut self, conn: ConnId, id: u64, role: &RoleName) {
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

    fn show_session(&self, role: &RoleName, session: &SessionId) -> Done {
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

    fn operator_joins(&mut self, role: &RoleName, join: &JoinSession, by: By) -> Done {
        match self.join(role, join, by, None) {
            Ok((label, after)) => {
                self.tell_joined(role, join, label, after, None);
                Ok((ControlReply::Joined { label }, after))
            }
            Err(JoinError::Busy(quota)) => Err(No::Busy(quota)),
            Err(JoinError::Refused(why)) => refused(why.trim_start_matches("msg.body.")),
        }
    }

    fn operator_closes(&mut self, role: RoleName, session: SessionId, by: By) -> Done {
        let key = SessionKey { role, session };
        if !self.sessions.contains_key(&key) {
            return refused("there is no such session");
        }
        if !self.close_session(&key, Some(by)) {
            return Err(No::Busy("closed_sessions"));
        }
        Ok((ControlReply::Done {}, Some(RecordId(self.last_record))))
    }

    fn declassify(
        &mut self,
        role: &RoleName,
        session: &str,
        class: DataClass,
        by: By,
        reason: &str,
    ) -> Done {
        let held = self.own_label(role, session)?;
        if class >= held.class {
            return refused(format!(
                "class: is {} already, which is not higher",
                held.class
            ));
        }
        self.lower(role, session, Label { class, ..held }, by, reason)
    }

    fn endorse(&mut self, role: &RoleName, session: &str, by: By, reason: &str) -> Done {
        let held = self.own_label(role, session)?;
        if !held.untrusted {
            return refused("session: is trusted already");
        }
        self.lower(
            role,
            session,
            Label {
                untrusted: false,
                ..held
            },
            by,
            reason,
        )
    }

    /// The own label of a session, or of the role for `*`.
    fn own_label(&self, role: &RoleName, session: &str) -> Result<Label, No> {
        if session == "*" {
            return match self.accounts.get(role) {
                Some(account) => Ok(account.label),
                None => refused("role: has seen nothing yet"),
            };
        }
        let Ok(name) = SessionId::new(session) else {
            return refused("session: is neither a session nor `*`");
        };
        match self.sessions.get(&SessionKey {
            role: role.clone(),
            session: name,
        }) {
            Some(session) => Ok(session.label),
            None => refused("there is no such session"),
        }
    }

    fn lower(
        &mut self,
        role: &RoleName,
        session: &str,
        label: Label,
        by: By,
        reason: &str,
    ) -> Done {
        check_reason(reason)?;
        let record = self.record(Record::Lowered {
            at: self.now,
            role: role.clone(),
            session: session.to_owned(),
            label,
            by,
            reason: reason.to_owned(),
        });
        self.apply_lowered(role, session, label, record);
        self.log(Level::Warn, "label_lowered", |log| {
            log.role = Some(role.clone());
            log.session = SessionId::new(session).ok();
            log.reason = Some(label.class.as_str());
        });
        Ok((ControlReply::Done {}, record))
    }

    pub(crate) fn apply_lowered(
        &mut self,
        role: &RoleName,
        session: &str,
        label: Label,
        record: Option<RecordId>,
    ) {
        if let Ok(session) = SessionId::new(session) {
            let key = SessionKey {
                role: role.clone(),
                session,
            };
            if let Some(session) = self.sessions.get_mut(&key) {
                session.label = label;
                session.changed = record;
            }
        } else {
            let account = self.account(role);
            account.label = label;
            account.opening = account.opening.meet(label);
            account.changed = record;
        }
        self.recheck.insert(role.clone());
        self.tools_changed.insert(role.clone());
    }

    /// The newest record: what an operator is shown depends on all before it.
    pub(crate) fn newest(&self) -> Option<RecordId> {
        Some(RecordId(self.last_record)).filter(|id| id.0 > 0)
    }

    fn list_grants(&mut self, conn: ConnId, id: u64) {
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

    fn grant(&mut self, toml: &str, by: By, reason: &str) -> Done {
        check_reason(reason)?;
        let (ruleset, grant) = match self.ruleset.with_grant(toml) {
            Ok(added) => added,
            Err(why) => return refused(format!("grant: {why}")),
        };
        let record = self.record(Record::Granted {
            at: self.now,
            grant: grant.clone(),
            toml: toml.to_owned(),
            by,
            reason: reason.to_owned(),
        });
        self.log(Level::Warn, "granted", |log| {
            log.grant = Some(grant.clone())
        });
        self.replace_ruleset(ruleset);
        self.runtime_grants.push((grant, toml.to_owned()));
        self.rules_changed = record;
        self.rules_moved();
        Ok((ControlReply::Done {}, record))
    }

    fn revoke(&mut self, grant: &proto::GrantId, by: By, reason: &str) -> Done {
        check_reason(reason)?;
        match self.ruleset.without_grant(grant) {
            Ok(ruleset) => self.replace_ruleset(ruleset),
            Err(why) => return refused(format!("grant: {why}")),
        }
        let record = self.record(Record::Revoked {
            at: self.now,
            grant: grant.clone(),
            by,
            reason: reason.to_owned(),
        });
        self.log(Level::Warn, "revoked", |log| {
            log.grant = Some(grant.clone())
        });
        self.runtime_grants.retain(|(id, _)| id != grant);
        self.uses.remove(grant);
        self.rules_changed = record;
        self.rules_moved();
        Ok((ControlReply::Done {}, record))
    }

    /// Makes a standing approval before it is asked, within what its grants allow.
    fn preapprove(&mut self, op: Control, by: By) -> Done {
        let Control::Preapprove {
            role,
            session,
            tool,
            grants,
            arguments,
            label,
            uses,
            ttl,
            reason,
        } = op
        else {
            return refused("is not a preapprove");
        };
        check_reason(&reason)?;
        let key = SessionKey {
            role: role.clone(),
            session,
        };
        if self.sessions.get(&key).is_none_or(|session| session.closed) {
            return refused("session: there is no such session, or it is closed");
        }
        let Some(effective) = self.effective_tool(tool.as_str()) else {
            return refused("tool: there is no such tool");
        };
        let ask = match self
            .ruleset
            .asking(&grants, &role, &key.session, &effective)
        {
            Ok(ask) => ask,
            Err(why) => return refused(format!("grants: {why}")),
        };
        let Some((most_ttl, most_uses)) = crate::cover::standing_bounds(&ask) else {
            return refused("grants: one of them allows no standing approval");
        };
        if uses == 0 || uses > most_uses || ttl == 0 || ttl > most_ttl {
            return refused(format!(
                "uses, ttl: at most {most_uses} calls and {most_ttl} ms are allowed"
            ));
        }
        let Some(pins) = ask.pins(&arguments) else {
            return refused("arguments: are not one JSON object without duplicate keys");
        };
        if self.usage(&role).approvals >= self.quota(&role).approvals {
            return Err(No::Busy("approvals"));
        }
        let Some(approval) = self.fresh_approval() else {
            return refused("no name could be made");
        };
        let expires = self.now.plus(ttl);
        let standing = crate::state::Standing {
            definition: self.definition(&effective.runner, &tool),
            runner: effective.runner,
            tool,
            grants: crate::state::hashes(&ask.grants),
            pins,
            label,
            uses_left: uses,
            expires,
            by,
            asked: Vec::new(),
        };
        let record = self.add_standing(&key, &approval, standing, &reason);
        self.log(Level::Warn, "preapproved", |log| {
            log.role = Some(role.clone());
            log.session = Some(key.session.clone());
            log.approval = Some(approval.clone());
        });
        self.rules_changed = self.rules_changed.max(record);
        Ok((ControlReply::Preapproved { approval, expires }, record))
    }

    fn list_all_tools(&mut self, conn: ConnId, id: u64) {
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
    fn held_offers(&self) -> Vec<(RoleName, proto::ToolSpec)> {
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

    fn accept_tool(
        &mut self,
        runner: &RoleName,
        tool: &ToolName,
        definition: &proto::Digest,
        by: By,
        reason: &str,
    ) -> Done {
        check_reason(reason)?;
        let held = self.held_offers().into_iter().find(|(role, spec)| {
            role == runner && spec.name == *tool && offered_definition(spec) == *definition
        });
        let Some((_, spec)) = held else {
            return refused("tool: no connected runner offers it with this definition, held");
        };
        let stated = self
            .ruleset
            .tool(tool.as_str())
            .is_some_and(|floor| floor.definition.is_some());
        if stated {
            return refused("tool: the configuration states its definition; change it there");
        }
        self.log(Level::Warn, "tool_accepted", |log| {
            log.tool = Some(tool.clone())
        });
        self.pin(runner, spec, Some(by), reason);
        self.rules_moved();
        Ok((ControlReply::Done {}, self.rules_changed))
    }

    /// Answers a request that waited for the shell.
    pub(crate) fn answer_request(
        &mut self,
        request: Option<RequestId>,
        reply: Result<ControlReply, String>,
        after: Option<RecordId>,
    ) {
        let Some(RequestId { conn, id }) = request else {
            return;
        };
        match reply {
            Ok(reply) => self.reply_after(conn, after, id, &Message::ControlReply(reply)),
            Err(why) => self.bad_message(conn, id, &why),
        }
    }
}

fn check_reason(reason: &str) -> Result<(), No> {
    if reason.trim().is_empty() {
        return refused("reason: must say why; it is recorded");
    }
    if reason.len() > MAX_COMMENT {
        return refused("reason: is longer than 1024 bytes");
    }
    Ok(())
}
