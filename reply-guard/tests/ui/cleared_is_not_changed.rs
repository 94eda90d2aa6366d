use rejoinder_guard::{Body, Cleared, Signal};

fn reword(signal: Cleared<Signal>) {
    signal.get().body = Body::Say("other words".to_owned());
}

fn main() {
    let _ = reword;
}
