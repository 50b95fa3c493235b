//! The kinds that the seed fixed, byte for byte: what stands in `fixtures/wire/` decodes to these
//! values, and they encode back to those bytes.

#![cfg(test)]

use proto::{
    CallId, DataClass, DenyReason, Envelope, ErrorCode, Message, SessionId, Timestamp, ToolRequest,
    ToolResponse, WireError, decode, encode,
};

const TOOL_REQUEST: &str = include_str!("fixtures/wire/tool_request.json");
const PENDING_APPROVAL: &str = include_str!("fixtures/wire/pending_approval.json");
const RESULT: &str = include_str!("fixtures/wire/result.json");
const FAILED: &str = include_str!("fixtures/wire/failed.json");
const DENIED: &str = include_str!("fixtures/wire/denied.json");
const ERROR: &str = include_str!("fixtures/wire/error.json");
const ALL: [&str; 6] = [
    TOOL_REQUEST,
    PENDING_APPROVAL,
    RESULT,
    FAILED,
    DENIED,
    ERROR,
];

/// `fixture` and `envelope` are the same, in both directions.
fn same(fixture: &str, envelope: &Envelope) {
    assert_eq!(decode(fixture.as_bytes()).as_ref(), Ok(envelope));
    assert_eq!(std::str::from_utf8(&encode(envelope)), Ok(fixture));
    // Plain serde reads and writes the same: the fixtures depend on the types alone.
    assert_eq!(
        &serde_json::from_str::<Envelope>(fixture).unwrap(),
        envelope
    );
}

fn response(response: ToolResponse) -> Envelope {
    Envelope {
        v: 1,
        id: 7,
        r#final: true,
        msg: Message::ToolResponse(response),
    }
}

/// `fixture` with `from` replaced by `to` is refused, by the decoder and by serde alone.
fn refused(fixture: &str, from: &str, to: &str) {
    assert!(fixture.contains(from), "{from} does not stand in {fixture}");
    let changed = fixture.replacen(from, to, 1);
    let error = decode(changed.as_bytes()).expect_err(&changed);
    assert_eq!(error.code, ErrorCode::BadMessage, "{changed}");
    assert!(
        serde_json::from_str::<Envelope>(&changed).is_err(),
        "{changed}"
    );
}

#[test]
fn a_tool_request_is_its_fixture() {
    let request = ToolRequest {
        session: SessionId::new("mm-thread-42").unwrap(),
        call: CallId(3),
        tool: "read_file".to_owned(),
        arguments: "{\"path\":\"/etc/hosts\"}".to_owned(),
    };
    same(
        TOOL_REQUEST,
        &Envelope {
            v: 1,
            id: 7,
            r#final: true,
            msg: Message::ToolRequest(request),
        },
    );
}

#[test]
fn a_pending_approval_is_its_fixture_and_not_final() {
    let pending = ToolResponse::PendingApproval {
        approval: "ap-19".to_owned(),
        expires: Timestamp::from_millis(1_789_000_000_000).unwrap(),
    };
    same(
        PENDING_APPROVAL,
        &Envelope {
            r#final: false,
            ..response(pending)
        },
    );
}

#[test]
fn a_result_is_its_fixture() {
    let result = ToolResponse::Result {
        content: "127.0.0.1 localhost\n".to_owned(),
        class: DataClass::Internal,
        untrusted: false,
        truncated: false,
    };
    same(RESULT, &response(result));
}

#[test]
fn a_failure_is_its_fixture() {
    let message = "timed_out: no word from the runner for 60s".to_owned();
    same(FAILED, &response(ToolResponse::Failed { message }));
}

#[test]
fn a_denial_is_its_fixture_and_so_is_every_reason() {
    same(
        DENIED,
        &response(ToolResponse::Denied {
            reason: DenyReason::TaintTooHigh,
        }),
    );
    for (reason, word) in [
        (DenyReason::NoGrant, "no_grant"),
        (DenyReason::GrantExpired, "grant_expired"),
        (DenyReason::DeniedByGrant, "denied_by_grant"),
        (DenyReason::ApprovalRefused, "approval_refused"),
        (DenyReason::ApprovalExpired, "approval_expired"),
    ] {
        let fixture = DENIED.replace("taint_too_high", word);
        same(&fixture, &response(ToolResponse::Denied { reason }));
    }
}

#[test]
fn an_error_is_its_fixture_and_so_is_every_code() {
    for (code, word) in [
        (ErrorCode::BadFrame, "bad_frame"),
        (ErrorCode::BadVersion, "bad_version"),
        (ErrorCode::BadMessage, "bad_message"),
        (ErrorCode::Internal, "internal"),
    ] {
        let error = WireError {
            code,
            detail: "not JSON at byte 12".to_owned(),
        };
        same(
            &ERROR.replace("bad_frame", word),
            &Envelope::last(0, Message::Error(error)),
        );
    }
}

#[test]
fn an_unknown_field_is_refused_in_all_four_places() {
    for fixture in ALL {
        refused(fixture, "\"v\":1", "\"v\":1,\"extra\":0");
        refused(fixture, "\"kind\":", "\"extra\":0,\"kind\":");
        refused(fixture, "\"body\":{", "\"body\":{\"extra\":0,");
        refused(fixture, "}}}", ",\"extra\":0}}}");
        refused(fixture, "}}}", "},\"extra\":0}}");
        refused(fixture, "}}}", "}},\"extra\":0}");
    }
}

#[test]
fn a_missing_field_is_refused_and_final_is_no_exception() {
    for (fixture, field) in [
        (TOOL_REQUEST, "\"v\":1,"),
        (TOOL_REQUEST, "\"id\":7,"),
        (TOOL_REQUEST, "\"final\":true,"),
        (PENDING_APPROVAL, "\"final\":false,"),
        (TOOL_REQUEST, "\"kind\":\"tool_request\","),
        (TOOL_REQUEST, "\"session\":\"mm-thread-42\","),
        (TOOL_REQUEST, "\"call\":3,"),
        (TOOL_REQUEST, "\"tool\":\"read_file\","),
        (
            TOOL_REQUEST,
            ",\"arguments\":\"{\\\"path\\\":\\\"/etc/hosts\\\"}\"",
        ),
        (PENDING_APPROVAL, "\"status\":\"pending_approval\","),
        (PENDING_APPROVAL, "\"approval\":\"ap-19\","),
        (PENDING_APPROVAL, ",\"expires\":1789000000000"),
        (RESULT, "\"content\":\"127.0.0.1 localhost\\n\","),
        (RESULT, "\"class\":\"internal\","),
        (RESULT, "\"untrusted\":false,"),
        (RESULT, ",\"truncated\":false"),
        (
            FAILED,
            ",\"message\":\"timed_out: no word from the runner for 60s\"",
        ),
        (DENIED, ",\"reason\":\"taint_too_high\""),
        (ERROR, "\"code\":\"bad_frame\","),
        (ERROR, ",\"detail\":\"not JSON at byte 12\""),
    ] {
        refused(fixture, field, "");
    }
    refused(
        ERROR,
        ",\"body\":{\"code\":\"bad_frame\",\"detail\":\"not JSON at byte 12\"}",
        "",
    );
}

#[test]
fn an_unknown_kind_status_or_word_is_refused() {
    refused(TOOL_REQUEST, "\"tool_request\"", "\"tool_wish\"");
    refused(TOOL_REQUEST, "\"tool_request\"", "\"ToolRequest\"");
    refused(TOOL_REQUEST, "\"tool_request\"", "\"tool_response\"");
    refused(RESULT, "\"status\":\"result\"", "\"status\":\"outcome\"");
    refused(RESULT, "\"status\":\"result\"", "\"status\":\"failed\"");
    refused(RESULT, "\"internal\"", "\"Internal\"");
    refused(DENIED, "\"taint_too_high\"", "\"tainted\"");
    refused(ERROR, "\"bad_frame\"", "\"bad_luck\"");
}
