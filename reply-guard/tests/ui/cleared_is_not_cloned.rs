use rejoinder_guard::{Cleared, Signal};

fn twice(signal: &Cleared<Signal>) -> Cleared<Signal> {
    signal.clone()
}

fn main() {
    let _ = twice;
}
