//! Deny < Ask < Permit, and what never moves an answer up (DESIGN 6), over random small rulesets of
//! up to four grants. A failure prints the smallest ruleset and question that fails.

use policy::Ruleset;
use proptest::prelude::*;
use proptest::sample::select;
use proto::{Access, DataClass, Label};

use crate::small::{ARGUMENTS, Asker, Effect, Names, Question, Rank, Small, Where, rank, ruleset};

fn any_effect() -> impl Strategy<Value = Effect> {
    select(vec![Effect::Allow, Effect::Ask, Effect::Deny])
}

fn class() -> impl Strategy<Value = DataClass> {
    select(DataClass::ALL.to_vec())
}

/// Any grant that the configuration takes, not only the small ones.
fn grant() -> impl Strategy<Value = Small> {
    let names = select(vec![
        Names::Literal,
        Names::Glob,
        Names::Glob,
        Names::Elsewhere,
    ]);
    let constraint = select(vec![Where::None, Where::A, Where::AOpen]);
    let labels = (
        proptest::option::of(class()),
        any::<bool>(),
        proptest::option::of(any_effect()),
    );
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (any_effect(), names, constraint, labels, flags).prop_map(
        |(effect, names, constraint, (max_class, above_asks, untrusted), (x, expires, counted))| {
            let labelled = effect != Effect::Deny;
            let allow = effect == Effect::Allow;
            Small {
                effect,
                names,
                constraint: match constraint {
                    Where::AOpen if !labelled => Where::A,
                    Where::None | Where::A | Where::AOpen => constraint,
                },
                excepts: x && !allow,
                max_class: max_class.filter(|_| labelled),
                above_asks: above_asks && labelled,
                untrusted: untrusted.filter(|_| labelled),
                expires: expires && allow,
                counted: counted && allow,
            }
        },
    )
}

fn question() -> impl Strategy<Value = Question> {
    let label = (class(), any::<bool>()).prop_map(|(class, untrusted)| Label { class, untrusted });
    (
        any::<bool>(),
        select(ARGUMENTS.to_vec()),
        label,
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(read, arguments, label, late, used)| Question {
            read,
            arguments,
            label,
            late,
            used,
        })
}

fn rules() -> impl Strategy<Value = Vec<Small>> {
    proptest::collection::vec(grant(), 0..4)
}

fn answer(ruleset: &Ruleset, question: &Question) -> Rank {
    rank(&Asker::new().ask(ruleset, question))
}

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn raising_a_label_never_moves_an_answer_up(
        rules in rules(), question in question(), class in class(), untrusted: bool,
    ) {
        let rules = ruleset(&rules);
        let label = question.label.join(Label { class, untrusted });
        let higher = Question { label, ..question };
        prop_assert!(answer(&rules, &higher) <= answer(&rules, &question));
    }

    #[test]
    fn passing_time_and_spending_uses_never_move_an_answer_up(
        rules in rules(), question in question(),
    ) {
        let rules = ruleset(&rules);
        let now = Question { late: false, used: false, ..question };
        for (late, used) in [(true, false), (false, true), (true, true)] {
            let later = Question { late, used, ..question };
            prop_assert!(answer(&rules, &later) <= answer(&rules, &now));
        }
    }

    #[test]
    fn taking_an_allow_away_never_moves_an_answer_up(
        rules in rules(), question in question(), allow in grant(), place in 0_usize..4,
    ) {
        let allow = Small { effect: Effect::Allow, excepts: false, ..allow };
        // Where arguments do not parse, an allow that must read them refuses the call: see
        // `an_allow_that_must_read_arguments_refuses_those_that_do_not_parse`.
        prop_assume!(question.arguments.readable || allow.constraint == Where::None);
        let mut more = rules.clone();
        more.insert(place.min(rules.len()), allow);
        prop_assert!(answer(&ruleset(&rules), &question) <= answer(&ruleset(&more), &question));
    }

    #[test]
    fn adding_a_deny_never_moves_an_answer_up(
        rules in rules(), question in question(), deny in grant(), place in 0_usize..4,
    ) {
        let constraint = if deny.constraint == Where::None { Where::None } else { Where::A };
        let deny = Small {
            names: deny.names, constraint, excepts: deny.excepts,
            effect: Effect::Deny, ..crate::small::PLAIN
        };
        let mut more = rules.clone();
        more.insert(place.min(rules.len()), deny);
        prop_assert!(answer(&ruleset(&more), &question) <= answer(&ruleset(&rules), &question));
    }

    #[test]
    fn adding_an_ask_never_adds_a_permit(
        rules in rules(), question in question(), ask in grant(), place in 0_usize..4,
    ) {
        let ask = Small { effect: Effect::Ask, expires: false, counted: false, ..ask };
        let mut more = rules.clone();
        more.insert(place.min(rules.len()), ask);
        let permit = |rules: &[Small]| answer(&ruleset(rules), &question) == Rank::Permit;
        prop_assert!(!permit(&more) || permit(&rules));
    }

    #[test]
    fn no_arguments_get_more_than_access_says(rules in rules(), question in question()) {
        let rules = ruleset(&rules);
        let asker = Asker::new();
        let best = match rules.access(&asker.query(&question)) {
            Some(Access::Allow) => Rank::Permit,
            Some(Access::Ask) => Rank::Ask,
            None => Rank::Deny,
        };
        prop_assert!(answer(&rules, &question) <= best);
    }

    #[test]
    fn the_order_of_grants_does_not_decide(rules in rules(), question in question()) {
        let backwards: Vec<Small> = rules.iter().rev().copied().collect();
        prop_assert_eq!(answer(&ruleset(&rules), &question), answer(&ruleset(&backwards), &question));
    }

    #[test]
    fn an_ask_always_names_somebody_and_what_it_would_spend(
        rules in rules(), question in question(),
    ) {
        let rules = ruleset(&rules);
        if let policy::Decision::Ask(ask) = Asker::new().ask(&rules, &question) {
            prop_assert!(!ask.grants.is_empty());
            for grant in &ask.grants {
                prop_assert!(!grant.approvers.is_empty() && grant.quorum > 0);
            }
            let counted = |id: &proto::GrantId| {
                rules.grants().iter().any(|view| view.id == *id && view.max_uses.is_some())
            };
            prop_assert!(ask.permit.spend.iter().all(counted));
            prop_assert!(ask.pins(question.arguments.text).is_some());
        }
    }
}

#[test]
fn an_allow_that_must_read_arguments_refuses_those_that_do_not_parse() {
    let plain = crate::small::PLAIN;
    let reads = Small {
        constraint: Where::A,
        ..plain
    };
    let unreadable = ARGUMENTS
        .into_iter()
        .find(|arguments| !arguments.readable)
        .unwrap();
    let label = Label::BOTTOM;
    let question = Question {
        read: false,
        arguments: unreadable,
        label,
        late: false,
        used: false,
    };
    assert_eq!(answer(&ruleset(&[plain]), &question), Rank::Permit);
    assert_eq!(answer(&ruleset(&[plain, reads]), &question), Rank::Deny);
}
