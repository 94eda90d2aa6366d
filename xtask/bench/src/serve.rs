//! The servers that the gateway is compared with or talks to.

pub(crate) mod agent;
pub(crate) mod discord_bot;
pub(crate) mod echo;
mod hook;
pub(crate) mod matrix_bot;
pub(crate) mod proxy;
pub(crate) mod telegram_bot;
pub(crate) mod worker;
pub(crate) mod writer;

use std::{io::Read, net::Ipv4Addr};

use anyhow::{Context, Result};
use clap::Subcommand;
use tokio::{net::TcpListener, sync::oneshot};

/// Serve on loopback, print the address, and exit when standard input closes.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Port; a free one if 0.
    #[arg(long, default_value_t = 0)]
    port: u16,
    #[command(subcommand)]
    pub(crate) server: Server,
}

#[derive(Subcommand, Clone, Debug)]
pub(crate) enum Server {
    /// An agent that answers at once: compatible with OpenAI and Anthropic, a service of the kind `http`, and a server of A2A.
    Agent {
        /// Never answer.
        #[arg(long)]
        stall: bool,
    },
    /// A hook that returns its message.
    Echo,
    /// A hook that asks the agent and stores nothing.
    Proxy {
        /// Base URL of the agent.
        #[arg(long)]
        agent: String,
    },
    /// A worker of a `pull` agent that answers at once.
    Worker {
        /// URL of the agent's paths.
        #[arg(long)]
        agent: String,
        /// Token of the workers.
        #[arg(long)]
        token: String,
    },
    /// A Telegram bot that answers by itself and stores nothing.
    TelegramBot {
        /// URL of the Bot API.
        #[arg(long)]
        api: String,
        /// Token of the bot.
        #[arg(long, allow_hyphen_values = true)]
        token: String,
    },
    /// A Discord bot that answers by itself and stores nothing.
    DiscordBot {
        /// URL of the REST API.
        #[arg(long)]
        api: String,
        /// URL of the Gateway.
        #[arg(long)]
        gateway: String,
        /// Token of the bot.
        #[arg(long, allow_hyphen_values = true)]
        token: String,
    },
    /// A Matrix account that answers by itself and stores nothing.
    MatrixBot {
        /// URL of the homeserver.
        #[arg(long)]
        homeserver: String,
        /// User id of the account.
        #[arg(long)]
        user: String,
        /// Access token of the account.
        #[arg(long, allow_hyphen_values = true)]
        token: String,
    },
}

/// Serves until standard input closes, which happens when the bench exits.
///
/// # Errors
///
/// When the port is not free, or there is no HTTP client.
pub(crate) async fn run(arguments: Arguments) -> Result<()> {
    let router = match arguments.server {
        Server::Agent { stall } => agent::router(stall),
        Server::Echo => echo::router(),
        Server::Proxy { agent } => proxy::router(&agent)?,
        Server::Worker { agent, token } => worker::router(agent, token)?,
        Server::TelegramBot { api, token } => telegram_bot::router(&api, &token)?,
        Server::DiscordBot { api, gateway, token } => discord_bot::router(api, gateway, token)?,
        Server::MatrixBot { homeserver, user, token } => matrix_bot::router(&homeserver, user, token)?,
    };
    let (input_closed, is_input_closed) = oneshot::channel();
    std::thread::spawn(move || {
        // Only the end of the input matters, not its content or an error.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = input_closed.send(());
    });
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, arguments.port))
        .await
        .with_context(|| format!("cannot listen on port {}", arguments.port))?;
    println!("{}", listener.local_addr()?);
    tokio::select! {
        served = async { axum::serve(tcp_nodelay(listener), router).await } => served?,
        _ = is_input_closed => {}
    }
    Ok(())
}

/// Sets TCP_NODELAY, as servers with small responses usually do.
fn tcp_nodelay(listener: TcpListener) -> impl axum::serve::Listener<Addr = std::net::SocketAddr> {
    axum::serve::ListenerExt::tap_io(listener, |stream| {
        if let Err(error) = stream.set_nodelay(true) {
            eprintln!("cannot set nodelay: {error}");
        }
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Typed {
        #[command(flatten)]
        arguments: Arguments,
    }

    #[test]
    fn a_token_may_begin_with_a_hyphen() {
        let typed = ["serve", "telegram-bot", "--api", "http://h", "--token", "-fB1"];
        let server = Typed::try_parse_from(typed).map(|typed| typed.arguments.server).expect("valid arguments");
        assert!(matches!(server, Server::TelegramBot { token, .. } if token == "-fB1"));
    }
}
