//! Framing: a 4-byte big-endian length, then that many bytes of JSON.

/// The default frame limit: 8 MiB.
pub const DEFAULT_MAX_FRAME: usize = 8 << 20;
/// The least that a frame limit may be: 4 KiB.
pub const MIN_MAX_FRAME: usize = 4 << 10;
/// The most that a frame limit may be: 64 MiB.
pub const MAX_MAX_FRAME: usize = 64 << 20;
