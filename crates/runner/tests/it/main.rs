//! The tools of the runner: on real files, with real processes.

#[cfg(test)]
mod commands;
#[cfg(test)]
mod config;
#[cfg(test)]
mod confining;
#[cfg(test)]
mod declared;
#[cfg(test)]
mod editing;
#[cfg(test)]
mod files;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod folders;
#[cfg(test)]
mod getting_out;
#[cfg(test)]
mod searching;
