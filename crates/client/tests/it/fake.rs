// A broker of a few lines, for the tests and (by `include!`) for the examples in the documentation: it says
// welcome, and then what a script says to each envelope. It runs on threads of its own.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use client::proto::{self, Envelope, Feature, LabelScope, Message, RoleKind, RoleName, Welcome};

/// What a script answers with.
pub(crate) type Replies<'a> = &'a mut Vec<Envelope>;

pub(crate) struct Fake {
    folder: tempfile::TempDir,
}

#[allow(
    dead_code,
    reason = "each example includes this file and uses a part of it"
)]
impl Fake {
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("role.sock")
    }
}

/// Listens; `script` is asked about every envelope, the hello too (the welcome then stands in the replies).
pub(crate) fn broker(
    kind: RoleKind,
    script: impl Fn(&Envelope, Replies) + Send + Sync + 'static,
) -> Fake {
    broker_with(kind, proto::frame::DEFAULT_MAX_FRAME, script)
}

pub(crate) fn broker_with(
    kind: RoleKind,
    max_frame: usize,
    script: impl Fn(&Envelope, Replies) + Send + Sync + 'static,
) -> Fake {
    let fake = Fake {
        folder: tempfile::tempdir().expect("a temporary folder"),
    };
    let listener = listen(&fake.path());
    let script = Arc::new(script);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let script = Arc::clone(&script);
            std::thread::spawn(move || talk(stream, kind, max_frame, &*script));
        }
    });
    fake
}

fn listen(path: &Path) -> UnixListener {
    UnixListener::bind(path).expect("a socket in a folder of its own")
}

fn talk(
    mut stream: UnixStream,
    kind: RoleKind,
    max_frame: usize,
    script: &dyn Fn(&Envelope, Replies),
) {
    while let Some(envelope) = read(&mut stream) {
        let mut replies = Vec::new();
        if let Message::Hello(_) = envelope.msg {
            replies.push(Envelope::last(envelope.id, welcome(kind, max_frame)));
        }
        script(&envelope, &mut replies);
        for reply in replies {
            // `id` 0 with an error ends the connection, as the real one does.
            let ends = reply.id == 0 && matches!(reply.msg, Message::Error(_));
            if write(&mut stream, &reply).is_none() || ends {
                return;
            }
        }
    }
}

fn welcome(kind: RoleKind, max_frame: usize) -> Message {
    Message::Welcome(Welcome {
        role: RoleName::new("fake").expect("a role's name"),
        role_kind: kind,
        label_scope: LabelScope::Session,
        max_frame: max_frame as u64,
        max_in_flight: 64,
        features: vec![Feature::Parts, Feature::Progress, Feature::Tools],
    })
}

pub(crate) fn read(stream: &mut UnixStream) -> Option<Envelope> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).ok()?;
    let mut frame = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut frame).ok()?;
    Some(proto::decode(&frame).expect("the library writes valid envelopes"))
}

pub(crate) fn write(stream: &mut UnixStream, envelope: &Envelope) -> Option<()> {
    let frame = proto::encode(envelope);
    stream.write_all(&(frame.len() as u32).to_be_bytes()).ok()?;
    stream.write_all(&frame).ok()
}

pub(crate) fn result(content: &str) -> Message {
    Message::ToolResponse(proto::ToolResponse::Result {
        content: content.to_owned(),
        class: proto::DataClass::Internal,
        untrusted: false,
        truncated: false,
    })
}

/// Answers every tool request with a part and a rest.
#[allow(dead_code, reason = "for the examples")]
pub(crate) fn reader() -> Fake {
    broker(RoleKind::Agent, |asked, replies| {
        if let Message::ToolRequest(_) = asked.msg {
            replies.push(Envelope::more(asked.id, result("all is ")));
            replies.push(Envelope::last(asked.id, result("well")));
        }
    })
}

/// Asks for one approval, and settles it.
#[allow(dead_code, reason = "for the examples")]
pub(crate) fn asker() -> Fake {
    broker(RoleKind::Approver, |asked, replies| {
        if let Message::Hello(_) = &asked.msg {
            replies.push(Envelope::last(0, Message::ApprovalRequest(approval("a1"))));
        } else if let Message::ApprovalReply(reply) = &asked.msg {
            let outcome = match reply.answer {
                proto::Answer::Approve => proto::Outcome::Approved,
                proto::Answer::Refuse => proto::Outcome::Refused,
            };
            let settled = proto::ApprovalSettled {
                approval: reply.approval.clone(),
                outcome,
                by: "fake".to_owned(),
                comment: reply.comment.clone(),
            };
            replies.push(Envelope::last(asked.id, Message::ApprovalSettled(settled)));
        }
    })
}

pub(crate) fn approval(name: &str) -> proto::ApprovalRequest {
    let time = |millis| proto::Timestamp::from_millis(millis).expect("a small time");
    proto::ApprovalRequest {
        approval: proto::ApprovalId::new(name).expect("an approval's name"),
        role: RoleName::new("bot").expect("a role's name"),
        session: proto::SessionId::new("s").expect("a session's name"),
        call: proto::CallId(1),
        tool: proto::ToolName::new("write_file").expect("a tool's name"),
        arguments: "{}".to_owned(),
        label: proto::Label::BOTTOM,
        raised_by: Vec::new(),
        grants: Vec::new(),
        scopes: vec![proto::Scope::Once],
        quorum: 1,
        digest: proto::Digest::from_bytes([1; 32]),
        created: time(1),
        expires: time(2),
    }
}

/// Says that everything was done.
#[allow(dead_code, reason = "for the examples")]
pub(crate) fn operated() -> Fake {
    broker(RoleKind::Operator, |asked, replies| {
        if let Message::Control(_) = asked.msg {
            let done = Message::ControlReply(proto::ControlReply::Done {});
            replies.push(Envelope::last(asked.id, done));
        }
    })
}

/// Sends `count` requests for the tool `shout` to a runner, and hangs up when all are answered.
#[allow(dead_code, reason = "for the examples")]
pub(crate) fn caller(count: u64) -> Fake {
    let fake = Fake {
        folder: tempfile::tempdir().expect("a temporary folder"),
    };
    let listener = listen(&fake.path());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("the runner connects");
        let hello = read(&mut stream).expect("a hello");
        let greeting = welcome(RoleKind::Runner, proto::frame::DEFAULT_MAX_FRAME);
        write(&mut stream, &Envelope::last(hello.id, greeting));
        for id in 1..=count {
            write(&mut stream, &Envelope::last(id, request("shout", "{}")));
        }
        let mut left = count;
        while left > 0 {
            left -= u64::from(read(&mut stream).expect("an answer").r#final);
        }
    });
    fake
}

pub(crate) fn request(tool: &str, arguments: &str) -> Message {
    Message::ToolRequest(proto::ToolRequest {
        session: proto::SessionId::new("s").expect("a session's name"),
        call: proto::CallId(1),
        tool: tool.to_owned(),
        arguments: arguments.to_owned(),
    })
}
