//! The file tools. What they say of a failure names the path's problem, never a content.

mod edit;
mod list;
mod opening;
mod problem;
mod read;
mod search;
mod write;

use client::{Answer, Failure, Label};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::folders::Folders;
use crate::watch::Watch;

pub use list::MAX_ENTRIES;
pub use read::MAX_READ_BYTES;
pub use search::{
    MAX_MATCHES, MAX_SEARCH_BYTES, MAX_SEARCH_DEPTH, MAX_SEARCH_ENTRIES, MAX_SEARCH_FILE,
    MAX_SEARCH_LINE,
};
pub use write::MAX_WRITE_BYTES;

use problem::Problem;

/// The longest path that is looked up, in bytes; Linux itself takes no longer ones.
pub const MAX_PATH_BYTES: usize = 4096;
/// Bytes of a path that are told in a failure.
const TOLD_PATH: usize = 400;

/// The file tools, by name.
pub const TOOLS: [&str; 5] = [
    "read_file",
    "list_dir",
    "search_files",
    "write_file",
    "edit_file",
];

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

/// Runs a tool. Blocks on the file system, but never on a FIFO, a device or a socket, and looks at `watch`
/// between two steps.
///
/// # Errors
/// [`Failure`] in words for the agent: what is wrong with the arguments, or with the path.
pub fn run(
    folders: &Folders,
    tool: &str,
    arguments: &str,
    watch: &Watch,
) -> Result<Answer, Failure> {
    match tool {
        "read_file" => {
            let PathArguments { path } = parse(arguments, "`path`, a string")?;
            read::read_file(folders, &path, watch).map_err(|problem| told(&path, &problem))
        }
        "list_dir" => {
            let PathArguments { path } = parse(arguments, "`path`, a string")?;
            list::list_dir(folders, &path, watch).map_err(|problem| told(&path, &problem))
        }
        "search_files" => {
            let asked: search::Arguments = parse(arguments, search::RULE)?;
            search::search_files(folders, &asked, watch)
                .map_err(|problem| told(&asked.path, &problem))
        }
        "write_file" => {
            let WriteArguments { path, content } =
                parse(arguments, "`path` and `content`, both strings")?;
            write::write_file(folders, &path, &content, watch)
                .map_err(|problem| told(&path, &problem))
        }
        "edit_file" => {
            let asked: edit::Arguments = parse(arguments, edit::RULE)?;
            edit::edit_file(folders, &asked, watch).map_err(|problem| told(&asked.path, &problem))
        }
        _ => Err(format!(
            "this runner has no such tool; its file tools are {}",
            TOOLS.join(", ")
        )
        .into()),
    }
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
    let end = path.floor_char_boundary(TOLD_PATH);
    let (shown, cut) = match path.get(..end) {
        Some(shown) if shown.len() < path.len() => (shown, "\u{2026}"),
        Some(_) | None => (path, ""),
    };
    Failure(format!("{shown}{cut}: {problem}"))
}

/// What this runner itself says about a file of this label: a stranger wrote no word of it.
fn own_words(content: String, label: Label) -> Answer {
    Answer {
        content,
        label: Label {
            untrusted: false,
            ..label
        },
    }
}

/// A name of a file, on one line: one with a line break would pass for two.
fn on_one_line(name: &str) -> String {
    name.replace(char::is_control, "\u{fffd}")
}
