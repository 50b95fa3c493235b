//! The embedded default: what an ordinary user runs on who has written no configuration, filled from
//! that user's own surroundings.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use nix::unistd::{User, geteuid};
use policy::embedded::Embedded;

use crate::exit::Fault;

/// The default configuration for this process's user.
///
/// # Errors
/// In words: what is missing in the user's surroundings, or cannot be written into a configuration.
pub fn text() -> Result<String, String> {
    Surroundings::of_process()?.fill()
}

/// Makes the folder to which the default's grants reach, for this user only.
///
/// # Errors
/// It cannot be made.
pub fn make_folder() -> Result<(), Fault> {
    let folder = Surroundings::of_process()
        .and_then(|s| s.folder())
        .map_err(Fault::Configuration)?;
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder)
        .map_err(|error| Fault::of_path("cannot make", &folder, &error))
}

/// What the default is filled from.
struct Surroundings {
    user: String,
    home: Option<PathBuf>,
    runtime: Option<PathBuf>,
    state: Option<PathBuf>,
    data: Option<PathBuf>,
}

impl Surroundings {
    fn of_process() -> Result<Self, String> {
        let uid = geteuid();
        let known = User::from_uid(uid)
            .map_err(|error| format!("the user of uid {uid} cannot be looked up: {error}"))?;
        Ok(Self {
            user: known
                .as_ref()
                .map_or_else(|| uid.to_string(), |user| user.name.clone()),
            home: folder_in(std::env::var_os("HOME")).or(known.map(|user| user.dir)),
            runtime: folder_in(std::env::var_os("XDG_RUNTIME_DIR")),
            state: folder_in(std::env::var_os("XDG_STATE_HOME")),
            data: folder_in(std::env::var_os("XDG_DATA_HOME")),
        })
    }

    fn fill(&self) -> Result<String, String> {
        let runtime = self
            .runtime
            .as_deref()
            .ok_or("XDG_RUNTIME_DIR is not set: set it, or write a configuration with `rolebroker init` and name it with --config")?
            .join("rolebroker");
        let state = self
            .below_home(self.state.as_deref(), ".local/state")?
            .join("rolebroker");
        Embedded {
            user: &self.user,
            folder: text_of(&self.folder()?)?,
            runtime_dir: text_of(&runtime)?,
            state_dir: text_of(&state)?,
        }
        .text()
        .map_err(|unfit| unfit.to_string())
    }

    fn folder(&self) -> Result<PathBuf, String> {
        let data = self.below_home(self.data.as_deref(), ".local/share")?;
        Ok(data.join("rolebroker/files"))
    }

    fn below_home(&self, stated: Option<&Path>, otherwise: &str) -> Result<PathBuf, String> {
        match (stated, &self.home) {
            (Some(stated), _) => Ok(stated.to_owned()),
            (None, Some(home)) => Ok(home.join(otherwise)),
            (None, None) => Err("HOME is not set: set it, or name a configuration".to_owned()),
        }
    }
}

/// A folder as an environment variable states it: an absolute path, or else it does not count.
fn folder_in(value: Option<OsString>) -> Option<PathBuf> {
    value.map(PathBuf::from).filter(|path| path.is_absolute())
}

fn text_of(path: &Path) -> Result<&str, String> {
    path.to_str()
        .ok_or_else(|| "a folder of this user is not UTF-8: name a configuration".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surroundings() -> Surroundings {
        Surroundings {
            user: "ann".into(),
            home: Some("/home/ann".into()),
            runtime: Some("/run/user/1000".into()),
            state: None,
            data: None,
        }
    }

    #[test]
    fn the_default_is_about_this_user_and_nothing_is_left_open() {
        let text = surroundings().fill().expect("fills");
        assert!(!text.contains("${"), "{text}");
        for part in [
            "\"ann\"",
            "/run/user/1000/rolebroker",
            "/home/ann/.local/state/rolebroker",
            "/home/ann/.local/share/rolebroker/files",
        ] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
    }

    #[test]
    fn a_value_that_could_write_configuration_is_refused() {
        for bad in ["/a\"b", "/a'b", "/a\\b", "/a\nb", "/a\u{85}b", "/${USER}"] {
            let filled = Surroundings {
                state: Some(bad.into()),
                ..surroundings()
            }
            .fill();
            assert!(filled.is_err(), "{bad:?}");
        }
    }

    #[test]
    fn without_a_runtime_folder_there_is_no_default() {
        let filled = Surroundings {
            runtime: None,
            ..surroundings()
        }
        .fill();
        assert!(filled.is_err_and(|why| why.contains("XDG_RUNTIME_DIR")));
    }

    #[test]
    fn a_relative_folder_in_the_environment_does_not_count() {
        assert_eq!(folder_in(Some("a/b".into())), None);
        assert_eq!(folder_in(Some("".into())), None);
    }
}
