//! Opens a database: its server, its schema, its connections.

use std::{fmt, sync::Arc, time::Duration};

use rejoinder_core::{NodeId, SharedClock, Timestamp};
use sqlx::{Connection as _, Executor as _, PgConnection, Row as _};
use tokio::time::timeout;

use super::{
    connections::Connections,
    error::PostgresOpenError,
    hints::Hints,
    hosts::Connector,
    log_order::LogOrder,
    schema::{self, migrate},
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

/// The ones that say that this node lives and take its leases: neither waits for anything else.
const NODES: (usize, Duration) = (2, Duration::from_secs(4));

/// The ones that ask for permits, and give leases back.
const SHARES: (usize, Duration) = (2, Duration::from_secs(4));

/// The one that sends hints.
const HINTS: (usize, Duration) = (1, Duration::from_secs(3));

/// The ones that keep what runs say so far.
const DRAFTS: (usize, Duration) = (2, Duration::from_secs(3));

/// How much later than this program the server ends a statement that takes too long.
const LATER: Duration = Duration::from_secs(1);

/// Which database to open, by a URL `postgres://USER:PASSWORD@HOST:PORT/DATABASE`.
///
/// There can be several hosts (`HOST:PORT,HOST:PORT`), of which the first is used on which can be written; with the parameter
/// `target_session_attrs=any` the first that answers. `sslmode` is `disable`, `prefer` (the default: nothing is verified), `require`,
/// `verify-ca` or, as it should be over a network, `verify-full`. `sslrootcert` names a file with the authorities to trust instead of
/// those of the system, `sslcert` and `sslkey` the certificate of this client. `host` (a folder, for a Unix socket), `port`, `user`,
/// `password`, `dbname` and `options` are as for other programs. A URL with any other parameter is refused.
#[derive(Clone)]
pub struct PostgresOptions {
    url: String,
    clock: SharedClock,
    /// A new one if there is none.
    node: Option<NodeId>,
    /// Whether requests are written together.
    has_batches: bool,
}

// Without the URL, which can have a password.
impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresOptions").finish_non_exhaustive()
    }
}

impl PostgresOptions {
    /// The database at `url`. `clock` is for queries that pass no time.
    pub fn new(url: impl Into<String>, clock: SharedClock) -> Self {
        Self { url: url.into(), clock, node: None, has_batches: true }
    }

    /// Under the id of this process. No other store may have it.
    #[must_use]
    pub fn of_node(mut self, node: NodeId) -> Self {
        self.node = Some(node);
        self
    }

    /// Writes each request in a transaction of its own.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn without_batches(mut self) -> Self {
        self.has_batches = false;
        self
    }

    /// Opens the database, and makes or updates its schema.
    ///
    /// # Errors
    /// When it cannot be reached or used, or was written by a newer version.
    pub async fn open(self) -> Result<PostgresStore, PostgresOpenError> {
        self.open_to(Use::Write).await
    }

    /// Opens the database for reading, whatever else has it open. Each write fails.
    ///
    /// # Errors
    /// When it cannot be reached or read, or has another schema version than this program's.
    pub async fn open_read_only(self) -> Result<PostgresStore, PostgresOpenError> {
        self.open_to(Use::Read).await
    }

    async fn open_to(self, purpose: Use) -> Result<PostgresStore, PostgresOpenError> {
        let Self { url, clock, node, has_batches } = self;
        let connector = Connector::parse(&url).map_err(|reason| PostgresOpenError::Url { reason })?;
        let node = node.unwrap_or_else(|| NodeId::new(clock.now()));
        let connector = connector.named(format!("rejoinder/{node}"));
        let connector = if purpose == Use::Read { connector.for_reading() } else { connector };
        let prepared = prepare(&connector, purpose, &clock).await?;
        let for_slow =
            |(number, deadline)| Connections::for_slow(limited(connector.clone(), deadline), number, deadline);
        let log_order = LogOrder::start(limited(connector.clone(), READERS.1)).await;
        let log_order =
            log_order.map_err(|source| PostgresOpenError::Log { database: connector.database().to_owned(), source })?;
        let (log_order, transcripts) = (Arc::new(log_order), Arc::new(Transcripts::default()));
        // If it is not closed in time, the server finds out.
        let _ = timeout(CONNECT, prepared.close()).await;
        let sender = Connections::new(limited(connector.clone(), HINTS.1), HINTS.0, HINTS.1);
        Ok(PostgresStore {
            readers: Connections::new(planned(limited(connector.clone(), READERS.1)), READERS.0, READERS.1),
            operator: for_slow(OPERATOR),
            counter: for_slow(COUNTER),
            hints: Hints::start(
                node,
                limited(connector.clone(), HINTS.1),
                sender,
                Arc::clone(&log_order),
                Arc::clone(&transcripts),
            ),
            drafts: Connections::new(limited(connector.clone(), DRAFTS.1), DRAFTS.0, DRAFTS.1),
            nodes: Connections::new(limited(connector.clone(), NODES.1), NODES.0, NODES.1),
            shares: Connections::new(limited(connector.clone(), SHARES.1), SHARES.0, SHARES.1),
            writer: Writer::start(
                planned(limited(connector.clone(), writer::DEADLINE)),
                node,
                Arc::clone(&clock),
                Arc::clone(&log_order),
                has_batches,
            ),
            log_order,
            clock,
            transcripts,
        })
    }

    /// A connection to the database as it is, for statements that may take long, and how the database is named.
    pub(super) async fn connect(&self, purpose: Use) -> Result<(PgConnection, String), PostgresOpenError> {
        let connector = Connector::parse(&self.url).map_err(|reason| PostgresOpenError::Url { reason })?;
        let connector = connector.named("rejoinder-copy".to_owned());
        let mut connection = in_time(&connector, connect(&connector)).await?;
        check(&mut connection, connector.database(), purpose).await?;
        Ok((connection, connector.database().to_owned()))
    }
}

/// What a database is opened for.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Use {
    Read,
    Write,
}

/// With settings by which the server ends what this program has given up: it may not hear of that.
fn limited(connector: Connector, deadline: Duration) -> Connector {
    let limit = (deadline + LATER).as_millis().to_string();
    connector.set(&[
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

/// For connections whose statements each have an index: they are planned once, and never to read a whole table because it is small
/// now, or is thought to be.
fn planned(connector: Connector) -> Connector {
    connector.set(&[
        ("enable_seqscan", "off"),
        ("enable_bitmapscan", "off"),
        ("plan_cache_mode", "force_generic_plan"),
        ("jit", "off"),
    ])
}

/// Checks the server, and makes or updates the schema, or checks it. The connection is to stay open until there are others: as long as
/// there is one, a copy of the store sees that the database is in use.
async fn prepare(connector: &Connector, purpose: Use, clock: &SharedClock) -> Result<PgConnection, PostgresOpenError> {
    let mut connection = in_time(connector, begin(connector, purpose, clock)).await?;
    if purpose == Use::Write {
        // This may take long.
        migrate(&mut connection, connector.database()).await?;
        in_time(connector, begin_to_write(&mut connection, connector.database())).await?;
    }
    Ok(connection)
}

async fn begin(connector: &Connector, purpose: Use, clock: &SharedClock) -> Result<PgConnection, PostgresOpenError> {
    let database = connector.database();
    let failed = |source| PostgresOpenError::connection(database, source);
    let connector = limited(connector.clone(), CONNECT);
    let mut connection = connect(&connector).await?;
    check(&mut connection, database, purpose).await?;
    // Before it is asked for anything that is stored.
    let asked_at = clock.boottime();
    let now: i64 = sqlx::query_scalar(NOW).fetch_one(&mut connection).await.map_err(failed)?;
    clock.follow(Timestamp::from_millis(now), asked_at);
    let is_begun: bool = sqlx::query_scalar(IS_BEGUN).fetch_one(&mut connection).await.map_err(failed)?;
    if is_begun {
        return Err(PostgresOpenError::Unfinished { database: database.to_owned() });
    }
    if purpose == Use::Read {
        schema::check(&mut connection, database).await?;
    }
    Ok(connection)
}

async fn begin_to_write(connection: &mut PgConnection, database: &str) -> Result<(), PostgresOpenError> {
    let failed = |source| PostgresOpenError::connection(database, source);
    connection.execute(FORGET_COPY).await.map_err(failed)?;
    match connection.execute(FORGET_WRITERS).await.map_err(failed) {
        Ok(_) => Ok(()),
        // A copy has locked the store: what is written after that would not be in it.
        Err(error) if error.is_away() => Err(error),
        Err(error) => {
            tracing::debug!(%error, "rows of earlier processes cannot be removed");
            Ok(())
        }
    }
}

/// What is done while the store is opened, as long as it does not take too long.
async fn in_time<T>(
    connector: &Connector,
    work: impl Future<Output = Result<T, PostgresOpenError>>,
) -> Result<T, PostgresOpenError> {
    let done = timeout(2 * CONNECT.max(connector.patience()), work).await;
    done.unwrap_or_else(|_| Err(PostgresOpenError::Late { database: connector.database().to_owned() }))
}

/// A connection with a process of the server for itself. A pooler whose connections share processes is refused: what is set, prepared or
/// locked on one of them is not there in its next transaction. Connections stay open as long as the store, so that it would save nothing.
///
/// Nothing is set or prepared before that is known: other programs would go on with it.
async fn connect(connector: &Connector) -> Result<PgConnection, PostgresOpenError> {
    let failed = |source| PostgresOpenError::connection(connector.database(), source);
    let (mut connection, mut another) = (connect_bare(connector).await?, connect_bare(connector).await?);
    if is_pooler(&mut connection, &mut another).await.map_err(failed)? {
        return Err(PostgresOpenError::Pooler { database: connector.database().to_owned() });
    }
    another.close().await.map_err(failed)?;
    connector.set_up(&mut connection).await.map_err(failed)?;
    Ok(connection)
}

async fn connect_bare(connector: &Connector) -> Result<PgConnection, PostgresOpenError> {
    let connected = timeout(CONNECT.max(connector.patience()), connector.connect_bare()).await;
    let connected = connected.map_err(|_| PostgresOpenError::Late { database: connector.database().to_owned() })?;
    connected.map_err(|source| PostgresOpenError::connection(connector.database(), source))
}

/// Whether connections share the processes of the server. Each is asked twice in a row: of a pooler that uses its processes in turn, each
/// would seem to have one for itself.
async fn is_pooler(one: &mut PgConnection, other: &mut PgConnection) -> Result<bool, sqlx::Error> {
    let (first, repeated) = (process(one).await?, process(one).await?);
    let (second, confirmed) = (process(other).await?, process(other).await?);
    Ok(first == second || first != repeated || second != confirmed || first != process(one).await?)
}

/// The server's process. A prepared statement could not be executed if there is a pooler.
async fn process(connection: &mut PgConnection) -> Result<i32, sqlx::Error> {
    connection.fetch_one("select pg_backend_pid()").await?.try_get(0)
}

async fn check(connection: &mut PgConnection, database: &str, purpose: Use) -> Result<(), PostgresOpenError> {
    let server = sqlx::query_as(SELECT_SERVER).fetch_one(connection).await;
    let (major, version, encoding, is_standby, is_read_only): (i64, String, String, bool, bool) =
        server.map_err(|source| PostgresOpenError::connection(database, source))?;
    let database = database.to_owned();
    if major < OLDEST {
        return Err(PostgresOpenError::TooOld { database, found: version });
    }
    if is_standby {
        return Err(PostgresOpenError::Standby { database });
    }
    if is_read_only && purpose == Use::Write {
        return Err(PostgresOpenError::ReadOnly { database });
    }
    if encoding != "UTF8" {
        return Err(PostgresOpenError::Encoding { database, found: encoding });
    }
    Ok(())
}

const SELECT_SERVER: &str = "
    select current_setting('server_version_num')::bigint / 10000, current_setting('server_version'),
        current_setting('server_encoding'), pg_is_in_recovery(), current_setting('transaction_read_only')::boolean";

/// In milliseconds since the Unix epoch.
const NOW: &str = "select (extract(epoch from clock_timestamp()) * 1000)::bigint";

/// Whether another store is copied into the database, and not all of it is there.
pub(super) const IS_BEGUN: &str = "select to_regclass('begun_copy') is not null";

/// From now on the database is no copy that a repeated run may replace.
const FORGET_COPY: &str = "
    do $$ begin
        if to_regclass('finished_copy') is not null then drop table finished_copy; end if;
    end $$";

/// A process that goes on writes its row anew with each transaction.
const FORGET_WRITERS: &str = "
    delete from writers where (node, lane) in (
        select node, lane from writers where at < now() - interval '1 day' for update skip locked)";

#[cfg(test)]
mod tests {
    use std::{
        error::Error,
        io::{Read, Write},
        net::{SocketAddr, TcpListener},
        thread,
    };

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

    /// A server that answers each request for TLS with this byte, and then ends the connection.
    fn server(answer: u8) -> SocketAddr {
        let server = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = server.local_addr().expect("it has an address");
        thread::spawn(move || {
            for mut client in server.incoming().flatten() {
                let mut request = [0; 8];
                // The client may be gone.
                let _ = client.read_exact(&mut request).and_then(|()| client.write_all(&[answer]));
            }
        });
        address
    }

    #[tokio::test]
    async fn a_server_without_tls_is_not_used_if_the_url_asks_for_it() {
        let without = server(b'N');
        let refused = error(&format!("postgres://ann@{without}/chats?sslmode=require")).await;
        assert!(refused.ends_with("the server has no TLS, which `sslmode` asks for"), "{refused}");
        let foreign = server(b'H');
        let refused = error(&format!("postgres://ann@{foreign}/chats")).await;
        assert!(refused.ends_with("this is no server of PostgreSQL, or a very old one"), "{refused}");
    }

    #[tokio::test]
    async fn settings_of_tls_that_would_verify_nothing_are_refused() {
        for (parameters, reason) in [
            ("sslmode=verify-ca", "`sslmode` is `verify-full`"),
            ("sslmode=require&sslrootcert=system", "`sslmode` is `verify-full`"),
            ("sslmode=allow", "use `prefer`"),
            ("sslcert=here.pem", "are given together"),
            ("sslrootcert=/nowhere/ca.pem", "`sslrootcert` cannot be read: "),
        ] {
            let refused = error(&format!("postgres://ann@127.0.0.1:1/chats?{parameters}")).await;
            assert!(refused.starts_with("the URL of the database cannot be used: "), "{refused}");
            assert!(refused.contains(reason), "{refused}");
        }
    }

    #[tokio::test]
    async fn if_no_host_can_be_used_the_error_names_each_with_its_reason() {
        let foreign = server(b'H');
        let refused = error(&format!("postgres://ann@127.0.0.1:1,{foreign}/chats")).await;
        assert!(
            refused.starts_with(&format!("cannot use the database chats at 127.0.0.1:1, {foreign}: ")),
            "{refused}"
        );
        assert!(refused.contains("127.0.0.1:1: error communicating"), "{refused}");
        assert!(refused.contains(&format!("; {foreign}: error communicating")), "{refused}");
    }

    #[test]
    fn the_server_gives_up_later_than_this_program() {
        let connector = Connector::parse("postgres://ann@127.0.0.1/chats").expect("it is a URL");
        let connector = limited(connector, Duration::from_secs(3));
        let settings = connector.settings();
        assert!(settings.starts_with("set statement_timeout = '4000'; set lock_timeout = '5s'; "), "{settings}");
        assert!(settings.ends_with("set default_transaction_isolation = 'read committed'; "), "{settings}");
    }
}
