//! A small world around the engine: connections by name, frames as messages, records kept.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::{ConnId, Effect, Effects, Engine, Event, Peer, Record};
use policy::Config;
use proto::{
    Answer, ApprovalReply, ApprovalRequest, CallId, DataClass, Envelope, Hello, Message, RoleName,
    Scope, SessionId, Timestamp, ToolRequest, ToolResponse,
};

pub(crate) const CONFIG: &str = include_str!("world.toml");

/// The engine, who is connected to it, and what it said.
pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) now: u64,
    pub(crate) records: Vec<Record>,
    inbox: BTreeMap<ConnId, Vec<Envelope>>,
    pub(crate) closed: Vec<ConnId>,
    pub(crate) drained: bool,
    /// Whether outboxes drain at once.
    pub(crate) drains: bool,
    pending_bytes: BTreeMap<ConnId, u64>,
    next_conn: u64,
    next_id: u64,
    nonce: u64,
}

pub(crate) fn session(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(CONFIG)
    }

    pub(crate) fn with(config: &str) -> Self {
        let config =
            Arc::new(Config::parse("world.toml", config).unwrap_or_else(|e| panic!("{e}")));
        let now = 1_800_000_000_000;
        Self {
            engine: Engine::new(config, Timestamp::from_millis(now).unwrap()),
            now,
            records: Vec::new(),
            inbox: BTreeMap::new(),
            closed: Vec::new(),
            drained: false,
            drains: true,
            pending_bytes: BTreeMap::new(),
            next_conn: 1,
            next_id: 1,
            nonce: 0x1234_5678_9abc,
        }
    }

    fn time(&self) -> Timestamp {
        Timestamp::from_millis(self.now).unwrap()
    }

    pub(crate) fn give(&mut self, event: Event) {
        let mut effects = Effects::new();
        self.engine.handle(self.time(), event, &mut effects);
        self.take(effects);
    }

    fn take(&mut self, effects: Effects) {
        for effect in effects {
            match effect {
                Effect::Send {
                    conn,
                    after,
                    id,
                    is_final,
                    msg,
                } => {
                    let last = engine::RecordId(self.records.len() as u64);
                    assert!(
                        after.is_none_or(|after| after <= last),
                        "{after:?} is not recorded yet"
                    );
                    let mut frame = bytes::BytesMut::new();
                    proto::encode_with(id, is_final, &msg, &mut frame);
                    let envelope = proto::decode(&frame[4..]).unwrap();
                    self.inbox.entry(conn).or_default().push(envelope);
                    *self.pending_bytes.entry(conn).or_default() += frame.len() as u64;
                }
                Effect::Record { id, record } => {
                    self.records.push(record);
                    assert_eq!(id.0, self.records.len() as u64);
                }
                Effect::Close { conn } => self.closed.push(conn),
                Effect::Drained => self.drained = true,
                Effect::Log(_) | Effect::Reload { .. } => {}
            }
        }
        if self.drains {
            self.drain_outboxes();
        }
    }

    pub(crate) fn drain_outboxes(&mut self) {
        for (conn, bytes) in std::mem::take(&mut self.pending_bytes) {
            self.give(Event::Written { conn, bytes });
        }
    }

    /// Lets time pass, and everything happen that is due by then.
    pub(crate) fn pass(&mut self, millis: u64) {
        let until = self.now + millis;
        while let Some(due) = self
            .engine
            .poll_timeout()
            .filter(|due| due.millis() <= until)
        {
            self.now = self.now.max(due.millis());
            let mut effects = Effects::new();
            self.engine.handle_timeout(self.time(), &mut effects);
            self.take(effects);
        }
        self.now = until;
    }

    /// Connects without a hello.
    pub(crate) fn plain(&mut self, role: &str, uid: u32) -> ConnId {
        let conn = ConnId(self.next_conn);
        self.next_conn += 1;
        let role = RoleName::new(role).unwrap();
        self.give(Event::Connected {
            conn,
            peer: Peer { role, uid },
        });
        conn
    }

    /// Connects, and says hello with every feature.
    pub(crate) fn connect(&mut self, role: &str, uid: u32) -> ConnId {
        let conn = self.plain(role, uid);
        let features = ["parts", "progress", "tools"].map(str::to_owned).to_vec();
        self.say(
            conn,
            Message::Hello(Hello {
                software: "test".to_owned(),
                features,
            }),
        );
        let welcome = self.heard(conn);
        assert!(matches!(welcome[0].msg, Message::Welcome(_)), "{welcome:?}");
        conn
    }

    /// Sends a request, and gives its id.
    pub(crate) fn say(&mut self, conn: ConnId, msg: Message) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.send(conn, Envelope::last(id, msg));
        id
    }

    pub(crate) fn send(&mut self, conn: ConnId, envelope: Envelope) {
        let frame = proto::decode_shared(proto::encode(&envelope).into());
        self.nonce += 7919;
        self.give(Event::Received {
            conn,
            frame,
            nonce: self.nonce,
        });
    }

    pub(crate) fn call(&mut self, conn: ConnId, s: &str, call: u64, tool: &str, args: &str) -> u64 {
        self.say(
            conn,
            Message::ToolRequest(ToolRequest {
                session: session(s),
                call: CallId(call),
                tool: tool.to_owned(),
                arguments: args.to_owned(),
            }),
        )
    }

    /// What a connection was told since it was last asked.
    pub(crate) fn heard(&mut self, conn: ConnId) -> Vec<Envelope> {
        self.inbox.remove(&conn).unwrap_or_default()
    }

    /// The one final answer under `id`, of what a connection was told.
    pub(crate) fn answer(&mut self, conn: ConnId, id: u64) -> ToolResponse {
        let heard = self.heard(conn);
        let finals: Vec<_> = heard.iter().filter(|e| e.id == id && e.r#final).collect();
        match finals.as_slice() {
            [
                Envelope {
                    msg: Message::ToolResponse(response),
                    ..
                },
            ] => response.clone(),
            _ => panic!("not one final answer under {id}: {heard:#?}"),
        }
    }

    /// The tool requests that a runner got: its wire id, and its call's.
    pub(crate) fn requests(&mut self, conn: ConnId) -> Vec<(u64, u64)> {
        self.heard(conn)
            .into_iter()
            .filter_map(|e| match e.msg {
                Message::ToolRequest(request) => Some((e.id, request.call.0)),
                _ => None,
            })
            .collect()
    }

    pub(crate) fn result(&mut self, runner: ConnId, wire: u64, content: &str, class: DataClass) {
        self.respond(runner, wire, true, content, class);
    }

    pub(crate) fn part(&mut self, runner: ConnId, wire: u64, content: &str, class: DataClass) {
        self.respond(runner, wire, false, content, class);
    }

    fn respond(&mut self, runner: ConnId, id: u64, last: bool, content: &str, class: DataClass) {
        let msg = Message::ToolResponse(ToolResponse::Result {
            content: content.to_owned(),
            class,
            untrusted: false,
            truncated: false,
        });
        self.send(
            runner,
            Envelope {
                v: 1,
                id,
                r#final: last,
                msg,
            },
        );
    }

    /// The approvals that an approver was pushed.
    pub(crate) fn asked(&mut self, approver: ConnId) -> Vec<ApprovalRequest> {
        self.heard(approver)
            .into_iter()
            .filter_map(|e| match e.msg {
                Message::ApprovalRequest(request) => Some(request),
                _ => None,
            })
            .collect()
    }

    pub(crate) fn vote(
        &mut self,
        conn: ConnId,
        request: &ApprovalRequest,
        answer: Answer,
        scope: Scope,
    ) -> u64 {
        self.say(
            conn,
            Message::ApprovalReply(ApprovalReply {
                approval: request.approval.clone(),
                digest: request.digest.clone(),
                answer,
                scope,
                comment: String::new(),
            }),
        )
    }

    /// Ends the engine, and starts another from the first `kept` records.
    pub(crate) fn restart(&mut self, kept: usize) {
        self.begin_again(kept, None);
    }

    /// The first `kept` records are a copy that somebody put back.
    pub(crate) fn restore_copy(&mut self, kept: usize) {
        let reason = "the disk broke".to_owned();
        self.begin_again(kept, Some(engine::PutBack { uid: 7, reason }));
    }

    fn begin_again(&mut self, kept: usize, put_back: Option<engine::PutBack>) {
        self.records.truncate(kept);
        let config = self.engine.config().clone();
        let mut effects = Effects::new();
        self.inbox.clear();
        self.pending_bytes.clear();
        let (now, records) = (self.time(), self.records.clone());
        self.engine = Engine::restore(config, now, [], records, put_back, &mut effects)
            .unwrap_or_else(|e| panic!("{e}"));
        self.take(effects);
    }
}
