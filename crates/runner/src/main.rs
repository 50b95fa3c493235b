//! rolebroker-runner: serves file tools below folders, and commands, to the broker's socket for this role.

mod logs;
mod serving;
mod work;

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use runner::cli::{self, Args, Settings};
use runner::command::{Runs, confined, guard};
use runner::confine::{Confine, confine_runner, missing};
use runner::{Folders, declared, tool_blocks};
use work::Tools;

const EXIT_USAGE: u8 = 64;
const EXIT_INTERNAL: u8 = 70;
const EXIT_CONFIGURATION: u8 = 78;
/// This program, also where its file was replaced meanwhile.
const THIS_PROGRAM: &str = "/proc/self/exe";
/// Files that are worked on at a time.
const FILE_THREADS: usize = 16;
/// How long the end of the process waits for a file system that does not answer.
const LAST_WAIT: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let mode = arguments.next();
    if mode.as_ref().is_some_and(|mode| mode == guard::MODE) {
        return guard::guard();
    }
    if mode.as_ref().is_some_and(|mode| mode == confined::MODE) {
        return confined::become_command(arguments);
    }
    let args = match cli::read() {
        Ok(args) => args,
        Err(error) => {
            // Nothing better can be done if even that does not get out.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { EXIT_USAGE } else { 0 });
        }
    };
    if args.check_config || args.print_tools {
        return ExitCode::from(told(&args));
    }
    logs::start(&std::env::var("ROLEBROKER_LOG").unwrap_or_default());
    let code = start(&args).unwrap_or_else(|error| {
        tracing::error!(event = "failed", reason = format!("{error:#}"));
        EXIT_INTERNAL
    });
    ExitCode::from(code)
}

/// What is asked of the configuration itself; opens nothing else. The exit code.
fn told(args: &Args) -> u8 {
    let settings = match Settings::read(args) {
        Ok(settings) => settings,
        Err(faults) => {
            // Where standard error is gone there is nobody to tell.
            let _ = writeln!(std::io::stderr(), "{}", faults.join("\n"));
            return EXIT_CONFIGURATION;
        }
    };
    let tools = declared(&settings.folders, &settings.commands);
    let text = if args.print_tools {
        tool_blocks(&settings.role, &tools)
    } else {
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let folders = settings.folders.len();
        format!("sound: {folders} folders; tools {}\n", names.join(", "))
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => 0,
        Err(_) => EXIT_INTERNAL,
    }
}

fn start(args: &Args) -> anyhow::Result<u8> {
    let settings = match Settings::read(args) {
        Ok(settings) => settings,
        Err(faults) => return Ok(not_started(&faults)),
    };
    let folders = match Folders::open(&settings.folders) {
        Ok(folders) => folders,
        Err(error) => return Ok(not_started(&[error.to_string()])),
    };
    let absent = settings.absent();
    if !absent.is_empty() {
        return Ok(not_started(&absent));
    }
    if !confine(&settings) {
        return Ok(EXIT_CONFIGURATION);
    }
    let tools = Arc::new(Tools {
        folders: Arc::new(folders),
        commands: settings.commands,
        runs: Runs::new(THIS_PROGRAM, settings.confine).context("cannot become a subreaper")?,
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(FILE_THREADS)
        .build()
        .context("cannot start")?;
    let code = runtime.block_on(serving::until_stopped(settings.socket, tools, args.once));
    runtime.shutdown_timeout(LAST_WAIT);
    code
}

fn not_started(faults: &[String]) -> u8 {
    for fault in faults {
        tracing::error!(event = "not_started", detail = fault.as_str());
    }
    EXIT_CONFIGURATION
}

/// Confines this process, and says what the kernel lacks. Whether it may go on.
fn confine(settings: &Settings) -> bool {
    if settings.confine == Confine::Off {
        tracing::warn!(event = "not_confined", reason = "confine is off");
        return true;
    }
    let missing = missing();
    for lack in &missing {
        let (feature, leaves) = (lack.feature, lack.leaves);
        tracing::warn!(event = "confinement_missing", feature, leaves);
    }
    if settings.confine == Confine::Required && !missing.is_empty() {
        let detail = "this kernel lacks what `confine = \"required\"` asks for; write \"best-effort\" to do without";
        tracing::error!(event = "not_started", detail);
        return false;
    }
    match confine_runner(&settings.folders, &settings.commands) {
        Ok(()) => true,
        Err(error) => {
            let detail =
                format!("cannot be confined: {error}; write `confine = \"off\"` to do without");
            tracing::error!(event = "not_started", detail);
            false
        }
    }
}
