//! Commands as real processes, below real guards.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use client::{Answer, Failure};
use runner::Folders;
use runner::command::{MAX_COMMANDS, Runs};
use runner::config::Config;
use runner::confine::{Confine, missing};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// How long a test waits for something that must happen.
const PATIENCE: Duration = Duration::from_secs(50);

/// A folder that commands may write, and a command `try` that runs a shell script, given by the test.
struct Shop {
    root: tempfile::TempDir,
    more: String,
    confine: Confine,
}

impl Shop {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("work")).unwrap();
        Self {
            root,
            more: String::new(),
            confine: Confine::BestEffort,
        }
    }

    /// More keys of the command.
    fn with(mut self, keys: &str) -> Self {
        self.more.push_str(keys);
        self.more.push('\n');
        self
    }

    fn unconfined(mut self) -> Self {
        self.confine = Confine::Off;
        self
    }

    fn work(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap().join("work")
    }

    fn config(&self, script: &str, arguments: &str) -> Config {
        let (work, more) = (self.work(), &self.more);
        fs::write(work.join("script"), script).unwrap();
        let work = work.display();
        let text = format!(
            "[[folder]]\npath = \"{work}\"\nclass = \"public\"\nuntrusted = false\nwrite = true\n\
             [[command]]\nname = \"try\"\ndescription = \"tries\"\ncwd = \"{work}\"\nwrite = [\"{work}\"]\n\
             argv = [\"/bin/sh\", \"script\"]\n{more}\n{arguments}"
        );
        Config::parse("test.toml", &text).unwrap_or_else(|error| panic!("{error}"))
    }

    async fn run_until(&self, script: &str, stop: CancellationToken) -> Result<Answer, Failure> {
        let config = self.config(script, "");
        let folders = Folders::open(&config.folders).unwrap();
        let runs = Runs::new(env!("CARGO_BIN_EXE_rolebroker-runner"), self.confine).unwrap();
        let command = &config.commands[0];
        let filled = command.fill(&folders, "{}").unwrap();
        let run = runs.run(command, filled, stop.cancelled(), |_| async {});
        tokio::time::timeout(PATIENCE, run).await.expect("it ends")
    }

    async fn run(&self, script: &str) -> Result<Answer, Failure> {
        self.run_until(script, CancellationToken::new()).await
    }

    #[track_caller]
    fn pids(&self) -> Vec<i32> {
        let text = fs::read_to_string(self.work().join("pids")).expect("the pids");
        text.lines()
            .map(|line| line.trim().parse().unwrap())
            .collect()
    }

    /// Every process that wrote its number is gone.
    #[track_caller]
    fn all_gone(&self, at_least: usize) {
        let pids = self.pids();
        assert!(pids.len() >= at_least, "{pids:?}");
        for pid in pids {
            assert!(!alive(pid), "process {pid} still runs");
        }
    }

    /// Waits until so many processes have written their numbers.
    async fn wait_for_pids(&self, count: usize) {
        let begun = Instant::now();
        let path = self.work().join("pids");
        while fs::read_to_string(&path).map_or(0, |text| text.lines().count()) < count {
            assert!(begun.elapsed() < PATIENCE, "the command did not get there");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Whether any of its threads runs: the first one may have ended before the others.
fn alive(pid: i32) -> bool {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return false;
    };
    tasks.flatten().any(|task| {
        let stat = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        stat.rsplit_once(") ")
            .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
    })
}

#[track_caller]
fn told(result: Result<Answer, Failure>, why: &str) -> String {
    let Failure(text) = result.expect_err(why);
    assert!(text.contains(why), "{text}");
    text
}

fn has_landlock() -> bool {
    let there = missing()
        .iter()
        .all(|lack| !lack.feature.starts_with("landlock"));
    if !there {
        eprintln!("skipped: what needs Landlock (this kernel lacks it)");
    }
    there
}

#[tokio::test]
async fn what_it_writes_is_the_result_at_the_label_that_was_declared() {
    let shop = Shop::new().with("class = \"internal\"\nuntrusted = false");
    let answer = shop.run("echo out; echo err >&2").await.unwrap();
    assert_eq!(answer.content, "out\n");
    assert_eq!(
        (answer.label.class, answer.label.untrusted),
        (client::DataClass::Internal, false)
    );
    let answer = Shop::new().run("echo out").await.unwrap();
    let worst = (client::DataClass::Confidential, true);
    assert_eq!(
        (answer.label.class, answer.label.untrusted),
        worst,
        "where nothing is said"
    );
}

#[tokio::test]
async fn an_exit_code_is_told_with_the_end_of_standard_error() {
    let shop = Shop::new();
    told(
        shop.run("echo why >&2; exit 3").await,
        "exit code 3; its standard error: why",
    );
    told(
        shop.run("exit 4").await,
        "exit code 4; it said nothing on standard error",
    );
    let text = told(
        shop.run("seq 100000 >&2; exit 5").await,
        "exit code 5; the end of its standard",
    );
    assert!(
        text.ends_with("100000") && text.len() < 2300,
        "{}",
        text.len()
    );
    told(shop.run("kill -SEGV $$").await, "was ended by SIGSEGV");
    let shop = Shop::new().with("ok_codes = [0, 1]");
    assert_eq!(
        shop.run("echo none; exit 1").await.unwrap().content,
        "none\n"
    );
}

#[tokio::test]
async fn its_environment_is_what_was_declared_and_nothing_else() {
    let shop = Shop::new().with("env = { PATH = \"/usr/bin:/bin\", WHO = \"you\" }");
    let text = shop.run("env | sort").await.unwrap().content;
    let own = |line: &&str| {
        !["PWD=", "OLDPWD=", "SHLVL=", "_="]
            .iter()
            .any(|k| line.starts_with(k))
    };
    assert_eq!(
        text.lines().filter(own).collect::<Vec<_>>(),
        ["PATH=/usr/bin:/bin", "WHO=you"]
    );
}

#[tokio::test]
async fn it_reads_nothing_from_standard_input_and_waits_for_nobody() {
    let text = Shop::new()
        .run("cat; echo end; ls -l /proc/$$/fd >/dev/null 2>&1; readlink /dev/fd/0 || true")
        .await;
    assert!(text.unwrap().content.starts_with("end\n"));
}

#[tokio::test]
async fn a_declared_text_is_its_standard_input() {
    let shop = Shop::new().with("stdin = \"text\"");
    let config = shop.config(
        "cat",
        "[command.arguments.text]\ntype = \"string\"\nmax_len = 1000000",
    );
    let folders = Folders::open(&config.folders).unwrap();
    let runs = Runs::new(env!("CARGO_BIN_EXE_rolebroker-runner"), Confine::BestEffort).unwrap();
    // More than a pipe holds.
    let text = "-a line\n".repeat(50_000);
    let filled = config.commands[0]
        .fill(&folders, &json!({"text": text}).to_string())
        .unwrap();
    let run = runs.run(
        &config.commands[0],
        filled,
        std::future::pending(),
        |_| async {},
    );
    assert_eq!(run.await.unwrap().content, text);
}

#[tokio::test]
async fn children_that_fork_away_into_sessions_of_their_own_end_with_it() {
    let shop = Shop::new();
    let script = "
        for i in 1 2 3; do
            setsid sh -c 'echo $$ >>pids; trap \"\" TERM HUP; (setsid sh -c \"echo \\$\\$ >>pids; sleep 1000\" &); sleep 1000' &
        done >/dev/null 2>&1
        while [ \"$(wc -l <pids 2>/dev/null || echo 0)\" -lt 6 ]; do sleep 0.01; done
        echo started";
    assert_eq!(shop.run(script).await.unwrap().content, "started\n");
    shop.all_gone(6);
}

#[tokio::test]
async fn a_process_whose_first_thread_has_ended_ends_with_it_and_so_do_its_children() {
    if cfg!(not(target_arch = "x86_64")) {
        eprintln!("skipped: the numbers of system calls are those of x86_64");
        return;
    }
    // Without confinement it can see its own state.
    let shop = Shop::new().unconfined();
    // Its first thread leaves by exit, not exit_group: it shows as a zombie, and runs on.
    let script = r#"
        setsid perl -Mthreads -e '
            threads->create(sub {
                my $gone = 0;
                until ($gone) {
                    open(my $f, "<", "/proc/$$/stat"); $gone = <$f> =~ /\) Z/;
                    select(undef, undef, undef, 0.01);
                }
                open(my $o, ">>", "pids"); print $o "$$
"; close $o;
                system("echo \$\$ >>pids; exec sleep 1000");
            });
            syscall(60, 0);' >/dev/null 2>&1 &
        while [ "$(wc -l <pids 2>/dev/null || echo 0)" -lt 2 ]; do sleep 0.01; done
        echo started"#;
    assert_eq!(shop.run(script).await.unwrap().content, "started\n");
    shop.all_gone(2);
}

#[tokio::test]
async fn what_ignores_term_is_killed_when_its_time_is_over() {
    let shop = Shop::new().with("timeout = \"300ms\"\ngrace = \"100ms\"");
    let script = "trap '' TERM; echo $$ >>pids; (trap '' TERM; sh -c 'echo $$ >>pids; sleep 1000') & while :; do sleep 1; done";
    told(
        shop.run(script).await,
        "took longer than the 0.3 s that it may",
    );
    shop.all_gone(1);
}

#[tokio::test]
async fn what_heeds_term_has_its_grace() {
    let shop = Shop::new().with("timeout = \"300ms\"\ngrace = \"5s\"");
    told(
        shop.run("trap 'echo tidied >done; exit 0' TERM; while :; do sleep 0.01; done")
            .await,
        "took longer",
    );
    assert_eq!(
        fs::read_to_string(shop.work().join("done")).unwrap(),
        "tidied\n"
    );
}

#[tokio::test]
async fn a_cancel_ends_all_of_it() {
    let shop = Shop::new().with("grace = \"100ms\"");
    let stop = CancellationToken::new();
    let script = "trap '' TERM; echo $$ >>pids; setsid sh -c 'trap \"\" TERM; echo $$ >>pids; sleep 1000' & while :; do sleep 1; done";
    let canceller = async {
        shop.wait_for_pids(2).await;
        stop.cancel();
    };
    let (result, ()) = tokio::join!(shop.run_until(script, stop.clone()), canceller);
    told(result, "cancelled");
    shop.all_gone(2);
}

#[tokio::test]
async fn a_flood_on_either_output_ends_it() {
    let shop = Shop::new().with("output = \"64KiB\"");
    for script in [
        "echo $$ >>pids; exec yes",
        "echo $$ >>pids; exec yes >&2",
        "echo $$ >>pids; exec cat /dev/zero",
    ] {
        told(shop.run(script).await, "wrote more than the 65536 bytes");
    }
    shop.all_gone(3);
}

#[tokio::test]
async fn memory_files_and_file_sizes_are_bounded() {
    let shop = Shop::new().with("memory = \"256MiB\"\nopen_files = 32\nfile_size = \"1MiB\"");
    let text = shop
        .run("ulimit -v; ulimit -n; ulimit -f; ulimit -c")
        .await
        .unwrap()
        .content;
    assert_eq!(text, "262144\n32\n2048\n0\n");
    shop.run("dd if=/dev/zero of=big bs=65536 count=32")
        .await
        .expect_err("a big file");
    assert!(fs::metadata(shop.work().join("big")).unwrap().len() <= 1 << 20);
    shop.run("exec dd if=/dev/zero of=/dev/null bs=1G count=1")
        .await
        .expect_err("much memory");
}

#[tokio::test]
async fn processor_time_is_bounded() {
    let shop = Shop::new().with("cpu = \"1s\"");
    let result = shop.run("while :; do :; done").await;
    told(
        result,
        "used more than the 1 seconds of processor time that it may",
    );
}

#[tokio::test]
async fn the_least_memory_that_can_be_declared_is_enough_to_start() {
    let shop = Shop::new().with("memory = \"32MiB\"");
    assert_eq!(shop.run("ulimit -v").await.unwrap().content, "32768\n");
}

#[tokio::test]
async fn it_holds_no_file_that_somebody_left_open_to_the_runner() {
    use std::os::fd::AsRawFd as _;
    let shop = Shop::new();
    fs::write(shop.root.path().join("outside"), "outside").unwrap();
    let open = fs::File::open(shop.root.path().join("outside")).unwrap();
    let none = nix::fcntl::FdFlag::empty();
    nix::fcntl::fcntl(&open, nix::fcntl::FcntlArg::F_SETFD(none)).unwrap();
    let number = open.as_raw_fd();
    let script = format!("exec perl -e 'open(my $f, \"<&={number}\") or exit 8; print <$f>'");
    told(shop.run(&script).await, "exit code 8");
}

#[tokio::test]
async fn a_cancel_is_not_kept_waiting_by_a_guard_that_somebody_stopped() {
    // Only without confinement can it reach its guard; the test's own patience is less than this time.
    let shop = Shop::new()
        .unconfined()
        .with("timeout = \"1h\"\ngrace = \"100ms\"");
    let stop = CancellationToken::new();
    let canceller = async {
        shop.wait_for_pids(1).await;
        stop.cancel();
    };
    let script = "kill -STOP $PPID; echo $$ >>pids; exec sleep 1000";
    let (result, ()) = tokio::join!(shop.run_until(script, stop.clone()), canceller);
    result.expect_err("an end");
    shop.all_gone(1);
}

#[tokio::test]
async fn runs_that_nobody_waits_for_any_more_make_room_for_others() {
    let shop = Shop::new();
    let config = shop.config("exec sleep 1000", "");
    let folders = Folders::open(&config.folders).unwrap();
    let runs = Runs::new(env!("CARGO_BIN_EXE_rolebroker-runner"), Confine::BestEffort).unwrap();
    let start = || {
        let filled = config.commands[0].fill(&folders, "{}").unwrap();
        let pending = std::future::pending();
        runs.run(&config.commands[0], filled, pending, |_| async {})
    };
    for _ in 0..MAX_COMMANDS {
        // Polled once: then it runs, and is dropped.
        let mut run = Box::pin(start());
        let polled = futures_poll_once(run.as_mut()).await;
        assert!(polled.is_none(), "it runs");
    }
    let mut one_more = Box::pin(start());
    let polled = futures_poll_once(one_more.as_mut()).await;
    assert!(polled.is_none(), "{polled:?}");
}

/// What it gives if it gives it at once.
async fn futures_poll_once<F: Future + Unpin>(mut future: F) -> Option<F::Output> {
    std::future::poll_fn(|context| {
        let polled = std::pin::Pin::new(&mut future).poll(context);
        std::task::Poll::Ready(match polled {
            std::task::Poll::Ready(value) => Some(value),
            std::task::Poll::Pending => None,
        })
    })
    .await
}

#[tokio::test]
async fn a_confined_command_cannot_signal_its_guard_or_read_what_was_not_declared() {
    if !has_landlock() {
        return;
    }
    let shop = Shop::new();
    let outside = shop.root.path().join("outside");
    fs::write(&outside, "secret").unwrap();
    told(
        shop.run("kill -KILL $PPID && exit 9; exit 8").await,
        "exit code 8",
    );
    let cat = format!(
        "cat {0} && exit 9; echo x >{0} && exit 9; exit 8",
        outside.display()
    );
    let text = told(shop.run(&cat).await, "exit code 8");
    assert!(!text.contains("secret"), "{text}");
    assert_eq!(fs::read_to_string(&outside).unwrap(), "secret");
    std::os::unix::fs::symlink(&outside, shop.work().join("link")).unwrap();
    told(shop.run("cat link && exit 9; exit 8").await, "exit code 8");
    told(
        shop.run("cat /proc/$PPID/environ && exit 9; exit 8").await,
        "exit code 8",
    );
    assert_eq!(
        shop.run("echo in >own; cat own").await.unwrap().content,
        "in\n"
    );
    // As it is without: the test can fail.
    let shop = Shop::new().unconfined();
    let outside = shop.root.path().join("outside");
    fs::write(&outside, "secret").unwrap();
    let cat = format!("cat {}", outside.display());
    assert_eq!(shop.run(&cat).await.unwrap().content, "secret");
}

const OPENS: &str = r#"exec perl -MSocket -e '
    for my $f (AF_INET, AF_INET6, AF_UNIX) {
        my $kind = $f == AF_UNIX ? "unix" : "inet";
        print socket(my $s, $f, SOCK_STREAM, 0) ? "$kind open\n" : "$kind $!\n";
    }
    print socketpair(my $a, my $b, AF_UNIX, SOCK_STREAM, 0) ? "pair open\n" : "pair $!\n";'"#;

#[tokio::test]
async fn it_opens_no_socket_unless_the_network_is_declared_and_never_a_local_one() {
    let no = "Operation not permitted";
    let text = Shop::new().run(OPENS).await.unwrap().content;
    assert_eq!(
        text,
        format!("inet {no}\ninet {no}\nunix {no}\npair open\n")
    );
    let text = Shop::new()
        .with("network = true")
        .run(OPENS)
        .await
        .unwrap()
        .content;
    assert_eq!(
        text,
        format!("inet open\ninet open\nunix {no}\npair open\n")
    );
    let text = Shop::new().unconfined().run(OPENS).await.unwrap().content;
    assert_eq!(
        text, "inet open\ninet open\nunix open\npair open\n",
        "without, for comparison"
    );
}

#[tokio::test]
async fn it_traces_mounts_and_makes_namespaces_for_nobody() {
    let script = r#"exec perl -e '
        for my $call (101, 165, 272, 250, 425, 321, 310) { # ptrace mount unshare keyctl io_uring bpf process_vm_readv
            my $r = syscall($call, 0, 0, 0, 0, 0);
            print "$call ", ($r < 0 && $! == 1) ? "forbidden" : "let through", "\n";
        }
        my $r = syscall(56, 0x10000000 | 17, 0, 0, 0, 0); # clone with CLONE_NEWUSER
        if ($r == 0) { exit 0 }
        print "clone ", $r < 0 && $! == 1 ? "forbidden" : "let through", "\n";'"#;
    if cfg!(not(target_arch = "x86_64")) {
        eprintln!("skipped: the numbers of system calls are those of x86_64");
        return;
    }
    let text = Shop::new().run(script).await.unwrap().content;
    assert_eq!(text.lines().count(), 8, "{text}");
    assert!(
        text.lines().all(|line| line.ends_with("forbidden")),
        "{text}"
    );
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_a_failure_in_words() {
    let shop = Shop::new();
    let mut config = shop.config("true", "");
    config.commands[0].program = shop.work().join("none");
    let folders = Folders::open(&config.folders).unwrap();
    let runs = Runs::new(env!("CARGO_BIN_EXE_rolebroker-runner"), Confine::BestEffort).unwrap();
    let filled = config.commands[0].fill(&folders, "{}").unwrap();
    let run = runs.run(
        &config.commands[0],
        filled,
        std::future::pending(),
        |_| async {},
    );
    told(run.await, "none cannot be started: No such file");
}

/// A command whose arguments are all there are.
fn typed(work: &Path) -> (Config, Folders) {
    let work = work.display();
    let text = format!(
        r#"
        [[folder]]
        path = "{work}"
        class = "public"
        untrusted = false
        write = true
        [[command]]
        name = "typed"
        description = "tries"
        argv = ["/bin/echo", "--n={{number}}", "{{word}}", "{{verbose}}", "{{names}}", "--at={{path}}", "{{free}}"]
        [command.arguments.number]
        type = "integer"
        min = 1
        max = 9
        [command.arguments.word]
        type = "string"
        one_of = ["up", "down"]
        [command.arguments.verbose]
        type = "flag"
        text = "--verbose"
        [command.arguments.names]
        type = "list"
        regex = "[a-z-]+"
        max_items = 2
        [command.arguments.path]
        type = "path"
        optional = true
        [command.arguments.free]
        type = "string"
        max_len = 8
        allow_dash = true
        optional = true
        "#
    );
    let config = Config::parse("typed.toml", &text).unwrap_or_else(|error| panic!("{error}"));
    let folders = Folders::open(&config.folders).unwrap();
    (config, folders)
}

#[test]
fn arguments_go_where_they_stand_and_nowhere_else() {
    let shop = Shop::new();
    fs::write(shop.work().join("f"), "").unwrap();
    let (config, folders) = typed(&shop.work());
    let fill = |arguments: Value| config.commands[0].fill(&folders, &arguments.to_string());
    let path = shop.work().join("f");
    let all = json!({"number": 3, "word": "up", "verbose": true, "names": ["a", "b"], "path": path, "free": "-x; $(y)"});
    let at = format!("--at={}", path.display());
    assert_eq!(
        fill(all).unwrap().argv,
        ["--n=3", "up", "--verbose", "a", "b", &at, "-x; $(y)"]
    );
    let few = json!({"number": 9, "word": "down", "verbose": false, "names": []});
    assert_eq!(fill(few).unwrap().argv, ["--n=9", "down"]);
}

#[test]
fn a_path_is_refused_where_it_counts_as_more_than_the_output() {
    let shop = Shop::new();
    fs::create_dir(shop.work().join("keys")).unwrap();
    let (config, _) = typed(&shop.work());
    // Named through a link, and on the command line: neither of which the configuration can see.
    let through = shop.root.path().join("through");
    std::os::unix::fs::symlink(shop.work().join("keys"), &through).unwrap();
    let mut all = config.folders.clone();
    all.push(format!("{}:secret", through.display()).parse().unwrap());
    let folders = Folders::open(&all).unwrap();
    let fill = |path: &str| {
        let path = shop.work().join(path);
        let asked = json!({"number": 3, "word": "up", "verbose": false, "names": [], "path": path});
        config.commands[0].fill(&folders, &asked.to_string())
    };
    let text = fill("keys").expect_err("a secret");
    assert!(text.contains("more than the command's output"), "{text}");
    fill("script").expect_err("not there");
    fs::write(shop.work().join("script"), "").unwrap();
    fill("script").unwrap();
}

#[test]
fn arguments_that_break_their_rules_are_refused_and_not_repeated() {
    let shop = Shop::new();
    fs::write(shop.root.path().join("outside"), "").unwrap();
    std::os::unix::fs::symlink("../outside", shop.work().join("link")).unwrap();
    let (config, folders) = typed(&shop.work());
    let good = json!({"number": 3, "word": "up", "names": ["a"]});
    for (name, value, why) in [
        ("number", json!(0), "from 1 to 9"),
        ("number", json!(10), "from 1 to 9"),
        ("number", json!("3"), "from 1 to 9"),
        ("number", json!(1.5), "from 1 to 9"),
        ("word", json!("left"), "one of up, down"),
        ("word", json!(["up"]), "must be a string"),
        ("verbose", json!("--help"), "true or false"),
        ("names", json!("a"), "list of strings"),
        ("names", json!(["a", "b", "c"]), "0 to 2 items"),
        ("names", json!(["a\n"]), "must match"),
        ("names", json!(["-rf"]), "may not begin with `-`"),
        ("free", json!("123456789"), "at most 8 bytes"),
        ("free", json!("a\0b"), "no NUL"),
        ("path", json!("/etc/passwd"), "in no folder"),
        ("path", json!(shop.work().join("link")), "leads out"),
        ("path", json!(shop.work().join("none")), "does not exist"),
        ("path", json!("-f"), "absolute path"),
        ("more", json!("sesame"), "and no others"),
    ] {
        let mut asked = good.clone();
        asked[name] = value.clone();
        let text = config.commands[0]
            .fill(&folders, &asked.to_string())
            .expect_err(why);
        assert!(text.contains(why), "{name}: {text}");
        assert!(!text.contains("sesame") && !text.contains("rf"), "{text}");
    }
    config.commands[0]
        .fill(&folders, r#"{"number":3}"#)
        .expect_err("a word is missing");
    config.commands[0]
        .fill(&folders, r#"{"number":3,"number":4}"#)
        .expect_err("twice");
}
