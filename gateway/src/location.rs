//! The database of the store: where it is, and how it is opened.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Error, Result};
use rejoinder_config::{Store as StoreSection, StoreUrl};
use rejoinder_core::{NodeId, SharedClock, Store};
use rejoinder_store::{OpenError, OpenOptions, SqliteStore};
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use crate::{disk::Room, node_file};

/// Where the rows of the store are. `Display` shows no password.
#[derive(Clone, Debug)]
pub(crate) enum StoreLocation {
    /// An SQLite file.
    File(PathBuf),
    /// A PostgreSQL database.
    Server(Server),
}

#[derive(Clone, Debug)]
pub(crate) struct Server {
    /// With the password.
    url: SecretString,
    /// Without the password.
    shown: String,
    /// The file that a gateway with this data directory has locked.
    node_file: PathBuf,
}

impl StoreLocation {
    pub(crate) fn of(store: &StoreSection, data_dir: &Path) -> Self {
        match (&store.url, store.postgres()) {
            (StoreUrl::Postgres(shown), Some(url)) => {
                let node_file = data_dir.join(node_file::NAME);
                Self::Server(Server { url, shown: shown.to_string(), node_file })
            }
            (url, _) => Self::File(url.file(data_dir).unwrap_or_default()),
        }
    }

    /// The path of an SQLite file.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Server(_) => None,
        }
    }

    /// The file that a gateway locks while it uses the database with this data directory.
    pub(crate) fn locked_file(&self) -> &Path {
        match self {
            Self::File(path) => path,
            Self::Server(server) => &server.node_file,
        }
    }

    /// Whether a gateway with this data directory uses it.
    ///
    /// # Errors
    /// When its lock cannot be checked.
    pub(crate) fn is_in_use(&self) -> io::Result<bool> {
        rejoinder_store::is_in_use(self.locked_file())
    }

    /// The room on its disk; `None` if that is not known, as of a server.
    pub(crate) fn room(&self) -> Option<Room> {
        Room::of(self.file()?).ok()
    }

    /// Opens it for the gateway with the id `node`. Waits for a server that is away, and for a database that a copy has locked.
    ///
    /// # Errors
    /// When it cannot be opened; for a file it is always an `OpenError`.
    pub(crate) async fn open(
        &self,
        node: NodeId,
        clock: &SharedClock,
        shutdown: &CancellationToken,
    ) -> Result<Arc<dyn Store>> {
        match self {
            Self::File(path) => {
                let mut options = OpenOptions::new(path);
                options.clock = Arc::clone(clock);
                Ok(Arc::new(SqliteStore::open(options).await?))
            }
            Self::Server(server) => Box::pin(postgres::open(server, node, clock, shutdown)).await,
        }
    }

    /// Opens it for reading, also while a gateway uses it.
    pub(crate) async fn open_read_only(&self) -> Result<Arc<dyn Store>> {
        match self {
            Self::File(path) => Ok(Arc::new(SqliteStore::open_read_only(path).await?)),
            Self::Server(server) => postgres::open_read_only(server).await,
        }
    }

    /// The version of its schema, if this program uses it.
    pub(crate) fn schema_version(&self) -> i64 {
        match self {
            Self::File(_) => rejoinder_store::schema_version(),
            Self::Server(_) => postgres::schema_version(),
        }
    }
}

impl fmt::Display for StoreLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Server(server) => f.write_str(&server.shown),
        }
    }
}

/// Whether the URL of a PostgreSQL database can be used, as far as is known without its server. The error is a sentence without any secret.
pub(crate) fn check_postgres(url: &str) -> Result<(), String> {
    postgres::check(url)
}

/// What kept a database from being opened for reading, by what to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unopened {
    /// A gateway makes it when it first runs.
    Missing,
    /// A gateway updates it.
    Older,
    /// The error says what to do.
    AsItSays,
    /// Its server does not let the user in.
    User,
    Otherwise,
}

impl Unopened {
    pub(crate) fn of(error: &Error) -> Self {
        match error.downcast_ref::<OpenError>() {
            Some(OpenError::Missing { .. }) => Self::Missing,
            Some(OpenError::Older { .. }) => Self::Older,
            Some(OpenError::Newer { .. } | OpenError::LogAlone { .. }) => Self::AsItSays,
            Some(_) => Self::Otherwise,
            None => postgres::unopened(error),
        }
    }
}

#[cfg(feature = "postgres")]
mod postgres {
    use std::{sync::Arc, time::Duration};

    use anyhow::{Error, Result, anyhow};
    use rejoinder_core::{NodeId, SharedClock, Store, SystemClock};
    use rejoinder_store::{PostgresOpenError, PostgresOptions};
    use secrecy::ExposeSecret;
    use tokio::time::{Instant, sleep};
    use tokio_util::sync::CancellationToken;
    use tracing::warn;

    use super::{Server, Unopened};

    /// How long a start waits for a server that is away, and how often it tries.
    const AWAY: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(1));

    /// The same if others in the database are in the way. All nodes may wait behind a try.
    const LOCKED: (Duration, Duration) = (Duration::from_mins(10), Duration::from_secs(5));

    /// How long a start has waited.
    struct Waited {
        begun: Instant,
        /// What the database is, and since when.
        last: Option<(&'static str, Instant)>,
    }

    impl Waited {
        /// How long the database has been `what`; `None` if it was something else before. A database that is locked may be away for a
        /// moment, which is waited for anew.
        fn note(&mut self, what: &'static str, now: Instant) -> Option<Duration> {
            if let Some((last, since)) = self.last
                && last == what
            {
                return Some(now - since);
            }
            let since = if self.last.is_none() { self.begun } else { now };
            self.last = Some((what, since));
            None
        }
    }

    pub(super) async fn open(
        server: &Server,
        node: NodeId,
        clock: &SharedClock,
        shutdown: &CancellationToken,
    ) -> Result<Arc<dyn Store>> {
        let options = PostgresOptions::new(server.url.expose_secret(), Arc::clone(clock)).of_node(node);
        let mut waited = Waited { begun: Instant::now(), last: None };
        loop {
            let Some(opened) = shutdown.run_until_cancelled(Box::pin(options.clone().open())).await else {
                return Err(anyhow!("stopped before the database was open"));
            };
            let error = match opened {
                Ok(store) => return Ok(Arc::new(store)),
                Err(error) if error.is_away() => error,
                Err(error) => return Err(error.into()),
            };
            let (what, (patience, pause)) = if error.is_locked() { ("locked", LOCKED) } else { ("away", AWAY) };
            let error = Error::new(error);
            let known = waited.note(what, Instant::now());
            if known.is_some_and(|time| time >= patience) || waited.begun.elapsed() >= LOCKED.0 {
                let time = known.unwrap_or_default().as_secs();
                return Err(error.context(format!("the database was {what} for {time} s")));
            }
            if known.is_none() {
                let error = format!("{error:#}");
                warn!(error, for_s = patience.as_secs(), "the database is {what}, trying again");
            }
            if shutdown.run_until_cancelled(sleep(pause)).await.is_none() {
                return Err(error);
            }
        }
    }

    pub(super) async fn open_read_only(server: &Server) -> Result<Arc<dyn Store>> {
        let options = PostgresOptions::new(server.url.expose_secret(), Arc::new(SystemClock));
        Ok(Arc::new(options.open_read_only().await?))
    }

    pub(super) fn check(url: &str) -> Result<(), String> {
        rejoinder_store::check_postgres_url(url)
    }

    pub(super) fn schema_version() -> i64 {
        rejoinder_store::postgres_schema_version()
    }

    pub(super) fn unopened(error: &Error) -> Unopened {
        match error.downcast_ref::<PostgresOpenError>() {
            Some(PostgresOpenError::Empty { .. }) => Unopened::Missing,
            Some(PostgresOpenError::Older { .. }) => Unopened::Older,
            Some(PostgresOpenError::User { .. }) => Unopened::User,
            Some(
                PostgresOpenError::NoDatabase { .. }
                | PostgresOpenError::Newer { .. }
                | PostgresOpenError::TooOld { .. }
                | PostgresOpenError::Encoding { .. },
            ) => Unopened::AsItSays,
            _ => Unopened::Otherwise,
        }
    }

    #[cfg(test)]
    mod tests {
        use std::net::TcpListener;

        use tokio::time::timeout;

        use super::*;

        #[test]
        fn a_database_that_was_locked_and_is_away_is_waited_for_anew() {
            let (begun, second) = (Instant::now(), Duration::from_secs(1));
            let mut waited = Waited { begun, last: None };
            let mut note = |what, seconds| waited.note(what, begun + second * seconds);

            assert_eq!([note("locked", 1), note("locked", 30)], [None, Some(second * 30)]);
            assert_eq!([note("away", 31), note("away", 32)], [None, Some(second)]);
        }

        #[tokio::test]
        async fn a_start_that_is_stopped_does_not_wait_for_a_server_that_says_nothing() {
            let silent = TcpListener::bind("127.0.0.1:0").unwrap();
            let url = format!("postgres://ann@{}/chats?sslmode=disable", silent.local_addr().unwrap());
            let server = Server { url: url.clone().into(), shown: url, node_file: "node".into() };
            let (clock, shutdown): (SharedClock, _) = (Arc::new(SystemClock), CancellationToken::new());
            let node = NodeId::new(clock.now());
            let stop = async {
                sleep(Duration::from_millis(50)).await;
                shutdown.cancel();
            };

            let opening = timeout(Duration::from_secs(5), open(&server, node, &clock, &shutdown));
            let (opened, ()) = tokio::join!(opening, stop);

            assert!(opened.unwrap().is_err_and(|error| error.to_string().contains("stopped")));
        }
    }
}

/// A build without PostgreSQL.
#[cfg(not(feature = "postgres"))]
mod postgres {
    use std::sync::Arc;

    use anyhow::{Result, anyhow};
    use rejoinder_core::{NodeId, SharedClock, Store};
    use tokio_util::sync::CancellationToken;

    use super::{Server, Unopened};

    #[expect(clippy::unused_async, reason = "as with PostgreSQL")]
    pub(super) async fn open(
        server: &Server,
        _: NodeId,
        _: &SharedClock,
        _: &CancellationToken,
    ) -> Result<Arc<dyn Store>> {
        Err(left_out(server))
    }

    #[expect(clippy::unused_async, reason = "as with PostgreSQL")]
    pub(super) async fn open_read_only(server: &Server) -> Result<Arc<dyn Store>> {
        Err(left_out(server))
    }

    pub(super) fn check(_: &str) -> Result<(), String> {
        Err("PostgreSQL was left out of this build (the feature postgres)".to_owned())
    }

    pub(super) const fn schema_version() -> i64 {
        0
    }

    pub(super) const fn unopened(_: &anyhow::Error) -> Unopened {
        Unopened::AsItSays
    }

    fn left_out(Server { url, shown, .. }: &Server) -> anyhow::Error {
        let _ = url;
        anyhow!("store.url names {shown}, and PostgreSQL was left out of this build (the feature postgres)")
    }
}
