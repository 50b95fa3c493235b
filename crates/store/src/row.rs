//! A record as a row: its text, and its content aside, where it can be forgotten.

use engine::{Part, Record};
use proto::{Digest, RoleName, Timestamp};
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

/// A part of a snapshot, in the same way.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PartRow {
    part: Part,
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

/// What a content is, and when it may go before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// An answer: once no snapshot keeps it.
    Answer = 0,
    /// The arguments that a person is asked about: once the asking is over they are as `Arguments`.
    Asked = 1,
    /// Arguments of a decision: once their role has too many.
    Arguments = 2,
    /// A configuration: with its record.
    Rules = 3,
}

/// What is forgotten one day.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) text: String,
    pub(crate) until: Timestamp,
    pub(crate) kind: Kind,
    /// Whose it is; nobody's where it is the broker's own.
    pub(crate) role: Option<RoleName>,
}

/// What may be gone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gone {
    /// Contents whose time was over before.
    pub(crate) before: Timestamp,
    /// Contents of records up to this one: a snapshot keeps what is needed of them.
    pub(crate) up_to: u64,
}

/// The agent role whose call a record is about, and how many bytes of it the record has.
pub fn charge(record: &Record) -> Option<(&RoleName, u64)> {
    let (role, bytes) = match record {
        Record::Asked { request, .. } => (&request.role, request.arguments.len()),
        Record::Answered { call, msg, .. } => (&call.session.role, msg.len()),
        Record::Denied { call, basis, .. } | Record::Dispatched { call, basis, .. } => {
            let arguments = basis.as_ref().and_then(|basis| basis.arguments.as_ref());
            (&call.session.role, arguments.map_or(0, String::len))
        }
        _ => return None,
    };
    Some((role, bytes as u64))
}

/// A record's text, and its content.
pub(crate) fn split(
    id: u64,
    mut record: Record,
    keep: Keep,
) -> Result<(String, Option<Content>), serde_json::Error> {
    let about = about(&record, keep);
    let text = place(&mut record).and_then(Place::take);
    let content = about.zip(text).map(|((kind, role, until), text)| Content {
        text,
        until,
        kind,
        role,
    });
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

/// The record again. An answer without its content is read as its end: nothing runs again for it.
///
/// # Errors
/// In words: why it is not what was written.
pub(crate) fn join(
    id: u64,
    text: &str,
    content: Option<String>,
    gone: Gone,
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
        // Nothing depends on it.
        (Some(Place::Perhaps(_)), Some(_), None) => Ok(row.record),
        (Some(Place::Always(_)), Some(beside), None)
            if beside.until < gone.before || id <= gone.up_to =>
        {
            Ok(without(row.record))
        }
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

/// A part's text, and the record whose content it needs. `until` says how long that is kept.
pub(crate) fn split_part(
    mut part: Part,
    until: impl FnOnce(u64) -> rusqlite::Result<Timestamp>,
) -> rusqlite::Result<(String, Option<u64>)> {
    let taken = place_in_part(&mut part).map(|(record, text)| (record, std::mem::take(text)));
    let content = match &taken {
        Some((record, text)) => Some(Beside {
            hash: chain::digest(text),
            until: until(*record)?,
        }),
        None => None,
    };
    let text = serde_json::to_string(&PartRow { part, content })
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    Ok((text, taken.map(|(record, _)| record)))
}

/// The part again; as [`join`].
///
/// # Errors
/// In words: why it is not what was written.
pub(crate) fn join_part(
    text: &str,
    content: Option<String>,
    before: Timestamp,
) -> Result<Part, String> {
    let mut row: PartRow = serde_json::from_str(text)
        .map_err(|error| format!("a part of its snapshot is none: {error}"))?;
    match (place_in_part(&mut row.part), row.content, content) {
        (None, None, None) => Ok(row.part),
        (Some((_, place)), Some(beside), Some(content)) => {
            if chain::digest(&content) != beside.hash {
                return Err("a content of its snapshot is another one".to_owned());
            }
            *place = content;
            Ok(row.part)
        }
        (Some(_), Some(beside), None) if beside.until < before => Ok(match row.part {
            Part::Answered { call, .. } => Part::Evicted { call },
            other => other,
        }),
        _ => Err("a content of its snapshot is gone before its time".to_owned()),
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
        Record::Configured { text, .. } | Record::Snapshot { text, .. } => {
            Some(Place::Perhaps(text))
        }
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
        | Record::Restored { .. }
        | Record::Draining { .. } => None,
    }
}

/// What a record's content is, whose, and until when it is kept.
fn about(record: &Record, keep: Keep) -> Option<(Kind, Option<RoleName>, Timestamp)> {
    let until = |ttl| record.at().plus(ttl);
    match record {
        Record::Asked { request, .. } => Some((
            Kind::Asked,
            Some(request.role.clone()),
            until(keep.arguments).max(request.expires),
        )),
        Record::Answered { call, .. } => Some((
            Kind::Answer,
            Some(call.session.role.clone()),
            until(keep.answers),
        )),
        Record::Denied { call, .. } | Record::Dispatched { call, .. } => Some((
            Kind::Arguments,
            Some(call.session.role.clone()),
            until(keep.arguments),
        )),
        Record::Configured { .. } | Record::Snapshot { .. } => {
            Some((Kind::Rules, None, until(AS_LONG_AS_THE_RECORD)))
        }
        _ => None,
    }
}

/// Where a part has what is kept beside its record.
fn place_in_part(part: &mut Part) -> Option<(u64, &mut String)> {
    match part {
        Part::Asked {
            record, request, ..
        } => Some((record.0, &mut request.arguments)),
        Part::Answered { record, msg, .. } => Some((record.0, msg)),
        Part::AsOf { .. }
        | Part::Role { .. }
        | Part::Session { .. }
        | Part::Standing { .. }
        | Part::Cover { .. }
        | Part::Interrupted { .. }
        | Part::Evicted { .. }
        | Part::Settled { .. }
        | Part::Pinned { .. }
        | Part::Uses { .. }
        | Part::Granted { .. } => None,
    }
}
