//! `rolebroker demo`: what the broker does, in one screen, with the real daemon and the real file runner, on real
//! files in a temporary folder. Nothing is taken on trust: each scene is checked against the files themselves.

use crate::out;

mod process;
mod scenes;
mod screen;
mod stage;

use std::path::Path;

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::Place;
use crate::exit::{self, Exit, NotDone};
use process::Process;
use stage::Shown;

pub use screen::{WIDTH, fold};

/// Shows it. Whatever happens, the processes are ended and the folder is removed.
///
/// # Errors
/// When the processes cannot be started at all.
pub async fn run(place: &Place) -> anyhow::Result<Exit> {
    let shown_to = if place.json {
        Shown::ToProgram
    } else {
        Shown::ToPerson
    };
    let folder = tempfile::Builder::new().prefix("rolebroker-").tempdir();
    let folder =
        folder.context("cannot make a temporary folder; set TMPDIR to one that can be written")?;
    let mut processes = Vec::new();
    let mut terminated = signal(SignalKind::terminate())?;
    let mut hung_up = signal(SignalKind::hangup())?;
    let shown = tokio::select! {
        shown = show(folder.path(), &mut processes, shown_to) => shown,
        _ = tokio::signal::ctrl_c() => {
            if shown_to == Shown::ToPerson {
                out::line("");
            }
            Err(NotDone("the demo was interrupted; everything is removed".to_owned()).into())
        },
        _ = hung_up.recv() => Err(NotDone("the demo's terminal went; everything is removed".to_owned()).into()),
        _ = terminated.recv() => Err(NotDone("the demo was terminated; everything is removed".to_owned()).into()),
    };
    for process in &mut processes {
        process.end().await?;
    }
    folder
        .close()
        .context("the demo's temporary folder could not be removed")?;
    let missing = shown?;
    if shown_to == Shown::ToProgram {
        let said = serde_json::json!({ "happened": missing.is_empty(), "missing": missing });
        out::json(&said.to_string());
        return Ok(if missing.is_empty() {
            exit::DONE
        } else {
            exit::NOT_DONE
        });
    }
    if missing.is_empty() {
        screen::say(
            "",
            "All of it happened: each step was checked against the files themselves.",
        );
        return Ok(exit::DONE);
    }
    for what in missing {
        screen::say("did not happen: ", &what);
    }
    Ok(exit::NOT_DONE)
}

/// What did not happen.
async fn show(
    folder: &Path,
    processes: &mut Vec<Process>,
    shown: Shown,
) -> anyhow::Result<Vec<String>> {
    let stage = stage::Stage::set(folder, processes, shown).await?;
    Ok(scenes::play(&stage).await)
}
