//! What to type once the configuration is there.

use std::path::Path;

use serde::Serialize;

/// One thing to type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Step {
    /// What it does.
    pub(super) what: &'static str,
    /// As whom.
    pub(super) user: String,
    /// A line for a shell.
    pub(super) command: String,
}

/// A word as a shell reads it.
pub(super) fn quoted(word: &Path) -> String {
    let word = word.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word;
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_back_what_was_quoted() {
        for word in ["/a", "/a b", "/it's", "/$(id)", "/a\"b\\", "/~", "/ä*?"] {
            let line = format!("printf %s {}", quoted(Path::new(word)));
            let output = std::process::Command::new("sh")
                .args(["-c", &line])
                .output()
                .unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), word);
        }
    }
}
