//! The double as a program, for tests that are not written in Rust.

use std::{
    io::{self, Write as _},
    path::PathBuf,
};

use clap::Parser;
use rejoinder_telegram_double::{TOKEN, TelegramDouble};

/// A Telegram Bot API server for tests, on 127.0.0.1.
///
/// Prints its address once it listens, and runs until it is interrupted. People are controlled under /__control.
#[derive(Parser)]
#[command(name = "telegram-double", version)]
struct Arguments {
    /// Port to listen on; 0 picks a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// The bot's token.
    #[arg(long, default_value = TOKEN)]
    token: String,
    /// Append every call and its result to this file, as JSON lines.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Keep no calls in memory.
    #[arg(long)]
    forget_calls: bool,
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let arguments = Arguments::parse();
    let telegram = TelegramDouble::open(arguments.port, &arguments.token).await?;
    if let Some(file) = &arguments.log {
        telegram.log_to(file)?;
    }
    telegram.keep_calls(!arguments.forget_calls);
    writeln!(io::stdout(), "{}", telegram.url())?;
    tokio::signal::ctrl_c().await
}
