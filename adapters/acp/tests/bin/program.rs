//! The supervisor that the tests start, as the gateway's binary has one.

use std::process::ExitCode;

fn main() -> ExitCode {
    rejoinder_agents::supervise().expect("it is started as a supervisor")
}
