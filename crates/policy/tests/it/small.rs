//! A small world: a few arguments about which everything is known, grants that are built from a few
//! parts, and all the questions that tell them apart.

use std::collections::BTreeMap;

use policy::decision::{Decision, Query};
use policy::{EffectiveTool, Ruleset};
use proto::{DataClass, GrantId, Label, RoleName, SessionId, Timestamp};

use crate::fixture::load;

/// How arguments stand to the one `where` or the one `unless` of this world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stands {
    Yes,
    No,
    Doubtful,
}

/// Arguments, and by hand what is true of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arguments {
    pub(crate) text: &'static str,
    pub(crate) readable: bool,
    /// To `/a = 1`.
    pub(crate) constraint: Stands,
    /// To `/b = 0`.
    pub(crate) exception: Stands,
    /// Whether there is nothing besides `/a`.
    pub(crate) only_a: bool,
}

pub(crate) const ARGUMENTS: [Arguments; 8] = [
    says(r#"{"a":1}"#, Stands::Yes, Stands::No, true),
    says(r#"{"a":1,"b":0}"#, Stands::Yes, Stands::Yes, false),
    says(r#"{"a":1,"b":"?"}"#, Stands::Yes, Stands::Doubtful, false),
    says(r#"{"a":2,"b":5}"#, Stands::No, Stands::No, false),
    says(r#"{"a":"?"}"#, Stands::Doubtful, Stands::No, true),
    says(r#"{"a":[1],"b":0}"#, Stands::Doubtful, Stands::Yes, false),
    says("{}", Stands::No, Stands::No, true),
    Arguments {
        readable: false,
        ..says("{", Stands::No, Stands::No, false)
    },
];

const fn says(
    text: &'static str,
    constraint: Stands,
    exception: Stands,
    only_a: bool,
) -> Arguments {
    Arguments {
        text,
        readable: true,
        constraint,
        exception,
        only_a,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    Allow,
    Ask,
    Deny,
}

/// `where = { "/a" = { equals = 1 } }`, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Where {
    None,
    A,
    /// With `only = false`.
    AOpen,
}

/// Which names a grant has: all match but those of `Elsewhere`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Names {
    Literal,
    Glob,
    Elsewhere,
}

/// A grant of the small world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Small {
    pub(crate) effect: Effect,
    pub(crate) names: Names,
    pub(crate) constraint: Where,
    /// `unless = { "/b" = { equals = 0 } }`.
    pub(crate) excepts: bool,
    pub(crate) max_class: Option<DataClass>,
    pub(crate) above_asks: bool,
    pub(crate) untrusted: Option<Effect>,
    /// At [`EXPIRY`].
    pub(crate) expires: bool,
    /// `max_uses = 1`.
    pub(crate) counted: bool,
}

pub(crate) const PLAIN: Small = Small {
    effect: Effect::Allow,
    names: Names::Literal,
    constraint: Where::None,
    excepts: false,
    max_class: None,
    above_asks: false,
    untrusted: None,
    expires: false,
    counted: false,
};

/// 1970-01-01T00:00:01Z.
pub(crate) const EXPIRY: u64 = 1000;

/// What a grant may say of labels: each part alone, and the combinations that matter.
fn label_terms() -> Vec<Small> {
    vec![
        PLAIN,
        Small {
            max_class: Some(DataClass::Public),
            above_asks: true,
            ..PLAIN
        },
        Small {
            max_class: Some(DataClass::Secret),
            untrusted: Some(Effect::Allow),
            ..PLAIN
        },
        Small {
            max_class: Some(DataClass::Secret),
            names: Names::Glob,
            ..PLAIN
        },
        Small {
            max_class: Some(DataClass::Public),
            untrusted: Some(Effect::Deny),
            ..PLAIN
        },
    ]
}

/// Every small grant.
pub(crate) fn grants() -> Vec<Small> {
    let mut all = vec![Small {
        names: Names::Elsewhere,
        ..PLAIN
    }];
    for terms in label_terms() {
        for constraint in [Where::None, Where::A, Where::AOpen] {
            for (expires, counted) in [(false, false), (true, false), (false, true), (true, true)] {
                all.push(Small {
                    constraint,
                    expires,
                    counted,
                    ..terms
                });
            }
            for excepts in [false, true] {
                all.push(Small {
                    effect: Effect::Ask,
                    constraint,
                    excepts,
                    ..terms
                });
            }
        }
    }
    for constraint in [Where::None, Where::A] {
        for excepts in [false, true] {
            all.push(Small {
                effect: Effect::Deny,
                constraint,
                excepts,
                ..PLAIN
            });
        }
    }
    all
}

fn word(effect: Effect) -> &'static str {
    match effect {
        Effect::Allow => "allow",
        Effect::Ask => "ask",
        Effect::Deny => "deny",
    }
}

/// A grant as the configuration writes it.
pub(crate) fn toml(place: usize, grant: &Small) -> String {
    let (role, tools) = match grant.names {
        Names::Literal => ("bot", "\"send\", \"read\""),
        Names::Glob => ("b*", "\"s*\", \"re??\""),
        Names::Elsewhere => ("other", "\"*\""),
    };
    let mut text = format!(
        "id = \"g{place}\"\nroles = [\"{role}\"]\nsessions = [\"*\"]\ntools = [{tools}]\neffect = \"{}\"\n",
        word(grant.effect)
    );
    match grant.constraint {
        Where::None => {}
        Where::A => text += "where = { \"/a\" = { equals = 1 } }\n",
        Where::AOpen => text += "where = { \"/a\" = { equals = 1 } }\nonly = false\n",
    }
    if grant.excepts {
        text += "unless = { \"/b\" = { equals = 0 } }\n";
    }
    if let Some(class) = grant.max_class {
        text += &format!("max_class = \"{class}\"\n");
    }
    if grant.above_asks {
        text += "above_max = \"ask\"\n";
    }
    if let Some(effect) = grant.untrusted {
        text += &format!("untrusted = \"{}\"\n", word(effect));
    }
    if grant.expires {
        text += "expires = \"1970-01-01T00:00:01Z\"\n";
    }
    if grant.counted {
        text += "max_uses = 1\n";
    }
    text
}

/// `send` is once, with egress, internal; `read` is read, without egress, public.
const WORLD: &str = r#"
approvers = ["eve"]
[roles]
bot = { kind = "agent", label_scope = "session" }
run = { kind = "runner" }
eve = { kind = "approver", max_class = "secret", groups = ["g"] }
[[tool]]
name = "send"
runner = "run"
class = "internal"
[[tool]]
name = "read"
runner = "run"
class = "public"
untrusted = false
effects = "read"
egress = false
"#;

pub(crate) fn ruleset(grants: &[Small]) -> Ruleset {
    let grants = grants
        .iter()
        .enumerate()
        .map(|(place, grant)| format!("[[grant]]\n{}", toml(place, grant)));
    load(&(WORLD.to_owned() + &grants.collect::<String>())).ruleset
}

/// What a question varies besides the ruleset.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question {
    /// `read`, or else `send`.
    pub(crate) read: bool,
    pub(crate) arguments: Arguments,
    pub(crate) label: Label,
    pub(crate) late: bool,
    pub(crate) used: bool,
}

pub(crate) const LABELS: [Label; 5] = [
    Label {
        class: DataClass::Public,
        untrusted: false,
    },
    Label {
        class: DataClass::Public,
        untrusted: true,
    },
    Label {
        class: DataClass::Internal,
        untrusted: false,
    },
    Label {
        class: DataClass::Confidential,
        untrusted: false,
    },
    Label {
        class: DataClass::Secret,
        untrusted: true,
    },
];

/// Every question about one of the tools.
pub(crate) fn questions(read: bool) -> Vec<Question> {
    let mut all = Vec::new();
    for arguments in ARGUMENTS {
        for label in LABELS {
            for (late, used) in [(false, false), (true, false), (false, true), (true, true)] {
                all.push(Question {
                    read,
                    arguments,
                    label,
                    late,
                    used,
                });
            }
        }
    }
    all
}

/// Asks rulesets questions.
#[derive(Debug)]
pub(crate) struct Asker {
    role: RoleName,
    session: SessionId,
    tools: [EffectiveTool; 2],
    fresh: BTreeMap<GrantId, u64>,
    spent: BTreeMap<GrantId, u64>,
}

impl Asker {
    pub(crate) fn new() -> Self {
        let world = ruleset(&[]);
        let tool = |name| world.tool(name).unwrap().effective(None);
        let id = |place| GrantId::new(format!("g{place}")).unwrap();
        Asker {
            role: RoleName::new("bot").unwrap(),
            session: SessionId::new("s").unwrap(),
            tools: [tool("send"), tool("read")],
            fresh: BTreeMap::new(),
            spent: (0..8).map(|place| (id(place), 1)).collect(),
        }
    }

    pub(crate) fn query<'a>(&'a self, question: &'a Question) -> Query<'a> {
        Query {
            role: &self.role,
            session: &self.session,
            tool: &self.tools[usize::from(question.read)],
            arguments: question.arguments.text,
            label: question.label,
            now: Timestamp::from_millis(if question.late { EXPIRY } else { EXPIRY - 1 }).unwrap(),
            uses: if question.used {
                &self.spent
            } else {
                &self.fresh
            },
        }
    }

    pub(crate) fn ask(&self, ruleset: &Ruleset, question: &Question) -> Decision {
        ruleset.decide(&self.query(question))
    }
}

/// Deny < Ask < Permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    Deny,
    Ask,
    Permit,
}

pub(crate) fn rank(decision: &Decision) -> Rank {
    match decision {
        Decision::Deny(_) => Rank::Deny,
        Decision::Ask(_) => Rank::Ask,
        Decision::Permit(_) => Rank::Permit,
    }
}

/// A few numbers that follow from a seed: which random rulesets are looked at.
#[derive(Debug)]
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    /// One of `0..below`.
    pub(crate) fn below(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % below as u64).unwrap()
    }
}
