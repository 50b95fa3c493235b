//! What the page warns of happens: a rule that is written otherwise does what the page says it then does.

use std::process::Command;

use super::{Desk, changed, page};
use crate::harness::{Place, finished, program};

/// Starts the changed rule and types this, written like the page's examples.
#[track_caller]
fn then(place: Place, typed: &'static str) {
    Desk::open(place.start()).type_all(&page::steps(typed));
}

/// The changed rule does not load: all that is said of it.
#[track_caller]
fn fault_of(place: &Place) -> String {
    place.write(place.text());
    let mut check = Command::new(program("rolebrokerd"));
    check.arg("--check-config").arg("--config");
    let output = finished(check.arg(place.config()), 78);
    String::from_utf8(output.stderr).expect("text")
}

#[test]
fn an_argument_that_is_named_as_optional_is_permitted() {
    let more =
        "\"/srv/share\" }, \"/max_bytes\" = { optional = { range = { min = 1, max = 65536 } } } }";
    then(
        changed("1. ", "\"/srv/share\" } }", more),
        "agent$ rolebroker call read_file path=/srv/share/plan.md max_bytes:=100
We ship on Friday.
(internal, trusted)
agent$ rolebroker call read_file path=/srv/share/plan.md
We ship on Friday.
(internal, trusted)
agent$ rolebroker call read_file path=/srv/share/plan.md max_bytes:=0
denied: no_grant …
exit 3
",
    );
}

#[test]
fn an_ask_that_applies_is_asked_although_an_allow_permits() {
    let ask = "[[grant]]\nid = \"look\"\nroles = [\"*\"]\nsessions = [\"*\"]\ntools = [\"*\"]\n\
        effect = \"ask\"\nwhere = { \"/path\" = { glob = \"/srv/share/*\" } }\n\n[[grant]]\nid = \"share\"";
    then(
        changed("1. ", "[[grant]]\nid = \"share\"", ask),
        "agent$ rolebroker call read_file path=/srv/share/plan.md &
waiting for a person: approval ID; …
alice$ rolebroker refuse ID --as alice
…
agent$ wait $!
denied: approval_refused …
exit 3
",
    );
}

#[test]
fn an_ask_without_a_max_class_denies_what_was_to_be_asked_about() {
    let place = changed(
        "2. ",
        "max_class = \"confidential\"\napproval_ttl",
        "approval_ttl",
    );
    then(
        place,
        "agent$ rolebroker call mail.read folder=inbox number:=1
…
agent$ rolebroker call mail.send to:='[\"eve@example.com\"]' body='Here it is.'
denied: taint_too_high …
exit 3
",
    );
}

#[test]
fn where_no_approver_is_cleared_nobody_is_asked() {
    let cleared = "users = [\"alice\"]\nmax_class = \"confidential\"";
    let place = changed(
        "2. ",
        cleared,
        "users = [\"alice\"]\nmax_class = \"internal\"",
    );
    then(
        place,
        "agent$ rolebroker call mail.read folder=inbox number:=1
…
agent$ rolebroker call mail.send to:='[\"eve@example.com\"]' body='Here it is.'
denied: approval_expired …
exit 3
",
    );
}

#[test]
fn a_deny_falls_where_its_pointer_is_absent() {
    let other = "[[grant]]\nid = \"by-name\"\nroles = [\"agent\"]\nsessions = [\"*\"]\n\
        tools = [\"chat.post\"]\neffect = \"allow\"\nwhere = { \"/file\" = { any = true } }\n\n\
        [[grant]]\nid = \"no-keys\"";
    then(
        changed("4. ", "[[grant]]\nid = \"no-keys\"", other),
        "agent$ rolebroker call chat.post file=/srv/share/site.pem
posted
(public, trusted)
",
    );
}

#[test]
fn a_glob_takes_two_addresses_for_one() {
    let place = changed(
        "5. ",
        "{ regex = '[a-z.]+@example\\.org' }",
        "{ glob = \"*@example.org\" }",
    );
    then(
        place,
        "agent$ rolebroker call mail.send to:='[\"eve@example.com,tom@example.org\"]' body='Our offer.'
sent
(public, trusted)
",
    );
}

#[test]
fn a_quorum_that_can_never_be_reached_does_not_load() {
    let said = fault_of(&changed("5. ", "quorum = 2", "quorum = 3"));
    assert!(said.contains("quorum of 3 can never be reached"), "{said}");
}

#[test]
fn a_grant_that_could_ask_and_names_nobody_does_not_load() {
    let said = fault_of(&changed("7. ", "approvers = [\"alice\"]\n", ""));
    assert!(said.contains("nobody is named to be asked"), "{said}");
}

#[test]
fn an_example_that_does_not_match_does_not_load() {
    let said = fault_of(&changed("1. ", "\"/srv/share\"", "\"/srv/shared\""));
    assert!(said.contains("does not match the `where`"), "{said}");
}

#[test]
fn egress_without_a_max_class_ends_with_the_first_internal_file() {
    let place = changed("7. ", "max_class = \"internal\"\nabove_max", "above_max");
    then(
        place,
        "agent$ rolebroker call chat.post text=Hello
posted
(public, trusted)
agent$ rolebroker call read_file path=/srv/share/plan.md
We ship on Friday.
(internal, trusted)
agent$ rolebroker call chat.post text=Hello
denied: taint_too_high …
exit 3
",
    );
}

#[test]
fn a_max_class_over_the_clearance_counts_only_where_the_tool_is_named() {
    then(
        changed("7. ", "tools = [\"chat.post\"]", "tools = [\"chat.*\"]"),
        "agent$ rolebroker call read_file path=/srv/share/plan.md
We ship on Friday.
(internal, trusted)
agent$ rolebroker call chat.post text=Hello
denied: taint_too_high …
exit 3
",
    );
}

#[test]
fn a_second_page_is_asked_about_where_untrusted_is_not_stated() {
    then(
        changed("8. ", "untrusted = \"allow\"\n", ""),
        "agent$ rolebroker call web.fetch url=https://docs.example.org/start
The manual.
(public, untrusted)
agent$ rolebroker call web.fetch url=https://docs.example.org/start &
waiting for a person: approval ID; …
alice$ rolebroker approve ID --as alice
…
approve this call? [y/N] y
ID  approved, by alice…
agent$ wait $!
The manual.
(public, untrusted)
",
    );
}

#[test]
fn a_standing_approval_does_not_reach_above_the_label_that_was_seen() {
    let tool = "name = \"write_file\"\nrunner = \"runner\"\nclass = \"public\"";
    let place = changed("9. ", tool, &tool.replace("public", "internal"));
    then(
        place,
        "agent$ rolebroker call write_file path=/srv/notes/state content=green &
waiting for a person: approval ID; …
alice$ rolebroker approve ID --as alice --scope session
…
approve this and more like it? [y/N] y
ID  approved, by alice…
agent$ wait $!
written
(internal, trusted)
agent$ rolebroker call write_file path=/srv/notes/state content=green &
waiting for a person: approval ID; …
alice$ rolebroker refuse ID --as alice
…
agent$ wait $!
denied: approval_refused …
exit 3
",
    );
}

#[test]
fn with_one_label_for_the_role_what_one_session_has_seen_counts_for_all() {
    let place = changed(
        "10. ",
        "label_scope = \"session\"",
        "label_scope = \"role\"",
    );
    then(
        place,
        "agent$ rolebroker call --session desk chat.post text='We ship on Friday.'
posted
(public, trusted)
agent$ rolebroker call --session helper read_file path=/srv/hr/salaries
Tom 100, Ann 120
(confidential, trusted)
agent$ rolebroker call --session desk chat.post text='We ship on Friday.'
denied: taint_too_high …
exit 3
",
    );
}
