//! The small files beside the database: they tell a start what the database itself cannot. Each is written whole or
//! not at all, and is the user's whose the folder is.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, fchown};
use std::path::Path;

use engine::PutBack;

use crate::chain::Head;

/// The head that was told last: `COUNT HASH`.
pub const HEAD: &str = "rolebroker.head";
/// Says that the database is a copy that was put back, until a record says so.
pub const MARKER: &str = "restored";
/// A copy that does not have the database's name yet. With [`MARKER`] beside it, it was about to get it.
pub const COPY: &str = "rolebroker.db.restoring";
/// Whoever has it locked owns the folder.
pub const LOCK: &str = ".lock";
/// They are for nobody else.
const MODE: u32 = 0o600;

/// The head that was told last, if any was.
///
/// # Errors
/// The file cannot be read, or has something else in it.
pub fn read_head(folder: &Path) -> io::Result<Option<Head>> {
    let Some(text) = read(folder, HEAD)? else {
        return Ok(None);
    };
    let head = text
        .strip_suffix('\n')
        .map(|line| line.replacen(' ', ":", 1));
    let head = head.and_then(|head| head.parse().ok());
    head.map(Some)
        .ok_or_else(|| invalid("it is not a number of records and a hash"))
}

/// Writes the head that was told last.
///
/// # Errors
/// It cannot be written: the one before is still there.
pub fn write_head(folder: &Path, head: &Head) -> io::Result<()> {
    write(folder, HEAD, &format!("{} {}\n", head.count, head.hash))
}

/// Who put a copy back that no record tells of yet, if somebody did.
///
/// # Errors
/// The file cannot be read, or has something else in it.
pub fn read_marker(folder: &Path) -> io::Result<Option<PutBack>> {
    let Some(text) = read(folder, MARKER)? else {
        return Ok(None);
    };
    serde_json::from_str(&text)
        .map(Some)
        .map_err(|_| invalid("it does not say who put a copy back, and why"))
}

/// Says that a copy is put back.
///
/// # Errors
/// It cannot be written, and does not count.
pub fn write_marker(folder: &Path, by: &PutBack) -> io::Result<()> {
    write(folder, MARKER, &serde_json::to_string(by)?)
}

/// A record tells of the copy.
///
/// # Errors
/// The file stays, and counts again at the next start.
pub fn remove_marker(folder: &Path) -> io::Result<()> {
    fs::remove_file(folder.join(MARKER))?;
    sync(folder)
}

/// Makes a folder's new and changed names durable.
///
/// # Errors
/// What the system said.
pub fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

fn read(folder: &Path, name: &str) -> io::Result<Option<String>> {
    match fs::read_to_string(folder.join(name)) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn write(folder: &Path, name: &str, text: &str) -> io::Result<()> {
    let new = folder.join(format!("{name}.new"));
    // Left by an interruption, or a link that leads root elsewhere.
    match fs::remove_file(&new) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(MODE)
        .open(&new)?;
    let owner = fs::metadata(folder)?;
    if file.metadata()?.uid() != owner.uid() {
        fchown(&file, Some(owner.uid()), Some(owner.gid()))?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, folder.join(name))?;
    sync(folder)
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_anything_else_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        assert_eq!(read_head(folder).unwrap(), None);
        assert_eq!(read_marker(folder).unwrap(), None);
        let head = Head::empty().and("1");
        let elsewhere = folder.join("elsewhere");
        std::os::unix::fs::symlink(&elsewhere, folder.join("rolebroker.head.new")).unwrap();
        write_head(folder, &head).unwrap();
        assert!(!elsewhere.exists(), "a link was followed");
        assert_eq!(read_head(folder).unwrap(), Some(head));
        let reason = "a \"disk\"\n broke".to_owned();
        let by = PutBack { uid: 7, reason };
        write_marker(folder, &by).unwrap();
        assert_eq!(read_marker(folder).unwrap(), Some(by));
        remove_marker(folder).unwrap();
        assert_eq!(read_marker(folder).unwrap(), None);
        let text = fs::read_to_string(folder.join(HEAD)).unwrap();
        for end in 0..text.len() {
            fs::write(folder.join(HEAD), &text[..end]).unwrap();
            assert!(read_head(folder).is_err(), "{end} bytes");
        }
        fs::write(folder.join(HEAD), b"1 \xff\n").unwrap();
        assert!(read_head(folder).is_err());
        fs::write(folder.join(MARKER), "{\"uid\":7}").unwrap();
        assert!(read_marker(folder).is_err());
    }
}
