//! A socket before the server, which loses commits, or the answers to them.

use std::{
    io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use sqlx::postgres::PgConnectOptions;
use tempfile::TempDir;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy, split},
    net::{TcpStream, UnixListener, UnixStream},
};

/// The end of the statement with which the store commits.
const COMMIT: &[u8] = b"commit\0";

/// A part of the statement that writes a batch of transitions, which commits by itself. Its text is sent before it is executed for the
/// first time on a connection.
const BATCH: &[u8] = b"insert into writers (node, lane, batch, refused, at)\n    select";

/// What happens to a commit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Loss {
    /// The server does not get it. It does not see either that the connection was lost.
    Commit,
    /// The server commits, and the store does not get the answer.
    Answer,
}

pub(crate) struct Proxy {
    /// The URL of the database by way of the proxy.
    pub(crate) url: String,
    next: Arc<Mutex<Option<Loss>>>,
    is_cut: Arc<AtomicBool>,
    _folder: TempDir,
}

impl Proxy {
    pub(crate) fn start(url: &str) -> Self {
        let folder = tempfile::tempdir().expect("a directory is made");
        let listener = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).expect("it listens");
        let server: PgConnectOptions = url.parse().expect("it is a URL");
        let next = Arc::<Mutex<Option<Loss>>>::default();
        let url = format!("{url}&host={}&port=5432", folder.path().display());
        let is_cut = Arc::<AtomicBool>::default();
        let (losses, cut) = (Arc::clone(&next), Arc::clone(&is_cut));
        tokio::spawn(async move {
            // Connections of which the server must not see that they were lost.
            let mut kept = tokio::task::JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                if cut.load(Ordering::Relaxed) {
                    continue;
                }
                let server = connect(&server).await.expect("the server is there");
                kept.spawn(pass(client, server, Arc::clone(&losses), Arc::clone(&cut)));
            }
        });
        Self { url, next, is_cut, _folder: folder }
    }

    /// From now on, new connections are closed, and the answers to commits are lost; or not any more.
    pub(crate) fn cut(&self, is_cut: bool) {
        self.is_cut.store(is_cut, Ordering::Relaxed);
    }

    /// Loses the next commit.
    pub(crate) fn lose(&self, loss: Loss) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(loss);
    }

    /// Whether the loss is still to come.
    pub(crate) fn is_waiting(&self) -> bool {
        self.next.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

pub(crate) async fn connect(server: &PgConnectOptions) -> io::Result<Box<dyn Stream>> {
    match server.get_socket() {
        Some(folder) => {
            let path = folder.join(format!(".s.PGSQL.{}", server.get_port()));
            Ok(Box::new(UnixStream::connect(path).await?))
        }
        None => Ok(Box::new(TcpStream::connect((server.get_host(), server.get_port())).await?)),
    }
}

/// Passes on what both sides send. After a loss, the connection to the server is returned.
async fn pass(
    client: UnixStream,
    server: Box<dyn Stream>,
    losses: Arc<Mutex<Option<Loss>>>,
    is_cut: Arc<AtomicBool>,
) -> Option<Box<dyn Stream>> {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = split(server);
    let requests = async {
        let (mut buffer, mut is_prepared) = (vec![0; 1 << 16], false);
        loop {
            let read = from_client.read(&mut buffer).await.ok().filter(|read| *read > 0)?;
            let bytes = &buffer[..read];
            let loss = || {
                let next = losses.lock().unwrap_or_else(PoisonError::into_inner).take();
                next.or(is_cut.load(Ordering::Relaxed).then_some(Loss::Answer))
            };
            let is_prepared_now = bytes.windows(BATCH.len()).any(|part| part == BATCH);
            let commits = bytes.ends_with(COMMIT) || std::mem::replace(&mut is_prepared, is_prepared_now);
            let loss = commits.then(loss).flatten();
            if loss != Some(Loss::Commit) {
                to_server.write_all(bytes).await.ok()?;
            }
            if loss.is_some() {
                return loss;
            }
        }
    };
    let loss = tokio::select! {
        loss = requests => loss,
        _ = copy(&mut from_server, &mut to_client) => None,
    };
    (loss == Some(Loss::Commit)).then(|| from_server.unsplit(to_server))
}
