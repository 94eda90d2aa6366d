//! Rebuilds the crate when a migration is added, because migrations are embedded.

fn main() {
    println!("cargo::rerun-if-changed=../../migrations/sqlite");
}
