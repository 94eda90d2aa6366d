//! The task of a run.

use std::{sync::Arc, time::Duration};

use serde::de::IgnoredAny;
use tokio::{runtime::Handle, time::timeout};
use tracing::debug;

use crate::{card::Endpoint, connection::Connection, protocol::Method};

/// How long the agent may take to cancel a task.
const CANCEL: Duration = Duration::from_secs(5);

/// What the agent works on for a run. If it is dropped before the agent has ended it, the agent is told to cancel it.
pub(crate) struct RunTask {
    connection: Arc<Connection>,
    endpoint: Arc<Endpoint>,
    id: Option<String>,
    /// The task that a message goes on in, until the agent has named one.
    expected: Option<String>,
}

impl RunTask {
    pub(crate) const fn new(connection: Arc<Connection>, endpoint: Arc<Endpoint>) -> Self {
        Self { connection, endpoint, id: None, expected: None }
    }

    /// Its id, as soon as the agent has named it.
    pub(crate) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    pub(crate) fn named(&mut self, id: &str) {
        (self.id, self.expected) = (Some(id.to_owned()), None);
    }

    /// A message is sent in this task, with which the agent goes on.
    pub(crate) fn goes_on(&mut self, id: &str) {
        self.expected = Some(id.to_owned());
    }

    /// The agent does not work on it any more.
    pub(crate) fn ended(&mut self) {
        (self.id, self.expected) = (None, None);
    }
}

impl Drop for RunTask {
    fn drop(&mut self) {
        // Without a runtime the process ends.
        let (Some(id), Ok(runtime)) = (self.id.take().or(self.expected.take()), Handle::try_current()) else { return };
        let (connection, endpoint) = (Arc::clone(&self.connection), Arc::clone(&self.endpoint));
        runtime.spawn(async move {
            let cancel = connection.about_task::<IgnoredAny>(&endpoint, Method::CancelTask, &id);
            match timeout(CANCEL, cancel).await {
                Ok(Ok(_)) => {}
                // It may have ended meanwhile.
                Ok(Err(error)) => debug!(?error, "a task is not canceled"),
                Err(_) => debug!("a task is not canceled in time"),
            }
        });
    }
}
