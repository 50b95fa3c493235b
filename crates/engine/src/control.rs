//! What operators do.

use proto::{
    Control, ControlReply, DataClass, JoinSession, Label, Message, RoleName, SessionId, ToolName,
};

use crate::effect::{Effect, Level};
use crate::engine::Engine;
use crate::event::{ConnId, RequestId};
use crate::limits::MAX_COMMENT;
use crate::record::{By, CallKey, Record, RecordId, SessionKey};
use crate::session::JoinError;
use crate::tools::offered_definition;

/// Why an operator's request was not done.
pub(crate) enum No {
    Refused(String),
    Busy(&'static str),
}

pub(crate) type Done = Result<(ControlReply, Option<RecordId>), No>;

pub(crate) fn refused<T>(why: impl Into<String>) -> Result<T, No> {
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
