//! runner
fn main() {}
