//! The search for paths misses none that `decide` permits, held against trying everything.

use std::collections::{BTreeMap, BTreeSet};

use policy::{Bring, Config, Decision, Meeting, Path, PathTool, Query, paths};
use proto::{DataClass, Label, RoleName, SessionId, Timestamp};

use crate::fixture::load;
use crate::small::Numbers;

const NOW: u64 = 5_000;
const ABOVE: DataClass = DataClass::Confidential;
const SESSIONS: [&str; 3] = ["a1", "a2", "b1"];
const TOOLS: [&str; 7] = [
    "mail",
    "file",
    "both",
    "web",
    "send",
    "offered.a",
    "offered.b",
];
const ARGUMENTS: [&str; 8] = [
    r#"{"x":1}"#,
    r#"{"x":2}"#,
    r#"{"x":7}"#,
    r#"{"x":"s"}"#,
    "{}",
    r#"{"x":1,"y":0}"#,
    r#"{"y":0}"#,
    r#"{"x":7,"y":0}"#,
];

fn world(scope: &str) -> String {
    format!(
        r#"
approvers = ["eve"]
[roles]
bot = {{ kind = "agent", label_scope = "{scope}" }}
run = {{ kind = "runner", offers = [{{ tools = ["offered.*"] }}] }}
eve = {{ kind = "approver", max_class = "secret", groups = ["g"] }}
[[tool]]
name = "mail"
runner = "run"
class = "public"
untrusted = true
effects = "read"
egress = false
[[tool]]
name = "file"
runner = "run"
class = "confidential"
untrusted = false
effects = "read"
egress = false
[[tool]]
name = "both"
runner = "run"
class = "secret"
untrusted = true
egress = false
[[tool]]
name = "web"
runner = "run"
class = "public"
untrusted = true
egress = true
[[tool]]
name = "send"
runner = "run"
class = "internal"
untrusted = false
egress = true
"#
    )
}

/// A random grant. Most are allows that a label does not stop, so that there are leaks to find.
fn grant(numbers: &mut Numbers, id: usize) -> String {
    let mut pick = |of: &[&'static str]| of[numbers.below(of.len())];
    let effect = pick(&["allow", "allow", "allow", "allow", "ask", "deny"]);
    let sessions = pick(&["*", "*", "a*", "b*", "a1", "?1", "{a1,b1}"]);
    let tools = pick(&[
        "\"*\"",
        "\"mail\"",
        "\"file\"",
        "\"send\", \"web\"",
        "\"both\"",
        "\"offered.*\"",
        "\"offered.a\"",
        "\"{mail,file}\"",
        "\"s*\"",
        "\"mail\", \"send\"",
        "\"file\", \"send\"",
        "\"o*\"",
    ]);
    let constraint = pick(&[
        "",
        "",
        "",
        "where = { \"/x\" = { equals = 1 } }\n",
        "where = { \"/x\" = { one_of = [1, 2] } }\n",
        "where = { \"/x\" = { range = { min = 1, max = 5 } } }\n",
        "where = { \"/x\" = { range = { min = 6 } } }\n",
        "where = { \"/x\" = { any = true } }\n",
        "where = { \"/x\" = { optional = { glob = \"s\" } } }\n",
        "where = { \"/x\" = { equals = 1 }, \"/y\" = { optional = { equals = 0 } } }\n",
        "where = { \"/x\" = { equals = 7 } }\nonly = false\n",
        "where = { \"/y\" = { any = true } }\nonly = false\n",
    ]);
    let mut text = format!(
        "[[grant]]\nid = \"g{id}\"\nroles = [\"*\"]\nsessions = [\"{sessions}\"]\ntools = [{tools}]\n\
         effect = \"{effect}\"\n{constraint}"
    );
    if effect == "deny" {
        text = text.replace("only = false\n", "");
    }
    if effect == "allow" {
        text += pick(&[
            "",
            "",
            "",
            "expires = \"1970-01-01T00:00:01Z\"\n",
            "expires = \"1970-01-01T00:01:00Z\"\n",
        ]);
    } else {
        text += pick(&[
            "",
            "",
            "unless = { \"/x\" = { equals = 1 } }\n",
            "unless = { \"/y\" = { any = true } }\n",
            "unless = { \"/x\" = { range = { max = 3 } } }\n",
        ]);
    }
    if effect != "deny" {
        text += pick(&[
            "untrusted = \"allow\"\n",
            "untrusted = \"allow\"\n",
            "",
            "untrusted = \"deny\"\n",
        ]);
        text += pick(&[
            "max_class = \"secret\"\n",
            "max_class = \"secret\"\n",
            "max_class = \"confidential\"\n",
            "",
            "max_class = \"public\"\nabove_max = \"ask\"\n",
        ]);
    }
    text
}

fn label(index: usize) -> Label {
    Label {
        class: DataClass::ALL[index / 2],
        untrusted: index % 2 == 1,
    }
}

fn index(label: Label) -> usize {
    DataClass::ALL
        .iter()
        .position(|class| *class == label.class)
        .unwrap()
        * 2
        + usize::from(label.untrusted)
}

/// What may run unasked, by session, tool and label, as `decide` says of every sample argument.
type Permitted = Vec<[[bool; 8]; 7]>;

fn permitted(config: &Config) -> Permitted {
    let role = RoleName::new("bot").unwrap();
    let uses = BTreeMap::new();
    let ask = |session: &SessionId, tool: &str, label: Label| {
        let tool = config.ruleset.tool(tool).unwrap().effective(None);
        ARGUMENTS.iter().any(|arguments| {
            let query = Query {
                role: &role,
                session,
                tool: &tool,
                arguments,
                label,
                now: Timestamp::from_millis(NOW).unwrap(),
                uses: &uses,
            };
            matches!(config.ruleset.decide(&query), Decision::Permit(_))
        })
    };
    let of_session = |name: &&str| {
        let session = SessionId::new(name).unwrap();
        TOOLS.map(|tool| std::array::from_fn(|at| ask(&session, tool, label(at))))
    };
    SESSIONS.iter().map(of_session).collect()
}

/// A state of all sessions: the label of each, and what is still to be answered in each.
type State = ([usize; 3], [usize; 3]);

/// Joins labels, delivers answers: what costs no call. The state and all that follow from it.
fn settle(start: State, seen: &mut BTreeSet<State>) -> Vec<State> {
    let join = |a: usize, b: usize| index(label(a).join(label(b)));
    let mut next = vec![start];
    let mut all = Vec::new();
    while let Some(state) = next.pop() {
        if !seen.insert(state) {
            continue;
        }
        all.push(state);
        let (labels, pending) = state;
        for i in 0..3 {
            let (mut labels, mut pending) = (labels, pending);
            labels[i] = join(labels[i], pending[i]);
            pending[i] = 0;
            next.push((labels, pending));
        }
        for (i, j) in [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)] {
            let mut labels = labels;
            labels[j] = join(labels[i], labels[j]);
            next.push((labels, pending));
        }
    }
    all
}

/// By trying all sequences of up to `most` calls: for each tool that data can leave by, the fewest.
fn leaks(config: &Config, role_label: bool, most: usize) -> BTreeMap<&'static str, usize> {
    let permitted = permitted(config);
    let floors = TOOLS.map(|tool| {
        let floor = config.ruleset.tool(tool).unwrap();
        (
            index(Label {
                class: floor.class,
                untrusted: floor.untrusted,
            }),
            floor.egress,
        )
    });
    let join = |a: usize, b: usize| index(label(a).join(label(b)));
    let mut found = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut states = settle(([0; 3], [0; 3]), &mut seen);
    for calls in 1..=most {
        let mut next = Vec::new();
        for (labels, pending) in states {
            for session in 0..3 {
                let decides = if role_label {
                    join(join(labels[0], labels[1]), labels[2])
                } else {
                    labels[session]
                };
                for (tool, (floor, egress)) in floors.iter().enumerate() {
                    if !permitted[session][tool][decides] {
                        continue;
                    }
                    if *egress && label(decides).untrusted && label(decides).class >= ABOVE {
                        found.entry(TOOLS[tool]).or_insert(calls);
                    }
                    let mut waiting = pending;
                    waiting[session] = join(pending[session], *floor);
                    next.extend(settle((labels, waiting), &mut seen));
                }
            }
        }
        states = next;
    }
    found
}

fn search(config: &Config) -> Vec<Path> {
    let found = paths(
        config,
        ABOVE,
        Timestamp::from_millis(NOW).unwrap(),
        Bring::Floors,
    );
    assert_eq!(found.more, 0);
    found.found
}

fn is(tool: &PathTool, name: &str) -> bool {
    match tool {
        PathTool::Named(named) => named == name,
        PathTool::Offered { .. } => name.starts_with("offered."),
    }
}

fn exit(path: &Path) -> &PathTool {
    &path.steps.last().unwrap().tool
}

#[test]
fn no_sequence_of_calls_that_decide_permits_leaks_by_a_tool_that_is_not_told() {
    let seed = std::process::id().into();
    println!("seed {seed}");
    let mut numbers = Numbers(seed);
    let (mut leaking, mut told) = (0, 0);
    for round in 0..800 {
        let scope = ["session", "role"][round % 2];
        let count = 4 + numbers.below(5);
        let rules: String = (0..count).map(|id| grant(&mut numbers, id)).collect();
        let text = world(scope) + &rules;
        let config = load(&text);
        let found = search(&config);
        let context = || format!("seed {seed}, round {round}, {scope}\n{rules}\n{found:#?}");
        let leaks = leaks(&config, scope == "role", if round % 8 == 0 { 4 } else { 3 });
        for (tool, calls) in &leaks {
            leaking += 1;
            let path = found
                .iter()
                .filter(|path| is(exit(path), tool))
                .min_by_key(|path| path.steps.len());
            let path =
                path.unwrap_or_else(|| panic!("{tool} in {calls} calls is missed: {}", context()));
            assert!(
                path.steps.len() <= *calls,
                "{tool} in {calls} calls: {}",
                context()
            );
        }
        // Where nothing is left unproved, what is told is so.
        for path in found
            .iter()
            .filter(|path| path.steps.iter().all(|step| step.avoiding.is_empty()))
        {
            told += 1;
            let real = leaks
                .iter()
                .any(|(tool, calls)| is(exit(path), tool) && *calls <= path.steps.len());
            assert!(real, "{:?} is no path: {}", exit(path), context());
        }
        if round % 10 == 0 {
            asks_end_it(&text, &found);
        }
    }
    println!("{leaking} leaks found by trying, {told} paths told without a doubt");
    assert!(leaking > 60 && told > 40, "{leaking} {told}");
}

/// An ask on any step of a path, and nothing leads over that step any more.
fn asks_end_it(text: &str, found: &[Path]) {
    for step in found.iter().flat_map(|path| &path.steps) {
        let tool = match &step.tool {
            PathTool::Named(name) => name,
            PathTool::Offered { glob, .. } => glob,
        };
        let asked = format!(
            "{text}[[grant]]\nid = \"asked\"\nroles = [\"*\"]\nsessions = [\"*\"]\ntools = [\"{tool}\"]\n\
             effect = \"ask\"\n"
        );
        let mut steps = search(&load(&asked))
            .into_iter()
            .flat_map(|path| path.steps);
        assert!(steps.all(|other| other.tool != step.tool), "{asked}");
    }
}

#[test]
fn what_a_path_tells_to_change_ends_it() {
    // One where a longer path leads out by another grant, and any other.
    for (seed, rounds) in [(20_129, 300), (std::process::id().into(), 300)] {
        told_changes_end_paths(seed, rounds);
    }
}

fn told_changes_end_paths(seed: u64, rounds: usize) {
    println!("seed {seed}");
    let mut numbers = Numbers(seed);
    let mut ended = 0;
    for _ in 0..rounds {
        let rules: Vec<String> = (0..7).map(|id| grant(&mut numbers, id)).collect();
        for path in search(&load(&(world("session") + &rules.concat()))) {
            let mend = |(id, rule): (usize, &String)| {
                if path
                    .remedy
                    .iter()
                    .any(|grant| grant.as_str() == format!("g{id}"))
                {
                    rule.replace("untrusted = \"allow\"", "untrusted = \"ask\"")
                } else {
                    rule.clone()
                }
            };
            let mended: String = rules.iter().enumerate().map(mend).collect();
            let left = search(&load(&(world("session") + &mended)));
            assert!(
                left.iter().all(|other| exit(other) != exit(&path)),
                "{path:#?}\n{mended}"
            );
            ended += 1;
        }
    }
    assert!(ended > 50, "{ended}");
}

#[test]
fn a_grant_that_is_called_void_changes_no_answer_when_it_is_taken_out() {
    let seed = std::process::id().into();
    println!("seed {seed}");
    let mut numbers = Numbers(seed);
    let mut void = 0;
    for _ in 0..400 {
        let rules: Vec<String> = (0..6).map(|id| grant(&mut numbers, id)).collect();
        let config = load(&(world("session") + &rules.concat()));
        for remark in config.remarks(Timestamp::from_millis(NOW).unwrap()) {
            let does_nothing = remark.contains("so it is void") || remark.contains("it expired");
            let Some(id) = remark.strip_prefix("grant `g").filter(|_| does_nothing) else {
                continue;
            };
            let id: usize = id.split('`').next().unwrap().parse().unwrap();
            let mut less = rules.clone();
            less.remove(id);
            let without = load(&(world("session") + &less.concat()));
            assert_eq!(
                permitted(&without),
                permitted(&config),
                "{remark}\n{}",
                rules.concat()
            );
            void += 1;
        }
    }
    assert!(void > 50, "{void}");
}

const LEAK: &str = include_str!("../../../../docs/examples/three-steps.toml");

fn tools(path: &Path) -> Vec<String> {
    let name = |tool: &PathTool| match tool {
        PathTool::Named(name) => name.clone(),
        PathTool::Offered { runner, glob } => format!("{runner}:{glob}"),
    };
    path.steps.iter().map(|step| name(&step.tool)).collect()
}

#[test]
fn the_example_leaks_in_three_steps_and_an_ask_on_any_one_of_them_ends_it() {
    let found = search(&load(LEAK));
    assert_eq!(found.len(), 1);
    assert_eq!(tools(&found[0]), ["mail.read", "read_file", "mail.send"]);
    assert_eq!(found[0].meeting, Meeting::OneSession);
    for grant in ["inbox", "contracts", "replies"] {
        let start = LEAK.find(&format!("id = \"{grant}\"")).unwrap();
        let (before, after) = LEAK.split_at(start);
        let asked = format!(
            "{before}{}",
            after.replacen("effect = \"allow\"", "effect = \"ask\"", 1)
        );
        assert_ne!(asked, LEAK);
        assert_eq!(search(&load(&asked)), [], "{grant}");
    }
}

#[test]
fn sessions_that_grants_tell_apart_meet_where_an_agent_joins_them() {
    let split = LEAK
        .replacen("sessions = [\"*\"]", "sessions = [\"in-*\"]", 1)
        .replacen("sessions = [\"*\"]", "sessions = [\"desk-*\"]", 1);
    let found = search(&load(&split));
    assert_eq!(found[0].meeting, Meeting::Joined);
    let one_label = split.replace("label_scope = \"session\"", "label_scope = \"role\"");
    assert_eq!(search(&load(&one_label))[0].meeting, Meeting::OneLabel);
}

#[test]
fn calls_that_neither_label_permits_after_the_other_run_at_the_same_time() {
    let shut = LEAK
        .replacen(
            "effect = \"allow\"",
            "effect = \"allow\"\nmax_class = \"public\"",
            1,
        )
        .replace(
            "id = \"contracts\"",
            "id = \"contracts\"\nuntrusted = \"deny\"",
        );
    let found = search(&load(&shut));
    assert_eq!(found[0].meeting, Meeting::Together);
}

#[test]
fn what_runners_may_add_is_a_search_of_its_own() {
    let quiet = LEAK.replace(
        "class = \"confidential\"\nuntrusted",
        "class = \"public\"\nuntrusted",
    );
    let config = load(&quiet);
    assert_eq!(search(&config), []);
    let now = Timestamp::from_millis(NOW).unwrap();
    let found = paths(&config, ABOVE, now, Bring::Anything).found;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].steps.len(), 2, "one answer may bring all of it");
}

/// 500 grants, 200 tools: the search is as long as the rules, not as the ways through them.
#[test]
fn a_large_ruleset_costs_a_bounded_number_of_looks() {
    let tools: String = (0..200)
        .map(|n| {
            let (class, egress) = (["public", "confidential"][n % 2], n % 5 == 0);
            format!("[[tool]]\nname = \"t{n}\"\nrunner = \"run\"\nclass = \"{class}\"\negress = {egress}\n")
        })
        .collect();
    let world = format!(
        "approvers = [\"eve\"]\n[roles]\nbot = {{ kind = \"agent\", label_scope = \"session\" }}\n\
         run = {{ kind = \"runner\" }}\neve = {{ kind = \"approver\", max_class = \"secret\", users = [\"e\"] }}\n{tools}"
    );
    let rule = |n: usize, tools: &str, effect: &str, more: &str| {
        format!(
            "[[grant]]\nid = \"g{n}\"\nroles = [\"*\"]\nsessions = [\"*\"]\ntools = [\"{tools}\"]\n\
             effect = \"{effect}\"\n{more}"
        )
    };
    let open = "untrusted = \"allow\"\nmax_class = \"secret\"\n";
    let unlike = |n: usize| format!("where = {{ \"/x\" = {{ equals = {n} }} }}\n");
    let named: String = (0..500)
        .map(|n| match n % 2 {
            0 => rule(n, &format!("t{}", (n / 2) % 200), "allow", open),
            _ => rule(n, &format!("t{}", (n / 2) % 200), "deny", &unlike(n)),
        })
        .collect();
    let all: String = (0..500)
        .map(|n| match n % 2 {
            0 => rule(n, "*", "allow", open),
            _ => rule(n, "*", "deny", &unlike(n)),
        })
        .collect();
    let (grants, restrictions, candidates) = (250, 250, 200);
    let bound = grants * restrictions + grants * candidates * (1 + restrictions);
    for (rules, bound) in [(named, bound / 20), (all, bound)] {
        let config = load(&(world.clone() + &rules));
        let found = paths(&config, ABOVE, Timestamp::default(), Bring::Floors);
        println!(
            "{} looks, {} paths",
            found.looks,
            found.found.len() + found.more
        );
        assert!(found.looks <= bound, "{} of {bound}", found.looks);
        assert_eq!(found.found.len(), policy::limits::MAX_PATHS);
    }
}
