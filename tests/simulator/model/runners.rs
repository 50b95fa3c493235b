//! What runners are asked and say (invariants 2, 3, 5).

use engine::{CallKey, ConnId, RecordId, SessionKey};
use proto::{
    DecodeError, Decoded, Effects, Envelope, Feature, Label, Message, RoleName, ToolName,
    ToolRequest, ToolResponse,
};

use crate::model::Model;
use crate::model::decisions::same_text;
use crate::model::wire::Run;
use crate::peers::{fingerprint, from_of};

impl Model {
    /// A runner's request: an offer replaces its last.
    pub(crate) fn runner_offers(&mut self, conn: ConnId, decoded: &Decoded) {
        let Message::Offer(offer) = &decoded.envelope.msg else {
            return;
        };
        let state = self
            .conns
            .get_mut(&conn)
            .expect("a frame of an open connection");
        let list = offer
            .tools
            .iter()
            .map(|spec| (spec.name.clone(), spec.clone()))
            .collect();
        state.offer_before = state.offer.replace(list);
    }

    /// A runner's reply.
    pub(crate) fn runner_says(
        &mut self,
        conn: ConnId,
        id: u64,
        frame: &Result<Decoded, DecodeError>,
    ) {
        let state = self
            .conns
            .get_mut(&conn)
            .expect("a frame of an open connection");
        let Some(run) = state.runs.get_mut(&id) else {
            return;
        };
        let mut ends = true;
        if let Ok(decoded) = frame {
            let message = &decoded.envelope.msg;
            let goes_on = match message {
                Message::ToolResponse(ToolResponse::Result { .. }) => Some(Feature::Parts),
                Message::Progress(_) => Some(Feature::Progress),
                _other => None,
            };
            let may = goes_on.is_some_and(|feature| state.features.contains(&feature));
            ends = decoded.envelope.r#final || !may;
            if let Message::ToolResponse(ToolResponse::Result {
                class, untrusted, ..
            }) = message
            {
                run.said = run.said.join(Label {
                    class: *class,
                    untrusted: *untrusted,
                });
            }
        }
        let (key, said, tool) = (run.call.clone(), run.said, run.tool.clone());
        if ends {
            state.runs.remove(&id);
        }
        let floor = self.floor(&tool);
        let Some(call) = self.calls.get_mut(&key) else {
            return;
        };
        if call.at == Some((conn, id)) {
            call.said = said;
            // The floor of the dispatch, and that of now.
            call.floor = call.floor.join(floor);
        }
        let label = said.join(call.floor);
        self.labels.said(&key.session, label);
    }

    /// The floor that a tool's results have now.
    fn floor(&self, tool: &str) -> Label {
        let floor = self.ruleset.tool(tool);
        let tool = floor.map(|floor| floor.effective(self.pinned(&floor.runner, &floor.name)));
        tool.map_or(Label::BOTTOM, |tool| Label {
            class: tool.class,
            untrusted: tool.untrusted,
        })
    }

    /// A request or a cancel goes to a runner.
    pub(crate) fn runner_is_asked(
        &mut self,
        conn: ConnId,
        envelope: &Envelope,
        after: Option<RecordId>,
        ticket: u64,
    ) {
        let state = self
            .conns
            .get_mut(&conn)
            .expect("a send to an open connection");
        let id = envelope.id;
        match &envelope.msg {
            Message::ToolRequest(request) => {
                assert!(
                    id != 0 && envelope.r#final,
                    "a request has a number and is one frame"
                );
                assert!(
                    state.runs_made.insert(id),
                    "invariant 1: request {id} to {conn:?} twice"
                );
                self.dispatched(conn, id, request, after, ticket);
            }
            Message::Cancel(cancel) => {
                // The runner's answer may be on its way: the id was at least a request's.
                assert!(
                    state.runs_made.contains(&id),
                    "invariant 1: a cancel of no request"
                );
                if let Some(run) = state.runs.get_mut(&id) {
                    run.cancelled = true;
                    let named = run.call.session.session == cancel.session;
                    assert!(
                        named && run.call.call == cancel.call,
                        "a cancel of another call"
                    );
                }
            }
            _other => {}
        }
    }

    fn dispatched(
        &mut self,
        conn: ConnId,
        id: u64,
        request: &ToolRequest,
        after: Option<RecordId>,
        ticket: u64,
    ) {
        let role = RoleName::new(from_of(&request.arguments));
        let role = role.unwrap_or_else(|_| panic!("arguments that no agent wrote: {request:?}"));
        let session = SessionKey {
            role,
            session: request.session.clone(),
        };
        let key = CallKey {
            session,
            call: request.call,
        };
        let asked = self.calls.get(&key);
        let asked = asked.and_then(|call| {
            call.asked
                .get(&fingerprint(&request.tool, &request.arguments))
        });
        assert!(
            asked.is_some(),
            "invariant 2: {key:?} runs, but nobody asked that: {request:?}"
        );

        let state = &self.conns[&conn];
        let Some(floor) = self.ruleset.tool(&request.tool) else {
            panic!(
                "invariant 2: {key:?} runs {}, which does not exist",
                request.tool
            );
        };
        assert_eq!(
            floor.runner, state.role,
            "a tool belongs to one runner role"
        );
        let offered = state
            .offer
            .as_ref()
            .map(|offer| offer.get(&floor.name).cloned());
        let spec = match offered {
            None => {
                assert!(
                    floor.declared,
                    "{} is neither declared nor offered",
                    floor.name
                );
                None
            }
            Some(None) => panic!("{} is not offered by {conn:?}", floor.name),
            Some(Some(spec)) => Some(spec),
        };
        if let Some(spec) = &spec
            && floor.definition.is_none()
        {
            let pinned = self.pinned(&floor.runner, &floor.name);
            assert!(
                pinned.is_some_and(|pinned| same_text(pinned, spec)),
                "{} runs with a definition that nobody read: {pinned:?}",
                floor.name
            );
        }
        let tool = floor.effective(self.pinned(&floor.runner, &floor.name));
        if let Some(spec) = &spec {
            let tighter = tool.class >= spec.class
                && tool.untrusted >= spec.untrusted
                && tool.effects >= spec.effects
                && tool.egress >= spec.egress;
            assert!(
                tighter,
                "{} counts for less than its runner says: {tool:?}",
                tool.name
            );
        }
        let recorded = self.recorded.remove(&key);
        // What a `read` tool does not spend gates nothing.
        let spends = recorded
            .as_ref()
            .is_some_and(|record| record.approval.is_some() || !record.spend.is_empty());
        if tool.effects != Effects::Read || spends {
            let durable = recorded.as_ref().zip(after);
            let durable = durable.is_some_and(|(record, after)| record.id <= after);
            assert!(
                durable,
                "invariant 4: {key:?} is sent before its record: {recorded:?}, {after:?}"
            );
        }
        self.must_be_permitted(&key, &tool, &request.arguments, recorded.as_ref());

        let said = Label {
            class: tool.class,
            untrusted: tool.untrusted,
        };
        self.counts_attempt(&key, tool.effects, ticket, said);
        let call = self.calls.get_mut(&key).expect("it was asked");
        call.at = Some((conn, id));
        call.said = Label::BOTTOM;
        let state = self
            .conns
            .get_mut(&conn)
            .expect("a send to an open connection");
        state.runs.insert(
            id,
            Run {
                call: key.clone(),
                tool: request.tool.clone(),
                said: Label::BOTTOM,
                since: self.now,
                cancelled: false,
            },
        );
        // A failure raises the session by the floor, at any time from now on.
        self.labels.said(&key.session, said);
        let most = self.config.roles[&floor.runner].concurrency;
        let running = self.running(conn);
        assert!(running <= most, "{conn:?} runs {running} calls of {most}");
    }

    /// Invariant 3: how often may it run?
    fn counts_attempt(&mut self, key: &CallKey, effects: Effects, ticket: u64, floor: Label) {
        self.coverage.dispatches += 1;
        let call = self.calls.get_mut(key).expect("it was asked");
        assert!(
            call.kept.is_none(),
            "invariant 3: {key:?} runs again, though it was answered {:?}",
            call.kept
        );
        call.attempts += 1;
        call.read = effects == Effects::Read && (call.read || !call.ever_dispatched);
        call.once |= effects == Effects::Once;
        let most = if call.once { 1 } else { 2 };
        assert!(
            call.attempts <= most,
            "invariant 3: {key:?} is sent {} times",
            call.attempts
        );
        assert!(
            !(call.once && call.reached > 0),
            "invariant 3: {key:?} ran before, and is `once`"
        );
        assert!(
            !call.part_given,
            "invariant 3: {key:?} runs again after a part was released"
        );
        if call.ever_dispatched {
            self.coverage.reruns += 1;
        }
        call.ever_dispatched = true;
        call.floor = floor;
        self.reaching.insert(ticket, key.clone());
    }

    /// A send was released: if it was a request to a runner, that runner has it now.
    pub(crate) fn runner_was_reached(&mut self, ticket: u64) {
        let Some(key) = self.reaching.remove(&ticket) else {
            return;
        };
        let call = self.calls.get_mut(&key).expect("it was asked");
        call.reached += 1;
        assert!(
            !call.once || call.reached == 1,
            "invariant 3: {key:?} ran twice, and is `once`"
        );
    }

    /// Runs of a connection that the engine cannot have given up yet.
    fn running(&self, conn: ConnId) -> u64 {
        let silence = self.config.settings.call_timeout;
        let runs = self.conns[&conn].runs.values();
        runs.filter(|run| !run.cancelled && self.now.since(run.since) < silence)
            .count() as u64
    }

    /// Anything else that a peer asked: an offer's answer is the only one with consequences.
    pub(crate) fn others_hear(
        &mut self,
        conn: ConnId,
        envelope: &Envelope,
        after: Option<RecordId>,
    ) {
        match &envelope.msg {
            Message::Offered(offered) => {
                self.coverage.offers_held += offered.held.len() as u64;
                self.coverage.offers_refused += offered.refused.len() as u64;
                let state = self
                    .conns
                    .get_mut(&conn)
                    .expect("a send to an open connection");
                state.offer_before = None;
                let taken: &[ToolName] = &offered.accepted;
                if let Some(offer) = &mut state.offer {
                    offer.retain(|name, _| {
                        taken.contains(name) || offered.held.iter().any(|held| held.name == *name)
                    });
                }
            }
            Message::Approvals(approvals) => {
                for request in &approvals.pending {
                    self.approver_is_shown(conn, request, after, false);
                }
            }
            _other => {}
        }
    }
}
