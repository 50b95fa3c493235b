//! Log lines on standard error, with the fields and the words that rolebrokerd's have: JSON, or text on a terminal.
//!
//! A line is an event of `tracing` with a field `event`; what else there is (of libraries) is not written.

use std::fmt::{self, Write as _};
use std::io::{IsTerminal, Write};
use std::time::SystemTime;

use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

/// Sets the process's logging up, once. `level` is error, warn, info or debug.
pub(crate) fn start(level: &str) {
    let text = std::io::stderr().is_terminal();
    let filter = match level {
        "error" => LevelFilter::ERROR,
        "warn" => LevelFilter::WARN,
        "debug" => LevelFilter::DEBUG,
        _ => LevelFilter::INFO,
    };
    let subscriber = tracing_subscriber::registry().with(Lines { text }.with_filter(filter));
    // Only a second one could fail.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

struct Lines {
    text: bool,
}

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let Some(name) = fields.event.take() else {
            return;
        };
        let write = if self.text { text_line } else { json_line };
        let level = *event.metadata().level();
        let line = write(SystemTime::now(), level, &name, &fields.rest);
        // Where standard error is gone there is nobody to tell.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
}

/// The fields of one event, in their order; the values are JSON.
#[derive(Default)]
struct Fields {
    event: Option<String>,
    rest: Vec<(&'static str, Value)>,
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "event" {
            self.event = Some(value.to_owned());
        } else {
            self.rest.push((field.name(), value.into()));
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.rest.push((field.name(), value.into()));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.rest.push((field.name(), format!("{value:?}").into()));
    }
}

fn level_word(level: Level) -> &'static str {
    if level == Level::ERROR {
        "error"
    } else if level == Level::WARN {
        "warn"
    } else if level == Level::INFO {
        "info"
    } else {
        "debug"
    }
}

fn json_line(at: SystemTime, level: Level, event: &str, rest: &[(&'static str, Value)]) -> String {
    let mut line = format!(
        "{{\"ts\":\"{}\",\"level\":\"{}\",\"event\":{}",
        humantime::format_rfc3339_millis(at),
        level_word(level),
        Value::from(event)
    );
    for (name, value) in rest {
        // Writing into a String does not fail.
        let _ = write!(line, ",\"{name}\":{value}");
    }
    line.push_str("}\n");
    line
}

fn text_line(at: SystemTime, level: Level, event: &str, rest: &[(&'static str, Value)]) -> String {
    let at = humantime::format_rfc3339_millis(at);
    let mut line = format!("{at} {:5} {event}", level_word(level));
    for (name, value) in rest {
        let plain =
            |c: char| !(c == '"' || c == '\\' || c == '=' || c.is_whitespace() || c.is_control());
        let _ = match value.as_str() {
            // Nothing that a peer chose may move the cursor or begin a line.
            Some(text) if !text.is_empty() && text.chars().all(plain) => {
                write!(line, " {name}={text}")
            }
            Some(text) => write!(line, " {name}={text:?}"),
            None => write!(line, " {name}={value}"),
        };
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_json_line_has_the_fields_that_the_daemons_have() {
        let fields = [("role", "files".into()), ("call", 7.into())];
        assert_eq!(
            json_line(SystemTime::UNIX_EPOCH, Level::INFO, "serving", &fields),
            "{\"ts\":\"1970-01-01T00:00:00.000Z\",\"level\":\"info\",\"event\":\"serving\",\
             \"role\":\"files\",\"call\":7}\n"
        );
    }

    #[test]
    fn a_text_line_shows_no_control_character_of_a_value() {
        let bad = [("detail", "a\u{1b}[2J\nready".into())];
        assert_eq!(
            text_line(SystemTime::UNIX_EPOCH, Level::WARN, "closed", &bad),
            "1970-01-01T00:00:00.000Z warn  closed detail=\"a\\u{1b}[2J\\nready\"\n"
        );
    }
}
