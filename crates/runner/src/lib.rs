//! File tools below folders that somebody named, and command tools that somebody declared: what
//! `rolebroker-runner` serves.
//!
//! A path that an agent gives is looked up below the handle of the folder that contains it, so neither `..` nor
//! a link leads out; and what was really opened, not what was asked for, says how confidential the answer is.
//! A command is an argv, never a line for a shell; it runs in a process group of its own, below a guard that
//! leaves nothing of it running.

pub mod cli;
pub mod command;
pub mod config;
pub mod confine;
mod declare;
mod files;
mod folders;
mod watch;

pub use declare::{Declared, declared, tool_blocks};
pub use files::{
    MAX_ENTRIES, MAX_MATCHES, MAX_PATH_BYTES, MAX_READ_BYTES, MAX_SEARCH_BYTES, MAX_SEARCH_DEPTH,
    MAX_SEARCH_ENTRIES, MAX_SEARCH_FILE, MAX_SEARCH_LINE, MAX_WRITE_BYTES, TOOLS, run,
};
pub use folders::{Access, Folder, FolderError, Folders, Place};
pub use watch::{FILE_LIMIT, Watch};
