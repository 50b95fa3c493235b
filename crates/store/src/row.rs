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
    let content = content_of(&mut record)
        .map(std::mem::take)
        .zip(until)
        .map(|(text, until)| Content { text, until });
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
    let place = content_of(&mut row.record);
    match (place, row.content, content) {
        (None, None, None) => Ok(row.record),
        (Some(place), Some(beside), Some(content)) => {
            if chain::digest(&content) != beside.hash {
                return Err("its content is another one".to_owned());
            }
            *place = content;
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

fn content_of(record: &mut Record) -> Option<&mut String> {
    match record {
        Record::Asked { request, .. } => Some(&mut request.arguments),
        Record::Answered { msg, .. } => Some(msg),
        Record::Opened { .. }
        | Record::Raised { .. }
        | Record::Denied { .. }
        | Record::Voted { .. }
        | Record::Settled { .. }
        | Record::Standing { .. }
        | Record::Dispatched { .. }
        | Record::Late { .. }
        | Record::Evicted { .. }
        | Record::Joined { .. }
        | Record::Closed { .. }
        | Record::Lowered { .. }
        | Record::Granted { .. }
        | Record::Revoked { .. }
        | Record::Pinned { .. }
        | Record::Configured { .. }
        | Record::Draining { .. } => None,
    }
}

fn until(record: &Record, keep: Keep) -> Option<Timestamp> {
    match record {
        Record::Asked { request, .. } => {
            Some(request.created.plus(keep.arguments).max(request.expires))
        }
        Record::Answered { at, .. } => Some(at.plus(keep.answers)),
        _ => None,
    }
}
