//! Any envelope, for proptest.

use proptest::prelude::*;
use proptest::{collection::vec, sample::select};
use proto::control::{
    Decided, EventStatus, GrantStatus, Judgement, RoleStatus, SessionStatus, Standing,
    StandingStatus, ToolState, ToolStatus, TraceStatus,
};
use proto::*;

fn named<T: Clone + std::fmt::Debug + 'static>(
    pattern: &'static str,
    new: fn(String) -> Result<T, NameError>,
) -> impl Strategy<Value = T> + Clone {
    let pattern = pattern.trim_start_matches('^').trim_end_matches('$');
    pattern.prop_map(move |name| new(name).unwrap())
}

fn session() -> impl Strategy<Value = SessionId> + Clone {
    named(SessionId::PATTERN, SessionId::new)
}

fn tool() -> impl Strategy<Value = ToolName> + Clone {
    named(ToolName::PATTERN, ToolName::new)
}

fn role() -> impl Strategy<Value = RoleName> + Clone {
    named(RoleName::PATTERN, RoleName::new)
}

fn grant() -> impl Strategy<Value = GrantId> + Clone {
    named(GrantId::PATTERN, GrantId::new)
}

fn approval() -> impl Strategy<Value = ApprovalId> + Clone {
    named(ApprovalId::PATTERN, ApprovalId::new)
}

fn digest() -> impl Strategy<Value = Digest> + Clone {
    any::<[u8; 32]>().prop_map(Digest::from_bytes)
}

fn call() -> impl Strategy<Value = CallId> + Clone {
    any::<u64>().prop_map(CallId)
}

fn time() -> impl Strategy<Value = Timestamp> + Clone {
    (0..=Timestamp::MAX.millis()).prop_map(|millis| Timestamp::from_millis(millis).unwrap())
}

fn text() -> impl Strategy<Value = String> + Clone {
    vec(any::<char>(), 0..12).prop_map(String::from_iter)
}

fn class() -> impl Strategy<Value = DataClass> + Clone {
    select(&DataClass::ALL[..])
}

fn label() -> impl Strategy<Value = Label> + Clone {
    (class(), any::<bool>()).prop_map(|(class, untrusted)| Label { class, untrusted })
}

fn few<S: Strategy>(of: S) -> impl Strategy<Value = Vec<S::Value>> {
    vec(of, 0..3)
}

prop_compose! {
    fn spec()(
        name in tool(), description in text(), input_schema in text(), class in class(),
        untrusted: bool, egress: bool,
        effects in select(vec![Effects::Read, Effects::Idempotent, Effects::Once]),
        content in select(vec![Content::Text, Content::Mcp]),
    ) -> ToolSpec {
        ToolSpec { name, description, input_schema, class, untrusted, effects, egress, content }
    }
}

prop_compose! {
    fn raise()(call in call(), tool in tool(), label in label()) -> Raise {
        Raise { call, tool, label }
    }
}

prop_compose! {
    fn asking()(grant in grant(), why in text(), pointers in few(text())) -> AskingGrant {
        AskingGrant { grant, why, pointers }
    }
}

fn scope() -> impl Strategy<Value = Scope> + Clone {
    select(vec![Scope::Once, Scope::Session])
}

prop_compose! {
    fn approval_request()(
        approval in approval(), role in role(), session in session(), call in call(),
        tool in tool(), arguments in text(), label in label(),
        (raised_by, grants, scopes) in (few(raise()), few(asking()), few(scope())),
        quorum: u32, digest in digest(), created in time(), expires in time(),
    ) -> ApprovalRequest {
        ApprovalRequest {
            approval, role, session, call, tool, arguments, label, raised_by, grants, scopes,
            quorum, digest, created, expires,
        }
    }
}

prop_compose! {
    fn approval_settled()(
        approval in approval(), by in text(), comment in text(),
        outcome in select(vec![
            Outcome::Counted, Outcome::Approved, Outcome::Refused, Outcome::Expired,
            Outcome::Cancelled, Outcome::Superseded,
        ]),
    ) -> ApprovalSettled {
        ApprovalSettled { approval, outcome, by, comment }
    }
}

prop_compose! {
    fn call_settled()(
        approval in approval(), role in role(), session in session(), call in call(),
        tool in tool(), detail in text(),
        end in select(vec![CallEnd::Result, CallEnd::Failed, CallEnd::Denied]),
    ) -> CallSettled {
        CallSettled { approval, role, session, call, tool, end, detail }
    }
}

prop_compose! {
    fn not_taken()(name in tool(), reason in text()) -> NotTaken {
        NotTaken { name, reason }
    }
}

prop_compose! {
    fn listed()(
        spec in spec(), access in select(vec![Access::Ask, Access::Allow]),
    ) -> ListedTool {
        ListedTool { spec, access }
    }
}

fn role_kind() -> impl Strategy<Value = RoleKind> + Clone {
    select(vec![
        RoleKind::Agent,
        RoleKind::Runner,
        RoleKind::Approver,
        RoleKind::Operator,
    ])
}

fn tool_response() -> BoxedStrategy<ToolResponse> {
    let deny = select(vec![
        DenyReason::NoGrant,
        DenyReason::GrantExpired,
        DenyReason::TaintTooHigh,
        DenyReason::DeniedByGrant,
        DenyReason::ApprovalRefused,
        DenyReason::ApprovalExpired,
    ]);
    prop_oneof![
        (approval(), time()).prop_map(|(approval, expires)| {
            ToolResponse::PendingApproval {
                approval: approval.into(),
                expires,
            }
        }),
        (text(), class(), any::<bool>(), any::<bool>()).prop_map(
            |(content, class, untrusted, truncated)| {
                ToolResponse::Result {
                    content,
                    class,
                    untrusted,
                    truncated,
                }
            }
        ),
        text().prop_map(|message| ToolResponse::Failed { message }),
        deny.prop_map(|reason| ToolResponse::Denied { reason }),
    ]
    .boxed()
}

prop_compose! {
    fn preapprove()(
        role in role(), session in session(), tool in tool(), grants in few(grant()),
        arguments in text(), label in label(), uses: u64, ttl: u64, reason in text(),
    ) -> Control {
        Control::Preapprove { role, session, tool, grants, arguments, label, uses, ttl, reason }
    }
}

fn control() -> BoxedStrategy<Control> {
    prop_oneof![
        select(vec![
            Control::Status {},
            Control::Reload {},
            Control::Drain {},
            Control::Grants {},
            Control::Tools {},
            Control::Tail {},
        ]),
        about_one_call(),
        role().prop_map(|role| Control::Sessions { role }),
        (role(), session()).prop_map(|(role, session)| Control::Session { role, session }),
        (role(), session(), session(), any::<bool>()).prop_map(|(role, from, into, close)| {
            Control::JoinSession {
                role,
                from,
                into,
                close,
            }
        }),
        (role(), session()).prop_map(|(role, session)| Control::CloseSession { role, session }),
        (role(), text(), class(), text()).prop_map(|(role, session, class, reason)| {
            Control::Declassify {
                role,
                session,
                class,
                reason,
            }
        }),
        (role(), text(), text()).prop_map(|(role, session, reason)| Control::Endorse {
            role,
            session,
            reason
        }),
        (text(), text()).prop_map(|(grant, reason)| Control::Grant { grant, reason }),
        (grant(), text()).prop_map(|(grant, reason)| Control::Revoke { grant, reason }),
        preapprove(),
        (role(), tool(), digest(), text()).prop_map(|(runner, tool, definition, reason)| {
            Control::AcceptTool {
                runner,
                tool,
                definition,
                reason,
            }
        }),
    ]
    .boxed()
}

fn about_one_call() -> BoxedStrategy<Control> {
    let named = || (role(), session(), call());
    prop_oneof![
        named().prop_map(|(role, session, call)| Control::Explain {
            role,
            session,
            call
        }),
        named().prop_map(|(role, session, call)| Control::Suggest {
            role,
            session,
            call
        }),
        (role(), session(), tool(), text()).prop_map(|(role, session, tool, arguments)| {
            Control::ExplainRequest {
                role,
                session,
                tool,
                arguments,
            }
        }),
    ]
    .boxed()
}

prop_compose! {
    fn judgement()(
        tool in tool(), at in time(), label in label(), ruleset in digest(), reason in text(),
        grant in text(), approval in text(), words in text(),
        decided in select(vec![Decided::Permit, Decided::Ask, Decided::Deny]),
    ) -> Judgement {
        Judgement { tool, at, label, ruleset, decided, reason, grant, approval, words }
    }
}

prop_compose! {
    fn trace_status()(
        grant in grant(), what in text(),
        standing in select(vec![Standing::Elsewhere, Standing::Falls, Standing::Counts]),
    ) -> TraceStatus {
        TraceStatus { grant, standing, what }
    }
}

prop_compose! {
    fn event_status()(
        at in time(), texts in proptest::array::uniform8(text()), call in call(), elapsed_us: u64,
        missed: u64,
    ) -> EventStatus {
        let [event, role, session, tool, decision, reason, grant, approval] = texts;
        EventStatus {
            at, event, role, session, call, tool, decision, reason, grant, approval, elapsed_us,
            missed,
        }
    }
}

prop_compose! {
    fn role_status()(role in role(), kind in role_kind(), n: [u64; 7]) -> RoleStatus {
        let [connections, in_flight, sessions, approvals, waiting_bytes, stored_bytes, dropped_replies] = n;
        RoleStatus {
            role, kind, connections, in_flight, sessions, approvals, waiting_bytes, stored_bytes,
            dropped_replies,
        }
    }
}

prop_compose! {
    fn session_status()(
        session in session(), owner: u32, label in label(), closed: bool, went_into in text(),
        in_flight: u64, watermark: u64, last_used in time(),
    ) -> SessionStatus {
        SessionStatus { session, owner, label, closed, went_into, in_flight, watermark, last_used }
    }
}

prop_compose! {
    fn standing_status()(
        approval in approval(), tool in tool(), grants in few(grant()), label in label(),
        uses_left: u64, expires in time(), by in role(),
    ) -> StandingStatus {
        StandingStatus { approval, tool, grants, label, uses_left, expires, by }
    }
}

prop_compose! {
    fn grant_status()(
        grant in grant(), effect in text(), why in text(), runtime: bool, uses: u64,
        max_uses: u64, expires in time(),
    ) -> GrantStatus {
        GrantStatus { grant, effect, why, runtime, uses, max_uses, expires }
    }
}

prop_compose! {
    fn tool_status()(
        runner in role(), tool in tool(), definition in digest(), description in text(),
        state in select(vec![ToolState::Declared, ToolState::Pinned, ToolState::Held]),
        input_schema in text(), served_by: u64,
    ) -> ToolStatus {
        ToolStatus { runner, tool, state, definition, description, input_schema, served_by }
    }
}

prop_compose! {
    fn status()(
        version in text(), started in time(), now in time(), ruleset in digest(), draining: bool,
        records: u64, head in digest(),
        warnings in few(text()), roles in few(role_status()),
    ) -> ControlReply {
        ControlReply::Status {
            version, started, now, ruleset, draining, records, head, warnings, roles,
        }
    }
}

fn control_reply() -> BoxedStrategy<ControlReply> {
    prop_oneof![
        status(),
        (digest(), few(text()))
            .prop_map(|(ruleset, changes)| ControlReply::Reloaded { ruleset, changes }),
        (judgement(), few(trace_status()))
            .prop_map(|(judgement, trace)| ControlReply::Explained { judgement, trace }),
        (text(), few(text())).prop_map(|(grant, notes)| ControlReply::Suggested { grant, notes }),
        event_status().prop_map(|event| ControlReply::Event { event }),
        time().prop_map(|deadline| ControlReply::Draining { deadline }),
        few(session_status()).prop_map(|sessions| ControlReply::Sessions { sessions }),
        (session_status(), few(raise()), few(standing_status())).prop_map(
            |(session, raised_by, standing)| ControlReply::Session {
                session,
                raised_by,
                standing
            }
        ),
        label().prop_map(|label| ControlReply::Joined { label }),
        few(grant_status()).prop_map(|grants| ControlReply::Grants { grants }),
        (approval(), time())
            .prop_map(|(approval, expires)| ControlReply::Preapproved { approval, expires }),
        few(tool_status()).prop_map(|tools| ControlReply::Tools { tools }),
        Just(ControlReply::Done {}),
    ]
    .boxed()
}

prop_compose! {
    fn welcome()(
        role in role(), role_kind in role_kind(), max_frame: u64, max_in_flight: u64,
        label_scope in select(vec![LabelScope::Session, LabelScope::Role, LabelScope::None]),
        features in few(select(vec![Feature::Parts, Feature::Progress, Feature::Tools])),
    ) -> Welcome {
        Welcome { role, role_kind, label_scope, max_frame, max_in_flight, features }
    }
}

prop_compose! {
    fn approval_reply()(
        approval in approval(), digest in digest(), scope in scope(), comment in text(),
        answer in select(vec![Answer::Approve, Answer::Refuse]),
    ) -> ApprovalReply {
        ApprovalReply { approval, digest, answer, scope, comment }
    }
}

prop_compose! {
    fn tool_request()(
        session in session(), call in call(), tool in tool(), arguments in text(),
    ) -> ToolRequest {
        ToolRequest { session, call, tool: tool.into(), arguments }
    }
}

prop_compose! {
    fn error()(
        detail in text(),
        code in select(vec![
            ErrorCode::BadFrame, ErrorCode::BadVersion, ErrorCode::BadMessage, ErrorCode::Internal,
        ]),
    ) -> WireError {
        WireError { code, detail }
    }
}

/// The kinds around calls and sessions.
fn about_calls() -> BoxedStrategy<Message> {
    prop_oneof![
        tool_request().prop_map(Message::ToolRequest),
        tool_response().prop_map(Message::ToolResponse),
        error().prop_map(Message::Error),
        (text(), few(text()))
            .prop_map(|(software, features)| Message::Hello(Hello { software, features })),
        welcome().prop_map(Message::Welcome),
        (session(), call()).prop_map(|(session, call)| Message::Cancel(Cancel { session, call })),
        (any::<u64>(), any::<u64>(), text())
            .prop_map(|(done, total, note)| Message::Progress(Progress { done, total, note })),
        (session(), session(), any::<bool>(), label()).prop_map(|(from, into, close, label)| {
            Message::SessionJoined(SessionJoined {
                from,
                into,
                close,
                label,
            })
        }),
        (session(), session(), any::<bool>()).prop_map(|(from, into, close)| {
            Message::JoinSession(JoinSession { from, into, close })
        }),
        label().prop_map(|label| Message::Joined(Joined { label })),
    ]
    .boxed()
}

/// The kinds around tools, approvals and control.
fn about_the_rest() -> BoxedStrategy<Message> {
    prop_oneof![
        few(spec()).prop_map(|tools| Message::Offer(Offer { tools })),
        (few(tool()), few(not_taken()), few(not_taken())).prop_map(|(accepted, held, refused)| {
            Message::Offered(Offered {
                accepted,
                held,
                refused,
            })
        }),
        session().prop_map(|session| Message::ListTools(ListTools { session })),
        few(listed()).prop_map(|tools| Message::Tools(Tools { tools })),
        Just(Message::ToolsChanged(ToolsChanged {})),
        approval_request().prop_map(Message::ApprovalRequest),
        approval_reply().prop_map(Message::ApprovalReply),
        approval_settled().prop_map(Message::ApprovalSettled),
        any::<bool>().prop_map(|settled| Message::ListApprovals(ListApprovals { settled })),
        call_settled().prop_map(Message::CallSettled),
        (
            few(approval_request()),
            few(approval_settled()),
            few(call_settled())
        )
            .prop_map(|(pending, settled, calls)| {
                Message::Approvals(Approvals {
                    pending,
                    settled,
                    calls,
                })
            }),
        control().prop_map(Message::Control),
        control_reply().prop_map(Message::ControlReply),
    ]
    .boxed()
}

/// Any envelope of any kind.
pub(crate) fn envelope() -> impl Strategy<Value = Envelope> {
    let msg = prop_oneof![about_calls(), about_the_rest()];
    (any::<u64>(), any::<bool>(), msg).prop_map(|(id, r#final, msg)| Envelope {
        v: PROTOCOL_VERSION,
        id,
        r#final,
        msg,
    })
}
