//! What a role holds never exceeds its quota (invariant 7), and nothing is left at the end.

use engine::Engine;
use proto::{Control, RoleKind};

use crate::model::{Model, What};

impl Model {
    /// After every step.
    pub(crate) fn check_quotas(&self, engine: &Engine) {
        for (name, role) in &self.config.roles {
            let usage = engine.usage(name);
            let quota = &role.quota;
            // One frame may overshoot what is counted in bytes; its head and length come on top.
            let frame = self.config.settings.max_frame + 256;
            let bounds = [
                ("connections", usage.connections, quota.connections),
                ("in_flight", usage.in_flight, quota.in_flight),
                ("sessions", usage.sessions, quota.sessions),
                (
                    "closed_sessions",
                    usage.closed_sessions,
                    // A copy that is put back closes those that were open, too.
                    quota.closed_sessions + if self.put_back { quota.sessions } else { 0 },
                ),
                ("approvals", usage.approvals, quota.approvals),
                (
                    "waiting_bytes",
                    usage.waiting_bytes,
                    quota.waiting_bytes + frame,
                ),
                (
                    "stored_bytes",
                    usage.stored_bytes,
                    quota.stored_bytes + frame,
                ),
            ];
            for (what, used, most) in bounds {
                assert!(
                    used <= most,
                    "invariant 7: {name} uses {used} {what}, of {most}"
                );
            }
            let open = self
                .conns
                .values()
                .filter(|conn| conn.role == *name)
                .count() as u64;
            assert_eq!(
                usage.connections, open,
                "invariant 7: connections of {name}"
            );
        }
    }

    /// At quiescence, nothing that was asked is without its answer. After a drain, questions wait
    /// for the next start.
    pub(crate) fn check_all_answered(&self, drained: bool) {
        for (id, conn) in &self.conns {
            // The shell that would have loaded the configuration has ended.
            let excused =
                |what: &What| drained && matches!(what, What::Control(Control::Reload {}));
            let waits = conn.open.values().any(|open| !excused(&open.what));
            assert!(
                !waits,
                "invariant 1: {id:?} waits for ever: {:?}",
                conn.open
            );
            for (approval, shown) in &conn.shown {
                let told = drained || shown.settled || shown.pushed == 0;
                assert!(told, "invariant 8: {id:?} never hears how {approval} ended");
            }
            assert!(
                drained || conn.kind != RoleKind::Runner || conn.runs.is_empty(),
                "{id:?} still runs {:?}",
                conn.runs
            );
        }
    }

    /// When everything is answered and everybody is gone, nothing is held.
    pub(crate) fn check_all_returned(&self, engine: &Engine) {
        for name in self.config.roles.keys() {
            let usage = engine.usage(name);
            assert_eq!(usage.connections, 0, "invariant 7: connections of {name}");
            assert_eq!(usage.in_flight, 0, "invariant 7: calls in flight of {name}");
            assert_eq!(
                usage.waiting_bytes, 0,
                "invariant 7: waiting bytes of {name}"
            );
            assert_eq!(usage.approvals, 0, "invariant 7: approvals of {name}");
        }
    }
}
