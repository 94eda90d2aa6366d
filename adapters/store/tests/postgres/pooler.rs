//! A pooler in transaction mode before the server: one of this file, and pgbouncer. Without that program the tests say so, and pass.

use std::{
    collections::VecDeque,
    env, io,
    path::{Path, PathBuf},
    process::{self, Child, Stdio},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use rejoinder_core::{
    SystemClock,
    store::{InboxStore, StoreState},
};
use rejoinder_store::{CopyEnd, PostgresOpenError, PostgresOptions, StoreCopy};
use sqlx::{Connection, Executor, PgConnection, Row, postgres::PgConnectOptions};
use tempfile::TempDir;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    net::{UnixListener, UnixStream},
    sync::Semaphore,
};

use crate::{
    common::open,
    hosts::first_message,
    proxy::{Stream, connect},
    server,
};

/// Where a pooler listens, and for which database.
struct Address {
    database: String,
    folder: PathBuf,
    port: u16,
}

impl Address {
    /// The URL of the database by way of the pooler, which is named as so many hosts.
    fn url(&self, hosts: usize) -> String {
        let Self { database, folder, port } = self;
        let (folder, port) = (folder.display().to_string(), port.to_string());
        let (folders, ports) = (vec![folder; hosts].join(","), vec![port; hosts].join(","));
        format!("{database}&host={folders}&port={ports}&sslmode=disable")
    }

    fn options(&self, hosts: usize) -> PostgresOptions {
        PostgresOptions::new(self.url(hosts), Arc::new(SystemClock))
    }
}

/// Gives each transaction the connection to the server that was not used for longest. The first clients are let in by the server, each on
/// a connection of the pool.
struct Pool {
    server: PgConnectOptions,
    size: usize,
    made: AtomicUsize,
    /// What the server said when it had let in the first client.
    greeting: OnceLock<Vec<u8>>,
    idle: Mutex<VecDeque<Box<dyn Stream>>>,
    free: Semaphore,
}

impl Pool {
    /// Starts a pool of so many connections. The folder of its socket is removed when it is dropped.
    fn start(database: &str, size: usize) -> (Address, TempDir) {
        let folder = tempfile::tempdir().expect("a directory is made");
        let listener = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).expect("it listens");
        let pool = Arc::new(Self {
            server: database.parse().expect("it is a URL"),
            size,
            made: AtomicUsize::default(),
            greeting: OnceLock::new(),
            idle: Mutex::default(),
            free: Semaphore::new(0),
        });
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let pool = Arc::clone(&pool);
                tokio::spawn(async move {
                    // The client sees how it ends.
                    let _ = pool.serve(client).await;
                });
            }
        });
        let address = Address { database: database.to_owned(), folder: folder.path().to_owned(), port: 5432 };
        (address, folder)
    }

    async fn serve(&self, mut client: UnixStream) -> io::Result<()> {
        let first = first_message(&mut client).await?;
        if self.made.fetch_add(1, Ordering::Relaxed) < self.size {
            let server = self.log_in(&mut client, &first).await?;
            self.give(server);
        } else {
            client.write_all(self.greeting.get().expect("the first clients have come before")).await?;
        }
        loop {
            let mut request = message(&mut client).await?;
            if request[0] == b'X' {
                return Ok(());
            }
            let mut server = self.take().await;
            loop {
                server.write_all(&request).await?;
                // The server answers a query, and what was gathered until `Sync`.
                if matches!(request[0], b'Q' | b'S') && answer(&mut server, &mut client).await? == b'I' {
                    break;
                }
                request = message(&mut client).await?;
            }
            self.give(server);
        }
    }

    async fn log_in(&self, client: &mut UnixStream, first: &[u8]) -> io::Result<Box<dyn Stream>> {
        let mut server = connect(&self.server).await?;
        server.write_u32(u32::try_from(first.len() + 4).expect("it is short")).await?;
        server.write_all(first).await?;
        let mut greeting = Vec::new();
        loop {
            let said = message(&mut server).await?;
            client.write_all(&said).await?;
            match (said[0], said.get(8)) {
                // It asks for a password, or goes on with that.
                (b'R', Some(3 | 5 | 10 | 11)) => server.write_all(&message(client).await?).await?,
                (b'R', Some(12)) => {}
                _ => greeting.extend_from_slice(&said),
            }
            if said[0] == b'Z' {
                self.greeting.get_or_init(|| greeting);
                return Ok(server);
            }
        }
    }

    async fn take(&self) -> Box<dyn Stream> {
        self.free.acquire().await.expect("it is not closed").forget();
        self.idle().pop_front().expect("one is free")
    }

    fn give(&self, server: Box<dyn Stream>) {
        self.idle().push_back(server);
        self.free.add_permits(1);
    }

    fn idle(&self) -> MutexGuard<'_, VecDeque<Box<dyn Stream>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A message with its letter and its length.
async fn message(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut message = vec![0; 5];
    stream.read_exact(&mut message).await?;
    let length = u32::from_be_bytes([message[1], message[2], message[3], message[4]]);
    message.resize(usize::try_from(length).expect("it is short") + 1, 0);
    stream.read_exact(&mut message[5..]).await?;
    Ok(message)
}

/// Passes on what the server says until it is ready, and returns its state: `I` if no transaction is open.
async fn answer(server: &mut (impl AsyncRead + Unpin), client: &mut UnixStream) -> io::Result<u8> {
    loop {
        let said = message(server).await?;
        client.write_all(&said).await?;
        if said[0] == b'Z' {
            return Ok(said[5]);
        }
    }
}

/// A process of pgbouncer, and where it listens.
struct PgBouncer {
    address: Address,
    process: Child,
}

impl PgBouncer {
    /// Starts it, so that it takes its connections in turn or the last one that was used. `None` without the program.
    async fn start(database: &str, mode: &str, in_turn: bool) -> Option<Self> {
        let program = Path::new("/usr/sbin/pgbouncer");
        if !program.exists() {
            eprintln!("not run: there is no pgbouncer");
            return None;
        }
        let (port, in_turn) = (6432, u8::from(in_turn));
        // Its socket needs a short path, and the user of the server makes it.
        let folder = env::temp_dir().join(format!("rejoinder-pgbouncer-{}-{mode}-{in_turn}", process::id()));
        let settings = format!(
            "[databases]\n* = {}\n[pgbouncer]\nlisten_port = {port}\nunix_socket_dir = {}\nauth_type = any\npool_mode = {mode}\n\
             server_round_robin = {in_turn}\ndefault_pool_size = 40\n",
            server_of(database),
            folder.display()
        );
        let mut script = server::as_server("sh");
        script.args(["-c", RUN, "rejoinder-run-pgbouncer"]).arg(program).arg(&folder).arg(settings);
        let process = script.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let begun = Instant::now();
        while UnixStream::connect(folder.join(format!(".s.PGSQL.{port}"))).await.is_err() {
            assert!(begun.elapsed() < Duration::from_secs(10), "pgbouncer does not listen");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let address = Address { database: database.to_owned(), folder, port };
        Some(Self { address, process: process.expect("a shell is there") })
    }
}

/// Its input ends with that, or with the process of the test.
impl Drop for PgBouncer {
    fn drop(&mut self) {
        let _ = self.process.wait();
    }
}

/// `$1`: the program. `$2`: its folder. `$3`: its settings. Ends with the input.
const RUN: &str = r#"
    mkdir -m 700 "$2" && printf %s "$3" > "$2/settings" || exit
    "$1" "$2/settings" &
    cat
    kill -9 $!
    rm -rf "$2"
"#;

/// The server of a URL, as pgbouncer's settings name it.
fn server_of(url: &str) -> String {
    let options: PgConnectOptions = url.parse().expect("it is a URL");
    let host = options.get_socket().map_or_else(|| options.get_host().into(), |folder| folder.display().to_string());
    let (_, rest) = url.split_once("://").expect("it is a URL");
    let (user, _) = rest.split_once('@').expect("it has a user");
    let password = user.split_once(':').map_or("none", |(_, password)| password);
    format!("host={host} port={} user={} password='{password}'", options.get_port(), options.get_username())
}

/// What a session of the server has that a program has set, prepared or locked.
const SESSION: &str = "
    select concat_ws(' ',
        (select string_agg(name || ' = ' || setting, ' ' order by name) from pg_settings
        where source = 'session' and name <> 'application_name'),
        (select count(*) from pg_prepared_statements),
        (select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()))";

/// The sessions of a pooler that uses so many in turn.
async fn sessions(program: &mut PgConnection, number: usize) -> Vec<String> {
    let mut sessions = Vec::new();
    for _ in 0..number {
        let session = program.fetch_one(SESSION).await.expect("it answers");
        sessions.push(session.get(0));
    }
    sessions.sort();
    sessions
}

/// Other programs go on as before on connections to the server, of which the pooler has so many.
async fn check_refused(address: &Address, number: usize) {
    let options: PgConnectOptions = address.url(1).parse().expect("it is a URL");
    // pgbouncer refuses that parameter.
    let options = options.extra_float_digits(None);
    let mut programs = Vec::new();
    for _ in 0..number {
        let mut program = PgConnection::connect_with(&options).await.expect("it is let in");
        program.execute("begin").await.expect("it begins");
        programs.push(program);
    }
    for program in &mut programs {
        program.execute("commit").await.expect("it ends");
    }
    let before = sessions(&mut programs[0], number).await;

    for hosts in [1, 2] {
        let opened = address.options(hosts).open().await.map(drop);
        assert!(matches!(opened, Err(PostgresOpenError::Pooler { .. })), "{opened:?}");
        let opened = address.options(hosts).open_read_only().await.map(drop);
        assert!(matches!(opened, Err(PostgresOpenError::Pooler { .. })), "{opened:?}");
    }
    let file = CopyEnd::Sqlite(address.folder.join("copied.db"));
    let copied = StoreCopy::new(CopyEnd::Postgres(address.options(1)), file).run(|_| ()).await;
    let refused = copied.expect_err("it is not copied").to_string();
    assert!(refused.contains("is a pooler"), "{refused}");

    assert_eq!(sessions(&mut programs[0], number).await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pooler_that_gives_each_transaction_another_connection_is_not_used() {
    let Some(server) = server::get() else { return };
    for size in [1, 2] {
        let database = server.database().await;
        let (address, _folder) = Pool::start(&database.url(), size);

        check_refused(&address, size).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pgbouncer_in_transaction_mode_is_not_used() {
    let Some(server) = server::get() else { return };
    for (in_turn, number) in [(false, 1), (true, 2)] {
        let database = server.database().await;
        let Some(pooler) = PgBouncer::start(&database.url(), "transaction", in_turn).await else { return };

        check_refused(&pooler.address, number).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pgbouncer_in_session_mode_is_used() {
    let Some(server) = server::get() else { return };
    let database = server.database().await;
    let Some(pooler) = PgBouncer::start(&database.url(), "session", false).await else { return };

    let store = open(&pooler.address.url(1)).await;

    store.probe().await.expect("it writes");
    store.close().await;
}
