//! Operators: look, reload, lower labels, grant and revoke, approve beforehand, close, accept.

use proto::control::{ToolState, ToolStatus};
use proto::{
    Control, ControlReply, DataClass, Envelope, GrantId, Label, Message, RoleName, ToolName,
};

use crate::config::{STANDING, TOOLS};
use crate::peers::Cx;
use crate::peers::agent::session_id;

/// One connection of the operator role.
#[derive(Debug, Default)]
pub(crate) struct Operator {
    next_id: u64,
    greeted: bool,
    held: Vec<ToolStatus>,
    granted: Vec<GrantId>,
    /// Makes the names of its grants its own.
    number: u64,
}

impl Operator {
    pub(crate) fn new(number: u64) -> Self {
        Self {
            number,
            ..Self::default()
        }
    }

    pub(crate) fn receive(&mut self, envelope: &Envelope) {
        if let Message::ControlReply(ControlReply::Tools { tools }) = &envelope.msg {
            self.held
                .extend(tools.iter().filter(|t| t.state == ToolState::Held).cloned());
        }
    }

    pub(crate) fn act(&mut self, cx: &mut Cx<'_>) {
        if !self.greeted {
            self.greeted = true;
            let id = self.id();
            cx.hello(id, &[]);
            return;
        }
        if cx.calm {
            return;
        }
        let op = match cx.rng.below(100) {
            0..6 => Control::Status {},
            6..12 => Control::Reload {},
            12..17 => Control::Sessions {
                role: self.agent(cx),
            },
            17..37 => Control::Session {
                role: self.agent(cx),
                session: session_id(&session(cx)),
            },
            37..41 => Control::JoinSession {
                role: self.agent(cx),
                from: session_id(&session(cx)),
                into: session_id(&session(cx)),
                close: cx.rng.chance(40),
            },
            41..44 => Control::CloseSession {
                role: self.agent(cx),
                session: session_id(&session(cx)),
            },
            44..50 => self.lower(cx),
            50..53 => Control::Grants {},
            53..59 => self.grant(cx),
            59..63 => self.revoke(cx),
            63..73 => self.preapprove(cx),
            73..80 => Control::Tools {},
            80..90 => match self.accept(cx) {
                Some(op) => op,
                None => Control::Tools {},
            },
            90..92 => {
                let id = self.id();
                cx.garbage(id);
                return;
            }
            92 if cx.rng.chance(15) => Control::Drain {},
            _ => return,
        };
        let id = self.id();
        cx.send(&Envelope::last(id, Message::Control(op)));
    }

    fn id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    fn agent(&self, cx: &mut Cx<'_>) -> RoleName {
        let (name, _) = *cx.rng.pick(&cx.plan.agents);
        role(name)
    }

    fn lower(&self, cx: &mut Cx<'_>) -> Control {
        let role = self.agent(cx);
        let session = if cx.rng.chance(30) {
            "*".into()
        } else {
            session(cx)
        };
        let reason = "looked at it".into();
        if cx.rng.chance(50) {
            let class = *cx.rng.pick(&DataClass::ALL);
            Control::Declassify {
                role,
                session,
                class,
                reason,
            }
        } else {
            Control::Endorse {
                role,
                session,
                reason,
            }
        }
    }

    fn grant(&mut self, cx: &mut Cx<'_>) -> Control {
        let name = format!("rt-{}-{}", self.number, self.next_id);
        let (tool, _) = *cx.rng.pick(&TOOLS);
        let text = if cx.rng.chance(40) {
            format!(
                "id = \"{name}\"\nroles = [\"*\"]\nsessions = [\"{}\"]\ntools = [\"{tool}\"]\neffect = \"deny\"\nwhy = \"for now\"\n",
                session(cx)
            )
        } else {
            format!(
                "id = \"{name}\"\nroles = [\"*\"]\nsessions = [\"*\"]\ntools = [\"{tool}\"]\neffect = \"allow\"\nmax_class = \"internal\"\nmax_uses = 2\nexpires = \"2030-01-01T00:30:00Z\"\nuntrusted = \"allow\"\nwhy = \"for now\"\n"
            )
        };
        if let Ok(id) = GrantId::new(&name) {
            self.granted.push(id);
        }
        Control::Grant {
            grant: text,
            reason: "needed".into(),
        }
    }

    fn revoke(&mut self, cx: &mut Cx<'_>) -> Control {
        let grant = match cx.rng.below(self.granted.len() + 1) {
            0 => GrantId::new("docs").expect("a good name"),
            at => self.granted.swap_remove(at - 1),
        };
        Control::Revoke {
            grant,
            reason: "no longer".into(),
        }
    }

    fn preapprove(&self, cx: &mut Cx<'_>) -> Control {
        let (grant, tool) = *cx.rng.pick(&STANDING);
        let role = self.agent(cx);
        Control::Preapprove {
            session: session_id(&session(cx)),
            tool: ToolName::new(tool).expect("a good name"),
            grants: vec![GrantId::new(grant).expect("a good name")],
            arguments: cx.plan.arguments(cx.rng, role.as_str()),
            label: Label {
                class: *cx.rng.pick(&DataClass::ALL),
                untrusted: cx.rng.chance(60),
            },
            uses: 1 + cx.rng.next() % 3,
            ttl: *cx.rng.pick(&[10_000, 60_000, 3_600_000]),
            reason: "planned".into(),
            role,
        }
    }

    fn accept(&mut self, cx: &mut Cx<'_>) -> Option<Control> {
        let at = cx.rng.below(self.held.len());
        let tool = (at < self.held.len()).then(|| self.held.swap_remove(at))?;
        Some(Control::AcceptTool {
            runner: tool.runner,
            tool: tool.tool,
            definition: tool.definition,
            reason: "read it".into(),
        })
    }
}

fn session(cx: &mut Cx<'_>) -> String {
    let number = 1 + cx.rng.next() % cx.plan.sessions;
    format!("s-{number}")
}

/// A role's name that is known to be good.
pub(crate) fn role(name: &str) -> RoleName {
    RoleName::new(name).expect("the simulator writes good names")
}
