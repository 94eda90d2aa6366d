//! Whether the service can be reached: by a connection without a request, which might be taken for a turn.

use std::{io, time::Duration};

use futures_util::future::select_ok;
use rejoinder_core::AgentError;
use tokio::{
    net::{TcpStream, lookup_host},
    time::timeout,
};
use url::Url;

/// How long a probe takes at most: less than a cascade waits for it.
const LONGEST: Duration = Duration::from_secs(7);

/// To how many addresses a probe connects.
const MOST_ADDRESSES: usize = 8;

/// Connects to the first addresses of the service at once, because some of them may lead nowhere.
pub(super) async fn connect(url: &Url) -> Result<(), AgentError> {
    in_time(reach(url)).await
}

async fn reach(url: &Url) -> Result<(), AgentError> {
    let unreachable = |error: io::Error| AgentError::Unreachable(error.to_string());
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let port = url.port_or_known_default().unwrap_or_default();
    let addresses = lookup_host((host, port)).await.map_err(unreachable)?.take(MOST_ADDRESSES);
    let connections: Vec<_> = addresses.map(|address| Box::pin(TcpStream::connect(address))).collect();
    if connections.is_empty() {
        return Err(AgentError::Unreachable("its name has no address".to_owned()));
    }
    select_ok(connections).await.map(|_| ()).map_err(unreachable)
}

async fn in_time(probe: impl Future<Output = Result<(), AgentError>>) -> Result<(), AgentError> {
    let late = |_| Err(AgentError::Unreachable("it does not answer in time".to_owned()));
    timeout(LONGEST, probe).await.unwrap_or_else(late)
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    /// A cascade takes no answer of a probe for nothing to ask.
    #[tokio::test(start_paused = true)]
    async fn a_probe_that_hangs_says_that_it_is_late() {
        let probed = timeout(Duration::from_secs(8), in_time(pending())).await;

        let late = AgentError::Unreachable("it does not answer in time".to_owned());
        assert_eq!(probed, Ok(Err(late)));
    }
}
