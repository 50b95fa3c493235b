//! Which requests are open on which connection (invariant 1), and what a connection has said.

use std::collections::{BTreeMap, BTreeSet};

use engine::{CallKey, SessionKey};
use proto::{
    ApprovalId, ApprovalReply, Control, DecodeError, Decoded, ErrorCode, Feature, Label, Message,
    RoleKind, RoleName, Timestamp, ToolName, ToolSpec,
};

/// One connection.
#[derive(Debug)]
pub(crate) struct Conn {
    pub(crate) role: RoleName,
    pub(crate) kind: RoleKind,
    pub(crate) uid: u32,
    pub(crate) features: Vec<Feature>,
    /// Requests of the peer that wait for their final answer.
    pub(crate) open: BTreeMap<u64, Open>,
    /// Requests that had it.
    pub(crate) finished: BTreeSet<u64>,
    /// Errors that the broker owes under id 0.
    pub(crate) owed_under_zero: u64,
    /// Errors that it may send there: for a runner's replies that no run waits for.
    pub(crate) tolerated_under_zero: u64,
    /// Requests of the broker to this runner that are open, and what was said under them.
    pub(crate) runs: BTreeMap<u64, Run>,
    /// Requests of the broker that were ever made.
    pub(crate) runs_made: BTreeSet<u64>,
    /// The list that the runner last offered, if it did.
    pub(crate) offer: Option<BTreeMap<ToolName, ToolSpec>>,
    /// The list before the one that is being answered.
    pub(crate) offer_before: Option<BTreeMap<ToolName, ToolSpec>>,
    /// Approvals that this approver was shown; whether it heard of their end.
    pub(crate) shown: BTreeMap<ApprovalId, Shown>,
}

/// An approval on one approver's screen.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Shown {
    pub(crate) pushed: u32,
    pub(crate) settled_pushes: u32,
    pub(crate) settled: bool,
}

/// A call that a runner works on.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) call: CallKey,
    pub(crate) tool: String,
    pub(crate) said: Label,
    /// When the runner was asked.
    pub(crate) since: Timestamp,
    /// Somebody cancelled it: it may be given up before its time.
    pub(crate) cancelled: bool,
}

/// A request that waits for its final answer.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) what: What,
    pub(crate) pieces: Vec<Piece>,
}

/// A part that was sent.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) content: String,
    pub(crate) label: Label,
    pub(crate) truncated: bool,
}

/// What was asked.
#[derive(Debug, Clone)]
pub(crate) enum What {
    Call {
        key: CallKey,
        fingerprint: u64,
    },
    Cancel {
        key: CallKey,
    },
    Join {
        from: SessionKey,
        into: SessionKey,
        close: bool,
    },
    List {
        session: SessionKey,
    },
    Control(Control),
    Reply(ApprovalReply),
    /// Anything else: one final answer is all that is promised.
    Other,
}

/// What a received frame is to the model.
#[derive(Debug)]
pub(crate) enum Heard {
    /// A request, which is now open.
    Request,
    /// A reply under this id.
    Reply(u64),
    /// An error is owed under id 0.
    Nothing,
}

impl Conn {
    pub(crate) fn new(role: RoleName, kind: RoleKind, uid: u32) -> Self {
        Self {
            role,
            kind,
            uid,
            features: Vec::new(),
            open: BTreeMap::new(),
            finished: BTreeSet::new(),
            owed_under_zero: 0,
            tolerated_under_zero: 0,
            runs: BTreeMap::new(),
            runs_made: BTreeSet::new(),
            offer: None,
            offer_before: None,
            shown: BTreeMap::new(),
        }
    }

    /// Notes a frame of the peer.
    pub(crate) fn hear(&mut self, frame: &Result<Decoded, DecodeError>) -> Heard {
        let (id, is_reply, what) = match frame {
            Ok(decoded) => {
                let envelope = &decoded.envelope;
                let what = self.what(&envelope.msg);
                (envelope.id, envelope.msg.is_reply(), what)
            }
            Err(error) => {
                let closes = error.code == ErrorCode::BadFrame;
                (if closes { 0 } else { error.id }, error.reply, What::Other)
            }
        };
        if is_reply && self.kind == RoleKind::Runner {
            // Whether the engine minds depends on what the run is by then.
            self.tolerated_under_zero += 1;
            return Heard::Reply(id);
        }
        if is_reply || id == 0 || self.open.contains_key(&id) {
            self.owed_under_zero += 1;
            return Heard::Nothing;
        }
        self.finished.remove(&id);
        self.open.insert(
            id,
            Open {
                what,
                pieces: Vec::new(),
            },
        );
        Heard::Request
    }

    fn what(&self, message: &Message) -> What {
        if self.kind == RoleKind::Approver
            && let Message::ApprovalReply(reply) = message
        {
            return What::Reply(reply.clone());
        }
        if self.kind == RoleKind::Operator
            && let Message::Control(control) = message
        {
            return What::Control(control.clone());
        }
        if self.kind != RoleKind::Agent {
            return What::Other;
        }
        let session = |session: &proto::SessionId| SessionKey {
            role: self.role.clone(),
            session: session.clone(),
        };
        if let Message::ToolRequest(request) = message {
            let key = CallKey {
                session: session(&request.session),
                call: request.call,
            };
            let fingerprint = crate::peers::fingerprint(&request.tool, &request.arguments);
            return What::Call { key, fingerprint };
        }
        if let Message::Cancel(cancel) = message {
            let key = CallKey {
                session: session(&cancel.session),
                call: cancel.call,
            };
            return What::Cancel { key };
        }
        if let Message::JoinSession(join) = message {
            let (from, into) = (session(&join.from), session(&join.into));
            return What::Join {
                from,
                into,
                close: join.close,
            };
        }
        if let Message::ListTools(list) = message {
            return What::List {
                session: session(&list.session),
            };
        }
        What::Other
    }

    /// Takes a request off the open ones, if this frame is its last.
    pub(crate) fn answer(&mut self, id: u64, is_final: bool) -> Option<What> {
        let what = self.open.get(&id).map(|open| open.what.clone())?;
        if is_final {
            self.finished.insert(id);
        }
        Some(what)
    }
}
