//! How many files, sockets included, the process may have open at once.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::warn;

/// Below this a gateway is short of them.
const ENOUGH: u64 = 1024;

/// Raises the limit as far as the system allows. Most systems start a process with 1024 and allow many more.
pub(crate) fn raise() {
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        warn!(%error, "cannot raise how many files may be open at once");
    }
    let most = most();
    if most < ENOUGH {
        warn!(
            open_files = most,
            "few files may be open at once: half as many connections; raise LimitNOFILE or `ulimit -n`"
        );
    }
}

/// How many may be open now.
pub(crate) fn most() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}
