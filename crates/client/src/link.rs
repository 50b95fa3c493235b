//! One connection: the hello, the numbering of requests, and who waits for which reply.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use proto::frame::{DEFAULT_MAX_FRAME, MAX_MAX_FRAME};
use proto::{ControlReply, Envelope, Feature, Hello, Message, RoleKind, Welcome};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio::task::AbortHandle;

use crate::Error;
use crate::frames::{self, FrameReader};
use crate::slot::{Broken, Slot};

/// Frames that wait to be written; who sends more waits.
const FRAMES_WAITING: usize = 64;
/// Pushes that a late reader may still read; older ones are counted as missed.
const PUSHES_WAITING: usize = 256;
/// Envelopes that may come before the welcome: calls that waited for this runner, at most its `concurrency`.
const EARLY: usize = 65_536;
/// How long the broker may take to answer a hello.
const WELCOME_WITHIN: Duration = Duration::from_secs(10);
/// How an orderly end is told.
const HUNG_UP: &str = "the broker hung up";
/// Replies of a stream that a late reader may still read.
const STREAM_WAITING: usize = 1024;
/// Envelopes of one list.
const MAX_LIST: usize = 65_536;

/// What every connection starts with: the parties, and what the broker may begin by itself.
pub(crate) struct Opened {
    pub(crate) link: Arc<Link>,
    /// Tool requests and cancels, from the broker to a runner. The role's `concurrency` bounds them; were it
    /// the reader that did, a runner that makes an offer before it serves would never hear of its answer.
    pub(crate) requests: mpsc::UnboundedReceiver<Envelope>,
    /// What comes under id 0.
    pub(crate) pushes: broadcast::Receiver<Message>,
}

pub(crate) struct Link {
    path: PathBuf,
    welcome: Welcome,
    last_id: AtomicU64,
    out: mpsc::Sender<Bytes>,
    table: Arc<Mutex<Table>>,
    reader: AbortHandle,
}

struct Table {
    open: BTreeMap<u64, Open>,
    /// Gone once the connection is lost, so that its readers see the end.
    pushes: Option<broadcast::Sender<Message>>,
    lost: Option<String>,
}

enum Open {
    Call(Arc<Slot>),
    List(Vec<Message>, oneshot::Sender<Result<Vec<Message>, Broken>>),
    /// Replies without an end; a reader that is too slow counts those that it missed.
    Stream(mpsc::Sender<Result<Message, Broken>>, u64),
}

impl Link {
    /// Connects, says hello and waits for the welcome; the role must be of the kind `wanted`.
    pub(crate) async fn open(
        path: &Path,
        software: &str,
        wanted: RoleKind,
    ) -> Result<Opened, Error> {
        let stream = UnixStream::connect(path)
            .await
            .map_err(|cause| Error::Connect {
                path: path.to_owned(),
                cause,
            })?;
        let (read, mut write) = stream.into_split();
        // A call may come before the welcome, which says how large a frame may be.
        let mut reader = FrameReader::new(read, MAX_MAX_FRAME);
        let hello = Message::Hello(Hello {
            software: software.to_owned(),
            features: ["parts", "progress", "tools"].map(str::to_owned).to_vec(),
        });
        let hello = frames::write(1, true, &hello, DEFAULT_MAX_FRAME)?;
        let (welcome, early) = tokio::time::timeout(WELCOME_WITHIN, async {
            // Who is turned away may find the socket closed already; why is there to be read.
            let _ = write.write_all(&hello).await;
            welcome(path, &mut reader).await
        })
        .await
        .map_err(|_| Error::NoWelcome {
            path: path.to_owned(),
            seconds: WELCOME_WITHIN.as_secs(),
        })??;
        if welcome.role_kind != wanted {
            return Err(Error::WrongKind {
                path: path.to_owned(),
                role: welcome.role.to_string(),
                found: welcome.role_kind,
                wanted,
            });
        }
        let max_frame = usize::try_from(welcome.max_frame).unwrap_or(usize::MAX);
        reader.limit(max_frame);

        let (out, queue) = mpsc::channel(FRAMES_WAITING);
        let (taken_in, requests) = mpsc::unbounded_channel();
        let (pushed, pushes) = broadcast::channel(PUSHES_WAITING);
        let table = Arc::new(Mutex::new(Table {
            open: BTreeMap::new(),
            pushes: Some(pushed),
            lost: None,
        }));
        tokio::spawn(frames::write_all(write, queue));
        let taken = Arc::clone(&table);
        let reading = tokio::spawn(read_all(early, reader, taken, taken_in, max_frame));
        let link = Arc::new(Link {
            path: path.to_owned(),
            welcome,
            last_id: AtomicU64::new(1),
            out,
            table,
            reader: reading.abort_handle(),
        });
        Ok(Opened {
            link,
            requests,
            pushes,
        })
    }

    pub(crate) fn welcome(&self) -> &Welcome {
        &self.welcome
    }

    pub(crate) fn has(&self, feature: Feature) -> bool {
        self.welcome.features.contains(&feature)
    }

    pub(crate) fn max_frame(&self) -> usize {
        usize::try_from(self.welcome.max_frame).unwrap_or(usize::MAX)
    }

    /// Sends a request whose replies are a call's.
    pub(crate) async fn call(&self, msg: &Message) -> Result<(u64, Arc<Slot>), Error> {
        let slot = Arc::new(Slot::default());
        let id = self.start(msg, Open::Call(Arc::clone(&slot))).await?;
        Ok((id, slot))
    }

    /// Sends a request and waits for all of its replies: one, or a list in several envelopes.
    pub(crate) async fn ask(&self, msg: &Message) -> Result<Vec<Message>, Error> {
        let (answer, answered) = oneshot::channel();
        self.start(msg, Open::List(Vec::new(), answer)).await?;
        match answered.await {
            Ok(answer) => answer.map_err(|broken| self.error(broken)),
            Err(_) => Err(self.lost()),
        }
    }

    /// Sends a request whose replies do not end by themselves.
    pub(crate) async fn follow(
        &self,
        msg: &Message,
    ) -> Result<mpsc::Receiver<Result<Message, Broken>>, Error> {
        let (stream, replies) = mpsc::channel(STREAM_WAITING);
        self.start(msg, Open::Stream(stream, 0)).await?;
        Ok(replies)
    }

    /// Sends under an id that is already open, such as a runner's answers.
    pub(crate) async fn send(&self, id: u64, is_final: bool, msg: &Message) -> Result<(), Error> {
        let frame = frames::write(id, is_final, msg, self.max_frame())?;
        self.out.send(frame).await.map_err(|_| self.lost())
    }

    /// Waits until the writer has taken all that was sent, or has ended.
    pub(crate) async fn written(&self) {
        // Room for everything means that nothing waits; an error, that nobody writes any more.
        let _ = self.out.reserve_many(FRAMES_WAITING).await;
    }

    /// Forgets a request: what still comes for it is dropped.
    pub(crate) fn forget(&self, id: u64) {
        lock(&self.table).open.remove(&id);
    }

    pub(crate) fn subscribe(&self) -> Option<broadcast::Receiver<Message>> {
        lock(&self.table)
            .pushes
            .as_ref()
            .map(broadcast::Sender::subscribe)
    }

    pub(crate) fn lost(&self) -> Error {
        let reason = lock(&self.table).lost.clone();
        self.error(Broken::Lost(reason.unwrap_or_else(|| HUNG_UP.to_owned())))
    }

    /// How the connection ended: in order, between two frames, or not.
    pub(crate) fn ended(&self) -> Result<(), Error> {
        let reason = lock(&self.table).lost.clone();
        if reason.as_deref() == Some(HUNG_UP) {
            Ok(())
        } else {
            Err(self.lost())
        }
    }

    pub(crate) fn error(&self, broken: Broken) -> Error {
        match broken {
            Broken::Lost(reason) => Error::Lost {
                path: self.path.clone(),
                reason,
            },
            Broken::Rejected(code, detail) => frames::rejected(code, detail),
            Broken::Misbehaved(detail) => Error::misbehaved(detail),
        }
    }

    async fn start(&self, msg: &Message, open: Open) -> Result<u64, Error> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let frame = frames::write(id, true, msg, self.max_frame())?;
        {
            let mut table = lock(&self.table);
            if table.lost.is_some() {
                drop(table);
                return Err(self.lost());
            }
            table.open.insert(id, open);
        }
        if self.out.send(frame).await.is_err() {
            self.forget(id);
            return Err(self.lost());
        }
        Ok(id)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // The writer ends by itself once it has written what waits.
        self.reader.abort();
    }
}

/// Reads up to the welcome. What came before it comes second: pushes, and the calls that waited for a runner,
/// which the broker sends to it as soon as it is there.
async fn welcome(path: &Path, reader: &mut FrameReader) -> Result<(Welcome, Vec<Envelope>), Error> {
    let mut early = Vec::new();
    loop {
        let envelope = match reader.next().await {
            Ok(Some(envelope)) => envelope,
            Ok(None) | Err(_) if !reader.heard() => return Err(Error::not_admitted(path)),
            Ok(None) => return Err(Error::misbehaved("no welcome before it hung up")),
            Err(reason) => return Err(Error::misbehaved(reason)),
        };
        let kind = envelope.msg.kind();
        if let Message::Welcome(welcome) = envelope.msg {
            return Ok((welcome, early));
        }
        if let Message::Error(error) = envelope.msg {
            return Err(frames::rejected(error.code, error.detail));
        }
        let asked = matches!(envelope.msg, Message::ToolRequest(_) | Message::Cancel(_));
        if (envelope.id != 0 && !asked) || early.len() >= EARLY {
            return Err(Error::misbehaved(format!("`{kind}` before the welcome")));
        }
        early.push(envelope);
    }
}

async fn read_all(
    early: Vec<Envelope>,
    mut reader: FrameReader,
    table: Arc<Mutex<Table>>,
    requests: mpsc::UnboundedSender<Envelope>,
    max_frame: usize,
) {
    let mut early = early.into_iter();
    let reason = loop {
        let next = match early.next() {
            Some(envelope) => Ok(Some(envelope)),
            None => reader.next().await,
        };
        match next {
            Ok(Some(envelope)) => {
                if matches!(envelope.msg, Message::ToolRequest(_) | Message::Cancel(_)) {
                    // Whoever does not serve has dropped the receiver, and gets no requests.
                    let _ = requests.send(envelope);
                } else if let Some(reason) = deliver(&table, envelope, max_frame) {
                    break reason;
                }
            }
            Ok(None) => break HUNG_UP.to_owned(),
            Err(reason) => break reason,
        }
    };
    // Before `requests` is dropped: who sees its end finds the reason.
    let mut table = lock(&table);
    table.pushes = None;
    table.lost = Some(reason.clone());
    for (_, open) in std::mem::take(&mut table.open) {
        open.fail(Broken::Lost(reason.clone()));
    }
}

/// Gives an envelope to who waits for it. `Some` if the connection cannot go on.
fn deliver(table: &Mutex<Table>, envelope: Envelope, max_frame: usize) -> Option<String> {
    let mut table = lock(table);
    let (id, is_final) = (envelope.id, envelope.r#final);
    if id == 0 {
        if let Message::Error(error) = envelope.msg {
            return Some(format!("{:?}: {}", error.code, error.detail));
        }
        if let Some(pushes) = &table.pushes {
            // Nobody needs to listen.
            let _ = pushes.send(envelope.msg);
        }
        return None;
    }
    if let Message::Error(error) = envelope.msg {
        if let Some(open) = table.open.remove(&id) {
            open.fail(Broken::Rejected(error.code, error.detail));
        }
        return None;
    }
    // Replies to what was forgotten are dropped.
    let open = table.open.get_mut(&id)?;
    let done = match (open, envelope.msg) {
        (Open::Call(slot), Message::ToolResponse(response)) => {
            slot.respond(response, is_final, max_frame)
        }
        (Open::Call(slot), Message::Progress(progress)) => {
            slot.progress(progress);
            false
        }
        (Open::Call(slot), _) => {
            slot.fail(Broken::Misbehaved("a reply of the wrong kind"));
            true
        }
        (Open::Stream(stream, missed), msg) => {
            follow(stream, missed, msg);
            is_final || stream.is_closed()
        }
        (Open::List(list, _), msg) => {
            list.push(msg);
            is_final || list.len() >= MAX_LIST
        }
    };
    if !done {
        return None;
    }
    if let Some(Open::List(list, answer)) = table.open.remove(&id) {
        // Nobody may wait any more.
        let _ = answer.send(if is_final {
            Ok(list)
        } else {
            Err(Broken::Misbehaved("a list that does not end"))
        });
    }
    None
}

/// Gives a stream's reader one more reply, with what it missed before, here and at the broker.
fn follow(stream: &mpsc::Sender<Result<Message, Broken>>, missed: &mut u64, mut msg: Message) {
    if let Message::ControlReply(ControlReply::Event { event }) = &mut msg {
        event.missed = event.missed.saturating_add(*missed);
        *missed = event.missed;
    }
    match stream.try_send(Ok(msg)) {
        Ok(()) => *missed = 0,
        Err(_) => *missed = missed.saturating_add(1),
    }
}

impl Open {
    fn fail(self, broken: Broken) {
        match self {
            Open::Call(slot) => slot.fail(broken),
            // Nobody may wait any more.
            Open::List(_, answer) => drop(answer.send(Err(broken))),
            Open::Stream(stream, _) => drop(stream.try_send(Err(broken))),
        }
    }
}

fn lock(table: &Mutex<Table>) -> MutexGuard<'_, Table> {
    // Nothing here leaves it half changed.
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use proto::control::EventStatus;

    use super::*;

    #[test]
    fn what_a_late_reader_missed_is_counted_whoever_left_it_out() {
        let event = |missed: u64| -> Message {
            let text = String::new;
            let event = EventStatus {
                at: proto::Timestamp::default(),
                event: "denied".to_owned(),
                role: text(),
                session: text(),
                call: proto::CallId(0),
                tool: text(),
                decision: text(),
                reason: text(),
                grant: text(),
                approval: text(),
                elapsed_us: 0,
                missed,
            };
            Message::ControlReply(ControlReply::Event { event })
        };
        let (stream, mut replies) = mpsc::channel(1);
        let mut missed = 0;
        // The second and the third find no room; the broker left out five before the second.
        for left_out in [0, 5, 0] {
            follow(&stream, &mut missed, event(left_out));
        }
        let mut next = || match replies.try_recv() {
            Ok(Ok(Message::ControlReply(ControlReply::Event { event }))) => event.missed,
            _ => panic!("no event"),
        };
        assert_eq!(next(), 0);
        follow(&stream, &mut missed, event(2));
        assert_eq!(next(), 9);
    }
}
