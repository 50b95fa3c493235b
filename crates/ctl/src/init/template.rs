//! The text of the configuration: parts that are files of their own, with marks where values go. A mark is a whole
//! string, such as `"${FOLDER}"`, so each part is TOML as it stands; the value that takes its place, quotes
//! included, is written by the toml crate. Nothing that came from outside is ever read as more than one value.

use anyhow::Context as _;
use toml::Value;

/// For one user who tries it out.
const USER: &str = include_str!("../../../../config/init/user.toml");
/// For a machine, with a user for each role.
const SYSTEM: &str = include_str!("../../../../config/init/system.toml");
/// What tools are.
const TOOLS: &str = include_str!("../../../../config/init/tools.toml");
/// More grants, as comments.
const MORE: &str = include_str!("../../../../config/init/more.toml");
/// What the runner serves.
const RUNNER: &str = include_str!("../../../../config/init/runner.toml");
/// The daemon's own default: its tools and grants are these ones too.
const DEFAULT: &str = include_str!("../../../../config/default.toml");
/// With the first of these the default's tools begin; everything behind it is tools, then grants.
const FIRST_TOOL: &str = "[[tool]]\n";

/// For whom a configuration is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// One person who tries it out.
    User,
    /// A machine.
    System,
}

/// What goes into the marks.
#[derive(Debug)]
pub(super) struct Values<'a> {
    pub(super) agent: &'a str,
    pub(super) runner: &'a str,
    pub(super) approver: &'a str,
    pub(super) operator: &'a str,
    pub(super) folder: &'a str,
    pub(super) runtime_dir: &'a str,
    /// The runner's socket in it.
    pub(super) socket: &'a str,
    pub(super) state_dir: &'a str,
    pub(super) shared: Shared,
}

/// Whether one user may be on both sides of an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shared {
    /// For trying out.
    Yes,
    /// Roles are separated.
    No,
}

impl Values<'_> {
    fn of(&self, mark: &str) -> Option<Value> {
        Some(match mark {
            "AGENT" => Value::from(self.agent),
            "RUNNER" => Value::from(self.runner),
            "APPROVER" => Value::from(self.approver),
            "OPERATOR" => Value::from(self.operator),
            "FOLDER" => Value::from(self.folder),
            "RUNTIME_DIR" => Value::from(self.runtime_dir),
            "SOCKET" => Value::from(self.socket),
            "STATE_DIR" => Value::from(self.state_dir),
            "SHARED" => Value::from(self.shared == Shared::Yes),
            _ => return None,
        })
    }
}

/// The configuration's text. `policy` has read it, and found nothing wrong.
///
/// # Errors
/// A value does not do in a configuration.
pub(super) fn text(kind: Kind, values: &Values<'_>) -> anyhow::Result<String> {
    let head = match kind {
        Kind::User => USER,
        Kind::System => SYSTEM,
    };
    let at = DEFAULT
        .find(FIRST_TOOL)
        .context("the default declares no tool")?;
    let tools_and_grants = &DEFAULT[at..];
    let text = fill(&[head, TOOLS, tools_and_grants, MORE].concat(), values)?;
    policy::Config::parse("the configuration", &text).map_err(|faults| {
        crate::exit::Usage(format!(
            "with these values the configuration would have faults; nothing was written:\n{faults}"
        ))
    })?;
    Ok(text)
}

/// The text of the runner's configuration. It serves the folder that the other one grants.
///
/// # Errors
/// The template has a mark that nothing stands for.
pub(super) fn runner_text(values: &Values<'_>) -> anyhow::Result<String> {
    fill(RUNNER, values)
}

/// Every mark replaced, in one pass: what took a mark's place is not looked at again.
fn fill(template: &str, values: &Values<'_>) -> anyhow::Result<String> {
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, behind)) = rest.split_once("\"${") {
        let (mark, after) = behind.split_once("}\"").context("a mark has no end")?;
        let value = values
            .of(mark)
            .with_context(|| format!("nothing stands for {mark}"))?;
        text.push_str(before);
        text.push_str(&value.to_string());
        rest = after;
    }
    text.push_str(rest);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values<'a>(folder: &'a str, agent: &'a str) -> Values<'a> {
        Values {
            agent,
            runner: "rolebroker-runner",
            approver: "ann",
            operator: "root",
            folder,
            runtime_dir: "/run/rolebroker",
            socket: "/run/rolebroker/runner.sock",
            state_dir: "/var/lib/rolebroker",
            shared: Shared::No,
        }
    }

    #[test]
    fn no_value_can_write_configuration() {
        for kind in [Kind::User, Kind::System] {
            for hostile in [
                "/a\"]\nallow_shared_uid = true\n#",
                "/a'b",
                "/a\\",
                "/\"${AGENT}\"",
                "/'''\"\"\"",
                "/ä\u{202e}",
                "/\u{1}\u{7f}",
            ] {
                let filled = fill(SYSTEM, &values(hostile, hostile)).unwrap();
                let read: toml::Table = filled.parse().unwrap_or_else(|error| {
                    panic!("{hostile:?}: {error}\n{filled}");
                });
                assert_eq!(
                    read["roles"]["agent"]["users"],
                    Value::from(vec![hostile.to_owned()])
                );
                assert_eq!(read["broker"]["allow_shared_uid"], Value::from(false));
                let runner = runner_text(&values(hostile, hostile)).unwrap();
                let read: toml::Table = runner.parse().unwrap();
                assert_eq!(read["folder"][0]["path"], Value::from(hostile));
                if let Ok(text) = text(kind, &values(hostile, "bot")) {
                    let read: toml::Table = text.parse().unwrap();
                    let grant = &read["grant"][0]["where"]["/path"]["under"];
                    assert_eq!(*grant, Value::from(hostile), "{kind:?}");
                }
            }
        }
    }

    #[test]
    fn both_kinds_are_whole_and_leave_no_mark_open() {
        for kind in [Kind::User, Kind::System] {
            let text = text(kind, &values("/srv/files", "bot")).unwrap();
            assert!(!text.contains("${"), "{text}");
            let config = policy::Config::parse("it", &text).unwrap();
            assert_eq!(config.roles.len(), 4);
            assert!(config.ruleset.tool("read_file").is_some());
            assert!(config.ruleset.grants().len() >= 2);
        }
    }

    #[test]
    fn the_runner_serves_just_the_folder_that_is_granted() {
        let values = values("/srv/files", "bot");
        let runner: toml::Table = runner_text(&values).unwrap().parse().unwrap();
        let config = policy::Config::parse("it", &text(Kind::System, &values).unwrap()).unwrap();
        let role = runner["role"].as_str().unwrap();
        assert!(config.roles.keys().any(|name| name.as_str() == role));
        assert_eq!(
            runner["socket"].as_str(),
            Some("/run/rolebroker/runner.sock")
        );
        let folders = runner["folder"].as_array().unwrap();
        assert_eq!(folders.len(), 1);
        assert_eq!(folders[0]["path"].as_str(), Some("/srv/files"));
    }

    #[test]
    fn the_grants_that_stand_there_as_comments_are_good_ones() {
        let text = text(Kind::System, &values("/srv/files", "bot")).unwrap();
        let (before, more) = text.split_once("\n# [[grant]]").unwrap();
        let bare: String = format!("# [[grant]]{more}")
            .lines()
            .map(|line| line.strip_prefix("# ").unwrap_or(""))
            // Prose has no `=` and no bracket in front.
            .filter(|line| line.contains(" = ") || line.starts_with('['))
            .map(|line| format!("{line}\n"))
            .collect();
        let without = policy::Config::parse("it", before).unwrap();
        let with = policy::Config::parse("it", &format!("{before}\n{bare}")).unwrap();
        assert_eq!(
            with.ruleset.grants().len(),
            without.ruleset.grants().len() + 2
        );
    }

    #[test]
    fn what_does_not_do_in_a_configuration_is_told() {
        let error = text(Kind::User, &values("not-absolute", "bot")).unwrap_err();
        assert!(error.to_string().contains("grant"), "{error}");
    }
}
