//! The limit of open files of the process, which includes sockets.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::warn;

/// Below this, the gateway warns.
const ENOUGH: u64 = 1024;

/// Raises the limit as far as the system allows. Most systems start a process with 1024 and allow many more.
pub(crate) fn raise() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })
    {
        warn!(%error, "cannot raise the limit of open files");
    }
    let most = most();
    if most < ENOUGH {
        warn!(
            open_files = most,
            "the limit of open files is low and allows only half as many connections; raise LimitNOFILE or `ulimit -n`"
        );
    }
}

/// The current limit.
pub(crate) fn most() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}
