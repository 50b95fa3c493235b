#![cfg(test)]
//! The man pages and completions that `manual` writes: whole, without a warning of the programs that show them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// What every page has.
const SECTIONS: [&str; 8] = [
    "NAME",
    "SYNOPSIS",
    "DESCRIPTION",
    "OPTIONS",
    "EXIT STATUS",
    "FILES",
    "ENVIRONMENT",
    "SEE ALSO",
];

fn written() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let output = Command::new(env!("CARGO_BIN_EXE_manual"))
        .arg(folder.path())
        .output();
    said(&output.expect("manual"));
    folder
}

#[track_caller]
fn said(output: &Output) -> String {
    let (out, err) = (&output.stdout, String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{err}");
    assert_eq!(err, "");
    String::from_utf8_lossy(out).into_owned()
}

fn pages(folder: &Path) -> Vec<PathBuf> {
    let of = |section: &str| {
        let found = fs::read_dir(folder.join("man").join(section)).expect(section);
        let paths: Vec<PathBuf> = found.map(|entry| entry.expect("an entry").path()).collect();
        paths
    };
    [of("man1"), of("man8")].concat()
}

fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

#[test]
fn every_command_has_a_page_with_every_section() {
    let folder = written();
    let found: Vec<String> = pages(folder.path())
        .iter()
        .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
        .collect();
    for page in [
        "rolebroker.1",
        "rolebroker-runner.1",
        "rolebroker-call.1",
        "rolebroker-init.1",
        "rolebrokerd.8",
    ] {
        assert!(
            found.contains(&page.to_owned()),
            "{page} is not in {found:?}"
        );
    }
    for path in pages(folder.path()) {
        let text = fs::read_to_string(&path).expect("it");
        for section in SECTIONS {
            let heading = |line: &str| {
                line == format!(".SH {section}") || line == format!(".SH \"{section}\"")
            };
            assert!(
                text.lines().any(heading),
                "{} has no {section}:\n{text}",
                path.display()
            );
        }
        let shown = path
            .file_name()
            .and_then(|name| name.to_str())
            .expect("a name");
        if shown != "rolebroker.1" {
            assert!(text.contains(".SH EXAMPLES"), "{shown} has no examples");
        }
    }
}

#[test]
fn every_page_is_shown_without_a_warning() {
    let folder = written();
    let mut shown = 0;
    for (program, args) in [
        ("man", &["--warnings=all", "--local-file"][..]),
        ("groff", &["-man", "-Tutf8", "-ww", "-z"]),
        ("mandoc", &["-Tlint", "-Wwarning"]),
    ] {
        if !is_there(program) {
            eprintln!("skipped: {program} is not installed");
            continue;
        }
        for page in pages(folder.path()) {
            let mut command = Command::new(program);
            command
                .args(args)
                .arg(&page)
                .env("LC_ALL", "C.UTF-8")
                .env("MANWIDTH", "80");
            let text = said(&command.output().expect(program));
            if program == "man" && !text.is_empty() {
                shown += 1;
                for word in ["NAME", "EXIT STATUS", "SEE ALSO"] {
                    assert!(
                        text.contains(word),
                        "{} has no {word}:\n{text}",
                        page.display()
                    );
                }
            }
        }
    }
    eprintln!("{shown} pages were shown");
}

#[test]
fn bash_completes_a_command_and_its_options() {
    let folder = written();
    let file = folder.path().join("completions/bash/rolebroker");
    let complete = |words: &str, at: usize| {
        let script = format!(
            "set -e; source {file}; COMP_WORDS=({words}); COMP_CWORD={at}; \
             _rolebroker rolebroker \"${{COMP_WORDS[{at}]}}\" \"${{COMP_WORDS[{before}]}}\"; echo \"${{COMPREPLY[@]}}\"",
            file = file.display(),
            before = at - 1
        );
        let output = Command::new("bash")
            .args(["--norc", "-c", &script])
            .output();
        said(&output.expect("bash")).trim().to_owned()
    };
    assert_eq!(complete("rolebroker appr", 1), "approvals approve");
    assert_eq!(complete("rolebroker approve --sc", 2), "--scope");
    assert_eq!(complete("rolebroker approve --scope s", 3), "session");
}

#[test]
fn each_shell_has_its_file_for_each_program() {
    let folder = written();
    for (shell, files) in [
        ("bash", ["rolebroker", "rolebrokerd"]),
        ("zsh", ["_rolebroker", "_rolebrokerd"]),
        ("fish", ["rolebroker.fish", "rolebrokerd.fish"]),
    ] {
        for file in files {
            let path = folder.path().join("completions").join(shell).join(file);
            let text = fs::read_to_string(&path)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert!(text.contains("rolebroker"), "{}", path.display());
            if !is_there(shell) {
                eprintln!("skipped: {shell} is not installed");
                continue;
            }
            let flag = if shell == "fish" {
                "--no-execute"
            } else {
                "-n"
            };
            said(
                &Command::new(shell)
                    .arg(flag)
                    .arg(&path)
                    .output()
                    .expect(shell),
            );
        }
    }
}
