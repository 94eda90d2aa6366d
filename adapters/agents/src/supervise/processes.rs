//! The processes that a supervisor is responsible for.

use std::io;

use rustix::process::{Pid, Signal};

/// Makes this process the parent of what its children start and abandon.
#[cfg(target_os = "linux")]
pub(super) fn adopt() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Sends a signal to all processes below this one.
#[cfg(target_os = "linux")]
pub(super) fn signal_all(_: Pid, signal: Signal) {
    for pid in descendants() {
        // It may have ended meanwhile.
        let _ = rustix::process::kill_process(pid, signal);
    }
}

#[cfg(target_os = "linux")]
fn descendants() -> Vec<Pid> {
    let stats = procfs::process::all_processes().into_iter().flatten().flatten().filter_map(|one| one.stat().ok());
    let parents: Vec<(i32, i32)> = stats.map(|stat| (stat.pid, stat.ppid)).collect();
    let mut found = vec![rustix::process::getpid().as_raw_pid()];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| pid));
        next += 1;
    }
    found.into_iter().skip(1).filter_map(Pid::from_raw).collect()
}

/// Elsewhere an abandoned process has no such parent.
#[cfg(not(target_os = "linux"))]
pub(super) fn adopt() -> io::Result<()> {
    Ok(())
}

/// Sends a signal to the group of processes that the program leads.
#[cfg(not(target_os = "linux"))]
pub(super) fn signal_all(program: Pid, signal: Signal) {
    let _ = rustix::process::kill_process_group(program, signal);
}
