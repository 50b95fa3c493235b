//! Steps that several tests take.

use std::sync::Arc;

use engine::{Effects, Engine, Event};
use policy::Config;
use proto::{DataClass, JoinSession, Message, Timestamp, ToolSpec};

use crate::world::{CONFIG, World, session};

pub(crate) const TO_X: &str = r#"{"to":"x"}"#;

pub(crate) fn config(text: &str) -> Arc<Config> {
    Arc::new(Config::parse("world.toml", text).unwrap_or_else(|e| panic!("{e}")))
}

pub(crate) fn reload(w: &mut World, text: &str) {
    let config = config(text);
    w.give(Event::Configured {
        config,
        request: None,
    });
}

/// Another engine from the same records, under another configuration.
pub(crate) fn restore(w: &World, text: &str) -> Result<(Engine, Effects), String> {
    let mut effects = Effects::new();
    let now = Timestamp::from_millis(w.now).unwrap();
    let engine = Engine::restore(config(text), now, [], w.records.clone(), None, &mut effects)?;
    Ok((engine, effects))
}

pub(crate) fn once_put() -> String {
    CONFIG.replace(r#"effects = "idempotent""#, r#"effects = "once""#)
}

pub(crate) fn close(w: &mut World, bot: engine::ConnId, from: &str, into: &str) {
    let join = JoinSession {
        from: session(from),
        into: session(into),
        close: true,
    };
    w.say(bot, Message::JoinSession(join));
    let heard = w.heard(bot);
    assert!(
        heard.iter().any(|e| matches!(e.msg, Message::Joined(_))),
        "{from} into {into}: {heard:?}"
    );
}

pub(crate) fn read(
    w: &mut World,
    bot: engine::ConnId,
    files: engine::ConnId,
    s: &str,
    call: u64,
    c: DataClass,
) {
    w.call(bot, s, call, "read", "{}");
    let [(wire, _)] = w.requests(files)[..] else {
        panic!("no request")
    };
    w.result(files, wire, "x", c);
    w.heard(bot);
}

pub(crate) fn spec(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.try_into().unwrap(),
        description: "d".to_owned(),
        input_schema: r#"{"type":"object"}"#.to_owned(),
        class: DataClass::Public,
        untrusted: false,
        effects: proto::Effects::Read,
        egress: false,
        content: proto::Content::Text,
    }
}
