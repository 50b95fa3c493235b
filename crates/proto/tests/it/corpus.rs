//! The files: what is refused and how, what is taken and as what.

use bytes::Bytes;
use proto::{ErrorCode, decode, decode_shared, encode, encode_message};

use crate::fixtures::{Expected, folder};

#[test]
fn every_frame_of_the_reject_corpus_is_refused_as_its_name_says() {
    let mut wrong = Vec::new();
    for fixture in folder("reject") {
        match decode(&fixture.frame) {
            Ok(envelope) => wrong.push(format!("{}: taken as {envelope:?}", fixture.name)),
            Err(error) => {
                let got = Expected {
                    code: error.code,
                    id: error.id,
                    reply: error.reply,
                };
                if got != fixture.expected() || error.detail.is_empty() {
                    wrong.push(format!("{}: {error:?}", fixture.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_frame_of_the_accept_corpus_is_taken_and_means_the_same() {
    for folder_name in ["accept", "wire"] {
        for fixture in folder(folder_name) {
            let envelope =
                decode(&fixture.frame).unwrap_or_else(|error| panic!("{}: {error}", fixture.name));
            let sent: serde_json::Value = serde_json::from_slice(&fixture.frame).unwrap();
            let understood: serde_json::Value = serde_json::from_slice(&encode(&envelope)).unwrap();
            assert_eq!(sent, understood, "{}", fixture.name);
            assert_eq!(decode(&encode(&envelope)), Ok(envelope), "{}", fixture.name);
        }
    }
}

#[test]
fn what_is_forwarded_is_the_canonical_writing_without_a_copy_where_that_came() {
    let (mut slices, mut rewritten) = (0, 0);
    for fixture in folder("wire").into_iter().chain(folder("accept")) {
        let frame = Bytes::from(fixture.frame);
        let decoded = decode_shared(frame.clone()).unwrap();
        assert_eq!(
            decoded.msg,
            encode_message(&decoded.envelope.msg),
            "{}",
            fixture.name
        );
        let canonical = frame == encode(&decoded.envelope);
        let inside = frame.as_ptr_range().contains(&decoded.msg.as_ptr());
        assert_eq!(canonical, inside, "{}", fixture.name);
        *if canonical {
            &mut slices
        } else {
            &mut rewritten
        } += 1;
    }
    assert!(slices >= 6 && rewritten >= 6, "{slices} and {rewritten}");
}

#[test]
fn a_detail_names_the_path_and_the_rule() {
    let details = [
        ("bad_frame--id0--trailing-bytes", "not JSON at byte 127"),
        (
            "bad_frame--id0--invalid-utf-8-in-a-string",
            "not UTF-8 at byte 76",
        ),
        (
            "bad_version--id7--version-two",
            "v: only version 1 is spoken here",
        ),
        (
            "bad_message--id7--version-missing",
            "v: the integer 1 must stand there, once",
        ),
        (
            "bad_message--id0--id-string",
            "id: another type is expected",
        ),
        (
            "bad_message--id7--final-missing",
            "a field is missing: `final`",
        ),
        (
            "bad_message--id7--missing-session",
            "msg.body: a field is missing: `session`",
        ),
        (
            "bad_message--id7-reply--missing-class",
            "msg.body: a field is missing: `class`",
        ),
        (
            "bad_message--id7--unknown-field-in-a-body",
            "msg.body: a field that is not known here",
        ),
        (
            "bad_message--id7--known-field-in-the-wrong-place",
            "msg.body.reason: a field that is not known here",
        ),
        (
            "bad_message--id7--unknown-kind",
            "msg.kind: a word that is not known here",
        ),
        (
            "bad_message--id7--session-with-space",
            "msg.body.session: a session must match ^[A-Za-z0-9][A-Za-z0-9_.:@-]{0,127}$",
        ),
        (
            "bad_message--id0-reply--created-over-53-bits",
            "msg.body.created: a time must be at most 9007199254740991 ms",
        ),
        (
            "bad_message--id7--lone-high-surrogate",
            "msg.body.arguments: a string holds half of a surrogate pair",
        ),
        (
            "bad_message--id7--call-twice-the-same",
            "msg.body: a field stands there twice",
        ),
        (
            "bad_message--id7--array-for-a-body",
            "msg.body: another type is expected",
        ),
        (
            "bad_message--id7-reply--map-for-a-class-in-a-label",
            "msg.body.label.class: another type is expected",
        ),
        (
            "bad_message--id7--array-for-a-tool-spec",
            "msg.body.tools[0]: another type is expected",
        ),
        (
            "bad_message--id7--unknown-field-beside-an-empty-operation",
            "msg.body: a field that is not known here",
        ),
        (
            "bad_message--id7--unknown-key-twice-beside-an-empty-operation",
            "msg.body: a field that is not known here",
        ),
    ];
    let corpus = folder("reject");
    let mut wrong = Vec::new();
    for (name, detail) in details {
        let fixture = corpus
            .iter()
            .find(|fixture| fixture.name == name)
            .expect(name);
        let found = decode(&fixture.frame).expect_err(name).detail;
        if found != detail {
            wrong.push(format!("{name}: {found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_empty_frame_is_bad_without_an_id() {
    let error = decode(b"").unwrap_err();
    assert_eq!(
        (error.code, error.id, error.reply),
        (ErrorCode::BadFrame, 0, false)
    );
}
