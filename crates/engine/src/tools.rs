//! What runners offer, which definitions are accepted, and what a session is told it may call.

use std::collections::BTreeSet;

use policy::{Pin, Query, ToolFloor};
use proto::{
    Digest, ListedTool, Message, NotTaken, Offer, Offered, RoleName, SessionId, ToolName, ToolSpec,
    Tools,
};

use crate::digest;
use crate::effect::Level;
use crate::engine::Engine;
use crate::event::ConnId;
use crate::limits::{MAX_DEFINITION, MAX_OFFERED, MAX_PINNED};
use crate::record::{By, Record, RecordId, SessionKey};

/// What becomes of an offered tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Taken {
    Accepted,
    Held(&'static str),
    Refused(&'static str),
}

/// The hash of what an offered tool says it is.
pub(crate) fn offered_definition(spec: &ToolSpec) -> Digest {
    digest::definition(spec.name.as_str(), &spec.description, &spec.input_schema)
}

impl Engine {
    pub(crate) fn offer(&mut self, conn: ConnId, id: u64, offer: Offer) {
        if offer.tools.len() > MAX_OFFERED {
            return self.bad_message(conn, id, "msg.body.tools: are more than 1024");
        }
        let names: BTreeSet<&ToolName> = offer.tools.iter().map(|spec| &spec.name).collect();
        if names.len() < offer.tools.len() {
            return self.bad_message(conn, id, "msg.body.tools: has a name twice");
        }
        let Some(role) = self.conns.get(&conn).map(|c| c.peer.role.clone()) else {
            return;
        };
        let mut offered = Offered {
            accepted: Vec::new(),
            held: Vec::new(),
            refused: Vec::new(),
        };
        let pinned = self.rules_changed;
        for spec in &offer.tools {
            let name = spec.name.clone();
            match self.take_offered(&role, spec) {
                Taken::Accepted => offered.accepted.push(name),
                Taken::Held(why) => offered.held.push(NotTaken {
                    name,
                    reason: why.to_owned(),
                }),
                Taken::Refused(why) => {
                    offered.refused.push(NotTaken {
                        name,
                        reason: why.to_owned(),
                    });
                }
            }
        }
        let accepted = offered.accepted.iter().cloned().collect();
        if let Some(conn) = self.conns.get_mut(&conn) {
            conn.offer = Some((offer.tools, accepted));
        }
        if self.rules_changed != pinned {
            self.rules_moved();
        }
        self.log(Level::Info, "offer", |log| log.role = Some(role.clone()));
        let after = self.rules_changed;
        self.reply_after(conn, after, id, &Message::Offered(offered));
        self.route(role);
    }

    fn take_offered(&mut self, role: &RoleName, spec: &ToolSpec) -> Taken {
        let taken = self.judge_offered(role, spec);
        if taken == Taken::Accepted {
            self.tighten(role, spec);
        }
        taken
    }

    /// What an offered tool is by the ruleset and the pins; `Accepted` only if its definition is
    /// the pinned one, or may be pinned at first sight.
    pub(crate) fn judge_offered(&self, role: &RoleName, spec: &ToolSpec) -> Taken {
        let Some(floor) = self
            .ruleset
            .tool(spec.name.as_str())
            .filter(|f| f.runner == *role)
        else {
            return Taken::Refused(
                "the configuration neither declares it nor lets this role offer it",
            );
        };
        if spec.description.len() + spec.input_schema.len() > MAX_DEFINITION {
            return Taken::Refused("its definition is longer than 64 KiB");
        }
        if !proto::json::parse(&spec.input_schema).is_ok_and(|schema| schema.is_object()) {
            return Taken::Refused("its input_schema is not a JSON object");
        }
        if let Some((description, schema)) = &floor.definition {
            return if *description == spec.description && *schema == spec.input_schema {
                Taken::Accepted
            } else {
                Taken::Held("it differs from what the configuration states; change it there")
            };
        }
        let pinned = self.pins.get(&(role.clone(), spec.name.clone()));
        match (pinned.map(offered_definition), floor.pin) {
            (Some(pinned), _) if pinned == offered_definition(spec) => Taken::Accepted,
            (Some(_), _) => Taken::Held("it differs from what was accepted"),
            (None, Pin::FirstUse) if self.pinned(role) >= MAX_PINNED => {
                Taken::Held("this role has as many definitions pinned as it may")
            }
            (None, Pin::FirstUse) => Taken::Accepted,
            (None, Pin::Accept) => Taken::Held("an operator has to accept it first"),
        }
    }

    fn pinned(&self, role: &RoleName) -> usize {
        self.pins.keys().filter(|(of, _)| of == role).count()
    }

    /// Pins an accepted definition, and keeps the tightest facts that were offered with it.
    fn tighten(&mut self, role: &RoleName, spec: &ToolSpec) {
        let Some(floor) = self.ruleset.tool(spec.name.as_str()) else {
            return;
        };
        let held = self.pins.get(&(role.clone(), spec.name.clone()));
        let tightest = tightest(&floor, held, spec);
        if held != Some(&tightest) {
            self.pin(role, tightest, None, "");
        }
    }

    /// Accepts a definition; the caller says once that rules moved.
    pub(crate) fn pin(&mut self, role: &RoleName, spec: ToolSpec, by: Option<By>, reason: &str) {
        let record = self.record(Record::Pinned {
            at: self.now,
            runner: role.clone(),
            spec: spec.clone(),
            by,
            reason: reason.to_owned(),
        });
        self.rules_changed = self.rules_changed.max(record);
        self.pins.insert((role.clone(), spec.name.clone()), spec);
    }

    /// Rules or pins changed: everything that hangs on them is looked at again.
    pub(crate) fn rules_moved(&mut self) {
        self.generation += 1;
        self.recheck.extend(self.accounts.keys().cloned());
        self.tools_changed.extend(self.config.roles.keys().cloned());
        let runners: Vec<ConnId> = self
            .conns
            .iter()
            .filter(|(_, c)| c.offer.is_some())
            .map(|(id, _)| *id)
            .collect();
        for id in runners {
            let Some(conn) = self.conns.get(&id) else {
                continue;
            };
            let Some((specs, _)) = &conn.offer else {
                continue;
            };
            let (role, specs) = (conn.peer.role.clone(), specs.clone());
            let accepted = specs
                .iter()
                .filter(|spec| self.take_offered(&role, spec) == Taken::Accepted)
                .map(|spec| spec.name.clone())
                .collect();
            if let Some((_, held)) = self.conns.get_mut(&id).and_then(|c| c.offer.as_mut()) {
                *held = accepted;
            }
        }
        self.route_all();
    }

    pub(crate) fn list_tools(&mut self, conn: ConnId, id: u64, session: &SessionId) {
        let Some(role) = self.conns.get(&conn).map(|c| c.peer.role.clone()) else {
            return;
        };
        let key = SessionKey {
            role,
            session: session.clone(),
        };
        if !self.owns(conn, id, &key) {
            return;
        }
        let declared = self.ruleset.declared().map(|floor| floor.name.clone());
        let names: BTreeSet<ToolName> = declared
            .chain(self.pins.keys().map(|(_, name)| name.clone()))
            .collect();
        let listed: Vec<ListedTool> = names
            .iter()
            .filter_map(|name| self.listed(&key, name))
            .collect();
        let after = self.label_record(&key);
        self.send_list(conn, after, id, listed, |tools| {
            Message::Tools(Tools { tools })
        });
    }

    fn listed(&self, key: &SessionKey, name: &ToolName) -> Option<ListedTool> {
        let tool = self.effective_tool(name.as_str())?;
        let access = self.ruleset.access(&Query {
            role: &key.role,
            session: &key.session,
            tool: &tool,
            arguments: "{}",
            label: self.deciding(key),
            now: self.now,
            uses: &self.uses,
        })?;
        let (description, input_schema) = self.shown_definition(&tool.runner, name);
        let spec = ToolSpec {
            name: name.clone(),
            description,
            input_schema,
            class: tool.class,
            untrusted: tool.untrusted,
            effects: tool.effects,
            egress: tool.egress,
            content: tool.content,
        };
        Some(ListedTool { spec, access })
    }

    /// Answers with a list, in as many envelopes as its frames need.
    pub(crate) fn send_list<T>(
        &mut self,
        conn: ConnId,
        after: Option<RecordId>,
        id: u64,
        items: Vec<T>,
        wrap: impl Fn(Vec<T>) -> Message,
    ) where
        T: serde::Serialize,
    {
        const ENVELOPE: u64 = 256;
        let most = self
            .config
            .settings
            .max_frame
            .min(64 << 10)
            .saturating_sub(ENVELOPE);
        let mut piece = Vec::new();
        let mut bytes = 0;
        for item in items {
            let len = serde_json::to_vec(&item).map_or(0, |json| json.len() as u64 + 1);
            if bytes + len > most && !piece.is_empty() {
                let msg = proto::encode_message(&wrap(std::mem::take(&mut piece)));
                self.send(conn, after, id, false, msg);
                bytes = 0;
            }
            bytes += len;
            piece.push(item);
        }
        self.reply_after(conn, after, id, &wrap(piece));
    }
}

/// An offered tool with the tightest facts of floor, pin and offer.
fn tightest(floor: &ToolFloor, held: Option<&ToolSpec>, spec: &ToolSpec) -> ToolSpec {
    let mut tight = spec.clone();
    let facts = [(floor.class, floor.untrusted, floor.effects, floor.egress)]
        .into_iter()
        .chain(held.map(|pin| (pin.class, pin.untrusted, pin.effects, pin.egress)));
    for (class, untrusted, effects, egress) in facts {
        tight.class = tight.class.max(class);
        tight.untrusted |= untrusted;
        tight.effects = tight.effects.max(effects);
        tight.egress |= egress;
    }
    tight
}
