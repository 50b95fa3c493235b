//! Frames to messages: small ones at once, large ones by a few threads beside the reactor.
//!
//! What large frames weigh while they are read and decoded is charged to their role, which has a
//! bounded sum; and a role decodes one large frame at a time, so that it cannot fill the threads that
//! the other roles need too.

use std::sync::Arc;

use bytes::Bytes;
use proto::{DecodeError, Decoded};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Frames over this are decoded by the pool.
pub const LARGE_FRAME: usize = 64 << 10;
/// Threads that decode large frames.
pub const DECODE_THREADS: usize = 2;

/// Permits are counted in these, as their number is bounded.
const PERMIT_BYTES: u64 = 1 << 10;

/// A large frame's share of its role's bytes; given back when it is dropped.
#[derive(Debug)]
pub struct FrameSpace {
    _permit: OwnedSemaphorePermit,
}

/// One role's share of the decoding.
#[derive(Debug, Clone)]
pub struct Share {
    bytes: Arc<Semaphore>,
    permits: u32,
    turn: Arc<Semaphore>,
}

impl Share {
    /// A share that holds `bytes` of large frames, and always one of them.
    pub fn of_bytes(bytes: u64) -> Self {
        let permits = permits_of(bytes);
        Self {
            bytes: Arc::new(Semaphore::new(permits as usize)),
            permits,
            turn: Arc::new(Semaphore::new(1)),
        }
    }

    /// Waits until the role has room for a large frame. Those who wait are served in their order.
    pub async fn space(&self, frame: usize) -> Option<FrameSpace> {
        let wanted = permits_of(frame as u64).min(self.permits);
        let permit = Arc::clone(&self.bytes).acquire_many_owned(wanted).await;
        // It is never closed.
        permit.ok().map(|_permit| FrameSpace { _permit })
    }
}

/// The threads.
#[derive(Debug)]
pub struct Pool {
    threads: Semaphore,
}

impl Pool {
    /// A pool of [`DECODE_THREADS`].
    pub fn new() -> Self {
        Self {
            threads: Semaphore::new(DECODE_THREADS),
        }
    }

    /// Decodes a large frame beside the reactor, in its role's turn.
    pub async fn decode(&self, share: &Share, frame: Bytes) -> Result<Decoded, DecodeError> {
        // Neither is ever closed; without a permit it is decoded all the same.
        let _turn = share.turn.acquire().await;
        let _thread = self.threads.acquire().await;
        match tokio::task::spawn_blocking(move || proto::decode_shared(frame)).await {
            Ok(decoded) => decoded,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime ends, and this task with it.
                Err(_) => std::future::pending().await,
            },
        }
    }
}

impl Default for Pool {
    fn default() -> Self {
        Self::new()
    }
}

/// Decodes a small frame at once. It gets memory of its own, so that a message that is kept does not
/// keep the whole read buffer too.
pub fn decode_small(frame: &[u8]) -> Result<Decoded, DecodeError> {
    proto::decode_shared(Bytes::copy_from_slice(frame))
}

fn permits_of(bytes: u64) -> u32 {
    let most = u64::from(u32::MAX).min(Semaphore::MAX_PERMITS as u64);
    u32::try_from(bytes.div_ceil(PERMIT_BYTES).clamp(1, most)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_larger_than_its_roles_share_still_gets_in_alone() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let share = Share::of_bytes(128 << 10);
            let alone = share.space(8 << 20).await;
            assert!(alone.is_some());
            assert_eq!(share.bytes.available_permits(), 0);
            drop(alone);
            let first = share.space(64 << 10).await;
            let second = share.space(64 << 10).await;
            assert!(first.is_some() && second.is_some());
            assert_eq!(share.bytes.available_permits(), 0);
        });
    }
}
