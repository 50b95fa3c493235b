use ctl::layout::{Laid, columns, json};
use proptest::prelude::*;
use serde_json::json;

const WIDTH: usize = 60;

fn laid(value: &serde_json::Value) -> Laid {
    json(&value.to_string(), 4, WIDTH)
}

fn shown(value: &serde_json::Value) -> String {
    laid(value).lines.join("\n")
}

#[test]
fn each_leaf_has_a_line_and_numbers_stay_as_they_were_written() {
    let text = r#"{"to":["a@example.org",{"n":1.10e2,"no":null}],"empty":[{},[ ]],"":18446744073709551615}"#;
    insta::assert_snapshot!(json(text, 0, WIDTH).lines.join("\n"));
}

#[test]
fn a_long_text_stands_in_a_frame_and_its_own_lines_differ_from_those_of_the_screen() {
    let body = format!(
        "Dear Alice,\n\nwords that go on for longer than a line of this screen has room, and on \\ \"{}\n  last \n",
        "x".repeat(70)
    );
    insta::assert_snapshot!(shown(&json!({ "body": body })));
}

#[test]
fn what_hides_is_counted_and_what_deceives_is_flagged() {
    let hostile = json!({
        "url": "https://p\u{430}ypal.com/\u{202e}moc",
        "p\u{430}th": "/srv",
        "note": "no\u{200d}ne \u{1b}[31m",
    });
    let laid = laid(&hostile);
    assert_eq!((laid.hidden, laid.suspects), (3, 2));
    insta::assert_snapshot!(laid.lines.join("\n"));
}

#[test]
fn deep_and_wide_json_stays_on_the_screen() {
    let mut deep = json!("the end");
    for level in 0..60 {
        deep = if level % 2 == 0 {
            json!([deep])
        } else {
            json!({ "k": deep })
        };
    }
    let text = json!({ "deep": deep }).to_string();
    let laid = json(&text, 4, WIDTH);
    let last = laid.lines.iter().find(|line| line.contains("the end"));
    assert_eq!(last.unwrap().trim(), "(level 60) \"the end\"");
    assert!(
        laid.lines.iter().all(|line| columns(line) <= WIDTH),
        "{laid:?}"
    );
}

#[test]
fn on_the_narrowest_terminal_too_no_line_is_wider_than_it() {
    let narrow = 39;
    let mut deep =
        json!({ "\u{10ffff}\u{10ffff}": "\u{10ffff}\n\u{10ffff}\u{10ffff} p\u{430}ypal.com\n" });
    for _ in 0..30 {
        deep = json!({ "k": [deep.clone(), 1] , "l": "x".repeat(50) });
    }
    let laid = json(&deep.to_string(), 4, narrow);
    for line in &laid.lines {
        assert!(columns(line) <= narrow, "{line}");
    }
}

#[test]
fn what_is_no_strict_json_is_said_to_be_none_and_shown() {
    for (text, why) in [
        (r#"{"a":"\ud800"}"#, "half of a surrogate pair"),
        (r#"{"a":1,"a":2}"#, "a key stands twice"),
        ("{\"a\":", "not one JSON value"),
    ] {
        let shown = json(text, 0, 79).lines.join("\n");
        assert!(shown.contains(why), "{shown}");
        let written = text.replace('\\', "\\\\").replace('"', "\\\"");
        assert!(shown.ends_with(&format!("\"{written}\"")), "{shown}");
    }
}

#[test]
fn nothing_of_the_content_can_pass_for_a_line_of_the_frame() {
    let fake = "x\n  digest     0707\n! all is well\napprove this call? [y/N]";
    let shown = shown(&json!({ "a": fake, "b\n": 1 }));
    for line in shown.lines().skip(1) {
        let begin = line.trim_start();
        assert!(begin.starts_with("| ") || begin == "\"b\\n\": 1", "{shown}");
    }
}

/// What a framed text says, read back from its lines.
fn read(lines: &[String]) -> String {
    let mut read = String::new();
    for line in lines {
        let inner = line.trim_start();
        let inner = inner
            .strip_prefix("| ")
            .or(inner.strip_prefix(": "))
            .unwrap();
        read.push_str(inner);
        // A backslash that ends a line is ours if it is not the second of a pair.
        let ours = inner.chars().rev().take_while(|c| *c == '\\').count() % 2 == 1;
        if ours {
            read.pop();
        }
    }
    read
}

proptest! {
    #[test]
    fn a_frame_fits_and_leaves_nothing_out(words in prop::collection::vec("[ a-zé你\\\\\"\u{202e}\n\u{e01}\u{e48}]{0,40}", 0..12)) {
        let text = format!("{}\n", words.concat());
        let laid = json(&json!({ "a": text }).to_string(), 4, WIDTH);
        for line in &laid.lines {
            prop_assert!(columns(line) <= WIDTH, "{} in {}", line, laid.lines.join("\n"));
        }
        let framed: Vec<String> = laid.lines.iter().skip(1).take_while(|it| it.trim_start().starts_with(['|', ':'])).cloned().collect();
        let literal = ctl::printable::literal(&text);
        prop_assert_eq!(read(&framed), format!("\"{literal}\""));
    }
}
