//! What a call says, checked and put into a command's argv.

use std::path::Path;

use client::Label;
use serde_json::{Map, Value};

use super::{Argument, Command, Element, Kind, Piece, TextRule};
use crate::files::MAX_PATH_BYTES;
use crate::folders::{Access, Folders, Place, real_path};

/// Bytes of a whole argv; Linux takes 128 KiB in one element and a share of the stack in all.
pub const MAX_ARGV_BYTES: usize = 512 << 10;

/// A command with everything in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filled {
    /// The arguments behind the program.
    pub argv: Vec<String>,
    /// What it reads from its standard input; nothing if `None`.
    pub stdin: Option<String>,
}

/// The values that one call has for one argument.
enum Stated {
    Absent,
    One(String),
    Several(Vec<String>),
}

impl Element {
    /// The arguments that stand in it.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Text(_) => None,
            Piece::Argument(name) => Some(name.as_str()),
        })
    }
}

impl Command {
    /// Checks a call's arguments and fills them in.
    ///
    /// # Errors
    /// Which argument breaks which rule, in words that repeat no value.
    pub fn fill(&self, folders: &Folders, arguments: &str) -> Result<Filled, String> {
        let stated = proto::json::parse(arguments).ok();
        let Some(Value::Object(stated)) = stated else {
            return Err("the arguments must be an object, without duplicate keys".to_owned());
        };
        if stated.keys().any(|name| !self.arguments.contains_key(name)) {
            let names: Vec<_> = self.arguments.keys().map(String::as_str).collect();
            return Err(if names.is_empty() {
                "this tool has no arguments".to_owned()
            } else {
                format!("the arguments are {} and no others", names.join(", "))
            });
        }
        let mut argv = Vec::new();
        for element in &self.argv {
            self.put(element, folders, &stated, &mut argv)?;
        }
        if argv.iter().map(String::len).sum::<usize>() > MAX_ARGV_BYTES {
            return Err(format!(
                "the arguments have more than {MAX_ARGV_BYTES} bytes together"
            ));
        }
        let stdin = match &self.stdin {
            None => None,
            Some(name) => match self.value(name, folders, &stated)? {
                Stated::One(text) => Some(text),
                Stated::Absent | Stated::Several(_) => None,
            },
        };
        Ok(Filled { argv, stdin })
    }

    fn put(
        &self,
        element: &Element,
        folders: &Folders,
        stated: &Map<String, Value>,
        argv: &mut Vec<String>,
    ) -> Result<(), String> {
        let mut text = String::new();
        for piece in &element.pieces {
            match piece {
                Piece::Text(plain) => text.push_str(plain),
                Piece::Argument(name) => match self.value(name, folders, stated)? {
                    // The whole element falls away.
                    Stated::Absent => return Ok(()),
                    Stated::One(value) => text.push_str(&value),
                    Stated::Several(values) => {
                        argv.extend(values);
                        return Ok(());
                    }
                },
            }
        }
        argv.push(text);
        Ok(())
    }

    fn value(
        &self,
        name: &str,
        folders: &Folders,
        stated: &Map<String, Value>,
    ) -> Result<Stated, String> {
        let Some(argument) = self.arguments.get(name) else {
            return Ok(Stated::Absent);
        };
        match stated.get(name) {
            None if argument.optional => Ok(Stated::Absent),
            None => Err(format!("`{name}` is missing")),
            Some(value) => argument
                .read(folders, value, self.label)
                .map_err(|rule| format!("`{name}` {rule}")),
        }
    }
}

impl Argument {
    /// `most` is what the command's output counts as.
    fn read(&self, folders: &Folders, value: &Value, most: Label) -> Result<Stated, String> {
        match &self.kind {
            Kind::Text(rule) => {
                let text = value.as_str().ok_or("must be a string")?;
                rule.check(text)?;
                self.dash(text)?;
                Ok(Stated::One(text.to_owned()))
            }
            Kind::Integer { min, max } => {
                let number = value
                    .as_i64()
                    .filter(|number| (min..=max).contains(&number));
                let number = number.ok_or(format!("must be an integer from {min} to {max}"))?;
                Ok(Stated::One(number.to_string()))
            }
            Kind::Flag { text } => Ok(match value.as_bool().ok_or("must be true or false")? {
                true => Stated::One(text.clone()),
                false => Stated::Absent,
            }),
            Kind::Path { below, access } => {
                let path = value.as_str().ok_or("must be a string")?;
                let below: Vec<&Path> = below.iter().map(AsRef::as_ref).collect();
                let (real, place) = real(folders, path, &below)?;
                if *access == Access::Write {
                    place.writable().map_err(|rule| rule.to_string())?;
                }
                // What the configuration could not see: links in the names of folders, and those of the command line.
                if !place.label.is_within(most) {
                    let what = "lies in a folder that counts as more than the command's output";
                    return Err(what.to_owned());
                }
                Ok(Stated::One(real))
            }
            Kind::List {
                each,
                min_items,
                max_items,
            } => {
                let values = value.as_array().ok_or("must be a list of strings")?;
                let count = u32::try_from(values.len()).unwrap_or(u32::MAX);
                if !(min_items..=max_items).contains(&&count) {
                    return Err(format!("must have {min_items} to {max_items} items"));
                }
                let mut texts = Vec::new();
                for value in values {
                    let text = value.as_str().ok_or("must be a list of strings")?;
                    each.check(text)?;
                    self.dash(text)?;
                    texts.push(text.to_owned());
                }
                Ok(Stated::Several(texts))
            }
        }
    }

    /// A value that begins with `-` would be taken for an option.
    fn dash(&self, text: &str) -> Result<(), String> {
        if text.starts_with('-') && !self.allow_dash {
            return Err("may not begin with `-`".to_owned());
        }
        Ok(())
    }
}

impl TextRule {
    fn check(&self, text: &str) -> Result<(), String> {
        if text.len() > usize::try_from(self.max_len).unwrap_or(usize::MAX) {
            return Err(format!("has at most {} bytes", self.max_len));
        }
        if text.contains('\0') {
            return Err("may have no NUL".to_owned());
        }
        if let Some(one_of) = &self.one_of
            && !one_of.iter().any(|word| word == text)
        {
            return Err(format!("must be one of {}", one_of.join(", ")));
        }
        if let Some(regex) = &self.regex
            && !regex.compiled.is_match(text)
        {
            return Err(format!("must match {}", regex.text));
        }
        Ok(())
    }
}

/// The path of what is there now, without a link in it, and where that lies, if it is below one of these folders.
fn real(folders: &Folders, path: &str, below: &[&Path]) -> Result<(String, Place), String> {
    if path.len() > MAX_PATH_BYTES {
        return Err(format!("has at most {MAX_PATH_BYTES} bytes"));
    }
    let (dir, rest, _) = folders.locate(path).map_err(|rule| rule.to_string())?;
    // A handle that reads nothing and waits for nobody, whatever is there.
    let mut options = cap_std::fs::OpenOptions::new();
    use cap_std::fs::OpenOptionsExt as _;
    options
        .read(true)
        .custom_flags(nix::fcntl::OFlag::O_PATH.bits());
    let opened = dir
        .open_with(rest, &options)
        .map_err(|_| "does not exist, or leads out of its folder")?;
    let real = real_path(&opened).map_err(|rule| rule.to_string())?;
    let place = folders
        .place_at(&real)
        .ok_or("lies in no folder that is served")?;
    // The folders may be named through links themselves.
    let inside = below.iter().any(|folder| {
        let folder = folder.canonicalize();
        folder.is_ok_and(|folder| real.starts_with(folder))
    });
    if !inside {
        return Err("lies in no folder that this argument may name".to_owned());
    }
    let real = real.into_os_string().into_string();
    let real = real.map_err(|_| "is not text in UTF-8".to_owned())?;
    Ok((real, place))
}
