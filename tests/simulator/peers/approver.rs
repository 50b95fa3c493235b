//! Approvers: approve, refuse, answer late, twice, or about something else.

use std::collections::BTreeMap;

use proto::{
    Answer, ApprovalId, ApprovalReply, ApprovalRequest, Digest, Envelope, ListApprovals, Message,
    Outcome, Scope,
};

use crate::peers::Cx;

/// One connection of an approver role.
#[derive(Debug, Default)]
pub(crate) struct Approver {
    next_id: u64,
    greeted: bool,
    waiting: BTreeMap<ApprovalId, ApprovalRequest>,
    past: Vec<ApprovalRequest>,
}

impl Approver {
    pub(crate) fn receive(&mut self, envelope: &Envelope) {
        if let Message::ApprovalRequest(request) = &envelope.msg {
            self.waiting
                .insert(request.approval.clone(), request.clone());
        }
        if let Message::ApprovalSettled(settled) = &envelope.msg
            && settled.outcome != Outcome::Counted
            && let Some(request) = self.waiting.remove(&settled.approval)
        {
            self.past.push(request);
        }
    }

    pub(crate) fn act(&mut self, cx: &mut Cx<'_>) {
        if !self.greeted {
            self.greeted = true;
            let id = self.id();
            cx.hello(id, &[]);
            return;
        }
        if cx.calm {
            return;
        }
        match cx.rng.below(100) {
            0..70 => self.decide(cx),
            70..75 => self.decide_again(cx),
            75..82 => {
                let settled = cx.rng.chance(50);
                let id = self.id();
                cx.send(&Envelope::last(
                    id,
                    Message::ListApprovals(ListApprovals { settled }),
                ));
            }
            82..84 => {
                let id = self.id();
                cx.garbage(id);
            }
            _ => {}
        }
    }

    fn id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    fn decide(&mut self, cx: &mut Cx<'_>) {
        let at = cx.rng.below(self.waiting.len());
        if let Some(request) = self.waiting.values().nth(at).cloned() {
            self.reply(&request, cx);
        }
    }

    fn decide_again(&mut self, cx: &mut Cx<'_>) {
        let at = cx.rng.below(self.past.len());
        if let Some(request) = self.past.get(at).cloned() {
            self.reply(&request, cx);
        }
    }

    fn reply(&mut self, request: &ApprovalRequest, cx: &mut Cx<'_>) {
        let digest = if cx.rng.chance(4) {
            Digest::from_bytes([7; 32])
        } else {
            request.digest.clone()
        };
        let approval = if cx.rng.chance(2) {
            ApprovalId::new("none-such").expect("a good name")
        } else {
            request.approval.clone()
        };
        let answer = if cx.rng.chance(12) {
            Answer::Refuse
        } else {
            Answer::Approve
        };
        let standing = request.scopes.contains(&Scope::Session) && cx.rng.chance(60);
        let scope = if standing || cx.rng.chance(3) {
            Scope::Session
        } else {
            Scope::Once
        };
        let id = self.id();
        cx.send(&Envelope::last(
            id,
            Message::ApprovalReply(ApprovalReply {
                approval,
                digest,
                answer,
                scope,
                comment: "seen".into(),
            }),
        ));
    }
}
