//! Who is let in: every peer is looked at once, at accept, by what the kernel says of it (DESIGN 5).
//! Connections are counted by role and in all, so that one role cannot use up the others' files.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use policy::{Config, Role};
use proto::RoleName;
use tokio::net::{UnixListener, UnixStream};

use crate::decoding::Share;
use crate::inbox::{Accepted, Inbox, Input};
use crate::refusals::Refusals;
use crate::users::{Admission, Sides};

/// Connections in all, fewer if the process may not open as many files.
pub const MAX_CONNECTIONS: usize = 4096;
/// Connections of a role over its quota that may be open while they are told so and closed.
pub const MAX_CLOSING: usize = 16;
/// Files that are kept for the broker's own use.
pub const RESERVED_FILES: u64 = 64;
/// How long accepting rests after the system refused.
const ACCEPT_REST: Duration = Duration::from_millis(100);

/// What all sockets share.
#[derive(Debug)]
pub struct Lobby {
    inbox: Rc<Inbox>,
    admission: RefCell<Arc<Admission>>,
    sides: RefCell<Sides>,
    rooms: RefCell<BTreeMap<RoleName, Rc<Room>>>,
    open: Cell<usize>,
    max_open: usize,
}

/// What one role's connections share.
#[derive(Debug)]
pub struct Room {
    /// Whose they are.
    pub role: RoleName,
    open: Cell<usize>,
    max_open: Cell<usize>,
    share: RefCell<Share>,
    refusals: Rc<Refusals>,
}

impl Room {
    /// The role's share of the decoding.
    pub fn share(&self) -> Share {
        self.share.borrow().clone()
    }
}

/// A place among a role's connections; free again when it is dropped.
#[derive(Debug)]
pub struct Slot {
    /// The role's room.
    pub room: Rc<Room>,
    lobby: Rc<Lobby>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.room.open.set(self.room.open.get() - 1);
        self.lobby.open.set(self.lobby.open.get() - 1);
    }
}

impl Lobby {
    /// A lobby with a room for every role.
    pub fn new(inbox: Rc<Inbox>, config: &Config, admission: Arc<Admission>) -> Rc<Self> {
        let lobby = Rc::new(Self {
            inbox,
            admission: RefCell::default(),
            sides: RefCell::default(),
            rooms: RefCell::default(),
            open: Cell::new(0),
            max_open: connections_at_most(),
        });
        lobby.configure(config, admission, std::iter::empty());
        lobby
    }

    /// Takes a new configuration. `present` are the peers that stay: the sides of the others are
    /// forgotten.
    pub fn configure(
        &self,
        config: &Config,
        admission: Arc<Admission>,
        present: impl Iterator<Item = (RoleName, u32, u32)>,
    ) {
        let mut sides = Sides::default();
        for (role, uid, gid) in present {
            if let Ok(side) = admission.admit(&role, uid, gid) {
                // Whoever is present is on one side only, or both are allowed.
                let _ = sides.note(uid, side);
            }
        }
        *self.sides.borrow_mut() = sides;
        *self.admission.borrow_mut() = admission;
        let mut rooms = self.rooms.borrow_mut();
        rooms.retain(|role, _| config.roles.contains_key(role));
        for (name, role) in &config.roles {
            match rooms.get(name) {
                Some(room) => room.configure(role, config.settings.max_frame),
                None => {
                    let room = Rc::new(Room::new(role, config.settings.max_frame));
                    rooms.insert(name.clone(), room);
                }
            }
        }
        let wanted: u64 = config.roles.values().map(|r| r.quota.connections).sum();
        if wanted > self.max_open as u64 {
            tracing::warn!(
                event = "connections_overcommitted",
                detail = "the roles' quotas of connections add up to more than may be open",
                wanted,
                limit = self.max_open as u64
            );
        }
    }

    /// Whether a peer that is already in still fits.
    pub fn still_admits(&self, role: &RoleName, uid: u32, gid: u32) -> bool {
        self.admission.borrow().admit(role, uid, gid).is_ok()
    }

    /// Accepts on a role's socket for as long as it is polled.
    pub async fn accept(self: Rc<Self>, role: RoleName, listener: UnixListener) {
        let Some(room) = self.rooms.borrow().get(&role).cloned() else {
            return;
        };
        loop {
            match listener.accept().await {
                Ok((stream, _)) => self.meet(&room, stream),
                Err(error) => {
                    room.refusals.count("accept_failed", None);
                    tracing::debug!(event = "accept_failed", role = role.as_str(), detail = %error);
                    tokio::time::sleep(ACCEPT_REST).await;
                }
            }
            tokio::task::consume_budget().await;
        }
    }

    /// Lets a peer in, or closes its connection at once.
    fn meet(self: &Rc<Self>, room: &Rc<Room>, stream: UnixStream) {
        let Ok(peer) = stream.peer_cred() else {
            return room.refusals.count("no_credentials", None);
        };
        let (uid, gid) = (peer.uid(), peer.gid());
        let admission = self.admission.borrow();
        let side = match admission.admit(&room.role, uid, gid) {
            Ok(side) => side,
            Err(refusal) => return room.refusals.count(refusal.as_str(), Some(uid)),
        };
        if !admission.shared_allowed() && !self.sides.borrow_mut().note(uid, side) {
            return room.refusals.count("both_sides", Some(uid));
        }
        if room.open.get() >= room.max_open.get() || self.open.get() >= self.max_open {
            return room.refusals.count("too_many_connections", Some(uid));
        }
        room.open.set(room.open.get() + 1);
        self.open.set(self.open.get() + 1);
        let slot = Slot {
            room: Rc::clone(room),
            lobby: Rc::clone(self),
        };
        self.inbox.push(Input::Accepted(Accepted {
            stream,
            slot,
            uid,
            gid,
        }));
    }
}

impl Room {
    fn new(role: &Role, max_frame: u64) -> Self {
        let room = Self {
            role: role.name.clone(),
            open: Cell::new(0),
            max_open: Cell::new(0),
            share: RefCell::new(Share::of_bytes(0)),
            refusals: Rc::new(Refusals::of(role.name.clone())),
        };
        room.configure(role, max_frame);
        room
    }

    /// The engine holds the quota and says so to whoever is over it; this only bounds how many are
    /// being told.
    fn configure(&self, role: &Role, max_frame: u64) {
        let quota = usize::try_from(role.quota.connections).unwrap_or(usize::MAX);
        self.max_open.set(quota.saturating_add(MAX_CLOSING));
        *self.share.borrow_mut() = Share::of_bytes(role.quota.waiting_bytes.max(max_frame));
    }
}

/// Lets the process open as many files as it may, and says how many connections that allows.
fn connections_at_most() -> usize {
    let wanted = MAX_CONNECTIONS as u64 + RESERVED_FILES;
    let allowed = match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok((soft, hard)) if soft < wanted => {
            let raised = wanted.min(hard);
            match setrlimit(Resource::RLIMIT_NOFILE, raised, hard) {
                Ok(()) => raised,
                Err(_) => soft,
            }
        }
        Ok((soft, _)) => soft,
        Err(_) => wanted,
    };
    let left = allowed.saturating_sub(RESERVED_FILES).max(1);
    usize::try_from(left).map_or(MAX_CONNECTIONS, |left| left.min(MAX_CONNECTIONS))
}
