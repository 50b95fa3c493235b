//! File tools below folders that somebody named: what `rolebroker-runner` serves.
//!
//! A path that an agent gives is looked up below the handle of the folder that contains it, so neither `..` nor
//! a link leads out; and what was really opened, not what was asked for, says how confidential the answer is.

mod folders;
mod tools;

pub use folders::{Folder, FolderError, Folders};
pub use tools::{MAX_ENTRIES, MAX_PATH_BYTES, MAX_READ_BYTES, MAX_WRITE_BYTES, run};
