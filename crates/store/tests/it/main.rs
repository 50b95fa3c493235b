//! What the store promises, on real files: what was written is given back as it was, or not at all.

#![cfg(test)]

mod damage;
mod fixture;
mod following;
mod forgetting;
mod migrating;
mod refusing;
mod replaying;
mod retaining;
mod snapshots;
mod sweeping;
mod tampering;
mod threads;
mod writing;
