//! An approver's side: what is asked of people, and their answers.

use std::path::Path;
use std::sync::Arc;

use proto::{
    Answer, ApprovalReply, ApprovalRequest, ApprovalSettled, Approvals, CallSettled, ListApprovals,
    Message, RoleKind, Scope, Welcome,
};
use tokio::sync::broadcast;

use crate::Error;
use crate::link::{Link, Opened};

const SOFTWARE: &str = concat!("rolebroker-client ", env!("CARGO_PKG_VERSION"));

/// What the broker brings before an approver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// Please decide on this call.
    Request(ApprovalRequest),
    /// Decided, here or elsewhere, or lapsed.
    Settled(ApprovalSettled),
    /// A call that was approved has ended.
    Ended(CallSettled),
    /// So many of these were missed: nobody read them in time. [`Approver::list`] has them.
    Missed(u64),
}

/// A connection to an approver role's socket.
///
/// ```
/// # mod fake { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/fake.rs")); }
/// use client::{Approver, Asked, Scope};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), client::Error> {
/// # let broker = fake::asker();
/// let mut approver = Approver::connect(broker.path()).await?;
/// if let Asked::Request(request) = approver.next().await? {
///     println!("{} {}", request.tool, request.arguments); // escape what is not printable
///     let settled = approver.approve(&request, Scope::Once, "seen").await?;
///     println!("{:?}", settled.outcome);
/// }
/// # Ok(()) }
/// ```
pub struct Approver {
    link: Arc<Link>,
    pushes: broadcast::Receiver<Message>,
}

impl Approver {
    /// Connects to an approver role's socket. Every pending approval comes first.
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
        let Opened { link, pushes, .. } =
            Link::open(path.as_ref(), software, RoleKind::Approver).await?;
        Ok(Self { link, pushes })
    }

    /// What the broker said of this role and its limits.
    pub fn welcome(&self) -> &Welcome {
        self.link.welcome()
    }

    /// The next request, or what became of one.
    ///
    /// # Errors
    /// [`Error::Lost`] when the connection ended.
    pub async fn next(&mut self) -> Result<Asked, Error> {
        loop {
            match self.pushes.recv().await {
                Ok(Message::ApprovalRequest(request)) => return Ok(Asked::Request(request)),
                Ok(Message::ApprovalSettled(settled)) => return Ok(Asked::Settled(settled)),
                Ok(Message::CallSettled(ended)) => return Ok(Asked::Ended(ended)),
                Ok(_) => {} // For approvers there is nothing else.
                Err(broadcast::error::RecvError::Lagged(count)) => return Ok(Asked::Missed(count)),
                Err(broadcast::error::RecvError::Closed) => return Err(self.link.lost()),
            }
        }
    }

    /// Approves exactly what `request` showed: its digest goes with the answer.
    ///
    /// # Errors
    /// [`Error::Rejected`] if it is settled already or the digest is another one, and [`Error::Lost`].
    pub async fn approve(
        &self,
        request: &ApprovalRequest,
        scope: Scope,
        comment: impl Into<String>,
    ) -> Result<ApprovalSettled, Error> {
        self.answer(request, Answer::Approve, scope, comment.into())
            .await
    }

    /// Refuses; one refusal ends it.
    ///
    /// # Errors
    /// As [`Self::approve`].
    pub async fn refuse(
        &self,
        request: &ApprovalRequest,
        comment: impl Into<String>,
    ) -> Result<ApprovalSettled, Error> {
        self.answer(request, Answer::Refuse, Scope::Once, comment.into())
            .await
    }

    /// What waits for this approver, and, if `settled`, what was settled in the last hour.
    ///
    /// # Errors
    /// [`Error::Lost`] when the connection ended.
    pub async fn list(&self, which: ListApprovals) -> Result<Approvals, Error> {
        let mut all = Approvals {
            pending: Vec::new(),
            settled: Vec::new(),
            calls: Vec::new(),
        };
        for reply in self.link.ask(&Message::ListApprovals(which)).await? {
            let Message::Approvals(some) = reply else {
                return Err(Error::misbehaved("no `approvals`"));
            };
            all.pending.extend(some.pending);
            all.settled.extend(some.settled);
            all.calls.extend(some.calls);
        }
        Ok(all)
    }

    async fn answer(
        &self,
        request: &ApprovalRequest,
        answer: Answer,
        scope: Scope,
        comment: String,
    ) -> Result<ApprovalSettled, Error> {
        let reply = ApprovalReply {
            approval: request.approval.clone(),
            digest: request.digest.clone(),
            answer,
            scope,
            comment,
        };
        let mut replies = self.link.ask(&Message::ApprovalReply(reply)).await?;
        match replies.pop() {
            Some(Message::ApprovalSettled(settled)) => Ok(settled),
            _ => Err(Error::misbehaved("no `approval_settled`")),
        }
    }
}
