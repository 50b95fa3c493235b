//! The four kinds of role, as seeded peers: each reads what reaches it and now and then acts.
//! They are as wrong as peers can be; what they may get for it is the model's business.

pub(crate) mod agent;
pub(crate) mod approver;
pub(crate) mod operator;
pub(crate) mod runner;

use std::collections::BTreeMap;

use proto::{Envelope, Hello, Message};

use crate::config::Plan;
use crate::rng::Rng;

/// What a peer works with while it reads or acts.
pub(crate) struct Cx<'a> {
    pub(crate) rng: &'a mut Rng,
    pub(crate) now: u64,
    pub(crate) plan: &'a Plan,
    pub(crate) books: &'a mut Books,
    /// Towards the end nobody misbehaves any more: everything open must come to its end.
    pub(crate) calm: bool,
    /// Frames to send, without their length.
    pub(crate) out: Vec<Vec<u8>>,
    pub(crate) hang_up: bool,
}

impl Cx<'_> {
    pub(crate) fn send(&mut self, envelope: &Envelope) {
        self.out.push(proto::encode(envelope));
    }

    pub(crate) fn hello(&mut self, id: u64, features: &[&str]) {
        self.send(&Envelope::last(
            id,
            Message::Hello(Hello {
                software: "simulator".into(),
                features: features.iter().map(ToString::to_string).collect(),
            }),
        ));
    }

    /// Bytes that are no request of anybody's: `id` names the one that a reply would go under.
    pub(crate) fn garbage(&mut self, id: u64) {
        let hello = r#"{"kind":"hello","body":{"software":"x","features":[]}}"#;
        let frame = match self.rng.below(9) {
            0 => format!(r#"{{"v":2,"id":{id},"final":true,"msg":{hello}}}"#),
            1 => format!(
                r#"{{"v":1,"id":{id},"final":true,"msg":{{"kind":"nonsense","body":{{}}}}}}"#
            ),
            2 => format!(r#"{{"v":1,"id":{id},"final":true,"extra":1,"msg":{hello}}}"#),
            3 => format!(r#"{{"v":1,"id":{id},"final":true}}"#),
            4 => format!(
                r#"{{"v":1,"id":{id},"final":true,"msg":["hello",{{"software":"x","features":[]}}]}}"#
            ),
            5 => format!(
                r#"{{"v":1,"id":{id},"final":true,"msg":{{"kind":"progress","body":{{"done":1}}}}}}"#
            ),
            6 => format!(r#"{{"v":1,"id":0,"final":true,"msg":{hello}}}"#),
            7 => format!(
                r#"{{"v":1,"id":{id},"final":true,"msg":{{"kind":"tool_request","body":{{"session":"-bad","call":1,"tool":"t","arguments":""}}}}}}"#
            ),
            _ if self.rng.chance(20) => "this is no JSON".into(),
            _ => format!(r#"{{ "v":1, "id":{id}, "final":true, "msg":{hello}}}"#),
        };
        self.out.push(frame.into_bytes());
    }
}

/// What the roles remember beyond one connection.
#[derive(Debug, Default)]
pub(crate) struct Books {
    /// By agent role.
    pub(crate) agents: BTreeMap<&'static str, Book>,
    /// How often each runner role changed its mind about its definitions.
    pub(crate) mail_version: u64,
}

/// What an agent role remembers: its sessions and its calls.
#[derive(Debug, Default)]
pub(crate) struct Book {
    /// Session to the highest call id used.
    pub(crate) sessions: BTreeMap<String, u64>,
    pub(crate) calls: Vec<Asked>,
}

/// A call that was asked.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) session: String,
    pub(crate) call: u64,
    pub(crate) tool: String,
    pub(crate) arguments: String,
}

/// One connection's far end.
#[derive(Debug)]
pub(crate) enum Peer {
    Agent(agent::Agent),
    Runner(runner::Runner),
    Approver(approver::Approver),
    Operator(operator::Operator),
}

impl Peer {
    /// A frame reached it.
    pub(crate) fn receive(&mut self, envelope: &Envelope, cx: &mut Cx<'_>) {
        match self {
            Peer::Agent(agent) => agent.receive(envelope),
            Peer::Runner(runner) => runner.receive(envelope, cx),
            Peer::Approver(approver) => approver.receive(envelope),
            Peer::Operator(operator) => operator.receive(envelope),
        }
    }

    /// It may do something.
    pub(crate) fn act(&mut self, cx: &mut Cx<'_>) {
        match self {
            Peer::Agent(agent) => agent.act(cx),
            Peer::Runner(runner) => runner.act(cx),
            Peer::Approver(approver) => approver.act(cx),
            Peer::Operator(operator) => operator.act(cx),
        }
    }
}

/// The mark that everything carries which a runner writes about a call.
pub(crate) fn marker(role: &str, session: &str, call: u64, tool: &str, arguments: &str) -> String {
    format!(
        "<<{role}/{session}/{call}/{:016x}>>",
        fingerprint(tool, arguments)
    )
}

/// Which agent role wrote these arguments.
pub(crate) fn from_of(arguments: &str) -> &str {
    let begin = arguments.find(r#""from":""#).map_or(0, |at| at + 8);
    let rest = &arguments[begin..];
    &rest[..rest.find('"').unwrap_or(rest.len())]
}

/// A 64-bit FNV-1a of what was asked; only equality matters.
pub(crate) fn fingerprint(tool: &str, arguments: &str) -> u64 {
    let bytes = tool.bytes().chain([0]).chain(arguments.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
