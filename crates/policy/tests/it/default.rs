//! The configuration that the daemon brings along.

use policy::embedded::{Embedded, Unfit};
use policy::{Config, LabelScope};
use proto::{Access, DataClass, RoleName};

use crate::fixture::{Asked, load, seen};

const VALUES: Embedded<'static> = Embedded {
    user: "1000",
    folder: "/home/u/shared",
    runtime_dir: "/run/user/1000/rolebroker",
    state_dir: "/home/u/.local/state/rolebroker",
};

fn default() -> Config {
    load(&VALUES.text().unwrap())
}

fn agent() -> Asked {
    Asked {
        role: RoleName::new("agent").unwrap(),
        ..Asked::default()
    }
}

#[test]
fn it_has_one_role_of_each_kind_for_the_one_user() {
    let config = default();
    let roles: Vec<_> = config
        .roles
        .values()
        .map(|role| (role.name.as_str(), role.kind.as_str(), role.users.join(",")))
        .collect();
    let of = |name, kind| (name, kind, "1000".to_owned());
    assert_eq!(
        roles,
        [
            of("agent", "agent"),
            of("approver", "approver"),
            of("operator", "operator"),
            of("runner", "runner")
        ]
    );
    assert!(config.settings.allow_shared_uid);
    assert_eq!(config.settings.runtime_dir, VALUES.runtime_dir);
    assert_eq!(config.settings.state_dir, VALUES.state_dir);
    assert_eq!(config.roles["agent"].label_scope, LabelScope::Session);
    assert_eq!(config.roles["approver"].max_class, DataClass::Secret);
}

#[test]
fn below_the_folder_it_reads_freely_and_asks_to_write() {
    let rules = default().ruleset;
    let told = |tool, arguments| agent().told(&rules, tool, arguments);
    assert_eq!(
        told("read_file", r#"{"path":"/home/u/shared/a"}"#),
        "permit read-below-folder"
    );
    assert_eq!(
        told("list_dir", r#"{"path":"/home/u/shared"}"#),
        "permit read-below-folder"
    );
    assert_eq!(told("read_file", r#"{"path":"/home/u/a"}"#), "no_grant");
    assert_eq!(
        told("read_file", r#"{"path":"/home/u/shared/../a"}"#),
        "no_grant"
    );
    let write = r#"{"path":"/home/u/shared/a","content":"x"}"#;
    assert_eq!(told("write_file", write), "ask write-below-folder");
    assert_eq!(
        told("write_file", r#"{"path":"/etc/a","content":"x"}"#),
        "no_grant"
    );
    let search = r#"{"path":"/home/u/shared","pattern":"x","regex":true}"#;
    assert_eq!(told("search_files", search), "permit search-below-folder");
    assert_eq!(
        told("search_files", r#"{"path":"/home/u","glob":"*"}"#),
        "no_grant"
    );
    let edit = r#"{"path":"/home/u/shared/a","old":"x","new":"y"}"#;
    assert_eq!(told("edit_file", edit), "ask edit-below-folder");
    let secret = Asked {
        label: seen(DataClass::Secret),
        ..agent()
    };
    assert_eq!(
        secret.told(&rules, "write_file", write),
        "ask write-below-folder"
    );
    assert_eq!(agent().access(&rules, "read_file"), Some(Access::Allow));
    assert_eq!(agent().access(&rules, "write_file"), Some(Access::Ask));
}

#[test]
fn every_tool_of_it_is_defined() {
    let config = default();
    let defined: Vec<_> = config
        .ruleset
        .declared()
        .map(|tool| (tool.name.as_str().to_owned(), tool.definition.is_some()))
        .collect();
    let expected = [
        "edit_file",
        "list_dir",
        "read_file",
        "search_files",
        "write_file",
    ]
    .map(|name| (name.to_owned(), true));
    assert_eq!(defined, expected);
}

#[test]
fn a_value_that_could_say_more_than_itself_is_refused() {
    for bad in [
        "", "a\"b", "a'b", "a\\b", "a\nb", "a\0b", "a\u{7f}b", "${USER}",
    ] {
        assert_eq!(
            Embedded {
                folder: bad,
                ..VALUES
            }
            .text(),
            Err(Unfit("folder")),
            "{bad:?}"
        );
    }
    assert!(
        Embedded {
            folder: "/home/u/a b {é}",
            ..VALUES
        }
        .text()
        .is_ok()
    );
}

#[test]
fn no_mark_is_left() {
    assert!(!VALUES.text().unwrap().contains("${"));
}
