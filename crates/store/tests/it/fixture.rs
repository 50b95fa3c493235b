//! A store in a folder of its own, and records to fill it with.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::{
    Basis, By, CallKey, Engine, OfferedTool, Part, Record, RecordId, SessionKey, Snapshot,
};
use policy::Config;
use proto::{
    Answer, ApprovalRequest, AskingGrant, CallId, Content, DataClass, DenyReason, Digest, Effects,
    Label, Outcome, Raise, Scope, Timestamp, ToolSpec,
};
use rusqlite::Connection;
use store::{FILE, Head, Keep, Made, Retention, Store, StoreError};
use tempfile::TempDir;

/// A hundred seconds for answers, a thousand for arguments.
pub(crate) const KEEP: Keep = Keep {
    answers: 100_000,
    arguments: 1_000_000,
};

pub(crate) fn config() -> Arc<Config> {
    config_of("")
}

/// A configuration with these lines in `[broker]`.
pub(crate) fn config_of(broker: &str) -> Arc<Config> {
    config_with(broker, "")
}

/// And these in `[roles.bot]`.
pub(crate) fn config_with(broker: &str, bot: &str) -> Arc<Config> {
    let text = format!(
        "[broker]\n{broker}\n[roles.bot]\nkind = \"agent\"\nusers = [\"1000\"]\nlabel_scope = \"session\"\n{bot}\n"
    );
    Arc::new(Config::parse("test", &text).unwrap())
}

pub(crate) fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

pub(crate) fn database(folder: &Path) -> PathBuf {
    folder.join(FILE)
}

/// Another way into the file.
pub(crate) fn beside(folder: &Path) -> Connection {
    Connection::open(database(folder)).unwrap()
}

pub(crate) fn numbered(from: u64, records: Vec<Record>) -> Vec<(RecordId, Record)> {
    (from..).map(RecordId).zip(records).collect()
}

/// A store that holds these.
pub(crate) fn filled(folder: &Path, records: &[Record]) -> Store {
    let mut store = Store::open(folder).unwrap();
    store.append(numbered(1, records.to_vec()), KEEP).unwrap();
    store
}

/// What a newly opened store gives, and the head after it.
pub(crate) fn replayed(folder: &Path) -> Result<(Vec<Record>, Head), StoreError> {
    let mut store = Store::open(folder)?;
    let records = store.replay(|_, records| records.collect())?;
    Ok((records, store.head().clone()))
}

/// The records of a store that cannot be damaged.
pub(crate) fn sound(folder: &Path) -> Vec<Record> {
    replayed(folder).unwrap().0
}

pub(crate) fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis).unwrap()
}

pub(crate) fn digest(byte: u8) -> Digest {
    Digest::from_bytes([byte; 32])
}

pub(crate) fn session() -> SessionKey {
    SessionKey {
        role: "bot".try_into().unwrap(),
        session: "work".try_into().unwrap(),
    }
}

pub(crate) fn call(call: u64) -> CallKey {
    CallKey {
        session: session(),
        call: CallId(call),
    }
}

fn by() -> By {
    By {
        role: "people".try_into().unwrap(),
        uid: 1000,
    }
}

pub(crate) fn basis(arguments: Option<&str>) -> Box<Basis> {
    Box::new(Basis {
        asks: true,
        label: Label::TOP,
        offer: Some(OfferedTool {
            class: DataClass::Secret,
            untrusted: true,
            effects: Effects::Idempotent,
            egress: true,
            content: Content::Mcp,
        }),
        uses: vec![("mail".try_into().unwrap(), 3)],
        arguments: arguments.map(str::to_owned),
    })
}

/// A person is asked at `created` about this; nobody can answer after `expires`.
pub(crate) fn asked(number: u64, arguments: &str, created: u64, expires: u64) -> Record {
    Record::Asked {
        request: ApprovalRequest {
            approval: format!("a-{number}").as_str().try_into().unwrap(),
            role: "bot".try_into().unwrap(),
            session: "work".try_into().unwrap(),
            call: CallId(number),
            tool: "mail.send".try_into().unwrap(),
            arguments: arguments.to_owned(),
            label: Label::TOP,
            raised_by: vec![Raise {
                call: CallId(1),
                tool: "web.get".try_into().unwrap(),
                label: Label::TOP,
            }],
            grants: vec![AskingGrant {
                grant: "mail".try_into().unwrap(),
                why: "it leaves the house".to_owned(),
                pointers: vec!["/to".to_owned()],
            }],
            scopes: vec![Scope::Once, Scope::Session],
            quorum: 2,
            digest: digest(1),
            created: at(created),
            expires: at(expires),
        },
        fingerprint: digest(2),
        runner: "files".try_into().unwrap(),
        definition: digest(3),
        effects: Effects::Once,
        grants: vec![digest(4)],
        asked: vec!["people".try_into().unwrap()],
        basis: Some(basis(None)),
    }
}

pub(crate) fn answered(number: u64, msg: &str, when: u64) -> Record {
    Record::Answered {
        at: at(when),
        call: call(number),
        fingerprint: digest(5),
        tool: "web.get".try_into().unwrap(),
        msg: msg.to_owned(),
        label: Label::BOTTOM,
    }
}

pub(crate) fn evicted(number: u64, when: u64) -> Record {
    Record::Evicted {
        at: at(when),
        call: call(number),
    }
}

pub(crate) fn late(number: u64, when: u64) -> Record {
    Record::Late {
        at: at(when),
        call: call(number),
        status: "result".to_owned(),
    }
}

/// Four kinds in turn, those with contents at 2, 4, 6 and so on; the contents from none to several pages.
pub(crate) fn many(count: u64) -> Vec<Record> {
    let content = |number: u64| {
        let length = [0, 40, 700, 9_000][usize::try_from(number / 2 % 4).unwrap()];
        format!("{number} ").repeat(length / 4)
    };
    let record = |number| match number % 4 {
        1 => late(number, number),
        2 => asked(number, &content(number), number, number + 10),
        3 => Record::Draining {
            at: at(number),
            by: None,
        },
        _ => answered(number, &content(number), number),
    };
    (1..=count).map(record).collect()
}

/// One of each kind.
pub(crate) fn each() -> Vec<Record> {
    let runner = || "files".try_into().unwrap();
    let role = || "bot".try_into().unwrap();
    let grant = || "mail".try_into().unwrap();
    let approval = || "a-4".try_into().unwrap();
    let tool = || "mail.send".try_into().unwrap();
    let reason = || "\u{0}\"\\\n\u{1f600} \u{2028}".to_owned();
    vec![
        Record::Opened {
            at: at(1),
            session: session(),
            owner: u32::MAX,
        },
        Record::Raised {
            at: at(2),
            session: session(),
            label: Label::TOP,
            seen: Label::BOTTOM,
            call: Some(CallId(u64::MAX)),
            tool: Some(tool()),
        },
        Record::Denied {
            at: at(3),
            call: call(3),
            tool: tool(),
            fingerprint: digest(1),
            reason: DenyReason::TaintTooHigh,
            grant: Some(grant()),
            basis: Some(basis(Some("{\"to\":\"x\"}"))),
        },
        asked(4, "{\"to\":\"\u{0}\u{e9}\u{1f600}\"}", 4, 14),
        Record::Voted {
            at: at(5),
            approval: approval(),
            by: by(),
            answer: Answer::Approve,
            scope: Scope::Session,
            comment: reason(),
        },
        Record::Settled {
            at: at(6),
            approval: approval(),
            outcome: Outcome::Approved,
            by: "people".to_owned(),
            comment: String::new(),
        },
        Record::Standing {
            at: at(7),
            approval: approval(),
            session: session(),
            tool: tool(),
            runner: runner(),
            definition: digest(3),
            grants: vec![(grant(), digest(4))],
            pins: vec![
                ("/to".to_owned(), Some("\"x\"".to_owned())),
                (String::new(), None),
            ],
            label: Label::TOP,
            uses: u64::MAX,
            expires: Timestamp::MAX,
            by: by(),
            reason: reason(),
        },
        Record::Dispatched {
            at: at(8),
            call: call(4),
            fingerprint: digest(2),
            tool: tool(),
            effects: Effects::Once,
            grant: grant(),
            spend: vec![grant()],
            approval: Some(approval()),
            basis: Some(basis(Some(""))),
        },
        Record::Dispatched {
            at: at(8),
            call: call(9),
            fingerprint: digest(2),
            tool: tool(),
            effects: Effects::Read,
            grant: grant(),
            spend: Vec::new(),
            approval: None,
            basis: None,
        },
        answered(4, "{\"text\":\"\u{0}\u{e9}\u{1f600}\"}", 9),
        answered(5, "", 10),
        late(6, 11),
        evicted(7, 12),
        Record::Joined {
            at: at(13),
            role: role(),
            from: "work".try_into().unwrap(),
            into: "rest".try_into().unwrap(),
            close: true,
            by: by(),
        },
        Record::Closed {
            at: at(14),
            session: session(),
            by: Some(by()),
        },
        Record::Lowered {
            at: at(15),
            role: role(),
            session: "*".to_owned(),
            label: Label::BOTTOM,
            by: by(),
            reason: reason(),
        },
        Record::Granted {
            at: at(16),
            grant: grant(),
            toml: "id = \"mail\"\n".to_owned(),
            by: by(),
            reason: reason(),
        },
        Record::Revoked {
            at: at(17),
            grant: grant(),
            by: by(),
            reason: reason(),
        },
        Record::Pinned {
            at: at(18),
            runner: runner(),
            spec: ToolSpec {
                name: tool(),
                description: reason(),
                input_schema: "{}".to_owned(),
                class: DataClass::Secret,
                untrusted: true,
                effects: Effects::Idempotent,
                egress: true,
                content: Content::Mcp,
            },
            by: None,
            reason: String::new(),
        },
        Record::Configured {
            at: at(19),
            ruleset: digest(9),
            text: Some("[broker]\n".to_owned()),
            by: None,
        },
        Record::Refused {
            at: at(20),
            role: role(),
            since: at(19),
            count: u64::MAX,
        },
        Record::Restored {
            at: at(20),
            uid: u32::MAX,
            reason: reason(),
            roles: vec![role()],
        },
        Record::Draining {
            at: at(21),
            by: Some(by()),
        },
    ]
}

/// So much is kept that nothing is given up.
pub(crate) const ALL: Retention = Retention {
    age: u64::MAX,
    bytes: u64::MAX,
};

/// So little that everything before the newest segment is.
pub(crate) const LITTLE: Retention = Retention {
    age: u64::MAX,
    bytes: 1,
};

pub(crate) fn opened(name: &str, when: u64) -> Record {
    Record::Opened {
        at: at(when),
        session: SessionKey {
            role: "bot".try_into().unwrap(),
            session: name.try_into().unwrap(),
        },
        owner: 1000,
    }
}

pub(crate) fn dispatched(number: u64, effects: Effects, arguments: &str, when: u64) -> Record {
    Record::Dispatched {
        at: at(when),
        call: call(number),
        fingerprint: digest(5),
        tool: "web.get".try_into().unwrap(),
        effects,
        grant: "web".try_into().unwrap(),
        spend: vec!["web".try_into().unwrap()],
        approval: None,
        basis: Some(basis(Some(arguments))),
    }
}

/// A session, and a call after the other in it that has its answer.
pub(crate) fn calls(count: u64) -> Vec<Record> {
    let mut records = vec![opened("work", 1)];
    records.extend((1..=count).map(|number| answered(number, &format!("answer {number}"), 2)));
    records
}

/// What an engine records of a broker's day, each kind that leaves something.
pub(crate) fn day() -> Vec<Record> {
    let settled = |number, outcome, when| Record::Settled {
        at: at(when),
        approval: format!("a-{number}").as_str().try_into().unwrap(),
        outcome,
        by: "people".to_owned(),
        comment: String::new(),
    };
    let mut day = vec![
        opened("work", 1),
        opened("rest", 2),
        Record::Raised {
            at: at(3),
            session: session(),
            label: Label::TOP,
            seen: Label::TOP,
            call: Some(CallId(1)),
            tool: Some("web.get".try_into().unwrap()),
        },
        asked(2, "{\"pending\":\"\u{e9}\"}", 4, 1_000_000),
        dispatched(3, Effects::Once, "{\"once\":1}", 5),
        answered(3, "{\"text\":\"\u{0}\u{1f600}\"}", 6),
        dispatched(4, Effects::Idempotent, "{\"again\":1}", 7),
        dispatched(5, Effects::Once, "{\"lost\":1}", 8),
        asked(6, "{\"approved\":1}", 9, 1_000_000),
        settled(6, Outcome::Approved, 10),
        asked(7, "{\"refused\":1}", 11, 1_000_000),
        settled(7, Outcome::Refused, 12),
    ];
    let kinds = each();
    let kind = |name: &str| {
        let named = |record: &&Record| serde_json::to_value(record).unwrap()["record"] == name;
        kinds.iter().find(named).unwrap().clone()
    };
    for name in ["standing", "denied", "granted", "pinned", "configured"] {
        day.push(kind(name));
    }
    day.push(answered(8, "", 20));
    day.push(evicted(8, 21));
    for name in ["late", "lowered", "refused", "draining"] {
        day.push(kind(name));
    }
    day.push(Record::Voted {
        at: at(25),
        approval: "a-2".try_into().unwrap(),
        by: by(),
        answer: Answer::Approve,
        scope: Scope::Once,
        comment: "yes".to_owned(),
    });
    day.push(Record::Joined {
        at: at(26),
        role: "bot".try_into().unwrap(),
        from: "work".try_into().unwrap(),
        into: "rest".try_into().unwrap(),
        close: false,
        by: by(),
    });
    day.push(answered(9, "the last", 30));
    day
}

/// The state that these leave, without any store.
pub(crate) fn state(records: &[Record]) -> Vec<Part> {
    Engine::condense(config(), [], records.to_vec())
}

/// The state that a start finds.
pub(crate) fn started(folder: &Path) -> Result<Vec<Part>, StoreError> {
    Store::open(folder)?.replay(|parts, records| Engine::condense(config(), parts, records))
}

/// The numbers of the records that an auditor reads.
pub(crate) fn audited(folder: &Path) -> Result<Vec<u64>, StoreError> {
    Store::open_read_only(&database(folder))?
        .read(|entries| entries.map(|entry| entry.head.count).collect())
}

/// A snapshot of all that is there.
pub(crate) fn made(folder: &Path) -> Made {
    Made::of(&database(folder), config()).unwrap()
}

/// Writes all of a snapshot.
pub(crate) fn put(store: &mut Store, mut made: Made, retention: Retention) -> Snapshot {
    loop {
        if let Some(snapshot) = store.put(&mut made, retention, at(50)).unwrap() {
            return snapshot;
        }
    }
}

/// What an engine records so that it counts.
pub(crate) fn counting(snapshot: Snapshot) -> Record {
    Record::Snapshot {
        at: at(50),
        of: snapshot.of,
        hash: snapshot.hash,
        begins: snapshot.begins,
        before: snapshot.before,
        ruleset: digest(9),
        text: Some("[broker]\n".to_owned()),
        grants: Vec::new(),
        uses: Vec::new(),
    }
}

/// Appends where the store ends.
pub(crate) fn more(store: &mut Store, records: &[Record]) {
    let next = store.head().count + 1;
    store
        .append(numbered(next, records.to_vec()), KEEP)
        .unwrap();
}

/// A snapshot that counts; its record.
pub(crate) fn snapshot(store: &mut Store, folder: &Path, retention: Retention) -> Record {
    let record = counting(put(store, made(folder), retention));
    more(store, std::slice::from_ref(&record));
    record
}

/// Takes away all that a snapshot made room for.
pub(crate) fn sweep(store: &mut Store) {
    while store.has_leftovers() {
        store.sweep().unwrap();
    }
}

/// An empty store, read.
pub(crate) fn empty(folder: &Path) -> Store {
    let mut store = Store::open(folder).unwrap();
    store.replay(|_, records| records.count()).unwrap();
    store
}

/// The files as they are at this moment, as if the process was killed.
pub(crate) fn killed(folder: &Path) -> TempDir {
    let left = self::folder();
    for name in [FILE.to_owned(), format!("{FILE}-wal")] {
        if folder.join(&name).exists() {
            std::fs::copy(folder.join(&name), left.path().join(&name)).unwrap();
        }
    }
    left
}

pub(crate) fn number(folder: &Path, sql: &str) -> u64 {
    beside(folder).query_row(sql, [], |row| row.get(0)).unwrap()
}
