//! `examples`: arguments that a grant's own `where` must match, and must not.

use super::faults::Faults;
use super::section::Section;
use crate::decide;
use crate::grant::{Grant, Word};
use crate::limits::{MAX_EXAMPLE, MAX_EXAMPLES};
use crate::matcher::Fit;

/// Holds the examples against the grant.
pub(crate) fn check(section: &Section<'_>, grant: &Grant, faults: &mut Faults) {
    let Some(node) = section.get("examples") else {
        return;
    };
    let place = format!("{}, examples", section.place);
    let Some(examples) = Section::of(node, place, &["match", "no_match"], faults) else {
        return;
    };
    for key in ["match", "no_match"] {
        let texts = examples.texts(faults, key).unwrap_or_default();
        if texts.len() > MAX_EXAMPLES {
            let rule = format!("`{key}` has at most {MAX_EXAMPLES} entries");
            examples.fault(faults, &examples.span_of(key), rule);
            continue;
        }
        for (place, text) in texts.iter().enumerate() {
            if let Err(rule) = check_example(grant, key == "match", text.text) {
                examples.fault(faults, &text.span, format!("{key}[{place}] {rule}"));
            }
        }
    }
}

/// An example that is to match must be permitted by `where` and `only`; one that is not must fall,
/// for a restriction without doubt, because what cannot be evaluated is restricted.
fn check_example(grant: &Grant, must_match: bool, text: &str) -> Result<(), &'static str> {
    if text.len() > MAX_EXAMPLE {
        return Err("is too long");
    }
    let Some(arguments) = decide::parse(text) else {
        return Err("is no JSON object without duplicate keys");
    };
    let reading = grant.read(Some(&arguments));
    let covered = reading.covered || grant.effect == Word::Deny;
    match (must_match, reading.fit) {
        (true, Fit::Matches) if covered => Ok(()),
        (true, Fit::Matches) => {
            Err("holds more than the `where` names; name it, or write `only = false`")
        }
        (true, Fit::Differs) => Err("does not match the `where`"),
        (true, Fit::Unclear) => Err("cannot be evaluated by the `where`"),
        (false, Fit::Differs) => Ok(()),
        (false, Fit::Unclear) if grant.effect == Word::Allow => Ok(()),
        (false, Fit::Unclear) => {
            Err("cannot be evaluated by the `where`, so the restriction applies to it")
        }
        (false, Fit::Matches) if grant.effect == Word::Allow && !covered => Ok(()),
        (false, Fit::Matches) => Err("matches the `where`"),
    }
}
