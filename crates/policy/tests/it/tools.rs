//! Tools: declared, offered, tightened; never loosened, never two roles'.

use policy::{Config, Pin};
use proto::{Content, DataClass, Effects, ToolSpec};

use crate::fixture::{faults, load};

fn world(more: &str) -> String {
    format!(
        r#"
        [roles.mail]
        kind = "runner"
        offers = [
            {{ tools = ["mail.*"], class = "confidential", untrusted = false, effects = "read", egress = false, pin = "first_use" }},
            {{ tools = ["mail.send", "lists/?"] }},
        ]
        [roles.files]
        kind = "runner"
        {more}
        "#
    )
}

fn offered(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.try_into().unwrap(),
        description: String::new(),
        input_schema: "{}".to_owned(),
        class: DataClass::Public,
        untrusted: false,
        effects: Effects::Read,
        egress: false,
        content: Content::Mcp,
    }
}

#[test]
fn what_an_offer_rule_does_not_say_is_taken_at_its_worst() {
    let rules = load(&world("")).ruleset;
    let list = rules.tool("lists/a").unwrap();
    assert_eq!(list.runner.as_str(), "mail");
    assert_eq!(
        (list.class, list.effects),
        (DataClass::Internal, Effects::Once)
    );
    assert!(list.untrusted && list.egress && !list.declared);
    assert_eq!(list.pin, Pin::Accept);
}

#[test]
fn what_a_declaration_does_not_say_is_taken_at_its_worst() {
    let rules = load(&world("[[tool]]\nname = \"x\"\nrunner = \"files\"")).ruleset;
    let tool = rules.tool("x").unwrap();
    assert_eq!(
        (tool.class, tool.effects),
        (DataClass::Internal, Effects::Once)
    );
    assert!(tool.untrusted && tool.egress && tool.declared);
    assert_eq!((tool.pin, tool.content), (Pin::Accept, Content::Text));
    assert_eq!(tool.effective(None).clearance, DataClass::Internal);
}

#[test]
fn where_two_rules_of_a_role_admit_a_name_the_strictest_holds() {
    let rules = load(&world("")).ruleset;
    let search = rules.tool("mail.search").unwrap();
    assert_eq!(
        (search.effects, search.egress, search.pin),
        (Effects::Read, false, Pin::FirstUse)
    );
    let send = rules.tool("mail.send").unwrap();
    assert_eq!(
        (send.class, send.effects),
        (DataClass::Confidential, Effects::Once)
    );
    assert!(send.untrusted && send.egress);
    assert_eq!(send.pin, Pin::Accept);
}

#[test]
fn a_name_that_nothing_admits_is_no_tool() {
    let rules = load(&world("")).ruleset;
    for name in [
        "",
        "mail",
        "lists/ab",
        "exec",
        "mail.ä",
        &format!("mail.{}", "a".repeat(128)),
    ] {
        assert_eq!(rules.tool(name), None, "{name}");
    }
}

#[test]
fn a_declaration_says_more_than_an_offer_rule() {
    let rules = load(&world(
        "[[tool]]\nname = \"mail.send\"\nrunner = \"mail\"\nclass = \"public\"",
    ))
    .ruleset;
    let send = rules.tool("mail.send").unwrap();
    assert!(send.declared);
    assert_eq!(send.class, DataClass::Public);
    assert_eq!(send.pin, Pin::Accept, "that of the offer rules");
    assert_eq!(rules.declared().count(), 1);
}

#[test]
fn an_offer_tightens_and_never_loosens() {
    let rules = load(&world(
        "[[tool]]\nname = \"x\"\nrunner = \"files\"\nclass = \"internal\"\nuntrusted = false\neffects = \"read\"\negress = false",
    ))
    .ruleset;
    let floor = rules.tool("x").unwrap();
    let alone = floor.effective(None);
    assert_eq!(alone.clearance, DataClass::Secret);
    let same = floor.effective(Some(&offered("x")));
    assert_eq!(
        same, alone,
        "looser words change nothing, nor does the content"
    );
    let tight = ToolSpec {
        class: DataClass::Secret,
        untrusted: true,
        effects: Effects::Once,
        egress: true,
        ..offered("x")
    };
    let tight = floor.effective(Some(&tight));
    assert_eq!(
        (tight.class, tight.effects),
        (DataClass::Secret, Effects::Once)
    );
    assert!(tight.untrusted && tight.egress);
    assert_eq!(
        tight.clearance,
        DataClass::Internal,
        "no longer harmless: its declared floor"
    );
    for tighter in [
        ToolSpec {
            effects: Effects::Idempotent,
            ..offered("x")
        },
        ToolSpec {
            egress: true,
            ..offered("x")
        },
    ] {
        assert_eq!(
            floor.effective(Some(&tighter)).clearance,
            DataClass::Internal
        );
    }
}

#[test]
fn an_offer_that_calls_itself_secret_is_not_cleared_for_it() {
    let rules = load(&world("")).ruleset;
    let secret = ToolSpec {
        class: DataClass::Secret,
        ..offered("lists/a")
    };
    let tool = rules.tool("lists/a").unwrap().effective(Some(&secret));
    assert_eq!(
        (tool.class, tool.clearance),
        (DataClass::Secret, DataClass::Internal)
    );
    assert_eq!(
        tool.content,
        Content::Mcp,
        "an undeclared tool's form is the offer's"
    );
}

#[test]
fn a_read_tool_that_is_only_offered_is_cleared_for_its_floor() {
    let rules = load(&world("")).ruleset;
    let search = rules
        .tool("mail.search")
        .unwrap()
        .effective(Some(&offered("mail.search")));
    assert_eq!((search.effects, search.egress), (Effects::Read, false));
    assert_eq!(search.clearance, DataClass::Confidential);
}

#[test]
fn a_stated_clearance_holds() {
    let tool = |clearance: &str| {
        let text =
            format!("[[tool]]\nname = \"x\"\nrunner = \"files\"\nclearance = \"{clearance}\"");
        load(&world(&text))
            .ruleset
            .tool("x")
            .unwrap()
            .effective(None)
            .clearance
    };
    assert_eq!(tool("public"), DataClass::Public);
    assert_eq!(tool("secret"), DataClass::Secret);
}

#[test]
fn offers_of_two_roles_that_overlap_are_told() {
    let two = |a: &str, b: &str| {
        Config::parse(
            "t",
            &format!(
                "[roles.a]\nkind = \"runner\"\noffers = [{{ tools = [\"{a}\"] }}]\n[roles.b]\nkind = \"runner\"\noffers = [{{ tools = [\"{b}\"] }}]"
            ),
        )
    };
    for (a, b) in [
        ("x", "x"),
        ("mail.*", "mail.send"),
        ("mail.send", "*"),
        ("mail.*", "mail.s*"),
    ] {
        let told = two(a, b).unwrap_err().to_string();
        assert!(told.starts_with("t:6: role `b`, offers:"), "{told}");
    }
    for (a, b) in [("x", "y"), ("mail.*", "files.*"), ("a/*", "b/a/*")] {
        assert!(two(a, b).is_ok(), "{a} {b}");
    }
}

#[test]
fn a_name_that_offers_of_two_roles_admit_is_nobodys() {
    // Neither glob matches the other's text, so this cannot be told when it is loaded.
    let rules = load(
        "[roles.a]\nkind = \"runner\"\noffers = [{ tools = [\"x.*.z\"] }]\n[roles.b]\nkind = \"runner\"\noffers = [{ tools = [\"x.y.*\"] }]",
    )
    .ruleset;
    assert_eq!(rules.tool("x.y.z"), None);
    assert_eq!(rules.tool("x.y.a").unwrap().runner.as_str(), "b");
    assert_eq!(rules.tool("x.a.z").unwrap().runner.as_str(), "a");
}

#[test]
fn a_tool_is_served_by_a_runner_role_that_is_there() {
    let told = faults(&world("[[tool]]\nname = \"x\"\nrunner = \"file\""));
    assert!(
        told.ends_with("tool `x`: there is no runner role `file`; did you mean `files`?"),
        "{told}"
    );
}
