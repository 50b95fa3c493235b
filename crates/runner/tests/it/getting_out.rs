//! Files that try to get out of their folder, or to hold the runner up.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use client::{Failure, Label};
use runner::{Access, Folder, Folders, MAX_PATH_BYTES};
use serde_json::json;

use crate::fixture::{Done, Files};

const OUTSIDE: &str = "the-secret-outside";

/// What lies outside stays as it is, and no answer and no failure has any of it.
#[track_caller]
fn stays_in(files: &Files, path: &str) {
    let outside = files.root.path().join("open-outside/o.txt");
    fs::write(&outside, OUTSIDE).unwrap();
    for (tool, result) in files.all(path).into_iter().enumerate() {
        match result {
            Ok(answer) => {
                let text = answer.content;
                assert!(
                    !text.contains(OUTSIDE) && !text.contains("o.txt"),
                    "tool {tool}: {text}"
                );
            }
            Err(Failure(text)) => assert!(!text.contains(OUTSIDE), "tool {tool}: {text}"),
        }
        assert_eq!(
            fs::read_to_string(&outside).unwrap(),
            OUTSIDE,
            "tool {tool}"
        );
    }
    let entries = fs::read_dir(outside.parent().unwrap()).unwrap().count();
    assert_eq!(entries, 1, "something was made outside");
}

#[test]
fn chains_of_links_lead_out_with_no_tool() {
    let files = Files::new();
    let target = files.root.path().join("open-outside");
    symlink(&target, files.path("chain0")).unwrap();
    for link in 1..30 {
        symlink(
            format!("chain{}", link - 1),
            files.path(&format!("chain{link}")),
        )
        .unwrap();
    }
    symlink("../open-outside/o.txt", files.path("secret/out")).unwrap();
    symlink("secret/out", files.path("out")).unwrap();
    for path in ["chain0", "chain5", "chain29", "out", "secret/out"] {
        stays_in(&files, files.path(path).to_str().unwrap());
    }
    for path in ["chain0/o.txt", "chain29/new.txt", "chain29/../o.txt"] {
        stays_in(&files, &format!("{}{path}", files.path("").display()));
    }
}

#[test]
fn links_in_a_circle_and_dangling_ones_end() {
    let files = Files::new();
    symlink("two", files.path("one")).unwrap();
    symlink("one", files.path("two")).unwrap();
    let nowhere = files.root.path().join("open-outside/made");
    symlink(&nowhere, files.path("dangling")).unwrap();
    symlink("not-there", files.path("dangling-inside")).unwrap();
    for path in ["one", "dangling", "dangling-inside", "dangling/x"] {
        for result in files.all(files.path(path).to_str().unwrap()) {
            result.expect_err(path);
        }
    }
    assert!(!nowhere.exists(), "a dangling link was written through");
    assert!(!files.path("not-there").exists());
}

#[test]
fn proc_and_its_links_lead_nowhere() {
    let files = Files::new();
    symlink("/proc/self/root", files.path("root")).unwrap();
    symlink("/proc/self/environ", files.path("environ")).unwrap();
    symlink("/proc/self/cwd", files.path("cwd")).unwrap();
    for path in ["root", "root/etc/passwd", "environ", "cwd"] {
        for result in files.all(files.path(path).to_str().unwrap()) {
            result.expect_err(path);
        }
    }
    let refused = |path: &str| {
        let folder = Folder {
            path: path.into(),
            label: Label::BOTTOM,
            access: Access::Read,
        };
        Folders::open(&[folder]).err().unwrap().to_string()
    };
    for path in ["/proc", "/proc/self", "/sys/kernel"] {
        assert!(refused(path).contains("kernel's own"), "{path}");
    }
    // Serving everything does not serve these.
    let everything = Folder {
        path: "/".into(),
        label: Label::BOTTOM,
        access: Access::Read,
    };
    let folders = Folders::open(&[everything]).unwrap();
    for path in [
        "/proc/self/environ",
        "/proc/version",
        "/sys/kernel/profiling",
    ] {
        let arguments = json!({ "path": path }).to_string();
        let read = runner::run(&folders, "read_file", &arguments, &runner::Watch::default());
        read.expect_err(path);
    }
}

#[test]
fn a_name_in_another_case_is_another_name() {
    let files = Files::new();
    let upper = files.path("A.TXT");
    files
        .call("read_file", &json!({"path": upper}))
        .expect_err("another file");
    let folder = files.path("").display().to_string().to_uppercase();
    for result in files.all(&format!("{folder}A.TXT")) {
        result.expect_err("in no folder");
    }
}

#[test]
fn names_of_64_kib_are_refused_and_told_short() {
    let files = Files::new();
    let name = "n".repeat(64 << 10);
    let nested = "d/".repeat(32 << 10) + "f";
    for path in [&name, &nested, &"\u{e4}".repeat(32 << 10)] {
        for result in files.all(files.path(path).to_str().unwrap()) {
            let Failure(text) = result.expect_err("a long name");
            let rule = format!("is longer than {MAX_PATH_BYTES} bytes");
            assert!(text.ends_with(&rule) && text.len() < 1000, "{}", text.len());
        }
    }
    // One that the runner takes, and the file system does not.
    for result in files.all(files.path(&"n".repeat(300)).to_str().unwrap()) {
        let Failure(text) = result.expect_err("a long name");
        assert!(text.contains("name that is too long"), "{text}");
    }
}

#[test]
fn nothing_waits_for_a_fifo_or_a_socket_or_goes_into_a_device() {
    let files = Files::new();
    nix::unistd::mkfifo(&files.path("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(files.path("socket")).unwrap();
    let device = nix::sys::stat::makedev(1, 5);
    let (kind, mode) = (
        nix::sys::stat::SFlag::S_IFCHR,
        nix::sys::stat::Mode::S_IRWXU,
    );
    let made = nix::sys::stat::mknod(&files.path("zero"), kind, mode, device);
    let mut names = vec!["fifo", "socket"];
    match made {
        Ok(()) => names.push("zero"),
        Err(error) => eprintln!("skipped: a device (it cannot be made here: {error})"),
    }
    for name in &names {
        for result in files.all(files.path(name).to_str().unwrap()) {
            result.expect_err(name);
        }
    }
    // A search meets them, and goes on.
    let found = files
        .call("search_files", &json!({"path": files.path("").to_str().unwrap().trim_end_matches('/'), "pattern": "a"}))
        .unwrap();
    assert!(
        found.content.contains("a.txt:1: a text"),
        "{}",
        found.content
    );
}

#[test]
fn a_sparse_file_of_8_gib_is_refused_by_its_size_and_skipped_by_a_search() {
    let files = Files::new();
    let sparse = fs::File::create(files.path("sparse")).unwrap();
    sparse.set_len(8 << 30).unwrap();
    files.fails("read_file", "sparse", "is larger than");
    let Failure(text) = files.edit("sparse", "a", "b").unwrap_err();
    assert!(text.contains("is larger than"), "{text}");
    let folder = files.path("").display().to_string();
    let asked = json!({"path": folder.trim_end_matches('/'), "pattern": "a text"});
    let found = files.call("search_files", &asked).unwrap().content;
    assert!(
        found.contains("a.txt:1: a text") && found.contains("1 files too large"),
        "{found}"
    );
}

/// A link goes to and fro between a file inside and a secret outside, while every tool is asked for it.
#[test]
fn a_link_that_is_swapped_during_the_call_never_shows_what_is_outside() {
    const ROUNDS: usize = 1000;
    let files = Files::new();
    let seed = std::time::UNIX_EPOCH.elapsed().unwrap().subsec_nanos();
    println!("seed {seed}");
    let outside = files.root.path().join("open-outside");
    fs::write(outside.join("o.txt"), OUTSIDE).unwrap();
    fs::create_dir(files.path("inside")).unwrap();
    fs::write(files.path("inside/o.txt"), "inside").unwrap();
    fs::create_dir(files.path("swapped")).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut state = seed | 1;
            while !done.load(Ordering::Relaxed) {
                // xorshift
                state ^= state << 13;
                state ^= state >> 17;
                state ^= state << 5;
                swap(&files, &outside, state);
            }
        });
        let _done = Done(&done);
        let path = files.path("swapped");
        let inside = path.join("o.txt");
        for round in 0..ROUNDS {
            let results = [
                files.all(path.to_str().unwrap()),
                files.all(inside.to_str().unwrap()),
            ];
            for result in results.into_iter().flatten() {
                let text = match result {
                    Ok(answer) => answer.content,
                    Err(Failure(text)) => text,
                };
                assert!(
                    !text.contains(OUTSIDE),
                    "seed {seed}, round {round}: {text}"
                );
            }
            let now = fs::read_to_string(outside.join("o.txt")).unwrap();
            assert_eq!(now, OUTSIDE, "seed {seed}, round {round}");
        }
    });
    let left: Vec<_> = fs::read_dir(&outside)
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(left, ["o.txt"], "seed {seed}");
}

/// One step of the swapping: a folder, a link out or a link inside takes the place of the one before.
fn swap(files: &Files, outside: &Path, random: u32) {
    let (place, next) = (files.path("swapped"), files.path("next"));
    match random % 4 {
        0 => symlink(outside, &next).unwrap(),
        1 => symlink("inside", &next).unwrap(),
        2 => symlink(outside.join("o.txt"), &next).unwrap(),
        _ => {
            fs::create_dir(&next).unwrap();
            // A file of its own, or a link to the one outside.
            if random & 8 == 0 {
                fs::write(next.join("o.txt"), "own").unwrap();
            } else {
                symlink(outside.join("o.txt"), next.join("o.txt")).unwrap();
            }
        }
    }
    // A folder is no link's to replace, and the other way round: away with what is there.
    if fs::remove_file(&place).is_err() {
        let _ = fs::rename(&place, files.path("old"));
        let _ = fs::remove_dir_all(files.path("old"));
    }
    if fs::rename(&next, &place).is_err() {
        // A call has made something there meanwhile.
        let _ = fs::remove_dir_all(&place);
        let _ = fs::remove_file(&place);
        let _ = fs::remove_file(&next);
        let _ = fs::remove_dir_all(&next);
    }
}
