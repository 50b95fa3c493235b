//! ctl
fn main() {}
