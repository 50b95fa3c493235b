//! An operator's side: one request, and what the broker answers.

use std::path::Path;
use std::sync::Arc;

use proto::control::EventStatus;
use proto::{Control, ControlReply, Message, RoleKind};
use tokio::sync::mpsc;

use crate::Error;
use crate::link::{Link, Opened};
use crate::slot::Broken;

const SOFTWARE: &str = concat!("rolebroker-client ", env!("CARGO_PKG_VERSION"));

/// A connection to an operator role's socket.
///
/// ```
/// # mod fake { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/fake.rs")); }
/// use client::{Operator, proto::Control};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), client::Error> {
/// # let broker = fake::operated();
/// let operator = Operator::connect(broker.path()).await?;
/// let replies = operator.control(Control::Reload {}).await?;
/// println!("{replies:?}");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Operator {
    link: Arc<Link>,
}

impl Operator {
    /// Connects to an operator role's socket.
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
        let Opened { link, .. } = Link::open(path.as_ref(), software, RoleKind::Operator).await?;
        Ok(Self { link })
    }

    /// Asks one thing. Never empty; a long list comes in several replies.
    ///
    /// # Errors
    /// [`Error::Rejected`] with the broker's reason, and [`Error::Lost`].
    pub async fn control(&self, control: Control) -> Result<Vec<ControlReply>, Error> {
        let replies = self.link.ask(&Message::Control(control)).await?;
        let control = |reply| {
            if let Message::ControlReply(reply) = reply {
                Ok(reply)
            } else {
                Err(Error::misbehaved("no `control_reply`"))
            }
        };
        replies.into_iter().map(control).collect()
    }
}

impl Operator {
    /// What happens at the broker from now on: the fields of its log lines.
    ///
    /// # Errors
    /// [`Error::Lost`] when the connection ended.
    pub async fn tail(&self) -> Result<Tail, Error> {
        let asked = Message::Control(Control::Tail {});
        let replies = self.link.follow(&asked).await?;
        let link = Arc::clone(&self.link);
        Ok(Tail { link, replies })
    }
}

/// What happens at the broker, in order; see [`Operator::tail`].
pub struct Tail {
    link: Arc<Link>,
    replies: mpsc::Receiver<Result<Message, Broken>>,
}

impl Tail {
    /// The next event. Its `missed` says how many before it were left out because nobody read.
    ///
    /// # Errors
    /// [`Error::Rejected`] with the broker's reason, and [`Error::Lost`] when the connection ended.
    pub async fn next(&mut self) -> Result<EventStatus, Error> {
        match self.replies.recv().await {
            Some(Ok(Message::ControlReply(ControlReply::Event { event }))) => Ok(event),
            Some(Ok(_)) => Err(Error::misbehaved("no `event`")),
            Some(Err(broken)) => Err(self.link.error(broken)),
            None => Err(self.link.lost()),
        }
    }
}
