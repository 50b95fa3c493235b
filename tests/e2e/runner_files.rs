//! The file tools through the daemon: what they give, what label it has, and that nothing gets out.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::harness::PATIENCE;
use crate::runner_stage::Stage;

const FOLDERS: &str = r#"
[[folder]]
path = "WORK"
class = "public"
untrusted = false
write = true
"#;

/// A public folder for writing, with `keys`, a secret one for reading, in it.
fn stage() -> Stage {
    // The folder below has to be there before the runner starts.
    Stage::start_by(
        &format!(
            "{FOLDERS}[[folder]]\npath = \"WORK/keys\"\nclass = \"secret\"\nuntrusted = true\n"
        ),
        |command| {
            let config = command
                .get_args()
                .nth(1)
                .expect("a configuration")
                .to_owned();
            let folder = std::path::Path::new(&config).parent().expect("a folder");
            fs::create_dir(folder.join("work/keys")).expect("a folder");
            fs::write(folder.join("work/keys/k.txt"), "the key").expect("writes");
            command
        },
    )
}

#[track_caller]
fn label(body: &Value) -> (&str, bool) {
    assert_eq!(body["status"], "result", "{body}");
    (
        body["class"].as_str().expect("a class"),
        body["untrusted"].as_bool().expect("a flag"),
    )
}

#[test]
fn five_tools_serve_a_folder_and_each_result_has_the_label_of_what_was_read() {
    let mut stage = stage();
    let path = stage.work().join("a.txt");
    let written = stage.call("write_file", &json!({"path": path, "content": "one two"}));
    assert_eq!(label(&written), ("public", false));
    let edited = stage.call(
        "edit_file",
        &json!({"path": path, "old": "two", "new": "three"}),
    );
    assert_eq!(label(&edited), ("public", false));
    let read = stage.call("read_file", &json!({"path": path}));
    assert_eq!(
        (label(&read), &read["content"]),
        (("public", false), &json!("one three"))
    );
    // The folder of another class is in it: a listing shows its name, a search looks into it.
    let listed = stage.call("list_dir", &json!({"path": stage.work()}));
    assert_eq!(
        (label(&listed), &listed["content"]),
        (("public", false), &json!("a.txt\nkeys/\n"))
    );
    let found = stage.call(
        "search_files",
        &json!({"path": stage.work(), "pattern": "one"}),
    );
    assert_eq!(label(&found), ("secret", true));
    assert!(
        found["content"]
            .as_str()
            .unwrap()
            .starts_with("a.txt:1: one three\n"),
        "{found}"
    );
    let told = stage.fails(
        "write_file",
        &json!({"path": stage.work().join("keys/n"), "content": ""}),
    );
    assert!(told.contains("for reading only"), "{told}");
}

/// Ends a thread that runs beside a test, also when the test fails.
struct Done<'a>(&'a std::sync::atomic::AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

#[test]
fn links_swapped_meanwhile_show_nothing_from_outside() {
    const ROUNDS: usize = 300;
    let mut stage = Stage::start(FOLDERS);
    let outside = stage.outside().join("outside.txt");
    fs::write(&outside, "the-secret-outside").unwrap();
    let (work, place) = (stage.work(), stage.work().join("swapped"));
    fs::write(work.join("inside.txt"), "inside").unwrap();
    symlink("inside.txt", &place).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    let mut seen = [0; 2];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut out = false;
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                out = !out;
                let target = if out {
                    outside.clone()
                } else {
                    "inside.txt".into()
                };
                symlink(target, work.join("next")).unwrap();
                fs::rename(work.join("next"), &place).unwrap();
            }
        });
        let _done = Done(&done);
        for _ in 0..ROUNDS {
            let body = stage.call("read_file", &json!({"path": place}));
            let result = body["status"] == "result";
            seen[usize::from(result)] += 1;
            assert!(!body.to_string().contains("the-secret-outside"), "{body}");
            assert!(!result || body["content"] == "inside", "{body}");
        }
    });
    println!("{} refused, {} read", seen[0], seen[1]);
}

#[test]
fn what_could_hold_it_up_fails_and_the_next_call_is_served() {
    let mut stage = Stage::start(FOLDERS);
    let work = stage.work();
    nix::unistd::mkfifo(&work.join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    fs::File::create(work.join("sparse"))
        .unwrap()
        .set_len(8 << 30)
        .unwrap();
    symlink("/proc/self/root/etc/passwd", work.join("proc")).unwrap();
    let long = work.join("n".repeat(64 << 10));
    for path in [
        work.join("fifo"),
        work.join("sparse"),
        work.join("proc"),
        long,
    ] {
        let told = stage.fails("read_file", &json!({"path": path}));
        assert!(
            told.starts_with("runner_failed: ") && !told.contains("root:"),
            "{told}"
        );
    }
    fs::write(work.join("a.txt"), "served").unwrap();
    let read = stage.call("read_file", &json!({"path": work.join("a.txt")}));
    assert_eq!(read["content"], "served");
}

#[test]
fn a_large_file_comes_in_parts_and_whole() {
    let mut stage = Stage::start(FOLDERS);
    let content = "a line of text, and \u{e4} b\n".repeat(120_000);
    let path = stage.work().join("large.txt");
    fs::write(&path, &content).unwrap();
    let (id, _) = stage.ask("read_file", &json!({"path": path}));
    let (mut whole, mut parts) = (String::new(), 0);
    let begun = std::time::Instant::now();
    loop {
        assert!(begun.elapsed() < PATIENCE, "no end");
        let envelope = stage.bot.answer(id);
        let body = &envelope["msg"]["body"];
        whole.push_str(body["content"].as_str().expect("content"));
        parts += 1;
        if envelope["final"] == true {
            break;
        }
    }
    assert!(parts > 5, "{parts} parts");
    assert!(
        whole == content,
        "{} bytes of {}",
        whole.len(),
        content.len()
    );
}
