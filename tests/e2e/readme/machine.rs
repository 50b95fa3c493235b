//! "With real users, as a service": on a machine that has nothing but its system below /usr. It is a root of its own
//! in a mount namespace; there is no systemd, so the test starts what the units would, as their users.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Command;

use nix::unistd::geteuid;
use tempfile::TempDir;

use super::{approval, blocks, lines};
use crate::harness::{Program, Terminal, finished, program};

const TOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// Who types.
const PERSON: &str = "ann";
const AGENT: &str = "rolebroker-agent";

/// Makes the root at `$1`, notes its own process in `$2`, and keeps both until it is ended.
const MAKE_ROOT: &str = r#"
set -e
echo $$ > "$2"
cd "$1"
mount -t tmpfs -o mode=0755 none .
cd "$1"
mkdir -p usr etc run srv home/ann root tmp var/lib proc dev
for it in bin sbin lib lib32 lib64; do
    if [ -L /$it ]; then cp -a /$it .; elif [ -d /$it ]; then mkdir $it; mount --bind -o ro /$it $it; fi
done
mount --bind /usr usr
mount -o remount,bind,ro usr
mount -t tmpfs -o mode=0755 none usr/local
mount --rbind /dev dev
mount --rbind /proc proc
chmod 1777 tmp
cp /etc/ld.so.cache etc/ 2>/dev/null || true
echo 'root:x:0:0::/root:/bin/sh
ann:x:64041:64041::/home/ann:/bin/sh' > etc/passwd
echo 'root:x:0:
ann:x:64041:' > etc/group
chown 64041:64041 home/ann
echo made >&2
exec sleep infinity
"#;

/// The machine; it ends with the test.
struct Machine {
    _root: Program,
    pid: String,
    folder: TempDir,
}

impl Machine {
    /// `None`, with one line that says so, where there cannot be one.
    fn new() -> Option<Machine> {
        let can = |command: &mut Command| command.output().is_ok_and(|it| it.status.success());
        let able = geteuid().is_root()
            && can(
                Command::new("unshare").args(["--mount", "mount", "-t", "tmpfs", "none", "/mnt"])
            )
            && can(Command::new("nsenter").arg("--version"))
            && can(Command::new("setpriv").args(["--reuid", "1", "true"]))
            && can(Command::new("systemd-sysusers").arg("--version"));
        if !able {
            // Past the capture of what passing tests print.
            let _ = writeln!(
                std::io::stderr(),
                "skipped: the README on a machine of its own (needs root, unshare --mount, nsenter, setpriv, \
                 systemd-sysusers)"
            );
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("root")).expect("a folder");
        let pid = folder.path().join("pid");
        let mut command = Command::new("unshare");
        command.args(["--mount", "bash", "-c", MAKE_ROOT, "-"]);
        command.arg(folder.path().join("root")).arg(&pid);
        let mut root = Program::start(&mut command);
        root.says("made");
        let pid = fs::read_to_string(pid).expect("a pid").trim().to_owned();
        Some(Machine {
            _root: root,
            pid,
            folder,
        })
    }

    /// A command outside of the root, where its files can be seen.
    fn beside(&self, command: &str) -> Command {
        let mut all = Command::new("nsenter");
        all.arg(format!("--mount=/proc/{}/ns/mnt", self.pid))
            .arg(command);
        all
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    /// One of its files.
    fn file(&self, path: &str) -> PathBuf {
        PathBuf::from(format!(
            "/proc/{}/root{}{path}",
            self.pid,
            self.root().display()
        ))
    }

    /// A line as a user of the machine types it, with an environment as after `sudo`.
    fn line(&self, user: &str, line: &str) -> Command {
        let mut command = self.beside("chroot");
        command.arg(self.root());
        command.args([
            "setpriv",
            "--reuid",
            user,
            "--regid",
            user,
            "--init-groups",
            "--",
        ]);
        command.args(["bash", "-c", &format!("exec {line}")]);
        command.env_clear().env("TERM", "xterm");
        command.env("PATH", "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        if user != PERSON {
            command.env("SUDO_USER", PERSON);
        }
        command
    }

    /// What `make install` does, from the programs beside this test.
    fn install(&self, line: &str) {
        let built = program("rolebrokerd");
        let built = built.parent().expect("a folder").display();
        let mut make = self.beside("make");
        make.args(["-s", "-C", TOP]).args(line.split(' ').skip(1));
        make.arg(format!("BUILT={built}"))
            .arg("MANUAL=/nonexistent");
        make.arg(format!("DESTDIR={}", self.root().display()));
        make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
        finished(&mut make, 0);
    }

    /// What systemd does to start a unit: its folders, its user, its command.
    #[track_caller]
    fn starts(&self, unit: &str) -> Program {
        let (file, instance) = match unit.split_once('@') {
            Some((template, instance)) => (format!("{template}@.service"), instance),
            None => (format!("{unit}.service"), ""),
        };
        let file = self.file(&format!("/usr/local/lib/systemd/system/{file}"));
        let text = fs::read_to_string(file)
            .expect("the unit")
            .replace("%i", instance);
        let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key));
        let user = value("User=").expect("a user");
        for (key, above) in [
            ("RuntimeDirectory=", "/run"),
            ("StateDirectory=", "/var/lib"),
        ] {
            if let Some(name) = value(key) {
                let mode = value(&key.replace("Directory=", "DirectoryMode=")).expect("a mode");
                let made = format!("install -d -o {user} -g {user} -m {mode} {above}/{name}");
                finished(&mut self.line("root", &made), 0);
            }
        }
        let command = value("ExecStart=").expect("a command");
        Program::start(&mut self.line(user, command))
    }
}

#[test]
fn the_service_works_as_printed_on_a_machine_that_has_nothing_yet() {
    let all = blocks("## With real users, as a service");
    let [("sh", install), ("sh", answer)] = all[..] else {
        panic!("the README's section has other blocks: {all:?}");
    };
    let Some(machine) = Machine::new() else {
        return;
    };
    let mut services = Vec::new();
    let mut call = None;
    for line in lines(install) {
        let typed = line.strip_prefix("sudo ").unwrap_or(line);
        if typed.starts_with("make build") || typed == "systemctl daemon-reload" {
            // The programs are there, and there is nobody to tell.
        } else if typed.starts_with("make install") {
            machine.install(typed);
        } else if let Some(units) = typed.strip_prefix("systemctl enable --now ") {
            for (unit, says) in units.split(' ').zip(["\"ready\"", "\"serving\""]) {
                let mut service = machine.starts(unit);
                service.says(says);
                services.push(service);
            }
        } else if let Some((user, typed)) =
            typed.strip_prefix("-u ").and_then(|it| it.split_once(' '))
        {
            call = Some(Terminal::start(&mut machine.line(user, typed), 24, 80, ""));
        } else {
            assert!(line.starts_with("sudo "), "{line}");
            finished(&mut machine.line("root", typed), 0);
        }
    }
    assert_eq!(services.len(), 2);
    let mut call = call.expect("a call");
    call.shows(&["waiting for a person: approval "]);

    let [asked, approve, status] = lines(answer).collect::<Vec<_>>()[..] else {
        panic!("other lines than these: {answer}");
    };
    let listed = finished(&mut machine.line(PERSON, asked), 0).stdout;
    let listed = String::from_utf8(listed).expect("text");
    let approve = approve.replace("ID", approval(&listed));
    // The agent may not answer for itself, nor look on.
    for line in [&approve, "rolebroker status"] {
        finished(&mut machine.line(AGENT, line), 77);
    }
    let mut person = Terminal::start(&mut machine.line(PERSON, &approve), 24, 80, "");
    person.shows(&["[y/N] "]);
    person.types("y\n");
    assert_eq!(person.end().0, Some(0));
    let (code, shown) = call.end();
    assert_eq!(code, Some(0), "{shown}");
    let status = status.strip_prefix("sudo ").expect("as root");
    finished(&mut machine.line("root", status), 0);

    let file = machine.file("/srv/rolebroker/a.txt");
    assert_eq!(fs::read_to_string(&file).expect("the file"), "hi");
    let folder = machine.file("/srv/rolebroker");
    let owner = |path: &PathBuf| fs::metadata(path).expect("there").uid();
    assert_ne!(owner(&file), 0);
    assert_eq!(owner(&file), owner(&folder), "the runner wrote it");
}
