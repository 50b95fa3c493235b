//! The file tools, on real files.

#[cfg(test)]
mod files;
#[cfg(test)]
mod folders;
