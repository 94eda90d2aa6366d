//! What the routes of the operator read from the store, at most once a second.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use rejoinder_core::{
    Engine,
    store::{Backlog, InboxStore, NodeSummary, OperatorStore},
};
use tokio::sync::Mutex;
use tracing::{info, warn};

/// How long a result of the store's probe is reused, and its backlog and nodes.
const PROBE_LIFETIME: Duration = Duration::from_secs(1);

/// How long the store may take to answer a probe.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

const NO_RESPONSE: &str = "the store does not respond";

/// Whether the store can write: as its last writes tell, or else a probe, at most once a second, however many requests
/// come.
pub(crate) struct StoreProbe {
    store: Arc<dyn InboxStore>,
    last: Mutex<Option<(Instant, Result<(), String>)>>,
}

impl StoreProbe {
    pub(crate) fn new(store: Arc<dyn InboxStore>) -> Self {
        Self { store, last: Mutex::new(None) }
    }

    pub(super) async fn store_writes(&self) -> Result<(), String> {
        // What its last writes tell is not older than what its callers see.
        if let Some(trouble) = self.store.trouble() {
            return Err(trouble.to_string());
        }
        let mut last = self.last.lock().await;
        if let Some((at, result)) = &*last
            && at.elapsed() < PROBE_LIFETIME
        {
            return result.clone();
        }
        let store = Arc::clone(&self.store);
        let answer = tokio::spawn(async move { store.probe().await });
        let result = match tokio::time::timeout(PROBE_TIMEOUT, answer).await {
            Ok(Ok(result)) => result.map_err(|error| error.to_string()),
            Ok(Err(_)) | Err(_) => Err(NO_RESPONSE.to_owned()),
        };
        // The store itself logs why it cannot write.
        let is_silent = |result: &Result<(), String>| result.as_ref().is_err_and(|error| error == NO_RESPONSE);
        match (last.as_ref().is_some_and(|(_, last)| is_silent(last)), is_silent(&result)) {
            (false, true) => warn!("not ready: {NO_RESPONSE}"),
            (true, false) => info!("the store responds again"),
            _ => {}
        }
        *last = Some((Instant::now(), result.clone()));
        result
    }
}

/// The store's backlog, read at most once a second, however many requests come.
pub(crate) struct BacklogReader {
    store: Arc<dyn OperatorStore>,
    last: Mutex<Option<(Instant, Option<Backlog>)>>,
}

impl BacklogReader {
    pub(crate) fn new(store: Arc<dyn OperatorStore>) -> Self {
        Self { store, last: Mutex::new(None) }
    }

    /// `None` if the store cannot be read.
    pub(super) async fn read(&self) -> Option<Backlog> {
        let mut last = self.last.lock().await;
        if let Some((at, backlog)) = &*last
            && at.elapsed() < PROBE_LIFETIME
        {
            return *backlog;
        }
        let backlog = self.store.backlog().await;
        let backlog = backlog.inspect_err(|error| warn!(%error, "cannot read the backlog for the metrics")).ok();
        *last = Some((Instant::now(), backlog));
        backlog
    }
}

/// The nodes, read at most once a second, however many requests come.
pub(crate) struct NodesReader {
    engine: Engine,
    last: Mutex<Option<(Instant, Option<Vec<NodeSummary>>)>>,
}

impl NodesReader {
    pub(crate) fn new(engine: Engine) -> Self {
        Self { engine, last: Mutex::new(None) }
    }

    /// `None` if the store cannot be read.
    pub(super) async fn read(&self) -> Option<Vec<NodeSummary>> {
        let mut last = self.last.lock().await;
        if let Some((at, nodes)) = &*last
            && at.elapsed() < PROBE_LIFETIME
        {
            return nodes.clone();
        }
        let nodes = self.engine.nodes().await.ok();
        *last = Some((Instant::now(), nodes.clone()));
        nodes
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;
    use rejoinder_core::{
        StoreError,
        conformance::layered::{Layer, Layered, NullStore},
    };

    use super::*;

    /// Counts the reads of a store.
    struct Reads(Arc<AtomicUsize>);

    #[async_trait]
    impl Layer for Reads {
        type Pass = ();

        async fn before_read(&self, _method: &'static str) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }

        async fn before_write(&self, _method: &'static str) -> Result<(), StoreError> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn the_backlog_is_read_once_a_second() {
        let reads = Arc::new(AtomicUsize::new(0));
        let reader =
            BacklogReader::new(Arc::new(Layered { layer: Reads(Arc::clone(&reads)), store: Arc::new(NullStore) }));

        tokio::join!(reader.read(), reader.read());
        assert_eq!(reads.load(Ordering::Relaxed), 1);
        let a_second_ago = Instant::now().checked_sub(PROBE_LIFETIME).expect("the machine is up for longer");
        *reader.last.lock().await = Some((a_second_ago, None));
        assert!(reader.read().await.is_some());
        assert_eq!(reads.load(Ordering::Relaxed), 2);
    }
}
