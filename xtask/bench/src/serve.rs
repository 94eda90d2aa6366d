//! The servers that stand beside the gateway.

pub(crate) mod agent;
pub(crate) mod discord_bot;
pub(crate) mod echo;
pub(crate) mod matrix_bot;
pub(crate) mod proxy;
pub(crate) mod telegram_bot;

use std::{io::Read, net::Ipv4Addr};

use anyhow::Result;
use clap::Subcommand;
use serde::{Deserialize, Serialize};
use tokio::{net::TcpListener, sync::oneshot};

/// Serve on a free port of loopback, print its address, and end with standard input.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) server: Server,
}

/// Which one.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum Server {
    /// An OpenAI-compatible server that answers at once.
    Agent {
        /// Never answer.
        #[arg(long)]
        stall: bool,
    },
    /// A hook that says what it is told.
    Echo,
    /// A hook that asks the agent and keeps nothing.
    Proxy {
        /// The agent's base URL.
        #[arg(long)]
        agent: String,
    },
    /// A Telegram bot that asks nobody and keeps nothing.
    TelegramBot {
        /// Where the Bot API is.
        #[arg(long)]
        api: String,
        /// The bot's token there.
        #[arg(long)]
        token: String,
    },
    /// A Discord bot that asks nobody and keeps nothing.
    DiscordBot {
        /// Where the REST API is.
        #[arg(long)]
        api: String,
        /// Where the Gateway is.
        #[arg(long)]
        gateway: String,
        /// The bot's token there.
        #[arg(long)]
        token: String,
    },
    /// A Matrix account that asks nobody and keeps nothing.
    MatrixBot {
        /// Where the homeserver is.
        #[arg(long)]
        homeserver: String,
        /// The account.
        #[arg(long)]
        user: String,
        /// Its access token there.
        #[arg(long)]
        token: String,
    },
}

/// What the hooks of echo and proxy take.
#[derive(Deserialize)]
struct Turn {
    message: String,
}

/// What they answer: as much as a caller of the real one reads.
#[derive(Serialize)]
struct Answered {
    status: &'static str,
    reply: String,
}

impl Answered {
    const fn with(reply: String) -> Self {
        Self { status: "answered", reply }
    }
}

/// Serves until standard input ends, which it does when the bench does.
///
/// # Errors
///
/// When there is no port.
pub(crate) async fn run(arguments: Arguments) -> Result<()> {
    let router = match arguments.server {
        Server::Agent { stall } => agent::router(stall),
        Server::Echo => echo::router(),
        Server::Proxy { agent } => proxy::router(&agent)?,
        Server::TelegramBot { api, token } => telegram_bot::router(&api, &token)?,
        Server::DiscordBot { api, gateway, token } => discord_bot::router(api, gateway, token)?,
        Server::MatrixBot { homeserver, user, token } => matrix_bot::router(&homeserver, user, token)?,
    };
    let (ended, end) = oneshot::channel();
    std::thread::spawn(move || {
        // What is read does not matter, nor how it ends.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = ended.send(());
    });
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    println!("{}", listener.local_addr()?);
    tokio::select! {
        served = async { axum::serve(tcp_nodelay(listener), router).await } => served?,
        _ = end => {}
    }
    Ok(())
}

/// As any server that answers small bodies does.
fn tcp_nodelay(listener: TcpListener) -> impl axum::serve::Listener<Addr = std::net::SocketAddr> {
    axum::serve::ListenerExt::tap_io(listener, |stream| {
        if let Err(error) = stream.set_nodelay(true) {
            eprintln!("cannot set nodelay: {error}");
        }
    })
}
