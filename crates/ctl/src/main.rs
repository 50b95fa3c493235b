//! rolebroker: the command line.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::FromArgMatches as _;
use ctl::cli::{self, Cli};
use ctl::{exit, out, printable};

fn main() -> ExitCode {
    let typed = cli::command().try_get_matches();
    let cli = match typed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return untyped(&error),
    };
    let json = cli.place.json;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start");
    let ended = runtime.and_then(|runtime| {
        let ended = runtime.block_on(ctl::run(cli));
        // A question that nobody answered must not hold the end up.
        runtime.shutdown_background();
        ended
    });
    match ended {
        Ok(exit) => ExitCode::from(exit.0),
        Err(error) => {
            let message = format!("{error:#}");
            if json {
                let error = serde_json::json!({ "status": "error", "message": message });
                out::json(&error.to_string());
            } else {
                eprintln!("rolebroker: {}", printable::message(&message));
            }
            ExitCode::from(exit::code_of(&error))
        }
    }
}

/// The line cannot be understood, or asks for help.
fn untyped(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // Nothing better can be done if even that does not get out.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    if std::env::args_os().any(|word| word == "--json") {
        let message = error.render().to_string();
        let said = serde_json::json!({ "status": "error", "message": message.trim_end() });
        out::json(&said.to_string());
    } else {
        let _ = error.print();
    }
    ExitCode::from(exit::USAGE)
}
