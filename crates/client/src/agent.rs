//! An agent's side: calls, and what an agent may ask about its sessions.

use std::path::Path;
use std::sync::Arc;

use proto::{
    CallId, Cancel, JoinSession, Joined, Label, ListTools, ListedTool, Message, RoleKind,
    SessionId, SessionJoined, ToolName, ToolRequest, Welcome,
};
use tokio::sync::broadcast;

use crate::Error;
use crate::link::{Link, Opened};
use crate::slot::{Outcome, Slot, Update};

const SOFTWARE: &str = concat!("rolebroker-client ", env!("CARGO_PKG_VERSION"));

/// A connection to an agent role's socket. Cheap to clone; any number of calls may be in flight on it.
#[derive(Clone)]
pub struct Client {
    link: Arc<Link>,
}

impl Client {
    /// Connects to an agent role's socket.
    ///
    /// # Errors
    /// When nobody listens, the broker does not admit this user, or the role is no agent.
    pub async fn connect(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::connect_as(path, SOFTWARE).await
    }

    /// As [`Self::connect`], with a name and version of one's own for the broker's log.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub async fn connect_as(path: impl AsRef<Path>, software: &str) -> Result<Self, Error> {
        let Opened { link, .. } = Link::open(path.as_ref(), software, RoleKind::Agent).await?;
        Ok(Self { link })
    }

    /// What the broker said of this role and its limits.
    pub fn welcome(&self) -> &Welcome {
        self.link.welcome()
    }

    /// Asks for a tool call: the call number `call` of `session`, with `arguments`, a JSON object as text.
    /// The number should grow within the session. The same call asked again gets its stored answer.
    ///
    /// ```
    /// # mod fake { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/fake.rs")); }
    /// # use client::{Client, Update};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), client::Error> {
    /// # let broker = fake::reader();
    /// # let client = Client::connect(broker.path()).await?;
    /// let mut call = client.call("thread-42", 7, "read_file", r#"{"path":"/srv/a"}"#).await?;
    /// while let Some(update) = call.next().await? {
    ///     match update {
    ///         Update::Pending { approval, .. } => eprintln!("a person is asked: {approval}"),
    ///         Update::Progress { done, total, note } => eprintln!("{done}/{total} {note}"),
    ///         Update::Part { content, .. } => print!("{content}"),
    ///         Update::Final(outcome) => println!("{outcome:?}"),
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// When a name is no name, the request does not fit a frame, or the connection is lost.
    pub async fn call(
        &self,
        session: impl AsRef<str>,
        call: u64,
        tool: impl AsRef<str>,
        arguments: impl Into<String>,
    ) -> Result<Call, Error> {
        self.begin(Message::ToolRequest(ToolRequest {
            session: SessionId::new(session)?,
            call: CallId(call),
            tool: ToolName::new(tool)?.into(),
            arguments: arguments.into(),
        }))
        .await
    }

    /// Ends a call, and is told like a repeat of it how it ended.
    ///
    /// # Errors
    /// As [`Self::call`]; that there is no such call is told by the returned [`Call`].
    pub async fn cancel(&self, session: impl AsRef<str>, call: u64) -> Result<Call, Error> {
        self.begin(Message::Cancel(Cancel {
            session: SessionId::new(session)?,
            call: CallId(call),
        }))
        .await
    }

    /// Joins the label of `from` into `into`, and ends `from` if `close`. The label that `into` has now.
    ///
    /// # Errors
    /// [`Error::Rejected`] if a session belongs to another user, and as [`Self::call`].
    pub async fn join_session(
        &self,
        from: impl AsRef<str>,
        into: impl AsRef<str>,
        close: Close,
    ) -> Result<Label, Error> {
        let join = JoinSession {
            from: SessionId::new(from)?,
            into: SessionId::new(into)?,
            close: close == Close::Yes,
        };
        let mut replies = self.link.ask(&Message::JoinSession(join)).await?;
        match replies.pop() {
            Some(Message::Joined(Joined { label })) => Ok(label),
            _ => Err(Error::misbehaved("no `joined`")),
        }
    }

    /// The tools that `session` may call now, arguments aside.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub async fn list_tools(&self, session: impl AsRef<str>) -> Result<Vec<ListedTool>, Error> {
        let session = SessionId::new(session)?;
        let replies = self
            .link
            .ask(&Message::ListTools(ListTools { session }))
            .await?;
        let mut tools = Vec::new();
        for reply in replies {
            let Message::Tools(some) = reply else {
                return Err(Error::misbehaved("no `tools`"));
            };
            tools.extend(some.tools);
        }
        Ok(tools)
    }

    /// What the broker says unasked, from now on.
    pub fn pushes(&self) -> Pushes {
        Pushes {
            receiver: self.link.subscribe(),
            link: Arc::clone(&self.link),
        }
    }

    async fn begin(&self, request: Message) -> Result<Call, Error> {
        let (id, slot) = self.link.call(&request).await?;
        Ok(Call {
            link: Arc::clone(&self.link),
            id,
            slot,
        })
    }
}

/// Whether a join ends the session that it joins from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Close {
    /// It ends: a compaction.
    Yes,
    /// It goes on: a fork, or a sub-agent's return.
    No,
}

/// A call under way. Dropping it does not end the call (see [`Client::cancel`]): its answer waits for a repeat.
pub struct Call {
    link: Arc<Link>,
    id: u64,
    slot: Arc<Slot>,
}

impl Call {
    /// The next step; `None` after [`Update::Final`].
    ///
    /// # Errors
    /// [`Error::Rejected`] if the broker did not take the call, [`Error::Lost`] if the connection ended.
    pub async fn next(&mut self) -> Result<Option<Update>, Error> {
        self.slot
            .next()
            .await
            .map_err(|broken| self.link.error(broken))
    }

    /// Waits for the end, and joins the parts of the answer that were not taken with [`Self::next`].
    ///
    /// # Errors
    /// As [`Self::next`].
    pub async fn finish(mut self) -> Result<Outcome, Error> {
        let mut text = String::new();
        let mut joined = Label::BOTTOM;
        while let Some(update) = self.next().await? {
            match update {
                Update::Pending { .. } | Update::Progress { .. } => {}
                Update::Part { content, label } => {
                    text.push_str(&content);
                    joined = joined.join(label);
                }
                Update::Final(Outcome::Result {
                    content,
                    label,
                    truncated,
                }) => {
                    text.push_str(&content);
                    return Ok(Outcome::Result {
                        content: text,
                        label: joined.join(label),
                        truncated,
                    });
                }
                Update::Final(other) => return Ok(other),
            }
        }
        Err(Error::misbehaved("the call's end was taken already"))
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.link.forget(self.id);
    }
}

/// What the broker says to an agent unasked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Push {
    /// [`Client::list_tools`] may give something else now.
    ToolsChanged,
    /// Another connection of this role joined two sessions.
    SessionJoined(SessionJoined),
    /// So many pushes were missed: nobody read them in time.
    Missed(u64),
}

/// The pushes to one connection.
pub struct Pushes {
    receiver: Option<broadcast::Receiver<Message>>,
    link: Arc<Link>,
}

impl Pushes {
    /// The next push.
    ///
    /// # Errors
    /// [`Error::Lost`] when the connection ended.
    pub async fn next(&mut self) -> Result<Push, Error> {
        let Some(receiver) = &mut self.receiver else {
            return Err(self.link.lost());
        };
        loop {
            match receiver.recv().await {
                Ok(Message::ToolsChanged(_)) => return Ok(Push::ToolsChanged),
                Ok(Message::SessionJoined(joined)) => return Ok(Push::SessionJoined(joined)),
                Ok(_) => {} // For agents there is nothing else.
                Err(broadcast::error::RecvError::Lagged(count)) => return Ok(Push::Missed(count)),
                Err(broadcast::error::RecvError::Closed) => return Err(self.link.lost()),
            }
        }
    }
}
