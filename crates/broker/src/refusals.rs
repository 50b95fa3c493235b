//! Refused peers of one role: each is counted, and at most one line a second is logged.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use proto::RoleName;
use tokio::time::Instant;

/// The least time between two lines about one role.
pub const LINE_EVERY: Duration = Duration::from_secs(1);

/// Counts refusals.
#[derive(Debug)]
pub struct Refusals {
    role: RoleName,
    next_line: Cell<Option<Instant>>,
    waiting: Cell<u64>,
    last: RefCell<Option<(&'static str, Option<u32>)>>,
    total: Cell<u64>,
}

impl Refusals {
    /// None so far.
    pub fn of(role: RoleName) -> Self {
        Self {
            role,
            next_line: Cell::new(None),
            waiting: Cell::new(0),
            last: RefCell::new(None),
            total: Cell::new(0),
        }
    }

    /// Counts one, and sees to it that it is logged within a second.
    pub fn count(self: &Rc<Self>, reason: &'static str, uid: Option<u32>) {
        self.total.set(self.total.get() + 1);
        self.waiting.set(self.waiting.get() + 1);
        *self.last.borrow_mut() = Some((reason, uid));
        let now = Instant::now();
        match self.next_line.get() {
            // Somebody waits already to write the next line.
            Some(at) if at > now && self.waiting.get() > 1 => {}
            Some(at) if at > now => {
                let this = Rc::clone(self);
                tokio::task::spawn_local(async move {
                    tokio::time::sleep_until(at).await;
                    this.line();
                });
            }
            _ => self.line(),
        }
    }

    fn line(&self) {
        self.next_line.set(Some(Instant::now() + LINE_EVERY));
        let count = self.waiting.take();
        if let Some((reason, uid)) = self.last.take() {
            tracing::warn!(
                event = "peer_refused",
                role = self.role.as_str(),
                reason,
                uid = uid.map(u64::from),
                count,
                total = self.total.get()
            );
        }
    }
}
