use clap::{CommandFactory as _, Parser as _};
use client::proto::Control;
use client::{DataClass, Error};
use ctl::cli::{self, Cli, Command, ScopeArg};
use ctl::exit::{self, NotDone, Usage, code_of};

fn typed(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(line.split(' '))
}

#[test]
fn the_command_line_is_well_formed() {
    cli::command().debug_assert();
}

/// The words of a line as a shell splits them.
fn words(line: &str) -> Vec<String> {
    let print = format!("printf '%s\\0' {line}");
    let output = std::process::Command::new("sh")
        .args(["-c", &print])
        .output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    text.split_terminator('\0').map(str::to_owned).collect()
}

#[test]
fn every_command_has_examples_and_each_of_them_can_be_typed() {
    for command in Cli::command().get_subcommands() {
        let name = command.get_name();
        let mut own = cli::examples().filter(|(of, _)| *of == name);
        assert!(
            own.next().is_some(),
            "{name} has no example: add it to cli/help.rs"
        );
    }
    for (name, line) in cli::examples() {
        let matches = Cli::command()
            .try_get_matches_from(words(line))
            .unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(matches.subcommand_name(), Some(name), "{line}");
    }
}

#[test]
fn places_and_json_may_stand_behind_the_command() {
    let cli = typed("rolebroker call read_file path=/a --runtime-dir /r --as bot --json").unwrap();
    assert!(cli.place.json);
    assert_eq!(cli.place.socket("agent").to_str(), Some("/r/bot.sock"));
    let Command::Call(args) = cli.command else {
        panic!("not a call")
    };
    assert_eq!(
        (args.session.as_str(), args.call, args.arguments.len()),
        ("cli", None, 1)
    );
}

#[test]
fn a_socket_can_be_named_but_not_together_with_a_role() {
    let cli = typed("rolebroker status --role-socket /r/x.sock").unwrap();
    assert_eq!(cli.place.socket("operator").to_str(), Some("/r/x.sock"));
    assert!(typed("rolebroker status --role-socket /r/x.sock --as admin").is_err());
}

#[test]
fn an_approval_is_for_one_call_unless_said_otherwise() {
    for (line, wanted) in [
        ("rolebroker approve a7", ScopeArg::Once),
        (
            "rolebroker approve a7 --scope session --comment fine",
            ScopeArg::Session,
        ),
    ] {
        let Command::Approve(args) = typed(line).unwrap().command else {
            panic!("{line}")
        };
        assert_eq!(args.scope, wanted, "{line}");
    }
    assert!(typed("rolebroker approve a7 --scope always").is_err());
    assert!(typed("rolebroker approve a/7").is_err());
    assert!(typed("rolebroker call --session -x read_file").is_err());
}

#[test]
fn an_operator_names_whom_and_why() {
    let cli = typed("rolebroker declassify bot mm-42 internal --reason seen --as admin").unwrap();
    assert_eq!(cli.place.socket("operator"), client::socket("admin"));
    let Command::Declassify(args) = cli.command else {
        panic!("not declassify")
    };
    let Control::Declassify {
        role,
        session,
        class,
        ..
    } = Control::from(args)
    else {
        panic!("another op")
    };
    assert_eq!(
        (role.as_str(), session.as_str(), class),
        ("bot", "mm-42", DataClass::Internal)
    );
    assert!(
        typed("rolebroker declassify bot mm-42 internal").is_err(),
        "a reason is needed"
    );
    assert!(typed("rolebroker endorse bot * --reason known").is_ok());
}

#[test]
fn each_kind_of_trouble_has_its_exit_code() {
    let path = std::path::PathBuf::from("/r/x.sock");
    let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
    let connect = Error::Connect {
        path: path.clone(),
        cause: refused,
    };
    for (error, code) in [
        (anyhow::Error::new(Usage("no".to_owned())), exit::USAGE),
        (anyhow::Error::new(connect), exit::UNAVAILABLE),
        (
            anyhow::Error::new(Error::NotAdmitted { path, uid: Some(1) }),
            exit::PERMISSION,
        ),
        (
            anyhow::Error::new(NotDone("settled".to_owned())),
            exit::NOT_DONE.0,
        ),
        (anyhow::anyhow!("what else"), exit::INTERNAL),
    ] {
        assert_eq!(code_of(&error), code, "{error}");
    }
}
