//! A run from its seed to its end: a busy time in which anything may happen, and a calm one in
//! which everything must come to its end.

use crate::coverage::Coverage;
use crate::history;
use crate::world::World;

/// What a run gives.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outcome {
    pub(crate) coverage: Coverage,
    /// Over every effect, where it was asked for.
    pub(crate) digest: Option<u64>,
}

/// What may happen next.
#[derive(Debug, Clone, Copy)]
enum Step {
    Deliver,
    Drain,
    Commit,
    Act,
    Pass,
    Tick,
    Connect,
    HangUp,
    Reload,
    Crash,
}

/// How long things are waited for in the calm time, in rounds.
const CALM_ROUNDS: usize = 5000;

/// Runs a seed to its end. Panics where an invariant does not hold.
pub(crate) fn run(seed: u64, digest: bool) -> Outcome {
    let mut world = World::new(seed, digest);
    let steps = world.rng.between(300, 1500);
    let crashes = world.rng.chance(50);
    let churn = world.rng.between(2, 12);
    world.connect_all();
    for number in 0..steps {
        history::note(|| format!("step {number}"));
        step(&mut world, crashes, churn);
        world.check();
        if world.has_drained() {
            leave(&mut world);
            world.crash();
            world.connect_all();
            world.check();
        }
    }
    calm_down(&mut world);
    world.judged_again();
    Outcome {
        coverage: world.model.coverage,
        digest: world.digest,
    }
}

fn step(world: &mut World, crashes: bool, churn: u64) {
    let step = world.rng.weighted(&[
        (300, Step::Deliver),
        (220, Step::Drain),
        (120, Step::Commit),
        (280, Step::Act),
        (40, Step::Pass),
        (20, Step::Tick),
        (churn * 2, Step::Connect),
        (churn, Step::HangUp),
        (2, Step::Reload),
        (if crashes { 3 } else { 0 }, Step::Crash),
    ]);
    match step {
        Step::Deliver => {
            let ready = world
                .shell
                .of(|link| !link.incoming.is_empty() || link.gone || link.closing);
            if !ready.is_empty() {
                let conn = *world.rng.pick(&ready);
                world.deliver(conn);
            }
        }
        Step::Drain => {
            let ready = world.shell.of(|link| link.can_drain() || link.closing);
            if !ready.is_empty() {
                let conn = *world.rng.pick(&ready);
                let slow = world.rng.chance(20);
                let asleep = world.plan.heavy && conn.0.is_multiple_of(2) && world.rng.chance(98);
                let most = world.rng.below(if slow { 200 } else { 1 << 20 });
                world.drain(conn, if asleep { 1 + most % 50 } else { most });
            }
        }
        Step::Commit => {
            let count = 1 + world.rng.below(8);
            world.commit(count);
        }
        Step::Act => {
            let there = world.shell.of(|link| !link.gone && !link.closing);
            if !there.is_empty() {
                let conn = *world.rng.pick(&there);
                world.act(conn);
            }
        }
        Step::Pass => pass(world),
        Step::Tick => world.tick(),
        Step::Connect => world.connect(),
        Step::HangUp => {
            let there = world.shell.of(|link| !link.gone);
            if !there.is_empty() {
                let conn = *world.rng.pick(&there);
                world.hang_up(conn);
            }
        }
        Step::Reload if world.reload_asked() || world.rng.chance(40) => world.reload(),
        Step::Reload => {}
        Step::Crash => {
            world.crash();
            if world.rng.chance(70) {
                world.connect_all();
            }
        }
    }
}

fn pass(world: &mut World) {
    let until_due = world.due().map_or(10, |due| due.saturating_sub(world.now));
    let millis = match world.rng.below(1000) {
        0..850 => world.rng.between(1, 150),
        850..900 if until_due < 120_000 => until_due,
        900..970 => world.rng.between(500, 5_000),
        970..995 => world.rng.between(5_000, 70_000),
        995..999 => world.rng.between(70_000, 700_000),
        999 => 90_000_000,
        _ => 1,
    };
    let punctual = world.rng.chance(80);
    world.pass(millis, punctual);
}

/// From now on everybody behaves: all that was asked is answered, all that was held returns.
fn calm_down(world: &mut World) {
    world.calm = true;
    if world.rng.chance(30) {
        world.begin_drain();
    }
    settle(world);
    world.check();
    world.model.check_all_answered(world.has_drained());
    for conn in world.shell.of(|_| true) {
        world.hang_up(conn);
    }
    settle(world);
    world.check_all_returned();
}

/// Everything on its way arrives, everybody finishes, and time runs until nothing is due soon.
fn settle(world: &mut World) {
    let horizon = world.now + 2 * 3_600_000;
    for _ in 0..CALM_ROUNDS {
        let busy = exchange(world);
        if busy {
            continue;
        }
        match world
            .due()
            .filter(|due| *due <= horizon && !world.has_drained())
        {
            Some(due) => {
                let millis = due.saturating_sub(world.now);
                world.pass(millis, true);
            }
            None => return,
        }
    }
    panic!("liveness: still busy after {CALM_ROUNDS} calm rounds");
}

/// One round of delivering all that can be; whether anything moved.
fn exchange(world: &mut World) -> bool {
    world.commit(usize::MAX / 2);
    while world.reload_asked() && !world.has_drained() {
        world.reload();
    }
    let mut busy = false;
    for conn in world.shell.of(|link| link.can_drain() || link.closing) {
        busy = true;
        world.drain(conn, usize::MAX / 2);
    }
    if world.has_drained() {
        // It flushes what it sent, and hears nothing more.
        return busy;
    }
    for conn in world
        .shell
        .of(|link| !link.incoming.is_empty() || link.gone || link.closing)
    {
        busy = true;
        world.deliver(conn);
        world.check();
    }
    for conn in world.shell.of(|link| !link.gone && !link.closing) {
        world.act(conn);
    }
    busy || !world.shell.of(|link| !link.incoming.is_empty()).is_empty()
}

/// A drained broker flushes what it sent before it exits.
fn leave(world: &mut World) {
    world.commit(usize::MAX / 2);
    for conn in world.shell.of(|link| link.can_drain()) {
        world.drain(conn, usize::MAX / 2);
    }
}
