//! `rejoinder read-file KIND`: the process that reads one document, from its standard input to its standard output. It ends with the
//! reason if there is no text.
//!
//! ```text
//! gateway ── read-file KIND ─ becomes ─► read-file --limited KIND
//! ```
//!
//! It starts itself again with its limits, because what a process has in memory before it limits itself does not count.

use std::{
    ffi::OsString,
    io::{self, Read as _, Write as _},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use rejoinder_core::Unread;
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::{
    document::text_of,
    kind::{Kind, MAX_FILE},
};

/// The argument that makes a process one that reads a document. Its kind follows.
pub(crate) const READ_FILE: &str = "read-file";

/// The argument before the kind once the limits are set.
const LIMITED: &str = "--limited";

/// What such a process may use: bytes that it writes to, addresses (its program included), seconds of a processor, and no core dump.
const LIMITS: [(Resource, u64); 4] =
    [(Resource::Data, 256 << 20), (Resource::As, 1 << 30), (Resource::Cpu, 10), (Resource::Core, 0)];

/// The exit code of a wrong call, as of all commands.
const USAGE: u8 = 2;

/// The exit codes for what a document has no text for. All others mean that reading it has failed.
const REASONS: [(u8, Unread); 4] =
    [(3, Unread::Protected), (4, Unread::Empty), (5, Unread::Broken), (6, Unread::TooMuch)];

/// The reason that an exit code means.
pub(crate) fn reason(code: i32) -> Option<Unread> {
    REASONS.into_iter().find_map(|(known, why)| (i32::from(known) == code).then_some(why))
}

/// The running program.
pub(crate) fn own_program() -> io::Result<PathBuf> {
    // Names the running program even after another one was installed in its place.
    let link = Path::new("/proc/self/exe");
    if link.exists() { Ok(link.to_owned()) } else { std::env::current_exe() }
}

/// Reads a document if the arguments of this process say so. `None`: this process is for something else.
pub fn read_file() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != READ_FILE {
        return None;
    }
    let arguments: Vec<OsString> = arguments.collect();
    let kind = |name: &OsString| name.to_str().and_then(Kind::named);
    let done = match &arguments[..] {
        [name] => kind(name).map(|kind| Err(limited(kind))),
        [first, name] if first == LIMITED => kind(name).map(read),
        _ => None,
    };
    Some(match done {
        Some(Ok(code)) => code,
        Some(Err(error)) => {
            eprintln!("rejoinder: the document cannot be read: {error}");
            ExitCode::FAILURE
        }
        None => {
            eprintln!("error: `rejoinder read-file` is for the gateway");
            ExitCode::from(USAGE)
        }
    })
}

/// Turns this process into one with limits. Returns why it cannot.
fn limited(kind: Kind) -> io::Error {
    for (resource, most) in LIMITS {
        let set = setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) });
        if let Err(error) = set
            // Elsewhere there are systems that do not know each of them.
            && cfg!(target_os = "linux")
        {
            return error.into();
        }
    }
    match own_program() {
        Ok(program) => Command::new(program).arg0("rejoinder").args([READ_FILE, LIMITED, kind.name()]).exec(),
        Err(error) => error,
    }
}

fn read(kind: Kind) -> io::Result<ExitCode> {
    let mut bytes = Vec::new();
    io::stdin().lock().take(MAX_FILE as u64 + 1).read_to_end(&mut bytes)?;
    let text = if bytes.len() > MAX_FILE { Err(Unread::TooMuch) } else { text_of(kind, &bytes) };
    match text {
        Ok(text) => {
            let mut stdout = io::stdout().lock();
            stdout.write_all(text.as_bytes())?;
            stdout.flush()?;
            Ok(ExitCode::SUCCESS)
        }
        Err(why) => {
            let code = REASONS.into_iter().find_map(|(code, known)| (known == why).then_some(code));
            Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
        }
    }
}
