//! Seeded configurations. A plan fixes what cannot change while the broker runs (roles, quotas);
//! its variants differ in what a reload may change (grants, tools, floors).

use std::sync::Arc;

use policy::Config;

use crate::rng::Rng;
use crate::texts::text;

/// How many variants a plan has.
pub(crate) const VARIANTS: usize = 4;

/// One run's configurations, and what its roles may draw from.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) variants: Vec<Arc<Config>>,
    /// Agent roles with their uids.
    pub(crate) agents: Vec<(&'static str, &'static [u32])>,
    pub(crate) runners: Vec<(&'static str, u32)>,
    pub(crate) approvers: Vec<(&'static str, &'static [u32])>,
    pub(crate) operator: (&'static str, u32),
    /// How many session names an agent role uses.
    pub(crate) sessions: u64,
    pub(crate) max_frame: usize,
    /// Whether agents keep few calls open, or as many as they like.
    pub(crate) greedy: bool,
    /// Whether agents ask for the same few things again and again.
    pub(crate) narrow: bool,
    /// Whether arguments and answers are as long as they may be, and many peers hardly read.
    pub(crate) heavy: bool,
}

/// Every tool that any variant knows, with the runner role that serves it.
pub(crate) const TOOLS: [(&str, &str); 9] = [
    ("read_doc", "files"),
    ("read_inbox", "files"),
    ("read_secret", "files"),
    ("write_note", "files"),
    ("run_job", "files"),
    ("web.fetch", "web"),
    ("mail.send", "mail"),
    ("mail.search", "mail"),
    ("mail.draft", "mail"),
];

/// Grants that can ask and may stand, for `preapprove`, with a tool of theirs.
pub(crate) const STANDING: [(&str, &str); 3] = [
    ("notes", "write_note"),
    ("jobs", "run_job"),
    ("fetch-ask", "web.fetch"),
];

/// What differs from seed to seed, for all variants of a plan.
pub(crate) struct Shape {
    pub(crate) scopes: [&'static str; 3],
    pub(crate) agents: usize,
    pub(crate) max_frame: usize,
    pub(crate) concurrency: [u64; 3],
    pub(crate) in_flight: u64,
    pub(crate) approvals: u64,
    pub(crate) sessions: u64,
    pub(crate) stored: &'static str,
    pub(crate) waiting: &'static str,
    pub(crate) rate: u64,
    pub(crate) pin: &'static str,
    pub(crate) answer_ttl: &'static str,
    pub(crate) session_ttl: &'static str,
}

impl Plan {
    pub(crate) fn new(rng: &mut Rng) -> Self {
        let many = rng.chance(8);
        let heavy = rng.chance(8);
        let tight = !heavy && rng.chance(25);
        let scope = |rng: &mut Rng| rng.pick::<&str>(&["session", "session", "role"]);
        let shape = Shape {
            scopes: [scope(rng), scope(rng), scope(rng)],
            agents: 1 + rng.below(3),
            max_frame: if heavy {
                65536
            } else {
                *rng.pick(&[4096, 8192, 65536])
            },
            concurrency: [1 + rng.next() % 3, 1 + rng.next() % 3, 1 + rng.next() % 3],
            in_flight: if tight { 3 } else { 64 },
            approvals: if tight { 2 } else { 32 },
            sessions: if tight { 4 } else { 1000 },
            stored: if rng.chance(20) { "4KiB" } else { "4MiB" },
            rate: if tight { 10 } else { 1000 },
            waiting: if tight { "8KiB" } else { "4MiB" },
            pin: rng.pick::<&str>(&["first_use", "accept"]),
            answer_ttl: rng.pick::<&str>(&["2m", "24h"]),
            session_ttl: rng.pick::<&str>(&["10m", "7d"]),
        };
        let texts: Vec<String> = (0..VARIANTS).map(|_| text(rng, &shape)).collect();
        let variants = texts
            .iter()
            .map(|text| match Config::parse("simulator.toml", text) {
                Ok(config) => Arc::new(config),
                Err(error) => panic!("the simulator's configuration is refused:\n{error}\n{text}"),
            })
            .collect();
        let agents: [(&str, &[u32]); 3] = [
            ("bot", &[1001, 1002]),
            ("aide", &[1003]),
            ("clerk", &[1004]),
        ];
        Self {
            variants,
            agents: agents[..shape.agents].to_vec(),
            runners: vec![("files", 1101), ("web", 1102), ("mail", 1103)],
            approvers: vec![
                ("alice", &[2001, 2002]),
                ("bob", &[2003, 2002]),
                ("carol", &[2004]),
            ],
            operator: ("admin", 3001),
            sessions: if many { 300 } else { 2 + rng.next() % 6 },
            max_frame: shape.max_frame,
            greedy: rng.chance(30),
            narrow: !heavy && rng.chance(35),
            heavy,
        }
    }
}

impl Plan {
    /// A tool to ask for, and its arguments.
    pub(crate) fn request(&self, rng: &mut Rng, role: &str) -> (&'static str, String) {
        if rng.rarely(10) {
            return ("no_such_tool", arguments(rng, role));
        }
        if self.heavy {
            let tool = *rng.pick(&["write_note", "run_job", "read_inbox", "mail.draft"]);
            return (tool, long_arguments(rng, role));
        }
        if self.narrow {
            let tool = *rng.pick(&[
                "write_note",
                "run_job",
                "web.fetch",
                "mail.draft",
                "read_inbox",
            ]);
            return (tool, usual_arguments(role));
        }
        (rng.pick(&TOOLS).0, arguments(rng, role))
    }

    /// Arguments that some call may have.
    pub(crate) fn arguments(&self, rng: &mut Rng, role: &str) -> String {
        if self.narrow {
            usual_arguments(role)
        } else {
            arguments(rng, role)
        }
    }
}

fn long_arguments(rng: &mut Rng, role: &str) -> String {
    let text = "z".repeat(*rng.pick(&[1, 20_000, 40_000]));
    format!(r#"{{"from":"{role}","path":"/srv/notes/a","to":"ann@example.org","text":"{text}"}}"#)
}

fn usual_arguments(role: &str) -> String {
    format!(r#"{{"from":"{role}","path":"/srv/notes/a","to":"ann@example.org","text":"one"}}"#)
}

/// Seeded arguments: few values, so that they repeat. `from` says whose they are, because a runner
/// is not told.
fn arguments(rng: &mut Rng, role: &str) -> String {
    let path = rng.pick(&[
        "/srv/notes/a",
        "/srv/notes/b",
        "/srv/docs/c",
        "/etc/key.pem",
        "/x/../y",
    ]);
    let to = rng.pick(&["ann@example.org", "ann@example.org", "eve@example.com"]);
    let text = rng.pick(&["one", "two"]);
    match rng.below(60) {
        0 => format!(r#"{{"from":"{role}","path":"/a","path":"/b"}}"#),
        1 => format!(r#"not an object, "from":"{role}""#),
        2 => format!(r#"{{"from":"{role}","path":7,"to":["a"],"extra":{{"deep":[1,2]}}}}"#),
        3 => {
            let long = "z".repeat(70_000);
            format!(r#"{{"from":"{role}","path":"/srv/notes/a","to":"{to}","text":"{long}"}}"#)
        }
        4..=8 => format!(r#"{{"from":"{role}","path":"{path}"}}"#),
        _ => format!(r#"{{"from":"{role}","path":"{path}","to":"{to}","text":"{text}"}}"#),
    }
}
