//! The runner's configuration: folders, commands, and how it is confined. Strict, like the broker's: an unknown key
//! is a fault, and every fault is told at once, with its line.

mod arguments;
mod commands;
mod faults;
mod table;

use std::path::{Component, Path, PathBuf};

use client::{DataClass, Label};
use proto::RoleName;
use toml::Spanned;
use toml::de::DeTable;

use crate::command::Command;
use crate::confine::Confine;
use crate::folders::{Access, Folder};
use faults::Faults;
pub use faults::{ConfigError, MAX_FAULTS};
use table::{Section, Text};

/// Bytes of a configuration.
pub const MAX_TEXT: usize = 1 << 20;

const KEYS: &[&str] = &["role", "socket", "confine", "folder", "command"];
const FOLDER_KEYS: &[&str] = &["path", "class", "untrusted", "write"];
const CLASSES: &[(&str, DataClass)] = &[
    ("public", DataClass::Public),
    ("internal", DataClass::Internal),
    ("confidential", DataClass::Confidential),
    ("secret", DataClass::Secret),
];
const CONFINE: &[(&str, Confine)] = &[
    ("required", Confine::Required),
    ("best-effort", Confine::BestEffort),
    ("off", Confine::Off),
];

/// A whole configuration. It exists only if every part of it is sound.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// The runner role in the broker's configuration; the default socket is named after it.
    pub role: Option<RoleName>,
    /// The role's socket.
    pub socket: Option<PathBuf>,
    /// What shall be done where the kernel cannot confine.
    pub confine: Confine,
    /// Folders for the file tools.
    pub folders: Vec<Folder>,
    /// Command tools.
    pub commands: Vec<Command>,
}

impl Config {
    /// Reads a configuration. `file` names it in the faults.
    ///
    /// # Errors
    /// Every fault of the text at once.
    pub fn parse(file: &str, text: &str) -> Result<Self, ConfigError> {
        let mut faults = Faults::new(text);
        if text.len() > MAX_TEXT {
            let what = format!("the configuration has at most {MAX_TEXT} bytes");
            faults.add(&(0..0), what);
            return faults.settle(file, Self::default());
        }
        let (table, wrong) = DeTable::parse_recoverable(text);
        for fault in &wrong {
            let span = fault.span().unwrap_or(0..0);
            faults.add(&span, format!("no TOML: {}", fault.message()));
        }
        let config = if wrong.is_empty() {
            read(&table, &mut faults)
        } else {
            // What a broken text recovers to is guesswork.
            Self::default()
        };
        faults.settle(file, config)
    }
}

fn read(table: &Spanned<DeTable<'_>>, faults: &mut Faults) -> Config {
    let place = "the configuration".to_owned();
    let top = Section::new(table.get_ref(), table.span(), place, KEYS, faults);
    let role = top.text(faults, "role").and_then(|text| {
        let role = RoleName::new(text.text);
        if let Err(rule) = &role {
            top.fault(faults, &text.span, rule);
        }
        role.ok()
    });
    let socket = top
        .text(faults, "socket")
        .and_then(|text| absolute(&top, faults, "socket", &text));
    let confine = top.word(faults, "confine", CONFINE).unwrap_or_default();
    let mut folders: Vec<Folder> = Vec::new();
    for (at, node) in top.tables(faults, "folder").into_iter().enumerate() {
        let place = format!("folder {}", at + 1);
        let Some(section) = Section::of(node, place, FOLDER_KEYS, faults) else {
            continue;
        };
        let Some(folder) = read_folder(&section, faults) else {
            continue;
        };
        if folders.iter().any(|other| other.path == folder.path) {
            let what = format!("{} is a [[folder]] already", folder.path.display());
            let span = section
                .get("path")
                .map_or(section.span.clone(), Spanned::span);
            section.fault(faults, &span, what);
        }
        folders.push(folder);
    }
    let mut commands: Vec<Command> = Vec::new();
    for node in top.tables(faults, "command") {
        commands::read(node, &folders, &mut commands, faults);
    }
    if top.get("folder").is_none() && top.get("command").is_none() {
        let what = "serves nothing; write a [[folder]] or a [[command]]";
        top.fault(faults, &top.span, what);
    }
    Config {
        role,
        socket,
        confine,
        folders,
        commands,
    }
}

fn read_folder(section: &Section<'_>, faults: &mut Faults) -> Option<Folder> {
    section.require(faults, "path", "\"/srv/docs\"");
    let text = section.text(faults, "path");
    let path = text.and_then(|text| absolute(section, faults, "path", &text));
    let label = label(section, faults, DataClass::Internal);
    let write = section.flag(faults, "write").unwrap_or(false);
    Some(Folder {
        path: path?,
        label,
        access: if write { Access::Write } else { Access::Read },
    })
}

/// `class` and `untrusted`; a stranger could have written what does not say otherwise.
fn label(section: &Section<'_>, faults: &mut Faults, class: DataClass) -> Label {
    Label {
        class: section.word(faults, "class", CLASSES).unwrap_or(class),
        untrusted: section.flag(faults, "untrusted").unwrap_or(true),
    }
}

/// An absolute path without `.`, `..` and empty parts.
fn absolute(
    section: &Section<'_>,
    faults: &mut Faults,
    key: &str,
    text: &Text<'_>,
) -> Option<PathBuf> {
    let path = Path::new(text.text);
    let clean = text
        .text
        .strip_prefix('/')
        .is_some_and(|rest| rest.is_empty() || rest.split('/').all(|part| !part.is_empty()))
        && path
            .components()
            .all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
        && !text.text.split('/').any(|part| part == ".");
    if !clean {
        let what = format!("`{key}` must be an absolute path without `.`, `..` and empty parts");
        section.fault(faults, &text.span, what);
        return None;
    }
    Some(path.to_owned())
}
