//! Whether the service can be reached: by a connection without a request, which might be taken for a turn.

use std::io;

use futures_util::future::select_ok;
use rejoinder_core::AgentError;
use tokio::net::{TcpStream, lookup_host};
use url::Url;

/// Connects to all addresses of the service at once, because some of them may lead nowhere.
pub(super) async fn connect(url: &Url) -> Result<(), AgentError> {
    let unreachable = |error: io::Error| AgentError::Unreachable(error.to_string());
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let port = url.port_or_known_default().unwrap_or_default();
    let addresses = lookup_host((host, port)).await.map_err(unreachable)?;
    let connections: Vec<_> = addresses.map(|address| Box::pin(TcpStream::connect(address))).collect();
    if connections.is_empty() {
        return Err(AgentError::Unreachable("its name has no address".to_owned()));
    }
    select_ok(connections).await.map(|_| ()).map_err(unreachable)
}
