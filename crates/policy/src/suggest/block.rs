//! Tuples merged into blocks: each block is all combinations of one value of each of its sides, and
//! holds exactly the tuples that were merged into it.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;

/// The values of one side.
type Side<'t> = BTreeSet<&'t str>;

/// All combinations of its sides' values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block<'t> {
    /// The values at each place of the tuples.
    pub(super) sides: Vec<Side<'t>>,
    /// The places of its tuples in what was given.
    pub(super) tuples: Vec<usize>,
}

/// Few blocks that together hold exactly these tuples, which are different and equally long. No
/// side gets more than `most` values. Two blocks are merged only where they differ on one side: what
/// they hold together is then all combinations again.
pub(super) fn merge<'t>(tuples: impl Iterator<Item = &'t [String]>, most: usize) -> Vec<Block<'t>> {
    let one = |(place, tuple): (usize, &'t [String])| Block {
        sides: tuple.iter().map(|value| [value.as_str()].into()).collect(),
        tuples: vec![place],
    };
    let mut blocks: Vec<Block<'t>> = tuples.enumerate().map(one).collect();
    let sides = blocks.first().map_or(0, |block| block.sides.len());
    loop {
        let before = blocks.len();
        for side in 0..sides {
            blocks = along(blocks, side, most);
        }
        if blocks.len() == before {
            return blocks;
        }
    }
}

/// Merges the blocks that differ at most on this side.
fn along(blocks: Vec<Block<'_>>, side: usize, most: usize) -> Vec<Block<'_>> {
    // By all other sides, this one left empty.
    let mut rows: BTreeMap<Vec<Side<'_>>, BTreeMap<Side<'_>, Vec<usize>>> = BTreeMap::new();
    for Block { mut sides, tuples } in blocks {
        let own = sides.get_mut(side).map(mem::take).unwrap_or_default();
        rows.entry(sides).or_default().insert(own, tuples);
    }
    let mut merged = Vec::new();
    for (others, row) in rows {
        let mut open: Option<(Side<'_>, Vec<usize>)> = None;
        let mut close = |(own, tuples): (_, Vec<usize>)| {
            let mut sides = others.clone();
            if let Some(place) = sides.get_mut(side) {
                *place = own;
            }
            merged.push(Block { sides, tuples });
        };
        for (own, tuples) in row {
            match &mut open {
                Some((values, held)) if values.len() + own.len() <= most => {
                    values.extend(own);
                    held.extend(tuples);
                }
                _ => {
                    if let Some(full) = open.replace((own, tuples)) {
                        close(full);
                    }
                }
            }
        }
        if let Some(last) = open {
            close(last);
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tuples(texts: &[&str]) -> Vec<Vec<String>> {
        let one = |text: &&str| text.split(' ').map(str::to_owned).collect();
        texts.iter().map(one).collect()
    }

    fn merged(tuples: &[Vec<String>], most: usize) -> Vec<Block<'_>> {
        merge(tuples.iter().map(Vec::as_slice), most)
    }

    /// Every combination of a block's sides.
    fn held(block: &Block<'_>) -> Vec<Vec<String>> {
        block.sides.iter().fold(vec![Vec::new()], |all, side| {
            let longer = |tuple: Vec<String>| {
                let with = move |value: &&str| [tuple.as_slice(), &[(*value).to_owned()]].concat();
                side.iter().map(with).collect::<Vec<_>>()
            };
            all.into_iter().flat_map(longer).collect()
        })
    }

    #[test]
    fn what_is_all_combinations_becomes_one_block() {
        let all = tuples(&[
            "s a x", "s a y", "s b x", "s b y", "t a x", "t a y", "t b x", "t b y",
        ]);
        assert_eq!(merged(&all, 9).len(), 1);
    }

    #[test]
    fn a_missing_combination_is_not_filled_in() {
        let three = tuples(&["s a x", "s a y", "s b x"]);
        let blocks = merged(&three, 9);
        assert_eq!(blocks.len(), 2);
        let all: usize = blocks.iter().map(|block| held(block).len()).sum();
        assert_eq!(all, 3);
    }

    #[test]
    fn a_side_has_no_more_values_than_a_list_may_have() {
        let many: Vec<Vec<String>> = (0..10)
            .map(|n| vec!["s".to_owned(), n.to_string()])
            .collect();
        let blocks = merged(&many, 4);
        let sizes: Vec<usize> = blocks.iter().map(|block| block.sides[1].len()).collect();
        assert_eq!(sizes, [4, 4, 2]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn blocks_hold_exactly_the_tuples_each_once(
            tuples in prop::collection::btree_set(prop::collection::vec("[a-c]", 3), 1..20),
            most in 1..4_usize,
        ) {
            let tuples: Vec<Vec<String>> = tuples.into_iter().collect();
            let blocks = merged(&tuples, most);
            let mut all: Vec<Vec<String>> = blocks.iter().flat_map(held).collect();
            all.sort();
            prop_assert_eq!(&all, &tuples);
            let mut places: Vec<usize> = blocks.iter().flat_map(|block| block.tuples.clone()).collect();
            places.sort_unstable();
            prop_assert_eq!(places, (0..tuples.len()).collect::<Vec<_>>());
            for block in &blocks {
                prop_assert!(block.sides.iter().all(|side| side.len() <= most));
                for place in &block.tuples {
                    let fits = |(side, value): (&Side<'_>, &String)| side.contains(value.as_str());
                    prop_assert!(block.sides.iter().zip(&tuples[*place]).all(fits));
                }
            }
        }
    }
}
