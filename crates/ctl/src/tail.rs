//! `rolebroker tail`: what happens, a line each, until it is interrupted.

use client::proto::control::EventStatus;

use crate::cli::{Place, TailArgs};
use crate::exit::{self, Exit};
use crate::render;
use crate::{out, steer};

/// Follows the broker until the connection or standard output ends.
///
/// # Errors
/// When the broker cannot be asked, or the connection is lost.
pub async fn run(place: &Place, args: TailArgs) -> anyhow::Result<Exit> {
    let operator = steer::connect(place).await?;
    let mut tail = operator.tail().await?;
    let interrupted = tokio::signal::ctrl_c();
    tokio::pin!(interrupted);
    loop {
        let event = tokio::select! {
            event = tail.next() => event?,
            _ = &mut interrupted => return Ok(exit::DONE),
        };
        if !is_meant(&event, &args) && event.missed == 0 {
            continue;
        }
        let told = if place.json {
            out::ascii(&serde_json::to_string(&event)?) + "\n"
        } else {
            render::event(&event)
        };
        if out::try_text(&told).is_err() {
            // Whoever read it went away: nothing is left to do.
            return Ok(exit::DONE);
        }
    }
}

fn is_meant(event: &EventStatus, args: &TailArgs) -> bool {
    let role = args.role.as_ref();
    let session = args.session.as_ref();
    role.is_none_or(|role| event.role == role.as_str())
        && session.is_none_or(|session| event.session == session.as_str())
}
