//! What `--print-tools` prints is what a broker takes.

use std::process::Command;

/// The roles that a configuration needs around the tools.
const AROUND: &str = "[roles.files]\nkind = \"runner\"\nusers = [\"0\"]\n";

fn printed(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_rolebroker-runner"))
        .args(args)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_printed_tools_load_into_a_broker_and_say_what_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("runner.toml");
    let text = r#"
role = "files"
[[folder]]
path = "/srv/docs"
class = "internal"
untrusted = false
[[folder]]
path = "/srv/in"
class = "confidential"
write = true
[[command]]
name = "it's.odd"
description = "says \"'''\" and\na line"
argv = ["/bin/echo", "{word}"]
effects = "read"
egress = false
[command.arguments.word]
type = "string"
regex = "[a-z']+"
description = "it's a word'''"
"#;
    std::fs::write(&file, text.replace("it's.odd", "odd")).unwrap();
    let blocks = printed(&["--config", file.to_str().unwrap(), "--print-tools"]);
    let config = policy::Config::parse("broker.toml", &format!("{AROUND}{blocks}"))
        .unwrap_or_else(|error| panic!("{error}\n{blocks}"));
    for (name, class, untrusted, egress) in [
        ("read_file", "internal", false, false),
        ("list_dir", "internal", false, false),
        ("search_files", "internal", false, false),
        ("write_file", "internal", false, false),
        ("edit_file", "internal", false, false),
        ("odd", "confidential", true, false),
    ] {
        let tool = config.ruleset.tool(name).expect(name);
        assert_eq!(tool.class.as_str(), class, "{name}");
        assert_eq!((tool.untrusted, tool.egress), (untrusted, egress), "{name}");
        let (_, schema) = tool.definition.as_ref().expect(name);
        assert!(
            serde_json::from_str::<serde_json::Value>(schema)
                .unwrap()
                .is_object()
        );
    }
}

#[test]
fn descriptions_are_printed_whatever_is_in_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("runner.toml");
    for odd in ["\\u007f", "'''", "\\u00e9\\\\", "\\t\\n'"] {
        let text = format!(
            "[[command]]\nname = \"c\"\ndescription = \"{odd}\"\nargv = [\"/bin/c\", \"{{a}}\"]\n\
             [command.arguments.a]\ntype = \"string\"\ndescription = \"{odd}\"\n"
        );
        std::fs::write(&file, text).unwrap();
        let blocks = printed(&["--config", file.to_str().unwrap(), "--print-tools"]);
        let read: toml::Table = blocks.parse().unwrap_or_else(|error| panic!("{error}"));
        let tool = &read["tool"][0];
        let schema: serde_json::Value =
            serde_json::from_str(tool["input_schema"].as_str().unwrap()).unwrap();
        let stated = schema["properties"]["a"]["description"].as_str();
        assert_eq!(stated, tool["description"].as_str(), "{blocks}");
    }
}

#[test]
fn what_is_not_served_is_not_printed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("runner.toml");
    std::fs::write(&file, "[[folder]]\npath = \"/srv/docs\"\n").unwrap();
    let blocks = printed(&[
        "--config",
        file.to_str().unwrap(),
        "--role",
        "web",
        "--print-tools",
    ]);
    assert!(
        blocks.contains("runner = \"web\"") && !blocks.contains("write_file"),
        "{blocks}"
    );
}
