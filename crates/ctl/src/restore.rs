//! `restore`: a copy takes the place of the store, while no daemon runs, and the next start is told that it is one.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use nix::unistd::getuid;
use store::beside::{self, COPY, HEAD, LOCK};
use store::record::PutBack;
use store::{FILE, Head, Store};

use crate::audit;
use crate::backup::{self, MODE};
use crate::cli::{Place, RestoreArgs};
use crate::exit::{self, Exit, NotDone, Usage};
use crate::out;

/// Bytes of a reason, as of the broker's own.
const MAX_REASON: usize = 1 << 10;
const NEXT: &str = "\
At the next start every session of the copy is closed, with its label at secret and untrusted, and none of its calls
runs again; its approvals end; and new sessions of its agent roles begin at secret and untrusted, until an operator
lowers the role's `*` (rolebroker declassify, endorse). Grants of run time, accepted tools and spent uses are those of
the copy: look at `rolebroker grants` and `rolebroker tools`.
";

/// Puts a copy in the store's place. What was there is kept under other names.
///
/// # Errors
/// A daemon runs, the copy is not what was written, or the folder cannot be written. An interruption leaves either what
/// was there, or what no daemon starts with until this was done again, or the copy with the word that it is one.
pub fn run(place: &Place, args: &RestoreArgs) -> anyhow::Result<Exit> {
    if args.reason.trim().is_empty() || args.reason.len() > MAX_REASON {
        return Err(
            Usage("--reason: says why, in at most 1024 bytes; it is recorded".into()).into(),
        );
    }
    let folder = audit::folder(&args.store);
    let _lock = claim(&folder)?;
    let head = copied(&folder, &args.file)?;
    let by = PutBack {
        uid: getuid().as_raw(),
        reason: args.reason.clone(),
    };
    let failed = |error: io::Error| NotDone(format!("{}: {error}", folder.display()));
    beside::write_marker(&folder, &by).map_err(failed)?;
    // From here on no daemon starts until the copy has its name.
    let kept = keep(&folder).map_err(failed)?;
    fs::rename(folder.join(COPY), folder.join(FILE))
        .and_then(|()| beside::sync(&folder))
        .map_err(failed)?;
    tell(place, &folder, &head, &kept);
    Ok(exit::DONE)
}

fn tell(place: &Place, folder: &Path, head: &Head, kept: &[PathBuf]) {
    if place.json {
        let said = serde_json::json!({
            "status": "done", "records": head.count, "head": head.hash.as_str(), "kept": kept,
            "next": NEXT.trim_end().replace('\n', " "),
        });
        return out::json(&said.to_string());
    }
    let mut said = format!(
        "checked, and put in the place of {}\nrecords  {}\nhead     {}\n",
        folder.join(FILE).display(),
        head.count,
        head.hash
    );
    for kept in kept {
        said.push_str(&format!("kept     {}\n", kept.display()));
    }
    out::text(&format!("{said}\n{NEXT}"));
}

/// The daemon's lock on the folder, until this is dropped.
fn claim(folder: &Path) -> anyhow::Result<File> {
    let path = folder.join(LOCK);
    let failed = |error: &io::Error| {
        NotDone(format!(
            "{}: {error}; name the daemon's state_dir with --state-dir, as its user or as root",
            path.display()
        ))
    };
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(MODE)
        .custom_flags(OFlag::O_NOFOLLOW.bits())
        .open(&path)
        .map_err(|error| failed(&error))?;
    own(&file, folder).map_err(|error| failed(&error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(NotDone(format!(
            "a broker runs on {}: stop it first",
            folder.display()
        ))
        .into()),
        Err(TryLockError::Error(error)) => Err(failed(&error).into()),
    }
}

/// Whose the folder is, theirs is the file.
fn own(file: &File, folder: &Path) -> io::Result<()> {
    let owner = fs::metadata(folder)?;
    if file.metadata()?.uid() == owner.uid() {
        return Ok(());
    }
    fchown(file, Some(owner.uid()), Some(owner.gid()))
}

/// Checks a copy of `from` beside the store, durable and with the owner that a store there has.
fn copied(folder: &Path, from: &Path) -> anyhow::Result<Head> {
    let failed = |path: &Path, error: &io::Error| NotDone(format!("{}: {error}", path.display()));
    File::open(from).map_err(|error| failed(from, &error))?;
    let from = Store::open_read_only(from).map_err(|error| NotDone(error.to_string()))?;
    // What an earlier one left stays in its place until this one is whole.
    let new = folder.join(format!("{COPY}.new"));
    remove(&new).map_err(|error| failed(&new, &error))?;
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(MODE)
        .open(&new)
        .map_err(|error| failed(&new, &error))?;
    let made = backup::copy(&from, &file, &new).and_then(|head| {
        let placed = own(&file, folder)
            .and_then(|()| like(&file, &folder.join(FILE)))
            .and_then(|()| file.sync_all())
            .and_then(|()| fs::rename(&new, folder.join(COPY)))
            .and_then(|()| beside::sync(folder));
        placed.map_err(|error| failed(&new, &error))?;
        Ok(head)
    });
    if made.is_err() {
        // The first error is the one to tell.
        let _ = remove(&new);
    }
    made
}

/// The file gets the owner and the mode of the one that was there.
fn like(file: &File, there: &Path) -> io::Result<()> {
    let there = match fs::metadata(there) {
        Ok(there) => there,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    file.set_permissions(Permissions::from_mode(there.mode() & 0o777))?;
    if file.metadata()?.uid() == there.uid() {
        return Ok(());
    }
    fchown(file, Some(there.uid()), Some(there.gid()))
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Gives what is there other names, which it tells. SQLite finds a database's -wal by its name.
fn keep(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let names = |n: u64| {
        let database = format!("{FILE}.before-{n}");
        [
            (FILE.to_owned(), database.clone()),
            (format!("{FILE}-wal"), format!("{database}-wal")),
            (format!("{FILE}-shm"), format!("{database}-shm")),
            (HEAD.to_owned(), format!("{HEAD}.before-{n}")),
        ]
        .map(|(from, to)| (folder.join(from), folder.join(to)))
    };
    let is_free = |n: &u64| names(*n).iter().all(|(_, to)| !to.exists());
    let free = (1..).find(is_free).unwrap_or_default();
    let mut kept = Vec::new();
    for (from, to) in names(free) {
        match fs::rename(from, &to) {
            Ok(()) => kept.push(to),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    beside::sync(folder)?;
    Ok(kept)
}
