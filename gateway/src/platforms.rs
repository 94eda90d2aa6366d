//! The platforms of this build: a [`Platform`] each, in a file of its name.
//!
//! To add one: its crate under `adapters/` with its section of the configuration, a file here with what it is to the
//! gateway, its line in [`PLATFORMS`], and the crate in `Cargo.toml`. One that a build can do without has a feature of its
//! name, which is met in this file only, and a line in [`LEFT_OUT`]. Everything else (the manual, `init`, `doctor`, the
//! start) goes through that list.

#[cfg(any(feature = "discord", feature = "telegram"))]
mod bot;
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

use std::{path::Path, sync::Arc};

use axum::Router;
use clap::{Arg, ArgMatches};
use futures_util::future::{BoxFuture, LocalBoxFuture};
use rejoinder_config::{Config, PlatformSection};
use rejoinder_core::{ChannelAdapter, ChannelId, Intake};
use reqwest::Client;
use utoipa::openapi::OpenApi;

use crate::{
    console::{ask::Ask, failure::Failure, finding::Finding, secret::SecretPlace},
    materials::{Materials, Shown, WiringError},
};

/// Every platform, in the order of the manual and of the questions of `rejoinder init`.
static PLATFORMS: &[&dyn Platform] = &[
    &webchat::Webchat,
    &webhook::Webhook,
    #[cfg(feature = "telegram")]
    &telegram::Telegram,
    #[cfg(feature = "discord")]
    &discord::Discord,
    #[cfg(feature = "matrix")]
    &matrix::Matrix,
    #[cfg(feature = "example")]
    &example::Example,
];

/// The platforms that were left out of this build: a configuration that names one is refused.
const LEFT_OUT: &[&str] = &[
    #[cfg(not(feature = "discord"))]
    "discord",
    #[cfg(not(feature = "matrix"))]
    "matrix",
    #[cfg(not(feature = "telegram"))]
    "telegram",
];

/// A platform, as the gateway knows it.
pub(crate) trait Platform: Sync {
    /// As people call it.
    fn name(&self) -> &'static str;

    /// The section of its channels.
    fn section(&self) -> PlatformSection;

    /// Makes its channels. Nothing is started, and nothing is connected to.
    ///
    /// # Errors
    /// When a section cannot be used, or a token cannot be kept.
    fn build(&self, materials: &Materials<'_>) -> Result<Built, WiringError>;

    /// What an operator should know about a configuration that is valid all the same.
    fn remarks(&self, _config: &Config) -> Vec<String> {
        Vec::new()
    }

    /// The description of what it serves over HTTP.
    fn openapi(&self) -> Option<OpenApi> {
        None
    }

    /// What `rejoinder init` does for it, where there is an account to connect.
    fn setup(&self) -> Option<&dyn Setup> {
        None
    }

    /// What `rejoinder doctor` looks at: one for each channel.
    fn checkups<'a>(&self, _patient: Patient<'a>) -> Vec<BoxFuture<'a, Vec<Finding>>> {
        Vec::new()
    }
}

/// The channels of one platform.
#[derive(Default)]
pub(crate) struct Built {
    pub(crate) channels: Vec<Arc<dyn ChannelAdapter>>,
    /// What is served for them. Bodies are bounded there.
    pub(crate) routes: Option<Routes>,
    /// What whoever starts a gateway is told of them.
    pub(crate) told: Vec<Told>,
    /// Where a browser is led that asks for nothing.
    pub(crate) front_page: Option<&'static str>,
}

/// Routes that are made once the channels have started.
pub(crate) type Routes = Box<dyn FnOnce(&Intakes) -> Router + Send>;

/// A channel's view of its turns, also of one that is not configured any more.
pub(crate) type Intakes = Arc<dyn Fn(&ChannelId) -> Intake + Send + Sync>;

/// A channel, for whoever is told where it is.
#[derive(Clone, Debug)]
pub(crate) enum Told {
    /// A page, at a path of the gateway. Without a token it is open to whoever is on this machine.
    Page { path: String, token: Option<Shown> },
    /// A path of the gateway that programs call. Without a token it takes signed calls only.
    Hook { path: String, token: Option<Shown> },
    /// An account elsewhere: how its messages come in, and from where.
    Account { channel: ChannelId, description: String },
}

impl Told {
    /// The account, where it is one: those come after what the gateway serves itself.
    pub(crate) const fn account(&self) -> Option<&ChannelId> {
        match self {
            Self::Account { channel, .. } => Some(channel),
            Self::Page { .. } | Self::Hook { .. } => None,
        }
    }
}

/// What `rejoinder init` does for a platform.
pub(crate) trait Setup: Sync {
    /// Its options on the command line. Their ids are their long names, which begin with the platform's.
    fn options(&self) -> Vec<Arg>;

    /// An example of a call.
    fn example(&self) -> &'static str;

    /// The account that the command line names; `None` where it names none.
    ///
    /// # Errors
    /// When it cannot be used.
    fn given<'a>(&'a self, said: &'a ArgMatches) -> LocalBoxFuture<'a, Result<Option<Account>, Failure>>;

    /// Asks for an account; `None` where there is to be none. What is typed in will be kept in `data_dir`.
    ///
    /// # Errors
    /// When nobody answers.
    fn interview<'a>(
        &'a self,
        said: &'a ArgMatches,
        asked: &'a mut dyn Ask,
        data_dir: &'a Path,
    ) -> LocalBoxFuture<'a, Result<Option<Account>, Failure>>;
}

/// An account that is to be written into the configuration.
pub(crate) struct Account {
    /// Its section.
    pub(crate) section: String,
    /// Its secrets, and where they are.
    pub(crate) secrets: Vec<SecretPlace>,
    /// What whoever wrote it should know.
    pub(crate) farewell: String,
}

/// Why it is not known who somebody is on a platform. Nothing in it says a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg(any(feature = "discord", feature = "matrix", feature = "telegram"))]
pub(crate) enum CheckError {
    /// A token or a password is nobody's.
    #[error("{0}")]
    Wrong(String),
    /// There is nobody to ask.
    #[error("{0}")]
    Unreachable(String),
}

/// What `rejoinder doctor` looks at.
#[derive(Clone, Copy)]
pub(crate) struct Patient<'a> {
    pub(crate) config: &'a Config,
    pub(crate) data_dir: &'a Path,
    pub(crate) http: &'a Client,
    /// Whether a gateway works with the database.
    pub(crate) is_running: bool,
}

/// Every platform, in the order of the manual.
pub(crate) fn all() -> impl Iterator<Item = &'static dyn Platform> {
    PLATFORMS.iter().copied()
}

/// Every platform, by its name.
pub(crate) fn by_name() -> impl Iterator<Item = &'static dyn Platform> {
    let mut platforms: Vec<_> = all().collect();
    platforms.sort_by_key(|platform| platform.section().name);
    platforms.into_iter()
}

/// The platforms on which there are accounts to connect, as people call them: "Discord, Matrix and Telegram".
pub(crate) fn names() -> String {
    let names: Vec<_> = by_name().filter(|platform| platform.setup().is_some()).map(Platform::name).collect();
    match &names[..] {
        [] => "nowhere else".to_owned(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The sections of them all.
pub(crate) fn sections() -> Vec<PlatformSection> {
    all().map(Platform::section).chain(LEFT_OUT.iter().map(|name| PlatformSection::left_out(name))).collect()
}

/// What is said of the channels of a platform that let nobody in, or everybody; `how` somebody can be let in.
#[cfg(any(feature = "discord", feature = "example", feature = "matrix", feature = "telegram"))]
fn remarks_on_people(config: &Config, platform: &str, how: impl Fn(&str) -> String) -> Vec<String> {
    let channels = config.channels.iter().filter(|(channel, _)| channel.platform() == platform);
    let people = channels.filter_map(|(id, channel)| Some((format!("channels.{id}"), channel.common.people.as_ref()?)));
    let remark = |(key, people): (String, &rejoinder_config::People)| match people.dm_policy {
        rejoinder_core::DirectPolicy::Allowlist if people.allow_from.is_empty() => {
            Some(format!("{key} lets nobody in yet: {}.", how(&key)))
        }
        rejoinder_core::DirectPolicy::Open => {
            Some(format!("{key}.dm_policy is \"open\": whoever finds the bot talks to your agent."))
        }
        rejoinder_core::DirectPolicy::Allowlist | rejoinder_core::DirectPolicy::Disabled => None,
    };
    people.filter_map(remark).collect()
}

#[cfg(test)]
mod tests;
