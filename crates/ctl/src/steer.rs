//! The operator's commands: `status`, `reload`, `drain`, `declassify`, `endorse`.

use anyhow::Context as _;
use client::Operator;
use client::proto::Control;

use crate::approvals::SOFTWARE;
use crate::cli::Place;
use crate::exit::{self, Exit};
use crate::render;

/// Asks the broker for one thing and prints what it says.
///
/// # Errors
/// When the broker cannot be asked, or does not do it.
pub async fn run(place: &Place, control: Control) -> anyhow::Result<Exit> {
    let operator = Operator::connect_as(place.socket("operator"), SOFTWARE).await?;
    let mut replies = operator.control(control).await?;
    // None of these is a list: there is one reply.
    let reply = replies.pop().context("the broker said nothing")?;
    if place.json {
        println!("{}", serde_json::to_string(&reply)?);
    } else {
        print!("{}", render::reply(&reply));
    }
    Ok(exit::DONE)
}
