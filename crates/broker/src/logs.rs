//! Log lines on standard error: JSON with stable fields, or text for a terminal (DESIGN 10).
//!
//! A line is an event of `tracing` with a field `event`; what else there is (of libraries) is not
//! written. Lines are written by a thread of their own: a slow reader of standard error costs lines,
//! which are counted, and never holds up the broker.

use std::fmt::{self, Write as _};
use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, SystemTime};

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use crate::cli::{LogFormat, LogLevel};

/// Lines that may wait for the reader of standard error.
pub const MAX_WAITING_LINES: usize = 4096;
/// Bytes that are gathered into one write.
const MAX_WRITE: usize = 64 << 10;
/// How long the end of the process waits for the last lines.
pub const FLUSH_WAIT: Duration = Duration::from_secs(1);

enum Item {
    Line(String),
    Flush(SyncSender<()>),
}

/// Writes what still waits when it is dropped.
#[derive(Debug)]
pub struct Flush {
    lines: SyncSender<Item>,
}

impl Drop for Flush {
    fn drop(&mut self) {
        let (done, wait) = sync_channel(1);
        // A full list means a reader that does not read: then there is nobody to wait for.
        if self.lines.try_send(Item::Flush(done)).is_ok() {
            let _ = wait.recv_timeout(FLUSH_WAIT);
        }
    }
}

/// Sets the process's logging up, once. Keep what it gives until the process ends.
///
/// # Errors
/// The thread cannot be started, or logging was set up before.
pub fn start(level: LogLevel, format: LogFormat) -> Result<Flush, String> {
    let text = match format {
        LogFormat::Text => true,
        LogFormat::Json => false,
        LogFormat::Auto => std::io::stderr().is_terminal(),
    };
    let (lines, taken) = sync_channel(MAX_WAITING_LINES);
    let dropped = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&dropped);
    std::thread::Builder::new()
        .name("log".to_owned())
        .spawn(move || write_lines(&taken, &counted, text))
        .map_err(|error| format!("cannot start the log's thread: {error}"))?;
    let writer = Lines {
        lines: lines.clone(),
        dropped,
        text,
    };
    let filter = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    };
    let subscriber = tracing_subscriber::registry().with(writer.with_filter(filter));
    tracing::subscriber::set_global_default(subscriber)
        .map_err(|error| format!("cannot set logging up: {error}"))?;
    Ok(Flush { lines })
}

/// Writes a line of the engine's.
pub fn engine_line(log: &engine::Log) {
    macro_rules! line {
        ($level:ident) => {
            tracing::$level!(
                event = log.event,
                role = log.role.as_ref().map(proto::RoleName::as_str),
                session = log.session.as_ref().map(proto::SessionId::as_str),
                call = log.call.map(|call| call.0),
                tool = log.tool.as_ref().map(proto::ToolName::as_str),
                decision = log.decision,
                reason = log.reason,
                grant = log.grant.as_ref().map(proto::GrantId::as_str),
                approval = log.approval.as_ref().map(proto::ApprovalId::as_str),
                elapsed_us = log.elapsed_us,
            )
        };
    }
    match log.level {
        engine::Level::Debug => line!(debug),
        engine::Level::Info => line!(info),
        engine::Level::Warn => line!(warn),
    }
}

/// Writes every line of a text of several as a line of the log of its own.
pub fn faults(event: &'static str, text: &str) {
    for line in text.lines() {
        tracing::error!(event, detail = line);
    }
}

/// What a reload changed, a line each.
pub fn changes(changes: &[String]) {
    for change in changes {
        tracing::info!(event = "configuration_changed", detail = change.as_str());
    }
}

/// Says what a reviewer of the configuration should know.
pub fn warnings(warnings: &[String]) {
    for warning in warnings {
        tracing::warn!(event = "warning", detail = warning.as_str());
    }
}

struct Lines {
    lines: SyncSender<Item>,
    dropped: Arc<AtomicU64>,
    text: bool,
}

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let Some(name) = fields.event.take() else {
            return;
        };
        let level = *event.metadata().level();
        let line = if self.text {
            text_line(SystemTime::now(), level, &name, &fields.rest)
        } else {
            json_line(SystemTime::now(), level, &name, &fields.rest)
        };
        if self.lines.try_send(Item::Line(line)).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The fields of one event, in their order; the values are JSON.
#[derive(Default)]
struct Fields {
    event: Option<String>,
    rest: Vec<(&'static str, serde_json::Value)>,
}

impl Fields {
    fn put(&mut self, field: &Field, value: serde_json::Value) {
        self.rest.push((field.name(), value));
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "event" {
            self.event = Some(value.to_owned());
        } else {
            self.put(field, value.into());
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}").into());
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

fn json_line(
    at: SystemTime,
    level: Level,
    event: &str,
    rest: &[(&'static str, serde_json::Value)],
) -> String {
    let mut line = format!(
        "{{\"ts\":\"{}\",\"level\":\"{}\",\"event\":{}",
        humantime::format_rfc3339_millis(at),
        level_word(level),
        serde_json::Value::from(event)
    );
    for (name, value) in rest {
        // Writing into a String does not fail.
        let _ = write!(line, ",\"{name}\":{value}");
    }
    line.push_str("}\n");
    line
}

fn text_line(
    at: SystemTime,
    level: Level,
    event: &str,
    rest: &[(&'static str, serde_json::Value)],
) -> String {
    let at = humantime::format_rfc3339_millis(at).to_string();
    let mut line = format!("{at} {:5} {event}", level_word(level));
    for (name, value) in rest {
        let _ = match value.as_str() {
            // Nothing that a peer chose may move the cursor or begin a line.
            Some(plain) if !plain.is_empty() && plain.chars().all(|c| !needs_quotes(c)) => {
                write!(line, " {name}={plain}")
            }
            Some(other) => write!(line, " {name}={other:?}"),
            None => write!(line, " {name}={value}"),
        };
    }
    line.push('\n');
    line
}

fn needs_quotes(c: char) -> bool {
    c == '"' || c == '\\' || c == '=' || c.is_whitespace() || c.is_control()
}

fn write_lines(taken: &Receiver<Item>, dropped: &AtomicU64, text: bool) {
    let mut flushes = Vec::new();
    let mut gathered = String::new();
    while let Ok(first) = taken.recv() {
        let mut next = Some(first);
        while let Some(item) = next {
            match item {
                Item::Line(line) => gathered.push_str(&line),
                Item::Flush(done) => flushes.push(done),
            }
            next = (gathered.len() < MAX_WRITE)
                .then(|| taken.try_recv().ok())
                .flatten();
        }
        let lost = dropped.swap(0, Ordering::Relaxed);
        if lost > 0 {
            let fields = [("count", serde_json::Value::from(lost))];
            let write = if text { text_line } else { json_line };
            gathered.push_str(&write(
                SystemTime::now(),
                Level::WARN,
                "log_lines_lost",
                &fields,
            ));
        }
        // Where standard error is gone there is nobody to tell.
        let _ = std::io::stderr().write_all(gathered.as_bytes());
        gathered.clear();
        for done in flushes.drain(..) {
            let _ = done.try_send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields() -> Vec<(&'static str, serde_json::Value)> {
        vec![("role", "bot".into()), ("call", 7.into())]
    }

    #[test]
    fn a_json_line_is_one_flat_object_with_the_stable_fields_first() {
        let line = json_line(SystemTime::UNIX_EPOCH, Level::INFO, "ready", &fields());
        assert_eq!(
            line,
            "{\"ts\":\"1970-01-01T00:00:00.000Z\",\"level\":\"info\",\"event\":\"ready\",\
             \"role\":\"bot\",\"call\":7}\n"
        );
    }

    #[test]
    fn a_text_line_shows_no_control_character_of_a_value() {
        let bad = vec![("detail", serde_json::Value::from("a\u{1b}[2J\nready"))];
        let line = text_line(SystemTime::UNIX_EPOCH, Level::WARN, "refused", &bad);
        assert_eq!(
            line,
            "1970-01-01T00:00:00.000Z warn  refused detail=\"a\\u{1b}[2J\\nready\"\n"
        );
    }

    #[test]
    fn a_field_that_is_absent_is_not_written() {
        let (lines, taken) = sync_channel(8);
        let layer = Lines {
            lines,
            dropped: Arc::default(),
            text: false,
        };
        let subscriber = tracing_subscriber::registry().with(layer);
        tracing::subscriber::with_default(subscriber, || {
            engine_line(&engine::Log {
                level: engine::Level::Info,
                event: "decided",
                role: None,
                session: None,
                call: Some(proto::CallId(7)),
                tool: None,
                decision: Some("deny"),
                reason: None,
                grant: None,
                approval: None,
                elapsed_us: None,
            });
            tracing::info!("a library's line");
        });
        let Ok(Item::Line(line)) = taken.try_recv() else {
            panic!("no line")
        };
        assert!(
            line.ends_with("\"event\":\"decided\",\"call\":7,\"decision\":\"deny\"}\n"),
            "{line}"
        );
        assert!(taken.try_recv().is_err(), "only lines with an event count");
    }
}
