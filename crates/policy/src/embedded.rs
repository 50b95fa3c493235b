//! The configuration for an ordinary user who has none (DESIGN 10): a text with four marks.

/// The text, with the marks `${USER}`, `${FOLDER}`, `${RUNTIME_DIR}` and `${STATE_DIR}`.
pub const EMBEDDED: &str = include_str!("../../../config/default.toml");

/// What stands in place of the marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Embedded<'a> {
    /// The user, by decimal uid or name.
    pub user: &'a str,
    /// The one folder that the built-in tools may work in.
    pub folder: &'a str,
    /// Where the sockets are.
    pub runtime_dir: &'a str,
    /// Where the state is.
    pub state_dir: &'a str,
}

/// A value that cannot stand in the embedded configuration. Names the mark, not the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the embedded configuration cannot hold this {0}: it has a quote, a backslash, a dollar sign \
     or a control character in it; write a configuration"
)]
pub struct Unfit(pub &'static str);

impl Embedded<'_> {
    /// The embedded configuration's text. The values stand between double quotes in it, so those
    /// that could end the quotes, escape, or bring in another mark are refused.
    ///
    /// # Errors
    /// [`Unfit`] for the first such value.
    pub fn text(self) -> Result<String, Unfit> {
        let mut text = EMBEDDED.to_owned();
        for (mark, name, value) in [
            ("${USER}", "user", self.user),
            ("${FOLDER}", "folder", self.folder),
            ("${RUNTIME_DIR}", "runtime folder", self.runtime_dir),
            ("${STATE_DIR}", "state folder", self.state_dir),
        ] {
            let unfit = |c: char| matches!(c, '"' | '\'' | '\\' | '$') || c.is_control();
            if value.is_empty() || value.contains(unfit) {
                return Err(Unfit(name));
            }
            text = text.replace(mark, value);
        }
        Ok(text)
    }
}
