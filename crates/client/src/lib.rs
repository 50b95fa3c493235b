//! What a role links to talk to rolebrokerd: one connection to one Unix socket, and on it
//! - [`Client`]: an agent that calls tools,
//! - [`serve`] and [`Runner`]: a runner that executes them,
//! - [`Approver`]: brings calls before a person,
//! - [`Operator`]: inspects and steers the broker.
//!
//! ```
//! # mod fake { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/fake.rs")); }
//! use client::{Client, Outcome};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), client::Error> {
//! # let broker = fake::reader();
//! # let socket = broker.path();
//! let client = Client::connect(socket).await?; // such as client::socket("agent")
//! let call = client.call("thread-42", 1, "read_file", r#"{"path":"/srv/docs/a.md"}"#).await?;
//! match call.finish().await? {
//!     Outcome::Result { content, label, .. } => println!("{content} ({label})"),
//!     Outcome::Failed { code, text } => println!("failed: {code}: {text}"),
//!     Outcome::Denied(reason) => println!("denied: {}", reason.as_str()),
//! }
//! # Ok(()) }
//! ```

mod agent;
mod approver;
mod error;
mod frames;
mod link;
mod operator;
mod paths;
mod runner;
mod slot;

pub use agent::{Call, Client, Close, Push, Pushes};
pub use approver::{Approver, Asked};
pub use error::Error;
pub use operator::Operator;
pub use paths::{runtime_dir, runtime_dirs, socket};
pub use runner::{Answer, Failure, Offers, Request, Runner, serve};
pub use slot::{Outcome, Update};

pub use proto;
pub use proto::{DataClass, DenyReason, FailureCode, Label, Scope, ToolSpec, Welcome};
