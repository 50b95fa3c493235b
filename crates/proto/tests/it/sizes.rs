//! Frames that are too large to keep as files: at a limit, over it, and long contents.

use proto::scan::{MAX_DEPTH, MAX_VALUES};
use proto::{
    DataClass, DecodeError, Envelope, ErrorCode, Message, ToolResponse, decode, encode, frame,
};

/// A head that is read, then a member of `levels` arrays inside each other.
fn nested(levels: usize, end: &str) -> String {
    format!("{{\"v\":1,\"id\":9,\"x\":{}{end}", "[".repeat(levels))
}

/// A head that is read, then a member with `values` values: the array and its numbers.
fn many(values: usize, end: &str) -> String {
    format!(
        "{{\"v\":1,\"id\":9,\"x\":[{}{end}",
        vec!["0"; values - 1].join(",")
    )
}

fn refusal(frame: &str) -> DecodeError {
    let error = decode(frame.as_bytes()).unwrap_err();
    assert_eq!(
        (error.code, error.id),
        (ErrorCode::BadMessage, 9),
        "{}",
        error.detail
    );
    error
}

#[test]
fn seventeen_levels_are_refused_and_sixteen_are_looked_at() {
    let closed = |levels: usize| nested(levels, &("]".repeat(levels) + "}"));
    assert_eq!(refusal(&closed(MAX_DEPTH)).detail, "more than 16 levels");
    assert!(
        refusal(&closed(MAX_DEPTH - 1))
            .detail
            .ends_with("a field that is not known here")
    );
}

#[test]
fn one_value_over_the_limit_is_refused() {
    // The envelope, `v` and `id` are three values.
    assert_eq!(
        refusal(&many(MAX_VALUES - 2, "]}")).detail,
        "more than 65536 values"
    );
    assert!(
        refusal(&many(MAX_VALUES - 3, "]}"))
            .detail
            .ends_with("a field that is not known here")
    );
}

#[test]
fn what_stands_behind_a_limit_is_not_looked_at() {
    assert_eq!(
        refusal(&nested(1 << 20, "no JSON")).detail,
        "more than 16 levels"
    );
    assert_eq!(
        refusal(&many(1 << 20, "no JSON")).detail,
        "more than 65536 values"
    );
}

#[test]
fn limits_hold_for_frames_that_would_be_taken() {
    let offered = |names: usize| {
        let accepted = vec!["\"t\""; names].join(",");
        format!(
            "{{\"v\":1,\"id\":9,\"final\":true,\"msg\":{{\"kind\":\"offered\",\"body\":\
             {{\"accepted\":[{accepted}],\"held\":[],\"refused\":[]}}}}}}"
        )
    };
    // Besides the names: the envelope, its four members, the kind, the body and its three lists.
    assert!(decode(offered(MAX_VALUES - 10).as_bytes()).is_ok());
    assert!(refusal(&offered(MAX_VALUES - 9)).reply);
}

#[test]
fn contents_of_eight_mebibytes_are_taken_as_they_are() {
    let size = frame::DEFAULT_MAX_FRAME;
    for content in [
        "a".repeat(size),
        "\u{1}".repeat(size / 6),
        "\u{2028}".repeat(size / 3),
    ] {
        let result = ToolResponse::Result {
            content,
            class: DataClass::Secret,
            untrusted: true,
            truncated: false,
        };
        let envelope = Envelope::last(u64::MAX, Message::ToolResponse(result));
        let canonical = encode(&envelope);
        assert!(decode(&canonical).as_ref() == Ok(&envelope));
        let spaced = [b" ", canonical.as_slice()].concat();
        assert!(decode(&spaced).as_ref() == Ok(&envelope));
    }
}
