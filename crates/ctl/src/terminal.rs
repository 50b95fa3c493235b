//! The terminal that a person sits at: its size, and questions that nobody can answer before they are asked.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _};
use std::os::fd::AsFd as _;

use rustix::termios::{QueueSelector, tcdrain, tcflush, tcgetwinsize};

use crate::out;

/// Of a line that is typed, so many bytes are read; the kernel takes no longer ones.
const MAX_LINE: usize = 4096;
/// Assumed of a terminal that does not tell.
const USUAL: Size = Size {
    columns: 80,
    rows: 24,
};

/// A terminal's size in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    /// Columns of a row.
    pub(crate) columns: usize,
    /// Rows of the screen.
    pub(crate) rows: usize,
}

/// Standard input and output, both of them a terminal.
#[derive(Debug)]
pub(crate) struct Terminal {
    /// Read without a buffer of its own: what is thrown away is thrown away whole.
    input: File,
}

impl Terminal {
    /// `None` if either is none.
    ///
    /// # Errors
    /// When no more files can be opened.
    pub(crate) fn open() -> io::Result<Option<Self>> {
        let (input, output) = (io::stdin(), io::stdout());
        if !input.is_terminal() || !output.is_terminal() {
            return Ok(None);
        }
        let input = File::from(input.as_fd().try_clone_to_owned()?);
        Ok(Some(Self { input }))
    }

    /// Its size now.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub(crate) fn size(&self) -> io::Result<Size> {
        let size = tcgetwinsize(io::stdout())?;
        if size.ws_col == 0 || size.ws_row == 0 {
            return Ok(USUAL);
        }
        Ok(Size {
            columns: size.ws_col.into(),
            rows: size.ws_row.into(),
        })
    }

    /// Asks, once all that was written is on the screen, and waits for a line. What was typed before counts for
    /// nothing. The answer without spaces around it, in small letters; `None` at the end of the input.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub(crate) fn ask(&self, question: &str) -> io::Result<Option<String>> {
        tcdrain(io::stdout())?;
        tcflush(&self.input, QueueSelector::IFlush)?;
        out::try_text(question)?;
        let mut line = Vec::new();
        let mut some = [0; MAX_LINE];
        while !line.ends_with(b"\n") && line.len() < MAX_LINE {
            match (&self.input).read(&mut some) {
                Ok(0) if line.is_empty() => return Ok(None),
                Ok(0) => break,
                Ok(read) => line.extend(some.iter().take(read)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let line = String::from_utf8_lossy(&line);
        Ok(Some(line.trim().to_lowercase()))
    }
}
