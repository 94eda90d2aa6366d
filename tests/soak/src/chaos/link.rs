//! The way of the nodes to a server, which can be cut and frozen for each of them.
//!
//! All nodes have the same configuration, and so the same address. Which of them has opened a connection is read from Linux's `/proc`.

use std::{
    fs, io,
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicUsize, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
};

/// What becomes of the bytes between a node and a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passage {
    Open,
    /// Connections are closed, new ones at once.
    Cut,
    /// No bytes pass, and no side is told.
    Frozen,
}

/// The process of each node; 0 while it does not run. Connections of other processes pass, too: of commands that are run on a node's
/// configuration, and of processes that have ended since.
pub(crate) type Processes = Arc<[AtomicU32]>;

/// Whether this first line of a request asks the server to show something.
pub(crate) type IsSend = Arc<dyn Fn(&str) -> bool + Send + Sync>;

pub(crate) struct Link {
    pub(crate) port: u16,
    ways: Arc<[Way]>,
}

/// The way of one node.
struct Way {
    passage: watch::Sender<Passage>,
    /// How many connections are open.
    connections: AtomicUsize,
    /// How many requests asked the server to show something.
    sends: AtomicUsize,
}

impl Link {
    /// Passes connections on to a port of this machine.
    pub(crate) async fn start(server: u16, processes: &Processes, is_send: IsSend) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let new = |_| Way {
            passage: watch::Sender::new(Passage::Open),
            connections: AtomicUsize::new(0),
            sends: AtomicUsize::new(0),
        };
        // The last one is that of all others. It is never cut.
        let ways: Arc<[Way]> = (0..=processes.len()).map(new).collect();
        let link = Self { port, ways: Arc::clone(&ways) };
        let processes = Arc::clone(processes);
        tokio::spawn(async move {
            while let Ok((client, from)) = listener.accept().await {
                let node = node_of(from.port(), port, &processes).unwrap_or(processes.len());
                let (ways, is_send) = (Arc::clone(&ways), Arc::clone(&is_send));
                tokio::spawn(async move {
                    let way = &ways[node];
                    way.connections.fetch_add(1, Ordering::Relaxed);
                    way.pass(client, server, &is_send).await;
                    way.connections.fetch_sub(1, Ordering::Relaxed);
                });
            }
        });
        Ok(link)
    }

    pub(crate) fn set(&self, node: usize, passage: Passage) {
        self.ways[node].passage.send_replace(passage);
    }

    /// How many connections of the node are open.
    #[cfg(test)]
    fn connections(&self, node: usize) -> usize {
        self.ways[node].connections.load(Ordering::Relaxed)
    }

    /// How many requests of the node asked the server to show something.
    pub(crate) fn sends(&self, node: usize) -> usize {
        self.ways[node].sends.load(Ordering::Relaxed)
    }
}

impl Way {
    /// Passes on what both sides send, until one of them closes or the way is cut.
    async fn pass(&self, client: TcpStream, server: u16, is_send: &IsSend) {
        let mut passage = self.passage.subscribe();
        let passing = async {
            let server = TcpStream::connect((Ipv4Addr::LOCALHOST, server)).await?;
            client.set_nodelay(true)?;
            server.set_nodelay(true)?;
            let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
            let note = |bytes: &[u8]| {
                let line = bytes.split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or_default();
                if is_send(&String::from_utf8_lossy(line)) {
                    self.sends.fetch_add(1, Ordering::Relaxed);
                }
            };
            tokio::select! {
                ended = self.copy(from_client, to_server, note) => ended,
                ended = self.copy(from_server, to_client, |_| {}) => ended,
            }
        };
        tokio::select! {
            _ = passage.wait_for(|passage| *passage == Passage::Cut) => {}
            _ = passing => {}
        }
    }

    /// Passes on one direction. `note` gets what is passed, as it was written.
    async fn copy(&self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf, note: impl Fn(&[u8])) -> io::Result<()> {
        let mut passage = self.passage.subscribe();
        let mut buffer = vec![0; 1 << 14];
        loop {
            let read = from.read(&mut buffer).await?;
            // Also what is held back: it was sent.
            note(&buffer[..read]);
            if passage.wait_for(|passage| *passage != Passage::Frozen).await.is_err() || read == 0 {
                return Ok(());
            }
            to.write_all(&buffer[..read]).await?;
        }
    }
}

/// The node that has opened a connection from one of its ports to one of ours.
fn node_of(its: u16, ours: u16, processes: &Processes) -> Option<usize> {
    let table = fs::read_to_string("/proc/net/tcp").ok()?;
    let [local, remote] = [its, ours].map(|port| format!("0100007F:{port:04X}"));
    let inode = table.lines().find_map(|line| {
        let mut columns = line.split_whitespace().skip(1);
        let is_it = columns.next()? == local && columns.next()? == remote;
        // State, queues, timer, retransmissions, user, time-out, and then the inode.
        is_it.then(|| columns.nth(6)).flatten()
    })?;
    let socket = format!("socket:[{inode}]");
    let has_socket = |process: &AtomicU32| {
        let files = fs::read_dir(format!("/proc/{}/fd", process.load(Ordering::Relaxed)));
        let mut files = files.into_iter().flatten().flatten();
        files.any(|file| fs::read_link(file.path()).is_ok_and(|to| to.as_os_str() == socket.as_str()))
    };
    processes.iter().position(has_socket)
}

#[cfg(test)]
mod tests {
    use tokio::time::{Duration, timeout};

    use super::*;

    /// An echo, a link to it for this process as the second of two nodes, and a connection by way of it.
    async fn connected() -> (Link, TcpStream) {
        let echo = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = echo.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((mut client, _)) = echo.accept().await {
                tokio::spawn(async move {
                    let (mut from, mut to) = client.split();
                    tokio::io::copy(&mut from, &mut to).await
                });
            }
        });
        let processes: Processes = [0, std::process::id()].map(AtomicU32::new).into();
        let link = Link::start(port, &processes, Arc::new(|line: &str| line.starts_with("say "))).await.unwrap();
        let client = TcpStream::connect((Ipv4Addr::LOCALHOST, link.port)).await.unwrap();
        (link, client)
    }

    async fn echoes(client: &mut TcpStream, text: &str) -> bool {
        let mut answer = vec![0; text.len()];
        let _ = client.write_all(text.as_bytes()).await;
        timeout(Duration::from_millis(300), client.read_exact(&mut answer)).await.is_ok_and(|read| read.is_ok())
    }

    #[tokio::test]
    async fn the_node_of_a_connection_is_known() {
        let (link, mut client) = connected().await;

        assert!(echoes(&mut client, "say hello\n").await);
        assert!(echoes(&mut client, "hear say \n").await);
        assert_eq!([0, 1].map(|node| link.connections(node)), [0, 1]);
        assert_eq!([0, 1].map(|node| link.sends(node)), [0, 1]);
    }

    #[tokio::test]
    async fn a_frozen_way_passes_later_and_a_cut_one_never() {
        let (link, mut client) = connected().await;

        link.set(0, Passage::Cut);
        link.set(1, Passage::Frozen);
        assert!(!echoes(&mut client, "one").await);
        link.set(1, Passage::Open);
        let mut late = [0; 3];
        client.read_exact(&mut late).await.unwrap();
        assert_eq!(&late, b"one");

        link.set(1, Passage::Cut);
        assert!(!echoes(&mut client, "two").await);
        let mut again = TcpStream::connect((Ipv4Addr::LOCALHOST, link.port)).await.unwrap();
        assert!(!echoes(&mut again, "two").await);
    }
}
