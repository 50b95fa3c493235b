//! What is decided on, page by page: the question comes when the last page was shown, not before.

use std::io;

use crate::exit::Usage;
use crate::out;
use crate::terminal::{Size, Terminal};

/// On a smaller terminal nothing can be read, and so nothing is asked.
const SMALLEST: Size = Size {
    columns: 40,
    rows: 6,
};
/// Rows below each page: where one is, and the question.
const BELOW: usize = 2;
/// A column that stays free: some terminals begin a new row when the last column is written.
const FREE: usize = 1;

/// Shows the lines that `lay` gives for a width, and asks once all of them were shown. True if the answer is yes.
///
/// # Errors
/// When the terminal is gone, or too small.
pub(crate) fn shown_whole(
    terminal: &Terminal,
    lay: impl Fn(usize) -> Vec<String>,
    question: &str,
) -> anyhow::Result<bool> {
    let mut size = terminal.size()?;
    let mut all = pages(&lay, size)?;
    let mut at = 0;
    loop {
        let now = terminal.size()?;
        if now != size {
            (size, all, at) = (now, pages(&lay, now)?, 0);
            out::try_text("the terminal has another size now; from the beginning:\n")?;
        }
        let Some(page) = all.get(at) else {
            return Ok(false);
        };
        out::try_text(page)?;
        if all.len() > 1 {
            out::try_text(&format!("-- page {} of {} --\n", at + 1, all.len()))?;
        }
        let step = if at + 1 < all.len() {
            between(terminal)?
        } else {
            at_the_end(terminal, question)?
        };
        match step {
            Step::Yes => return Ok(true),
            Step::No => return Ok(false),
            Step::Next => at += 1,
            Step::Back => at = at.saturating_sub(1),
            Step::Again => {}
        }
    }
}

enum Step {
    Yes,
    No,
    Next,
    Back,
    Again,
}

fn between(terminal: &Terminal) -> io::Result<Step> {
    let answer = terminal.ask("Enter: next, b: back, q: leave ")?;
    Ok(match answer.as_deref() {
        Some("") => Step::Next,
        Some("b") => Step::Back,
        Some("q") | None => Step::No,
        Some(_) => Step::Again,
    })
}

fn at_the_end(terminal: &Terminal, question: &str) -> io::Result<Step> {
    let answer = terminal.ask(&format!("{question} [y/N] "))?;
    Ok(match answer.as_deref() {
        Some("y" | "yes") => Step::Yes,
        Some("b") => Step::Back,
        Some(_) | None => Step::No,
    })
}

/// The lines in pages that leave room for what stands below them.
fn pages(lay: impl Fn(usize) -> Vec<String>, size: Size) -> Result<Vec<String>, Usage> {
    if size.columns < SMALLEST.columns || size.rows < SMALLEST.rows {
        return Err(Usage(format!(
            "nothing is answered: a terminal of {}x{} shows too little; at least {}x{} are needed",
            size.columns, size.rows, SMALLEST.columns, SMALLEST.rows
        )));
    }
    let lines = lay(size.columns - FREE);
    let pages = lines.chunks(size.rows - BELOW);
    Ok(pages.map(|page| page.join("\n") + "\n").collect())
}
