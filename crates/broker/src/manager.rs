//! What the service manager is told (sd_notify(3)): ready, reloading, stopping, a line of numbers, and
//! that the reactor still turns. Everything is said by the reactor itself and in order: a reactor that
//! stands still feeds no watchdog.
//!
//! Nothing here waits: while the manager's queue is full, messages wait here, few of them, and are sent
//! in a later turn. The environment is left as it is: rolebrokerd starts no other process.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use sd_notify::NotifyState;
use tokio::time::Instant;

/// The least time between two lines of numbers.
pub const STATUS_EVERY: Duration = Duration::from_secs(5);
/// The longest line, in characters.
pub const MAX_STATUS: usize = 400;
/// Messages that may wait for the manager; those after them are not sent. Signs of life and lines of
/// numbers take no more than half of it.
pub const MAX_WAITING: usize = 256;
/// How soon a message that waits is tried again.
const AGAIN: Duration = Duration::from_millis(100);
/// Bounds of the time between two signs of life, whatever the manager asks for.
const WATCHDOG_EVERY: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(3600));

/// The service manager, if there is one that wants to be told.
#[derive(Debug, Default)]
pub struct Manager {
    link: Option<Link>,
}

#[derive(Debug)]
struct Link {
    socket: UnixDatagram,
    waiting: VecDeque<String>,
    /// How often the watchdog is fed, and when next.
    watchdog: Option<(Duration, Instant)>,
    /// Something has happened since the last line of numbers.
    stale: bool,
    next_status: Instant,
    told: String,
    stopping: bool,
}

impl Manager {
    /// The one that the environment names. Where it names one that does not answer, that is logged, and
    /// the broker runs as if there were none.
    pub fn from_env() -> Self {
        let Some(name) = std::env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else {
            return Self::default();
        };
        match connect(&name) {
            Ok(socket) => Self {
                link: Some(Link::new(
                    socket,
                    sd_notify::watchdog_enabled(),
                    Instant::now(),
                )),
            },
            Err(error) => {
                tracing::warn!(
                    event = "manager_not_told",
                    address = %name.display(),
                    detail = %error
                );
                Self::default()
            }
        }
    }

    /// Sockets and ruleset are there, or a reload is over.
    pub fn ready(&mut self, status: &str) {
        if !self.is_stopping() {
            self.say(&[NotifyState::Ready], Some(status));
        }
    }

    /// A configuration is being loaded.
    pub fn reloading(&mut self) {
        if self.is_stopping() {
            return;
        }
        match NotifyState::monotonic_usec_now() {
            Ok(now) => self.say(&[NotifyState::Reloading, now], None),
            // A reload without its time would end a service of the type notify-reload.
            Err(error) => tracing::warn!(event = "manager_not_told", detail = %error),
        }
    }

    /// No call is taken any more; the end comes within `patience`. Said once.
    pub fn stopping(&mut self, patience: Duration, status: &str) {
        let micros = u32::try_from(patience.as_micros()).unwrap_or(u32::MAX);
        let extend = NotifyState::ExtendTimeoutUsec(micros);
        if !self.is_stopping() {
            self.say(&[NotifyState::Stopping, extend], Some(status));
        }
        if let Some(link) = &mut self.link {
            link.stopping = true;
        }
    }

    /// Whether nothing more is to be said but numbers: it stops, or there is nobody to tell.
    pub fn is_stopping(&self) -> bool {
        self.link.as_ref().is_none_or(|link| link.stopping)
    }

    /// What the line of numbers says may have changed.
    pub fn touch(&mut self) {
        if let Some(link) = &mut self.link {
            link.stale = true;
        }
    }

    /// When [`Manager::turn`] wants to be called next.
    pub fn due(&self, now: Instant) -> Option<Instant> {
        let link = self.link.as_ref()?;
        let watchdog = link.watchdog.map(|(_, next)| next);
        let status = link.stale.then_some(link.next_status);
        let again = (!link.waiting.is_empty()).then(|| now + AGAIN);
        watchdog.into_iter().chain(status).chain(again).min()
    }

    /// Says what is due. `status` is asked only if it is needed.
    pub fn turn(&mut self, now: Instant, status: impl FnOnce() -> String) {
        let Some(link) = &mut self.link else {
            return;
        };
        if let Some((every, next)) = &mut link.watchdog
            && *next <= now
        {
            *next = now + *every;
            if link.waiting.len() < MAX_WAITING / 2 {
                link.push(&[NotifyState::Watchdog], None);
            }
        }
        if link.stale && link.next_status <= now {
            link.stale = false;
            link.next_status = now + STATUS_EVERY;
            let status = one_line(&status());
            if status != link.told && link.waiting.len() < MAX_WAITING / 2 {
                link.push(&[], Some(&status));
            }
        }
        link.flush();
    }

    fn say(&mut self, states: &[NotifyState<'_>], status: Option<&str>) {
        if let Some(link) = &mut self.link {
            link.push(states, status.map(one_line).as_deref());
            link.flush();
        }
    }
}

impl Link {
    fn new(socket: UnixDatagram, watchdog: Option<Duration>, now: Instant) -> Self {
        let (least, most) = WATCHDOG_EVERY;
        Self {
            socket,
            waiting: VecDeque::new(),
            // Half of what the manager allows, so that one late turn is no death.
            watchdog: watchdog
                .filter(|allowed| !allowed.is_zero())
                .map(|allowed| ((allowed / 2).clamp(least, most), now)),
            stale: false,
            next_status: now,
            told: String::new(),
            stopping: false,
        }
    }

    /// One message.
    fn push(&mut self, states: &[NotifyState<'_>], status: Option<&str>) {
        if self.waiting.len() >= MAX_WAITING {
            return;
        }
        let mut lines: Vec<String> = states.iter().map(ToString::to_string).collect();
        if let Some(status) = status {
            lines.push(NotifyState::Status(status).to_string());
            status.clone_into(&mut self.told);
        }
        lines.push(String::new());
        self.waiting.push_back(lines.join("\n"));
    }

    fn flush(&mut self) {
        while let Some(message) = self.waiting.front() {
            match self.socket.send(message.as_bytes()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Ok(_) => {}
                Err(error) => tracing::debug!(event = "manager_not_told", detail = %error),
            }
            self.waiting.pop_front();
        }
    }
}

/// A name that begins with `@` is in the abstract namespace.
fn connect(name: &OsStr) -> io::Result<UnixDatagram> {
    let address = match name.as_bytes() {
        [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest)?,
        _ => SocketAddr::from_pathname(name)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.connect_addr(&address)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// What follows a line's end would be another word to the manager.
fn one_line(text: &str) -> String {
    text.chars()
        .take(MAX_STATUS)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(watchdog: Option<Duration>, now: Instant) -> (Manager, UnixDatagram) {
        let (ours, theirs) = UnixDatagram::pair().expect("a pair");
        ours.set_nonblocking(true).expect("nonblocking");
        theirs.set_nonblocking(true).expect("nonblocking");
        let link = Some(Link::new(ours, watchdog, now));
        (Manager { link }, theirs)
    }

    fn heard(theirs: &UnixDatagram) -> Vec<String> {
        let mut messages = Vec::new();
        let mut buffer = [0; 4096];
        while let Ok(length) = theirs.recv(&mut buffer) {
            messages.push(String::from_utf8_lossy(&buffer[..length]).into_owned());
        }
        messages
    }

    #[test]
    fn a_status_cannot_say_anything_else() {
        let (mut manager, theirs) = pair(None, Instant::now());
        manager.ready("refused: a\nWATCHDOG=trigger");
        assert_eq!(
            heard(&theirs),
            ["READY=1\nSTATUS=refused: a WATCHDOG=trigger\n"]
        );
    }

    #[test]
    fn numbers_are_told_at_a_bounded_rate_and_only_if_they_changed() {
        let start = Instant::now();
        let (mut manager, theirs) = pair(None, start);
        assert_eq!(manager.due(start), None);
        for calls in 0..1000 {
            manager.touch();
            manager.turn(start, || format!("{calls} calls"));
        }
        assert_eq!(heard(&theirs), ["STATUS=0 calls\n"]);
        let next = start + STATUS_EVERY;
        assert_eq!(manager.due(start), Some(next));
        manager.turn(next, || "999 calls".to_owned());
        assert_eq!(heard(&theirs), ["STATUS=999 calls\n"]);
        assert_eq!(manager.due(next), None);
        manager.touch();
        manager.turn(next + STATUS_EVERY, || "999 calls".to_owned());
        assert_eq!(heard(&theirs), [""; 0]);
    }

    #[test]
    fn the_watchdog_is_fed_at_half_of_its_time_and_in_turns_only() {
        let mut now = Instant::now();
        let (mut manager, theirs) = pair(Some(Duration::from_secs(10)), now);
        for _ in 0..3 {
            manager.turn(now, String::new);
            manager.turn(now, String::new);
            assert_eq!(heard(&theirs), ["WATCHDOG=1\n"]);
            let next = now + Duration::from_secs(5);
            assert_eq!(manager.due(now), Some(next));
            now = next;
        }
    }

    #[test]
    fn a_watchdog_of_no_time_or_of_all_time_is_bounded() {
        let now = Instant::now();
        let (manager, _theirs) = pair(Some(Duration::ZERO), now);
        assert_eq!(manager.due(now), None);
        for (asked, every) in [
            (Duration::from_nanos(1), WATCHDOG_EVERY.0),
            (Duration::MAX, WATCHDOG_EVERY.1),
        ] {
            let (mut manager, _theirs) = pair(Some(asked), now);
            manager.turn(now, String::new);
            assert_eq!(manager.due(now), Some(now + every));
        }
    }

    #[test]
    fn what_a_busy_manager_does_not_take_waits_in_its_order() {
        let now = Instant::now();
        let (mut manager, theirs) = pair(None, now);
        let mut sent = 0;
        while manager.link.as_ref().is_some_and(|l| l.waiting.is_empty()) {
            manager.reloading();
            sent += 1;
        }
        manager.ready("taken");
        assert!(manager.due(now).is_some());
        let mut all = heard(&theirs);
        manager.turn(now, String::new);
        all.extend(heard(&theirs));
        assert_eq!(all.len(), sent + 1);
        assert!(all[sent - 1].starts_with("RELOADING=1\nMONOTONIC_USEC="));
        assert_eq!(all[sent], "READY=1\nSTATUS=taken\n");
        assert_eq!(manager.due(now), None);
    }

    #[test]
    fn that_it_stops_is_said_once() {
        let (mut manager, theirs) = pair(None, Instant::now());
        manager.stopping(Duration::from_secs(65), "draining");
        manager.stopping(Duration::from_secs(65), "draining");
        assert_eq!(
            heard(&theirs),
            ["STOPPING=1\nEXTEND_TIMEOUT_USEC=65000000\nSTATUS=draining\n"]
        );
    }
}
