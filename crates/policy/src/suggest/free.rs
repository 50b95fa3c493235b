//! Ids for grants to add.

use std::collections::BTreeSet;

use proto::{GrantId, ToolName};

use crate::decision::Query;
use crate::ruleset::Ruleset;

/// Bytes of the tool's name that an id repeats.
const MAX_STEM: usize = 40;
/// Ids that are tried before it is given up.
const MAX_TRIES: u32 = 10_000;

/// Ids that no grant has and no use was counted for.
#[derive(Debug, Clone)]
pub(super) struct Free {
    taken: BTreeSet<GrantId>,
}

impl Free {
    pub(super) fn of<'q>(
        ruleset: &Ruleset,
        queries: impl IntoIterator<Item = &'q Query<'q>>,
    ) -> Free {
        let mut taken: BTreeSet<GrantId> = ruleset.all().map(|grant| grant.id.clone()).collect();
        for query in queries {
            taken.extend(query.uses.keys().cloned());
        }
        Free { taken }
    }

    /// `word-tool-1`, or the next number that is free; each is given once.
    ///
    /// # Errors
    /// In words: none is free.
    pub(super) fn next(&mut self, word: &str, tool: &ToolName) -> Result<GrantId, String> {
        let stem: String = tool
            .as_str()
            .chars()
            .take(MAX_STEM)
            .map(|c| if c == '/' { '-' } else { c })
            .collect();
        let id = (1..=MAX_TRIES)
            .filter_map(|number| GrantId::new(format!("{word}-{stem}-{number}")).ok())
            .find(|id| !self.taken.contains(id))
            .ok_or("no id for a grant is free")?;
        self.taken.insert(id.clone());
        Ok(id)
    }
}
