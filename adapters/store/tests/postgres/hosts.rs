//! Several hosts in the URL. All lead to the same server, each with troubles of its own.

use std::{
    future, io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use rejoinder_core::{
    Clock, SystemClock, TurnId,
    store::{InboxStore, OperatorStore, StoreState, TurnStore},
};
use rejoinder_store::PostgresOptions;
use sqlx::{Executor, postgres::PgConnectOptions};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
    sync::watch,
};
use tokio_rustls::TlsAcceptor;

use crate::{
    common::{Database, new_turn, open},
    proxy::{Stream, connect},
};

/// A port of this machine that leads to the server.
pub(crate) struct Host {
    port: u16,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// The options of new connections.
    options: Mutex<&'static str>,
    is_frozen: watch::Sender<bool>,
    connections: AtomicUsize,
    with_tls: AtomicUsize,
    with_certificate: AtomicUsize,
}

impl Host {
    pub(crate) async fn start(url: &str, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let port = listener.local_addr().expect("it has an address").port();
        let server: PgConnectOptions = url.parse().expect("it is a URL");
        let state = Arc::<State>::default();
        let host = Self { port, state: Arc::clone(&state) };
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                state.connections.fetch_add(1, Ordering::Relaxed);
                let (state, server, tls) = (Arc::clone(&state), server.clone(), tls.clone());
                tokio::spawn(async move {
                    // The client sees how it ends.
                    let _ = state.serve(client, &server, tls).await;
                });
            }
        });
        host
    }

    /// From now on, nothing can be written on new connections.
    fn make_read_only(&self) {
        self.set_options("-c default_transaction_read_only=on");
    }

    /// From now on, new connections find that the server is a standby, if the database has the schema `standby`.
    fn make_standby(&self) {
        self.set_options("-c search_path=standby,public,pg_catalog");
    }

    fn set_options(&self, options: &'static str) {
        *self.state.options.lock().unwrap_or_else(PoisonError::into_inner) = options;
    }

    /// From now on, it says nothing, and its connections stay open.
    fn freeze(&self) {
        self.state.is_frozen.send_replace(true);
    }

    pub(crate) fn connections(&self) -> usize {
        self.state.connections.load(Ordering::Relaxed)
    }

    pub(crate) fn connections_with_tls(&self) -> usize {
        self.state.with_tls.load(Ordering::Relaxed)
    }

    /// Those whose client has shown a certificate.
    pub(crate) fn connections_with_certificate(&self) -> usize {
        self.state.with_certificate.load(Ordering::Relaxed)
    }
}

impl State {
    async fn serve(
        &self,
        mut client: TcpStream,
        server: &PgConnectOptions,
        tls: Option<TlsAcceptor>,
    ) -> io::Result<()> {
        let mut frozen = self.is_frozen.subscribe();
        if *frozen.borrow() {
            return future::pending().await;
        }
        let mut first = first_message(&mut client).await?;
        let mut client: Box<dyn Stream> = if first == TLS_REQUEST {
            client.write_all(if tls.is_some() { b"S" } else { b"N" }).await?;
            let mut client = self.begin(client, tls).await?;
            first = first_message(&mut client).await?;
            client
        } else {
            Box::new(client)
        };
        let options = *self.options.lock().unwrap_or_else(PoisonError::into_inner);
        if !options.is_empty() {
            // The byte that ends the parameters comes after this one.
            first.pop();
            first.extend(format!("options\0{options}\0\0").into_bytes());
        }
        let mut server = connect(server).await?;
        server.write_u32(u32::try_from(first.len() + 4).expect("it is short")).await?;
        server.write_all(&first).await?;
        tokio::select! {
            ended = copy_bidirectional(&mut client, &mut server) => ended.map(drop),
            // With what it returns, this would not be `Send`.
            _ = async { frozen.wait_for(|is_frozen| *is_frozen).await.is_ok() } => future::pending().await,
        }
    }

    async fn begin(&self, client: TcpStream, tls: Option<TlsAcceptor>) -> io::Result<Box<dyn Stream>> {
        let Some(tls) = tls else { return Ok(Box::new(client)) };
        let client = tls.accept(client).await?;
        self.with_tls.fetch_add(1, Ordering::Relaxed);
        if client.get_ref().1.peer_certificates().is_some() {
            self.with_certificate.fetch_add(1, Ordering::Relaxed);
        }
        Ok(Box::new(client))
    }
}

/// All after the length.
const TLS_REQUEST: [u8; 4] = [0x04, 0xd2, 0x16, 0x2f];

/// A message without a letter before its length, as only the first ones are.
pub(crate) async fn first_message(client: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let length = usize::try_from(client.read_u32().await?).expect("it is short");
    let mut message = vec![0; length - 4];
    client.read_exact(&mut message).await?;
    Ok(message)
}

/// The URL of a database by way of these hosts, which are called so.
pub(crate) fn url(database: &Database, hosts: &[(&str, &Host)], parameters: &str) -> String {
    let names: Vec<_> = hosts.iter().map(|(name, _)| *name).collect();
    let ports: Vec<_> = hosts.iter().map(|(_, host)| host.port.to_string()).collect();
    format!("{}&host={}&port={}&{parameters}", database.url, names.join(","), ports.join(","))
}

/// A database by way of two hosts. `None` without a server.
async fn two_hosts() -> Option<(Database, [Host; 2], String)> {
    let database = Database::new().await?;
    let hosts = [Host::start(&database.url, None).await, Host::start(&database.url, None).await];
    let url = url(&database, &[("127.0.0.1", &hosts[0]), ("127.0.0.1", &hosts[1])], "");
    Some((database, hosts, url))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_on_which_nothing_can_be_written_is_asked_last() {
    let Some((_database, hosts, url)) = two_hosts().await else { return };
    hosts[0].make_read_only();

    let store = open(&url).await;
    store.probe().await.expect("it writes");

    assert!(hosts[0].connections() < hosts[1].connections());
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_does_not_answer_is_asked_last() {
    let Some((_database, hosts, url)) = two_hosts().await else { return };
    hosts[0].freeze();

    let store = open(&url).await;
    store.probe().await.expect("it writes");

    assert!(hosts[0].connections() < hosts[1].connections());
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_host_is_used_if_the_url_says_so() {
    let Some((_database, hosts, url)) = two_hosts().await else { return };
    hosts[1].make_read_only();

    let store = open(&format!("{url}target_session_attrs=any")).await;
    store.probe().await.expect("it writes");

    assert!(hosts[0].connections() > 2);
    assert_eq!(hosts[1].connections(), 0);
    store.close().await;
}

/// A standby is found first, and has not all that was committed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_only_reads_asks_the_server_on_which_can_be_written() {
    let Some((database, hosts, url)) = two_hosts().await else { return };
    let standby = "
        create schema standby;
        create function standby.pg_is_in_recovery() returns boolean language sql as 'select true'";
    database.elsewhere().await.execute(standby).await.expect("it is made");
    hosts[0].make_standby();

    let store = PostgresOptions::new(url, Arc::new(SystemClock)).open_read_only().await.expect("the store opens");

    store.backlog().await.expect("it is read");
    store.probe().await.expect_err("it is only read");
    assert!(hosts[0].connections() > 0 && hosts[1].connections() > 0);
    store.close().await;
}

/// The database is there all the time, and each call has an end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_and_writes_go_on_at_another_host_when_one_freezes() {
    let Some((_database, hosts, url)) = two_hosts().await else { return };
    let (store, turn) = (open(&url).await, TurnId::new(SystemClock.now()));
    store.accept(vec![new_turn("1")], None).await.expect("it writes");
    store.turn(turn).await.expect("it reads");
    assert_eq!(hosts[1].connections(), 0);

    hosts[0].freeze();
    let begun = Instant::now();
    let event = new_turn("2");
    while let Err(error) = store.accept(vec![event.clone()], None).await {
        assert!(begun.elapsed() < Duration::from_secs(20), "{error}");
    }
    while let Err(error) = store.turn(turn).await {
        assert!(begun.elapsed() < Duration::from_secs(20), "{error}");
    }

    assert!(hosts[1].connections() > 0);
    store.close().await;
}
