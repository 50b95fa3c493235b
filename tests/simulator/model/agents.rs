//! What agents ask and hear (invariants 1, 5 and 6).

use engine::{CallKey, ConnId, SessionKey};
use proto::{
    Decoded, Envelope, ErrorCode, Feature, Label, Message, SessionJoined, ToolName, ToolResponse,
    WireError,
};

use crate::model::Model;
use crate::model::labels::Proof;
use crate::model::wire::{Piece, What};

impl Model {
    pub(crate) fn agent_asks(&mut self, conn: ConnId, decoded: &Decoded) {
        let state = &self.conns[&conn];
        let (role, uid) = (state.role.clone(), state.uid);
        let session = |session: &proto::SessionId| SessionKey {
            role: role.clone(),
            session: session.clone(),
        };
        match &decoded.envelope.msg {
            Message::ToolRequest(request) => {
                let key = CallKey {
                    session: session(&request.session),
                    call: request.call,
                };
                let closes = {
                    let session = self.session(&key.session);
                    session.uids.insert(uid);
                    session.closes
                };
                self.sees_again(&key);
                let call = self.calls.entry(key).or_default();
                call.closes = closes;
                call.held_since.get_or_insert(self.now);
                let fingerprint = crate::peers::fingerprint(&request.tool, &request.arguments);
                let text = (request.tool.clone(), request.arguments.clone());
                call.asked.insert(fingerprint, text);
            }
            Message::Cancel(cancel) => {
                let key = CallKey {
                    session: session(&cancel.session),
                    call: cancel.call,
                };
                self.sees_again(&key);
                let runs = self
                    .conns
                    .values_mut()
                    .flat_map(|conn| conn.runs.values_mut());
                for run in runs.filter(|run| run.call == key) {
                    run.cancelled = true;
                }
            }
            Message::JoinSession(join) => {
                for name in [&join.from, &join.into] {
                    self.session(&session(name)).uids.insert(uid);
                }
            }
            Message::ListTools(list) => {
                self.session(&session(&list.session)).uids.insert(uid);
            }
            _other => {}
        }
    }

    /// A kept answer is about to be told again: it may raise its session again.
    fn sees_again(&mut self, key: &CallKey) {
        let kept = self.calls.get(key).and_then(|call| call.kept.as_ref());
        if let Some(ToolResponse::Result {
            class, untrusted, ..
        }) = kept.map(|k| &k.response)
        {
            let label = Label {
                class: *class,
                untrusted: *untrusted,
            };
            self.labels.said(&key.session, label);
        }
        // Perhaps nobody heard it the first time.
        if let Some(call) = self.calls.get(key) {
            let label = call.floor.join(call.said);
            self.labels.said(&key.session, label);
        }
    }

    /// A step towards, or the end of, the answer to a call.
    pub(crate) fn agent_hears(
        &mut self,
        conn: ConnId,
        key: &CallKey,
        fingerprint: Option<u64>,
        envelope: &Envelope,
        ticket: u64,
    ) {
        match &envelope.msg {
            Message::ToolResponse(response) => {
                let last = envelope.r#final;
                self.agent_is_answered(
                    conn,
                    key,
                    fingerprint,
                    response,
                    (envelope.id, last),
                    ticket,
                );
            }
            Message::Progress(progress) => {
                let state = &self.conns[&conn];
                assert!(
                    state.features.contains(&Feature::Progress),
                    "progress nobody asked for"
                );
                assert!(!envelope.r#final, "invariant 1: progress ends nothing");
                self.check_markers(key, fingerprint, &progress.note);
                self.coverage.progress_forwarded += 1;
                let floor = self
                    .calls
                    .get(key)
                    .map(|call| call.floor)
                    .unwrap_or_default();
                self.sees(key, floor, ticket);
            }
            _other => panic!("a call is answered with {}", envelope.msg.kind()),
        }
    }

    fn agent_is_answered(
        &mut self,
        conn: ConnId,
        key: &CallKey,
        fingerprint: Option<u64>,
        response: &ToolResponse,
        (id, last): (u64, bool),
        ticket: u64,
    ) {
        if let ToolResponse::PendingApproval { approval, .. } = response {
            assert!(!last, "invariant 1: a pending approval ends nothing");
            let known = self
                .approvals
                .values()
                .any(|known| known.request.approval.as_str() == approval && known.key == *key);
            assert!(
                known,
                "an agent waits for {approval}, which was never recorded for its call"
            );
            return;
        }
        let ToolResponse::Result {
            content,
            class,
            untrusted,
            truncated,
        } = response
        else {
            assert!(
                last,
                "invariant 1: only parts and pending approvals leave a request open"
            );
            return self.ends(key, fingerprint, response.clone(), ticket);
        };
        let label = Label {
            class: *class,
            untrusted: *untrusted,
        };
        self.check_markers(key, fingerprint, content);
        let floor = self.calls[key].floor;
        assert!(
            floor.is_within(label),
            "invariant 5: {key:?} gives {label}, its floor is {floor}"
        );
        self.sees(key, label, ticket);
        let state = self
            .conns
            .get_mut(&conn)
            .expect("a send to an open connection");
        let parts = state.features.contains(&Feature::Parts);
        let open = state
            .open
            .get_mut(&id)
            .expect("a frame under an open request");
        if !last {
            assert!(parts, "invariant 1: a part to an agent that takes none");
            self.coverage.parts_forwarded += 1;
            let truncated = *truncated;
            open.pieces.push(Piece {
                content: content.clone(),
                label,
                truncated,
            });
            if let Some(call) = self.calls.get_mut(key) {
                call.part_given = true;
            }
            return;
        }
        let mut whole = String::new();
        let (mut joined, mut cut) = (label, *truncated);
        for piece in &open.pieces {
            whole.push_str(&piece.content);
            joined = joined.join(piece.label);
            cut |= piece.truncated;
        }
        whole.push_str(content);
        let said = self.calls[key].said;
        assert!(
            said.is_within(joined),
            "invariant 5: {key:?} gives {joined}, its runner said {said}"
        );
        let response = ToolResponse::Result {
            content: whole,
            class: joined.class,
            untrusted: joined.untrusted,
            truncated: cut,
        };
        self.ends(key, fingerprint, response, ticket);
    }

    /// An error: is there any reason for it?
    pub(crate) fn refused(&mut self, conn: ConnId, what: &What, id: u64, error: &WireError) {
        let What::Call { key, fingerprint } = what else {
            if let What::Reply(_) | What::Other = what
                && let Some(state) = self.conns.get_mut(&conn)
                && state.offer_before.is_some()
            {
                state.offer = state.offer_before.take();
            }
            return;
        };
        let state = &self.conns[&conn];
        let call = &self.calls[key];
        let several = self.sessions[&key.session].uids.len() > 1;
        let twice = call.asked.keys().any(|other| other != fingerprint);
        assert!(
            several || twice || error.code != ErrorCode::BadMessage,
            "id {id} of {}: a good first request is refused: {error:?}",
            state.role
        );
        self.coverage.other_fingerprints_refused += u64::from(twice);
    }

    /// A session's label was carried into another.
    pub(crate) fn agent_joined(
        &mut self,
        from: &SessionKey,
        into: &SessionKey,
        close: bool,
        envelope: &Envelope,
        ticket: u64,
    ) {
        let Message::Joined(joined) = &envelope.msg else {
            panic!("a join is answered with {}", envelope.msg.kind());
        };
        self.labels.joined(from, into, close, Proof::Sent(ticket));
        let low = self.labels.low_own(into);
        assert!(
            low.is_within(joined.label),
            "invariant 5: joined {}, at least {low}",
            joined.label
        );
    }

    /// Another connection of the role joined two sessions.
    pub(crate) fn agent_is_told_of_a_join(
        &mut self,
        conn: ConnId,
        join: &SessionJoined,
        _ticket: u64,
    ) {
        let role = self.conns[&conn].role.clone();
        let into = SessionKey {
            role,
            session: join.into.clone(),
        };
        let low = self.labels.low_own(&into);
        assert!(
            low.is_within(join.label),
            "invariant 5: joined {}, at least {low}",
            join.label
        );
    }

    /// What a session may call now: nothing that it could not.
    pub(crate) fn agent_lists(&mut self, session: &SessionKey, envelope: &Envelope) {
        let Message::Tools(tools) = &envelope.msg else {
            panic!("list_tools is answered with {}", envelope.msg.kind());
        };
        for listed in &tools.tools {
            self.coverage.tools_listed += 1;
            let name: &ToolName = &listed.spec.name;
            self.must_be_listable(session, name, listed);
        }
    }
}
