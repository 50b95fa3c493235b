//! `backup`: a copy of the store as it is at one moment, checked before it counts.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use store::{Head, Store};

use crate::audit;
use crate::cli::{BackupArgs, Place};
use crate::exit::{self, Exit, NotDone};
use crate::out;

/// Nobody else reads it: answers and arguments are in it.
pub(crate) const MODE: u32 = 0o600;

/// Makes the copy.
///
/// # Errors
/// It cannot be made, or what was copied is not what was written. No file is left then.
pub fn run(place: &Place, args: &BackupArgs) -> anyhow::Result<Exit> {
    let store = audit::open(&args.store)?;
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(MODE)
        .open(&args.file)
        .map_err(|error| NotDone(format!("cannot make {}: {error}", args.file.display())))?;
    let copied = copy(&store, &file, &args.file);
    if copied.is_err() {
        // The first error is the one to tell.
        let _ = std::fs::remove_file(&args.file);
    }
    let head = copied?;
    if place.json {
        let said = serde_json::json!({ "status": "done", "records": head.count, "head": head.hash.as_str() });
        out::json(&said.to_string());
    } else {
        let done = format!(
            "copied and checked\nrecords  {}\nhead     {}\n",
            head.count, head.hash
        );
        out::text(&done);
    }
    Ok(exit::DONE)
}

/// Copies a store into an empty file, and checks all of it; its head. The copy is durable.
///
/// # Errors
/// It cannot be copied, or what was copied is not what was written.
pub(crate) fn copy(store: &Store, file: &File, path: &Path) -> anyhow::Result<Head> {
    let failed = |error: &dyn std::fmt::Display| NotDone(error.to_string());
    let name = path
        .to_str()
        .ok_or_else(|| failed(&"the file's name is not UTF-8: choose another"))?;
    store.copy_into(name).map_err(|error| failed(&error))?;
    file.sync_all().map_err(|error| failed(&error))?;
    let mut copied = Store::open_read_only(path).map_err(|error| failed(&error))?;
    copied
        .read(|entries| entries.for_each(drop))
        .map_err(|error| failed(&error))?;
    copied.check().map_err(|error| failed(&error))?;
    Ok(copied.head().clone())
}
