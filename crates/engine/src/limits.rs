//! The engine's own limits, by name. What a configuration can set is in `policy::Settings` and
//! `policy::Quota`.

/// Bytes (lengths included) that may be on their way to one connection; one frame always may.
pub const OUTBOX_BYTES: u64 = 1 << 20;
/// Bytes that may wait in the engine for one connection before the shell stops reading from it.
pub const BACKLOG_BYTES: u64 = 256 << 10;
/// Bytes that a call costs its role beside its own, in flight and as a kept answer.
pub const CALL_OVERHEAD: u64 = 512;
/// Arguments over this are not asked about.
pub const MAX_ASKED_ARGUMENTS: usize = 64 << 10;
/// Arguments over this are in the record by their fingerprint only.
pub const MAX_RECORDED_ARGUMENTS: usize = 64 << 10;
/// Bytes of a runner's failure that reach an agent.
pub const MAX_FAILURE_TEXT: usize = 4 << 10;
/// Bytes of a progress note that reach an agent.
pub const MAX_NOTE: usize = 1 << 10;
/// Bytes of an approver's comment, an operator's reason or a peer's software that are taken.
pub const MAX_COMMENT: usize = 1 << 10;
/// Connections that may wait for one call.
pub const MAX_WAITERS: usize = 256;
/// Calls of a session that are remembered for having raised its label: a label rises at most four
/// times between two words of an operator.
pub const MAX_RAISES: usize = 16;
/// Refused fingerprints that a session remembers; the oldest goes first.
pub const MAX_REFUSALS: usize = 256;
/// Tools in one offer.
pub const MAX_OFFERED: usize = 1024;
/// Definitions of one runner role that are pinned at first sight: they are kept for ever.
pub const MAX_PINNED: usize = 4096;
/// How long settled approvals are listed, in milliseconds.
pub const SETTLED_LISTED: u64 = 60 * 60 * 1000;
/// Settled approvals that are listed at most, over all roles.
pub const MAX_SETTLED: usize = 1024;
/// Requests that one connection may have open.
pub const MAX_OPEN_REQUESTS: usize = 4096;
/// Abandoned calls of one runner connection whose late answers are still told apart.
pub const MAX_ABANDONED: usize = 1024;
/// How often a call is sent to a runner between two restarts.
pub const MAX_ATTEMPTS: u32 = 2;
/// Bytes of a description and its input schema.
pub const MAX_DEFINITION: usize = 64 << 10;
/// Decisions of one role that can be explained afterwards; the oldest goes first.
pub const MAX_REMEMBERED: usize = 256;
/// Bytes of the arguments of those decisions, and of the uses that they counted.
pub const MAX_REMEMBERED_BYTES: usize = 1 << 20;
/// Rulesets that decisions are remembered of; those by older ones are forgotten.
pub const MAX_REMEMBERED_RULESETS: u64 = 16;
/// How long requests over a role's rate are counted before a record tells of them, in milliseconds.
pub const REFUSED_COUNTED: u64 = 60 * 1000;
/// Calls that were approved and have ended, as they are listed over all roles.
pub const MAX_CALLS_SETTLED: usize = 1024;
