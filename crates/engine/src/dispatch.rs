//! Claimed calls to runners: who serves a tool, whose turn it is, and what a dispatch spends.

use policy::{EffectiveTool, Permit, Verdict};
use proto::frame::LENGTH_BYTES;
use proto::{ApprovalId, Effects, FailureCode, RoleKind, RoleName, ToolName};

use crate::conn::{Conn, frame_len};
use crate::effect::Level;
use crate::engine::Engine;
use crate::event::ConnId;
use crate::judge::{Judged, Spend};
use crate::record::{CallKey, Record, RecordId};
use crate::state::{Cover, Flight, State};
use crate::timers::Timer;

impl Engine {
    /// Sends the claimed calls of a runner role for as long as its connections take them.
    pub(crate) fn dispatch_waiting(&mut self, runner: &RoleName) {
        loop {
            let Some(mut turns) = self.turns.remove(runner) else {
                return;
            };
            let free = self.free_runners(runner);
            let next = if free.is_empty() {
                None
            } else {
                // Asked here and not once it is taken out: one that no outbox takes now holds up no
                // other, and is not taken out again and again.
                turns.pop(|tool, frame| {
                    let takes = |conn: &Conn| conn.takes(frame);
                    free.iter()
                        .any(|id| self.conns.get(id).is_some_and(takes) && self.serves(*id, tool))
                })
            };
            if !turns.is_empty() {
                self.turns.insert(runner.clone(), turns);
            }
            let Some(key) = next else { return };
            self.dispatch_or_step_back(&key);
        }
    }

    /// Connections of a runner role that take one more call, the least loaded first.
    fn free_runners(&self, runner: &RoleName) -> Vec<ConnId> {
        let concurrency = self
            .config
            .roles
            .get(runner)
            .map_or(0, |role| role.concurrency);
        let mut free: Vec<(u64, ConnId)> = self
            .conns
            .iter()
            .filter(|(_, conn)| {
                conn.kind == RoleKind::Runner
                    && conn.peer.role == *runner
                    && conn.load() < concurrency
                    && conn.takes(0)
            })
            .map(|(id, conn)| (conn.load(), *id))
            .collect();
        free.sort_unstable();
        free.into_iter().map(|(_, id)| id).collect()
    }

    /// Whether a connection serves a tool: one with an offer just what of it was accepted, one
    /// without what is declared for its role.
    fn serves(&self, conn: ConnId, tool: &ToolName) -> bool {
        let Some(conn) = self.conns.get(&conn) else {
            return false;
        };
        match &conn.offer {
            Some((_, accepted)) => accepted.contains(tool),
            None => self
                .ruleset
                .tool(tool.as_str())
                .is_some_and(|floor| floor.declared && floor.runner == conn.peer.role),
        }
    }

    /// How many connections of a runner role serve a tool.
    pub(crate) fn servers(&self, runner: &RoleName, tool: &ToolName) -> u64 {
        let of_role = |conn: &Conn| conn.kind == RoleKind::Runner && conn.peer.role == *runner;
        let serving = self
            .conns
            .iter()
            .filter(|(id, conn)| of_role(conn) && self.serves(**id, tool));
        serving.count() as u64
    }

    pub(crate) fn is_served(&self, runner: &RoleName, tool: &ToolName) -> bool {
        self.servers(runner, tool) > 0
    }

    /// Decides on a claimed call once more, and sends it if it may still run. What is sent leaves at
    /// once, so that nothing changes its judgement on the way.
    fn dispatch_or_step_back(&mut self, key: &CallKey) {
        let Some(call) = self.call(key) else { return };
        let rerun = call.attempts > 0;
        match self.judge(key, &call.tool, &call.arguments, &call.fingerprint) {
            Judged::Permit { tool, .. } if rerun && tool.effects == Effects::Once => {
                self.give_up_lost(key);
            }
            Judged::Permit {
                tool,
                permit,
                spend,
            } => {
                let frame = frame_len(&call.request);
                if frame > self.config.settings.max_frame + LENGTH_BYTES as u64 {
                    return self.does_not_fit(key, rerun);
                }
                let takes = |conn: &ConnId| self.conns.get(conn).is_some_and(|c| c.takes(frame));
                let serving = |conn: &ConnId| self.serves(*conn, &tool.name);
                let free = self.free_runners(&tool.runner);
                match free.into_iter().filter(serving).find(takes) {
                    Some(conn) => self.dispatch(key, conn, tool, permit, spend),
                    // Its runner role is another one now: it waits there.
                    None => self.advance(key),
                }
            }
            Judged::Ask { .. } | Judged::Deny(_) if rerun => self.give_up_lost(key),
            Judged::Ask { .. } | Judged::Deny(_) => {
                self.take_back(key);
                self.advance(key);
            }
        }
    }

    fn does_not_fit(&mut self, key: &CallKey, rerun: bool) {
        if rerun {
            self.give_up_lost(key);
        } else {
            let text = "the request does not fit the runner's frame";
            self.fail(key, FailureCode::TooLarge, text, false);
        }
    }

    fn dispatch(
        &mut self,
        key: &CallKey,
        conn: ConnId,
        tool: EffectiveTool,
        permit: Permit,
        spend: Spend,
    ) {
        let grant = permit.grant.clone();
        let approval = self.approval_of(key, &spend);
        self.remember_call(key, Verdict::permit(&permit, approval));
        let spent = self.spend(key, &tool, &permit, spend);
        let after = spent.max(self.label_record(&key.session));
        let settings = &self.config.settings;
        let (silence, limit) = (settings.call_timeout, settings.call_limit);
        let (now, generation) = (self.now, self.generation);
        let Some(runner) = self.conns.get_mut(&conn) else {
            return;
        };
        let wire = runner.next_wire;
        runner.next_wire += 1;
        runner.flights.insert(wire, key.clone());
        let Some(call) = self.call_mut(key) else {
            return;
        };
        call.attempts += 1;
        call.effects = tool.effects;
        call.judged = generation;
        let (request, name) = (call.request.clone(), call.tool.clone());
        let since = call.since;
        let label = proto::Label {
            class: tool.class,
            untrusted: tool.untrusted,
        };
        call.state = State::Dispatched(Box::new(Flight {
            conn,
            wire,
            tool,
            after,
            limit: now.plus(limit),
            cancelled: false,
            released: false,
            content: String::new(),
            written: 0,
            label,
            overflowed: false,
            truncated: false,
            done: 0,
        }));
        self.timers
            .set(Timer::Call(key.clone()), now.plus(silence.min(limit)));
        self.log_call(Level::Info, "dispatched", key, &name, |log| {
            log.decision = Some("permit");
            log.grant = Some(grant);
            log.elapsed_us = Some(now.since(since) * 1000);
        });
        self.send(conn, after, wire, true, request);
    }

    /// The approval that lets a call through.
    fn approval_of(&self, key: &CallKey, spend: &Spend) -> Option<ApprovalId> {
        match spend {
            Spend::Nothing => None,
            Spend::Cover => self.cover_of(key).map(|cover| cover.approval.clone()),
            Spend::Standing(approval, _) => Some(approval.clone()),
        }
    }

    /// Spends what a dispatch spends, and records it with the dispatch. Nothing waits for the record
    /// of a `read` tool that spends nothing.
    fn spend(
        &mut self,
        key: &CallKey,
        tool: &EffectiveTool,
        permit: &Permit,
        spend: Spend,
    ) -> Option<RecordId> {
        let approval = match &spend {
            Spend::Nothing => None,
            Spend::Cover => self.spend_cover(key),
            Spend::Standing(approval, _) => Some(approval.clone()),
        };
        let gates = tool.effects != Effects::Read || approval.is_some() || !permit.spend.is_empty();
        let call = self.call(key)?;
        let asks = spend != Spend::Nothing;
        let basis = self.basis(&key.session, &tool.name, Some(&call.arguments), asks);
        let record = Record::Dispatched {
            at: self.now,
            call: key.clone(),
            fingerprint: call.fingerprint.clone(),
            tool: tool.name.clone(),
            effects: tool.effects,
            grant: permit.grant.clone(),
            spend: permit.spend.clone(),
            approval,
            basis: Some(basis),
        };
        for grant in &permit.spend {
            *self.uses.entry(grant.clone()).or_default() += 1;
        }
        let id = self.record(record).filter(|_| gates);
        if let Spend::Standing(approval, question) = spend {
            self.spend_standing(key, &approval, question);
        }
        id
    }

    /// Spends one use of a standing approval; it covers the call's own rerun.
    pub(crate) fn spend_standing(
        &mut self,
        key: &CallKey,
        approval: &proto::ApprovalId,
        question: crate::state::Question,
    ) {
        let Some(session) = self.sessions.get_mut(&key.session) else {
            return;
        };
        let Some(standing) = session.standing.get_mut(approval) else {
            return;
        };
        standing.uses_left = standing.uses_left.saturating_sub(1);
        let (used_up, expires) = (standing.uses_left == 0, standing.expires);
        let asked = standing.asked.clone();
        if used_up {
            self.drop_standing(&key.session, approval);
        }
        let approval = approval.clone();
        self.add_cover(
            key,
            Cover {
                approval,
                question,
                asked,
                expires,
                spent: true,
            },
        );
    }
}
