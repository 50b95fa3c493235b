//! What each session must at least, and can at most, have seen (invariant 5).
//!
//! Kept from what runners said and from what was given out, never from the engine's own word. The
//! lower bound counts what was released to an agent; the upper bound whatever a runner said.

use std::collections::{BTreeMap, BTreeSet};

use engine::{RecordId, SessionKey};
use proto::{DataClass, Label, LabelScope, RoleName};

/// Something that moves labels.
#[derive(Debug, Clone)]
pub(crate) enum Op {
    /// A session saw something.
    Saw { session: SessionKey, label: Label },
    /// One session's label was carried into another.
    Join {
        from: SessionKey,
        into: SessionKey,
        close: bool,
    },
    /// An operator lowered one; without a session, the role's own.
    Lower {
        role: RoleName,
        session: Option<SessionKey>,
        label: Label,
    },
    /// A copy was put back: whoever is known has seen all, and so have those to come.
    PutBack { roles: Vec<RoleName> },
}

/// What must have happened for an operation to survive a crash.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Proof {
    /// This send was released.
    Sent(u64),
    /// This record was durable.
    Recorded(RecordId),
    /// It counts anyway.
    Anyway,
}

/// One bound: its operations, and the state that they lead to.
#[derive(Debug, Default)]
struct Bound {
    ops: Vec<(Op, Proof)>,
    /// A rise lifts the role by all that its session has seen, not just by what is new.
    whole: bool,
    own: BTreeMap<SessionKey, Label>,
    /// Where closed ones went. The lower bound knows the last place only, the upper bound all.
    went: BTreeMap<SessionKey, BTreeSet<SessionKey>>,
    role: BTreeMap<RoleName, Label>,
    /// Where a role's sessions begin. When one began is not known: an operator's word on the role lowers the
    /// lower bound only.
    opening: BTreeMap<RoleName, Label>,
}

/// Both bounds.
#[derive(Debug)]
pub(crate) struct Labels {
    low: Bound,
    high: Bound,
}

impl Default for Labels {
    fn default() -> Self {
        let high = Bound {
            whole: true,
            ..Bound::default()
        };
        Self {
            low: Bound::default(),
            high,
        }
    }
}

impl Labels {
    /// Raises the lower bound: the send with this ticket lets a session see something.
    pub(crate) fn released(&mut self, session: &SessionKey, label: Label, ticket: u64) {
        let op = Op::Saw {
            session: session.clone(),
            label,
        };
        self.low.push(op, Proof::Sent(ticket));
    }

    /// Raises the upper bound of a session, and of those that it went into: a runner said this.
    pub(crate) fn said(&mut self, session: &SessionKey, label: Label) {
        let mut sessions = self.high.heirs(session);
        sessions.push(session.clone());
        for session in sessions {
            self.high.push(Op::Saw { session, label }, Proof::Anyway);
        }
    }

    /// A join was announced (lower bound) by a send, or recorded (upper bound).
    pub(crate) fn joined(&mut self, from: &SessionKey, into: &SessionKey, close: bool, by: Proof) {
        let op = Op::Join {
            from: from.clone(),
            into: into.clone(),
            close,
        };
        match by {
            Proof::Sent(_) => self.low.push(op, by),
            Proof::Recorded(_) | Proof::Anyway => self.high.push(op, Proof::Anyway),
        }
    }

    /// An operator's word was recorded.
    pub(crate) fn lowered(
        &mut self,
        role: &RoleName,
        session: Option<SessionKey>,
        label: Label,
        id: RecordId,
    ) {
        let op = Op::Lower {
            role: role.clone(),
            session,
            label,
        };
        self.low.push(op.clone(), Proof::Recorded(id));
        self.high.push(op, Proof::Recorded(id));
    }

    /// A copy was put back, and its record will be durable before anything is told.
    pub(crate) fn put_back<'a>(&mut self, roles: impl Iterator<Item = &'a RoleName>) {
        let op = Op::PutBack {
            roles: roles.cloned().collect(),
        };
        self.low.push(op.clone(), Proof::Anyway);
        self.high.push(op, Proof::Anyway);
    }

    /// The session that goes on where this one was closed.
    pub(crate) fn heir(&self, session: &SessionKey) -> Option<SessionKey> {
        self.low.heirs(session).pop()
    }

    /// Forgets what did not survive.
    pub(crate) fn crash(&mut self, survived: impl Fn(Proof) -> bool) {
        for bound in [&mut self.low, &mut self.high] {
            let ops = std::mem::take(&mut bound.ops);
            *bound = Bound {
                whole: bound.whole,
                ..Bound::default()
            };
            for (op, proof) in ops {
                if survived(proof) {
                    bound.push(op, proof);
                }
            }
        }
    }

    /// Every label that may decide now, least first: from the lower bound to the upper.
    pub(crate) fn range(&self, session: &SessionKey, scope: LabelScope) -> Vec<Label> {
        let low = self.low.deciding(session, scope);
        let high = self.high.deciding(session, scope).join(low);
        let mut labels = Vec::new();
        for class in DataClass::ALL {
            for untrusted in [false, true] {
                let label = Label { class, untrusted };
                if low.is_within(label) && label.is_within(high) {
                    labels.push(label);
                }
            }
        }
        labels
    }

    /// The least that the deciding label may be.
    pub(crate) fn low(&self, session: &SessionKey, scope: LabelScope) -> Label {
        self.low.deciding(session, scope)
    }

    /// The most that it can be.
    pub(crate) fn high(&self, session: &SessionKey, scope: LabelScope) -> Label {
        self.high
            .deciding(session, scope)
            .join(self.low(session, scope))
    }

    /// The least that a session's own label may be.
    pub(crate) fn low_own(&self, session: &SessionKey) -> Label {
        self.low.deciding(session, LabelScope::Session)
    }
}

impl Bound {
    fn push(&mut self, op: Op, proof: Proof) {
        match &op {
            Op::Saw { session, label } => self.raise(session, *label),
            Op::Join { from, into, close } => {
                let label = self.deciding(from, LabelScope::Session);
                self.raise(into, label);
                // What a closed name sees may raise where it went, too.
                let heirs = if self.whole {
                    self.heirs(into)
                } else {
                    Vec::new()
                };
                for heir in &heirs {
                    self.raise(heir, label);
                }
                if *close && from != into {
                    self.close(from, into, label);
                }
            }
            Op::Lower {
                session: Some(session),
                label,
                ..
            } => {
                self.own.insert(session.clone(), *label);
            }
            Op::Lower {
                session: None,
                role,
                label,
            } => {
                self.role.insert(role.clone(), *label);
                if let Some(opening) = self.opening.get_mut(role).filter(|_| !self.whole) {
                    *opening = opening.meet(*label);
                }
            }
            Op::PutBack { roles } => {
                for role in roles {
                    self.role.insert(role.clone(), Label::TOP);
                    self.opening.insert(role.clone(), Label::TOP);
                }
                // One that saw nothing may not be known to the copy: then it begins where all do.
                self.own.retain(|_, label| *label != Label::BOTTOM);
                for label in self.own.values_mut() {
                    *label = Label::TOP;
                }
            }
        }
        self.ops.push((op, proof));
    }

    fn raise(&mut self, session: &SessionKey, label: Label) {
        let opening = self.opening(session);
        let own = self.own.entry(session.clone()).or_insert(opening);
        *own = own.join(label);
        let role = self.role.entry(session.role.clone()).or_default();
        *role = role.join(if self.whole { *own } else { label });
    }

    /// What a name saw stays with it; where others had gone into it before it went elsewhere, the
    /// lower bound does not follow them.
    fn close(&mut self, from: &SessionKey, into: &SessionKey, label: Label) {
        let opening = self.opening(from);
        let own = self.own.entry(from.clone()).or_insert(opening);
        *own = own.join(label);
        if !self.whole {
            if self.heirs(into).contains(from) {
                self.went.remove(into);
            }
            if self.went.remove(from).is_some() {
                self.went.retain(|_, to| !to.contains(from));
            }
        }
        let places = self.went.entry(from.clone()).or_default();
        places.insert(into.clone());
    }

    fn opening(&self, session: &SessionKey) -> Label {
        let opening = self.opening.get(&session.role).copied();
        opening.unwrap_or_default()
    }

    fn heirs(&self, session: &SessionKey) -> Vec<SessionKey> {
        let mut heirs: Vec<SessionKey> = Vec::new();
        let mut looked = 0;
        let mut at = session.clone();
        loop {
            for next in self.went.get(&at).into_iter().flatten() {
                if next != session && !heirs.contains(next) {
                    heirs.push(next.clone());
                }
            }
            match heirs.get(looked) {
                Some(next) => at = next.clone(),
                None => return heirs,
            }
            looked += 1;
        }
    }

    fn deciding(&self, session: &SessionKey, scope: LabelScope) -> Label {
        if scope == LabelScope::Role {
            return self.role.get(&session.role).copied().unwrap_or_default();
        }
        let own = |key: &SessionKey| {
            let own = self.own.get(key).copied();
            own.unwrap_or_else(|| self.opening(key))
        };
        let heirs = self.heirs(session);
        let counted = if self.whole {
            heirs.len()
        } else {
            heirs.len().min(1)
        };
        // The last in the chain is the one that goes on.
        let heirs = heirs.iter().rev().take(counted);
        heirs.fold(own(session), |label, heir| label.join(own(heir)))
    }
}
