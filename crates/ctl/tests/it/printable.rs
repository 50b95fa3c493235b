use ctl::demo::{WIDTH, fold};
use ctl::printable::{json, lines, text};

#[test]
fn letters_of_many_languages_are_shown_and_nothing_that_hides_or_moves() {
    assert_eq!(text("Grüße, 你好 Ωδ 42!"), "Grüße, 你好 Ωδ 42!");
    for (hidden, shown) in [
        ("a\u{1b}[2Jb", "a\\u{1b}[2Jb"),
        ("a\r\nb\t", "a\\u{d}\\u{a}b\\u{9}"),
        ("a\u{202e}b", "a\\u{202e}b"),
        ("a\u{200b}b\u{feff}", "a\\u{200b}b\\u{feff}"),
        ("\u{3164}", "\\u{3164}"),
        ("a\u{5d0}b", "a\\u{5d0}b"),
        ("a\u{a0}b", "a\\u{a0}b"),
        ("e\u{301}", "e\\u{301}"),
        ("\u{e0041}", "\\u{e0041}"),
    ] {
        assert_eq!(text(hidden), shown);
        assert_eq!(json(hidden), shown);
    }
}

#[test]
fn every_character_that_is_shown_as_it_is_is_ascii_or_alphanumeric() {
    for c in (0..=0x0010_ffff).filter_map(char::from_u32) {
        let shown = json(&c.to_string());
        let plain = (' '..='~').contains(&c) || c.is_alphanumeric();
        assert!(plain || shown.starts_with("\\u{"), "{:x}", u32::from(c));
    }
}

#[test]
fn nobody_can_write_an_escape_of_his_own() {
    assert_eq!(text("\\u{202e}"), "\\\\u{202e}");
    let content = serde_json::json!({ "a": "\\u{202e}" }).to_string();
    assert_eq!(json(&content), "{\"a\":\"\\\\u{202e}\"}");
}

#[test]
fn many_lines_keep_their_ends() {
    assert_eq!(lines("a\n\tb\u{7}"), "a\n\tb\\u{7}");
}

#[test]
fn folded_lines_fit_and_lose_nothing_but_the_spaces_at_their_ends() {
    let long = "x".repeat(200);
    for told in [
        "",
        "one",
        "ä ö ü and so on, until it is long enough for more than one line of a screen",
        &long,
    ] {
        let folded = fold("1  ", told, WIDTH);
        assert!(
            folded.iter().all(|line| line.chars().count() <= WIDTH),
            "{folded:?}"
        );
        let whole: String = folded.concat().split_whitespace().collect();
        assert_eq!(
            whole,
            format!("1{}", told.split_whitespace().collect::<String>())
        );
    }
    assert_eq!(fold("> ", "ab cd", 4), ["> ab", "  cd"]);
}
