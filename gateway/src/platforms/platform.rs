//! What the gateway knows of a platform, and what a platform builds for it.

use std::{path::Path, sync::Arc, time::Duration};

use async_trait::async_trait;
use axum::Router;
use clap::{Arg, ArgMatches};
use futures_util::future::BoxFuture;
use rejoinder_config::{Config, IdFormat, PlatformSection};
use rejoinder_core::{ChannelAdapter, ChannelId, Intake, StoreError};
use rejoinder_webhook::Call;
use reqwest::Client;
use secrecy::SecretString;
use utoipa::openapi::OpenApi;

use crate::{
    callers::Caller,
    console::{ask::Ask, failure::Failure, finding::Finding, secret::SecretLocation},
    materials::{Materials, TokenSource, WiringError},
};

/// What the gateway needs to know about a platform.
pub(crate) trait Platform: Sync {
    /// The platform's name for people.
    fn name(&self) -> &'static str;

    /// The configuration section of its channels.
    fn section(&self) -> PlatformSection;

    /// Builds its channels. Starts nothing and connects to nothing.
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

    /// The format of ids there; `None` if everybody is let in who has a token.
    fn id_format(&self) -> Option<&'static IdFormat> {
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
    /// What the operator's page shows of hooks.
    pub(crate) hooks: Vec<Hook>,
    /// Where `/` redirects to.
    pub(crate) front_page: Option<&'static str>,
}

/// Builds the routes once the channels have started.
pub(crate) type Routes = Box<dyn FnOnce(&RouteMaterials) -> Router + Send>;

pub(crate) struct RouteMaterials {
    pub(crate) intakes: Intakes,
    pub(crate) callers: Callers,
}

/// Finds out whose an operators' token is, the configured one included. Fails while it cannot be read which ones there are.
pub(crate) type Callers =
    Arc<dyn for<'a> Fn(&'a [u8]) -> BoxFuture<'a, Result<Option<Caller>, StoreError>> + Send + Sync>;

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

/// A hook, as the operator's page shows it.
#[derive(Clone)]
pub(crate) struct Hook {
    pub(crate) channel: ChannelId,
    /// Where it is called: absolute if the gateway has a public URL, else a path.
    pub(crate) url: String,
    /// What its callers send; `None` if they sign.
    pub(crate) token: Option<SecretString>,
    /// Whether it takes events, whose callers get no answer.
    pub(crate) takes_events: bool,
    /// How long a caller waits at most.
    pub(crate) wait: Duration,
    /// Gives its last calls at this node, newest first.
    pub(crate) calls: Arc<dyn Fn() -> Vec<Call> + Send + Sync>,
}

/// How `rejoinder init` connects an account of a platform.
#[async_trait(?Send)]
pub(crate) trait Setup: Sync {
    /// Its command-line options. Their ids are their long names, which begin with the platform's key.
    fn options(&self) -> Vec<Arg>;

    fn example(&self) -> &'static str;

    /// The account that the command line names, if any.
    async fn account_from_options(&self, matches: &ArgMatches) -> Result<Option<Account>, Failure>;

    /// Asks for an account; `None` if the operator wants none. Typed secrets will be kept in `data_dir`.
    async fn interview(
        &self,
        matches: &ArgMatches,
        terminal: &mut dyn Ask,
        data_dir: &Path,
    ) -> Result<Option<Account>, Failure>;
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
    /// It could not be checked, for example because the platform does not respond.
    #[error("{0}")]
    Unchecked(String),
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
