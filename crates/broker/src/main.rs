//! broker
fn main() {}
