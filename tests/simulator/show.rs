//! Events and effects as a person reads them, and as a hash compares them.

use engine::{Effect, Event};

/// Adds an effect to a running hash of all.
pub(crate) fn mix(digest: u64, effect: &Effect) -> u64 {
    let text = format!("{effect:?}");
    text.bytes().fold(digest ^ 0x51ab, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// An event as the history tells it.
pub(crate) fn event_line(event: &Event) -> String {
    match event {
        Event::Received {
            conn,
            frame: Ok(decoded),
            ..
        } => {
            let id = decoded.envelope.id;
            format!(
                "{conn:?} says, under {id}: {}",
                String::from_utf8_lossy(&decoded.msg)
            )
        }
        Event::Received {
            conn,
            frame: Err(error),
            ..
        } => format!("{conn:?} says: {error}"),
        Event::Configured { request, .. } => format!("configured, for {request:?}"),
        Event::Connected { .. }
        | Event::Written { .. }
        | Event::Closed { .. }
        | Event::ConfigRefused { .. }
        | Event::Snapshot(_)
        | Event::Stored { .. }
        | Event::Drain => format!("{event:?}"),
    }
}

/// An effect as the history tells it.
pub(crate) fn effect_line(effect: &Effect) -> String {
    match effect {
        Effect::Send {
            conn,
            after,
            id,
            is_final,
            msg,
        } => format!(
            "to {conn:?} under {id}{}, after {after:?}: {}",
            if *is_final { "" } else { " (more)" },
            String::from_utf8_lossy(msg)
        ),
        Effect::Record { id, record } => format!(
            "record {}: {}",
            id.0,
            serde_json::to_string(record).unwrap_or_default()
        ),
        Effect::Close { .. } | Effect::Log(_) | Effect::Reload { .. } | Effect::Drained => {
            format!("{effect:?}")
        }
    }
}
