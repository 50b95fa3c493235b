//! How single values are typed.

use std::time::{SystemTime, UNIX_EPOCH};

use client::Label;
use client::proto::{DataClass, Timestamp, json};

/// `internal`, or `internal,untrusted`. What is not said to be untrusted is trusted.
pub(super) fn label(text: &str) -> Result<Label, String> {
    let (class, untrusted) = match text.split_once(',') {
        None => (text, false),
        Some((class, "untrusted")) => (class, true),
        Some((class, "trusted")) => (class, false),
        Some(_) => return Err("behind the class stands only `,untrusted`".to_owned()),
    };
    let class: DataClass = class.parse().map_err(|why| format!("{why}"))?;
    Ok(Label { class, untrusted })
}

/// Milliseconds of `30s`, `15m`, `1h`, `7d`, as in the configuration.
pub(super) fn millis(text: &str) -> Result<u64, String> {
    const RULE: &str = "a duration is written as 30s, 15m, 1h or 7d";
    let duration = humantime::parse_duration(text).map_err(|_| RULE.to_owned())?;
    match u64::try_from(duration.as_millis()) {
        Ok(0) => Err("it must last at least 1ms".to_owned()),
        Ok(millis) => Ok(millis),
        Err(_) => Err(RULE.to_owned()),
    }
}

/// An age, or a date as RFC 3339 has it, whole or its day alone.
pub(super) fn since(text: &str) -> Result<Timestamp, String> {
    let age = humantime::parse_duration(text)
        .ok()
        .and_then(|age| SystemTime::now().checked_sub(age));
    let day = || humantime::parse_rfc3339_weak(&format!("{text}T00:00:00Z"));
    let time = age.or_else(|| humantime::parse_rfc3339_weak(text).or_else(|_| day()).ok());
    time.and_then(|time| time.duration_since(UNIX_EPOCH).ok())
        .and_then(|since| u64::try_from(since.as_millis()).ok())
        .and_then(|millis| Timestamp::from_millis(millis).ok())
        .ok_or_else(|| "write an age such as 2h, or a date such as 2026-05-01".to_owned())
}

/// One JSON object, passed on as it was written.
pub(super) fn object(text: &str) -> Result<String, String> {
    match json::parse(text) {
        Ok(value) if value.is_object() => Ok(text.to_owned()),
        Ok(_) => Err("the arguments are one JSON object, such as {\"path\":\"/srv/a\"}".to_owned()),
        Err(error) => Err(format!("the arguments are no JSON object: {error}")),
    }
}
