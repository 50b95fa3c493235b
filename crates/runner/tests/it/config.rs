use client::DataClass;
use runner::Access;
use runner::config::Config;
use runner::confine::Confine;

fn faults(text: &str) -> Vec<String> {
    Config::parse("runner.toml", text)
        .expect_err("faults")
        .faults
}

#[test]
fn the_sample_configuration_is_sound_and_its_comments_are_true() {
    let sample = include_str!("../../../../config/runner.toml");
    let config = Config::parse("runner.toml", sample).unwrap_or_else(|error| panic!("{error}"));
    assert!(!config.folders.is_empty() && !config.commands.is_empty());
    for command in &config.commands {
        assert!(command.input_schema().is_object());
    }
}

#[test]
fn what_is_not_said_is_taken_at_its_worst() {
    let text = "[[folder]]\npath = \"/srv\"\n[[command]]\nname = \"c\"\ndescription = \"d\"\nargv = [\"/bin/c\"]\n";
    let config = Config::parse("runner.toml", text).unwrap();
    let folder = &config.folders[0];
    assert_eq!(folder.access, Access::Read);
    assert!(folder.label.untrusted);
    let command = &config.commands[0];
    assert_eq!(
        (command.label.class, command.label.untrusted),
        (DataClass::Confidential, true)
    );
    assert_eq!(command.effects, client::proto::Effects::Once);
    assert!(command.egress && !command.reach.network && command.env.is_empty());
    assert_eq!(config.confine, Confine::BestEffort);
}

#[test]
fn every_fault_is_told_at_once_with_its_line() {
    let text = r#"role = "Files"
sockets = "/run/x.sock"
confine = "perhaps"
[[folder]]
path = "srv/docs"
class = "top"
write = "yes"
[[command]]
name = "read_file"
argv = ["sh", "{what}", "x{list}"]
timeout = "5"
memory = "1MiB"
env = { "A=B" = "c" }
egress = false
network = true
[command.arguments.list]
type = "list"
max_items = 0
[command.arguments.number]
type = "integer"
min = -1
max = 1
regex = "a"
[command.arguments.text]
type = "strange"
"#;
    let told = faults(text);
    let expected = [
        ":1: the configuration:",
        ":2: the configuration: unknown key `sockets`",
        ":3: the configuration: `confine` must be one of `required`, `best-effort`, `off`",
        ":5: folder 1: `path` must be an absolute path",
        ":6: folder 1: `class` must be one of",
        ":7: folder 1: `write` must be true or false",
        ":9: command `read_file`: there is another tool of this name",
        ":10: command `read_file`: there is no argument `what`",
        ":10: command `read_file`: argument `list` must be an element by itself",
        ":10: command `read_file`: `argv` must be an absolute path",
        ":11: command `read_file`: `timeout` must be a duration",
        ":12: command `read_file`: `memory` must be a size",
        ":13: command `read_file`: `env` maps",
        ":14: command `read_file`: `egress` cannot be false",
        ":18: command `read_file`, argument `list`: `max_items` must be",
        ":21: command `read_file`, argument `number`: a negative number begins with `-`",
        ":23: command `read_file`, argument `number`: `regex` is not for arguments of this type",
        ":25: command `read_file`, argument `text`: `type` must be one of",
        "command `read_file`: `description` is missing",
        "argument `number` stands nowhere in `argv`",
    ];
    for part in expected {
        assert!(
            told.iter().any(|fault| fault.contains(part)),
            "no {part} in\n{}",
            told.join("\n")
        );
    }
    let lines: Vec<u32> = told
        .iter()
        .map(|fault| fault.split(':').nth(1).unwrap().parse().unwrap())
        .collect();
    assert!(lines.is_sorted(), "{told:#?}");
}

#[test]
fn a_folder_that_is_named_twice_is_a_fault_where_it_stands() {
    let folder = "[[folder]]\npath = \"/srv/docs\"\n";
    let told = faults(&[folder, folder].concat());
    assert_eq!(
        told,
        ["runner.toml:4: folder 2: /srv/docs is a [[folder]] already"]
    );
}

#[test]
fn a_command_counts_as_no_less_than_the_files_that_its_arguments_reach() {
    let text = |class: &str| {
        format!(
            "[[folder]]\npath = \"/srv/a\"\nclass = \"public\"\nuntrusted = false\n\
             [[folder]]\npath = \"/srv/a/keys\"\nclass = \"secret\"\nuntrusted = false\n\
             [[command]]\nname = \"c\"\ndescription = \"d\"\nargv = [\"/bin/c\", \"{{p}}\"]\nclass = \"{class}\"\n\
             untrusted = false\n[command.arguments.p]\ntype = \"path\"\nbelow = [\"/srv/a\"]\n"
        )
    };
    let told = faults(&text("confidential"));
    assert!(told[0].contains("reaches /srv/a/keys"), "{told:?}");
    assert!(Config::parse("runner.toml", &text("secret")).is_ok());
}

#[test]
fn a_command_writes_only_where_a_folder_is_served_for_writing() {
    let text = "[[folder]]\npath = \"/srv/a\"\n[[command]]\nname = \"c\"\ndescription = \"d\"\nargv = [\"/bin/c\", \"{p}\"]\n\
                [command.arguments.p]\ntype = \"path\"\nbelow = [\"/srv/a\", \"/srv/b\"]\nwrite = true\n";
    let told = faults(text).join("\n");
    assert!(
        told.contains("for reading only") && told.contains("must name a [[folder]]"),
        "{told}"
    );
}

#[test]
fn a_text_that_is_no_toml_or_serves_nothing_is_refused() {
    assert!(faults("role = ")[0].contains("no TOML"));
    assert!(faults("role = \"files\"")[0].contains("serves nothing"));
    assert!(faults(&format!("#{}", "x".repeat(2 << 20)))[0].contains("at most"));
}
