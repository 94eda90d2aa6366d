//! The listener and its connections, which can be refused and broken: faults end connections at any moment, with or without
//! a reset, and outages refuse them.

use std::{
    future::Future,
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    extract::connect_info::Connected,
    serve::{IncomingStream, Listener},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpSocket, TcpStream},
    sync::watch,
    time::{Instant, sleep},
};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Whether connections are accepted.
#[derive(Debug, Clone)]
pub(crate) struct ListenerState {
    pub(crate) is_open: bool,
    /// Cancelling it ends all connections accepted since it was created.
    pub(crate) connections: CancellationToken,
}

/// How long to wait for a port that another double is just releasing.
const BIND_RETRY: Duration = Duration::from_secs(2);

/// A listener that can be closed for a while without losing its port.
pub(crate) struct PausableListener {
    at: SocketAddr,
    listener: TcpListener,
    state: watch::Receiver<ListenerState>,
}

impl PausableListener {
    /// # Errors
    /// If the address is in use.
    pub(crate) async fn new(at: SocketAddr, state: watch::Receiver<ListenerState>) -> io::Result<Self> {
        let end = Instant::now() + BIND_RETRY;
        let listener = loop {
            match TcpListener::bind(at).await {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse && Instant::now() < end => {
                    sleep(Duration::from_millis(5)).await;
                }
                bound => break bound?,
            }
        };
        Ok(Self { at: listener.local_addr()?, listener, state })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.at
    }

    /// Refuses connections until it is open again.
    async fn refuse_until_open(&mut self) {
        // A bound socket that does not listen keeps the port, and the system refuses connections to it.
        let spare = bound(SocketAddr::new(self.at.ip(), 0));
        let spare = spare.and_then(|socket| socket.listen(1)).expect("a loopback port is free");
        drop(std::mem::replace(&mut self.listener, spare));
        let holder = retry_until_ok(|| bound(self.at)).await;
        // An error means that the sender is gone, and then this server ends too.
        let _ = self.state.wait_for(|state| state.is_open).await;
        let mut holder = Some(holder);
        self.listener = retry_until_ok(|| {
            let socket = holder.take().map_or_else(|| bound(self.at), Ok)?;
            socket.listen(1024)
        })
        .await;
    }
}

fn bound(at: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if at.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(at)?;
    Ok(socket)
}

/// Retries until it succeeds.
async fn retry_until_ok<T>(mut what: impl FnMut() -> io::Result<T>) -> T {
    loop {
        match what() {
            Ok(it) => return it,
            Err(_) => sleep(Duration::from_millis(5)).await,
        }
    }
}

impl Listener for PausableListener {
    type Io = Stream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let state = self.state.borrow_and_update().clone();
            if !state.is_open {
                self.refuse_until_open().await;
                continue;
            }
            let accepted = tokio::select! {
                biased;
                _ = self.state.changed() => continue,
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, from)) => {
                    // Responses are small, and clients wait for them.
                    let _ = stream.set_nodelay(true);
                    return (Stream::new(stream, &state.connections), from);
                }
                // Too many open files: wait until some are closed.
                Err(_) => sleep(Duration::from_millis(20)).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        Ok(self.at)
    }
}

/// A connection that can be broken from elsewhere.
pub(crate) struct Stream {
    tcp: TcpStream,
    handle: ConnectionHandle,
    broken: Pin<Box<WaitForCancellationFutureOwned>>,
}

/// A handle that breaks a connection.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionHandle {
    broken: CancellationToken,
    reset: Arc<AtomicBool>,
}

impl ConnectionHandle {
    /// Ends the connection so that the peer reads its end.
    pub(crate) fn close(&self) {
        self.broken.cancel();
    }

    /// Ends the connection so that the peer gets an error.
    pub(crate) fn reset(&self) {
        self.reset.store(true, Ordering::Release);
        self.broken.cancel();
    }
}

impl Connected<IncomingStream<'_, PausableListener>> for ConnectionHandle {
    fn connect_info(stream: IncomingStream<'_, PausableListener>) -> Self {
        stream.io().handle.clone()
    }
}

impl Stream {
    fn new(tcp: TcpStream, connections: &CancellationToken) -> Self {
        let broken = connections.child_token();
        let handle = ConnectionHandle { broken: broken.clone(), reset: Arc::default() };
        Self { tcp, handle, broken: Box::pin(broken.cancelled_owned()) }
    }

    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if !self.handle.broken.is_cancelled() && self.broken.as_mut().poll(context).is_pending() {
            return Ok(());
        }
        if self.handle.reset.load(Ordering::Acquire) {
            let _ = self.tcp.set_zero_linger();
        }
        Err(io::ErrorKind::ConnectionReset.into())
    }
}

impl AsyncRead for Stream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.tcp).poll_read(context, into)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.check(context)?;
        Pin::new(&mut self.tcp).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check(context)?;
        Pin::new(&mut self.tcp).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.tcp).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A broken connection is shut down too.
        let _ = self.check(context);
        Pin::new(&mut self.tcp).poll_shutdown(context)
    }
}
