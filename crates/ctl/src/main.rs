//! rolebroker: the command line.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser as _;
use ctl::cli::Cli;
use ctl::{exit, out, printable};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Nothing better can be done if even that does not get out.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { exit::USAGE } else { 0 });
        }
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
