use std::fs;
use std::os::unix::fs::symlink;

use client::{Answer, Failure, Label};
use runner::{Access, Folder, Folders, MAX_READ_BYTES, Watch, run};

use crate::fixture::{Files, SECRET};

#[test]
fn a_file_is_read_with_the_label_of_the_longest_folder_that_contains_it() {
    let files = Files::new();
    assert_eq!(
        files.run("read_file", "a.txt").unwrap(),
        Answer {
            content: "a text".into(),
            label: Label::BOTTOM
        }
    );
    assert_eq!(
        files.run("read_file", "secret/k.txt").unwrap(),
        Answer {
            content: "a key".into(),
            label: SECRET
        }
    );
}

#[test]
fn a_link_into_a_folder_of_a_higher_class_has_that_class() {
    let files = Files::new();
    symlink("secret/k.txt", files.path("alias.txt")).unwrap();
    symlink("secret", files.path("alias")).unwrap();
    assert_eq!(files.run("read_file", "alias.txt").unwrap().label, SECRET);
    assert_eq!(files.run("read_file", "alias/k.txt").unwrap().label, SECRET);
    assert_eq!(files.run("list_dir", "alias").unwrap().label, SECRET);
}

#[test]
fn a_folder_can_be_named_through_a_link() {
    let files = Files::new();
    let link = files.root.path().join("link");
    symlink("open", &link).unwrap();
    let folder = Folder {
        path: link.clone(),
        label: SECRET,
        access: Access::Write,
    };
    let folders = Folders::open(&[folder]).unwrap();
    for path in [link.join("a.txt"), files.path("a.txt")] {
        let arguments = serde_json::json!({ "path": path }).to_string();
        assert_eq!(
            run(&folders, "read_file", &arguments, &Watch::default())
                .unwrap()
                .label,
            SECRET
        );
    }
}

#[test]
fn neither_links_nor_dots_nor_a_common_beginning_lead_out() {
    let files = Files::new();
    let outside = files.path("../open-outside/o.txt");
    symlink(outside.canonicalize().unwrap(), files.path("absolute")).unwrap();
    symlink("../open-outside/o.txt", files.path("relative")).unwrap();
    symlink("../open-outside", files.path("folder")).unwrap();
    symlink("secret/../../open-outside/o.txt", files.path("winding")).unwrap();
    for link in ["absolute", "relative", "folder/o.txt", "winding"] {
        files.fails("read_file", link, "leads out of its folder");
    }
    files.fails("list_dir", "folder", "leads out of its folder");
    assert!(files.write("folder/new.txt", "x").is_err());
    files.fails("read_file", "../open-outside/o.txt", "`..`");
    files.fails("read_file", "./a.txt", "must have no");
    let common = files
        .root
        .path()
        .canonicalize()
        .unwrap()
        .join("open-outside/o.txt");
    let Failure(text) = files
        .run_path("read_file", common.to_str().unwrap())
        .unwrap_err();
    assert!(text.contains("lies in no folder"), "{text}");
    assert_eq!(
        files.run_path("read_file", "a.txt").unwrap_err(),
        Failure("a.txt: must be an absolute path".into())
    );
}

#[test]
fn only_regular_files_are_read_and_nothing_waits_for_a_fifo() {
    let files = Files::new();
    nix::unistd::mkfifo(&files.path("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(files.path("socket")).unwrap();
    files.fails("read_file", "fifo", "is a FIFO, not a file");
    files.fails("read_file", "socket", "is a socket");
    files.fails("read_file", "secret", "is a folder, not a file");
    files.fails("list_dir", "a.txt", "is not a folder");
    files.fails("read_file", "none.txt", "does not exist");
    let Failure(text) = files.write("fifo", "x").unwrap_err();
    assert!(text.contains("is a FIFO, not a file"), "{text}");
}

#[test]
fn a_file_that_is_large_or_no_text_is_said_to_be_and_its_content_is_not_told() {
    let files = Files::new();
    fs::write(files.path("b.bin"), b"password \xff").unwrap();
    fs::File::create(files.path("large"))
        .unwrap()
        .set_len(MAX_READ_BYTES + 1)
        .unwrap();
    fs::File::create(files.path("largest"))
        .unwrap()
        .set_len(MAX_READ_BYTES)
        .unwrap();
    let Failure(text) = files.run("read_file", "b.bin").unwrap_err();
    assert!(
        text.contains("is not text in UTF-8") && !text.contains("password"),
        "{text}"
    );
    files.fails("read_file", "large", "is larger than the 4194304 bytes");
    assert_eq!(
        files.run("read_file", "largest").unwrap().content.len() as u64,
        MAX_READ_BYTES
    );
}

#[test]
fn a_write_makes_or_replaces_the_whole_file_and_leaves_nothing_beside_it() {
    let files = Files::new();
    for content in ["first, and long", "second"] {
        let answer = files.write("new.txt", content).unwrap();
        assert_eq!(fs::read_to_string(files.path("new.txt")).unwrap(), content);
        assert!(
            answer
                .content
                .starts_with(&format!("wrote {} bytes", content.len())),
            "{answer:?}"
        );
    }
    let root = files.path("");
    let listed = files
        .run_path("list_dir", root.to_str().unwrap().trim_end_matches('/'))
        .unwrap();
    assert_eq!(listed.content, "a.txt\nnew.txt\nsecret/\n");
}

#[test]
fn what_was_cancelled_before_its_turn_came_is_not_done() {
    let files = Files::new();
    let token = tokio_util::sync::CancellationToken::new();
    token.cancel();
    let arguments = serde_json::json!({"path": files.path("a.txt"), "content": "late"});
    let watch = runner::Watch::new(token);
    let done = runner::run(&files.folders, "write_file", &arguments.to_string(), &watch);
    done.expect_err("cancelled");
    assert_eq!(fs::read_to_string(files.path("a.txt")).unwrap(), "a text");
}

#[test]
fn what_a_write_says_counts_as_nothing_that_the_folder_holds() {
    let files = Files::new();
    let answer = files.write("secret/new.txt", "x").unwrap();
    assert_eq!(answer.label, Label::BOTTOM);
    assert_ne!(
        files.run("read_file", "secret/new.txt").unwrap().label,
        Label::BOTTOM
    );
}

#[test]
fn a_write_goes_through_no_link_and_makes_no_folder() {
    let files = Files::new();
    symlink("a.txt", files.path("link.txt")).unwrap();
    let Failure(text) = files.write("link.txt", "x").unwrap_err();
    assert!(text.contains("is a link, not a file"), "{text}");
    assert_eq!(fs::read_to_string(files.path("a.txt")).unwrap(), "a text");
    let Failure(text) = files.write("none/new.txt", "x").unwrap_err();
    assert!(text.contains("does not exist"), "{text}");
    assert!(files.write("secret", "x").is_err());
}

#[test]
fn a_write_keeps_the_modes_of_the_file_but_never_setuid() {
    use std::os::unix::fs::PermissionsExt;
    let files = Files::new();
    for (before, after) in [(0o640, 0o640), (0o4755, 0o755), (0o600, 0o600)] {
        fs::set_permissions(files.path("a.txt"), fs::Permissions::from_mode(before)).unwrap();
        files.write("a.txt", "x").unwrap();
        let mode = fs::metadata(files.path("a.txt"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o7777, after, "{before:o}");
    }
}

#[test]
fn arguments_are_read_strictly() {
    let files = Files::new();
    let path = files.path("a.txt");
    let path = path.to_str().unwrap();
    for arguments in [
        "".to_owned(),
        "[]".to_owned(),
        "{}".to_owned(),
        r#"{"path":1}"#.to_owned(),
        format!(r#"{{"path":"{path}","more":1}}"#),
        format!(r#"{{"path":"{path}","path":"{path}"}}"#),
        format!(r#"["{path}"]"#),
    ] {
        let Failure(text) =
            run(&files.folders, "read_file", &arguments, &Watch::default()).expect_err(&arguments);
        assert_eq!(
            text, "the arguments must be an object with just `path`, a string",
            "{arguments}"
        );
    }
    let long = format!("/{}", "x".repeat(5000));
    assert!(
        files
            .run_path("read_file", &long)
            .unwrap_err()
            .0
            .ends_with("is longer than 4096 bytes")
    );
}
