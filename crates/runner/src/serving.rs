//! Connecting, serving, and connecting again until told to stop; and what systemd hears of it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use client::{Error, Runner};
use sd_notify::NotifyState;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::work::{Tools, work};
use crate::{EXIT_CONFIGURATION, EXIT_INTERNAL};

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
const SOFTWARE: &str = concat!("rolebroker-runner ", env!("CARGO_PKG_VERSION"));

/// Serves until SIGTERM or SIGINT: then what runs is cancelled, and answered. The exit code.
pub(crate) async fn until_stopped(
    socket: PathBuf,
    tools: Arc<Tools>,
    once: bool,
) -> anyhow::Result<u8> {
    let mut terminated = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    let mut interrupted = signal(SignalKind::interrupt()).context("cannot wait for SIGINT")?;
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminated.recv() => {}
            _ = interrupted.recv() => {}
        }
        tracing::info!(event = "stopping");
        notify(&[NotifyState::Stopping, NotifyState::Status("stopping")]);
        stopped.cancel();
    });
    let code = serve(socket, tools, once, &stop).await;
    if code == 0 {
        tracing::info!(event = "ended");
    }
    Ok(code)
}

async fn serve(socket: PathBuf, tools: Arc<Tools>, once: bool, stop: &CancellationToken) -> u8 {
    let mut pause = FIRST_PAUSE;
    loop {
        let connected = tokio::select! {
            connected = Runner::connect_as(&socket, SOFTWARE) => connected,
            () = stop.cancelled() => return 0,
        };
        let ended = match connected {
            Ok(runner) => {
                pause = FIRST_PAUSE;
                serve_one(runner, Arc::clone(&tools), stop).await
            }
            Err(error) => Err(error),
        };
        if stop.is_cancelled() {
            return 0;
        }
        match ended {
            Ok(()) => tracing::info!(event = "closed", reason = "the broker hung up"),
            Err(error @ Error::WrongKind { .. }) => {
                tracing::error!(event = "not_started", detail = %error);
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
        notify(&[NotifyState::Status("waiting for the broker")]);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stop.cancelled() => return 0,
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

async fn serve_one(
    runner: Runner,
    tools: Arc<Tools>,
    stop: &CancellationToken,
) -> Result<(), Error> {
    let role = runner.welcome().role.to_string();
    tracing::info!(event = "serving", role);
    let status = format!("serving {role}");
    notify(&[NotifyState::Ready, NotifyState::Status(&status)]);
    runner
        .serve_until(stop.cancelled(), move |request| {
            work(Arc::clone(&tools), request)
        })
        .await
}

/// Tells systemd, where it listens.
fn notify(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(event = "notify_failed", reason = %error);
    }
}
