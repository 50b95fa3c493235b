//! What the engine promises, one life at a time; the simulator holds the rest.

#![cfg(test)]

mod approvals;
mod bounds;
mod calls;
mod copies;
mod insight;
mod rate;
mod restarts;
mod rules;
mod sessions;
mod snapshots;
mod steps;
mod trail;
mod world;
