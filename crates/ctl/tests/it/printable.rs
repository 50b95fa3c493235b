use std::collections::BTreeSet;

use ctl::demo::{WIDTH, fold};
use ctl::printable::{MAX_MARKS, json, json_lines, lines, literal, text};
use icu_properties::CodePointMapData;
use icu_properties::CodePointSetData;
use icu_properties::props::{
    BidiClass, BidiControl, DefaultIgnorableCodePoint, GeneralCategory, GeneralCategoryGroup,
    JoinControl, VariationSelector, WhiteSpace,
};
use proptest::prelude::*;

/// Every character that there is.
fn all() -> impl Iterator<Item = char> {
    (0..=0x0010_ffff).filter_map(char::from_u32)
}

/// What must never reach a terminal as it is, by the tables alone.
fn moves_or_hides(c: char) -> bool {
    if (' '..='~').contains(&c) {
        return false; // Most of what is shown; the tables are slow without optimisation.
    }
    let category = CodePointMapData::<GeneralCategory>::new().get(c);
    let bidi = CodePointMapData::<BidiClass>::new().get(c);
    CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c)
        || CodePointSetData::new::<BidiControl>().contains(c)
        || CodePointSetData::new::<VariationSelector>().contains(c)
        || CodePointSetData::new::<JoinControl>().contains(c)
        || (CodePointSetData::new::<WhiteSpace>().contains(c) && c != ' ')
        || GeneralCategoryGroup::Other.contains(category)
        || (GeneralCategoryGroup::Separator.contains(category) && c != ' ')
        || [BidiClass::RightToLeft, BidiClass::ArabicLetter].contains(&bidi)
}

/// Reads back what [`text`] gives.
fn read(shown: &str) -> String {
    let mut read = String::new();
    let mut rest = shown;
    while let Some(c) = rest.chars().next() {
        let escape = rest.strip_prefix("\\u{").and_then(|it| it.split_once('}'));
        if let Some((code, behind)) = escape {
            let code = u32::from_str_radix(code, 16).unwrap();
            read.push(char::from_u32(code).unwrap());
            rest = behind;
        } else if let Some(behind) = rest.strip_prefix("\\\\") {
            read.push('\\');
            rest = behind;
        } else {
            assert_ne!(c, '\\', "{shown}");
            read.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    read
}

#[test]
fn letters_of_many_languages_are_shown_and_nothing_that_hides_or_moves() {
    for plain in [
        "Grüße, 你好 Ωδ 42!",
        "„So“ – 5 € … ✓",
        "Привет, мир",
        "हिन्दी ภาษาไทย 한국어",
    ] {
        assert_eq!(text(plain), plain);
    }
    for (hidden, shown) in [
        ("a\u{1b}[2Jb", "a\\u{1b}[2Jb"),
        ("a\r\nb\t", "a\\u{d}\\u{a}b\\u{9}"),
        ("a\u{202e}b", "a\\u{202e}b"),
        ("a\u{2066}b\u{2069}", "a\\u{2066}b\\u{2069}"),
        ("a\u{200b}b\u{feff}", "a\\u{200b}b\\u{feff}"),
        ("a\u{fe0f}\u{e0100}", "a\\u{fe0f}\\u{e0100}"),
        ("\u{3164}\u{2800}", "\\u{3164}\\u{2800}"),
        ("a\u{5d0}b", "a\\u{5d0}b"),
        ("a\u{a0}b\u{2028}", "a\\u{a0}b\\u{2028}"),
        ("e\u{301}", "e\\u{301}"),
        ("\u{e0041}", "\\u{e0041}"),
        ("\u{1f44d}\u{1f3ff}", "\u{1f44d}\\u{1f3ff}"),
        ("\u{1f1e9}\u{1f1ea}", "\\u{1f1e9}\\u{1f1ea}"),
        ("\u{1100}\u{1161}", "\\u{1100}\\u{1161}"),
        ("\u{e000}\u{378}", "\\u{e000}\\u{378}"),
    ] {
        assert_eq!(text(hidden), shown);
        assert_eq!(
            literal(hidden)
                .replace("\\r\\n", "\\u{d}\\u{a}")
                .replace("\\t", "\\u{9}"),
            shown
        );
    }
}

#[test]
fn no_character_that_hides_or_moves_reaches_a_terminal_and_no_two_are_shown_the_same() {
    let mut seen = BTreeSet::new();
    for c in all() {
        let shown = text(&c.to_string());
        // On a letter that carries marks.
        let carried = text(&format!("\u{e01}{c}"));
        for shown in [&shown, &carried] {
            let raw = shown.chars().find(|c| moves_or_hides(*c));
            assert_eq!(raw, None, "of {:x}", u32::from(c));
        }
        assert_eq!(read(&shown), c.to_string());
        assert!(seen.insert(shown), "{:x}", u32::from(c));
    }
}

#[test]
fn marks_are_shown_on_letters_of_their_script_and_do_not_pile_up() {
    let piled = format!("\u{e01}{}", "\u{e48}".repeat(MAX_MARKS + 2));
    let shown = format!(
        "\u{e01}{}{}",
        "\u{e48}".repeat(MAX_MARKS),
        "\\u{e48}".repeat(2)
    );
    assert_eq!(text(&piled), shown);
    assert_eq!(text("a\u{e48}"), "a\\u{e48}");
    assert_eq!(text("\u{e48}"), "\\u{e48}");
    // What there is a character for is not shown written with a mark.
    assert_eq!(text("\u{928}\u{93c}"), "\u{928}\\u{93c}");
    assert_eq!(text("\u{212a}"), "\\u{212a}");
}

#[test]
fn nobody_can_write_an_escape_of_his_own() {
    assert_eq!(text("\\u{202e}"), "\\\\u{202e}");
    let content = serde_json::json!({ "a": "\\u{202e}" }).to_string();
    assert_eq!(json(&content), "{\"a\":\"\\\\u{202e}\"}");
    assert_eq!(json("\"\\u{202e}\""), "not JSON: \"\\\\u{202e}\"");
    assert_eq!(json_lines("[\n\"\u{202e}\"]"), "[\n\"\\u{202e}\"]");
}

#[test]
fn a_literal_tells_its_quotes_and_line_ends_from_those_around_it() {
    assert_eq!(literal("a\"b\\n\n\r\t\u{7}"), "a\\\"b\\\\n\\n\\r\\t\\u{7}");
}

#[test]
fn many_lines_keep_their_ends() {
    assert_eq!(lines("a\n\tb\u{7}"), "a\n\tb\\u{7}");
}

/// Texts of what is hard to tell apart.
fn tricky() -> impl Strategy<Value = String> {
    let one = prop_oneof![
        any::<char>(),
        Just('\\'),
        Just('u'),
        prop::sample::select(vec![
            '{', '}', '2', '0', 'e', '"', '\n', 'n', '\u{202e}', '\u{200d}'
        ]),
        prop::sample::select(vec!['\u{e01}', '\u{e48}', '\u{928}', '\u{93c}', '\u{301}']),
    ];
    prop::collection::vec(one, 0..24).prop_map(|chars| chars.into_iter().collect())
}

proptest! {
    #[test]
    fn every_text_can_be_read_back_from_what_is_shown(content in tricky()) {
        let shown = text(&content);
        prop_assert!(!shown.chars().any(moves_or_hides), "{shown:?}");
        prop_assert_eq!(read(&shown), content);
    }

    #[test]
    fn no_two_texts_are_shown_the_same_as_json(one in tricky(), other in tricky()) {
        let quoted = |text: &String| serde_json::to_string(text).unwrap();
        for (a, b) in [
            (one.clone(), other.clone()),
            (quoted(&one), quoted(&other)),
            (one.clone(), quoted(&other)),
            (json(&quoted(&one)), quoted(&one)),
        ] {
            prop_assert_eq!(a == b, json(&a) == json(&b), "{:?} {:?}", a, b);
            prop_assert_eq!(a == b, literal(&a) == literal(&b), "{:?} {:?}", a, b);
        }
    }
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
