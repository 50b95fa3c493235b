//! rolebrokerd as a process: its exit codes, its configuration, its sockets, its signals, its
//! handling of bytes. What becomes of calls is tested elsewhere.

#[cfg(test)]
mod broker;
#[cfg(test)]
mod configuration;
#[cfg(test)]
mod frames;
#[cfg(test)]
mod peers;
#[cfg(test)]
mod reloads;
#[cfg(test)]
mod sockets;
