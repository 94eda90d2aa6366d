//! `rejoinder run`.

use std::{
    io::{self, IsTerminal},
    path::Path,
    process,
    time::Duration,
};

use anyhow::{Context, anyhow};
use rejoinder_config::{ConfigSource, Loaded, LogFormat};
use secrecy::ExposeSecret;
use tokio::{
    net::TcpListener,
    runtime::Runtime,
    signal::unix::{SignalKind, signal},
};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::{global::Global, notify, reload::Reloader, remembered};
use crate::{
    console::{
        command::{command_line, shell_quoted},
        failure::Failure,
        output,
    },
    gateway::{Gateway, Notes, Setup},
    logging,
    materials::TokenSource,
    open_files,
    platforms::ChannelNotice,
    reload::Reload,
    wiring,
};

/// How long printing the banner may delay the start.
const BANNER_TIMEOUT: Duration = Duration::from_secs(1);

pub(super) fn run(global: &Global) -> Result<(), Failure> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start the runtime")?;
    // First of all: until it is listened to, this signal ends the process.
    let hangup = {
        let _runtime = runtime.enter();
        signal(SignalKind::hangup()).context("cannot listen to SIGHUP")?
    };
    let loaded = global.load()?;
    let data_dir = global.data_dir()?;
    logging::start(loaded.config.log);
    open_files::raise();
    let (reload, requests) = Reload::new();
    let reloader = Reloader::new((hangup, requests), global, &loaded, data_dir.clone());
    let setup = Setup::new(loaded.config.clone(), data_dir).with_reload(reload);
    let ended = serve(&runtime, &loaded, setup, reloader);
    logging::finish();
    ended
}

fn serve(runtime: &Runtime, loaded: &Loaded, setup: Setup, reloader: Reloader) -> Result<(), Failure> {
    let Loaded { config, source, .. } = loaded;
    runtime.block_on(async {
        let shutdown = CancellationToken::new();
        listen_to_signals(shutdown.clone())?;
        let (address, format) = (wiring::listen(config), config.log.format);
        let listener = TcpListener::bind(address).await.map_err(|error| cannot_listen(address, error))?;
        let address = listener.local_addr().context("the listener has no address")?;
        let gateway = Box::pin(Gateway::start(setup.with_shutdown(shutdown.clone()), address))
            .await
            .map_err(anyhow::Error::new)?;
        remember(&gateway.notes().data_dir, source);
        reloader.start(gateway.live());
        match format {
            LogFormat::Text => {
                // A file or a service's journal keeps what is printed, for more readers than a terminal has.
                let banner = banner(gateway.notes(), source, io::stdout().is_terminal());
                // If standard output is closed or not read, the gateway runs without the banner.
                logging::run_with_timeout(BANNER_TIMEOUT, move || drop(output::print(banner)));
            }
            LogFormat::Json => log_start(gateway.notes(), source),
        }
        for remark in &gateway.notes().remarks {
            warn!("{remark}");
        }
        notify::start(&gateway.notes().url, shutdown.clone());
        Ok(gateway.serve(listener, shutdown).await.map_err(anyhow::Error::new)?)
    })
}

/// Writes down which configuration the data directory is used with, and warns if it was another one.
fn remember(data_dir: &Path, source: &ConfigSource) {
    if let Some(other) = remembered::other(data_dir, source) {
        let other = other.display();
        warn!(now = %source, "the data directory was last used with another configuration, {other}: pass --config {other} to have it back");
    }
    if let Err(error) = remembered::write(data_dir, source) {
        warn!(%error, "cannot write down which configuration the data directory is used with");
    }
}

fn cannot_listen(address: std::net::SocketAddr, error: io::Error) -> anyhow::Error {
    let hint = why_not_listen(error.kind());
    anyhow!(error).context(format!("cannot listen on {address}: {hint}"))
}

/// Why the gateway cannot listen on an address, and what to do.
pub(super) const fn why_not_listen(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::AddrInUse => {
            "the address is in use, perhaps by another gateway; set server.listen or REJOINDER__SERVER__LISTEN to \
             another one"
        }
        io::ErrorKind::PermissionDenied => "this user may not listen there; ports below 1024 need root",
        io::ErrorKind::AddrNotAvailable => "this machine has no such address; see server.listen",
        _ => "see server.listen",
    }
}

/// The first signal starts a graceful shutdown, the second ends the process at once.
fn listen_to_signals(shutdown: CancellationToken) -> Result<(), Failure> {
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen to SIGINT")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen to SIGTERM")?;
    // By default this signal ends the process when a file reaches its size limit. Once it is handled, the write fails, and
    // the limit is a full disk.
    let file_size = SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw());
    drop(signal(file_size).context("cannot listen to SIGXFSZ")?);
    tokio::spawn(async move {
        let mut next = async || {
            tokio::select! {
                _ = interrupt.recv() => SignalKind::interrupt(),
                _ = terminate.recv() => SignalKind::terminate(),
            }
        };
        next().await;
        shutdown.cancel();
        let second = next().await;
        warn!("second stop signal: exiting at once; open turns continue at the next start");
        logging::finish();
        process::exit(128 + second.as_raw_value());
    });
    Ok(())
}

/// The text that the start prints for people. With `shows_tokens` it has the tokens that this start created, otherwise
/// where to find them.
fn banner(notes: &Notes, source: &ConfigSource, shows_tokens: bool) -> String {
    let mut lines = vec![format!("Rejoinder {}", env!("CARGO_PKG_VERSION")), String::new()];
    let mut line = |label: &str, text: String| lines.push(format!("  {label:<8}{text}"));
    for notice in &notes.channels {
        let url = &notes.url;
        match notice {
            ChannelNotice::Page { path, token } => line("chat", page_line(url, path, token.as_ref(), shows_tokens)),
            ChannelNotice::Hook { path, token } => line("hook", hook_line(url, path, token.as_ref(), shows_tokens)),
            ChannelNotice::Api { path, token } => line("api", page_line(url, path, token.as_ref(), shows_tokens)),
            ChannelNotice::Account { channel, description } => line("bot", format!("{channel}, {description}")),
        }
    }
    if let Some((url, token)) = &notes.admin {
        let dashboard = command_line("dashboard", source.file());
        match notes.page.as_ref().filter(|_| shows_tokens) {
            Some(page) => line("admin", format!("{page} (opens once; then: {dashboard})")),
            None => line("admin", format!("{url}/admin, see `{dashboard}`; {}", describe_token(token, shows_tokens))),
        }
    }
    for agent in &notes.agents {
        let role = if agent.is_default && notes.agents.len() > 1 { ", the default" } else { "" };
        let name =
            if agent.description.starts_with(&*agent.name) { String::new() } else { format!("{}: ", agent.name) };
        line("agent", format!("{name}{}{role}", agent.description));
    }
    if let Some(remark) = notes.agents.iter().filter(|agent| agent.is_default).find_map(|agent| agent.remark.clone()) {
        line("", remark);
    }
    line("config", source.to_string());
    line("data", notes.data_dir.display().to_string());
    lines.push(String::new());
    lines.join("\n")
}

fn page_line(url: &str, path: &str, token: Option<&TokenSource>, shows_tokens: bool) -> String {
    match token {
        None => format!("{url}{path}"),
        Some(source) => format!("{url}{path}, with {}", describe_token(source, shows_tokens)),
    }
}

/// A command to copy, or the address to call.
fn hook_line(url: &str, path: &str, token: Option<&TokenSource>, shows_tokens: bool) -> String {
    let address = format!("{url}{path}");
    let call = |token: &str| format!("curl {address} -H \"Authorization: Bearer {token}\" -d message=hello");
    match token {
        None => format!("{address}, for signed requests"),
        Some(TokenSource::Configured) => format!("{address}, with the token that you chose"),
        Some(TokenSource::Generated(generated)) if generated.is_new && shows_tokens => {
            call(generated.token.expose_secret())
        }
        Some(TokenSource::Generated(generated)) => call(&format!("$(cat {})", shell_quoted(&generated.path))),
    }
}

/// How to find a token.
fn describe_token(source: &TokenSource, shows_tokens: bool) -> String {
    match source {
        TokenSource::Configured => "the token that you chose".to_owned(),
        TokenSource::Generated(generated) if generated.is_new && shows_tokens => {
            format!("the token {} (kept in {})", generated.token.expose_secret(), generated.path.display())
        }
        TokenSource::Generated(generated) => format!("the token in {}", generated.path.display()),
    }
}

/// The same for programs, as log lines: never a token, only the file that holds it.
fn log_start(notes: &Notes, source: &ConfigSource) {
    let file = |source: &TokenSource| match source {
        TokenSource::Configured => None,
        TokenSource::Generated(generated) => Some(generated.path.display().to_string()),
    };
    let version = env!("CARGO_PKG_VERSION");
    info!(version, url = notes.url, config = %source, data = %notes.data_dir.display(), "rejoinder has started");
    for notice in &notes.channels {
        let (what, path, token) = match notice {
            ChannelNotice::Page { path, token } => ("chat page", path, token),
            ChannelNotice::Hook { path, token } => ("hook", path, token),
            ChannelNotice::Api { path, token } => ("API", path, token),
            ChannelNotice::Account { channel, description } => {
                info!(%channel, what = description, "bot account");
                continue;
            }
        };
        info!(url = format!("{}{path}", notes.url), token_file = token.as_ref().and_then(file), "{what}");
    }
    for agent in &notes.agents {
        info!(agent = %agent.name, what = agent.description, is_default = agent.is_default, "agent");
    }
    if let Some((url, token)) = &notes.admin {
        info!(url = format!("{url}/admin/api"), token_file = file(token), "admin interface");
    }
}

#[cfg(test)]
mod tests {
    use crate::secrets::GeneratedToken;

    use super::*;

    fn line(is_new: bool, shows_tokens: bool, path: &str) -> String {
        let generated = TokenSource::Generated(GeneratedToken { token: "s3cret".into(), path: path.into(), is_new });
        hook_line("http://127.0.0.1:7420", "/hooks/default", Some(&generated), shows_tokens)
    }

    #[test]
    fn the_first_start_on_a_terminal_gives_a_line_to_copy() {
        assert_eq!(
            line(true, true, "/data/hook-default-token"),
            r#"curl http://127.0.0.1:7420/hooks/default -H "Authorization: Bearer s3cret" -d message=hello"#
        );
    }

    #[test]
    fn later_starts_and_those_without_a_terminal_name_the_file_and_not_the_token() {
        for (is_new, shows_tokens) in [(false, true), (true, false)] {
            let line = line(is_new, shows_tokens, "/home/a b/hook-default-token");

            assert!(line.contains("$(cat '/home/a b/hook-default-token')"), "{line}");
            assert!(!line.contains("s3cret"), "{line}");
        }
    }
}
