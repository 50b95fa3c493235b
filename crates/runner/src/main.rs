//! rolebroker-runner: serves file tools below folders, to the broker's socket for this role.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;
use client::{Answer, Error, Failure, Request, Runner};
use runner::{Folder, Folders};

const EXIT_USAGE: u8 = 64;
const EXIT_INTERNAL: u8 = 70;
const EXIT_CONFIGURATION: u8 = 78;
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Files that are worked on at a time.
const FILE_THREADS: usize = 16;

/// Serves read_file, list_dir and write_file below the folders that it is given.
///
/// Paths in arguments are absolute. Links and `..` never lead out of a folder. Each answer tells the class of the
/// folder that it comes from; of several that contain a path, the longest counts.
#[derive(Parser)]
#[command(name = "rolebroker-runner", version)]
struct Args {
    /// The role's socket [default: runner.sock in the broker's runtime folder]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// A folder, the class of its files (public, internal, confidential, secret; internal if unstated), and whether
    /// strangers may write them
    #[arg(
        long = "folder",
        value_name = "DIR[:class[:untrusted]]",
        required = true
    )]
    folders: Vec<Folder>,
    /// End when the broker goes away, instead of connecting again
    #[arg(long)]
    once: bool,
}

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Nothing better can be done if even that does not get out.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { EXIT_USAGE } else { 0 });
        }
    };
    log_to_stderr();
    match start(args) {
        Ok(code) => code,
        Err(error) => {
            tracing::error!(event = "failed", reason = format!("{error:#}"));
            ExitCode::from(EXIT_INTERNAL)
        }
    }
}

fn start(args: Args) -> anyhow::Result<ExitCode> {
    let folders = match Folders::open(&args.folders) {
        Ok(folders) => Arc::new(folders),
        Err(error) => {
            tracing::error!(event = "configuration", reason = %error);
            return Ok(ExitCode::from(EXIT_CONFIGURATION));
        }
    };
    let socket = args.socket.unwrap_or_else(|| client::socket("runner"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(FILE_THREADS)
        .build()
        .context("cannot start")?;
    runtime.block_on(async {
        let mut terminated =
            tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
                .context("cannot wait for SIGTERM")?;
        let code = tokio::select! {
            code = serve(socket, folders, args.once) => code,
            _ = terminated.recv() => 0,
            _ = tokio::signal::ctrl_c() => 0,
        };
        Ok(ExitCode::from(code))
    })
}

/// Connects, serves, and connects again until told otherwise. The exit code.
async fn serve(socket: PathBuf, folders: Arc<Folders>, once: bool) -> u8 {
    let mut pause = FIRST_PAUSE;
    loop {
        let ended = match Runner::connect_as(&socket, SOFTWARE).await {
            Ok(runner) => {
                pause = FIRST_PAUSE;
                tracing::info!(event = "serving", role = %runner.welcome().role);
                let folders = Arc::clone(&folders);
                runner
                    .serve(move |request| work(Arc::clone(&folders), request))
                    .await
            }
            Err(error) => Err(error),
        };
        match ended {
            Ok(()) => tracing::info!(event = "closed", reason = "the broker hung up"),
            Err(error @ Error::WrongKind { .. }) => {
                tracing::error!(event = "configuration", reason = %error);
                return EXIT_CONFIGURATION;
            }
            Err(error) => {
                tracing::warn!(event = "closed", reason = %error);
                if once {
                    return EXIT_INTERNAL;
                }
            }
        }
        if once {
            return 0;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

const SOFTWARE: &str = concat!("rolebroker-runner ", env!("CARGO_PKG_VERSION"));

async fn work(folders: Arc<Folders>, request: Request) -> Result<Answer, Failure> {
    if request.is_cancelled() {
        return Err("cancelled before it began".into());
    }
    let (session, call) = (request.session.clone(), request.call);
    let tool = request.tool.clone();
    let run = move || runner::run(&folders, &request.tool, &request.arguments);
    let result = tokio::task::spawn_blocking(run)
        .await
        .unwrap_or_else(|_| Err("the tool broke off".into()));
    let outcome = if result.is_ok() { "result" } else { "failed" };
    tracing::debug!(event = "call", %session, %call, tool, outcome);
    result
}

/// JSON lines, or readable text on a terminal.
fn log_to_stderr() {
    use std::io::IsTerminal as _;
    let filter = tracing_subscriber::EnvFilter::try_from_env("ROLEBROKER_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_target(false)
        .with_writer(std::io::stderr);
    if std::io::stderr().is_terminal() {
        log.init();
    } else {
        log.json().flatten_event(true).init();
    }
}
