//! How the gateway's commands say where the web chat is, and what opens it.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use reqwest::{Client, redirect::Policy};
use secrecy::SecretString;

use crate::failure::Failure;

/// Which web chat is used.
#[derive(Debug, Args)]
pub(crate) struct ChatName {
    /// The web chat to use, `[channels.webchat.NAME]`; if not given: `main`, or the only one
    #[arg(long, value_name = "NAME")]
    pub(crate) chat: Option<String>,
}

/// Which conversation of the web chat is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conversation {
    /// A new one, which is not kept.
    Passing,
    /// The kept one.
    Kept,
    /// A new one, which replaces the kept one.
    Renewed,
}

/// A web chat of the running gateway.
pub trait Door: Send {
    /// The address of the chat's socket now: the port may be one that the system chose at the last start.
    ///
    /// # Errors
    /// When no gateway runs.
    fn url(&self) -> Result<String, Failure>;

    fn token(&self) -> Option<&SecretString>;

    /// The id of a conversation, which opens it.
    ///
    /// # Errors
    /// When the id can be neither read nor written.
    fn conversation(&self, which: Conversation) -> Result<SecretString, Failure>;

    /// The file that keeps the lines typed so far.
    fn history(&self) -> PathBuf;
}

/// A client for HTTP requests to the gateway, each of which may take `timeout`. The gateway is on this machine: no proxy is used.
pub(crate) fn http(timeout: Duration) -> reqwest::Result<Client> {
    Client::builder().no_proxy().redirect(Policy::none()).timeout(timeout).build()
}

/// The person's language as a tag such as `de-AT`, from what the environment says (POSIX: `de_AT.UTF-8`).
pub(crate) fn language() -> Option<String> {
    let of = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    tag(&of("LC_ALL").or_else(|| of("LC_MESSAGES")).or_else(|| of("LANG"))?)
}

fn tag(locale: &str) -> Option<String> {
    let name = locale.split(['.', '@']).next().unwrap_or_default();
    (!matches!(name, "" | "C" | "POSIX")).then(|| name.replace('_', "-"))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("de_AT.UTF-8", Some("de-AT"))]
    #[case("sr_RS@latin", Some("sr-RS"))]
    #[case("en", Some("en"))]
    #[case("C.UTF-8", None)]
    #[case("POSIX", None)]
    fn the_language_is_that_of_the_locale(#[case] locale: &str, #[case] expected: Option<&str>) {
        assert_eq!(tag(locale).as_deref(), expected);
    }
}
