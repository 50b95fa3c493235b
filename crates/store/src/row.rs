//! A record as a row: its text, and its content aside, where it can be forgotten.

use engine::Record;
use proto::{Digest, Timestamp};
use serde::{Deserialize, Serialize};

use crate::chain;

/// How long contents are kept, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// Answers: `answer_ttl`.
    pub answers: u64,
    /// Arguments: `audit_arguments_ttl`, but no shorter than their approval is pending.
    pub arguments: u64,
}

/// Until when what goes with its record is kept.
const AS_LONG_AS_THE_RECORD: u64 = u64::MAX;

/// What is appended: canonical JSON, bound to the rows before it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    id: u64,
    record: Record,
    /// What was taken out of the record.
    content: Option<Beside>,
}

/// What the chain knows of a content.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Beside {
    hash: Digest,
    /// It is not gone before.
    until: Timestamp,
}

/// What is forgotten one day.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) text: String,
    pub(crate) until: Timestamp,
}

/// A record's text, and its content.
pub(crate) fn split(
    id: u64,
    mut record: Record,
    keep: Keep,
) -> Result<(String, Option<Content>), serde_json::Error> {
    let until = until(&record, keep);
    let content = place(&mut record)
        .and_then(Place::take)
        .map(|text| Content { text, until });
    let row = Row {
        id,
        record,
        content: content.as_ref().map(|content| Beside {
            hash: chain::digest(&content.text),
            until: content.until,
        }),
    };
    Ok((serde_json::to_string(&row)?, content))
}

/// The record again. Contents whose time was over before `forgotten` may be gone; an answer without its content is
/// read as its end: nothing runs again for it.
///
/// # Errors
/// In words: why it is not what was written.
pub(crate) fn join(
    id: u64,
    text: &str,
    content: Option<String>,
    forgotten: Timestamp,
) -> Result<Record, String> {
    let mut row: Row =
        serde_json::from_str(text).map_err(|error| format!("it is no record: {error}"))?;
    if row.id != id {
        return Err(format!("it says that it is record {}", row.id));
    }
    match (place(&mut row.record), row.content, content) {
        (None | Some(Place::Perhaps(_)), None, None) => Ok(row.record),
        (Some(place), Some(beside), Some(content)) => {
            if chain::digest(&content) != beside.hash {
                return Err("its content is another one".to_owned());
            }
            place.put(content);
            Ok(row.record)
        }
        (Some(_), Some(beside), None) if beside.until < forgotten => Ok(without(row.record)),
        (Some(_), Some(_), None) => Err("its content is gone before its time".to_owned()),
        _ => Err("its content does not belong to it".to_owned()),
    }
}

fn without(record: Record) -> Record {
    match record {
        Record::Answered { at, call, .. } => Record::Evicted { at, call },
        other => other,
    }
}

/// Where a record has what is kept beside it.
enum Place<'a> {
    Always(&'a mut String),
    Perhaps(&'a mut Option<String>),
}

impl Place<'_> {
    fn take(self) -> Option<String> {
        match self {
            Self::Always(text) => Some(std::mem::take(text)),
            Self::Perhaps(text) => text.take(),
        }
    }

    fn put(self, content: String) {
        match self {
            Self::Always(text) => *text = content,
            Self::Perhaps(text) => *text = Some(content),
        }
    }
}

fn place(record: &mut Record) -> Option<Place<'_>> {
    match record {
        Record::Asked { request, .. } => Some(Place::Always(&mut request.arguments)),
        Record::Answered { msg, .. } => Some(Place::Always(msg)),
        Record::Denied { basis, .. } | Record::Dispatched { basis, .. } => basis
            .as_mut()
            .map(|basis| Place::Perhaps(&mut basis.arguments)),
        Record::Configured { text, .. } => Some(Place::Perhaps(text)),
        Record::Opened { .. }
        | Record::Raised { .. }
        | Record::Voted { .. }
        | Record::Settled { .. }
        | Record::Standing { .. }
        | Record::Late { .. }
        | Record::Evicted { .. }
        | Record::Joined { .. }
        | Record::Closed { .. }
        | Record::Lowered { .. }
        | Record::Granted { .. }
        | Record::Revoked { .. }
        | Record::Pinned { .. }
        | Record::Refused { .. }
        | Record::Draining { .. } => None,
    }
}

fn until(record: &Record, keep: Keep) -> Timestamp {
    match record {
        Record::Asked { request, .. } => request.created.plus(keep.arguments).max(request.expires),
        Record::Answered { at, .. } => at.plus(keep.answers),
        Record::Denied { at, .. } | Record::Dispatched { at, .. } => at.plus(keep.arguments),
        _ => Timestamp::default().plus(AS_LONG_AS_THE_RECORD),
    }
}
