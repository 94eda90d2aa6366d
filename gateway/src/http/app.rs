//! The state that the routes share.

use std::{net::SocketAddr, ops::Deref, sync::Arc, time::Duration};

use axum::extract::{FromRef, State};
use metrics_exporter_prometheus::PrometheusHandle;
use rejoinder_core::{Addressees, ChannelId, Engine, FileLimits, FileLinks, SharedClock, Timestamp, store::InboxStore};
use tokio_util::sync::CancellationToken;

use super::{
    access::Access,
    keys_in_use::KeysInUse,
    probe::{BacklogReader, NodesReader, StoreProbe},
    records::Records,
    renewal::Renewal,
    sessions::AdminSessions,
};
use crate::{
    alerts::LiveAlerts,
    callers::StoredTokens,
    feed::Feed,
    figures::Figures,
    location::StoreLocation,
    platforms::Hook,
    problems::Problems,
    reload::Reload,
    wiring::{AgentInfo, Parts},
};

/// The state that the routes of this module share, at one address.
pub(crate) struct App {
    commons: Commons,
    pub(super) agents: Vec<AgentInfo>,
    pub(super) hooks: Vec<Hook>,
    pub(super) access: Access,
    pub(super) file_links: FileLinks,
    pub(super) probe: StoreProbe,
    pub(super) backlog: BacklogReader,
    pub(super) nodes: NodesReader,
    pub(super) request_timeout: Duration,
    pub(super) files: FileLimits,
    /// Cancelled when the gateway stops: readers of the log are let go.
    pub(super) stopping: CancellationToken,
}

/// What the routes of all addresses share.
#[derive(Clone)]
pub(crate) struct Commons {
    pub(crate) engine: Engine,
    pub(crate) store: Arc<dyn InboxStore>,
    pub(crate) records: Records,
    pub(crate) clock: SharedClock,
    pub(crate) recorder: PrometheusHandle,
    pub(crate) started_at: Timestamp,
    pub(crate) database: StoreLocation,
    pub(crate) tokens: Arc<StoredTokens>,
    pub(crate) sessions: Arc<AdminSessions>,
    pub(crate) renewal: Arc<Renewal>,
    pub(crate) feed: Arc<Feed>,
    pub(crate) figures: Arc<Figures>,
    pub(crate) keys_in_use: KeysInUse,
    pub(crate) problems: Problems,
    pub(crate) alerts: Arc<LiveAlerts>,
    /// `None`: the configuration is read once only.
    pub(crate) reload: Option<Reload>,
}

pub(super) type Shared = State<Arc<App>>;

impl Deref for App {
    type Target = Commons;

    fn deref(&self) -> &Commons {
        &self.commons
    }
}

impl FromRef<Arc<App>> for Records {
    fn from_ref(app: &Arc<App>) -> Self {
        app.records.clone()
    }
}

impl App {
    /// To be served at an address, which is public or the operator's own.
    pub(crate) fn new(parts: &Parts, commons: Commons, (address, is_public): (SocketAddr, bool)) -> Self {
        Self {
            agents: parts.agent_infos.clone(),
            hooks: parts.hooks.clone(),
            access: Access::new(
                parts.admin_tokens.clone(),
                parts.metrics_tokens.clone(),
                Arc::clone(&parts.guesses),
                parts.public_url.as_ref(),
                address,
                is_public,
            )
            .with_host_of(parts.node_url.as_ref()),
            file_links: parts.file_links.clone(),
            probe: StoreProbe::new(commons.store.clone()),
            backlog: BacklogReader::new(commons.records.lists.clone()),
            nodes: NodesReader::new(commons.engine.clone()),
            request_timeout: parts.request_timeout,
            files: parts.settings.files,
            stopping: parts.stop_waiting.clone(),
            commons,
        }
    }

    /// Names people who were not reached, for a reader of these channels (`None`: of all).
    pub(super) fn names(&self, channels: Option<&[ChannelId]>) -> impl Fn(Addressees) -> String + Copy {
        move |missed| self.engine.name_addressees(missed, channels)
    }
}
