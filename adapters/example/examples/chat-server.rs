//! A chat server to try the channel with. Each line typed here is sent to the agent as a message from Ada.
//!
//! `cargo run -p rejoinder-example --features testing --example chat-server` and, beside it, a gateway with the feature
//! `example` and this configuration:
//!
//! ```toml
//! [channels.example.main]
//! token = "open-sesame"
//! allow_from = ["ada"]
//! ```

use rejoinder_example::server::{ChatServer, TOKEN};
use tokio::io::{AsyncBufReadExt, BufReader};

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let server = ChatServer::start("127.0.0.1:7421").await?;
    println!("Listening at {}. The agent's token is {TOKEN}. Type what Ada writes; end with Ctrl-D.", server.address());
    let mut shown = server.watch();
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    loop {
        tokio::select! {
            line = lines.next_line() => match line? {
                Some(line) => drop(server.writes("ada", "ada", &line)),
                None => return Ok(()),
            },
            Ok((chat, text)) = shown.recv() => println!("agent to {chat}: {text}"),
        }
    }
}
