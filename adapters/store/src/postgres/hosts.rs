//! The servers that may have the database: connections go to the first one that can be used.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use sqlx::{AssertSqlSafe, ConnectOptions as _, Executor as _, PgConnection, Row as _, postgres::PgConnectOptions};
use tokio::time::{Instant, timeout};

use super::{
    error::is_refusal,
    relay,
    tls::Tls,
    url::{DatabaseUrl, HostAddress},
};

/// How long a server may take to connect, if there are others.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long a server that could not be used is asked last.
const LAST: Duration = Duration::from_secs(5);

/// How connections for one purpose are opened. Not shown by `Debug`: the options have the password.
#[derive(Clone)]
pub(super) struct Connector {
    hosts: Arc<Hosts>,
    application: String,
    /// Statements that each new connection executes. They are no options at its begin, which poolers refuse or forget.
    settings: String,
    must_be_writable: bool,
}

struct Hosts {
    /// The database, as errors name it.
    database: String,
    all: Vec<Host>,
    tls: Option<Tls>,
}

struct Host {
    address: HostAddress,
    /// When it could not be used last.
    failed: Mutex<Option<Instant>>,
}

impl Connector {
    /// Reads a URL, and the files that it names. The error is a sentence without any secret.
    pub(super) fn parse(url: &str) -> Result<Self, String> {
        let DatabaseUrl { name, hosts, must_be_writable, ssl_mode, files } = DatabaseUrl::parse(url)?;
        let all = hosts.into_iter().map(|address| Host { address, failed: Mutex::default() }).collect();
        let hosts = Hosts { database: name, all, tls: Tls::new(ssl_mode, &files)? };
        Ok(Self { hosts: Arc::new(hosts), application: String::new(), settings: String::new(), must_be_writable })
    }

    /// The database, as errors name it.
    pub(super) fn database(&self) -> &str {
        &self.hosts.database
    }

    /// The name that connections have on the server.
    pub(super) fn named(self, application: String) -> Self {
        Self { application, ..self }
    }

    /// Has each connection begin with these settings.
    pub(super) fn set(mut self, settings: &[(&str, &str)]) -> Self {
        for &(name, value) in settings {
            self.settings.extend(["set ", name, " = '", value, "'; "]);
        }
        self
    }

    /// For connections that write nothing. Of several servers they go to the same one all the same: on a standby the end of the log is not
    /// known. A single one may be read-only.
    pub(super) fn for_reading(self) -> Self {
        let must_be_writable = self.must_be_writable && self.hosts.all.len() > 1;
        Self { must_be_writable, ..self }.set(&[("default_transaction_read_only", "on")])
    }

    #[cfg(test)]
    pub(super) fn settings(&self) -> &str {
        &self.settings
    }

    /// How long it may take until the last server is asked, and has answered.
    pub(super) fn patience(&self) -> Duration {
        self.hosts.all.iter().map(|_| PATIENCE).sum()
    }

    /// A connection of a store that is open. The name of its only server may lead to another one now.
    pub(super) async fn connect(&self) -> Result<PgConnection, sqlx::Error> {
        self.open(|options| self.begin(options)).await
    }

    /// A connection on which nothing is set or prepared yet: see [`set_up`](Self::set_up). The caller finds out whether a single server can
    /// be used, and says more.
    pub(super) async fn connect_bare(&self) -> Result<PgConnection, sqlx::Error> {
        let must_be_writable = self.must_be_writable && self.hosts.all.len() > 1;
        self.open(|options| begin_bare(options, must_be_writable)).await
    }

    /// Has a connection begin with the settings.
    pub(super) async fn set_up(&self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        if self.settings.is_empty() {
            return Ok(());
        }
        connection.execute(AssertSqlSafe(self.settings.clone())).await.map(drop)
    }

    async fn begin(&self, options: PgConnectOptions) -> Result<PgConnection, sqlx::Error> {
        let mut connection = begin_bare(options, self.must_be_writable).await?;
        self.set_up(&mut connection).await?;
        Ok(connection)
    }

    /// Has `make` make something of the options of a server: a connection, or what has one. If it fails, the next server is asked, but as
    /// for other programs not after a wrong password.
    pub(super) async fn open<T, F>(&self, make: impl Fn(PgConnectOptions) -> F) -> Result<T, sqlx::Error>
    where
        F: Future<Output = Result<T, sqlx::Error>>,
    {
        if let [host] = &*self.hosts.all {
            return self.open_at(host, &make).await;
        }
        let mut hosts: Vec<&Host> = self.hosts.all.iter().collect();
        hosts.sort_by_cached_key(|host| host.has_failed());
        let mut failures = Vec::new();
        for host in hosts {
            let failure = match timeout(PATIENCE, self.open_at(host, &make)).await {
                Ok(Ok(opened)) => {
                    host.set_failed(None);
                    return Ok(opened);
                }
                Ok(Err(error)) if is_refusal(&error) => return Err(error),
                Ok(Err(error)) => error.to_string(),
                Err(_) => "it does not answer".to_owned(),
            };
            host.set_failed(Some(Instant::now()));
            failures.push(format!("{}: {failure}", host.address.name()));
        }
        // Another one may take over in a moment.
        Err(sqlx::Error::Io(io::Error::new(io::ErrorKind::HostUnreachable, failures.join("; "))))
    }

    async fn open_at<T, F>(&self, host: &Host, make: impl FnOnce(PgConnectOptions) -> F) -> Result<T, sqlx::Error>
    where
        F: Future<Output = Result<T, sqlx::Error>>,
    {
        let HostAddress { host, port, options } = &host.address;
        let options = options.clone().application_name(&self.application);
        if options.get_socket().is_some() {
            return make(options).await;
        }
        relay::connect((host.as_str(), *port), self.hosts.tls.as_ref(), options, make).await
    }
}

impl Host {
    /// Whether it could not be used a moment ago.
    fn has_failed(&self) -> bool {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.is_some_and(|at| at.elapsed() < LAST)
    }

    fn set_failed(&self, at: Option<Instant>) {
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = at;
    }
}

/// The settings can have a connection read-only: they come after this.
async fn begin_bare(options: PgConnectOptions, must_be_writable: bool) -> Result<PgConnection, sqlx::Error> {
    let mut connection = options.connect().await?;
    if must_be_writable {
        let is_read_only: bool = connection.fetch_one(IS_READ_ONLY).await?.try_get(0)?;
        if is_read_only {
            return Err(other("it is a standby, or can only be read".to_owned()));
        }
    }
    Ok(connection)
}

/// Reads the URL of a database, and the files that it names, as an open does.
///
/// # Errors
/// Why it cannot be used: a sentence without any secret.
pub fn check_postgres_url(url: &str) -> Result<(), String> {
    Connector::parse(url).map(drop)
}

fn other(reason: String) -> sqlx::Error {
    sqlx::Error::Io(io::Error::other(reason))
}

const IS_READ_ONLY: &str = "select pg_is_in_recovery() or current_setting('transaction_read_only')::boolean";
