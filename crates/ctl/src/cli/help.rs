//! What stands behind the options in `--help` and on the man pages, in one place: exit codes, files, environment, and
//! examples for each command. A heading ends in a colon; rows below it are a term, two spaces or more, and its meaning.

use clap::{Command, CommandFactory as _};

use super::Cli;

const ALL: &str = "\
Exit status:
  0    done; of a call: it has a result
  1    not done: the broker or a person did not take it, or something is in the way; of replay: decisions would change
  3    the call was denied
  4    the call failed
  64   the command line is wrong
  66   what replay or suggest --past reads cannot be read
  69   no broker answers
  70   a fault of this command or of the broker
  77   the broker does not admit this user
  78   the configuration that was checked has faults
  130  interrupted a second time before the call had ended

Files:
  /run/rolebroker/ROLE.sock                  the socket of a role
  $XDG_RUNTIME_DIR/rolebroker/ROLE.sock      the same, where an ordinary user runs the daemon
  /etc/rolebroker/rolebroker.toml            the daemon's configuration
  $XDG_CONFIG_HOME/rolebroker/rolebroker.toml  where init writes one for an ordinary user

Environment:
  ROLEBROKER_RUNTIME_DIR  the folder of the sockets
  XDG_RUNTIME_DIR         where they are if that is not set and there is no /run/rolebroker
  XDG_CONFIG_HOME, XDG_DATA_HOME, XDG_STATE_HOME  where init puts things; below the home if they are not set
  SUDO_USER               whom init takes for the approver
  TERM                    without one, or if it is dumb, call draws no progress";

/// A command line or two for each command, with what it is for. A test reads each of them.
const EXAMPLES: &[(&str, &str)] = &[
    (
        "init",
        "
  rolebroker init
  rolebroker init --agent-user bot --approver-user alice --folder /srv/notes
  rolebroker init --print",
    ),
    (
        "call",
        "
  rolebroker call read_file path=/srv/notes/a.txt
  rolebroker call --session mm-42 --call 7 write_file path=/srv/notes/a.txt content=hi
  rolebroker call --as bot search '{\"query\":\"a plan\",\"limit\":3}' --json",
    ),
    (
        "approvals",
        "
  rolebroker approvals
  rolebroker approvals --settled --as alice
  rolebroker approvals --watch --exec /usr/local/bin/tell-me",
    ),
    (
        "approve",
        "
  rolebroker approve a7
  rolebroker approve a7 --scope session --comment 'for today'",
    ),
    ("refuse", "
  rolebroker refuse a7 --comment 'not to him'"),
    ("status", "
  rolebroker status
  rolebroker status --json"),
    ("reload", "
  rolebroker reload"),
    ("drain", "
  rolebroker drain"),
    ("sessions", "
  rolebroker sessions bot"),
    ("session", "
  rolebroker session bot mm-42"),
    ("join", "
  rolebroker join bot mm-42 mm-43
  rolebroker join bot mm-42 mm-43 --close"),
    ("close", "
  rolebroker close bot mm-42"),
    (
        "declassify",
        "
  rolebroker declassify bot mm-42 internal --reason 'the report is published'
  rolebroker declassify bot '*' public --reason 'a drill'",
    ),
    ("endorse", "
  rolebroker endorse bot mm-42 --reason 'I read the page'"),
    ("grants", "
  rolebroker grants"),
    ("grant", "
  rolebroker grant more.toml --reason 'for the move'
  rolebroker grant - --reason 'for the move'"),
    ("revoke", "
  rolebroker revoke more --reason 'the move is over'"),
    (
        "preapprove",
        "
  rolebroker preapprove bot mm-42 write_file --grant notes --arguments '{\"path\":\"/srv/notes/a.txt\"}' --label internal --uses 3 --ttl 30m --reason 'while I am away'",
    ),
    ("tools", "
  rolebroker tools"),
    (
        "accept-tool",
        "
  rolebroker accept-tool web web.fetch --reason 'I read it'
  rolebroker accept-tool web web.fetch --reason 'read before' --yes --json",
    ),
    (
        "check",
        "
  rolebroker check
  rolebroker check /etc/rolebroker/rolebroker.toml --above internal --strict",
    ),
    (
        "audit",
        "
  rolebroker audit --session mm-42 --since 2h
  rolebroker audit --decision deny --json
  rolebroker audit --role bot --lines 10 --follow
  rolebroker audit verify --state-dir /var/lib/rolebroker
  rolebroker audit export",
    ),
    (
        "replay",
        "
  rolebroker replay
  rolebroker replay --config new.toml --since 7d --role bot
  rolebroker replay --config new.toml --json --state-dir /var/lib/rolebroker",
    ),
    (
        "backup",
        "
  rolebroker backup /var/backups/rolebroker.db",
    ),
    (
        "restore",
        "
  rolebroker restore /var/backups/rolebroker.db --reason 'the disk broke'
  rolebroker restore /var/lib/rolebroker/rolebroker.db --reason 'its end was lost' --state-dir /var/lib/rolebroker",
    ),
    (
        "explain",
        "
  rolebroker explain bot mm-42 7
  rolebroker explain --record bot mm-42 7
  rolebroker explain bot mm-42 --tool read_file path=/srv/notes/a.txt",
    ),
    (
        "suggest",
        "
  rolebroker suggest bot mm-42 7
  rolebroker suggest bot --past --since 7d
  rolebroker suggest bot --past --session mm-42 --tool read_file --config new.toml
  rolebroker suggest bot --past --any-session --json",
    ),
    (
        "tail",
        "
  rolebroker tail
  rolebroker tail --role bot --json",
    ),
    ("demo", "
  rolebroker demo"),
];

/// The whole definition of the command line: what is typed, and what is told about it.
pub fn command() -> Command {
    let mut command = Cli::command().after_long_help(ALL);
    for (name, examples) in EXAMPLES {
        let told = format!("Examples:{examples}");
        if command.find_subcommand(name).is_some() {
            command = command.mut_subcommand(name, |command| command.after_long_help(told));
        }
    }
    command
}

/// The command lines of the examples, each with the command that it is for.
pub fn examples() -> impl Iterator<Item = (&'static str, &'static str)> {
    EXAMPLES.iter().flat_map(|(name, lines)| {
        let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.map(|line| (*name, line))
    })
}
