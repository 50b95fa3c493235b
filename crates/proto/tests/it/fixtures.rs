//! The corpora on disk. A file under `reject/` holds one frame with one fault, and its name says what
//! is expected: `<code>--id<id>[-reply]--<reason>.json`.

use std::path::Path;

use proto::ErrorCode;

/// A frame from a file.
pub(crate) struct Fixture {
    pub(crate) name: String,
    pub(crate) frame: Vec<u8>,
}

/// What a file under `reject/` promises.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) code: ErrorCode,
    pub(crate) id: u64,
    pub(crate) reply: bool,
}

/// Every frame in a folder, by name.
#[expect(
    clippy::disallowed_methods,
    reason = "the corpus is read whole, so that no file is missed"
)]
pub(crate) fn folder(name: &str) -> Vec<Fixture> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name);
    let mut fixtures: Vec<Fixture> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .map(|path| Fixture {
            name: path.file_stem().unwrap().to_str().unwrap().to_owned(),
            frame: std::fs::read(&path).unwrap(),
        })
        .collect();
    fixtures.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(!fixtures.is_empty(), "no fixtures in {name}");
    fixtures
}

impl Fixture {
    pub(crate) fn expected(&self) -> Expected {
        let mut parts = self.name.split("--");
        let mut part = || {
            parts
                .next()
                .unwrap_or_else(|| panic!("{}: a part is missing", self.name))
        };
        let code = match part() {
            "bad_frame" => ErrorCode::BadFrame,
            "bad_version" => ErrorCode::BadVersion,
            "bad_message" => ErrorCode::BadMessage,
            other => panic!("{}: {other} is no code", self.name),
        };
        let under = part().strip_prefix("id").unwrap();
        let (id, reply) = match under.strip_suffix("-reply") {
            Some(id) => (id, true),
            None => (under, false),
        };
        Expected {
            code,
            id: id.parse().unwrap(),
            reply,
        }
    }
}
