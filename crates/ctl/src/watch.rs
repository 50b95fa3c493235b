//! `rolebroker approvals --watch`: each request as it comes, and what becomes of it, until it is interrupted.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::time::Duration;

use client::proto::{
    ApprovalId, ApprovalRequest, ApprovalSettled, CallSettled, Digest, ListApprovals, Outcome,
};
use client::{Approver, Asked, Error};
use serde::Serialize;

use crate::approvals::{self, SOFTWARE};
use crate::cli::{ApprovalsArgs, Place};
use crate::exit::{self, Exit};
use crate::hook::Hooks;
use crate::{out, printable, render};

/// How long to wait before the first new try when the connection is lost; twice as long before each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest such wait.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// So many approved calls and ended ones are remembered over a lost connection, so that each end is told once.
const REMEMBERED: usize = 1024;

/// A line of `--watch --json`, and what a hook gets. A stable shape.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Told<'a> {
    Request(&'a ApprovalRequest),
    Settled(&'a ApprovalSettled),
    CallSettled(&'a CallSettled),
}

/// Follows an approver role. Only the first connection must succeed; a later one is tried again.
///
/// # Errors
/// When the broker cannot be reached at first.
pub(crate) async fn run(place: &Place, args: ApprovalsArgs) -> anyhow::Result<Exit> {
    let approver = connect(place).await?;
    let mut watch = Watch {
        json: place.json,
        hooks: args.exec.map(|program| Hooks::new(program, args.exec_args)),
        seen: Seen::default(),
    };
    // Whoever reads the output went away: nothing is left to do.
    let followed = async { watch.follow(place, approver).await };
    tokio::select! {
        _ended = followed => Ok(exit::DONE),
        interrupted = tokio::signal::ctrl_c() => Ok(interrupted.map(|()| exit::DONE)?),
    }
}

async fn connect(place: &Place) -> Result<Approver, Error> {
    Approver::connect_as(place.socket("approver"), SOFTWARE).await
}

struct Watch {
    json: bool,
    hooks: Option<Hooks>,
    seen: Seen,
}

/// Why one connection is followed no further.
enum End {
    Lost(Error),
    /// Standard output takes nothing more.
    Unread(io::Error),
}

impl From<Error> for End {
    fn from(error: Error) -> Self {
        End::Lost(error)
    }
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        End::Unread(error)
    }
}

impl Watch {
    /// Ends when standard output does.
    async fn follow(&mut self, place: &Place, mut approver: Approver) -> io::Error {
        loop {
            match self.one_connection(approver).await {
                End::Unread(error) => return error,
                End::Lost(error) => approver = again(place, error).await,
            }
        }
    }

    async fn one_connection(&mut self, mut approver: Approver) -> End {
        let Err(end) = self.events(&mut approver).await;
        end
    }

    async fn events(&mut self, approver: &mut Approver) -> Result<std::convert::Infallible, End> {
        self.catch_up(approver).await?;
        loop {
            match approver.next().await? {
                Asked::Request(request) => self.request(&request)?,
                Asked::Settled(settled) => self.settled(&settled)?,
                Asked::Ended(call) => self.ended(&call)?,
                Asked::Missed(_) => self.catch_up(approver).await?,
            }
        }
    }

    /// Tells what happened while nobody listened.
    async fn catch_up(&mut self, approver: &Approver) -> Result<(), End> {
        let all = approver.list(ListApprovals { settled: true }).await?;
        let before: Vec<ApprovalId> = self.seen.open.keys().cloned().collect();
        for request in &all.pending {
            self.request(request)?;
        }
        for settled in &all.settled {
            self.settled(settled)?;
        }
        for call in &all.calls {
            if self.seen.approved.contains(&call.approval) {
                self.ended(call)?;
            }
        }
        for approval in before {
            let waits = all.pending.iter().any(|it| it.approval == approval);
            if !waits && self.seen.open.remove(&approval).is_some() {
                eprintln!("rolebroker: {approval} is gone, and the broker knows nothing of it");
            }
        }
        Ok(())
    }

    fn request(&mut self, request: &ApprovalRequest) -> io::Result<()> {
        if !self.seen.is_new(request) {
            return Ok(());
        }
        let told = json(&Told::Request(request));
        if self.json {
            out::try_text(&told)?;
        } else {
            out::try_text(&approvals::waiting(request))?;
        }
        if let Some(hooks) = &self.hooks {
            hooks.notify(request.approval.clone(), told);
        }
        Ok(())
    }

    fn settled(&mut self, settled: &ApprovalSettled) -> io::Result<()> {
        if !self.seen.is_answered(settled) {
            return Ok(());
        }
        self.tell(&Told::Settled(settled), &render::settled(settled))
    }

    fn ended(&mut self, call: &CallSettled) -> io::Result<()> {
        if !self.seen.is_ended(call) {
            return Ok(());
        }
        self.tell(&Told::CallSettled(call), &render::call_settled(call))
    }

    fn tell(&self, told: &Told<'_>, line: &str) -> io::Result<()> {
        if self.json {
            out::try_text(&json(told))
        } else {
            out::try_text(&format!("{line}\n"))
        }
    }
}

/// A line of ASCII.
fn json(told: &Told<'_>) -> String {
    // Strings and numbers can always be written.
    out::ascii(&serde_json::to_string(told).unwrap_or_default()) + "\n"
}

/// Connects again, however long that takes, and says so.
async fn again(place: &Place, error: Error) -> Approver {
    let mut why = error;
    let mut pause = FIRST_PAUSE;
    loop {
        eprintln!(
            "rolebroker: {}; trying again in {} s",
            printable::message(&why.to_string()),
            pause.as_secs()
        );
        tokio::time::sleep(pause).await;
        match connect(place).await {
            Ok(approver) => {
                eprintln!("rolebroker: connected again");
                return approver;
            }
            Err(error) => why = error,
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// What was told already. Each connection brings all that waits, again.
#[derive(Default)]
struct Seen {
    open: BTreeMap<ApprovalId, Digest>,
    approved: VecDeque<ApprovalId>,
    ended: VecDeque<CallSettled>,
}

impl Seen {
    fn is_new(&mut self, request: &ApprovalRequest) -> bool {
        let digest = request.digest.clone();
        let before = self.open.insert(request.approval.clone(), digest);
        before.as_ref() != Some(&request.digest)
    }

    fn is_answered(&mut self, settled: &ApprovalSettled) -> bool {
        if settled.outcome == Outcome::Counted {
            return self.open.contains_key(&settled.approval);
        }
        let was_open = self.open.remove(&settled.approval).is_some();
        if was_open && settled.outcome == Outcome::Approved {
            remember(&mut self.approved, settled.approval.clone());
        }
        was_open
    }

    fn is_ended(&mut self, call: &CallSettled) -> bool {
        let is_new = !self.ended.contains(call);
        if is_new {
            remember(&mut self.ended, call.clone());
        }
        is_new
    }
}

fn remember<T>(all: &mut VecDeque<T>, one: T) {
    if all.len() == REMEMBERED {
        all.pop_front();
    }
    all.push_back(one);
}
