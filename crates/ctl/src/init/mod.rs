//! `rolebroker init`: a configuration to start from, for this user or, run as root, for this machine; and what to
//! type next.

mod next;
mod place;
mod plan;
mod surroundings;
mod template;

use std::path::PathBuf;

use nix::sys::stat::{Mode, umask};
use nix::unistd::geteuid;
use serde_json::json;

use crate::cli::{InitArgs, Place};
use crate::exit::{self, Exit, NotDone, Usage};
use crate::out;
use place::Existing;
use plan::{Plan, Texts};

const PRIVATE: u32 = 0o077;

/// Writes the configuration, the runner's beside it, and the one folder; with `--print` shows the first only.
///
/// # Errors
/// A user or a path does not do, something is in the way, or nothing can be written there.
pub fn run(place: &Place, args: &InitArgs) -> anyhow::Result<Exit> {
    // What is made is private until it gets its mode, whatever the umask was.
    umask(Mode::from_bits_truncate(PRIVATE));
    let plan = Plan::of(place, args)?;
    let texts = plan.texts()?;
    if args.print {
        if place.json {
            let Texts { broker, runner } = &texts;
            let shown = json!({ "text": broker, "runner_text": runner, "folder": plan.folder });
            out::json(&shown.to_string());
        } else {
            out::text(&texts.broker);
        }
        return Ok(exit::DONE);
    }
    let made = make(&plan, args, &texts)?;
    if place.json {
        let shown = json!({
            "config": plan.config,
            "runner_config": plan.runner_config(),
            "folder": plan.folder,
            "made": made,
            "remarks": plan.remarks(),
            "next": plan.steps(),
        });
        out::json(&shown.to_string());
    } else {
        out::text(&shown(&plan, &made));
    }
    Ok(exit::DONE)
}

/// Makes the files and the folders; gives the folders that were not there.
fn make(plan: &Plan, args: &InitArgs, texts: &Texts) -> anyhow::Result<Vec<PathBuf>> {
    let existing = if args.force {
        Existing::Replaced
    } else {
        Existing::Kept
    };
    let runner_config = plan.runner_config();
    for file in [&plan.config, &runner_config] {
        if existing == Existing::Kept && file.symlink_metadata().is_ok() {
            return Err(place::there_is_one(file).into());
        }
    }
    let above = plan
        .config
        .parent()
        .ok_or_else(|| Usage("--output names no file".to_owned()))?;
    let there = above.ancestors().find(|folder| folder.exists());
    place::check_trusted(
        there.ok_or_else(|| NotDone("there is no folder at all".to_owned()))?,
        geteuid().as_raw(),
    )?;
    let mut made = place::make_folder(above, place::OPEN, place::OPEN, None)?;
    let (mode, owner) = plan.folder_is();
    made.extend(place::make_folder(
        &plan.folder,
        plan.above_folder(),
        mode,
        owner,
    )?);
    place::write(&plan.config, &texts.broker, existing)?;
    place::write(&runner_config, &texts.runner, existing)?;
    Ok(made)
}

fn shown(plan: &Plan, made: &[PathBuf]) -> String {
    let mut shown = format!(
        "wrote {}\nwrote {}\n",
        plan.config.display(),
        plan.runner_config().display()
    );
    for folder in made {
        shown.push_str(&format!("made  {}\n", folder.display()));
    }
    for remark in plan.remarks() {
        shown.push_str(&format!("\n{remark}\n"));
    }
    shown.push_str(
        "\nWhat to type next; the daemon, the runner and a call that waits each take a terminal:\n",
    );
    for (number, step) in plan.steps().iter().enumerate() {
        let (what, user) = (step.what, &step.user);
        shown.push_str(&format!(
            "{}. {what} (as {user})\n     {}\n",
            number + 1,
            step.command
        ));
    }
    shown
}
