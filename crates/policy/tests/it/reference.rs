//! DESIGN 6 once more, as naively as it reads: sets of grants, one sentence after the other. The
//! ruleset must agree with it on every question, over all small rulesets of up to two grants and
//! many of three.

use policy::decision::{Ask, Decision, Deny, Permit};
use proto::{DataClass, DenyReason};

use crate::small::{
    Arguments, Asker, Effect, Names, Numbers, Question, Rank, Small, Stands, Where, grants,
    questions, rank, ruleset,
};

/// What the reference expects: grants by their place in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Expected {
    Permit {
        grant: usize,
        spend: Vec<usize>,
    },
    Ask {
        grants: Vec<(usize, bool)>,
        grant: usize,
        spend: Vec<usize>,
    },
    Deny {
        reason: DenyReason,
        grant: Option<usize>,
    },
}

/// A `where` of this world on its own: no `where` is met by anything.
fn meets(grant: &Small, arguments: &Arguments) -> Stands {
    if grant.constraint == Where::None {
        Stands::Yes
    } else {
        arguments.constraint
    }
}

fn excepted(grant: &Small, arguments: &Arguments) -> bool {
    grant.excepts && arguments.exception == Stands::Yes
}

/// "A restriction applies if its `where` matches or cannot be evaluated, and its `unless` does not
/// match."
fn applies(grant: &Small, arguments: &Arguments) -> bool {
    let restricts = matches!(grant.effect, Effect::Ask | Effect::Deny);
    restricts && meets(grant, arguments) != Stands::No && !excepted(grant, arguments)
}

/// "An allow or ask permits if its `where` matches (and its `unless` does not)", and "only arguments
/// of which every leaf lies at or below a pointer that it names".
fn permits(grant: &Small, arguments: &Arguments) -> bool {
    let grants = matches!(grant.effect, Effect::Ask | Effect::Allow);
    let only = grant.constraint != Where::A || arguments.only_a;
    grants && only && meets(grant, arguments) == Stands::Yes && !excepted(grant, arguments)
}

/// "The strictest of its effect, `above_max` if the class is over `max_class`, and `untrusted` if
/// the session is": 0 deny, 1 ask, 2 allow.
fn word(grant: &Small, question: &Question) -> u8 {
    let number = |effect| match effect {
        Effect::Deny => 0,
        Effect::Ask => 1,
        Effect::Allow => 2,
    };
    let clearance = if question.read {
        DataClass::Secret
    } else {
        DataClass::Internal
    };
    let max = match (grant.max_class, grant.names) {
        (None, _) => clearance,
        (Some(class), Names::Literal) => class,
        (Some(class), _) => std::cmp::min(class, clearance),
    };
    let mut words = vec![number(grant.effect)];
    if question.label.class > max {
        words.push(u8::from(grant.above_asks));
    }
    if question.label.untrusted {
        words.push(match grant.untrusted {
            Some(effect) => number(effect),
            None if question.read => 2,
            None => 1,
        });
    }
    *words.iter().min().unwrap()
}

fn expected(rules: &[Small], question: &Question) -> Expected {
    let arguments = &question.arguments;
    let places = |keep: &dyn Fn(&Small) -> bool| -> Vec<usize> {
        (0..rules.len())
            .filter(|place| keep(&rules[*place]))
            .collect()
    };
    let deny = |reason, grant| Expected::Deny { reason, grant };
    // 1. Candidates.
    let candidates = places(&|g| g.names != Names::Elsewhere);
    let candidate = |g: &Small| g.names != Names::Elsewhere;
    let denies = places(&|g| candidate(g) && g.effect == Effect::Deny);
    let unreadable = match denies.first() {
        Some(first) => deny(DenyReason::DeniedByGrant, Some(*first)),
        None => deny(DenyReason::NoGrant, None),
    };
    let reads = candidates
        .iter()
        .any(|i| rules[*i].excepts || rules[*i].constraint != Where::None);
    if reads && !arguments.readable {
        return unreadable;
    }
    // 2. A deny applies.
    let denying = places(&|g| candidate(g) && g.effect == Effect::Deny && applies(g, arguments));
    if let Some(first) = denying.first() {
        return deny(DenyReason::DeniedByGrant, Some(*first));
    }
    // 3. Nothing permits, spent allows aside.
    let unspent =
        places(&|g| candidate(g) && permits(g, arguments) && !(g.counted && question.used));
    if unspent.is_empty() {
        return deny(DenyReason::NoGrant, None);
    }
    // 4. Nothing permits, expired allows aside.
    let live: Vec<usize> = unspent
        .iter()
        .copied()
        .filter(|i| !(rules[*i].expires && question.late))
        .collect();
    if live.is_empty() {
        return deny(DenyReason::GrantExpired, unspent.first().copied());
    }
    // 5. Words.
    let asks = places(&|g| candidate(g) && g.effect == Effect::Ask && applies(g, arguments));
    let says = |place: &usize| word(&rules[*place], question);
    if let Some(first) = asks.iter().find(|place| says(place) == 0) {
        return deny(DenyReason::TaintTooHigh, Some(*first));
    }
    if live.iter().all(|place| says(place) == 0) {
        return deny(DenyReason::TaintTooHigh, live.first().copied());
    }
    // 6. Permit, or ask.
    let counted = |places: Vec<usize>| -> Vec<usize> {
        places
            .into_iter()
            .filter(|place| rules[*place].counted)
            .collect()
    };
    let mut allowing: Vec<usize> = live
        .iter()
        .copied()
        .filter(|place| says(place) == 2)
        .collect();
    allowing.sort_by_key(|place| (rules[*place].counted, *place));
    if let (Some(grant), true) = (allowing.first().copied(), asks.is_empty()) {
        return Expected::Permit {
            grant,
            spend: counted(vec![grant]),
        };
    }
    let wordy: Vec<usize> = live
        .iter()
        .copied()
        .filter(|place| says(place) == 1)
        .collect();
    let mut asking = [asks, wordy.clone()].concat();
    asking.sort();
    asking.dedup();
    if !arguments.readable {
        return unreadable;
    }
    let grant = live.iter().copied().find(|place| says(place) > 0).unwrap();
    let mut spending = [wordy, vec![grant]].concat();
    spending.sort();
    spending.dedup();
    Expected::Ask {
        grants: asking
            .into_iter()
            .map(|place| {
                (
                    place,
                    rules[place].constraint == Where::A && live.contains(&place),
                )
            })
            .collect(),
        grant,
        spend: counted(spending),
    }
}

/// A decision in the reference's words.
fn seen(decision: &Decision) -> Expected {
    let place = |id: &proto::GrantId| id.as_str().strip_prefix('g').unwrap().parse().unwrap();
    match decision {
        Decision::Permit(Permit { grant, spend }) => Expected::Permit {
            grant: place(grant),
            spend: spend.iter().map(place).collect(),
        },
        Decision::Ask(Ask { grants, permit }) => Expected::Ask {
            // Whether the grant's own pointer is pinned, and not all of the arguments.
            grants: grants
                .iter()
                .map(|g| (place(&g.id), g.pointers == ["/a"]))
                .collect(),
            grant: place(&permit.grant),
            spend: permit.spend.iter().map(place).collect(),
        },
        Decision::Deny(Deny { reason, grant }) => Expected::Deny {
            reason: *reason,
            grant: grant.as_ref().map(place),
        },
    }
}

fn compare(asker: &Asker, rules: &[Small], questions: &[Question], context: &str) -> Vec<Rank> {
    let compiled = ruleset(rules);
    let check = |question: &Question| {
        let decision = asker.ask(&compiled, question);
        let expected = expected(rules, question);
        assert_eq!(
            seen(&decision),
            expected,
            "{context}\n{rules:#?}\n{question:#?}"
        );
        rank(&decision)
    };
    questions.iter().map(check).collect()
}

/// Taking an allow away, adding a deny, adding an ask: for rulesets of which one is the other and
/// one grant more.
fn compare_orders(less: &[Rank], more: &[Rank], added: &Small, questions: &[Question]) {
    for ((less, more), question) in less.iter().zip(more).zip(questions) {
        let holds = match added.effect {
            // Arguments that do not parse are refused where a candidate must read them: taking
            // such a candidate away may leave one that need not.
            Effect::Allow => less <= more || !question.arguments.readable,
            Effect::Deny => more <= less,
            Effect::Ask => *more != Rank::Permit || *less == Rank::Permit,
        };
        assert!(
            holds,
            "{less:?} without and {more:?} with {added:#?}\n{question:#?}"
        );
    }
}

/// The questions that a ruleset can tell apart: where nothing expires the time is all one, and where
/// nothing is counted the uses are. (That it is, the rulesets of one and of three grants show, which
/// are asked everything.)
fn telling(rules: &[Small], questions: &[Question]) -> Vec<usize> {
    let expires = rules.iter().any(|grant| grant.expires);
    let counted = rules.iter().any(|grant| grant.counted);
    (0..questions.len())
        .filter(|i| (expires || !questions[*i].late) && (counted || !questions[*i].used))
        .collect()
}

#[test]
fn the_ruleset_agrees_with_the_reference_over_all_rulesets_of_up_to_two_grants() {
    let asker = Asker::new();
    let all = grants();
    let both: Vec<Question> = [questions(false), questions(true)].concat();
    let sends = questions(false);
    compare(&asker, &[], &both, "no grant");
    let alone: Vec<Vec<Rank>> = all
        .iter()
        .map(|grant| compare(&asker, &[*grant], &both, "one grant"))
        .collect();
    for (place, first) in all.iter().enumerate() {
        for second in &all {
            let rules = [*first, *second];
            let telling = telling(&rules, &sends);
            let asked: Vec<Question> = telling.iter().map(|i| sends[*i]).collect();
            let less: Vec<Rank> = telling.iter().map(|i| alone[place][*i]).collect();
            let ranks = compare(&asker, &rules, &asked, "two grants");
            compare_orders(&less, &ranks, second, &asked);
        }
    }
}

#[test]
fn the_ruleset_agrees_with_the_reference_over_many_rulesets_of_three_grants() {
    let seed = std::process::id().into();
    println!("seed {seed}");
    let mut numbers = Numbers(seed);
    let asker = Asker::new();
    let all = grants();
    let both: Vec<Question> = [questions(false), questions(true)].concat();
    for _ in 0..500 {
        let rules: Vec<Small> = (0..3).map(|_| all[numbers.below(all.len())]).collect();
        compare(&asker, &rules, &both, &format!("seed {seed}"));
    }
}
