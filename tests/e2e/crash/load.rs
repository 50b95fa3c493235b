//! What agent, runner and approver do, and what each of them may be told.

use serde_json::json;

use super::story::{Moment, Phase, Story};
use super::wire::Frame;
use crate::harness::result;

#[derive(Debug)]
pub(super) struct Call {
    session: String,
    number: u64,
    tool: &'static str,
    /// So often a runner got it, over all lives.
    runs: u64,
    /// What runners have answered.
    answers: Vec<String>,
    /// The `msg` of the answer that the agent has read.
    pub(super) seen: Option<String>,
    /// A daemon ended while it may have been at a runner.
    pub(super) may_be_lost: bool,
    /// Its session had been shown too much before.
    is_denied: bool,
    approval: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct Approval {
    /// The `msg` of its announcement; empty until an approver has read it.
    msg: String,
    /// What the approver has sent.
    vote: Option<&'static str>,
    /// And was told to count.
    pub(super) settled: bool,
}

impl Call {
    fn is_once(&self) -> bool {
        matches!(self.tool, "order" | "send" | "errand")
    }

    pub(super) fn is_errand(&self) -> bool {
        self.tool == "errand"
    }

    /// What only reads is kept in memory, and may run again.
    fn is_kept(&self) -> bool {
        self.is_once() || self.tool == "put"
    }

    fn taints(&self) -> bool {
        matches!(self.tool, "diary" | "page")
    }
}

impl Story {
    /// Whatever was announced, and has no answer that counts, is announced again.
    pub(super) fn approvals_are_as_announced(&mut self) {
        for (name, approval) in &mut self.approvals {
            if approval.settled || self.life.announced.contains(name) {
                continue;
            }
            // Its answer may have counted before the approver could read that.
            assert!(approval.vote.is_some(), "{name} is forgotten: {approval:?}");
            approval.settled = true;
        }
    }

    /// What the agent knows the answer of, or a runner had: it is told without another run.
    pub(super) fn asks_again_what_is_settled(&mut self) {
        for at in 0..self.calls.len() {
            let call = &self.calls[at];
            let settled = call.seen.is_some() || call.runs > 0;
            if settled && (call.is_once() || call.seen.is_some() && call.is_kept()) {
                self.asks(at);
            }
        }
    }

    /// A session that was shown too much still may not send.
    pub(super) fn asks_for_what_is_denied(&mut self) {
        for session in self.tainted.clone() {
            if session.starts_with("seen-") {
                self.begins_denied(&session);
            }
        }
    }

    fn begins_denied(&mut self, session: &str) {
        let call = self.new_call(session, "send");
        self.calls[call].is_denied = true;
        self.asks(call);
    }

    pub(super) fn asks_again_what_is_open(&mut self) {
        for at in 0..self.calls.len() {
            if self.calls[at].seen.is_none() {
                self.asks(at);
            }
        }
    }

    /// The agent begins new calls among those that have no answer; the approver answers what waited.
    pub(super) fn begins_work(&mut self, round: u64) {
        let open = (0..self.calls.len()).filter(|at| self.calls[*at].seen.is_none());
        let mut calls: Vec<usize> = open.collect();
        let plain = format!("plain-{round}");
        for tool in ["order", "order", "order", "put", "put", "read", "send"] {
            calls.push(self.new_call(&plain, tool));
        }
        let seen = format!("seen-{round}");
        let tells = ["diary", "page"][self.chance.below(2)];
        for tool in ["send", "order", tells] {
            calls.push(self.new_call(&seen, tool));
        }
        let asks = format!("ask-{round}");
        if self.chance.below(2) == 0 {
            // The questions follow once it is answered.
            calls.push(self.new_call(&asks, "page"));
        } else {
            for tool in ["order", "order", "errand"] {
                calls.push(self.new_call(&asks, tool));
            }
        }
        for at in (1..calls.len()).rev() {
            calls.swap(at, self.chance.below(at + 1));
        }
        for call in calls {
            self.asks(call);
        }
        for approval in self.life.announced.clone() {
            self.considers(&approval);
        }
    }

    fn new_call(&mut self, session: &str, tool: &'static str) -> usize {
        let before = self.calls.iter().filter(|call| call.session == session);
        self.calls.push(Call {
            session: session.to_owned(),
            number: before.count() as u64 + 1,
            tool,
            runs: 0,
            answers: Vec::new(),
            seen: None,
            may_be_lost: false,
            is_denied: false,
            approval: None,
        });
        self.calls.len() - 1
    }

    fn asks(&mut self, at: usize) {
        let call = &self.calls[at];
        let body = json!({
            "session": call.session, "call": call.number, "tool": call.tool,
            "arguments": format!("{{\"n\":{}}}", call.number)
        });
        let id = self.life.agent.ask("tool_request", &body);
        self.life.open.insert(id, at);
        self.waits_for_errands(at);
    }

    /// An errand that was approved goes on in the life in which its runner is there.
    fn waits_for_errands(&mut self, at: usize) {
        let call = &self.calls[at];
        let approval = call.approval.as_ref().map(|name| &self.approvals[name]);
        let settled = approval.is_some_and(|approval| approval.settled);
        if call.is_errand() && settled && self.life.errands.is_none() {
            self.life.parked.insert(at);
        }
    }

    /// The call that a runner or an approver is told of.
    fn named(&self, frame: &Frame) -> usize {
        let fits = |call: &Call| {
            frame.body["session"] == call.session && frame.body["call"] == call.number
        };
        let at = self.calls.iter().rposition(fits);
        at.unwrap_or_else(|| panic!("unknown: {}", frame.body))
    }

    pub(super) fn runner_reads(&mut self, frame: &Frame) {
        assert_eq!(frame.kind, "tool_request", "{}", frame.body);
        let at = self.named(frame);
        let call = &mut self.calls[at];
        call.runs += 1;
        assert!(!call.is_denied, "ran: {call:?}");
        assert!(!call.is_once() || call.runs == 1, "ran again: {call:?}");
        assert!(
            !call.is_kept() || call.seen.is_none(),
            "ran after its answer: {call:?}"
        );
        if let Some(name) = self.calls[at].approval.clone() {
            self.holds(if self.life.announced.contains(&name) {
                "an approval runs once"
            } else {
                "an approval of an earlier life runs once"
            });
        }
        self.happened(Moment::RunnerGotRequest);
        if self.is_dead() || self.stops() {
            return;
        }
        let chance = match self.life.phase {
            Phase::Works => self.chance.below(10),
            _ => 9,
        };
        match chance {
            0 => drop(self.life.parked.insert(at)),
            1..=3 => self.life.held.push((frame.id, at)),
            _ => self.runner_answers(frame.id, at),
        }
    }

    fn runner_answers(&mut self, id: u64, at: usize) {
        let call = &mut self.calls[at];
        let content = format!("{}/{} run {}", call.session, call.number, call.runs);
        let mut body = result(&content);
        if call.tool == "page" {
            let ask = call.session.starts_with("ask-");
            body["class"] = json!(if ask { "internal" } else { "secret" });
            body["untrusted"] = json!(true);
        }
        call.answers.push(content);
        let life = &mut self.life;
        let wire = match call.tool {
            "errand" => life.errands.as_mut().expect("its runner"),
            _ => &mut life.runner,
        };
        wire.say(id, "tool_response", &body);
        self.happened(Moment::RunnerAnswered);
    }

    pub(super) fn answers_what_was_held(&mut self) {
        let life = &self.life;
        let held = life.held.len();
        let idle = |call: &usize| {
            life.parked.contains(call) || life.held.iter().any(|(_, held)| held == call)
        };
        let must = life.open.values().all(idle) && life.votes.is_empty();
        if held > 0 && (must || self.chance.below(2) == 0) {
            let (id, at) = self.life.held.swap_remove(self.chance.below(held));
            self.runner_answers(id, at);
        }
    }

    pub(super) fn agent_reads(&mut self, frame: &Frame) {
        assert_eq!(frame.kind, "tool_response", "{}", frame.body);
        if !frame.is_final {
            let at = self.life.open[&frame.id];
            assert_eq!(frame.body["status"], "pending_approval");
            let settled = self.life.phase == Phase::Checks;
            assert!(!settled, "asked after its run: {:?}", self.calls[at]);
            return self.is_asked(&frame.text("approval"), at);
        }
        let at = self.life.open.remove(&frame.id).expect("an open request");
        self.may_be_told(at, frame);
        let call = &self.calls[at];
        let held = match &call.seen {
            Some(_) => Some("an answer is told again"),
            None if call.is_denied => Some("a session is still denied"),
            None if frame.body["status"] == "failed" => Some("an outcome is unknown"),
            None => None,
        };
        if let Some(held) = held.filter(|_| self.life.phase == Phase::Checks) {
            self.holds(held);
        }
        let call = &mut self.calls[at];
        call.seen.get_or_insert_with(|| frame.msg.clone());
        let (taints, session) = (call.taints(), call.session.clone());
        self.happened(Moment::AgentSawAnswer);
        if taints {
            self.happened(Moment::AgentSawTaint);
        }
        if taints && self.tainted.insert(session.clone()) {
            let goes_on = !self.is_dead() && !self.stops();
            if goes_on && session.starts_with("seen-") {
                self.begins_denied(&session);
            } else if goes_on {
                for tool in ["order", "order", "errand"] {
                    let call = self.new_call(&session, tool);
                    self.asks(call);
                }
            }
        }
    }

    /// Whether a call may have this answer.
    fn may_be_told(&self, at: usize, frame: &Frame) {
        let call = &self.calls[at];
        let told = &frame.msg;
        if let Some(seen) = &call.seen {
            assert_eq!(told, seen, "told before: {call:?}");
        }
        let body = &frame.body;
        let text = |field: &str| body[field].as_str().unwrap_or_default();
        let answer = call.approval.as_ref().map(|name| &self.approvals[name]);
        let vote = answer.and_then(|approval| approval.vote);
        let fits = match (text("status"), text("reason")) {
            ("result", _) => {
                let given = call.answers.iter().any(|it| *it == text("content"));
                let approved = !call.session.starts_with("ask-")
                    || !matches!(call.tool, "order" | "errand")
                    || vote == Some("approve");
                given && approved && !call.is_denied
            }
            ("failed", _) => {
                let unknown = text("message").starts_with("unknown_outcome: ");
                unknown && call.is_once() && (call.may_be_lost || call.seen.is_some())
            }
            ("denied", "approval_refused") => vote == Some("refuse"),
            // Its session may have been shown too much meanwhile.
            ("denied", "taint_too_high") => {
                call.tool == "send" && call.session.starts_with("seen-")
            }
            _ => false,
        };
        assert!(fits, "told {told}, but {call:?}, {answer:?}");
    }

    /// A person is asked about a call: once only.
    fn is_asked(&mut self, name: &str, at: usize) {
        let call = &mut self.calls[at];
        let known = call.approval.as_deref().is_none_or(|known| known == name);
        assert!(known, "asked anew as {name}: {call:?}");
        call.approval = Some(name.to_owned());
        let approval = self.approvals.entry(name.to_owned()).or_default();
        // What was said before it was settled in this life may be read after.
        let settled = approval.settled && !self.life.announced.contains(name);
        assert!(!settled, "asked again: {call:?}");
        // It has not been at a runner.
        call.may_be_lost = false;
    }

    pub(super) fn boss_reads(&mut self, frame: &Frame) {
        match (frame.id, frame.kind.as_str()) {
            (0, "approval_request") => self.is_announced(frame),
            (0, "call_settled") | (_, "welcome") => {}
            (_, "approvals") => {
                if frame.is_final {
                    self.approvals_are_listed();
                }
            }
            (1.., "approval_settled") => {
                let name = self.life.votes.remove(&frame.id).expect("an answer");
                let approval = self.approvals.get_mut(&name).expect("an approval");
                let outcome = match approval.vote {
                    Some("approve") => "approved",
                    _ => "refused",
                };
                assert_eq!(frame.text("outcome"), outcome, "{approval:?}");
                approval.settled = true;
                let at = self.asked_by(&name);
                self.waits_for_errands(at);
                self.happened(Moment::AnswerAcknowledged);
            }
            _ => panic!("the approver is told {}: {}", frame.kind, frame.body),
        }
    }

    fn is_announced(&mut self, frame: &Frame) {
        let name = frame.text("approval");
        let at = self.named(frame);
        self.is_asked(&name, at);
        let approval = self.approvals.get_mut(&name).expect("an approval");
        // An answer of an earlier life did not count.
        approval.vote = None;
        if approval.msg.is_empty() {
            approval.msg = frame.msg.clone();
        } else {
            assert_eq!(frame.msg, approval.msg, "announced otherwise before");
            self.holds("an approval is announced again");
        }
        assert!(
            self.life.announced.insert(name.clone()),
            "{name} announced twice"
        );
        self.happened(Moment::ApprovalAnnounced);
        if self.stops() {
            return;
        }
        match self.life.phase {
            Phase::Works => self.considers(&name),
            Phase::Ends => self.votes(&name, "approve"),
            Phase::Checks | Phase::Dead => {}
        }
    }

    /// The approver answers, or leaves it for a later life.
    fn considers(&mut self, name: &str) {
        let errand = self.calls[self.asked_by(name)].is_errand();
        match self.chance.below(10) {
            0..=4 => self.votes(name, "approve"),
            6..=8 if errand => self.votes(name, "approve"),
            5 => self.votes(name, "refuse"),
            _ => {
                let at = self.asked_by(name);
                self.life.parked.insert(at);
            }
        }
    }

    /// The call that an approval is about.
    fn asked_by(&self, name: &str) -> usize {
        let of = |call: &Call| call.approval.as_deref() == Some(name);
        self.calls.iter().position(of).expect("its call")
    }

    pub(super) fn votes(&mut self, name: &str, answer: &'static str) {
        let approval = self.approvals.get_mut(name).expect("an approval");
        approval.vote = Some(answer);
        let body: serde_json::Value = serde_json::from_str(&approval.msg).expect("JSON");
        let body = json!({
            "approval": name, "digest": body["body"]["digest"], "answer": answer,
            "scope": "once", "comment": ""
        });
        let id = self.life.boss.ask("approval_reply", &body);
        self.life.votes.insert(id, name.to_owned());
    }
}
