//! The record judged again: each decision is what the rules of its time say.

use ctl::cli::PastArgs;
use ctl::past::Decisions;
use ctl::replay::Report;
use engine::Record;

/// Invariant 10: no recorded decision changes under the rules, the label, the uses and the time that are recorded.
/// Gives how many were judged.
pub(crate) fn judged_again(records: &[Record]) -> u64 {
    let all = PastArgs::default();
    let mut decisions = Decisions::default();
    let mut report = Report::default();
    for record in records {
        if let Some(past) = decisions.follow(record.clone(), &all) {
            report.take(&past, None);
        }
    }
    assert!(
        report.faults.is_empty(),
        "invariant 10: the record's own rules decide otherwise:\n{}",
        ctl::render::replay::all(&report)
    );
    report.judged
}
