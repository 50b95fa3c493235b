//! Which configuration is taken, and how the process ends without one.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Output;

use crate::broker::{Place, SEPARATED, SHARED, STRANGER, command, stderr};

#[track_caller]
fn assert_exit(output: &Output, code: i32, said: &str) {
    let err = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{err}");
    assert!(err.contains(said), "{said:?} is not in:\n{err}");
}

#[test]
fn a_mistake_on_the_command_line_exits_64() {
    let output = command().arg("--no-such-flag").output().expect("runs");
    assert_exit(&output, 64, "--no-such-flag");
}

#[test]
fn the_version_is_printed() {
    let output = command().arg("--version").output().expect("runs");
    assert_eq!(output.status.code(), Some(0));
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        said.trim(),
        format!("rolebrokerd {}", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn check_config_says_what_there_is_and_opens_nothing() {
    let place = Place::with(SEPARATED);
    let output = place.run(&["--check-config"]);
    assert_exit(&output, 0, "");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        said.starts_with("ok: 2 roles, 0 tools, 0 grants\n"),
        "{said}"
    );
    assert!(
        said.contains("warning: role `bot`: no allow and no ask names it"),
        "{said}"
    );
    let left: Vec<_> = fs::read_dir(place.path())
        .expect("reads the folder")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    assert_eq!(left, ["rolebroker.toml"]);
}

#[test]
fn check_config_warns_that_roles_are_not_separated() {
    let output = Place::with(SHARED).run(&["--check-config"]);
    assert_exit(&output, 0, "");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("warning: roles are not separated"), "{said}");
}

#[test]
fn a_uid_on_both_sides_is_a_configuration_fault() {
    let place = Place::with(&SHARED.replace("allow_shared_uid = true", ""));
    assert_exit(&place.run(&["--check-config"]), 78, "allow_shared_uid");
    assert_exit(&place.run(&[]), 78, "allow_shared_uid");
}

#[test]
fn every_user_that_does_not_exist_is_named_with_its_role() {
    let place = Place::with(
        &SEPARATED
            .replace("SELF", "no-such-user-1")
            .replace("54321", "no-such-user-2"),
    );
    let output = place.run(&["--check-config"]);
    assert_exit(
        &output,
        78,
        "roles.bot: users: there is no user \"no-such-user-1\"",
    );
    assert_exit(
        &output,
        78,
        "roles.admin: users: there is no user \"no-such-user-2\"",
    );
}

#[test]
fn the_uid_of_nobody_is_a_configuration_fault() {
    let place = Place::with(&SEPARATED.replace("54321", "65534"));
    assert_exit(&place.run(&["--check-config"]), 78, "65534");
}

#[test]
fn a_configuration_that_does_not_parse_exits_78() {
    let place = Place::with("= = =");
    assert_exit(&place.run(&["--check-config"]), 78, "rolebroker.toml:");
    assert_exit(&place.run(&[]), 78, "rolebroker.toml:");
}

#[test]
fn a_configuration_that_is_not_there_exits_78() {
    let place = Place::with(SEPARATED);
    fs::remove_file(place.config()).expect("removes");
    assert_exit(&place.run(&[]), 78, "rolebroker.toml");
}

#[test]
fn a_configuration_over_the_limit_exits_78() {
    let place = Place::with(SEPARATED);
    let mut text = fs::read(place.config()).expect("reads");
    text.extend(std::iter::repeat_n(b'\n', 1 << 20));
    fs::write(place.config(), text).expect("writes");
    assert_exit(&place.run(&["--check-config"]), 78, "over 1048576 bytes");
}

#[test]
fn a_configuration_that_others_can_write_is_not_taken() {
    for mode in [0o664, 0o646] {
        let place = Place::with(SEPARATED);
        place.set_mode(&place.config(), mode);
        assert_exit(
            &place.run(&["--check-config"]),
            78,
            "can be written by others",
        );
    }
}

#[test]
fn a_configuration_below_a_folder_that_others_can_write_is_not_taken() {
    let place = Place::with(SEPARATED);
    place.set_mode(place.path(), 0o777);
    assert_exit(
        &place.run(&["--check-config"]),
        78,
        "can be written by others",
    );
}

#[test]
fn a_link_is_as_unsafe_as_what_it_leads_through() {
    let unsafe_place = Place::with(SEPARATED);
    unsafe_place.set_mode(unsafe_place.path(), 0o777);
    let safe = Place::with(SEPARATED);

    let outwards = safe.path().join("outwards.toml");
    symlink(unsafe_place.config(), &outwards).expect("links");
    let inwards = unsafe_place.path().join("inwards.toml");
    symlink(safe.config(), &inwards).expect("links");
    for link in [outwards, inwards] {
        let output = command()
            .args(["--check-config", "--config"])
            .arg(&link)
            .output()
            .expect("runs");
        assert_exit(&output, 78, "can be written by others");
    }
}

#[test]
fn a_link_between_safe_folders_is_followed() {
    let place = Place::with(SEPARATED);
    let other = Place::with(SEPARATED);
    let link = other.path().join("link.toml");
    symlink(place.config(), &link).expect("links");
    let output = command()
        .args(["--check-config", "--config"])
        .arg(&link)
        .output()
        .expect("runs");
    assert_exit(&output, 0, "");
}

#[test]
fn a_configuration_of_somebody_else_is_not_taken() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: only root can give a file away");
        return;
    }
    let place = Place::with(SEPARATED);
    std::os::unix::fs::chown(place.config(), Some(STRANGER), None).expect("chown");
    assert_exit(&place.run(&["--check-config"]), 78, "belongs to uid 54321");
}

#[test]
fn a_folder_is_not_a_configuration() {
    let output = command()
        .args(["--check-config", "--config", "/"])
        .output()
        .expect("runs");
    assert_exit(&output, 78, "not a regular file");
}

#[test]
fn the_default_configuration_that_is_printed_is_taken() {
    let place = Place::with(SEPARATED);
    let printed = command()
        .arg("--print-default-config")
        .env("XDG_RUNTIME_DIR", place.path())
        .env("XDG_STATE_HOME", place.path())
        .env("XDG_DATA_HOME", place.path())
        .output()
        .expect("runs");
    assert_exit(&printed, 0, "");
    fs::write(place.config(), &printed.stdout).expect("writes");
    let checked = place.run(&["--check-config"]);
    assert_exit(&checked, 0, "");
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(
        said.starts_with("ok: 4 roles, 5 tools, 4 grants\n"),
        "{said}"
    );
    assert!(said.contains("roles are not separated"), "{said}");
}

#[test]
fn printing_the_default_makes_nothing() {
    let place = Place::with(SEPARATED);
    let home = place.path().join("home");
    let printed = command()
        .arg("--print-default-config")
        .env("XDG_RUNTIME_DIR", &home)
        .env("XDG_STATE_HOME", &home)
        .env("XDG_DATA_HOME", &home)
        .output()
        .expect("runs");
    assert_exit(&printed, 0, "");
    assert!(!home.exists());
}
