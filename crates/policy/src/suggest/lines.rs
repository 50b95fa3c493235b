//! A suggestion in lines.

use proto::Access;

use super::{Restriction, Suggestion};

impl Suggestion {
    /// As an operator is told it: the grant's lines, empty where there is none, and what to know of it, a line each.
    pub fn in_lines(self) -> (String, Vec<String>) {
        let nothing = |notes| (String::new(), notes);
        match self {
            Suggestion::Permitted { grant } => {
                nothing(vec![format!("it runs already, by grant `{grant}`")])
            }
            Suggestion::Grant(proposal) => {
                let answer = match proposal.answer {
                    Access::Allow => "permits exactly this call, once, within the hour",
                    Access::Ask => "asks a person about exactly this call, within the hour",
                };
                let mut notes = vec![answer.to_owned()];
                notes.extend(proposal.notes);
                (proposal.toml, notes)
            }
            Suggestion::Wider { proposal, pointers } => {
                let mut notes = vec!["permits more than this call:".to_owned()];
                notes.extend(
                    pointers
                        .into_iter()
                        .map(|(at, what)| format!("`{at}`: {what}")),
                );
                notes.extend(proposal.notes);
                (proposal.toml, notes)
            }
            Suggestion::Asked { by } => nothing(standing_in_the_way(
                "a person is asked: approve it, or end the asking",
                by,
            )),
            Suggestion::Restricted { by } => nothing(standing_in_the_way(
                "no further grant helps: these say no, whatever else is granted",
                by,
            )),
            Suggestion::Impossible { why } => nothing(vec![format!(
                "no grant can be written for exactly this call: {why}"
            )]),
        }
    }
}

fn standing_in_the_way(what: &str, by: Vec<Restriction>) -> Vec<String> {
    let mut notes = vec![what.to_owned()];
    for restriction in by {
        notes.push(format!(
            "grant `{}`: {}",
            restriction.grant, restriction.instead
        ));
        let lines = restriction.lines.unwrap_or_default();
        notes.extend(lines.lines().map(|line| format!("    {line}")));
    }
    notes
}
