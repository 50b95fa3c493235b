//! The configurations as text: what a plan fixes, and what its variants draw anew.

use std::fmt::Write as _;

use crate::config::Shape;
use crate::rng::Rng;

/// One variant's whole text.
pub(crate) fn text(rng: &mut Rng, shape: &Shape) -> String {
    let mut out = String::new();
    broker(&mut out, shape);
    roles(&mut out, shape);
    tools(&mut out, rng);
    grants(&mut out, rng);
    out
}

fn broker(out: &mut String, shape: &Shape) {
    let _ = write!(
        out,
        r#"
approvers = ["alice"]

[broker]
runtime_dir = "/run/rolebroker"
state_dir = "/var/lib/rolebroker"
max_frame = "{}"
runner_wait = "2s"
call_timeout = "10s"
call_limit = "60s"
cancel_grace = "1s"
write_timeout = "30s"
drain_timeout = "10s"
approval_ttl = "60s"
refusal_ttl = "30s"
answer_ttl = "{}"
session_ttl = "{}"
"#,
        match shape.max_frame {
            4096 => "4KiB",
            8192 => "8KiB",
            _ => "64KiB",
        },
        shape.answer_ttl,
        shape.session_ttl,
    );
}

fn roles(out: &mut String, shape: &Shape) {
    let agents = [
        ("bot", r#""1001", "1002""#),
        ("aide", r#""1003""#),
        ("clerk", r#""1004""#),
    ];
    for (index, (name, users)) in agents.into_iter().take(shape.agents).enumerate() {
        let _ = write!(
            out,
            r#"
[roles.{name}]
kind = "agent"
users = [{users}]
label_scope = "{}"
quota = {{ connections = 6, in_flight = {}, sessions = {}, approvals = {}, waiting_bytes = "{}", stored_bytes = "{}", requests_per_second = {} }}
"#,
            shape.scopes[index],
            shape.in_flight,
            shape.sessions,
            shape.approvals,
            shape.waiting,
            shape.stored,
            shape.rate,
        );
    }
    let _ = write!(
        out,
        r#"
[roles.files]
kind = "runner"
users = ["1101"]
concurrency = {}

[roles.web]
kind = "runner"
users = ["1102"]
concurrency = {}

[roles.mail]
kind = "runner"
users = ["1103"]
concurrency = {}
offers = [{{ tools = ["mail.*"], class = "internal", untrusted = true, effects = "once", egress = true, pin = "{}" }}]

[roles.alice]
kind = "approver"
users = ["2001", "2002"]
max_class = "secret"

# One person may answer under two roles: that is one uid still.
[roles.bob]
kind = "approver"
users = ["2002", "2003"]
max_class = "confidential"

[roles.carol]
kind = "approver"
users = ["2004"]
max_class = "public"

[roles.admin]
kind = "operator"
users = ["3001"]
"#,
        shape.concurrency[0], shape.concurrency[1], shape.concurrency[2], shape.pin,
    );
}

fn tools(out: &mut String, rng: &mut Rng) {
    let mut tool = |name: &str, runner: &str, class: &str, untrusted, effects: &str, egress| {
        let _ = write!(
            out,
            r#"
[[tool]]
name = "{name}"
runner = "{runner}"
class = "{class}"
untrusted = {untrusted}
effects = "{effects}"
egress = {egress}
description = "{name}"
input_schema = '{{"type":"object"}}'
"#
        );
    };
    tool("read_doc", "files", "public", false, "read", false);
    tool("read_inbox", "files", "confidential", true, "read", false);
    if rng.chance(80) {
        tool("read_secret", "files", "secret", false, "read", false);
    }
    let floor = rng.pick::<&str>(&["public", "internal"]);
    tool("write_note", "files", floor, false, "idempotent", false);
    tool("run_job", "files", "internal", false, "once", false);
    tool("web.fetch", "web", "public", true, "read", true);
    if rng.chance(70) {
        let _ = write!(
            out,
            r#"
[[tool]]
name = "mail.search"
runner = "mail"
class = "confidential"
untrusted = true
effects = "read"
egress = false
content = "mcp"
"#
        );
    }
}

fn grants(out: &mut String, rng: &mut Rng) {
    out.push_str(
        r#"
[[grant]]
id = "docs"
roles = ["*"]
sessions = ["*"]
tools = ["read_doc", "read_inbox"]
effect = "allow"
why = "reading"
"#,
    );
    if rng.chance(70) {
        out.push_str(
            r#"
[[grant]]
id = "secrets"
roles = ["bot", "aide"]
sessions = ["*"]
tools = ["read_secret"]
effect = "allow"
max_class = "secret"
why = "the vault"
"#,
        );
    }
    if rng.chance(60) {
        out.push_str(
            r#"
[[grant]]
id = "no-keys"
roles = ["*"]
sessions = ["*"]
tools = ["*", "**"]
effect = "deny"
where = { "/path" = { glob = "/**/*.pem" } }
why = "keys stay where they are"
"#,
        );
    }
    asking_grants(out, rng);
    sending_grants(out, rng);
}

/// `where` over the pointers that arguments have; `path` must lie below the notes.
const BELOW_NOTES: &str = r#"{ "/from" = { max_len = 32 }, "/path" = { under = "/srv/notes" }, "/to" = { optional = { max_len = 64 } }, "/text" = { optional = { max_len = 100000 } } }"#;

fn asking_grants(out: &mut String, rng: &mut Rng) {
    let notes_effect = rng.pick::<&str>(&["ask", "ask", "allow"]);
    let notes_max = rng.pick::<&str>(&["internal", "confidential"]);
    let uses = 1 + rng.below(4);
    let _ = write!(
        out,
        r#"
[[grant]]
id = "notes"
roles = ["*"]
sessions = ["*"]
tools = ["write_note"]
effect = "{notes_effect}"
where = {BELOW_NOTES}
max_class = "{notes_max}"
above_max = "ask"
untrusted = "ask"
approvers = ["alice", "bob"]
standing_ttl = "5m"
standing_uses = {uses}
why = "notes"
"#
    );
    let quorum = 1 + rng.below(2);
    let ttl = rng.pick::<&str>(&["20s", "60s", "10m"]);
    let above = rng.pick::<&str>(&["ask", "deny"]);
    let _ = write!(
        out,
        r#"
[[grant]]
id = "jobs"
roles = ["*"]
sessions = ["*"]
tools = ["run_job"]
effect = "ask"
max_class = "confidential"
above_max = "{above}"
untrusted = "ask"
approvers = ["alice", "bob", "carol"]
quorum = {quorum}
approval_ttl = "{ttl}"
standing_ttl = "2m"
standing_uses = 3
why = "jobs"
"#
    );
    if rng.chance(30) {
        out.push_str(
            r#"
[[grant]]
id = "jobs-free"
roles = ["bot"]
sessions = ["s-1", "s-2"]
tools = ["run_job"]
effect = "allow"
max_class = "internal"
max_uses = 3
expires = "2031-01-01T00:00:00Z"
why = "a few without asking"
"#,
        );
    }
}

fn sending_grants(out: &mut String, rng: &mut Rng) {
    let fetch = rng.pick::<&str>(&["allow", "ask", "deny"]);
    let above = rng.pick::<&str>(&["ask", "deny"]);
    let uses = 2 + rng.below(30);
    let _ = write!(
        out,
        r#"
[[grant]]
id = "fetch"
roles = ["*"]
sessions = ["*"]
tools = ["web.fetch"]
effect = "allow"
max_class = "internal"
above_max = "{above}"
untrusted = "{fetch}"
approvers = ["bob"]
max_uses = {uses}
expires = "2030-01-01T00:20:00Z"
why = "the web"

[[grant]]
id = "fetch-ask"
roles = ["*"]
sessions = ["*"]
tools = ["web.fetch"]
effect = "ask"
unless = {{ "/path" = {{ under = "/srv" }} }}
max_class = "confidential"
untrusted = "ask"
approvers = ["alice"]
standing_ttl = "10m"
standing_uses = 2
why = "elsewhere somebody looks"
"#
    );
    let quorum = 1 + rng.below(2);
    let inside = rng.pick::<&str>(&["allow", "ask"]);
    let _ = write!(
        out,
        r#"
[[grant]]
id = "mail-inside"
roles = ["*"]
sessions = ["*"]
tools = ["mail.send", "mail.draft"]
effect = "{inside}"
where = {{ "/from" = {{ max_len = 32 }}, "/path" = {{ max_len = 64 }}, "/to" = {{ glob = "*@example.org" }}, "/text" = {{ max_len = 100000 }} }}
max_class = "internal"
above_max = "ask"
untrusted = "ask"
approvers = ["alice", "bob"]
why = "colleagues"

[[grant]]
id = "mail-outside"
roles = ["*"]
sessions = ["*"]
tools = ["mail.send"]
effect = "ask"
unless = {{ "/to" = {{ glob = "*@example.org" }} }}
max_class = "internal"
untrusted = "ask"
approvers = ["alice", "bob"]
quorum = {quorum}
why = "strangers: people look"

[[grant]]
id = "search"
roles = ["*"]
sessions = ["*"]
tools = ["mail.search"]
effect = "allow"
max_class = "secret"
untrusted = "allow"
why = "summaries"
"#
    );
}
