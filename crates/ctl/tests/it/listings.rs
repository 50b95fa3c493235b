use client::proto::control::{GrantStatus, SessionStatus, StandingStatus, ToolState, ToolStatus};
use client::proto::{self, ControlReply, Digest, GrantId, Raise, RoleName, Timestamp, ToolName};
use client::{DataClass, Label};
use ctl::{render, whole::whole};

const SEEN: Label = Label {
    class: DataClass::Internal,
    untrusted: true,
};

fn time(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis).unwrap()
}

fn session(name: &str) -> SessionStatus {
    SessionStatus {
        closed: false,
        session: proto::SessionId::new(name).unwrap(),
        owner: 1000,
        label: SEEN,
        went_into: "mm-43\u{1b}[2J".to_owned(),
        in_flight: 2,
        watermark: 0,
        last_used: time(1000),
    }
}

fn grant(name: &str) -> GrantStatus {
    GrantStatus {
        grant: GrantId::new(name).unwrap(),
        effect: "allow".to_owned(),
        why: "for\u{202e} now".to_owned(),
        runtime: true,
        uses: 3,
        max_uses: 10,
        expires: time(61_000),
    }
}

fn tool(state: ToolState, description: &str) -> ToolStatus {
    ToolStatus {
        runner: RoleName::new("mail").unwrap(),
        tool: ToolName::new("mail.send").unwrap(),
        state,
        definition: Digest::from_bytes([state as u8 + 1; 32]),
        description: description.to_owned(),
        input_schema: "{\"type\":\"object\"}".to_owned(),
        served_by: 1,
    }
}

#[track_caller]
fn has(shown: &str, parts: &[&str]) {
    for part in parts {
        assert!(shown.contains(part), "{part} is not in:\n{shown}");
    }
    assert!(
        shown.chars().all(|c| c == '\n' || matches!(c, ' '..='~')),
        "a raw character is in:\n{shown}"
    );
}

#[test]
fn a_list_that_came_in_pieces_is_one_list() {
    let sessions = |names: &[&str]| ControlReply::Sessions {
        sessions: names.iter().map(|name| session(name)).collect(),
    };
    let pieces = vec![sessions(&["a"]), sessions(&["b", "c"]), sessions(&[])];
    assert_eq!(whole(pieces), Some(sessions(&["a", "b", "c"])));
    let grants = |names: &[&str]| ControlReply::Grants {
        grants: names.iter().map(|name| grant(name)).collect(),
    };
    assert_eq!(
        whole(vec![grants(&["a"]), grants(&["b"])]),
        Some(grants(&["a", "b"]))
    );
    let tools = |descriptions: &[&str]| ControlReply::Tools {
        tools: descriptions
            .iter()
            .map(|said| tool(ToolState::Held, said))
            .collect(),
    };
    assert_eq!(
        whole(vec![tools(&["a"]), tools(&["b"])]),
        Some(tools(&["a", "b"]))
    );
    assert_eq!(whole(vec![]), None);
}

#[test]
fn sessions_show_their_labels_and_where_they_went() {
    let reply = ControlReply::Sessions {
        sessions: vec![session("mm-42")],
    };
    has(
        &render::reply(&reply, 61_000),
        &[
            "mm-42 ",
            "internal, untrusted",
            "1m 0s ago; went into mm-43\\u{1b}[2J",
        ],
    );
    let none = ControlReply::Sessions { sessions: vec![] };
    has(
        &render::reply(&none, 0),
        &["no sessions; `rolebroker status`"],
    );
}

#[test]
fn a_session_shows_what_raised_it_and_what_is_approved_in_it() {
    let reply = ControlReply::Session {
        session: session("mm-42"),
        raised_by: vec![Raise {
            call: proto::CallId(3),
            tool: ToolName::new("mail.search").unwrap(),
            label: SEEN,
        }],
        standing: vec![StandingStatus {
            approval: proto::ApprovalId::new("a7").unwrap(),
            tool: ToolName::new("write_file").unwrap(),
            grants: ["notes", "late"].map(|id| GrantId::new(id).unwrap()).into(),
            label: SEEN,
            uses_left: 4,
            expires: time(3_700_000),
            by: RoleName::new("boss").unwrap(),
        }],
    };
    has(
        &render::reply(&reply, 0),
        &[
            "mm-42  internal, untrusted\n",
            "raised by  call 3 of mail.search: internal, untrusted\n",
            "standing   a7: write_file where notes, late asks, up to internal, untrusted; \
             calls left: 4; lapses in 1h 1m; given by boss\n",
        ],
    );
}

#[test]
fn grants_show_what_is_left_of_them() {
    let for_good = GrantStatus {
        runtime: false,
        max_uses: 0,
        expires: time(0),
        why: String::new(),
        ..grant("notes")
    };
    let reply = ControlReply::Grants {
        grants: vec![for_good, grant("more")],
    };
    let shown = render::reply(&reply, 0);
    has(
        &shown,
        &[
            "3 of 10  lapses in 1m 1s",
            "    for\\u{202e} now\n",
            "run time",
            "  never\n",
        ],
    );
    assert!(shown.lines().all(|line| line.len() <= 90), "{shown}");
}

#[test]
fn a_held_tool_says_what_to_type_and_no_description_fills_the_list() {
    let long = "\u{1b}[8m".to_owned() + &"x".repeat(5000);
    let reply = ControlReply::Tools {
        tools: vec![
            tool(ToolState::Pinned, "Sends."),
            tool(ToolState::Held, &long),
        ],
    };
    let shown = render::reply(&reply, 0);
    has(
        &shown,
        &[
            "pinned",
            "  Sends.\n",
            "\\u{1b}[8mx",
            "x...\n",
            "rolebroker accept-tool mail mail.send --reason WHY\n",
        ],
    );
    assert!(shown.lines().all(|line| line.len() <= 110), "{shown}");
}

#[test]
fn a_held_definition_is_shown_by_the_lines_that_differ_from_the_one_in_force() {
    let long = format!(
        "Sends a mail.\n+ schema: the same\u{202e}\\u{{41}}{}",
        "y".repeat(9000)
    );
    let held = ToolStatus {
        input_schema: r#"{"type":"object","properties":{"to":{"type":"string"},"bcc":{}}}"#
            .to_owned(),
        ..tool(ToolState::Held, &long)
    };
    let before = ToolStatus {
        input_schema: r#"{"properties":{"to":{"type":"string"}},"type":"object"}"#.to_owned(),
        ..tool(ToolState::Pinned, "Sends a mail.")
    };
    let shown = render::definition(&held, Some(&before));
    has(
        &shown,
        &[
            &format!("\n- accepted before: digest {}\n", "02".repeat(32)),
            &format!("\n+ offered now, and held: digest {}\n", "03".repeat(32)),
            "  description\n      Sends a mail.\n",
            // What a runner wrote stands behind our own mark, and its own escapes are no escapes.
            "    + + schema: the same\\u{202e}\\\\u{41}yyy",
            &"y".repeat(9000),
            "    +     \"bcc\": {},\n",
        ],
    );
    let changed: Vec<&str> = shown
        .lines()
        .filter(|line| line.starts_with("    +") || line.starts_with("    -"))
        .collect();
    assert_eq!(changed.len(), 2, "{shown}");
}

#[test]
fn a_schema_that_says_the_same_in_another_way_is_said_to() {
    let held = ToolStatus {
        input_schema: "{ \"type\" : \"object\" }".to_owned(),
        ..tool(ToolState::Held, "Sends a mail.")
    };
    let shown = render::definition(&held, Some(&tool(ToolState::Pinned, "Sends a mail.")));
    has(
        &shown,
        &[
            "  description: the same\n",
            "  input schema: the same\n    (the same JSON, written in another way)\n",
        ],
    );
}

#[test]
fn a_difference_of_very_many_lines_is_told_too() {
    let lines = |from: u32| -> String {
        (from..from + 30_000)
            .map(|n| format!("{}\n", n.wrapping_mul(2_654_435_761) % 7))
            .collect()
    };
    let held = tool(ToolState::Held, &lines(9));
    let shown = render::definition(&held, Some(&tool(ToolState::Pinned, &lines(1))));
    assert!(shown.contains("    + "), "{} bytes", shown.len());
}

#[test]
fn a_first_definition_is_said_to_be_the_first() {
    let held = tool(ToolState::Held, "");
    let shown = render::definition(&held, None);
    has(
        &shown,
        &[
            "mail offers mail.send\nnothing was accepted before\n",
            "    (empty)\n",
        ],
    );
    assert!(
        shown.contains("    | {\n    |   \"type\": \"object\"\n    | }\n"),
        "{shown}"
    );
}
