//! rolebrokerd: configuration, sockets, reactor, timers. What reads like a system call stands here;
//! what reads like a policy stands in `crates/policy`, what reads like time or order in
//! `crates/engine`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::panic::PanicHookInfo;
use std::process::ExitCode;
use std::rc::Rc;

use nix::sys::stat::{Mode, umask};
use policy::Role;
use proto::RoleName;
use tokio::net::UnixListener;

pub mod alarm;
pub mod beside;
pub mod cli;
pub mod clock;
pub mod configuration;
pub mod connection;
pub mod decoding;
pub mod default_config;
pub mod doors;
pub mod durable;
pub mod exit;
pub mod folders;
pub mod handed_over;
pub mod heads;
pub mod inbox;
pub mod lobby;
pub mod logs;
pub mod manager;
pub mod nonce;
pub mod outbox;
pub mod reactor;
pub mod reading;
pub mod refusals;
pub mod reload;
pub mod safety;
pub mod signals;
pub mod sockets;
pub mod users;
pub mod writing;

use beside::Beside;
use cli::Cli;
use configuration::{Loaded, Origin};
use decoding::DECODE_THREADS;
use exit::{Exit, Fault};
use folders::{Folders, UMASK};
use handed_over::{Handed, HandedOver};
use inbox::Inbox;
use manager::Manager;
use reactor::Reactor;
use sockets::{SocketFile, Supply};
use store::Store;

/// Runs the command, to its end.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::read(args) {
        Ok(cli) => cli,
        Err(exit) => return exit.into(),
    };
    umask(Mode::from_bits_truncate(UMASK));
    let done = if cli.print_default_config {
        print_default_config()
    } else if cli.check_config {
        check_config(&cli)
    } else {
        return serve(&cli).into();
    };
    match done {
        Ok(()) => Exit::Done.into(),
        Err(fault) => {
            // Where standard error is gone there is nobody to tell.
            let _ = writeln!(std::io::stderr(), "{fault}");
            fault.exit().into()
        }
    }
}

fn print_default_config() -> Result<(), Fault> {
    print(&default_config::text().map_err(Fault::Configuration)?)
}

fn check_config(cli: &Cli) -> Result<(), Fault> {
    let loaded = configuration::load(&configuration::find(cli.config.as_deref())?)?;
    let mut report = loaded.summary();
    report.push('\n');
    // What a reviewer would say; `rolebroker check` says more.
    let remarks = loaded.config.remarks(clock::Clock::new().now());
    for warning in loaded.warnings.iter().chain(&remarks) {
        report.push_str(&format!("warning: {warning}\n"));
    }
    print(&report)
}

fn print(text: &str) -> Result<(), Fault> {
    std::io::stdout()
        .write_all(text.as_bytes())
        .map_err(|error| Fault::Internal(format!("cannot write to standard output: {error}")))
}

/// Starts, serves and ends. Faults are log lines.
fn serve(cli: &Cli) -> Exit {
    let handed_over = HandedOver::from_env();
    let _flush = match logs::start(cli.log_level, cli.log_format) {
        Ok(flush) => flush,
        Err(why) => {
            let _ = writeln!(std::io::stderr(), "{why}");
            return Exit::Internal;
        }
    };
    std::panic::set_hook(Box::new(end_on_panic));
    match start(cli, handed_over) {
        Ok(exit) => {
            tracing::info!(event = "ended");
            exit
        }
        Err(fault) => {
            logs::faults("not_started", &fault.to_string());
            fault.exit()
        }
    }
}

fn start(cli: &Cli, handed_over: HandedOver) -> Result<Exit, Fault> {
    let loaded = configuration::load(&configuration::find(cli.config.as_deref())?)?;
    let handed_over = handed_over.take(&loaded.config)?;
    if loaded.origin == Origin::Embedded {
        default_config::make_folder()?;
    }
    let folders = Folders::claim(&loaded.config.settings)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // So that neither a reload nor the head's file ever waits for the decoding.
        .max_blocking_threads(DECODE_THREADS + 2)
        .build()
        .map_err(|error| Fault::Internal(format!("cannot start the reactor: {error}")))?;
    let tasks = tokio::task::LocalSet::new();
    let exit = tasks.block_on(&runtime, listen(cli, loaded, &folders, handed_over));
    drop(tasks);
    // What is still being decoded has nobody left to answer to.
    runtime.shutdown_background();
    exit
}

async fn listen(
    cli: &Cli,
    loaded: Loaded,
    folders: &Folders,
    handed_over: Option<BTreeMap<RoleName, Handed>>,
) -> Result<Exit, Fault> {
    let inbox = Rc::new(Inbox::default());
    signals::catch(&inbox)
        .map_err(|error| Fault::Internal(format!("cannot catch signals: {error}")))?;
    logs::warnings(&loaded.warnings);
    let config = loaded.config.clone();
    let origin = loaded.origin.to_string();
    let (supply, mut handed_over) = match handed_over {
        Some(sockets) => (Supply::HandedOver, sockets),
        None => (Supply::Bound(folders.runtime.clone()), BTreeMap::new()),
    };
    let beside = Beside::read(&folders.state, cli.require_head.clone())?;
    let store = Store::open(&folders.state).map_err(|error| Fault::of_store(&error))?;
    let mut reactor = Reactor::new(loaded, supply, inbox, store, beside)?;
    for (name, role) in &config.roles {
        let (listener, file) = match handed_over.remove(name) {
            Some(handed) => take_over(role, handed)?,
            None => sockets::bind(&folders.runtime, role).await?,
        };
        reactor.open(name.clone(), listener, file);
    }
    reactor.told(Manager::from_env());
    tracing::info!(
        event = "ready",
        version = env!("CARGO_PKG_VERSION"),
        configuration = origin,
        ruleset = config.digest.as_str(),
        roles = config.roles.len() as u64
    );
    Ok(reactor.run().await)
}

fn take_over(role: &Role, handed: Handed) -> Result<(UnixListener, SocketFile), Fault> {
    logs::warnings(handed_over::warning(role, &handed.path).as_slice());
    let listener = UnixListener::from_std(handed.listener)
        .map_err(|error| Fault::of_path("cannot listen on", &handed.path, &error))?;
    Ok((listener, SocketFile::handed_over(handed.path)))
}

/// A broker of which a part has panicked must not go on. What the panic says is not written where it
/// could carry something that a peer sent.
fn end_on_panic(panic: &PanicHookInfo<'_>) {
    let place = panic
        .location()
        .map_or_else(String::new, ToString::to_string);
    let said = panic.payload().downcast_ref::<&'static str>();
    let line = serde_json::json!({
        "ts": humantime::format_rfc3339_millis(std::time::SystemTime::now()).to_string(),
        "level": "error",
        "event": "panic",
        "detail": said.copied().unwrap_or("(not written)"),
        "place": place,
    });
    // A reader of standard error that does not read holds up the line, not the end.
    let (done, wait) = std::sync::mpsc::sync_channel(1);
    std::thread::spawn(move || {
        let _ = writeln!(std::io::stderr(), "{line}");
        let _ = done.send(());
    });
    let _ = wait.recv_timeout(logs::FLUSH_WAIT);
    std::process::exit(i32::from(Exit::Internal.code()));
}
