//! What is to be written: whose roles, which folders, which file.

use std::path::{Path, PathBuf};

use nix::unistd::geteuid;

use super::next::{Step, quoted};
use super::place::{self, Owner};
use super::surroundings::{Homes, Known};
use super::template::{self, Kind, Shared, Values};
use crate::cli::{InitArgs, Place};
use crate::exit::Usage;

const SYSTEM_FILE: &str = "/etc/rolebroker/rolebroker.toml";
/// The runner's configuration, beside the daemon's; where its unit looks for it, if its role is `runner`.
const RUNNER_FILE: &str = "runner.toml";
const SYSTEM_FOLDER: &str = "/srv/rolebroker";
const SYSTEM_RUNTIME: &str = "/run/rolebroker";
const SYSTEM_STATE: &str = "/var/lib/rolebroker";
/// Where the daemon's unit is, if it is installed.
const UNITS: [&str; 3] = [
    "/etc/systemd/system/rolebrokerd.service",
    "/usr/local/lib/systemd/system/rolebrokerd.service",
    "/usr/lib/systemd/system/rolebrokerd.service",
];
/// The user of the runner's unit, for the role `runner`.
const RUNNER_OF_UNIT: &str = "rolebroker-runner";
/// The longest path of a socket, in bytes, and the longest name of one here.
const MAX_SOCKET_PATH: usize = 107;
const LONGEST_SOCKET: &str = "operator.sock";

/// The users of the four roles.
#[derive(Debug)]
struct Users {
    agent: Known,
    runner: Known,
    approver: Known,
    operator: Known,
}

/// What is to be written.
#[derive(Debug)]
pub(super) struct Plan {
    kind: Kind,
    users: Users,
    shared: Shared,
    /// The one folder of the file tools.
    pub(super) folder: PathBuf,
    runtime_dir: PathBuf,
    state_dir: PathBuf,
    /// The file.
    pub(super) config: PathBuf,
}

/// The texts of both files.
#[derive(Debug)]
pub(super) struct Texts {
    /// Of the daemon's configuration.
    pub(super) broker: String,
    /// Of the runner's.
    pub(super) runner: String,
}

impl Plan {
    /// Root's plan is for the machine, anybody else's for that user.
    ///
    /// # Errors
    /// Users that do not exist or do not separate the roles, and paths that do not do.
    pub(super) fn of(place: &Place, args: &InitArgs) -> Result<Plan, Usage> {
        let mut plan = if geteuid().is_root() {
            Plan::of_machine(args)?
        } else {
            Plan::of_user(place, args)?
        };
        for (stated, path) in [
            (&args.folder, &mut plan.folder),
            (&place.runtime_dir, &mut plan.runtime_dir),
            (&args.state_dir, &mut plan.state_dir),
            (&args.output, &mut plan.config),
        ] {
            *path = place::absolute(stated.as_ref().unwrap_or(path))?;
        }
        if plan.folder == Path::new("/") {
            return Err(Usage(
                "the folder would be the whole machine: name another with --folder".to_owned(),
            ));
        }
        if plan.config.file_name() == Some(RUNNER_FILE.as_ref()) {
            return Err(Usage(format!(
                "{RUNNER_FILE} is the runner's configuration, written beside this one: name another with --output"
            )));
        }
        let longest = plan.runtime_dir.join(LONGEST_SOCKET);
        if longest.as_os_str().len() > MAX_SOCKET_PATH {
            return Err(Usage(format!(
                "{} is over {MAX_SOCKET_PATH} bytes, too long for a socket: name a shorter folder with --runtime-dir",
                longest.display()
            )));
        }
        Ok(plan)
    }

    fn of_user(place: &Place, args: &InitArgs) -> Result<Plan, Usage> {
        let named = [
            &args.agent_user,
            &args.runner_user,
            &args.approver_user,
            &args.operator_user,
        ];
        if named.iter().any(|user| user.is_some()) {
            return Err(Usage(
                "only a daemon of the machine has roles of different users: run `rolebroker init` as root".to_owned(),
            ));
        }
        let homes = Homes::of_process();
        let own = Known::own();
        Ok(Plan {
            kind: Kind::User,
            users: Users {
                agent: own.clone(),
                runner: own.clone(),
                approver: own.clone(),
                operator: own,
            },
            shared: Shared::Yes,
            // What is stated is not looked for.
            folder: stated(&args.folder, || homes.folder())?,
            runtime_dir: stated(&place.runtime_dir, || homes.runtime())?,
            state_dir: stated(&args.state_dir, || homes.state())?,
            config: stated(&args.output, || homes.config())?,
        })
    }

    fn of_machine(args: &InitArgs) -> Result<Plan, Usage> {
        let users = Users::of_machine(args)?;
        let shared = users.separation(args)?;
        Ok(Plan {
            kind: Kind::System,
            users,
            shared,
            folder: PathBuf::from(SYSTEM_FOLDER),
            runtime_dir: PathBuf::from(SYSTEM_RUNTIME),
            state_dir: PathBuf::from(SYSTEM_STATE),
            config: PathBuf::from(SYSTEM_FILE),
        })
    }

    /// What is written.
    ///
    /// # Errors
    /// A value does not do in a configuration.
    pub(super) fn texts(&self) -> anyhow::Result<Texts> {
        let text = |path: &Path| path.display().to_string();
        let values = Values {
            agent: &self.users.agent.name,
            runner: &self.users.runner.name,
            approver: &self.users.approver.name,
            operator: &self.users.operator.name,
            folder: &text(&self.folder),
            runtime_dir: &text(&self.runtime_dir),
            socket: &text(&self.runtime_dir.join("runner.sock")),
            state_dir: &text(&self.state_dir),
            shared: self.shared,
        };
        Ok(Texts {
            broker: template::text(self.kind, &values)?,
            runner: template::runner_text(&values)?,
        })
    }

    /// The runner's configuration.
    pub(super) fn runner_config(&self) -> PathBuf {
        self.config.with_file_name(RUNNER_FILE)
    }

    /// The mode that the folder gets if it is made, and whose it is then.
    pub(super) fn folder_is(&self) -> (u32, Option<Owner>) {
        match self.kind {
            Kind::User => (0o700, None),
            Kind::System => (0o750, Some(self.users.runner.owner())),
        }
    }

    /// The mode of folders above it that are made.
    pub(super) fn above_folder(&self) -> u32 {
        match self.kind {
            Kind::User => 0o700,
            Kind::System => place::OPEN,
        }
    }

    /// What whoever runs this should know.
    pub(super) fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        match (self.kind, self.shared) {
            (Kind::User, _) => remarks.push(
                "All roles are this user: nothing is separated, and it is for trying out. Run as root, `rolebroker init` \
                 writes roles of different users."
                    .to_owned(),
            ),
            (Kind::System, Shared::Yes) => remarks.push(
                "The roles are not separated: an agent could approve its own calls. It is for trying out.".to_owned(),
            ),
            (Kind::System, Shared::No) => {}
        }
        if self.has_units() && self.folder != Path::new(SYSTEM_FOLDER) {
            remarks.push(format!(
                "The runner's unit may write below {SYSTEM_FOLDER} only: `systemctl edit rolebroker-runner@runner`, and \
                 ReadWritePaths={} below [Service].",
                self.folder.display()
            ));
        }
        remarks
    }

    /// Whether the daemon's unit is there and would find what is written.
    fn has_units(&self) -> bool {
        self.config == Path::new(SYSTEM_FILE) && UNITS.iter().any(|unit| Path::new(unit).exists())
    }

    /// What starts the runner, and as whom it is typed.
    fn start_runner(&self) -> Step {
        let what = "start the runner";
        if self.has_units() && self.users.runner.name == RUNNER_OF_UNIT {
            return Step {
                what,
                user: Known::own().name,
                command: "systemctl enable --now rolebroker-runner@runner".to_owned(),
            };
        }
        let runner = &self.users.runner;
        let config = quoted(&self.runner_config());
        // Its socket stands in there.
        let command = format!("rolebroker-runner --config {config}");
        Step {
            what,
            user: runner.name.clone(),
            command: as_them(runner) + &command,
        }
    }

    /// What to type next, in this order.
    pub(super) fn steps(&self) -> Vec<Step> {
        let folder = quoted(&self.folder);
        let file = quoted(&self.folder.join("hello.txt"));
        let daemon = if self.has_units() {
            "systemctl enable --now rolebrokerd".to_owned()
        } else {
            format!("rolebrokerd --config {}", quoted(&self.config))
        };
        let own = Known::own();
        let users = &self.users;
        vec![
            Step {
                what: "start the daemon",
                user: own.name.clone(),
                command: daemon,
            },
            self.start_runner(),
            self.step(
                "a first call",
                &users.agent,
                &format!("rolebroker call list_dir path={folder}"),
            ),
            self.step(
                "one that waits for a person",
                &users.agent,
                &format!("rolebroker call write_file path={file} content=hello"),
            ),
            self.step("what waits", &users.approver, "rolebroker approvals"),
            self.step(
                "approve it, by the name that it has there",
                &users.approver,
                "rolebroker approve ID",
            ),
            self.step("how the broker is", &users.operator, "rolebroker status"),
        ]
    }

    fn step(&self, what: &'static str, user: &Known, command: &str) -> Step {
        let mut line = String::new();
        if !self.is_found() {
            line = format!("ROLEBROKER_RUNTIME_DIR={} ", quoted(&self.runtime_dir));
        }
        Step {
            what,
            user: user.name.clone(),
            command: line + &as_them(user) + command,
        }
    }

    /// Whether a command finds the sockets without being told where they are, once they are there.
    fn is_found(&self) -> bool {
        let mut folders = client::runtime_dirs().into_iter();
        folders.find(|folder| *folder == self.runtime_dir || folder.exists())
            == Some(self.runtime_dir.clone())
    }
}

/// What stands before a command of another user.
fn as_them(user: &Known) -> String {
    if user.uid == geteuid().as_raw() {
        String::new()
    } else {
        format!("runuser -u {} -- ", user.name)
    }
}

fn stated(
    stated: &Option<PathBuf>,
    otherwise: impl FnOnce() -> Result<PathBuf, Usage>,
) -> Result<PathBuf, Usage> {
    stated.clone().map_or_else(otherwise, Ok)
}

impl Users {
    /// Those that were named, or the usual ones; every one that is missing is told.
    fn of_machine(args: &InitArgs) -> Result<Users, Usage> {
        let mut faults = Vec::new();
        let mut find = |stated: &Option<String>, usual: Option<String>, flag: &str| {
            let Some(name) = stated.clone().or(usual) else {
                faults.push(format!("nobody is named who is asked: say {flag} NAME"));
                return None;
            };
            Known::find(&name, flag)
                .map_err(|fault| faults.push(fault))
                .ok()
        };
        let usual = |name: &str| Some(name.to_owned());
        let agent = find(&args.agent_user, usual("rolebroker-agent"), "--agent-user");
        let runner = find(
            &args.runner_user,
            usual("rolebroker-runner"),
            "--runner-user",
        );
        let typed_sudo = std::env::var("SUDO_USER").ok();
        let approver = find(&args.approver_user, typed_sudo, "--approver-user");
        let operator = find(&args.operator_user, usual("root"), "--operator-user");
        match (agent, runner, approver, operator) {
            (Some(agent), Some(runner), Some(approver), Some(operator)) => Ok(Users {
                agent,
                runner,
                approver,
                operator,
            }),
            _ => Err(Usage(faults.join("\n"))),
        }
    }

    /// Whether the configuration has to let one user be on both sides. An approver may be the operator too: both
    /// watch.
    ///
    /// # Errors
    /// The users do not separate the roles, and `--shared` is not given.
    fn separation(&self, args: &InitArgs) -> Result<Shared, Usage> {
        let named = [
            ("agent", &self.agent),
            ("runner", &self.runner),
            ("approver", &self.approver),
            ("operator", &self.operator),
        ];
        let mut faults = Vec::new();
        for (at, (one, user)) in named.iter().enumerate() {
            for (other, same) in &named[at + 1..] {
                if user.uid == same.uid && (*one, *other) != ("approver", "operator") {
                    faults.push(format!("{one} and {other} are both {}", user.name));
                }
            }
        }
        for (role, user) in &named[..2] {
            if user.uid == 0 {
                faults.push(format!("root as the {role} can do everything unasked"));
            }
        }
        if !faults.is_empty() && !args.shared {
            return Err(Usage(format!(
                "the roles are not separated: {}; name other users with --agent-user, --runner-user, --approver-user, \
                 --operator-user, or write it so, for trying out, with --shared",
                faults.join("; ")
            )));
        }
        let watching = [self.approver.uid, self.operator.uid];
        let both = [self.agent.uid, self.runner.uid]
            .iter()
            .any(|uid| watching.contains(uid));
        Ok(if both { Shared::Yes } else { Shared::No })
    }
}
