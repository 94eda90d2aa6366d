//! The options for another server that is measured beside the gateway.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result};
use hyper::Uri;

use crate::client::{Endpoint, Header, parse_url};

#[derive(clap::Args)]
#[group(id = "peer_options")]
pub(crate) struct Arguments {
    /// Measure the server at this URL, too, with 1, 16 and 64 callers. It must answer each POST with 2xx once it has the
    /// agent's answer.
    #[arg(long, value_name = "URL", value_parser = parse_url)]
    peer: Option<Uri>,
    /// A header of every request to the peer; can be repeated.
    #[arg(long, value_name = "NAME: VALUE", requires = "peer", allow_hyphen_values = true)]
    peer_header: Vec<Header>,
    /// A file with the body of every request to the peer, in which `{text}` and `{conversation}` are replaced; if not
    /// given, the body that the gateway gets.
    #[arg(long, value_name = "FILE", requires = "peer")]
    peer_body: Option<PathBuf>,
    /// The port of the agent of the hooks on 127.0.0.1, so that a peer can ask the same agent; 0: any.
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) agent_port: u16,
}

impl Arguments {
    /// Where the peer is, if there is one.
    ///
    /// # Errors
    ///
    /// When the file of the body cannot be read.
    pub(crate) fn endpoint(&self) -> Result<Option<Endpoint>> {
        let Some(url) = self.peer.clone() else { return Ok(None) };
        let read = |path: &PathBuf| fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()));
        let template = self.peer_body.as_ref().map(read).transpose()?;
        Ok(Some(Endpoint { url, headers: self.peer_header.clone(), template }))
    }
}
