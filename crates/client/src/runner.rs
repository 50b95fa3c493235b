//! A runner's side: requests come in, the handler answers, many at a time.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use proto::frame::content_that_always_fits;
use proto::{
    CallId, DataClass, Envelope, Feature, Label, Message, Offer, Offered, Progress, RoleKind,
    SessionId, ToolRequest, ToolResponse, ToolSpec, Welcome,
};
use tokio::sync::mpsc;
use tokio::task::{Id, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::link::{Link, Opened};

const SOFTWARE: &str = concat!("rolebroker-client ", env!("CARGO_PKG_VERSION"));
/// Content of one piece of an answer, in bytes; a longer one is sent in several.
const PIECE: usize = 256 << 10;
/// Requests that run at a time. The broker sends at most the role's `concurrency`.
const MAX_RUNNING: usize = 4096;
/// How long handlers may take to end once they were told to stop.
const STOP_GRACE: Duration = Duration::from_secs(8);
/// How long handlers may take to end after the broker has gone.
const HANG_UP_GRACE: Duration = Duration::from_secs(5);

/// What a tool gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The content.
    pub content: String,
    /// How confidential it is, and whether a stranger could have written it. The broker joins the tool's floor
    /// to it: a runner can raise, never lower.
    pub label: Label,
}

impl Answer {
    /// An answer whose content is of `class` and by nobody strange.
    pub fn trusted(content: impl Into<String>, class: DataClass) -> Self {
        Self {
            content: content.into(),
            label: Label {
                class,
                untrusted: false,
            },
        }
    }

    /// An answer whose content is of `class` and could have been written by a stranger.
    pub fn untrusted(content: impl Into<String>, class: DataClass) -> Self {
        Self {
            content: content.into(),
            label: Label {
                class,
                untrusted: true,
            },
        }
    }
}

/// Why a tool gave nothing. The agent reads it: no content, no secret in it. Its label is the tool's floor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure(pub String);

impl<T: Into<String>> From<T> for Failure {
    fn from(text: T) -> Self {
        Failure(text.into())
    }
}

/// One request, as the handler gets it.
pub struct Request {
    /// The agent's session. Key nothing by it: it says which conversation asks, not who.
    pub session: SessionId,
    /// The call's number there.
    pub call: CallId,
    /// Which tool.
    pub tool: String,
    /// A JSON object as text, not checked against any schema.
    pub arguments: String,
    id: u64,
    link: Arc<Link>,
    cancelled: CancellationToken,
    /// Pieces that wait for the end, where the broker does not take parts.
    kept: Arc<Mutex<(String, Label)>>,
}

impl Request {
    /// Resolves when the call was cancelled or the broker has gone. What the handler returns then is still the
    /// call's answer, if it comes soon.
    pub async fn cancelled(&self) {
        self.cancelled.cancelled().await;
    }

    /// Whether the call was cancelled or the broker has gone.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.is_cancelled()
    }

    /// Tells how far the call is: `done` of `total` (0: unknown), and a word for a person. Must grow.
    /// It also keeps a long call from timing out.
    ///
    /// # Errors
    /// [`Error::Lost`] when the broker has gone.
    pub async fn progress(
        &self,
        done: u64,
        total: u64,
        note: impl Into<String>,
    ) -> Result<(), Error> {
        if !self.link.has(Feature::Progress) {
            return Ok(());
        }
        let progress = Message::Progress(Progress {
            done,
            total,
            note: note.into(),
        });
        self.link.send(self.id, false, &progress).await
    }

    /// Sends a piece of the answer ahead. The answer is the pieces and what the handler returns, joined.
    ///
    /// # Errors
    /// [`Error::Lost`] when the broker has gone.
    pub async fn part(&self, content: impl Into<String>, label: Label) -> Result<(), Error> {
        let content = content.into();
        if self.link.has(Feature::Parts) {
            let (link, cancelled) = (&self.link, &self.cancelled);
            return send_pieces(link, self.id, &content, label, false, cancelled).await;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.0.push_str(&content);
        kept.1 = kept.1.join(label);
        Ok(())
    }
}

/// Serves until the broker hangs up: what the configuration declares for this role, or, with `offer`, just that.
/// The handler runs for many requests at a time, and should look at [`Request::cancelled`] if it takes long.
///
/// ```
/// # mod fake { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/fake.rs")); }
/// use client::{Answer, DataClass, serve};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), client::Error> {
/// # let broker = fake::caller(1);
/// # let socket = broker.path();
/// serve(socket, None, |request| async move {
///     match request.tool.as_str() {
///         "shout" => Ok(Answer::trusted(request.arguments.to_uppercase(), DataClass::Public)),
///         other => Err(format!("there is no tool {other} here").into()),
///     }
/// })
/// .await
/// # }
/// ```
///
/// # Errors
/// Those of [`crate::Client::connect`], [`Error::OfferRefused`], and [`Error::Lost`] when the connection broke.
pub async fn serve<H, F>(
    path: impl AsRef<Path>,
    offer: Option<Vec<ToolSpec>>,
    handler: H,
) -> Result<(), Error>
where
    H: Fn(Request) -> F,
    F: Future<Output = Result<Answer, Failure>> + Send + 'static,
{
    let runner = Runner::connect(path).await?;
    if let Some(tools) = offer {
        let offered = runner.offers().offer(tools).await?;
        if offered.accepted.is_empty() && offered.held.is_empty() && !offered.refused.is_empty() {
            let reasons = offered
                .refused
                .iter()
                .map(|tool| format!("{}: {}", tool.name, tool.reason));
            return Err(Error::OfferRefused {
                reasons: reasons.collect::<Vec<_>>().join("; "),
            });
        }
    }
    runner.serve(handler).await
}

/// A connection to a runner role's socket, for who wants more than [`serve`].
pub struct Runner {
    link: Arc<Link>,
    requests: mpsc::UnboundedReceiver<Envelope>,
}

/// Tells the broker about this connection's tools, also while it serves.
#[derive(Clone)]
pub struct Offers {
    link: Arc<Link>,
}

impl Offers {
    /// Replaces the whole list of this connection's tools.
    ///
    /// # Errors
    /// [`Error::Rejected`] with the broker's reason, and [`Error::Lost`].
    pub async fn offer(&self, tools: Vec<ToolSpec>) -> Result<Offered, Error> {
        let mut replies = self.link.ask(&Message::Offer(Offer { tools })).await?;
        match replies.pop() {
            Some(Message::Offered(offered)) => Ok(offered),
            _ => Err(Error::misbehaved("no `offered`")),
        }
    }
}

impl Runner {
    /// Connects to a runner role's socket.
    ///
    /// # Errors
    /// As [`crate::Client::connect`].
    pub async fn connect(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::connect_as(path, SOFTWARE).await
    }

    /// As [`Self::connect`], with a name and version of one's own for the broker's log.
    ///
    /// # Errors
    /// As [`crate::Client::connect`].
    pub async fn connect_as(path: impl AsRef<Path>, software: &str) -> Result<Self, Error> {
        let Opened { link, requests, .. } =
            Link::open(path.as_ref(), software, RoleKind::Runner).await?;
        Ok(Self { link, requests })
    }

    /// What the broker said of this role and its limits.
    pub fn welcome(&self) -> &Welcome {
        self.link.welcome()
    }

    /// A handle to offer tools with, while serving too.
    pub fn offers(&self) -> Offers {
        Offers {
            link: Arc::clone(&self.link),
        }
    }

    /// Serves until the broker hangs up.
    ///
    /// # Errors
    /// [`Error::Lost`] when the connection broke.
    pub async fn serve<H, F>(self, handler: H) -> Result<(), Error>
    where
        H: Fn(Request) -> F,
        F: Future<Output = Result<Answer, Failure>> + Send + 'static,
    {
        self.serve_until(std::future::pending(), handler).await
    }

    /// As [`Self::serve`], and until `stop` resolves: then what runs is cancelled, its answers are sent, and what
    /// still comes is refused. Handlers that do not end within a few seconds are broken off.
    ///
    /// # Errors
    /// [`Error::Lost`] when the connection broke before that.
    pub async fn serve_until<H, F>(
        mut self,
        stop: impl Future<Output = ()>,
        handler: H,
    ) -> Result<(), Error>
    where
        H: Fn(Request) -> F,
        F: Future<Output = Result<Answer, Failure>> + Send + 'static,
    {
        let mut stop = std::pin::pin!(stop);
        let mut stopping: Option<tokio::time::Instant> = None;
        let mut running: JoinSet<u64> = JoinSet::new();
        let mut open: BTreeMap<u64, CancellationToken> = BTreeMap::new();
        let mut ids: BTreeMap<Id, u64> = BTreeMap::new();
        loop {
            tokio::select! {
                () = &mut stop, if stopping.is_none() => {
                    stopping = Some(tokio::time::Instant::now() + STOP_GRACE);
                    for token in open.values() {
                        token.cancel();
                    }
                    if running.is_empty() {
                        break;
                    }
                }
                () = until(stopping), if stopping.is_some() => break,
                envelope = self.requests.recv() => {
                    let Some(Envelope { id, msg, .. }) = envelope else { break };
                    if let Message::Cancel(_) = msg {
                        if let Some(token) = open.get(&id) {
                            token.cancel();
                        }
                    } else if stopping.is_some() || running.len() >= MAX_RUNNING {
                        let refusal = failed(match stopping {
                            Some(_) => "this runner is stopping",
                            None => "this runner runs too many requests",
                        });
                        // A send fails only when the broker has gone; then `recv` ends the loop.
                        let _ = self.link.send(id, true, &refusal).await;
                    } else if let Message::ToolRequest(asked) = msg {
                        let token = CancellationToken::new();
                        open.insert(id, token.clone());
                        let request = self.request(id, asked, token);
                        let kept = Arc::clone(&request.kept);
                        let token = request.cancelled.clone();
                        let work = run(Arc::clone(&self.link), id, kept, token, handler(request));
                        ids.insert(running.spawn(work).id(), id);
                    }
                }
                Some(ended) = running.join_next_with_id() => match ended {
                    Ok((task, id)) => {
                        ids.remove(&task);
                        open.remove(&id);
                    }
                    Err(error) => if let Some(id) = ids.remove(&error.id()) {
                        open.remove(&id);
                        let broken = failed("the tool broke off (a panic)");
                        let _ = self.link.send(id, true, &broken).await;
                    }
                },
            }
            if stopping.is_some() && running.is_empty() {
                break;
            }
        }
        if stopping.is_some() {
            self.link.written().await;
            return Ok(());
        }
        for token in open.values() {
            token.cancel();
        }
        // Their answers can go nowhere; they may still end in order.
        let ended = async { while running.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(HANG_UP_GRACE, ended).await;
        self.link.ended()
    }

    fn request(&self, id: u64, asked: ToolRequest, cancelled: CancellationToken) -> Request {
        Request {
            session: asked.session,
            call: asked.call,
            tool: asked.tool,
            arguments: asked.arguments,
            id,
            link: Arc::clone(&self.link),
            cancelled,
            kept: Arc::default(),
        }
    }
}

/// Waits for the handler and sends its answer; gives back the request's id.
async fn run(
    link: Arc<Link>,
    id: u64,
    kept: Arc<Mutex<(String, Label)>>,
    cancelled: CancellationToken,
    work: impl Future<Output = Result<Answer, Failure>>,
) -> u64 {
    let sent = match work.await {
        Ok(Answer { content, label }) => {
            let (before, joined) =
                std::mem::take(&mut *kept.lock().unwrap_or_else(PoisonError::into_inner));
            let content = if before.is_empty() {
                content
            } else {
                before + &content
            };
            send_pieces(&link, id, &content, label.join(joined), true, &cancelled).await
        }
        Err(Failure(text)) => link.send(id, true, &failed(&text)).await,
    };
    if let Err(Error::TooLarge { bytes, limit }) = sent {
        let text = format!("the answer takes {bytes} bytes and a frame holds {limit}");
        // If the broker has gone there is nobody to tell.
        let _ = link.send(id, true, &failed(&text)).await;
    }
    id
}

async fn until(deadline: Option<tokio::time::Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Sends `content` in pieces that fit a frame however they are escaped, the last with `final` as `ends` says.
/// Of an answer that is cancelled between two pieces the rest is not sent: it ends as a failure.
async fn send_pieces(
    link: &Link,
    id: u64,
    content: &str,
    label: Label,
    ends: bool,
    cancelled: &CancellationToken,
) -> Result<(), Error> {
    // At least one character, so that it ends.
    let fits = content_that_always_fits(link.max_frame())
        .unwrap_or(0)
        .clamp(4, PIECE);
    let mut rest = content;
    while link.has(Feature::Parts) && rest.len() > fits {
        let (piece, more) = rest.split_at(rest.floor_char_boundary(fits));
        link.send(id, false, &result(piece, label)).await?;
        rest = more;
        // What was read while this waited for room may be a cancel: let it be heard.
        tokio::task::yield_now().await;
        if ends && cancelled.is_cancelled() {
            let sent = content.len() - rest.len();
            let text = format!("cancelled after {sent} of {} bytes", content.len());
            return link.send(id, true, &failed(&text)).await;
        }
    }
    link.send(id, ends, &result(rest, label)).await
}

fn result(content: &str, label: Label) -> Message {
    Message::ToolResponse(ToolResponse::Result {
        content: content.to_owned(),
        class: label.class,
        untrusted: label.untrusted,
        truncated: false,
    })
}

fn failed(text: &str) -> Message {
    Message::ToolResponse(ToolResponse::Failed {
        message: text.to_owned(),
    })
}
