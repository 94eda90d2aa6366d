//! The supervisor that the tests start, as the gateway's binary has one, and an agent that calls the tools of its sessions.

mod agent;

use std::process::ExitCode;

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("agent") {
        agent::serve();
        return ExitCode::SUCCESS;
    }
    rejoinder_agents::supervise().expect("it is started as a supervisor")
}
