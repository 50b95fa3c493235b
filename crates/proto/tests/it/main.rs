//! What the decoder takes and refuses: files, generated frames and random ones.

#[cfg(test)]
mod canary;
#[cfg(test)]
mod corpus;
#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod random;
#[cfg(test)]
mod sizes;
#[cfg(test)]
mod strategies;
