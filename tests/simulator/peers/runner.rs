//! Runners: answer, late, in parts, twice, wrongly or never; raise labels; change what they offer.

use proto::{
    CallId, Content, DataClass, Effects, Envelope, Message, Offer, Progress, ToolName, ToolRequest,
    ToolResponse, ToolSpec,
};

use crate::peers::{Cx, from_of, marker};

/// One connection of a runner role.
#[derive(Debug)]
pub(crate) struct Runner {
    role: &'static str,
    next_id: u64,
    greeted: bool,
    jobs: Vec<Job>,
    /// Ids that it was asked under and has answered.
    answered: Vec<u64>,
}

/// A call that it is to run.
#[derive(Debug)]
struct Job {
    id: u64,
    tool: String,
    marker: String,
    /// What it means to do; every act takes one step of it.
    plan: Plan,
    steps: u64,
    not_before: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plan {
    Answer,
    Large,
    Fail,
    Parts,
    Progress,
    Deny,
    Garbage,
    Twice,
    Never,
}

impl Runner {
    pub(crate) fn new(role: &'static str) -> Self {
        Self {
            role,
            next_id: 1,
            greeted: false,
            jobs: Vec::new(),
            answered: Vec::new(),
        }
    }

    pub(crate) fn receive(&mut self, envelope: &Envelope, cx: &mut Cx<'_>) {
        match &envelope.msg {
            Message::ToolRequest(request) => self.begin(envelope.id, request, cx),
            Message::Cancel(_) => self.cancelled(envelope.id, cx),
            _other => {}
        }
    }

    fn begin(&mut self, id: u64, request: &ToolRequest, cx: &mut Cx<'_>) {
        let CallId(call) = request.call;
        let from = from_of(&request.arguments);
        let marker = marker(
            from,
            request.session.as_str(),
            call,
            &request.tool,
            &request.arguments,
        );
        let plan = cx.rng.weighted(&[
            (50, Plan::Answer),
            (4, Plan::Large),
            (7, Plan::Fail),
            (10, Plan::Parts),
            (8, Plan::Progress),
            (2, Plan::Deny),
            (2, Plan::Garbage),
            (3, Plan::Twice),
            (6, Plan::Never),
        ]);
        let late = if cx.rng.chance(10) {
            cx.rng.between(1, 15_000)
        } else {
            0
        };
        self.jobs.push(Job {
            id,
            tool: request.tool.clone(),
            marker,
            plan,
            steps: cx.rng.between(1, 4),
            not_before: cx.now + late,
        });
    }

    fn cancelled(&mut self, id: u64, cx: &mut Cx<'_>) {
        let Some(at) = self.jobs.iter().position(|job| job.id == id) else {
            return;
        };
        match cx.rng.below(3) {
            0 => {}
            1 => {
                let job = self.jobs.swap_remove(at);
                self.answered.push(id);
                let message = format!("stopped {}", job.marker);
                respond(id, true, ToolResponse::Failed { message }, cx);
            }
            _ => self.jobs[at].plan = Plan::Answer,
        }
    }

    pub(crate) fn act(&mut self, cx: &mut Cx<'_>) {
        if !self.greeted {
            self.greeted = true;
            if self.role == "mail" || cx.rng.chance(50) {
                let id = self.id();
                cx.hello(id, &["parts", "progress"]);
                if self.role == "mail" {
                    self.offer(cx);
                }
                return;
            }
        }
        if cx.calm {
            return self.finish(cx);
        }
        match cx.rng.below(200) {
            0 if self.role == "mail" => {
                cx.books.mail_version += 1;
                self.offer(cx);
            }
            1 => {
                let id = self.id();
                cx.garbage(id);
            }
            2 => self.answer_nothing(cx),
            3 => self.speak_out_of_turn(cx),
            4 if !self.jobs.is_empty() => cx.hang_up = true,
            _ => {
                let at = cx.rng.below(self.jobs.len());
                if self
                    .jobs
                    .get(at)
                    .is_some_and(|job| job.not_before <= cx.now)
                {
                    self.work(at, cx);
                }
            }
        }
    }

    /// Ends everything: nothing stays open because a runner forgot.
    fn finish(&mut self, cx: &mut Cx<'_>) {
        for job in std::mem::take(&mut self.jobs) {
            self.answered.push(job.id);
            answer(&job, true, cx);
        }
    }

    fn id(&mut self) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        id
    }

    fn work(&mut self, at: usize, cx: &mut Cx<'_>) {
        let job = &mut self.jobs[at];
        let last = job.steps == 0;
        job.steps = job.steps.saturating_sub(1);
        match job.plan {
            Plan::Never => return,
            Plan::Parts if !last => return answer(job, false, cx),
            Plan::Progress if !last => return progress(job, cx),
            Plan::Answer | Plan::Parts | Plan::Progress | Plan::Large => answer(job, true, cx),
            Plan::Fail => {
                let message = format!("cannot {} cancelled: ", job.marker);
                respond(job.id, true, ToolResponse::Failed { message }, cx);
            }
            Plan::Deny => {
                let reason = proto::DenyReason::NoGrant;
                respond(job.id, true, ToolResponse::Denied { reason }, cx);
            }
            Plan::Garbage => cx.out.push(
                format!(
                    r#"{{"v":1,"id":{},"final":true,"msg":{{"kind":"tool_response","body":{{"status":"result"}}}}}}"#,
                    job.id
                )
                .into_bytes(),
            ),
            Plan::Twice => {
                answer(job, true, cx);
                answer(job, true, cx);
            }
        }
        let job = self.jobs.swap_remove(at);
        self.answered.push(job.id);
    }

    /// A reply to what was answered before, or never asked.
    fn answer_nothing(&mut self, cx: &mut Cx<'_>) {
        let at = cx.rng.below(self.answered.len() + 1);
        let id = self.answered.get(at).copied().unwrap_or(1 << 30);
        let content = "out of turn".into();
        respond(
            id,
            true,
            ToolResponse::Result {
                content,
                class: DataClass::Public,
                untrusted: false,
                truncated: false,
            },
            cx,
        );
    }

    fn speak_out_of_turn(&mut self, cx: &mut Cx<'_>) {
        let id = self.id();
        let message = Message::Control(proto::Control::Status {});
        cx.send(&Envelope::last(id, message));
    }

    fn offer(&mut self, cx: &mut Cx<'_>) {
        let mut tools = Vec::new();
        for name in ["mail.send", "mail.search", "mail.draft", "other.tool"] {
            if cx.rng.chance(80) {
                tools.push(spec(name, cx));
            }
        }
        let id = self.id();
        cx.send(&Envelope::last(id, Message::Offer(Offer { tools })));
    }
}

fn spec(name: &str, cx: &mut Cx<'_>) -> ToolSpec {
    // Two texts take turns, so that a pinned definition comes back.
    let version = (cx.books.mail_version + u64::from(cx.rng.chance(5))) % 2;
    ToolSpec {
        name: ToolName::new(name).expect("a good name"),
        description: format!("{name}, text {version}"),
        input_schema: r#"{"type":"object"}"#.into(),
        class: *cx.rng.pick(&DataClass::ALL[..3]),
        untrusted: cx.rng.chance(50),
        effects: *cx
            .rng
            .pick(&[Effects::Read, Effects::Idempotent, Effects::Once]),
        egress: cx.rng.chance(50),
        content: if name == "mail.search" {
            Content::Mcp
        } else {
            Content::Text
        },
    }
}

fn answer(job: &Job, last: bool, cx: &mut Cx<'_>) {
    let limit = cx.plan.max_frame;
    let length = match job.plan {
        // Two parts of it are over the limit; quotes take two bytes each in JSON.
        Plan::Large | Plan::Parts if cx.rng.chance(30) => limit * 2 / 3,
        _ordinary if cx.plan.heavy && cx.rng.chance(70) => limit * 9 / 10,
        _ordinary if cx.rng.chance(5) => limit / 4,
        _ordinary => cx.rng.below(40),
    };
    let letter = if job.plan == Plan::Large { "é" } else { "x" };
    let filling = letter.repeat(length / letter.len());
    let content = if job.tool == "mail.search" {
        format!("{{\"m\":\"{}\",\"p\":\"{filling}\"}}\n", job.marker)
    } else {
        format!("{} {filling}", job.marker)
    };
    let response = ToolResponse::Result {
        content,
        class: cx.rng.weighted(&[
            (85, DataClass::Public),
            (7, DataClass::Internal),
            (4, DataClass::Confidential),
            (2, DataClass::Secret),
        ]),
        untrusted: cx.rng.chance(10),
        truncated: cx.rng.chance(2),
    };
    respond(job.id, last, response, cx);
}

fn progress(job: &Job, cx: &mut Cx<'_>) {
    cx.send(&Envelope::more(
        job.id,
        Message::Progress(Progress {
            done: 10 - job.steps,
            total: 10,
            note: job.marker.clone(),
        }),
    ));
}

fn respond(id: u64, last: bool, response: ToolResponse, cx: &mut Cx<'_>) {
    let message = Message::ToolResponse(response);
    let envelope = if last {
        Envelope::last(id, message)
    } else {
        Envelope::more(id, message)
    };
    cx.send(&envelope);
}
