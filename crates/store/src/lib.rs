//! The durable state and the audit record (DESIGN 9): one SQLite database with one append-only table, which is both
//! what a restart replays and what an auditor reads. Arguments and answers are beside it, where they can be forgotten.
//!
//! Nothing here decides. A record is taken as it comes, and given back as it was or not at all.

pub mod beside;
mod chain;
mod disk;
mod error;
mod follow;
mod heads;
mod reading;
mod retention;
mod row;
mod schema;
mod snapshot;
mod store;
mod sweeping;
mod writer;

pub use chain::Head;
pub use error::StoreError;
pub use heads::HeadError;
pub use reading::Entry;
pub use retention::Retention;
pub use row::{Keep, charge};
pub use snapshot::Made;
pub use store::{FILE, Store};
pub use writer::{Told, Writer};

pub use engine::record;
