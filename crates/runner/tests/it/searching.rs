use std::fs;
use std::os::unix::fs::symlink;

use client::{Failure, Label};
use runner::{MAX_MATCHES, MAX_SEARCH_DEPTH, MAX_SEARCH_FILE, MAX_SEARCH_LINE, Watch, run};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::fixture::{Files, SECRET};

fn folder(files: &Files) -> String {
    let path = files.path("").display().to_string();
    path.trim_end_matches('/').to_owned()
}

fn search(files: &Files, mut asked: Value) -> Result<client::Answer, Failure> {
    asked["path"] = folder(files).into();
    files.call("search_files", &asked)
}

#[track_caller]
fn finds(files: &Files, asked: Value) -> String {
    search(files, asked).expect("an answer").content
}

#[test]
fn lines_are_told_with_their_file_and_number_in_order() {
    let files = Files::new();
    fs::create_dir(files.path("b")).unwrap();
    fs::write(files.path("b/c.txt"), "one\nTwo\nthree two\n").unwrap();
    fs::write(files.path("z.md"), "two").unwrap();
    let text = finds(&files, json!({"pattern": "two"}));
    assert_eq!(
        text,
        "b/c.txt:3: three two\nz.md:1: two\n-- 2 found, 4 files searched\n"
    );
    let text = finds(
        &files,
        json!({"pattern": "^t[wh]", "regex": true, "ignore_case": true}),
    );
    assert_eq!(
        text,
        "b/c.txt:2: Two\nb/c.txt:3: three two\nz.md:1: two\n-- 3 found, 4 files searched\n"
    );
    let text = finds(&files, json!({"pattern": "two", "glob": "*.md"}));
    assert_eq!(text, "z.md:1: two\n-- 1 found, 1 files searched\n");
    // A pattern is a text unless it is said to be more.
    assert_eq!(
        finds(&files, json!({"pattern": "t.o"})),
        "-- 0 found, 4 files searched\n"
    );
}

#[test]
fn a_glob_alone_is_about_names_and_reads_nothing() {
    let files = Files::new();
    assert_eq!(
        finds(&files, json!({"glob": "*.txt"})),
        "a.txt\nsecret/k.txt\n-- 2 found\n"
    );
    assert_eq!(
        finds(&files, json!({"glob": "secret/*"})),
        "secret/k.txt\n-- 1 found\n"
    );
}

#[test]
fn a_result_counts_as_all_that_was_looked_into() {
    let files = Files::new();
    // Nothing in the secret folder matches, which is something to know about it.
    let answer = search(&files, json!({"pattern": "a text"})).unwrap();
    assert_eq!(answer.label, SECRET);
    fs::create_dir(files.path("plain")).unwrap();
    let plain = json!({"path": files.path("plain"), "pattern": "a"});
    assert_eq!(
        files.call("search_files", &plain).unwrap().label,
        Label::BOTTOM
    );
}

#[test]
fn links_binary_and_large_files_are_skipped_and_counted() {
    let files = Files::new();
    symlink("secret", files.path("link")).unwrap();
    fs::write(files.path("bin"), b"a text\0").unwrap();
    fs::write(files.path("latin"), b"a text \xe4").unwrap();
    fs::File::create(files.path("large"))
        .unwrap()
        .set_len(MAX_SEARCH_FILE + 1)
        .unwrap();
    assert_eq!(
        finds(&files, json!({"pattern": "a text"})),
        "a.txt:1: a text\n-- 1 found, 2 files searched, 1 links not followed, 2 files that are no text, \
         1 files too large\n"
    );
}

#[test]
fn a_search_ends_at_its_bounds_and_says_so() {
    let files = Files::new();
    fs::write(files.path("many"), "x\n".repeat(MAX_MATCHES + 5)).unwrap();
    let text = finds(&files, json!({"pattern": "x"}));
    assert!(
        text.contains("-- 1000 found") && text.contains("stopped early"),
        "{text}"
    );
    let mut deep = files.path("");
    for _ in 0..MAX_SEARCH_DEPTH + 3 {
        deep.push("d");
    }
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("bottom.txt"), "x").unwrap();
    let text = finds(&files, json!({"glob": "bottom.txt"}));
    assert_eq!(text, "-- 0 found, 1 folders too deep\n");
    fs::write(files.path("long"), "y".repeat(5000)).unwrap();
    let text = finds(&files, json!({"pattern": "yy"}));
    assert!(text.len() < 600 && text.contains("y\u{2026}\n"), "{text}");
}

#[test]
fn patterns_that_would_cost_too_much_are_refused() {
    let files = Files::new();
    for (asked, why) in [
        (json!({}), "give `pattern`"),
        (json!({"pattern": "", "glob": ""}), "give `pattern`"),
        (
            json!({"pattern": "(", "regex": true}),
            "no regular expression",
        ),
        (
            json!({"pattern": "(((a{100}){100}){100})", "regex": true}),
            "too large",
        ),
        (json!({"pattern": "a".repeat(2000)}), "at most 1024 bytes"),
        (json!({"glob": "a{"}), "no glob"),
    ] {
        let Failure(text) = search(&files, asked.clone()).expect_err(&asked.to_string());
        assert!(text.contains(why), "{asked}: {text}");
    }
}

#[test]
fn a_pattern_that_is_slow_on_a_long_line_ends() {
    let files = Files::new();
    // No two places alike, so that nothing of the work can be remembered.
    let mut random: u64 = 1;
    let letters = (0..4 << 20).map(|_| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        if random >> 63 == 0 { 'a' } else { 'b' }
    });
    fs::write(files.path("long.txt"), letters.collect::<String>()).unwrap();
    // Hundreds of states at each byte.
    let slow = "(?-u:a[ab]{900}[ab]{900}[c-z0-9A-Z]{4})";
    let path = folder(&files);
    let asked = json!({"path": path, "pattern": slow, "regex": true}).to_string();
    let (sender, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        sender.send(run(
            &files.folders,
            "search_files",
            &asked,
            &Watch::default(),
        ))
    });
    // The whole line would take minutes, and nothing would end it.
    let ended = ended.recv_timeout(std::time::Duration::from_secs(50));
    ended.expect("it ends").expect("an answer");
}

#[test]
fn of_a_long_line_the_beginning_is_searched_and_that_is_said() {
    let files = Files::new();
    let long = format!("early{}late", "-".repeat(MAX_SEARCH_LINE));
    fs::write(files.path("long.txt"), long).unwrap();
    let text = finds(&files, json!({"pattern": "early", "glob": "long.txt"}));
    assert!(text.starts_with("long.txt:1: early--"), "{text}");
    let text = finds(&files, json!({"pattern": "late", "glob": "long.txt"}));
    assert_eq!(
        text,
        "-- 0 found, 1 files searched, 1 lines looked into at their beginning only\n"
    );
}

#[test]
fn a_cancel_ends_a_search() {
    let files = Files::new();
    let token = CancellationToken::new();
    token.cancel();
    let asked = json!({"path": folder(&files), "pattern": "a"}).to_string();
    let Failure(text) =
        run(&files.folders, "search_files", &asked, &Watch::new(token)).unwrap_err();
    assert!(text.ends_with(": cancelled"), "{text}");
}

#[test]
fn a_name_with_a_line_break_stays_on_one_line() {
    let files = Files::new();
    fs::write(files.path("two\nlines"), "q").unwrap();
    let text = finds(&files, json!({"pattern": "q"}));
    assert!(text.starts_with("two\u{fffd}lines:1: q\n"), "{text}");
}
