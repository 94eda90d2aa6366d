//! Has the migrations embedded anew when one is added.

fn main() {
    println!("cargo::rerun-if-changed=../../migrations/sqlite");
}
