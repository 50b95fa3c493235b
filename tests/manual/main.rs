//! Writes the man pages and the completions of every program, from the definitions of their command lines:
//! `cargo run -q -p e2e --bin manual -- OUTDIR` makes `OUTDIR/man/man1`, `man/man8` and `completions/{bash,zsh,fish}`.

mod page;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Command, CommandFactory as _};
use clap_complete::Shell;

/// A program that has pages.
struct Program {
    command: Command,
    /// The section of the manual.
    section: u8,
    see_also: &'static [(&'static str, u8)],
}

fn programs() -> [Program; 3] {
    [
        Program {
            command: ctl::cli::command(),
            section: 1,
            see_also: &[("rolebrokerd", 8), ("rolebroker-runner", 1)],
        },
        Program {
            command: broker::cli::Cli::command(),
            section: 8,
            see_also: &[("rolebroker", 1), ("rolebroker-runner", 1)],
        },
        Program {
            command: runner::cli::Args::command(),
            section: 1,
            see_also: &[("rolebroker", 1), ("rolebrokerd", 8)],
        },
    ]
}

fn main() -> anyhow::Result<()> {
    let mut args = std::env::args_os().skip(1);
    let (Some(folder), None) = (args.next(), args.next()) else {
        anyhow::bail!("say where: manual OUTDIR");
    };
    let folder = PathBuf::from(folder);
    for program in programs() {
        pages(&folder, &program)?;
        completions(&folder, program.command)?;
    }
    Ok(())
}

/// A page for the program, and one for each of its commands.
fn pages(folder: &Path, program: &Program) -> anyhow::Result<()> {
    let folder = folder.join(format!("man/man{}", program.section));
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut whole = program.command.clone().disable_help_subcommand(true);
    // What holds for all commands is on the page of each.
    whole.build();
    let name = whole.get_name().to_owned();
    let commands: Vec<Command> = whole.get_subcommands().cloned().collect();

    let mut see_also: Vec<(String, u8)> = commands
        .iter()
        .map(|command| (format!("{name}-{}", command.get_name()), program.section))
        .collect();
    see_also.extend(
        program
            .see_also
            .iter()
            .map(|(page, of)| ((*page).to_owned(), *of)),
    );
    write(
        &folder,
        &page::of(&whole, &whole, program.section, &see_also)?,
        &name,
        program.section,
    )?;

    let mut see_also = vec![(name.clone(), program.section)];
    see_also.extend(
        program
            .see_also
            .iter()
            .map(|(page, of)| ((*page).to_owned(), *of)),
    );
    for command in commands {
        let name = format!("{name}-{}", command.get_name());
        let text = page::of(
            &command.display_name(name.clone()),
            &whole,
            program.section,
            &see_also,
        )?;
        write(&folder, &text, &name, program.section)?;
    }
    Ok(())
}

fn write(folder: &Path, text: &[u8], name: &str, section: u8) -> anyhow::Result<()> {
    let path = folder.join(format!("{name}.{section}"));
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn completions(folder: &Path, mut command: Command) -> anyhow::Result<()> {
    let name = command.get_name().to_owned();
    for (shell, file) in [
        (Shell::Bash, name.clone()),
        (Shell::Zsh, format!("_{name}")),
        (Shell::Fish, format!("{name}.fish")),
    ] {
        let folder = folder.join("completions").join(shell.to_string());
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let path = folder.join(file);
        let mut out = Vec::new();
        clap_complete::generate(shell, &mut command, name.clone(), &mut out);
        fs::write(&path, out).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
