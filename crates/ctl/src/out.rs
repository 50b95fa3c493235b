//! What goes to standard output. A reader that went away (`| head`) is no fault: the rest is not
//! written, and the exit code still says how it went.

use std::fmt::Write as _;
use std::io::Write as _;
use std::os::fd::AsFd as _;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Columns of what is written to no terminal, or to one whose size does not matter.
pub const WIDTH: usize = 79;

/// Writes a text as it is.
pub fn text(text: &str) {
    let _ = try_text(text);
}

/// Writes a text as it is, for who must know when nobody reads any more.
///
/// # Errors
/// When it cannot be written.
pub fn try_text(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Whether anybody still reads it, as far as the system knows: a pipe's other end may be closed.
pub fn is_read() -> bool {
    let out = std::io::stdout();
    let mut gone = [PollFd::new(out.as_fd(), PollFlags::empty())];
    // Only what is wrong with it is told; a signal in between tells nothing.
    poll(&mut gone, PollTimeout::ZERO).unwrap_or_default() == 0
}

/// Writes a line.
pub fn line(line: &str) {
    text(&format!("{line}\n"));
}

/// Writes lines.
pub fn lines(lines: &[String]) {
    text(&(lines.join("\n") + "\n"));
}

/// Writes a line of JSON in ASCII: what others wrote cannot steer the terminal of whoever looks.
pub fn json(json: &str) {
    line(&ascii(json));
}

/// The same JSON with every character beyond printable ASCII as an escape. They stand in strings only.
pub fn ascii(json: &str) -> String {
    let mut written = String::with_capacity(json.len());
    for c in json.chars() {
        if (' '..='~').contains(&c) {
            written.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(written, "\\u{unit:04x}");
            }
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_for_a_script_is_ascii_and_says_the_same() {
        let json = serde_json::json!({ "a": "x\u{9b}\u{202e}😀\u{7f}\"" }).to_string();
        let written = ascii(&json);
        assert!(
            written.bytes().all(|b| (0x20..0x7f).contains(&b)),
            "{written}"
        );
        let read: serde_json::Value = serde_json::from_str(&written).unwrap();
        assert_eq!(read.to_string(), json);
    }
}
