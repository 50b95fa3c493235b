//! One man page.

use std::io;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, roman};

/// Those sections of the whole program's help that stand on each command's page too.
const SHARED: [&str; 3] = ["Exit status", "Files", "Environment"];
/// The order of sections behind the options.
const ORDER: [&str; 5] = ["Signals", "Exit status", "Files", "Environment", "Examples"];

/// A heading of the help, and the lines below it.
struct Section {
    heading: String,
    lines: Vec<String>,
}

/// The page of a command of `whole`, or of `whole` itself.
///
/// # Errors
/// None that this knows of: it writes into memory.
pub(crate) fn of(
    command: &Command,
    whole: &Command,
    section: u8,
    see_also: &[(String, u8)],
) -> io::Result<Vec<u8>> {
    let name = command
        .get_display_name()
        .unwrap_or_else(|| command.get_name())
        .to_owned();
    let version = whole.get_version().unwrap_or_default();
    let own = sections(command);
    let shared = sections(whole)
        .into_iter()
        .filter(|section| SHARED.contains(&section.heading.as_str()))
        .filter(|section| own.iter().all(|own| own.heading != section.heading));
    let mut told: Vec<Section> = shared.collect();
    told.extend(own);
    told.sort_by_key(|section| ORDER.iter().position(|known| *known == section.heading));

    let man = Man::new(command.clone().after_long_help("").after_help(""))
        .title(name.to_uppercase())
        .section(section.to_string())
        // The same sources give the same page.
        .date("")
        .source(format!("rolebroker {version}"))
        .manual("rolebroker");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.get_subcommands().next().is_some() {
        man.render_subcommands_section(&mut page)?;
    }
    let mut rest = Roff::new();
    for section in &told {
        render(&mut rest, section);
    }
    rest.control("SH", ["SEE ALSO"]);
    let pages: Vec<Inline> = see_also
        .iter()
        .enumerate()
        .flat_map(|(at, (page, of))| {
            let end = if at + 1 == see_also.len() { "" } else { ", " };
            [bold(page.clone()), roman(format!("({of}){end}"))]
        })
        .collect();
    rest.text(pages);
    rest.to_writer(&mut page)?;
    Ok(page)
}

fn render(roff: &mut Roff, section: &Section) {
    roff.control("SH", [section.heading.to_uppercase().as_str()]);
    if section.heading == "Examples" {
        for line in &section.lines {
            roff.control("PP", []);
            roff.control("nf", []);
            roff.text([roman(format!("$ {line}"))]);
            roff.control("fi", []);
        }
        return;
    }
    for line in &section.lines {
        match line.split_once("  ") {
            Some((term, means)) => {
                roff.control("TP", []);
                roff.text([bold(term)]);
                roff.text([roman(means.trim_start())]);
            }
            None => {
                roff.control("PP", []);
                roff.text([roman(line.clone())]);
            }
        }
    }
}

/// The sections of what stands behind a command's options.
fn sections(command: &Command) -> Vec<Section> {
    let text = command
        .get_after_long_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    let mut sections: Vec<Section> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if let Some(heading) = line.strip_suffix(':').filter(|_| !line.starts_with(' ')) {
            sections.push(Section {
                heading: heading.to_owned(),
                lines: Vec::new(),
            });
        } else if let Some(last) = sections.last_mut() {
            last.lines.push(line.trim().to_owned());
        }
    }
    sections
}
