//! Reloads: one at a time, beside the reactor until there is something to take.

use std::collections::BTreeSet;
use std::rc::Rc;

use engine::{ConnId, Event, RequestId};

use super::Reactor;
use crate::connection::Conn;
use crate::inbox::Reason;
use crate::logs;
use crate::reading::Pace;
use crate::reload::{self, MAX_RELOADS, Reloaded};
use crate::users::Side;

impl Reactor {
    /// Asks for a reload, one at a time.
    pub(super) fn reload(&mut self, request: Option<RequestId>) {
        if self.reloads.len() >= MAX_RELOADS {
            let why = "busy: too many reloads wait".to_owned();
            return self.refuse_reload(request, why);
        }
        self.reloads.push_back(request);
        self.next_reload();
    }

    fn next_reload(&mut self) {
        if self.reloading {
            return;
        }
        if let Some(request) = self.reloads.pop_front() {
            self.reloading = true;
            self.manager.reloading();
            tokio::task::spawn_local(reload::reload(
                self.loaded.clone(),
                self.supply.clone(),
                request,
                Rc::clone(&self.inbox),
            ));
        }
    }

    pub(super) fn reloaded(
        &mut self,
        request: Option<RequestId>,
        outcome: Result<Reloaded, String>,
    ) {
        self.reloading = false;
        match outcome {
            Err(why) => self.refuse_reload(request, why),
            Ok(reloaded) => self.take(request, reloaded),
        }
        self.tell_reloaded();
        self.next_reload();
    }

    fn refuse_reload(&mut self, request: Option<RequestId>, why: String) {
        logs::faults("reload_fault", &why);
        self.last_reload = Some(Err(why.clone()));
        self.handle(Event::ConfigRefused { request, why });
    }

    /// Takes a new configuration, if the engine does: what operators granted must fit it too.
    fn take(&mut self, request: Option<RequestId>, reloaded: Reloaded) {
        let config = reloaded.loaded.config.clone();
        if let Err(why) = self.engine.would_take(&config) {
            // What was bound for it is unlinked again as `reloaded` goes.
            return self.refuse_reload(request, why);
        }
        let changes = config.changes_from(&self.loaded.config);
        self.loaded = reloaded.loaded;
        self.durable.configured(self.loaded.config.clone());
        self.last_reload = Some(Ok(()));
        self.pace.set(Pace::of(&config.settings));
        self.doors.keep_only(&config);
        // First, so that no call goes to a runner that is not admitted any more.
        let closed = self.close_misfits();
        self.handle(Event::Configured {
            config: config.clone(),
            request,
        });
        for (role, listener, file) in reloaded.sockets {
            self.doors.open(&self.lobby, role, listener, file);
        }
        logs::changes(&changes);
        logs::warnings(&self.loaded.warnings);
        tracing::info!(
            event = "configuration_taken",
            ruleset = config.digest.as_str(),
            closed
        );
    }

    /// Ends the connections whose users or groups are not admitted any more, before a byte more
    /// leaves for them; tells the lobby who stays. Gives their number.
    fn close_misfits(&mut self) -> u64 {
        let admission = &self.loaded.admission;
        let side = |conn: &Conn| admission.admit(conn.role(), conn.uid, conn.gid).ok();
        let both = self.on_both_sides(side);
        let fits = |conn: &Conn| side(conn).is_some() && !both.contains(&conn.uid);
        let (stay, go): (Vec<_>, Vec<_>) = self.conns.values().partition(|conn| fits(conn));
        let present = stay
            .iter()
            .map(|conn| (conn.role().clone(), conn.uid, conn.gid));
        self.lobby
            .configure(&self.loaded.config, admission.clone(), present);
        let mut gone: Vec<ConnId> = go.iter().map(|conn| conn.id).collect();
        gone.sort();
        for id in &gone {
            self.end(*id, Reason::FitsNoMore);
        }
        gone.len() as u64
    }

    /// The uids that are connected on both sides, where that is not allowed (any more).
    fn on_both_sides(&self, side: impl Fn(&Conn) -> Option<Side>) -> BTreeSet<u32> {
        if self.loaded.admission.shared_allowed() {
            return BTreeSet::new();
        }
        let present = |wanted: Side| -> BTreeSet<u32> {
            let conns = self.conns.values();
            let there = conns.filter(|conn| side(conn) == Some(wanted));
            there.map(|conn| conn.uid).collect()
        };
        let watching = present(Side::Watching);
        present(Side::Watched)
            .intersection(&watching)
            .copied()
            .collect()
    }
}
