//! What stands before the nodes: one address for callers of hooks and pages. It passes each connection to a node that is ready, in turn.

use std::{io, net::Ipv4Addr, time::Duration};

use anyhow::Result;
use reqwest::Client;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
    time::sleep,
};

/// How often nodes are asked whether they are ready.
const CHECK: Duration = Duration::from_millis(500);
/// How long a node may take to answer that.
const ANSWER: Duration = Duration::from_secs(2);

/// How a node is, as it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Health {
    Ready,
    /// It gets no new connections while another one is ready.
    NotReady,
    /// It does not answer. What it had is closed.
    Gone,
}

/// A node, as the front sees it.
struct Node {
    port: u16,
    health: watch::Receiver<Health>,
}

/// Listens at a port, which is returned, for nodes at these ports.
pub(crate) async fn start(ports: &[u16]) -> Result<u16> {
    let http = Client::builder().no_proxy().timeout(ANSWER).pool_max_idle_per_host(0).build()?;
    let watched = |port: &u16| {
        let (told, health) = watch::channel(Health::Gone);
        tokio::spawn(check(http.clone(), *port, told));
        Node { port: *port, health }
    };
    let nodes: Vec<_> = ports.iter().map(watched).collect();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let port = listener.local_addr()?.port();
    tokio::spawn(serve(listener, nodes));
    Ok(port)
}

async fn check(http: Client, port: u16, told: watch::Sender<Health>) {
    let succeeds = async |path: &'static str| {
        let response = http.get(format!("http://127.0.0.1:{port}/{path}")).send().await;
        response.is_ok_and(|response| response.status().is_success())
    };
    loop {
        let health = if succeeds("readyz").await {
            Health::Ready
        } else if succeeds("healthz").await {
            Health::NotReady
        } else {
            Health::Gone
        };
        told.send_replace(health);
        sleep(CHECK).await;
    }
}

async fn serve(listener: TcpListener, nodes: Vec<Node>) {
    let mut next = 0;
    while let Ok((client, _)) = listener.accept().await {
        next = (next + 1) % nodes.len();
        let in_turn = || nodes.iter().cycle().skip(next).take(nodes.len());
        let with = |health| in_turn().filter(move |node| *node.health.borrow() == health);
        let candidates: Vec<_> = with(Health::Ready).chain(with(Health::NotReady)).collect();
        for node in candidates {
            let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, node.port)).await else { continue };
            tokio::spawn(pass(client, server, node.health.clone()));
            break;
        }
    }
}

async fn pass(mut client: TcpStream, mut server: TcpStream, mut health: watch::Receiver<Health>) -> io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    tokio::select! {
        _ = health.wait_for(|health| *health == Health::Gone) => {}
        _ = copy_bidirectional(&mut client, &mut server) => {}
    }
    Ok(())
}
