//! The whole, as real processes: every test starts rolebrokerd with a configuration of its own in a
//! temporary folder, and speaks to it over real sockets. The programs are those beside this one:
//! `cargo build -p broker -p ctl -p runner` makes them. Needs python3 and make; what needs root, or systemd's
//! tools, says that it is skipped elsewhere.

#[cfg(test)]
mod accepting;
#[cfg(test)]
mod approving;
#[cfg(test)]
mod audit;
#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod bad_replies;
#[cfg(test)]
mod bounded;
#[cfg(test)]
mod calls;
#[cfg(test)]
mod commands;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod failures;
#[cfg(test)]
mod following;
#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod grants;
#[cfg(test)]
mod handed_over;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod identity;
#[cfg(test)]
mod init;
#[cfg(test)]
mod insight;
#[cfg(test)]
mod installing;
#[cfg(test)]
mod lasting;
#[cfg(test)]
mod logs;
#[cfg(test)]
mod offers;
#[cfg(test)]
mod operations;
#[cfg(test)]
mod operators;
#[cfg(test)]
mod past;
#[cfg(test)]
mod progress;
#[cfg(test)]
mod readme;
#[cfg(test)]
mod reasons;
#[cfg(test)]
mod restoring;
#[cfg(test)]
mod runner_commands;
#[cfg(test)]
mod runner_files;
#[cfg(test)]
mod runner_service;
#[cfg(test)]
mod runner_stage;
#[cfg(test)]
mod scripts;
#[cfg(test)]
mod sdk;
#[cfg(test)]
mod service;
#[cfg(test)]
mod slow;
#[cfg(test)]
mod store_failures;
#[cfg(test)]
mod store_faults;
#[cfg(test)]
mod suggesting;
#[cfg(test)]
mod systemd;
#[cfg(test)]
mod uids;
#[cfg(test)]
mod watching;
