//! Connections over TCP. SQLx sets nothing on its socket that finds out about a dead host, or sends what is small at once, and takes no
//! socket from its caller. So it connects to a Unix socket of this process, which lets one connection in, and a task copies between both.

use std::{env, fs, io, path::PathBuf, process, time::Duration};

use rustix::net::sockopt;
use sqlx::postgres::PgConnectOptions;
use tokio::{
    io::{AsyncWriteExt, copy, split},
    net::{TcpStream, UnixListener, UnixStream},
};
use uuid::Uuid;

use super::tls::{Stream, Tls};

/// A host is asked whether it lives after so long without a word from it, then again after each pause, this often.
const KEEP_ALIVE: (Duration, Duration, u32) = (Duration::from_secs(5), Duration::from_secs(2), 3);

/// How long a host may take to acknowledge what was sent, in milliseconds.
#[cfg(target_os = "linux")]
const USER_TIMEOUT: u32 = 10_000;

/// The one in the name of each Unix socket of this process.
const PORT: u16 = 5432;

/// Connects to a server, and has `make` make something of it: a connection, or what has one.
pub(super) async fn connect<T, F>(
    (host, port): (&str, u16),
    tls: Option<&Tls>,
    options: PgConnectOptions,
    make: impl FnOnce(PgConnectOptions) -> F,
) -> Result<T, sqlx::Error>
where
    F: Future<Output = Result<T, sqlx::Error>>,
{
    let stream = TcpStream::connect((host, port)).await?;
    set_up(&stream)?;
    let server: Box<dyn Stream> = match tls {
        Some(tls) => tls.begin(stream, host).await?,
        None => Box::new(stream),
    };
    let entrance = Entrance::new()?;
    let opened = make(options.socket(&entrance.folder).port(PORT));
    let entered = async {
        let client = entrance.accept().await?;
        tokio::spawn(pass(client, server));
        Ok::<_, sqlx::Error>(())
    };
    let (opened, ()) = tokio::try_join!(opened, entered)?;
    Ok(opened)
}

fn set_up(stream: &TcpStream) -> io::Result<()> {
    let (idle, pause, times) = KEEP_ALIVE;
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, idle)?;
    sockopt::set_tcp_keepintvl(stream, pause)?;
    sockopt::set_tcp_keepcnt(stream, times)?;
    #[cfg(target_os = "linux")]
    sockopt::set_tcp_user_timeout(stream, USER_TIMEOUT)?;
    Ok(())
}

/// Copies between both sides, until one of them ends.
async fn pass(client: UnixStream, server: Box<dyn Stream>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = split(server);
    let requests = async {
        copy(&mut from_client, &mut to_server).await?;
        to_server.shutdown().await
    };
    let ended = tokio::select! {
        ended = requests => ended,
        ended = copy(&mut from_server, &mut to_client) => ended.map(drop),
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection to the database ended");
    }
}

/// A Unix socket for one connection. On Linux it has a name and no file, so that no folder must be writable.
struct Entrance {
    folder: PathBuf,
    listener: UnixListener,
}

const HAS_FILE: bool = !cfg!(target_os = "linux");

impl Entrance {
    fn new() -> io::Result<Self> {
        let (_, random) = Uuid::now_v7().as_u64_pair();
        let name = format!("rejoinder-{random:016x}");
        let folder = if HAS_FILE { env::temp_dir().join(name) } else { PathBuf::from(format!("\0{name}")) };
        if HAS_FILE {
            fs::create_dir(&folder)?;
        }
        let listener = UnixListener::bind(folder.join(format!(".s.PGSQL.{PORT}")))?;
        Ok(Self { folder, listener })
    }

    /// Lets this process in, and no other program, which can find the socket as well.
    async fn accept(&self) -> io::Result<UnixStream> {
        let own = i32::try_from(process::id()).ok();
        loop {
            let (client, _) = self.listener.accept().await?;
            if client.peer_cred().is_ok_and(|peer| peer.pid() == own) {
                return Ok(client);
            }
        }
    }
}

impl Drop for Entrance {
    fn drop(&mut self) {
        if HAS_FILE {
            // An empty folder that is left does no harm.
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_socket_sends_at_once_and_finds_out_about_a_dead_host() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("it has an address");
        let stream = TcpStream::connect(address).await.expect("it connects");
        set_up(&stream).expect("it is set up");
        assert!(stream.nodelay().expect("it is known"));
        assert!(sockopt::socket_keepalive(&stream).expect("it is known"));
        assert_eq!(sockopt::tcp_keepidle(&stream), Ok(KEEP_ALIVE.0));
        #[cfg(target_os = "linux")]
        assert_eq!(sockopt::tcp_user_timeout(&stream), Ok(USER_TIMEOUT));
    }

    #[tokio::test]
    async fn a_unix_socket_is_found_under_the_name_that_sqlx_makes() {
        let entrance = Entrance::new().expect("it listens");
        let path = format!("{}/.s.PGSQL.{PORT}", entrance.folder.display());
        let (client, entered) = tokio::join!(UnixStream::connect(path), entrance.accept());
        client.expect("it connects");
        entered.expect("it is let in");
    }
}
