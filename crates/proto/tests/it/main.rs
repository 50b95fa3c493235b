//! What the decoder takes and refuses: files, generated frames and random ones.

#![cfg(test)]

mod canary;
mod corpus;
mod fixtures;
mod random;
mod sizes;
mod strategies;
