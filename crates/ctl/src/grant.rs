//! `rolebroker grant`.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use client::proto::Control;

use crate::cli::{GrantArgs, Place};
use crate::exit::{Exit, Usage};
use crate::steer;

/// The longest text of a grant, in bytes; the examples in it are most of a long one.
pub const MAX_GRANT: u64 = 1 << 20;

/// Adds the grant that a file, or standard input for `-`, holds.
///
/// # Errors
/// When it cannot be read, or the broker does not take it.
pub async fn run(place: &Place, args: GrantArgs) -> anyhow::Result<Exit> {
    let grant = read(&args.file)?;
    let reason = args.reason;
    steer::run(place, Control::Grant { grant, reason }).await
}

fn read(path: &Path) -> Result<String, Usage> {
    let text = if path == Path::new("-") {
        bounded(io::stdin().lock())
    } else {
        File::open(path).and_then(bounded)
    };
    text.map_err(|error| {
        Usage(format!(
            "cannot read the grant from {}: {error}",
            path.display()
        ))
    })
}

fn bounded(source: impl Read) -> io::Result<String> {
    let mut text = String::new();
    source.take(MAX_GRANT + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_GRANT {
        return Err(io::Error::other(format!(
            "it is longer than {MAX_GRANT} bytes"
        )));
    }
    Ok(text)
}
