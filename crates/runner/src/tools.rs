//! `read_file`, `list_dir` and `write_file`. What they say of a failure names the path's problem, never a content.

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use cap_std::fs::{
    Dir, File, MetadataExt, OpenOptions, OpenOptionsExt, Permissions, PermissionsExt,
};
use client::{Answer, Failure, Label};
use nix::fcntl::OFlag;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::folders::{Folders, PathError};

/// The largest file that is read, in bytes.
pub const MAX_READ_BYTES: u64 = 4 << 20;
/// The largest content that is written, in bytes.
pub const MAX_WRITE_BYTES: usize = 4 << 20;
/// The most entries of a folder that are listed.
pub const MAX_ENTRIES: usize = 10_000;
/// The longest path that is looked up, in bytes; Linux itself takes no longer ones.
pub const MAX_PATH_BYTES: usize = 4096;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PathArguments {
    path: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WriteArguments {
    path: String,
    content: String,
}

/// Runs a tool. Blocks on the file system, but never on a FIFO, a device or a socket.
///
/// # Errors
/// [`Failure`] in words for the agent: what is wrong with the arguments, or with the path.
pub fn run(folders: &Folders, tool: &str, arguments: &str) -> Result<Answer, Failure> {
    match tool {
        "read_file" => {
            let PathArguments { path } = parse(arguments, "`path`, a string")?;
            read_file(folders, &path).map_err(|problem| told(&path, &problem))
        }
        "list_dir" => {
            let PathArguments { path } = parse(arguments, "`path`, a string")?;
            list_dir(folders, &path).map_err(|problem| told(&path, &problem))
        }
        "write_file" => {
            let WriteArguments { path, content } =
                parse(arguments, "`path` and `content`, both strings")?;
            write_file(folders, &path, &content).map_err(|problem| told(&path, &problem))
        }
        _ => Err("this runner has no such tool; it has read_file, list_dir and write_file".into()),
    }
}

/// What is wrong with a path, to be said behind it.
#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error(transparent)]
    Path(#[from] PathError),
    #[error("{}", in_words(.0))]
    Io(#[from] io::Error),
    #[error("is longer than {MAX_PATH_BYTES} bytes")]
    Long,
    #[error("is {0}, not a file")]
    NotAFile(&'static str),
    #[error("is larger than the {MAX_READ_BYTES} bytes that are read at most")]
    Large,
    #[error("is not text in UTF-8")]
    NotText,
    #[error("has more than the {MAX_ENTRIES} entries that are listed at most")]
    ManyEntries,
    #[error("would become larger than the {MAX_WRITE_BYTES} bytes that are written at most")]
    LargeContent,
    #[error("is a folder that is served, not a file")]
    Root,
}

fn parse<T: DeserializeOwned>(arguments: &str, rule: &str) -> Result<T, Failure> {
    // serde alone takes an array for a struct; the strict reading also refuses duplicate keys.
    proto::json::parse(arguments)
        .ok()
        .filter(Value::is_object)
        .and_then(|object| serde_json::from_value(object).ok())
        .ok_or_else(|| Failure(format!("the arguments must be an object with just {rule}")))
}

fn told(path: &str, problem: &Problem) -> Failure {
    let path: String = path.chars().take(MAX_PATH_BYTES).collect();
    Failure(format!("{path}: {problem}"))
}

fn locate<'a>(folders: &'a Folders, path: &'a str) -> Result<(&'a Dir, &'a Path, Label), Problem> {
    if path.len() > MAX_PATH_BYTES {
        return Err(Problem::Long);
    }
    Ok(folders.locate(path)?)
}

fn read_file(folders: &Folders, path: &str) -> Result<Answer, Problem> {
    let (dir, below, asked) = locate(folders, path)?;
    let mut file = open_regular(dir, below)?;
    let label = asked.join(folders.label_of(&file, None)?);
    let mut content = Vec::new();
    (&mut file)
        .take(MAX_READ_BYTES + 1)
        .read_to_end(&mut content)?;
    if content.len() as u64 > MAX_READ_BYTES {
        return Err(Problem::Large);
    }
    let content = String::from_utf8(content).map_err(|_| Problem::NotText)?;
    Ok(Answer { content, label })
}

/// Opens without waiting for anybody, and only what is a regular file.
fn open_regular(dir: &Dir, below: &Path) -> Result<File, Problem> {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .custom_flags(OFlag::O_NONBLOCK.bits() | OFlag::O_NOCTTY.bits());
    let file = dir.open_with(below, &options)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(Problem::NotAFile(kind(&meta)));
    }
    if meta.len() > MAX_READ_BYTES {
        return Err(Problem::Large);
    }
    Ok(file)
}

fn list_dir(folders: &Folders, path: &str) -> Result<Answer, Problem> {
    let (dir, below, asked) = locate(folders, path)?;
    let dir = dir.open_dir(below)?;
    let label = asked.join(folders.label_of(&dir, None)?);
    let mut names = Vec::new();
    for entry in dir.entries()? {
        let entry = entry?;
        if names.len() == MAX_ENTRIES {
            return Err(Problem::ManyEntries);
        }
        let mut name = entry.file_name().to_string_lossy().into_owned();
        // A name with a line break would pass for two.
        name = name.replace(char::is_control, "\u{fffd}");
        if entry.file_type()?.is_dir() {
            name.push('/');
        }
        name.push('\n');
        names.push(name);
    }
    names.sort();
    Ok(Answer {
        content: names.concat(),
        label,
    })
}

/// Writes beside the file and renames, so that nobody ever sees half of it and links are never written through.
fn write_file(folders: &Folders, path: &str, content: &str) -> Result<Answer, Problem> {
    if content.len() > MAX_WRITE_BYTES {
        return Err(Problem::LargeContent);
    }
    let (dir, below, asked) = locate(folders, path)?;
    let name = below.file_name().map(Path::new).ok_or(Problem::Root)?;
    let parent = match below.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => dir.open_dir(parent)?,
        Some(_) | None => dir.try_clone()?,
    };
    let label = asked.join(folders.label_of(&parent, Some(name))?);
    let before = match parent.symlink_metadata(name) {
        // Never setuid or setgid for what an agent wrote.
        Ok(meta) if meta.is_file() => Some(meta.mode() & 0o777),
        Ok(meta) => return Err(Problem::NotAFile(kind(&meta))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    // Until it has the old file's mode nobody else may read it.
    let mode = if before.is_some() { 0o600 } else { 0o666 };
    let (beside, mut file) = create_beside(&parent, mode)?;
    let written = (|| {
        file.write_all(content.as_bytes())?;
        if let Some(mode) = before {
            file.set_permissions(Permissions::from_mode(mode))?;
        }
        file.sync_all()?;
        parent.rename(&beside, &parent, name)
    })();
    if let Err(error) = written {
        // The first error is the one to tell.
        let _ = parent.remove_file(&beside);
        return Err(error.into());
    }
    Ok(Answer {
        content: format!("wrote {} bytes to {path}\n", content.len()),
        // The words are this runner's own.
        label: Label {
            untrusted: false,
            ..label
        },
    })
}

fn create_beside(parent: &Dir, mode: u32) -> io::Result<(String, File)> {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(mode);
    loop {
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let name = format!(".rolebroker-{}-{number}.new", std::process::id());
        match parent.open_with(&name, &options) {
            Ok(file) => return Ok((name, file)),
            // Left by a process of the same id that was killed: each try takes the next name.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

fn kind(meta: &cap_std::fs::Metadata) -> &'static str {
    use cap_std::fs::FileTypeExt;
    let kind = meta.file_type();
    if kind.is_dir() {
        "a folder"
    } else if kind.is_symlink() {
        "a link"
    } else if kind.is_fifo() {
        "a FIFO"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

/// What the system said, in words of one's own where the usual ones mislead.
fn in_words(error: &io::Error) -> String {
    let kind = error.kind();
    if kind == io::ErrorKind::NotFound {
        "does not exist".to_owned()
    } else if kind == io::ErrorKind::PermissionDenied {
        "may not be opened by this runner, or leads out of its folder".to_owned()
    } else if kind == io::ErrorKind::NotADirectory {
        "is not a folder, or goes through something that is none".to_owned()
    } else if kind == io::ErrorKind::IsADirectory {
        "is a folder, not a file".to_owned()
    } else if error.raw_os_error() == Some(nix::errno::Errno::ENXIO as i32) {
        "is a socket or a device, not a file".to_owned()
    } else {
        format!("failed: {error}")
    }
}
