//! The Python programs of the tests: each talks through its standard input and output, and ends with its input.
//!
//! Importing its packages takes a program more than half a second of CPU time, a fork fifteen milliseconds. So `cargo xtask
//! test` starts a fork server (`fork.py`) for each program and passes the path of its socket to the tests.
//!
//! To fork another program, give its module a function `main`, which starts threads and event loops that importing the module
//! does not, and list it in `xtask/src/forks.rs`.

use std::{
    env,
    ffi::OsStr,
    io,
    net::Shutdown,
    os::{fd::OwnedFd, unix::net::UnixStream},
    process::{Child, Command},
};

/// A running program. Dropping it ends it, and so does the end of this process.
#[derive(Debug)]
pub struct Program {
    stream: UnixStream,
    /// `None` if a fork server has started it.
    process: Option<Child>,
}

impl Program {
    /// Connects to the fork server whose socket is at `$fork_server`; without that variable, starts `module` of the package
    /// in `folder`.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn start(python: impl AsRef<OsStr>, folder: &str, module: &str, fork_server: &str) -> Self {
        let started = match env::var_os(fork_server) {
            Some(socket) => UnixStream::connect(socket).map(|stream| Self { stream, process: None }),
            None => Self::spawn(python, folder, module),
        };
        started.unwrap_or_else(|error| panic!("{module} in {folder} does not start: {error}: run `cargo xtask test`"))
    }

    /// Writes to its standard input, and reads from its standard output.
    pub fn stream(&self) -> &UnixStream {
        &self.stream
    }

    fn spawn(python: impl AsRef<OsStr>, folder: &str, module: &str) -> io::Result<Self> {
        let (stream, theirs) = UnixStream::pair()?;
        let input = OwnedFd::from(theirs.try_clone()?);
        let mut command = Command::new(python);
        // -B: no bytecode files beside the sources.
        command.args(["-B", "-m", module]).current_dir(folder).stdin(input).stdout(OwnedFd::from(theirs));
        let process = command.spawn()?;
        Ok(Self { stream, process: Some(process) })
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The program may have ended by itself.
        let _ = self.stream.shutdown(Shutdown::Write);
        if let Some(process) = &mut self.process {
            let _ = process.kill();
            let _ = process.wait();
        } else {
            // Its output ends when it has ended.
            let _ = io::copy(&mut &self.stream, &mut io::sink());
        }
    }
}
