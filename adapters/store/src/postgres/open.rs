//! Opens a database: its server, its schema, its connections.

use std::{fmt, sync::Arc, time::Duration};

use rejoinder_core::{NodeId, SharedClock};
use sqlx::{ConnectOptions, Connection as _, PgConnection, postgres::PgConnectOptions};
use tokio::time::timeout;

use super::{
    connections::Connections,
    error::PostgresOpenError,
    log_order::LogOrder,
    schema::migrate,
    store::PostgresStore,
    writer::{self, Writer},
};
use crate::shared::transcripts::Transcripts;

/// The oldest version of PostgreSQL that has all that statements use.
const OLDEST: i64 = 15;

/// How long the server may take to answer when the store is opened.
const CONNECT: Duration = Duration::from_secs(10);

/// How many connections read for turns, and how long one statement may take.
const READERS: (usize, Duration) = (4, Duration::from_secs(5));

/// Those that read for the operator.
const OPERATOR: (usize, Duration) = (2, Duration::from_secs(3));

/// The one that counts all rows.
const COUNTER: (usize, Duration) = (1, Duration::from_mins(10));

/// The ones that say that this node lives, and take its leases.
const NODES: (usize, Duration) = (2, Duration::from_secs(4));

/// How much later than this program the server ends a statement that takes too long.
const LATER: Duration = Duration::from_secs(1);

/// How many statements of a connection stay prepared: more than there are.
const STATEMENTS: usize = 500;

/// Which database to open.
///
/// Connections over TCP are not encrypted yet: a URL that asks for TLS (`sslmode=require`) is refused.
#[derive(Clone)]
pub struct PostgresOptions {
    url: String,
    clock: SharedClock,
}

// Without the URL, which can have a password.
impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresOptions").finish_non_exhaustive()
    }
}

impl PostgresOptions {
    /// The database at `url`: `postgres://USER:PASSWORD@HOST:PORT/DATABASE`. `clock` is for queries that pass no time.
    pub fn new(url: impl Into<String>, clock: SharedClock) -> Self {
        Self { url: url.into(), clock }
    }

    /// Opens the database, and makes or updates its schema.
    ///
    /// # Errors
    /// When it cannot be reached or used, or was written by a newer version.
    pub async fn open(self) -> Result<PostgresStore, PostgresOpenError> {
        let Self { url, clock } = self;
        let options = parse(&url)?;
        let (node, database) = (NodeId::new(clock.now()), name(&options));
        let application = format!("rejoinder/{node}");
        let options =
            options.application_name(&application).statement_cache_capacity(STATEMENTS).disable_statement_logging();
        prepare(&options, &database).await?;
        let for_slow = |(number, deadline)| Connections::for_slow(limited(options.clone(), deadline), number, deadline);
        let log_order = LogOrder::start(limited(options.clone(), READERS.1)).await;
        let log_order = log_order.map_err(|source| PostgresOpenError::Log { database, source })?;
        let log_order = Arc::new(log_order);
        Ok(PostgresStore {
            readers: Connections::new(planned(limited(options.clone(), READERS.1)), READERS.0, READERS.1),
            operator: for_slow(OPERATOR),
            counter: for_slow(COUNTER),
            nodes: Connections::new(limited(options.clone(), NODES.1), NODES.0, NODES.1),
            writer: Writer::start(
                planned(limited(options.clone(), writer::DEADLINE)),
                node,
                Arc::clone(&clock),
                Arc::clone(&log_order),
            ),
            log_order,
            clock,
            transcripts: Transcripts::default(),
        })
    }
}

fn parse(url: &str) -> Result<PgConnectOptions, PostgresOpenError> {
    if !["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
        return Err(PostgresOpenError::Url { reason: "it does not begin with postgres://".to_owned() });
    }
    url.parse().map_err(|error: sqlx::Error| PostgresOpenError::Url { reason: error.to_string() })
}

/// The database as errors name it: without user and password.
fn name(options: &PgConnectOptions) -> String {
    let host = match options.get_socket() {
        Some(folder) => folder.display().to_string(),
        None => options.get_host().to_owned(),
    };
    let database = options.get_database().unwrap_or_else(|| options.get_username());
    format!("{database} at {host}:{}", options.get_port())
}

/// Options with which the server ends what this program has given up: it may not hear of that.
fn limited(options: PgConnectOptions, deadline: Duration) -> PgConnectOptions {
    let limit = (deadline + LATER).as_millis().to_string();
    options.options([
        ("statement_timeout", limit.as_str()),
        ("lock_timeout", "5s"),
        ("idle_in_transaction_session_timeout", "5s"),
        ("client_connection_check_interval", "1s"),
        ("tcp_user_timeout", "10s"),
        ("tcp_keepalives_idle", "5"),
        // Each statement sees what was committed before it.
        ("default_transaction_isolation", "read committed"),
    ])
}

/// Options of connections whose statements each have an index: they are planned once, and never to read a whole table because it is small
/// now, or is thought to be.
fn planned(options: PgConnectOptions) -> PgConnectOptions {
    options.options([
        ("enable_seqscan", "off"),
        ("enable_bitmapscan", "off"),
        ("plan_cache_mode", "force_generic_plan"),
        ("jit", "off"),
    ])
}

/// Checks the server, and makes or updates the schema.
async fn prepare(options: &PgConnectOptions, database: &str) -> Result<(), PostgresOpenError> {
    let failed = |source| PostgresOpenError::connection(database, source);
    let connected = timeout(CONNECT, options.connect()).await;
    let connected = connected.map_err(|_| PostgresOpenError::Late { database: database.to_owned() })?;
    let mut connection = connected.map_err(failed)?;
    check(&mut connection, database).await?;
    migrate(&mut connection, database).await?;
    if let Err(error) = sqlx::query(FORGET_WRITERS).execute(&mut connection).await {
        tracing::debug!(%error, "rows of earlier processes cannot be removed");
    }
    connection.close().await.map_err(failed)
}

async fn check(connection: &mut PgConnection, database: &str) -> Result<(), PostgresOpenError> {
    let server = sqlx::query_as(SELECT_SERVER).fetch_one(connection).await;
    let (major, version, encoding, is_standby): (i64, String, String, bool) =
        server.map_err(|source| PostgresOpenError::connection(database, source))?;
    let database = database.to_owned();
    if major < OLDEST {
        return Err(PostgresOpenError::TooOld { database, found: version });
    }
    if is_standby {
        return Err(PostgresOpenError::Standby { database });
    }
    if encoding != "UTF8" {
        return Err(PostgresOpenError::Encoding { database, found: encoding });
    }
    Ok(())
}

const SELECT_SERVER: &str = "
    select current_setting('server_version_num')::bigint / 10000, current_setting('server_version'),
        current_setting('server_encoding'), pg_is_in_recovery()";

/// A process that goes on writes its row anew with each transaction.
const FORGET_WRITERS: &str = "
    delete from writers where (node, lane) in (
        select node, lane from writers where at < now() - interval '1 day' for update skip locked)";

#[cfg(test)]
mod tests {
    use std::{error::Error, net::TcpListener};

    use rejoinder_core::SystemClock;

    use super::*;

    fn options(url: &str) -> PostgresOptions {
        PostgresOptions::new(url, Arc::new(SystemClock))
    }

    /// An error with its reasons, as it is logged.
    async fn error(url: &str) -> String {
        let error = options(url).open().await.expect_err("there is no such database");
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(reason) = source {
            text = format!("{text}: {reason}");
            source = reason.source();
        }
        text
    }

    #[tokio::test]
    async fn an_error_names_the_database_and_not_the_password() {
        // Nobody listens there.
        let unreachable = error("postgres://ann:secret@127.0.0.1:1/chats").await;
        assert!(unreachable.starts_with("cannot use the database chats at 127.0.0.1:1: "), "{unreachable}");
        let without_host = error("postgres://ann:secret@:x/chats").await;
        assert!(without_host.starts_with("the URL of the database cannot be used: "), "{without_host}");
        let foreign = error("mysql://ann:secret@127.0.0.1/chats").await;
        assert!(foreign.ends_with("it does not begin with postgres://"), "{foreign}");

        let debug = format!("{:?}", options("postgres://ann:secret@127.0.0.1:1/chats"));
        for text in [unreachable, without_host, foreign, debug] {
            assert!(!text.contains("secret"), "{text}");
        }
    }

    #[tokio::test]
    async fn a_url_that_asks_for_tls_is_refused() {
        let server = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = server.local_addr().expect("it has an address");
        let refused = error(&format!("postgres://ann@{address}/chats?sslmode=require")).await;
        assert!(refused.contains("without TLS support"), "{refused}");
    }

    #[test]
    fn the_server_gives_up_later_than_this_program() {
        let url = "postgres://ann@127.0.0.1/chats?options=-c%20geqo%3Doff";
        let options = limited(parse(url).expect("it is a URL"), Duration::from_secs(3));
        let options = options.get_options().expect("there are some");
        assert!(options.starts_with("-c geqo=off -c statement_timeout=4000 "), "{options}");
        assert!(options.ends_with(r"-c default_transaction_isolation=read\ committed"), "{options}");
    }
}
