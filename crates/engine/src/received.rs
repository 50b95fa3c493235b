//! A frame came: may this peer say this, now? Then to whoever handles it.

use std::collections::BTreeSet;

use proto::{
    DecodeError, Decoded, ErrorCode, FailureCode, Feature, Hello, Message, RoleKind, Welcome,
};

use crate::effect::Level;
use crate::engine::Engine;
use crate::event::ConnId;
use crate::limits::MAX_COMMENT;

impl Engine {
    pub(crate) fn received(&mut self, conn: ConnId, frame: Result<Decoded, DecodeError>) {
        match frame {
            Ok(decoded) => self.understood(conn, decoded),
            Err(error) => self.not_understood(conn, &error),
        }
    }

    fn not_understood(&mut self, conn: ConnId, error: &DecodeError) {
        let Some(peer) = self.conns.get(&conn) else {
            return;
        };
        let is_runner = peer.kind == RoleKind::Runner;
        match error.code {
            ErrorCode::BadFrame => {
                self.error(conn, 0, ErrorCode::BadFrame, &error.detail);
                self.close(conn);
            }
            code @ (ErrorCode::BadVersion | ErrorCode::BadMessage | ErrorCode::Internal) => {
                if error.reply && is_runner {
                    self.undecodable_reply(conn, error.id);
                }
                // Under a request that is open already it would be taken for that one's answer.
                let open = self
                    .conns
                    .get(&conn)
                    .is_some_and(|peer| peer.requests.contains_key(&error.id));
                let id = if error.reply || open { 0 } else { error.id };
                self.error(conn, id, code, &error.detail);
            }
        }
    }

    fn understood(&mut self, conn: ConnId, decoded: Decoded) {
        let Some(peer) = self.conns.get(&conn) else {
            return;
        };
        let (kind, hello) = (peer.kind, peer.features.is_some());
        let (role, open) = (
            peer.peer.role.clone(),
            peer.requests.contains_key(&decoded.envelope.id),
        );
        let id = decoded.envelope.id;
        if decoded.envelope.msg.is_reply() {
            match kind {
                RoleKind::Runner => self.runner_replied(conn, decoded.envelope, decoded.msg),
                RoleKind::Agent | RoleKind::Approver | RoleKind::Operator => {
                    self.not_yours(conn, 0, decoded.envelope.msg.kind());
                }
            }
            return;
        }
        if id == 0 {
            return self.bad_message(conn, 0, "id: 0 is for what the broker pushes");
        }
        if !decoded.envelope.r#final {
            return self.bad_message(conn, id, "final: a request is one envelope, true");
        }
        if open {
            return self.bad_message(conn, 0, "id: a request under this id is open already");
        }
        if !self.admits_request(&role) {
            self.count_refused(&role);
            return self.over_rate(conn, id, &decoded.envelope.msg);
        }
        let told_kind = decoded.envelope.msg.kind();
        match (kind, hello, decoded.envelope.msg) {
            (RoleKind::Agent, _, Message::ToolRequest(request)) => {
                self.tool_request(conn, id, request, decoded.msg);
            }
            (_, _, Message::Hello(hello)) => self.hello(conn, id, &hello),
            (RoleKind::Agent, true, Message::Cancel(cancel)) => self.cancel(conn, id, &cancel),
            (RoleKind::Agent, true, Message::ListTools(list)) => {
                self.list_tools(conn, id, &list.session);
            }
            (RoleKind::Agent, true, Message::JoinSession(join)) => {
                self.agent_joins(conn, id, join);
            }
            (RoleKind::Runner, true, Message::Offer(offer)) => self.offer(conn, id, offer),
            (RoleKind::Approver, true, Message::ApprovalReply(reply)) => self.vote(conn, id, reply),
            (RoleKind::Approver, true, Message::ListApprovals(list)) => {
                self.list_approvals(conn, id, list.settled);
            }
            (RoleKind::Operator, true, Message::Control(control)) => {
                self.control(conn, id, control);
            }
            _ => self.not_yours(conn, id, told_kind),
        }
    }

    fn admits_request(&mut self, role: &proto::RoleName) -> bool {
        let (quota, now) = (self.quota(role), self.now);
        self.account(role).admits_request(&quota, now)
    }

    fn over_rate(&mut self, conn: ConnId, id: u64, msg: &Message) {
        if matches!(msg, Message::ToolRequest(_)) {
            let failed = FailureCode::Busy.response("requests_per_second");
            self.reply(conn, id, &Message::ToolResponse(failed));
        } else {
            self.busy(conn, id, "requests_per_second");
        }
    }

    fn hello(&mut self, conn: ConnId, id: u64, hello: &Hello) {
        if hello.software.len() > MAX_COMMENT {
            return self.bad_message(conn, id, "msg.body.software: is longer than 1024 bytes");
        }
        let max_frame = self.config.settings.max_frame;
        let Some(peer) = self.conns.get_mut(&conn) else {
            return;
        };
        if peer.features.is_some() {
            return self.bad_message(conn, id, "msg.kind: `hello` was said already");
        }
        let features: BTreeSet<Feature> = hello
            .features
            .iter()
            .filter_map(|name| Feature::of_name(name))
            .collect();
        peer.features = Some(features.clone());
        let (role, kind) = (peer.peer.role.clone(), peer.kind);
        let config = self.config.roles.get(&role);
        let welcome = Welcome {
            role: role.clone(),
            role_kind: kind,
            label_scope: config.map_or(proto::LabelScope::None, |config| config.label_scope),
            max_frame,
            max_in_flight: match kind {
                RoleKind::Runner => config.map_or(0, |config| config.concurrency),
                RoleKind::Agent | RoleKind::Approver | RoleKind::Operator => {
                    config.map_or(0, |config| config.quota.in_flight)
                }
            },
            features: features.into_iter().collect(),
        };
        self.log(Level::Debug, "hello", |log| log.role = Some(role.clone()));
        self.reply(conn, id, &Message::Welcome(welcome));
        if kind == RoleKind::Approver {
            let mut pending: Vec<_> = self
                .approvals
                .values()
                .filter(|approval| approval.asked.contains(&role))
                .map(|approval| (approval.request.created, approval.request.approval.clone()))
                .collect();
            pending.sort();
            for (_, approval) in pending {
                self.announce(&approval, Some(conn));
            }
        }
    }
}
