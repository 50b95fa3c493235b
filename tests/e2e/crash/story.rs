//! One place, and the daemon's lives in it.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;
use std::time::{Duration, Instant};

use engine::{CallKey, Record};
use proto::Effects;
use serde_json::json;
use store::Store;

use super::load::{Approval, Call};
use super::wire::{Frame, Wire, readable};
use crate::harness::{Chance, Daemon, PATIENCE, Place};

/// When the daemon is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    RunnerGotRequest,
    RunnerAnswered,
    AgentSawAnswer,
    /// Of a result that raised the label.
    AgentSawTaint,
    ApprovalAnnounced,
    AnswerAcknowledged,
    /// After so many frames of any kind.
    Frames,
    /// After so much time.
    Time,
}

impl Moment {
    pub(super) const ALL: [Self; 8] = [
        Self::RunnerGotRequest,
        Self::RunnerAnswered,
        Self::AgentSawAnswer,
        Self::AgentSawTaint,
        Self::ApprovalAnnounced,
        Self::AnswerAcknowledged,
        Self::Frames,
        Self::Time,
    ];
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nobody begins anything.
    Checks,
    /// Everybody works, until the moment comes.
    Works,
    /// What is left is brought to its end.
    Ends,
    /// The daemon was killed: only what it had sent before is read.
    Dead,
}

/// What belongs to one life of the daemon.
pub(super) struct Life {
    pub(super) phase: Phase,
    pub(super) agent: Wire,
    pub(super) runner: Wire,
    pub(super) boss: Wire,
    /// The runner of errands, where it is there.
    pub(super) errands: Option<Wire>,
    /// The agent's open requests, and which call each is about.
    pub(super) open: BTreeMap<u64, usize>,
    /// Requests that the runner answers later.
    pub(super) held: Vec<(u64, usize)>,
    /// Calls that nobody brings on in this life.
    pub(super) parked: BTreeSet<usize>,
    /// The approver's open answers.
    pub(super) votes: BTreeMap<u64, String>,
    pub(super) announced: BTreeSet<String>,
    listed: bool,
    moment: Option<Moment>,
    /// So often the moment passes by.
    passes: usize,
    due: bool,
}

pub(super) struct Story {
    pub(super) daemon: Daemon,
    pub(super) chance: Chance,
    pub(super) calls: Vec<Call>,
    pub(super) approvals: BTreeMap<String, Approval>,
    /// Sessions that were shown something secret or untrusted.
    pub(super) tainted: BTreeSet<String>,
    pub(super) life: Life,
    /// How often a promise of an earlier life was seen to hold.
    pub(super) held: BTreeMap<&'static str, u64>,
    records: u64,
}

impl Story {
    pub(super) fn begin(place: Place, seed: u64) -> Self {
        let daemon = place.start();
        Self {
            chance: Chance::new(seed),
            calls: Vec::new(),
            approvals: BTreeMap::new(),
            tainted: BTreeSet::new(),
            life: Life::begin(&daemon, true),
            daemon,
            held: BTreeMap::new(),
            records: 0,
        }
    }

    /// What the lives before have promised.
    pub(super) fn checks(&mut self) {
        self.pump_while(|life| !life.listed);
        self.approvals_are_as_announced();
        self.asks_again_what_is_settled();
        self.asks_for_what_is_denied();
        self.pump_while(|life| !life.open.is_empty());
    }

    /// Everybody works until the moment has come, or nobody has anything to do.
    pub(super) fn works_until(&mut self, moment: Moment, round: u64) {
        let (passes, micros) = match moment {
            Moment::Frames => (40, 0),
            Moment::Time => (0, 30_000),
            Moment::AgentSawTaint => (2, 0),
            _ => (4, 0),
        };
        let life = &mut self.life;
        life.phase = Phase::Works;
        life.moment = Some(moment);
        life.passes = self.chance.below(passes);
        let until = match moment {
            Moment::Time => Duration::from_micros(self.chance.below(micros) as u64),
            _ => PATIENCE,
        };
        let until = Instant::now() + until;
        self.begins_work(round);
        while !self.life.due && (moment != Moment::Time || Instant::now() < until) {
            self.answers_what_was_held();
            if self.life.due || self.life.is_idle() {
                break;
            }
            self.pump(until);
            assert!(
                moment == Moment::Time || Instant::now() < until,
                "nothing came"
            );
        }
    }

    /// Kills the daemon; its peers read what it has sent.
    pub(super) fn crashes(&mut self, moment: Moment) {
        if moment == Moment::RunnerAnswered {
            // The daemon may have read it, and recorded it, and told it, or not.
            let micros = self.chance.below(3000) as u64;
            std::thread::sleep(Duration::from_micros(micros));
        }
        self.daemon.crash();
        self.life.phase = Phase::Dead;
        for wire in self.life.wires() {
            while wire.read() {}
        }
        self.takes_frames();
        let errands = self.life.errands.is_some();
        for call in &mut self.calls {
            call.may_be_lost |= call.seen.is_none() && (errands || !call.is_errand());
        }
        // Not always: closing the store leaves less for the daemon to recover.
        if self.chance.below(2) == 0 {
            self.record_holds();
        }
    }

    pub(super) fn starts_again(&mut self) {
        if self.chance.below(4) == 0 {
            let mut command = self.daemon.place.daemon();
            let mut child = command.stderr(Stdio::null()).spawn().expect("starts");
            let micros = self.chance.below(40_000) as u64;
            std::thread::sleep(Duration::from_micros(micros));
            child.kill().expect("kill");
            child.wait().expect("wait");
        }
        self.daemon.restart();
        let errands = self.chance.below(3) == 0;
        self.life = Life::begin(&self.daemon, errands);
    }

    /// Everything that was begun comes to its end.
    pub(super) fn ends_well(&mut self) {
        self.life.phase = Phase::Ends;
        let errands = self.daemon.socket("echo");
        let connects = || Wire::connect(&errands);
        self.life.errands.get_or_insert_with(connects);
        for approval in self.life.announced.clone() {
            self.votes(&approval, "approve");
        }
        self.asks_again_what_is_open();
        self.pump_while(|life| !life.open.is_empty() || !life.votes.is_empty());
        for call in &self.calls {
            assert!(call.seen.is_some(), "{call:?} has no answer");
        }
        for (name, approval) in &self.approvals {
            assert!(approval.settled, "{name} is not settled: {approval:?}");
        }
        self.daemon.crash();
        self.record_holds();
    }

    /// The chain of records is whole, has lost nothing, and holds one dispatch of each call that runs once.
    fn record_holds(&mut self) {
        let mut store = Store::open(&self.daemon.place.path().join("state")).expect("a store");
        let mut dispatched: BTreeMap<CallKey, u64> = BTreeMap::new();
        let mut snapshots = 0;
        let read = store.read(|entries| {
            for entry in entries {
                match entry.record {
                    Record::Dispatched {
                        call,
                        effects: Effects::Once,
                        ..
                    } => *dispatched.entry(call).or_default() += 1,
                    Record::Snapshot { .. } => snapshots += 1,
                    _ => {}
                }
            }
        });
        read.expect("a whole chain");
        let replayed = store.replay(|parts, records| (parts.count(), records.count()));
        let (parts, _) = replayed.expect("a whole snapshot");
        if parts > 0 {
            self.holds("started from a snapshot");
        }
        if store.begins().count > 0 {
            self.holds("records given up");
        }
        assert!(
            parts > 0 || snapshots == 0,
            "no snapshot is left of {snapshots}"
        );
        let twice = dispatched.iter().find(|(_, times)| **times > 1);
        assert_eq!(twice, None, "dispatched again");
        let records = store.head().count;
        assert!(records >= self.records, "{records} of {}", self.records);
        self.records = records;
    }

    /// Something happened for which the daemon may be killed at once.
    pub(super) fn happened(&mut self, what: Moment) {
        let life = &mut self.life;
        if life.phase == Phase::Works && life.moment == Some(what) {
            match life.passes.checked_sub(1) {
                Some(passes) => life.passes = passes,
                None => life.due = true,
            }
        }
    }

    pub(super) fn holds(&mut self, what: &'static str) {
        *self.held.entry(what).or_default() += 1;
    }

    fn pump_while(&mut self, goes_on: impl Fn(&Life) -> bool) {
        let until = Instant::now() + PATIENCE;
        while goes_on(&self.life) {
            assert!(Instant::now() < until, "nothing came");
            self.pump(until);
        }
    }

    /// Reads what has come, and does what follows.
    fn pump(&mut self, until: Instant) {
        let mut wires: Vec<&mut Wire> = self.life.wires().collect();
        let ready = readable(&wires, until);
        for (wire, _) in wires.iter_mut().zip(ready).filter(|(_, ready)| *ready) {
            assert!(wire.read(), "the daemon hung up");
        }
        self.takes_frames();
    }

    fn takes_frames(&mut self) {
        let wires: [fn(&mut Life) -> Option<&mut Wire>; 4] = [
            |life| Some(&mut life.agent),
            |life| Some(&mut life.runner),
            |life| life.errands.as_mut(),
            |life| Some(&mut life.boss),
        ];
        let takes: [fn(&mut Self, &Frame); 4] = [
            Self::agent_reads,
            Self::runner_reads,
            Self::runner_reads,
            Self::boss_reads,
        ];
        for (wire, take) in wires.into_iter().zip(takes) {
            while !self.stops()
                && let Some(frame) = wire(&mut self.life).and_then(Wire::frame)
            {
                take(self, &frame);
                self.happened(Moment::Frames);
            }
        }
    }

    /// The moment has come: nobody says anything more.
    pub(super) fn stops(&self) -> bool {
        self.life.due && self.life.phase == Phase::Works
    }

    pub(super) fn is_dead(&self) -> bool {
        self.life.phase == Phase::Dead
    }

    pub(super) fn approvals_are_listed(&mut self) {
        self.life.listed = true;
    }
}

impl Life {
    fn begin(daemon: &Daemon, errands: bool) -> Self {
        let mut boss = Wire::connect(&daemon.socket("boss"));
        boss.ask("hello", &json!({"software": "e2e", "features": []}));
        // What is pending is pushed before this is answered.
        boss.ask("list_approvals", &json!({"settled": false}));
        Self {
            phase: Phase::Checks,
            agent: Wire::connect(&daemon.socket("bot")),
            runner: Wire::connect(&daemon.socket("files")),
            boss,
            errands: errands.then(|| Wire::connect(&daemon.socket("echo"))),
            open: BTreeMap::new(),
            held: Vec::new(),
            parked: BTreeSet::new(),
            votes: BTreeMap::new(),
            announced: BTreeSet::new(),
            listed: false,
            moment: None,
            passes: 0,
            due: false,
        }
    }

    fn wires(&mut self) -> impl Iterator<Item = &mut Wire> {
        let all = [&mut self.agent, &mut self.runner, &mut self.boss];
        all.into_iter().chain(&mut self.errands)
    }

    /// Nobody has anything to do.
    fn is_idle(&self) -> bool {
        self.votes.is_empty() && self.open.values().all(|call| self.parked.contains(call))
    }
}
