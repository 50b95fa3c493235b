//! Every limit on what a configuration may hold, by name. Each is far above what a person writes,
//! and low enough that a bad file costs little.

/// Bytes of a whole configuration.
pub const MAX_TEXT: usize = 4 << 20;
/// Faults that are told one by one.
pub const MAX_FAULTS: usize = 100;
/// `[roles.*]`.
pub const MAX_ROLES: usize = 256;
/// `[[tool]]`.
pub const MAX_TOOLS: usize = 4096;
/// `[[grant]]`, those of run time too.
pub const MAX_GRANTS: usize = 4096;
/// Entries of one list: roles, sessions, tools, users, approvers, `one_of`.
pub const MAX_LIST: usize = 256;
/// Rules in one role's `offers`.
pub const MAX_OFFERS: usize = 64;
/// Pointers in one `where` or `unless`.
pub const MAX_POINTERS: usize = 64;
/// Bytes of one glob, regex, path, host, pointer or value to compare with.
pub const MAX_PATTERN: usize = 1024;
/// Bytes that one compiled regex may take.
pub const MAX_REGEX_SIZE: usize = 256 << 10;
/// Matchers inside one another (`each = { some = … }`).
pub const MAX_NESTING: usize = 4;
/// Examples of one grant, of each kind.
pub const MAX_EXAMPLES: usize = 64;
/// Bytes of one example.
pub const MAX_EXAMPLE: usize = 64 << 10;
/// Bytes of a `why`.
pub const MAX_WHY: usize = 1024;
/// Bytes of a declared description.
pub const MAX_DESCRIPTION: usize = 16 << 10;
/// Bytes of a declared input schema.
pub const MAX_SCHEMA: usize = 64 << 10;
/// Bytes of a user's or a group's name.
pub const MAX_USER: usize = 256;
/// Distinct people that one grant may want.
pub const MAX_QUORUM: u64 = 16;
/// Milliseconds of the longest duration: ten years of 365 days.
pub const MAX_DURATION: u64 = 3650 * 24 * 3600 * 1000;
/// Uses of a grant or of a standing approval.
pub const MAX_USES: u64 = (1 << 53) - 1;
/// Least bytes of `max_frame`.
pub const MIN_FRAME: u64 = 4 << 10;
/// Most bytes of `max_frame`.
pub const MAX_FRAME: u64 = 64 << 20;
/// Least bytes of `audit_bytes`.
pub const MIN_AUDIT: u64 = 64 << 10;
/// Most bytes of `audit_bytes`.
pub const MAX_AUDIT: u64 = 1 << 50;
/// Calls sent to one runner connection.
pub const MAX_CONCURRENCY: u64 = 65_536;
/// Bytes of a socket's path: what `sockaddr_un` holds, and its NUL.
pub const MAX_SOCKET_PATH: usize = 107;
/// Lines that tell what a reload changes.
pub const MAX_CHANGES: usize = 20;
/// Ways out that a check tells.
pub const MAX_PATHS: usize = 20;
/// Remarks of a reviewer that are told one by one.
pub const MAX_REMARKS: usize = 100;
/// Bytes of one sentence of an explanation.
pub const MAX_WORDS: usize = 1024;
/// Grants that are suggested for a set of calls.
pub const MAX_SUGGESTED: usize = 64;
/// Bytes of their lines.
pub const MAX_SUGGESTED_TEXT: usize = 512 << 10;
/// Different arguments of one role, tool and set of pointers that grants are suggested for.
pub const MAX_DIFFERENT: usize = 16_384;
