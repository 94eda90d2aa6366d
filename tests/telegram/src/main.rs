//! The double as a program, for tests that are not written in Rust.

use std::{
    io::{self, Write as _},
    path::PathBuf,
};

use clap::Parser;
use rejoinder_telegram_double::{TOKEN, TelegramDouble};

/// A Telegram Bot API server for tests, on 127.0.0.1.
///
/// It prints its address when it listens, and ends with an interrupt. What people do
/// is said under /__control.
#[derive(Parser)]
#[command(name = "telegram-double", version)]
struct Arguments {
    /// Where to listen; 0 is a free port.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// The token that is taken.
    #[arg(long, default_value = TOKEN)]
    token: String,
    /// Write every call and its result to this file, as JSON lines.
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
