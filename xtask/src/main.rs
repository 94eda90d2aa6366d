//! The developer's commands: cargo xtask test | bench.
fn main() {}
