//! What the engine promises, one life at a time; the simulator holds the rest.

#![cfg(test)]

mod approvals;
mod audit;
mod calls;
mod sessions;
mod world;
