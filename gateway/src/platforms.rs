//! The platforms of this build. Each implements [`Platform`] in a file of its own.
//!
//! To add one, write its crate under `adapters/` with its section of the configuration, add the crate to `Cargo.toml`,
//! implement [`Platform`] in a file here, and list it in [`PLATFORMS`]. An optional platform also has a Cargo feature of its
//! name, which only the files here and `lib.rs` mention, and a line in [`LEFT_OUT`]. Everything else (the manual, `init`,
//! `doctor`, the start) uses these lists.

mod api;
#[cfg(any(feature = "discord", feature = "telegram"))]
mod bot;
#[cfg(any(feature = "discord", feature = "matrix", feature = "telegram"))]
mod check;
#[cfg(feature = "discord")]
mod discord;
#[cfg(feature = "example")]
mod example;
#[cfg(feature = "matrix")]
mod matrix;
#[cfg(feature = "telegram")]
mod telegram;
mod webchat;
mod webhook;
mod words;

use std::{path::Path, sync::Arc};

use axum::Router;
use clap::{Arg, ArgMatches};
use futures_util::future::{BoxFuture, LocalBoxFuture};
use rejoinder_config::{Config, PlatformSection};
use rejoinder_core::{ChannelAdapter, ChannelId, Intake};
use reqwest::Client;
use utoipa::openapi::OpenApi;

use crate::{
    callers::Caller,
    console::{ask::Ask, failure::Failure, finding::Finding, secret::SecretLocation},
    materials::{Materials, TokenSource, WiringError},
};

/// In the order of the manual and of the questions of `rejoinder init`.
static PLATFORMS: &[&dyn Platform] = &[
    &webchat::Webchat,
    &webhook::Webhook,
    &api::Api,
    &words::Words,
    #[cfg(feature = "telegram")]
    &telegram::Telegram,
    #[cfg(feature = "discord")]
    &discord::Discord,
    #[cfg(feature = "matrix")]
    &matrix::Matrix,
    #[cfg(feature = "example")]
    &example::Example,
];

/// Platforms whose feature is off in this build, but for the example. A configuration that names one is rejected.
const LEFT_OUT: &[&str] = &[
    #[cfg(not(feature = "discord"))]
    "discord",
    #[cfg(not(feature = "matrix"))]
    "matrix",
    #[cfg(not(feature = "telegram"))]
    "telegram",
];

/// What the gateway needs to know about a platform.
pub(crate) trait Platform: Sync {
    /// The platform's name for people.
    fn name(&self) -> &'static str;

    /// The configuration section of its channels.
    fn section(&self) -> PlatformSection;

    /// Builds its channels. Starts nothing and connects to nothing.
    ///
    /// # Errors
    /// When a section is invalid, or a token can be neither read nor created.
    fn build(&self, materials: &Materials<'_>) -> Result<Built, WiringError>;

    /// Remarks on a valid configuration that the operator should know.
    fn remarks(&self, _config: &Config) -> Vec<String> {
        Vec::new()
    }

    /// The OpenAPI description of its HTTP routes.
    fn openapi(&self) -> Option<OpenApi> {
        None
    }

    /// How `rejoinder init` connects an account; `None` if the platform has no accounts.
    fn setup(&self) -> Option<&dyn Setup> {
        None
    }

    /// The checks of `rejoinder doctor`: one for each channel.
    fn checks<'a>(&self, _context: CheckContext<'a>) -> Vec<BoxFuture<'a, Vec<Finding>>> {
        Vec::new()
    }
}

/// The channels of one platform.
#[derive(Default)]
pub(crate) struct Built {
    pub(crate) channels: Vec<Arc<dyn ChannelAdapter>>,
    /// Their HTTP routes, which limit their bodies themselves.
    pub(crate) routes: Option<Routes>,
    /// What the start reports about them.
    pub(crate) notices: Vec<ChannelNotice>,
    /// Where `/` redirects to.
    pub(crate) front_page: Option<&'static str>,
}

/// Builds the routes once the channels have started.
pub(crate) type Routes = Box<dyn FnOnce(&RouteMaterials) -> Router + Send>;

/// What routes are built with.
pub(crate) struct RouteMaterials {
    pub(crate) intakes: Intakes,
    pub(crate) callers: Callers,
}

/// Finds out whose an operators' token is, the configured one included.
pub(crate) type Callers = Arc<dyn Fn(&[u8]) -> Option<Caller> + Send + Sync>;

/// Returns the [`Intake`] of a channel, also of one that is no longer configured.
pub(crate) type Intakes = Arc<dyn Fn(&ChannelId) -> Intake + Send + Sync>;

/// How the start describes a channel.
#[derive(Clone, Debug)]
pub(crate) enum ChannelNotice {
    /// A page at a path of the gateway. Without a token it is open to callers on this machine only.
    Page { path: String, token: Option<TokenSource> },
    /// A path of the gateway that programs call. Without a token it accepts only signed requests.
    Hook { path: String, token: Option<TokenSource> },
    /// A path of the gateway that chat clients use. Without a token only the operators' tokens open it.
    Api { path: String, token: Option<TokenSource> },
    /// An account on a platform, or a place for words. The description says how and from where its messages arrive, or where they go.
    Account { channel: ChannelId, description: String },
}

impl ChannelNotice {
    /// The channel of an [`Account`](Self::Account). The sort key: `None`, for what is served here, comes first.
    pub(crate) const fn account(&self) -> Option<&ChannelId> {
        match self {
            Self::Account { channel, .. } => Some(channel),
            Self::Page { .. } | Self::Hook { .. } | Self::Api { .. } => None,
        }
    }
}

/// How `rejoinder init` connects an account of a platform.
pub(crate) trait Setup: Sync {
    /// Its command-line options. Their ids are their long names, which begin with the platform's key.
    fn options(&self) -> Vec<Arg>;

    /// An example of a command line.
    fn example(&self) -> &'static str;

    /// The account that the command line names, if any.
    ///
    /// # Errors
    /// When the options are wrong, or the platform rejects the account.
    fn account_from_options<'a>(
        &'a self,
        matches: &'a ArgMatches,
    ) -> LocalBoxFuture<'a, Result<Option<Account>, Failure>>;

    /// Asks for an account; `None` if the operator wants none. Typed secrets will be kept in `data_dir`.
    ///
    /// # Errors
    /// When the questions get no answer.
    fn interview<'a>(
        &'a self,
        matches: &'a ArgMatches,
        terminal: &'a mut dyn Ask,
        data_dir: &'a Path,
    ) -> LocalBoxFuture<'a, Result<Option<Account>, Failure>>;
}

/// An account to write into the configuration.
pub(crate) struct Account {
    /// Its section, as TOML.
    pub(crate) section: String,
    pub(crate) secrets: Vec<SecretLocation>,
    /// What `init` prints about it at the end.
    pub(crate) closing_text: String,
}

/// Why the check of an account failed. Contains no secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg(any(feature = "discord", feature = "matrix", feature = "telegram"))]
pub(crate) enum CheckError {
    /// The platform rejects the token or the password.
    #[error("{0}")]
    Rejected(String),
    /// The platform does not respond.
    #[error("{0}")]
    Unreachable(String),
}

/// What `rejoinder doctor` checks.
#[derive(Clone, Copy)]
#[cfg_attr(
    not(any(feature = "discord", feature = "matrix", feature = "telegram")),
    expect(dead_code, reason = "only platforms with accounts check them")
)]
pub(crate) struct CheckContext<'a> {
    pub(crate) config: &'a Config,
    #[cfg_attr(
        all(not(feature = "matrix"), any(feature = "discord", feature = "telegram")),
        expect(dead_code, reason = "only some platforms keep files")
    )]
    pub(crate) data_dir: &'a Path,
    pub(crate) http: &'a Client,
    /// Whether a gateway uses the database.
    pub(crate) is_running: bool,
}

/// All platforms, in the order of the manual.
pub(crate) fn all() -> impl Iterator<Item = &'static dyn Platform> {
    PLATFORMS.iter().copied()
}

/// All platforms, sorted by the name of their section.
pub(crate) fn by_name() -> impl Iterator<Item = &'static dyn Platform> {
    let mut platforms: Vec<_> = all().collect();
    platforms.sort_by_key(|platform| platform.section().name);
    platforms.into_iter()
}

/// The names of the platforms that have accounts to connect: "Discord, Matrix and Telegram".
pub(crate) fn names() -> String {
    let names: Vec<_> = by_name().filter(|platform| platform.setup().is_some()).map(Platform::name).collect();
    match &names[..] {
        [] => "no chat platform".to_owned(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The sections of all platforms, including those left out.
pub(crate) fn sections() -> Vec<PlatformSection> {
    all().map(Platform::section).chain(LEFT_OUT.iter().map(|name| PlatformSection::left_out(name))).collect()
}

/// Remarks on the channels of a platform that let nobody or everybody in. `how` says how to let someone in.
#[cfg(any(feature = "discord", feature = "example", feature = "matrix", feature = "telegram"))]
fn remarks_on_people(config: &Config, platform: &str, how: impl Fn(&str) -> String) -> Vec<String> {
    let channels = config.channels.iter().filter(|(channel, _)| channel.platform() == platform);
    let people = channels.filter_map(|(id, channel)| Some((id, channel.common.people.as_ref()?)));
    let remark = |(id, people): (rejoinder_core::ChannelId, &rejoinder_config::People)| {
        let key = format!("channels.{id}");
        match people.dm_policy {
            rejoinder_core::DirectPolicy::Allowlist
                if people.allow_from.is_empty() && !config.people.has_on(id.as_str()) =>
            {
                Some(format!("{key} lets nobody in yet: {}.", how(&key)))
            }
            rejoinder_core::DirectPolicy::Open => {
                Some(format!("{key}.dm_policy is \"open\": everyone who finds the bot can talk to your agent."))
            }
            rejoinder_core::DirectPolicy::Pairing | rejoinder_core::DirectPolicy::Allowlist
                if people.allow_from.iter().any(|entry| entry == "*") =>
            {
                Some(format!("{key}.allow_from has \"*\": everyone who finds the bot can talk to your agent."))
            }
            rejoinder_core::DirectPolicy::Pairing
            | rejoinder_core::DirectPolicy::Allowlist
            | rejoinder_core::DirectPolicy::Disabled => None,
        }
    };
    people.filter_map(remark).collect()
}

#[cfg(test)]
mod tests;
