//! Command tools: an argv with places for typed arguments, run without a shell and within limits.
//!
//! A command runs below a guard, a process of this program's own: the guard starts it in a session of its own,
//! watches its time and whether the runner still lives, and at its end leaves nothing of it running.

mod argv;
pub mod confined;
pub mod guard;
mod processes;
mod run;
mod schema;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use client::Label;
use proto::{Effects, ToolName};
use regex::Regex;

pub use argv::{Filled, MAX_ARGV_BYTES};
pub use run::{ERROR_TAIL, MAX_COMMANDS, Runs};

/// A command tool as the configuration declares it.
#[derive(Debug, Clone)]
pub struct Command {
    /// The tool's name.
    pub name: ToolName,
    /// What it does, in words for an agent.
    pub description: String,
    /// The program: an absolute path.
    pub program: PathBuf,
    /// The arguments behind it.
    pub argv: Vec<Element>,
    /// What goes into them.
    pub arguments: BTreeMap<String, Argument>,
    /// The argument that the command reads from its standard input, instead of nothing.
    pub stdin: Option<String>,
    /// The folder that it starts in.
    pub cwd: PathBuf,
    /// All of its environment.
    pub env: BTreeMap<String, String>,
    /// What its output counts as.
    pub label: Label,
    /// What running it twice does.
    pub effects: Effects,
    /// Whether it can carry data out of the machine.
    pub egress: bool,
    /// Exit codes that mean that it did what it should.
    pub ok_codes: Vec<i32>,
    /// Its bounds.
    pub limits: Limits,
    /// What it may touch, where the kernel confines it.
    pub reach: Reach,
}

/// The bounds of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Limits {
    /// How long it may take.
    pub timeout: Duration,
    /// How long it has between TERM and KILL.
    pub grace: Duration,
    /// Seconds of processor time for each of its processes.
    pub cpu_seconds: u64,
    /// Bytes of address space for each of its processes.
    pub memory: u64,
    /// Files that each of its processes may have open.
    pub open_files: u64,
    /// Processes and threads that may be added to those of the user.
    pub processes: u64,
    /// Bytes of a file that it writes.
    pub file_size: u64,
    /// Bytes that it may write to its standard output.
    pub output: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            grace: Duration::from_secs(2),
            cpu_seconds: 30,
            memory: 1 << 30,
            open_files: 256,
            processes: 64,
            file_size: 64 << 20,
            output: 1 << 20,
        }
    }
}

/// What a command may touch.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Reach {
    /// Files and folders that it may read and execute, with all that is below.
    pub read: Vec<PathBuf>,
    /// Files and folders that it may also change.
    pub write: Vec<PathBuf>,
    /// Whether it may open sockets of the internet.
    pub network: bool,
}

/// One element of an argv.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Element {
    /// Texts and arguments, one after the other.
    pub pieces: Vec<Piece>,
}

/// A piece of an element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// As it stands.
    Text(String),
    /// What the call says.
    Argument(String),
}

/// What a call may say under one name.
#[derive(Debug, Clone)]
pub struct Argument {
    /// What it is, in words for an agent.
    pub description: String,
    /// Whether a call may leave it out; then the elements that name it fall away.
    pub optional: bool,
    /// Whether it may begin with `-`, and so be taken for an option.
    pub allow_dash: bool,
    /// Its type and bounds.
    pub kind: Kind,
}

/// The types of arguments.
#[derive(Debug, Clone)]
pub enum Kind {
    /// A text.
    Text(TextRule),
    /// An integer.
    Integer {
        /// The least.
        min: i64,
        /// The most.
        max: i64,
    },
    /// True puts a text there, false nothing.
    Flag {
        /// The text.
        text: String,
    },
    /// A path that exists below one of these folders, which are served.
    Path {
        /// The folders.
        below: Vec<PathBuf>,
        /// Whether the command changes what is there.
        access: crate::folders::Access,
    },
    /// Several texts; each becomes an element.
    List {
        /// The bounds of each.
        each: TextRule,
        /// How few.
        min_items: u32,
        /// How many.
        max_items: u32,
    },
}

/// The bounds of a text.
#[derive(Debug, Clone)]
pub struct TextRule {
    /// In bytes of UTF-8.
    pub max_len: u32,
    /// What the whole of it must match.
    pub regex: Option<WholeRegex>,
    /// What it must be one of.
    pub one_of: Option<Vec<String>>,
}

/// A regular expression for whole values.
#[derive(Debug, Clone)]
pub struct WholeRegex {
    /// As written.
    pub text: String,
    /// With its ends fixed.
    pub compiled: Regex,
}
