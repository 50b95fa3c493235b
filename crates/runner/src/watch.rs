//! What long work looks at between two steps: was it cancelled, is its time over?

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

/// How long a file tool may work on one call.
pub const FILE_LIMIT: Duration = Duration::from_secs(20);

/// Why work ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Ended {
    #[error("cancelled")]
    Cancelled,
    #[error("took longer than the {} seconds that it may take", FILE_LIMIT.as_secs())]
    Late,
}

/// One call's cancel and deadline.
#[derive(Debug, Clone)]
pub struct Watch {
    cancelled: CancellationToken,
    until: Instant,
}

impl Watch {
    /// Work that ends when `cancelled` is, or after [`FILE_LIMIT`].
    pub fn new(cancelled: CancellationToken) -> Self {
        Self {
            cancelled,
            until: Instant::now() + FILE_LIMIT,
        }
    }

    /// An error once the work shall end.
    pub(crate) fn look(&self) -> Result<(), Ended> {
        if self.cancelled.is_cancelled() {
            return Err(Ended::Cancelled);
        }
        if Instant::now() >= self.until {
            return Err(Ended::Late);
        }
        Ok(())
    }
}

impl Default for Watch {
    fn default() -> Self {
        Self::new(CancellationToken::new())
    }
}
