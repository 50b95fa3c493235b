//! How single values are typed.

use client::Label;
use client::proto::{DataClass, json};

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

/// One JSON object, passed on as it was written.
pub(super) fn object(text: &str) -> Result<String, String> {
    match json::parse(text) {
        Ok(value) if value.is_object() => Ok(text.to_owned()),
        Ok(_) => Err("the arguments are one JSON object, such as {\"path\":\"/srv/a\"}".to_owned()),
        Err(error) => Err(format!("the arguments are no JSON object: {error}")),
    }
}
