use clap::Parser as _;
use client::proto::{Control, Digest, GrantId, RoleName, SessionId, ToolName};
use client::{DataClass, Label};
use ctl::cli::{Cli, Command};

/// Words are separated by single spaces; none of the tests' words holds one.
fn typed(line: &str) -> Result<Command, clap::Error> {
    let cli = Cli::try_parse_from(format!("rolebroker {line}").split(' '))?;
    Ok(cli.command)
}

const PREAPPROVE: &str = "preapprove bot mm-42 write_file --grant notes --grant late \
    --arguments {\"path\":\"/a\"} --label internal,untrusted --uses 3 --ttl 1h --reason move";

#[test]
fn a_join_keeps_its_first_session_unless_told_to_close_it() {
    for (line, closes) in [
        ("join bot sub main", false),
        ("join bot sub main --close", true),
    ] {
        let Command::Join(args) = typed(line).unwrap() else {
            panic!("{line}")
        };
        let wanted = Control::JoinSession {
            role: RoleName::new("bot").unwrap(),
            from: SessionId::new("sub").unwrap(),
            into: SessionId::new("main").unwrap(),
            close: closes,
        };
        assert_eq!(Control::from(args), wanted);
    }
    assert!(typed("join bot sub").is_err());
}

#[test]
fn a_preapproval_is_sent_as_it_was_typed() {
    let Command::Preapprove(args) = typed(PREAPPROVE).unwrap() else {
        panic!("not preapprove")
    };
    let wanted = Control::Preapprove {
        role: RoleName::new("bot").unwrap(),
        session: SessionId::new("mm-42").unwrap(),
        tool: ToolName::new("write_file").unwrap(),
        grants: ["notes", "late"].map(|id| GrantId::new(id).unwrap()).into(),
        arguments: "{\"path\":\"/a\"}".to_owned(),
        label: Label {
            class: DataClass::Internal,
            untrusted: true,
        },
        uses: 3,
        ttl: 3_600_000,
        reason: "move".to_owned(),
    };
    assert_eq!(Control::from(args), wanted);
}

#[test]
fn a_preapproval_has_no_default_for_anything_that_bounds_it() {
    for option in [
        " --grant notes --grant late",
        " --arguments {\"path\":\"/a\"}",
        " --label internal,untrusted",
        " --uses 3",
        " --ttl 1h",
        " --reason move",
    ] {
        let less = PREAPPROVE.replace(option, "");
        assert_ne!(less, PREAPPROVE, "{option}");
        assert!(typed(&less).is_err(), "it can be left out: {option}");
    }
}

#[test]
fn a_preapproval_with_a_mistake_is_not_sent() {
    for (good, bad) in [
        ("{\"path\":\"/a\"}", "[]"),
        ("{\"path\":\"/a\"}", "{\"a\":1,\"a\":2}"),
        ("{\"path\":\"/a\"}", "path=/a"),
        ("internal,untrusted", "internal,unTrusted"),
        ("internal,untrusted", "internal,"),
        ("internal,untrusted", "untrusted"),
        ("internal,untrusted", "secret,untrusted,untrusted"),
        ("--uses 3", "--uses 0"),
        ("--ttl 1h", "--ttl 0s"),
        ("--ttl 1h", "--ttl 1"),
        ("--ttl 1h", "--ttl -1h"),
        ("--grant notes", "--grant no/tes"),
    ] {
        let line = PREAPPROVE.replace(good, bad);
        assert_ne!(line, PREAPPROVE, "{good}");
        assert!(typed(&line).is_err(), "it is taken: {bad}");
    }
}

#[test]
fn a_label_is_trusted_unless_it_says_untrusted() {
    for (said, untrusted) in [
        ("secret", false),
        ("secret,trusted", false),
        ("secret,untrusted", true),
    ] {
        let line = PREAPPROVE.replace("internal,untrusted", said);
        let Command::Preapprove(args) = typed(&line).unwrap() else {
            panic!("{line}")
        };
        let class = DataClass::Secret;
        assert_eq!(args.label, Label { class, untrusted }, "{said}");
    }
}

#[test]
fn what_is_recorded_needs_a_reason() {
    for line in [
        "grant -",
        "grant more.toml",
        "revoke more",
        "accept-tool mail mail.send",
    ] {
        assert!(typed(line).is_err(), "{line} needs no reason");
        let line = format!("{line} --reason asked");
        assert!(typed(&line).is_ok(), "{line}");
    }
}

#[test]
fn an_accepted_definition_is_asked_about_unless_told_otherwise() {
    let accept = "accept-tool mail mail.send --reason read";
    let Command::AcceptTool(args) = typed(accept).unwrap() else {
        panic!("{accept}")
    };
    assert_eq!((args.yes, args.definition), (false, None));
    let digest = "0a".repeat(32);
    let Command::AcceptTool(args) =
        typed(&format!("{accept} --yes --definition {digest}")).unwrap()
    else {
        panic!("{accept}")
    };
    assert_eq!(
        (args.yes, args.definition),
        (true, Digest::new(digest).ok())
    );
    assert!(typed(&format!("{accept} --definition 0a")).is_err());
}

#[test]
fn sessions_are_named_with_their_role() {
    for line in ["sessions", "session bot", "close bot", "session bot a/b"] {
        assert!(typed(line).is_err(), "{line}");
    }
    for line in [
        "sessions bot",
        "session bot mm-42",
        "close bot mm-42",
        "grants",
        "tools",
    ] {
        assert!(typed(line).is_ok(), "{line}");
    }
}
