//! Agents: ask, repeat, cancel, join, list, talk nonsense, hang up.

use std::collections::BTreeSet;

use proto::{CallId, Cancel, Envelope, JoinSession, ListTools, Message, SessionId, ToolRequest};

use crate::peers::{Asked, Book, Cx};

/// One connection of an agent role.
#[derive(Debug)]
pub(crate) struct Agent {
    role: &'static str,
    next_id: u64,
    /// Whether it speaks more than the seed's kinds, and with which features.
    hello: Option<Vec<&'static str>>,
    greeted: bool,
    open: BTreeSet<u64>,
}

impl Agent {
    pub(crate) fn new(role: &'static str, hello: Option<Vec<&'static str>>) -> Self {
        Self {
            role,
            next_id: 1,
            hello,
            greeted: false,
            open: BTreeSet::new(),
        }
    }

    pub(crate) fn receive(&mut self, envelope: &Envelope) {
        if envelope.r#final {
            self.open.remove(&envelope.id);
        }
    }

    pub(crate) fn act(&mut self, cx: &mut Cx<'_>) {
        if cx.calm {
            return;
        }
        if !self.greeted && cx.rng.chance(90) {
            self.greeted = true;
            if let Some(features) = self.hello.clone() {
                let id = self.id();
                cx.hello(id, &features);
                return;
            }
        }
        if self.open.len() > 6 && !cx.plan.greedy {
            return;
        }
        match cx.rng.below(100) {
            0..55 => self.ask(cx),
            55..72 => self.repeat(cx),
            72..75 => self.ask_otherwise(cx),
            75..83 => self.cancel(cx),
            83..88 => self.join(cx),
            88..93 => self.list(cx),
            93..96 => {
                let open = self.open.first().copied().filter(|_| cx.rng.chance(20));
                let id = open.unwrap_or_else(|| self.id());
                cx.garbage(id);
            }
            96 => self.speak_out_of_turn(cx),
            _ => {}
        }
    }

    fn id(&mut self) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.open.insert(id);
        id
    }

    fn book<'a>(&self, cx: &'a mut Cx<'_>) -> &'a mut Book {
        cx.books.agents.entry(self.role).or_default()
    }

    fn session(&self, cx: &mut Cx<'_>) -> String {
        let number = 1 + cx.rng.next() % cx.plan.sessions;
        format!("s-{number}")
    }

    fn ask(&mut self, cx: &mut Cx<'_>) {
        let session = self.session(cx);
        let (tool, arguments) = cx.plan.request(cx.rng, self.role);
        let skip = if cx.rng.rarely(30) { 3 } else { 1 };
        let book = self.book(cx);
        let last = book.sessions.entry(session.clone()).or_default();
        *last += skip;
        let asked = Asked {
            call: *last,
            session,
            tool: tool.into(),
            arguments,
        };
        book.calls.push(asked.clone());
        self.send(asked, cx);
    }

    fn past(&self, cx: &mut Cx<'_>) -> Option<Asked> {
        let count = self.book(cx).calls.len();
        // Mostly a recent one.
        let span = if cx.rng.chance(70) {
            count.min(12)
        } else {
            count
        };
        let back = 1 + cx.rng.below(span);
        self.book(cx).calls.get(count.checked_sub(back)?).cloned()
    }

    fn repeat(&mut self, cx: &mut Cx<'_>) {
        if let Some(asked) = self.past(cx) {
            self.send(asked, cx);
        }
    }

    fn ask_otherwise(&mut self, cx: &mut Cx<'_>) {
        if let Some(mut asked) = self.past(cx) {
            (asked.tool, asked.arguments) = match cx.plan.request(cx.rng, self.role) {
                (tool, arguments) if cx.plan.narrow => (tool.into(), arguments),
                (_, arguments) => (asked.tool, arguments),
            };
            self.send(asked, cx);
        }
    }

    fn send(&mut self, asked: Asked, cx: &mut Cx<'_>) {
        let id = self.id();
        cx.send(&Envelope::last(
            id,
            Message::ToolRequest(ToolRequest {
                session: session_id(&asked.session),
                call: CallId(asked.call),
                tool: asked.tool,
                arguments: asked.arguments,
            }),
        ));
    }

    fn cancel(&mut self, cx: &mut Cx<'_>) {
        let Some(asked) = self.past(cx) else { return };
        let unknown = cx.rng.rarely(50);
        let id = self.id();
        cx.send(&Envelope::last(
            id,
            Message::Cancel(Cancel {
                session: session_id(&asked.session),
                call: CallId(if unknown { 1 << 40 } else { asked.call }),
            }),
        ));
    }

    fn join(&mut self, cx: &mut Cx<'_>) {
        let from = self.session(cx);
        let into = self.session(cx);
        let close = cx.rng.chance(40);
        let id = self.id();
        cx.send(&Envelope::last(
            id,
            Message::JoinSession(JoinSession {
                from: session_id(&from),
                into: session_id(&into),
                close,
            }),
        ));
    }

    fn list(&mut self, cx: &mut Cx<'_>) {
        let session = session_id(&self.session(cx));
        let id = self.id();
        cx.send(&Envelope::last(
            id,
            Message::ListTools(ListTools { session }),
        ));
    }

    /// A kind that no agent may send.
    fn speak_out_of_turn(&mut self, cx: &mut Cx<'_>) {
        let id = self.id();
        let control = proto::Control::Drain {};
        let message = match cx.rng.below(3) {
            0 => Message::Control(control),
            1 => Message::Offer(proto::Offer { tools: Vec::new() }),
            _ => Message::ListApprovals(proto::ListApprovals { settled: true }),
        };
        cx.send(&Envelope::last(id, message));
    }
}

/// A session's name that is known to be good.
pub(crate) fn session_id(name: &str) -> SessionId {
    SessionId::new(name).expect("the simulator writes good names")
}
