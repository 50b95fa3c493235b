//! The library against a broker of a few lines, over real sockets.

#[cfg(test)]
mod agent;
#[cfg(test)]
mod approver;
#[cfg(test)]
mod errors;
#[cfg(test)]
mod fake;
#[cfg(test)]
mod python;
#[cfg(test)]
mod runner;
