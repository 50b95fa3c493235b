//! Faults of a configuration: all at once, each with its line and what to write instead.

use policy::Config;

use crate::fixture::{faults, load};

const HEAD: &str = "[roles.bot]\nkind = \"agent\"\nlabel_scope = \"role\"\n";

fn granted(grant: &str) -> String {
    format!(
        "{HEAD}[roles.r]\nkind = \"runner\"\n[[tool]]\nname = \"read\"\nrunner = \"r\"\neffects = \"read\"\negress = false\n[[tool]]\nname = \"send\"\nrunner = \"r\"\n[[grant]]\nid = \"g\"\nroles = [\"bot\"]\nsessions = [\"*\"]\n{grant}\n"
    )
}

#[test]
fn a_bad_file_tells_every_fault_with_its_line() {
    let text = include_str!("../fixtures/faulty.toml");
    insta::assert_snapshot!(faults(text));
}

#[test]
fn what_is_no_toml_is_told_with_its_line_and_nothing_else() {
    insta::assert_snapshot!(faults("[broker]\nmax_frame = 8MiB\nfoo = 1\n\n[roles\n"));
}

#[test]
fn an_empty_file_has_no_role() {
    assert_eq!(
        faults(""),
        "test.toml:1: the configuration: there is no role; write `[roles.NAME]` for each part that connects"
    );
}

#[test]
fn a_grant_that_could_ask_names_somebody() {
    for (grant, fault) in [
        ("tools = [\"read\"]\neffect = \"ask\"", Some("it asks, and")),
        (
            "tools = [\"read\"]\neffect = \"allow\"\nabove_max = \"ask\"",
            Some("above its `max_class`"),
        ),
        (
            "tools = [\"read\"]\neffect = \"allow\"\nuntrusted = \"ask\"",
            Some("is untrusted, and"),
        ),
        (
            "tools = [\"send\"]\neffect = \"allow\"",
            Some("`untrusted` is not stated"),
        ),
        (
            "tools = [\"*\"]\neffect = \"allow\"",
            Some("`untrusted` is not stated"),
        ),
        (
            "tools = [\"send\"]\neffect = \"allow\"\nuntrusted = \"allow\"",
            None,
        ),
        (
            "tools = [\"send\"]\neffect = \"allow\"\nuntrusted = \"deny\"",
            None,
        ),
        ("tools = [\"read\"]\neffect = \"allow\"", None),
        ("tools = [\"send\"]\neffect = \"deny\"", None),
    ] {
        let text = granted(grant);
        match fault {
            None => drop(load(&text)),
            Some(fault) => {
                let told = faults(&text);
                assert!(
                    told.contains(fault) && told.contains("nobody is named"),
                    "{told}"
                );
                assert_eq!(told.lines().count(), 1, "{told}");
            }
        }
    }
}

#[test]
fn one_user_is_not_on_both_sides_unless_that_is_said() {
    let text = |broker: &str| {
        format!(
            "{broker}\n[roles.bot]\nkind = \"agent\"\nlabel_scope = \"role\"\nusers = [\"u\"]\n[roles.op]\nkind = \"operator\"\nusers = [\"u\"]\n"
        )
    };
    let told = faults(&text(""));
    assert!(
        told.starts_with("test.toml:5: role `bot`: user `u` is also operator `op`"),
        "{told}"
    );
    load(&text("[broker]\nallow_shared_uid = true"));
}

#[test]
fn two_agents_or_two_judges_may_be_one_user() {
    load(
        "[roles.a]\nkind = \"approver\"\nmax_class = \"secret\"\nusers = [\"u\"]\n[roles.b]\nkind = \"operator\"\nusers = [\"u\"]\n",
    );
    load(
        "[roles.a]\nkind = \"agent\"\nlabel_scope = \"role\"\nusers = [\"u\"]\n[roles.b]\nkind = \"runner\"\nusers = [\"u\"]\n",
    );
}

#[test]
fn a_quorum_that_groups_may_reach_is_taken() {
    let text = |who: &str| {
        format!(
            "{}approvers = [\"p\"]\ntools = [\"send\"]\neffect = \"ask\"\nquorum = 3\n[roles.p]\nkind = \"approver\"\nmax_class = \"secret\"\n{who}\n",
            granted("")
        )
    };
    load(&text("groups = [\"g\"]"));
    load(&text("users = [\"a\", \"b\", \"c\"]"));
    let told = faults(&text("users = [\"a\", \"b\"]"));
    assert!(
        told.contains("a quorum of 3 can never be reached"),
        "{told}"
    );
}

#[test]
fn a_socket_path_fits_its_address() {
    let text = |dir: usize| format!("[broker]\nruntime_dir = \"/{}\"\n{HEAD}", "d".repeat(dir));
    // "/" and 97 bytes, then "/bot.sock".
    load(&text(97));
    assert!(faults(&text(98)).contains("its socket's path is longer than 107 bytes"));
    assert!(faults(&text(101)).contains("`runtime_dir` is too long"));
}

#[test]
fn counts_have_limits() {
    let roles: String = (0..257)
        .map(|i| format!("[roles.r{i}]\nkind = \"runner\"\n"))
        .collect();
    assert!(faults(&roles).contains("there are at most 256 roles"));
    let grants = "[[grant]]\n".repeat(4097);
    assert!(faults(&format!("{HEAD}{grants}")).contains("there are at most 4096 grants"));
    let tools = "[[tool]]\n".repeat(4097);
    assert!(faults(&format!("{HEAD}{tools}")).contains("there are at most 4096 tools"));
    let long = "#".repeat((4 << 20) + 1);
    assert!(faults(&long).contains("at most 4194304 bytes"));
    let many = faults(&format!("{HEAD}{}", "[[grant]]\n".repeat(100)));
    assert_eq!(many.lines().count(), 101);
    assert!(many.ends_with("and 400 more faults"), "{many}");
}

#[test]
fn nothing_stated_is_the_default() {
    let settings = load(HEAD).settings;
    assert_eq!(settings, policy::Settings::default());
    insta::assert_debug_snapshot!(settings);
}

#[test]
fn a_mode_is_octal_however_it_is_written() {
    let mode = |mode: &str| load(&format!("{HEAD}mode = {mode}")).roles["bot"].mode;
    assert_eq!((mode("\"0660\""), mode("0o600")), (0o660, 0o600));
    assert_eq!(load(HEAD).roles["bot"].mode, 0o666);
}

#[test]
fn a_date_of_toml_is_a_date_too() {
    let of = |date: &str| {
        let text = granted(&format!(
            "tools = [\"read\"]\neffect = \"allow\"\nexpires = {date}"
        ));
        load(&text).ruleset.grants()[0].expires
    };
    assert_eq!(of("2027-06-30T00:00:00Z"), of("\"2027-06-30T00:00:00Z\""));
}

#[test]
fn the_digest_is_that_of_the_text() {
    assert_ne!(load(HEAD).digest, load(&format!("{HEAD}\n")).digest);
    assert_eq!(load(HEAD).digest, load(HEAD).digest);
}

#[test]
fn faults_carry_the_files_name() {
    let error = Config::parse("/etc/x.toml", "").unwrap_err();
    assert_eq!(
        (error.faults[0].file.as_str(), error.faults[0].line),
        ("/etc/x.toml", 1)
    );
}
