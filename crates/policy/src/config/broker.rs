//! `[broker]`: where things are, how long they may take. The defaults are those of DESIGN 10.

use std::ops::RangeInclusive;

use super::Settings;
use super::faults::Faults;
use super::section::Section;
use crate::limits::{
    MAX_AUDIT, MAX_DURATION, MAX_FRAME, MAX_PATTERN, MAX_SOCKET_PATH, MIN_AUDIT, MIN_FRAME,
};
use crate::path;

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Longer than nothing.
pub(crate) const SOME_TIME: RangeInclusive<u64> = 1..=MAX_DURATION;

const KEYS: &[&str] = &[
    "runtime_dir",
    "state_dir",
    "max_frame",
    "runner_wait",
    "call_timeout",
    "call_limit",
    "cancel_grace",
    "frame_timeout",
    "write_timeout",
    "drain_timeout",
    "approval_ttl",
    "refusal_ttl",
    "answer_ttl",
    "audit_arguments_ttl",
    "audit_ttl",
    "audit_bytes",
    "session_ttl",
    "allow_shared_uid",
];

impl Default for Settings {
    fn default() -> Self {
        Settings {
            runtime_dir: "/run/rolebroker".to_owned(),
            state_dir: "/var/lib/rolebroker".to_owned(),
            max_frame: 8 << 20,
            runner_wait: 5 * SECOND,
            call_timeout: MINUTE,
            call_limit: HOUR,
            cancel_grace: 5 * SECOND,
            frame_timeout: 30 * SECOND,
            write_timeout: 30 * SECOND,
            drain_timeout: 30 * SECOND,
            approval_ttl: 10 * MINUTE,
            refusal_ttl: 10 * MINUTE,
            answer_ttl: 24 * HOUR,
            audit_arguments_ttl: 7 * DAY,
            audit_ttl: 365 * DAY,
            audit_bytes: 4 << 30,
            session_ttl: 7 * DAY,
            allow_shared_uid: false,
        }
    }
}

/// Reads `[broker]`; what it does not say is as by default.
pub(crate) fn read(top: &Section<'_>, faults: &mut Faults) -> Settings {
    let mut settings = Settings::default();
    let Some(node) = top.get("broker") else {
        return settings;
    };
    let Some(section) = Section::of(node, "[broker]".to_owned(), KEYS, faults) else {
        return settings;
    };
    for (key, folder) in [
        ("runtime_dir", &mut settings.runtime_dir),
        ("state_dir", &mut settings.state_dir),
    ] {
        if let Some(path) = read_folder(&section, key, faults) {
            *folder = path;
        }
    }
    if let Some(size) = section.size(faults, "max_frame", MIN_FRAME..=MAX_FRAME) {
        settings.max_frame = size;
    }
    if let Some(size) = section.size(faults, "audit_bytes", MIN_AUDIT..=MAX_AUDIT) {
        settings.audit_bytes = size;
    }
    for (key, duration) in [
        ("runner_wait", &mut settings.runner_wait),
        ("call_timeout", &mut settings.call_timeout),
        ("call_limit", &mut settings.call_limit),
        ("cancel_grace", &mut settings.cancel_grace),
        ("frame_timeout", &mut settings.frame_timeout),
        ("write_timeout", &mut settings.write_timeout),
        ("drain_timeout", &mut settings.drain_timeout),
        ("approval_ttl", &mut settings.approval_ttl),
        ("refusal_ttl", &mut settings.refusal_ttl),
        ("answer_ttl", &mut settings.answer_ttl),
        ("audit_ttl", &mut settings.audit_ttl),
        ("session_ttl", &mut settings.session_ttl),
    ] {
        if let Some(millis) = section.duration(faults, key, SOME_TIME) {
            *duration = millis;
        }
    }
    // Never keeping arguments is a choice; the other times would make no sense at zero.
    if let Some(millis) = section.duration(faults, "audit_arguments_ttl", 0..=MAX_DURATION) {
        settings.audit_arguments_ttl = millis;
    }
    if settings.call_timeout > settings.call_limit {
        let at = if section.has("call_timeout") {
            "call_timeout"
        } else {
            "call_limit"
        };
        let what =
            "`call_timeout`, the longest silence, is more than `call_limit`, the longest call";
        section.fault(faults, &section.span_of(at), what);
    }
    if let Some(shared) = section.flag(faults, "allow_shared_uid") {
        settings.allow_shared_uid = shared;
    }
    settings
}

fn read_folder(section: &Section<'_>, key: &str, faults: &mut Faults) -> Option<String> {
    let text = section.short_text(faults, key, MAX_PATTERN)?;
    let plain = path::is_clean_absolute(text.text) && !text.text.chars().any(char::is_control);
    if !plain || text.text == "/" {
        let rule = "must be an absolute path without `.`, `..`, empty parts or a `/` at its end";
        section.fault(faults, &text.span, format!("`{key}` {rule}"));
        return None;
    }
    // The shortest socket below it is `/x.sock`; a role's own is checked with the role.
    if key == "runtime_dir" && text.text.len() + 7 > MAX_SOCKET_PATH {
        let rule = format!("is too long: a socket's path has at most {MAX_SOCKET_PATH} bytes");
        section.fault(faults, &text.span, format!("`{key}` {rule}"));
        return None;
    }
    Some(text.text.to_owned())
}
