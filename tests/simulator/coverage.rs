//! What was reached, counted over all seeds. A simulation that never crashes in a dispatch proves
//! nothing about crashes: every counter must have moved.

macro_rules! coverage {
    ($($name:ident),+ $(,)?) => {
        /// The counters of one run, or of many.
        #[derive(Debug, Clone, Copy, Default)]
        pub(crate) struct Coverage {
            $(pub(crate) $name: u64,)+
        }

        impl Coverage {
            /// Adds another run's.
            pub(crate) fn add(&mut self, other: &Coverage) {
                $(self.$name += other.$name;)+
            }

            /// Every counter with its name.
            pub(crate) fn all(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name),)+]
            }
        }
    };
}

coverage! {
    // The wire.
    frames_received, garbage_frames, bad_messages, hang_ups, closes_by_engine, reads_paused,
    outboxes_full,
    // Calls.
    dispatches, reruns, results, parts_forwarded, progress_forwarded, repeats_served,
    other_fingerprints_refused, results_cut, too_large, busy, over_rate, no_runner, timed_out, cancelled,
    unknown_outcomes, runner_failures, shutting_down, late_answers, evictions, runners_lost_midcall,
    // Decisions.
    denied_no_grant, denied_by_grant, denied_taint, denied_expired_grant, uses_spent, decisions_judged_again,
    // Labels.
    labels_raised, labels_lowered, joins, joins_with_close, sessions_closed,
    // Approvals.
    approvals_asked, approvals_shown, calls_settled, approvals_granted, quorums_of_two, approvals_refused,
    approvals_expired, approvals_superseded, approvals_cancelled, approvals_spent,
    approvals_survived_crash, standings_given, standings_used, preapprovals,
    // Tools.
    offers_held, offers_refused, tools_pinned, tools_accepted, tools_listed, tools_changed,
    // The operator, and the broker's life.
    reloads, reloads_refused, grants_added, grants_revoked, drains, crashes, copies_put_back,
    crashes_losing_records, crashes_in_a_dispatch, answers_repeated_after_a_crash,
}
