//! What the README prints works as printed: for a new user with an empty home, and on a machine that has nothing yet.

mod machine;
mod newcomer;

const README: &str = include_str!("../../README.md");

/// A fenced block: its language, and its text.
type Block = (&'static str, &'static str);

/// The fenced blocks of a section.
#[track_caller]
fn blocks(section: &str) -> Vec<Block> {
    let (_, rest) = README.split_once(section).expect("the section is there");
    let section = rest.split("\n## ").next().unwrap_or_default();
    let inside = section.split("```").skip(1).step_by(2);
    inside.filter_map(|block| block.split_once('\n')).collect()
}

/// The lines of a block as they are typed, without the remarks behind them.
fn lines(block: &'static str) -> impl Iterator<Item = &'static str> {
    block
        .lines()
        .map(|line| line.split("  # ").next().unwrap_or_default().trim_end())
        .filter(|line| !line.is_empty())
}

/// The name of the one approval that a list of them shows.
#[track_caller]
fn approval(listed: &str) -> &str {
    let asks = " agent asks for write_file";
    let line = listed.lines().find(|line| line.contains(asks));
    let name = line.and_then(|line| line.split_whitespace().next());
    name.unwrap_or_else(|| panic!("no approval in:\n{listed}"))
}

#[test]
fn the_pages_that_it_names_are_there() {
    let top = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let links: Vec<&str> = README
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .collect();
    assert!(links.len() > 8, "{links:?}");
    for link in links {
        let path = std::path::Path::new(top).join(link);
        assert!(path.is_file(), "{link}");
    }
}
