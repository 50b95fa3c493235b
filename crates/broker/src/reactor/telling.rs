//! What the service manager is told of the reactor: its numbers, how the last reload went, that it ends.

use std::time::Duration;

use engine::Usage;
use tokio::time::Instant;

use super::{DRAIN_GRACE, Phase, Reactor};
use crate::manager::Manager;

impl Reactor {
    /// Tells the service manager that sockets and ruleset are there, and what is to be said from now on.
    pub fn told(&mut self, manager: Manager) {
        self.manager = manager;
        self.manager.ready(&self.status());
    }

    /// Says what is due, at the end of every turn.
    pub(super) fn tell(&mut self) {
        let ends = self.engine.is_draining() || self.phase != Phase::Running;
        if ends && !self.manager.is_stopping() {
            let settings = &self.loaded.config.settings;
            let end = settings.drain_timeout + settings.write_timeout;
            let patience = Duration::from_millis(end) + DRAIN_GRACE;
            let status = self.status();
            self.manager.stopping(patience, &status);
        }
        let mut manager = std::mem::take(&mut self.manager);
        manager.turn(Instant::now(), || self.status());
        self.manager = manager;
    }

    /// A reload is over, whether its configuration was taken or not.
    pub(super) fn tell_reloaded(&mut self) {
        let status = self.status();
        self.manager.ready(&status);
    }

    /// One line of numbers, and how the last reload went.
    fn status(&self) -> String {
        let roles = self.loaded.config.roles.keys();
        let usage: Vec<Usage> = roles.map(|role| self.engine.usage(role)).collect();
        let sum = |of: fn(&Usage) -> u64| usage.iter().map(of).sum::<u64>();
        let numbers = format!(
            "{} roles, {} connections, {} sessions, {} calls in flight",
            usage.len(),
            self.conns.len(),
            sum(|usage| usage.sessions),
            sum(|usage| usage.in_flight)
        );
        match &self.last_reload {
            _ if self.engine.is_draining() => format!("draining: {numbers}"),
            None => numbers,
            Some(Ok(())) => format!("{numbers}; the last reload was taken"),
            Some(Err(why)) => format!(
                "{numbers}; the last reload was refused, the old configuration stays: {}",
                why.lines().next().unwrap_or_default()
            ),
        }
    }
}
