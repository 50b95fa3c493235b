//! `make install` and its units, into a folder of the test's own; systemd's own tools judge them.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{finished, program};

const TOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// The most that a unit may be exposed, in tenths.
const THRESHOLD: &str = "--threshold=10";

/// `make` on a target, with the programs beside this test and a manual of the test's own.
fn make(target: &str, folder: &Path, more: &[String]) -> String {
    let manual = folder.join("manual");
    for page in [
        "man/man1/rolebroker.1",
        "man/man8/rolebrokerd.8",
        "completions/bash/rolebroker",
        "completions/zsh/_rolebroker",
        "completions/fish/rolebroker.fish",
    ] {
        let page = manual.join(page);
        fs::create_dir_all(page.parent().expect("a folder")).expect("a folder");
        fs::write(page, "a page\n").expect("a page");
    }
    let built = program("rolebrokerd");
    let built = built.parent().expect("a folder");
    let mut command = Command::new("make");
    command.args(["-s", "-C", TOP, target]).args(more);
    command.arg(format!("BUILT={}", built.display()));
    command.arg(format!("MANUAL={}", manual.display()));
    // What the make that runs this test was told is not for this one.
    command.env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
    let output = finished(&mut command, 0);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut rest = vec![folder.to_owned()];
    while let Some(next) = rest.pop() {
        for entry in fs::read_dir(next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                rest.push(path);
            } else {
                found.insert(path.strip_prefix(folder).expect("below").to_owned());
            }
        }
    }
    found
}

/// Installed below a prefix that exists as such, so that units name programs that are there.
fn installed() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let prefix = folder.path().join("prefix");
    make(
        "install",
        folder.path(),
        &[format!("PREFIX={}", prefix.display())],
    );
    (folder, prefix)
}

#[test]
fn make_install_puts_everything_below_destdir_and_uninstall_takes_it_away_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let dest = folder.path().join("dest");
    let own = dest.join("etc/rolebroker/rolebroker.toml");
    fs::create_dir_all(own.parent().expect("a folder")).expect("a folder");
    fs::write(&own, "my own").expect("a configuration");
    let to = [
        "PREFIX=/opt/rb".to_owned(),
        format!("DESTDIR={}", dest.display()),
    ];

    make("install", folder.path(), &to);
    let there = files(&dest);
    for file in [
        "bin/rolebrokerd",
        "bin/rolebroker",
        "bin/rolebroker-runner",
        "lib/systemd/system/rolebrokerd.service",
        "lib/systemd/system/rolebroker@.socket",
        "lib/systemd/system/rolebroker-runner@.service",
        "lib/sysusers.d/rolebroker.conf",
        "share/doc/rolebroker/rolebroker.toml",
        "share/doc/rolebroker/operations.md",
        "share/doc/rolebroker/examples/rolebroker-agent.service",
        "share/doc/rolebroker/examples/rolebroker-approver.service",
        "share/man/man1/rolebroker.1",
        "share/man/man8/rolebrokerd.8",
        "share/bash-completion/completions/rolebroker",
        "share/zsh/site-functions/_rolebroker",
        "share/fish/vendor_completions.d/rolebroker.fish",
    ] {
        assert!(
            there.contains(&Path::new("opt/rb").join(file)),
            "no {file}: {there:#?}"
        );
    }
    for path in there.iter().filter(|path| path.starts_with("opt")) {
        let mode = fs::metadata(dest.join(path))
            .expect("there")
            .permissions()
            .mode()
            & 0o777;
        let wanted = if path.starts_with("opt/rb/bin") {
            0o755
        } else {
            0o644
        };
        assert_eq!(mode, wanted, "{}", path.display());
    }
    let unit = dest.join("opt/rb/lib/systemd/system/rolebrokerd.service");
    let unit = fs::read_to_string(unit).expect("the unit");
    assert!(
        unit.contains("ExecStart=/opt/rb/bin/rolebrokerd "),
        "{unit}"
    );
    assert!(!unit.contains("/usr/local"), "{unit}");
    assert_eq!(fs::read_to_string(&own).expect("still there"), "my own");

    let said = make("uninstall", folder.path(), &to);
    let kept = BTreeSet::from([PathBuf::from("etc/rolebroker/rolebroker.toml")]);
    assert_eq!(files(&dest), kept, "{said}");
    assert_eq!(fs::read_to_string(&own).expect("still there"), "my own");
}

/// `systemd-analyze`, if the machine has it; one line says so where it has not.
fn analyze() -> Option<Command> {
    let command = Command::new("systemd-analyze").arg("--version").output();
    if command.is_err() {
        // Past the capture of what passing tests print.
        let _ = writeln!(std::io::stderr(), "skipped: needs systemd-analyze");
        return None;
    }
    Some(Command::new("systemd-analyze"))
}

/// The installed units, and the samples beside the documentation.
fn units(prefix: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let all = |folder: &str, ending: &str| -> Vec<PathBuf> {
        let folder = prefix.join(folder);
        let names = files(&folder).into_iter();
        let names = names.filter(|name| name.to_string_lossy().ends_with(ending));
        names.map(|name| folder.join(name)).collect()
    };
    let units = all("lib/systemd/system", "");
    let samples = all("share/doc/rolebroker/examples", ".service");
    assert_eq!(
        (units.len(), samples.len()),
        (3, 2),
        "{units:?} {samples:?}"
    );
    (units, samples)
}

#[test]
fn systemd_finds_nothing_wrong_with_the_units() {
    let (_folder, prefix) = installed();
    let (mut units, samples) = units(&prefix);
    // A template for sockets, and one of them.
    let template = prefix.join("lib/systemd/system/rolebroker@.socket");
    let instance = prefix.join("lib/systemd/system/rolebroker@bot.socket");
    fs::copy(&template, &instance).expect("copies");
    units.push(instance);
    for unit in units.into_iter().chain(samples) {
        let Some(mut command) = analyze() else {
            return;
        };
        let output = finished(command.args(["verify", "--man=no"]).arg(&unit), 0);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said, "", "{}", unit.display());
    }
}

#[test]
fn the_units_are_confined() {
    let (_folder, prefix) = installed();
    let (units, samples) = units(&prefix);
    for unit in units.iter().chain(&samples) {
        if unit.extension().is_some_and(|kind| kind == "socket") {
            continue;
        }
        let Some(mut command) = analyze() else {
            return;
        };
        command.args(["security", "--no-pager", "--offline=true", THRESHOLD]);
        finished(command.arg(unit), 0);
        let text = fs::read_to_string(unit).expect("the unit");
        let private_users = text.lines().any(|line| line.starts_with("PrivateUsers="));
        assert!(!private_users, "{} hides who connects", unit.display());
    }
}

#[test]
fn the_users_that_the_units_name_are_made() {
    let users = fs::read_to_string(format!("{TOP}/config/sysusers.d/rolebroker.conf"));
    let users = users.expect("the users");
    let made: BTreeSet<&str> = users
        .lines()
        .filter_map(|line| line.strip_prefix("u ")?.split_whitespace().next())
        .collect();
    for unit in ["rolebrokerd.service", "rolebroker-runner@.service"] {
        let text = fs::read_to_string(format!("{TOP}/config/systemd/{unit}")).expect("the unit");
        let user = text.lines().find_map(|line| line.strip_prefix("User="));
        let user = user.expect("a user").replace("%i", "runner");
        assert!(made.contains(&*user), "{unit}: {user} is not in {made:?}");
    }
}
