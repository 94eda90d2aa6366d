//! Programs beside the gateway.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
};

use crate::agent::python;

/// A program that is killed on drop.
#[derive(Debug)]
pub struct Process(Child);

impl Process {
    /// Starts a Python program, which calls servers of this machine without a proxy.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn python(program: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let process = Command::new(python())
            .arg(program)
            .args(arguments)
            .env("no_proxy", "127.0.0.1")
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .spawn();
        Self(process.expect("the program starts"))
    }

    /// Ends it as `kill -9` does.
    ///
    /// # Panics
    /// If it has ended already.
    pub fn kill(mut self) {
        assert!(self.0.try_wait().is_ok_and(|status| status.is_none()), "the program has ended by itself");
        self.0.kill().expect("the program is killed");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether a process of this id is there and has not ended.
#[must_use]
pub fn is_alive(process: &str) -> bool {
    // One that has ended and was not waited for is a zombie.
    fs::read_to_string(Path::new("/proc").join(process).join("stat")).is_ok_and(|stat| !stat.contains(") Z "))
}
