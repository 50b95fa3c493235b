//! Texts that nobody wrote by hand: reading them ends, in a configuration or in faults.

use policy::Config;
use proptest::prelude::*;
use proptest::sample::Index;

const REAL_CASE: &str = include_str!("../fixtures/real_case.toml");
const FAULTY: &str = include_str!("../fixtures/faulty.toml");

fn lines() -> Vec<&'static str> {
    REAL_CASE
        .lines()
        .chain(FAULTY.lines())
        .filter(|line| !line.is_empty())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every fault lies within the text, whatever was cut from it or put into it.
    #[test]
    fn a_damaged_configuration_is_told_within_its_lines(
        cut in any::<Index>(), length in 0_usize..40, put in "[\\[\\]{}\"'=.,#\\n\\\\a*0é\u{0}]{0,6}",
    ) {
        let start = cut.index(REAL_CASE.len());
        let end = (start + length).min(REAL_CASE.len());
        let text = format!("{}{put}{}", &REAL_CASE[..start], &REAL_CASE[end..]);
        check(&text)?;
    }

    #[test]
    fn lines_in_any_order_are_told_within_their_number(
        picked in proptest::collection::vec(any::<Index>(), 0..30),
    ) {
        let lines = lines();
        let text: String = picked.iter().map(|i| format!("{}\n", lines[i.index(lines.len())])).collect();
        check(&text)?;
    }

    #[test]
    fn a_grant_of_run_time_may_be_any_text(text in "\\PC{0,80}") {
        let rules = crate::fixture::load(REAL_CASE).ruleset;
        prop_assert!(rules.with_grant(&text).is_err());
    }
}

fn check(text: &str) -> Result<(), TestCaseError> {
    if let Err(error) = Config::parse("t", text) {
        prop_assert!(!error.faults.is_empty());
        let last = text.lines().count() + 1;
        for fault in &error.faults {
            prop_assert!((1..=last).contains(&fault.line), "{fault}");
        }
    }
    Ok(())
}

#[test]
fn deep_nesting_is_a_fault_and_no_overflow() {
    for text in [
        "[".repeat(100_000),
        format!("a = {}", "[".repeat(100_000)),
        format!("a = {}1{}", "{a=".repeat(50_000), "}".repeat(50_000)),
        "a.".repeat(100_000),
    ] {
        assert!(Config::parse("t", &text).is_err());
    }
}

#[test]
fn deeply_nested_arguments_are_refused() {
    let rules = crate::fixture::load(REAL_CASE).ruleset;
    let deep = format!(
        "{{\"path\":{}1{}}}",
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    let told = crate::fixture::Asked::default().told(&rules, "read_file", &deep);
    assert_eq!(told, "denied_by_grant no-keys");
}
