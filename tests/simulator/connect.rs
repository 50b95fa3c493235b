//! Who connects: some of each kind, under their uids.

use engine::{ConnId, Event, Peer as Admitted};

use crate::peers::Peer;
use crate::peers::agent::Agent;
use crate::peers::approver::Approver;
use crate::peers::operator::{Operator, role};
use crate::peers::runner::Runner;
use crate::shell::Link;
use crate::world::World;

impl World {
    /// A peer connects.
    pub(crate) fn connect(&mut self) {
        let kind = self.rng.weighted(&[(40, 0), (35, 1), (18, 2), (7, 3)]);
        self.connect_kind(kind);
    }

    /// One of each, to begin with.
    pub(crate) fn connect_all(&mut self) {
        for kind in [0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 3] {
            self.connect_kind(kind);
        }
    }

    fn connect_kind(&mut self, kind: u8) {
        let (name, uid, peer) = match kind {
            0 => {
                let (name, uids) = *self.rng.pick(&self.plan.agents);
                let hello = self.rng.chance(80).then(|| {
                    let all = ["parts", "progress", "tools", "nonsense"];
                    all.into_iter().filter(|_| self.rng.chance(60)).collect()
                });
                let uid = if self.rng.chance(90) {
                    uids[0]
                } else {
                    *self.rng.pick(uids)
                };
                (name, uid, Peer::Agent(Agent::new(name, hello)))
            }
            1 => {
                let (name, uid) = *self.rng.pick(&self.plan.runners);
                (name, uid, Peer::Runner(Runner::new(name)))
            }
            2 => {
                let (name, uids) = *self.rng.pick(&self.plan.approvers);
                (
                    name,
                    *self.rng.pick(uids),
                    Peer::Approver(Approver::default()),
                )
            }
            _ => {
                let operator = Operator::new(self.next_conn);
                (
                    self.plan.operator.0,
                    self.plan.operator.1,
                    Peer::Operator(operator),
                )
            }
        };
        let most = if matches!(peer, Peer::Operator(_)) {
            1
        } else {
            3
        };
        let role = role(name);
        let there = self
            .model
            .conns
            .values()
            .filter(|conn| conn.role == role)
            .count();
        if there >= most && !self.rng.chance(3) {
            return;
        }
        let conn = ConnId(self.next_conn);
        self.next_conn += 1;
        self.peers.insert(conn, peer);
        self.shell.links.insert(conn, Link::default());
        self.model.connected(conn, &role, uid);
        self.handle(Event::Connected {
            conn,
            peer: Admitted { role, uid },
        });
    }
}
