use std::fs;
use std::os::unix::fs::symlink;

use client::{Failure, Label};
use runner::{Access, Folder, Folders, MAX_WRITE_BYTES, Watch, run};
use serde_json::json;

use crate::fixture::{Done, Files, SECRET};

#[track_caller]
fn refused(result: Result<client::Answer, Failure>, why: &str) {
    let Failure(text) = result.expect_err(why);
    assert!(text.contains(why), "{text}");
}

#[test]
fn one_text_takes_the_place_of_another_where_it_stands_once() {
    let files = Files::new();
    let answer = files.edit("a.txt", "a text", "an essay").unwrap();
    assert!(answer.content.starts_with("replaced it once"), "{answer:?}");
    assert_eq!(fs::read_to_string(files.path("a.txt")).unwrap(), "an essay");
    assert_eq!(
        files.edit("secret/k.txt", "key", "lock").unwrap().label,
        SECRET
    );
    let names: Vec<_> = fs::read_dir(files.path("")).unwrap().collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn a_text_that_stands_there_often_needs_all() {
    let files = Files::new();
    fs::write(files.path("a.txt"), "x y x").unwrap();
    refused(files.edit("a.txt", "x", "z"), "stands in it 2 times");
    let all = json!({"path": files.path("a.txt"), "old": "x", "new": "z", "all": true});
    files.call("edit_file", &all).unwrap();
    assert_eq!(fs::read_to_string(files.path("a.txt")).unwrap(), "z y z");
}

#[test]
fn an_edit_that_cannot_be_meant_changes_nothing() {
    let files = Files::new();
    fs::write(files.path("bin"), b"a \xff").unwrap();
    symlink("a.txt", files.path("link")).unwrap();
    refused(files.edit("a.txt", "b", "c"), "does not stand in it");
    refused(files.edit("a.txt", "", "c"), "`old` is empty");
    refused(files.edit("a.txt", "a", "a"), "the same");
    refused(files.edit("bin", "a", "b"), "not text");
    refused(files.edit("link", "a", "b"), "is a link");
    refused(files.edit("none", "a", "b"), "does not exist");
    assert_eq!(fs::read_to_string(files.path("a.txt")).unwrap(), "a text");
}

#[test]
fn a_failure_tells_nothing_of_a_file_that_counts_as_more_than_a_failure_does() {
    let files = Files::new();
    fs::write(files.path("secret/k.txt"), "key key pin").unwrap();
    fs::write(files.path("secret/binary"), b"key\xff").unwrap();
    let large = "x".repeat(MAX_WRITE_BYTES - 1);
    let edit = |below: &str, old: &str, new: &str| {
        let asked = json!({"path": files.path(below), "old": old, "new": new, "all": true});
        let done = files.call("edit_file", &asked);
        let Failure(text) = done.expect_err("not edited");
        text.replace(files.path(below).to_str().unwrap(), "")
    };
    let often = json!({"path": files.path("secret/k.txt"), "old": "key", "new": "n"});
    let Failure(often) = files.call("edit_file", &often).expect_err("twice");
    let often = often.replace(files.path("secret/k.txt").to_str().unwrap(), "");
    for told in [
        edit("secret/k.txt", "none", "n"),
        edit("secret/k.txt", "none", &large),
        edit("secret/k.txt", "pin", &large),
        edit("secret/k.txt", "key", &large),
        edit("secret/binary", "key", "n"),
    ] {
        assert_eq!(told, often);
    }
    // One that counts as no more says why.
    assert!(edit("a.txt", "none", "n").contains("does not stand in it;"));
}

#[test]
fn a_short_text_for_a_long_one_many_times_is_refused_before_it_is_made() {
    let files = Files::new();
    fs::write(files.path("a.txt"), "x".repeat(1 << 20)).unwrap();
    let all =
        json!({"path": files.path("a.txt"), "old": "x", "new": "y".repeat(1 << 20), "all": true});
    refused(files.call("edit_file", &all), "would become larger");
}

/// Somebody else replaces the file all the time; each of the two may lose, but no edit of another's text counts.
#[test]
fn a_file_that_changes_meanwhile_is_not_overwritten_by_an_edit_of_its_old_text() {
    let files = Files::new();
    let path = files.path("a.txt");
    let done = std::sync::atomic::AtomicBool::new(false);
    let (mut edited, mut refusals) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0_u64;
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                number += 1;
                fs::write(files.path("beside"), format!("a {number}")).unwrap();
                fs::rename(files.path("beside"), &path).unwrap();
            }
        });
        let _done = Done(&done);
        for _ in 0..500 {
            match files.edit("a.txt", "a", "b") {
                Ok(_) => edited += 1,
                Err(Failure(text)) => {
                    let expected = text.contains("changed by somebody else")
                        || text.contains("does not stand");
                    assert!(expected, "{text}");
                    refusals += usize::from(text.contains("changed by somebody else"));
                }
            }
        }
    });
    println!("{edited} edited, {refusals} refused");
    assert!(refusals > 0, "no edit met a change");
}

#[test]
fn what_is_served_for_reading_only_is_not_changed_by_any_way_in() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    fs::create_dir_all(root.join("rw/ro")).unwrap();
    fs::write(root.join("rw/ro/a.txt"), "as it was").unwrap();
    symlink("ro", root.join("rw/link")).unwrap();
    let folder = |path: &str, access| Folder {
        path: root.join(path),
        label: Label::BOTTOM,
        access,
    };
    let folders =
        Folders::open(&[folder("rw", Access::Write), folder("rw/ro", Access::Read)]).unwrap();
    for path in ["rw/ro/a.txt", "rw/link/a.txt", "rw/link/new.txt"] {
        let path = root.join(path);
        for (tool, arguments) in [
            ("write_file", json!({"path": path, "content": "x"})),
            ("edit_file", json!({"path": path, "old": "as", "new": "x"})),
        ] {
            let Failure(text) =
                run(&folders, tool, &arguments.to_string(), &Watch::default()).unwrap_err();
            assert!(
                text.contains("for reading only"),
                "{tool} {}: {text}",
                path.display()
            );
        }
    }
    assert_eq!(
        fs::read_to_string(root.join("rw/ro/a.txt")).unwrap(),
        "as it was"
    );
    let write = json!({"path": root.join("rw/b.txt"), "content": "x"}).to_string();
    run(&folders, "write_file", &write, &Watch::default()).unwrap();
}
