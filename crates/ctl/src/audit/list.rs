//! The records that are meant, a line each; and those that come after them.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::Value;
use store::{Entry, Store, StoreError};

use crate::cli::{AuditArgs, DecisionArg, Place};
use crate::exit::{self, Exit, NotDone};
use crate::{out, render};

/// How often it looks whether there is more.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Shows what there is, and goes on where that is wanted: until it is interrupted, or nobody reads any more.
pub(super) async fn list(place: &Place, args: &AuditArgs) -> anyhow::Result<Exit> {
    let mut store = super::open(&args.store)?;
    // Before the reading, so that nothing is missed that is written meanwhile.
    let mut version = store.version().map_err(not_done)?;
    if !show(&mut store, args.lines, |entry| line(entry, place, args))? || !args.follow {
        return Ok(exit::DONE);
    }
    let interrupted = tokio::signal::ctrl_c();
    tokio::pin!(interrupted);
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            _ = &mut interrupted => return Ok(exit::DONE),
        }
        let now = store.version().map_err(not_done)?;
        let more = now != std::mem::replace(&mut version, now);
        let goes_on = if more {
            show(&mut store, None, |entry| line(entry, place, args))?
        } else {
            out::is_read()
        };
        if !goes_on {
            return Ok(exit::DONE);
        }
    }
}

/// Shows what was not read yet, or the last `lines` of it. `false`: nobody reads any more.
fn show(
    store: &mut Store,
    lines: Option<usize>,
    line: impl Fn(&Entry) -> Option<String>,
) -> anyhow::Result<bool> {
    let shown = store.read_on(|entries| {
        let mut meant = entries.filter_map(|entry| line(&entry));
        let Some(most) = lines else {
            return meant.all(|line| out::try_text(&line).is_ok());
        };
        let mut last = VecDeque::new();
        for line in meant {
            last.push_back(line);
            if last.len() > most {
                last.pop_front();
            }
        }
        last.iter().all(|line| out::try_text(line).is_ok())
    });
    Ok(shown.map_err(not_done)?)
}

fn not_done(error: StoreError) -> NotDone {
    NotDone(error.to_string())
}

/// A record as it is shown, if it is meant.
fn line(entry: &Entry, place: &Place, args: &AuditArgs) -> Option<String> {
    let row: Value = serde_json::from_str(&entry.text).ok()?;
    is_meant(&row["record"], args).then(|| {
        if place.json {
            out::ascii(&entry.text) + "\n"
        } else {
            render::audit::line(&row)
        }
    })
}

fn is_meant(record: &Value, args: &AuditArgs) -> bool {
    let is =
        |wanted: Option<&str>, found: &Value| wanted.is_none_or(|it| found.as_str() == Some(it));
    let (role, session, _) = render::audit::whose(record);
    is(args.role.as_ref().map(|it| it.as_str()), role)
        && is(args.session.as_ref().map(|it| it.as_str()), session)
        && is(
            args.tool.as_ref().map(|it| it.as_str()),
            render::audit::tool(record),
        )
        && args.decision.is_none_or(|it| Some(it) == decision(record))
        && args
            .since
            .is_none_or(|since| render::audit::at(record) >= since)
}

fn decision(record: &Value) -> Option<DecisionArg> {
    match record["record"].as_str()? {
        "dispatched" => Some(DecisionArg::Permit),
        "asked" => Some(DecisionArg::Ask),
        "denied" => Some(DecisionArg::Deny),
        _ => None,
    }
}
