//! From the configuration to running parts. Nothing else in this package reads the configuration's sections.
//!
//! To add a platform: its name in `Wiring::channel_agents` and, where strangers can write, in `Wiring::people`. One with
//! accounts elsewhere is a file in `wiring/` behind a feature of its name, met in this file only; its function gives [`Bots`]
//! to `Wiring::bots`.
//! To add a kind of agent: its arm in `Wiring::agents`.

mod contacts;
#[cfg(feature = "discord")]
mod discord;
#[cfg(feature = "matrix")]
mod matrix;
#[cfg(feature = "telegram")]
mod telegram;

use std::{
    collections::HashMap,
    fmt, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use axum::Router;
use rejoinder_agents::{FrontDesk, OpenAi, OpenAiSettings, Status};
use rejoinder_config::{
    Access as PageAccess, Agent, Chat, Config, DmPolicy, GroupPolicy as ConfiguredGroupPolicy, People,
    Rung as ConfiguredRung, Size, Token, UpdateMode,
};
use rejoinder_core::{
    Access, AgentName, AgentRuntime, Cause, ChannelAdapter, ChannelId, ChatKind, DirectPolicy, GroupPolicy, Ladder,
    LateAnswer, OnUnknown, Policies, Policy, Question, Rung, Settings, SharedClock, SystemClock, Timestamp, Words,
};
use rejoinder_webchat::{Access as WebchatAccess, WebchatAdapter, WebchatSettings};
use rejoinder_webhook::{CallbackSettings, ResultKeys, WebhookAdapter, WebhookSettings};
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::secrets::{self, MadeToken};

pub(crate) use self::contacts::{
    AgentContact, DiscordContact, MatrixContact, ModelServer, TelegramContact, agent_contacts, discord_contacts,
    matrix_contacts, telegram_contacts,
};

/// The most bytes of one attachment that an agent is given, where no channel says more.
const MAX_ATTACHMENT: usize = 1 << 20;

/// Whether this build can talk to Discord.
pub(crate) const HAS_DISCORD: bool = cfg!(feature = "discord");

/// Whether this build can talk to Matrix.
pub(crate) const HAS_MATRIX: bool = cfg!(feature = "matrix");

/// Whether this build can talk to Telegram.
pub(crate) const HAS_TELEGRAM: bool = cfg!(feature = "telegram");

/// How long connecting to an agent or a callback may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long somebody who is only looked at may take to answer.
pub(crate) const CHECK_TIMEOUT: Duration = Duration::from_secs(10);

/// Why the parts cannot be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WiringError {
    /// The data directory, or a token in it, can be neither read nor written.
    #[error("the token {} can be neither read nor made", path.display())]
    Token {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// A hook's settings do not hold.
    #[error("config key `channels.webhook.{name}` cannot be used: {reason}")]
    Hook { name: String, reason: String },
    /// A bot's settings do not hold.
    #[error("config key `channels.{channel}` cannot be used: {reason}")]
    #[cfg_attr(
        not(any(feature = "discord", feature = "matrix", feature = "telegram")),
        expect(dead_code, reason = "only a bot's wiring makes it")
    )]
    Bot { channel: ChannelId, reason: String },
    /// The platform was left out when this was built.
    #[error(
        "config key `channels.{platform}` names a platform that this build does not have: take it out, or build with \
         the feature `{platform}`"
    )]
    LeftOut { platform: &'static str },
    /// An agent's settings do not hold.
    #[error("config key `agents.{name}` cannot be used: {reason}")]
    Agent { name: String, reason: String },
    /// The HTTP client cannot be made.
    #[error("the HTTP client cannot be made")]
    Http(#[source] reqwest::Error),
}

/// A token that callers show.
#[derive(Clone, Debug)]
pub(crate) enum Shown {
    /// The operator chose it.
    Given,
    /// The gateway made it, and keeps it in a file.
    Made(MadeToken),
}

/// A hook, for whoever is told how to call it.
#[derive(Clone, Debug)]
pub(crate) struct HookInfo {
    pub(crate) name: String,
    /// `None`: it takes signed calls only.
    pub(crate) token: Option<Shown>,
}

/// A chat page, for whoever is told where it is.
#[derive(Clone, Debug)]
pub(crate) struct ChatInfo {
    pub(crate) name: String,
    /// `None`: it is open to whoever is on this machine.
    pub(crate) token: Option<Shown>,
}

/// A bot of the configuration, for whoever is told which there are.
#[derive(Clone, Debug)]
pub(crate) struct BotInfo {
    pub(crate) channel: ChannelId,
    /// How its updates come in, and from where.
    pub(crate) description: String,
}

/// The accounts on one platform.
#[derive(Default)]
pub(crate) struct Bots {
    channels: Vec<Arc<dyn ChannelAdapter>>,
    /// What the platform posts to.
    routes: Router,
}

/// A Telegram bot, as Telegram knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TelegramBot {
    pub(crate) name: String,
    /// Without the sign before it.
    pub(crate) username: String,
    pub(crate) can_join_groups: bool,
    /// Whether privacy mode is off.
    pub(crate) reads_groups: bool,
}

/// Where Telegram posts a bot's updates to, and how that goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TelegramPosting {
    /// `None`: updates wait to be asked for.
    pub(crate) url: Option<String>,
    /// How many updates wait.
    pub(crate) pending: u64,
    /// Why the last post that failed did so, in Telegram's words, and when.
    pub(crate) last_error: Option<(String, Timestamp)>,
}

/// A Discord application and its bot, as Discord knows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DiscordBot {
    /// What people see.
    pub(crate) name: String,
    pub(crate) username: String,
    /// Whether the Message Content intent is on; `None`: Discord did not say.
    pub(crate) reads_message_content: Option<bool>,
    /// Whether anybody may add it to a server, and not its owner alone.
    pub(crate) is_public: bool,
    pub(crate) invite_url: String,
}

/// A Matrix account that works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MatrixAccount {
    /// The user id, as the homeserver has it.
    pub(crate) user: String,
    pub(crate) display_name: Option<String>,
    /// The device of an access token.
    pub(crate) device: Option<String>,
}

/// How a Matrix account stands that the gateway is to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MatrixStanding {
    /// Its device is the gateway's own, where there is one yet.
    pub(crate) account: MatrixAccount,
    /// Whether the account has signed that device; `None`: it has no keys yet.
    pub(crate) is_signed: Option<bool>,
}

/// How a Matrix account is proved.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "matrix"), expect(dead_code, reason = "nobody is asked whether it is right"))]
pub(crate) enum MatrixLogin {
    Password(SecretString),
    AccessToken(SecretString),
}

/// Why it is not known who a token belongs to. Nothing in it says the token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BotCheckError {
    /// It is nobody's.
    #[error("{0}")]
    #[cfg_attr(
        not(any(feature = "discord", feature = "matrix", feature = "telegram")),
        expect(dead_code, reason = "only a platform says so")
    )]
    Wrong(String),
    /// There is nobody to ask.
    #[error("{0}")]
    Unreachable(String),
}

/// An agent, for whoever is told which there are.
#[derive(Clone, Debug)]
pub(crate) struct AgentInfo {
    pub(crate) name: AgentName,
    pub(crate) kind: &'static str,
    /// What it is and where, without secrets.
    pub(crate) description: String,
    pub(crate) is_default: bool,
}

/// What the configuration comes to.
pub(crate) struct Parts {
    pub(crate) settings: Settings,
    pub(crate) agents: HashMap<AgentName, Arc<dyn AgentRuntime>>,
    pub(crate) agent_infos: Vec<AgentInfo>,
    pub(crate) hooks: Vec<Arc<WebhookAdapter>>,
    pub(crate) hook_infos: Vec<HookInfo>,
    pub(crate) result_keys: ResultKeys,
    pub(crate) chats: Vec<Arc<WebchatAdapter>>,
    pub(crate) chat_infos: Vec<ChatInfo>,
    pub(crate) bots: Bots,
    pub(crate) bot_infos: Vec<BotInfo>,
    pub(crate) admin_token: SecretString,
    pub(crate) admin_shown: Shown,
    /// Cancelled when callers that still wait are answered with what there is.
    pub(crate) hang_up: CancellationToken,
    pub(crate) public_url: Option<Url>,
    pub(crate) request_timeout: Duration,
    pub(crate) drain: Duration,
}

impl Parts {
    /// Every channel, as the core takes them.
    pub(crate) fn channels(&self) -> Vec<Arc<dyn ChannelAdapter>> {
        let hooks = self.hooks.iter().map(|hook| Arc::clone(hook) as Arc<dyn ChannelAdapter>);
        let chats = self.chats.iter().map(|chat| Arc::clone(chat) as Arc<dyn ChannelAdapter>);
        hooks.chain(chats).chain(self.bots.channels.iter().cloned()).collect()
    }
}

impl Bots {
    #[cfg_attr(
        not(any(feature = "discord", feature = "matrix", feature = "telegram")),
        expect(dead_code, reason = "there are none")
    )]
    fn and(mut self, others: Self) -> Self {
        self.channels.extend(others.channels);
        Self { channels: self.channels, routes: self.routes.merge(others.routes) }
    }

    /// What the platform posts to; bodies are bounded there.
    pub(crate) fn into_routes(self) -> Router {
        self.routes
    }
}

/// Where the gateway listens when nothing else is said.
pub(crate) fn listen(config: &Config) -> SocketAddr {
    config.server.listen
}

/// The database's file.
pub(crate) fn database(config: &Config, data_dir: &Path) -> PathBuf {
    config.store.url.path(data_dir)
}

/// Refuses what this build cannot honour.
///
/// # Errors
/// When a platform is configured that was left out.
pub(crate) fn check_platforms(config: &Config) -> Result<(), WiringError> {
    let platforms = [
        ("discord", HAS_DISCORD || config.channels.discord.is_empty()),
        ("matrix", HAS_MATRIX || config.channels.matrix.is_empty()),
        ("telegram", HAS_TELEGRAM || config.channels.telegram.is_empty()),
    ];
    match platforms.into_iter().find(|(_, is_honoured)| !is_honoured) {
        Some((platform, _)) => Err(WiringError::LeftOut { platform }),
        None => Ok(()),
    }
}

/// Makes the parts as a start would, and lets them go: nothing is started, and nothing is written.
///
/// # Errors
/// As [`Wiring::parts`].
pub(crate) fn check(config: &Config, data_dir: &Path) -> Result<(), WiringError> {
    let clock: SharedClock = Arc::new(SystemClock);
    let (tokens, started_at, agents) = (Tokens::Look, clock.now(), HashMap::new());
    Wiring { config, data_dir, tokens, clock: &clock, started_at, agents: &agents }.parts().map(drop)
}

/// Asks Discord, at `api_url`, who `token` belongs to.
///
/// # Errors
/// When it is nobody's, or nobody answers.
pub(crate) async fn check_discord(
    http: &reqwest::Client,
    api_url: &Url,
    token: &SecretString,
) -> Result<DiscordBot, BotCheckError> {
    #[cfg(feature = "discord")]
    {
        discord::check(http, api_url, token).await
    }
    #[cfg(not(feature = "discord"))]
    {
        let _ = (http, api_url, token);
        std::future::ready(Err(BotCheckError::Unreachable("this build cannot talk to Discord".to_owned()))).await
    }
}

/// Asks a Matrix homeserver whether it accepts an account. Nothing is left behind there.
///
/// # Errors
/// When it does not, or nobody answers.
pub(crate) async fn check_matrix(
    http: &reqwest::Client,
    homeserver: &Url,
    user: &str,
    login: &MatrixLogin,
) -> Result<MatrixAccount, BotCheckError> {
    #[cfg(feature = "matrix")]
    {
        matrix::check(http, homeserver, user, login).await
    }
    #[cfg(not(feature = "matrix"))]
    {
        let _ = (http, homeserver, user, login);
        std::future::ready(Err(BotCheckError::Unreachable("this build cannot talk to Matrix".to_owned()))).await
    }
}

/// Asks how the account `name` of the configuration stands. Nothing is changed.
///
/// # Errors
/// When it cannot be used as it is, or nobody answers.
pub(crate) async fn matrix_standing(
    http: &reqwest::Client,
    data_dir: &Path,
    name: &str,
    account: &rejoinder_config::Matrix,
) -> Result<MatrixStanding, BotCheckError> {
    #[cfg(feature = "matrix")]
    {
        matrix::standing(http, data_dir, name, account).await
    }
    #[cfg(not(feature = "matrix"))]
    {
        let _ = (http, data_dir, name, account);
        std::future::ready(Err(BotCheckError::Unreachable("this build cannot talk to Matrix".to_owned()))).await
    }
}

/// Where the homeserver of a server is, as the server says.
pub(crate) async fn discover_matrix(http: &reqwest::Client, server: &str) -> Option<Url> {
    #[cfg(feature = "matrix")]
    {
        matrix::discover(http, server).await
    }
    #[cfg(not(feature = "matrix"))]
    {
        let _ = (http, server);
        std::future::ready(None).await
    }
}

/// Asks Telegram, at `api_url`, who `token` belongs to.
///
/// # Errors
/// When it is nobody's, or nobody answers.
pub(crate) async fn check_telegram(
    http: &reqwest::Client,
    api_url: &Url,
    token: &SecretString,
) -> Result<TelegramBot, BotCheckError> {
    #[cfg(feature = "telegram")]
    {
        telegram::check(http, api_url, token).await
    }
    #[cfg(not(feature = "telegram"))]
    {
        let _ = (http, api_url, token);
        std::future::ready(Err(BotCheckError::Unreachable("this build cannot talk to Telegram".to_owned()))).await
    }
}

/// Asks Telegram, at `api_url`, where it posts the updates of the bot that `token` belongs to.
///
/// # Errors
/// As [`check_telegram`].
pub(crate) async fn check_telegram_posting(
    http: &reqwest::Client,
    api_url: &Url,
    token: &SecretString,
) -> Result<TelegramPosting, BotCheckError> {
    #[cfg(feature = "telegram")]
    {
        telegram::check_posting(http, api_url, token).await
    }
    #[cfg(not(feature = "telegram"))]
    {
        let _ = (http, api_url, token);
        std::future::ready(Err(BotCheckError::Unreachable("this build cannot talk to Telegram".to_owned()))).await
    }
}

/// What an operator should know about a configuration that is valid all the same.
pub(crate) fn remarks(config: &Config) -> Vec<String> {
    let mut remarks = Vec::new();
    if !config.server.listen.ip().is_loopback() {
        for (name, chat) in &config.channels.webchat {
            if chat.access == PageAccess::Loopback {
                remarks.push(format!(
                    "server.listen is {}, and channels.webchat.{name} is open to this machine only: callers from \
                     elsewhere are refused. Set access = \"token\" to let them in.",
                    config.server.listen
                ));
            }
        }
    }
    let channels = &config.channels;
    let discord = channels.discord.iter().map(|(name, bot)| (format!("channels.discord.{name}"), bot.people()));
    let telegram = channels.telegram.iter().map(|(name, bot)| (format!("channels.telegram.{name}"), bot.people()));
    remarks.extend(discord.chain(telegram).filter_map(|(key, people)| {
        let how = format!("write to the bot, and it says the id to put into {key}.allow_from");
        remark_on_people(&key, &people, &how)
    }));
    for (name, bot) in &channels.discord {
        if bot.auto_thread && !bot.message_content {
            remarks.push(format!(
                "channels.discord.{name}.message_content is false: in the threads that auto_thread opens, too, the agent reads \
                 only what mentions it."
            ));
        }
    }
    for (name, account) in &channels.matrix {
        // Invitations of strangers are left as they are.
        let key = format!("channels.matrix.{name}");
        let how = format!("put user ids such as \"@ada:example.org\" into {key}.allow_from");
        remarks.extend(remark_on_people(&key, &account.people(), &how));
        if account.homeserver.scheme() == "http" && !is_this_machine(&account.homeserver) {
            remarks.push(format!(
                "channels.matrix.{name}.homeserver begins with http://: the password, and all that is said, can be read on the \
                 way there."
            ));
        }
    }
    for (name, bot) in &channels.telegram {
        let path = format!("/telegram/{name}");
        if let Some(webhook) = bot.webhook.as_ref().filter(|webhook| webhook.url.path() != path) {
            remarks.push(format!(
                "channels.telegram.{name}.webhook.url ends with another path than {path}: whatever stands before the gateway \
                 must lead {} there.",
                webhook.url
            ));
        }
    }
    remarks
}

fn is_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// `how`: somebody can be let in.
fn remark_on_people(key: &str, people: &People<'_>, how: &str) -> Option<String> {
    match people.dm_policy {
        DmPolicy::Allowlist if people.allow_from.is_empty() => Some(format!("{key} lets nobody in yet: {how}.")),
        DmPolicy::Open => Some(format!("{key}.dm_policy is \"open\": whoever finds the bot talks to your agent.")),
        DmPolicy::Allowlist | DmPolicy::Disabled => None,
    }
}

/// The client for everything that goes out over HTTP. It has no timeout for whole requests, since an answer may
/// take minutes: whoever sends sets one. It follows no redirects: what is sent goes where the operator said.
pub(crate) fn http_client() -> Result<reqwest::Client, WiringError> {
    reqwest::Client::builder()
        .user_agent(concat!("rejoinder/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_keepalive(Duration::from_secs(30))
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .map_err(WiringError::Http)
}

/// What becomes of a token that the gateway has to make itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tokens {
    /// It is made, and kept in the data directory.
    Make,
    /// Nothing is made: the parts are looked at, and not used.
    Look,
}

/// What is wired, and with what.
pub(crate) struct Wiring<'a> {
    pub(crate) config: &'a Config,
    pub(crate) data_dir: &'a Path,
    pub(crate) tokens: Tokens,
    pub(crate) clock: &'a SharedClock,
    pub(crate) started_at: Timestamp,
    /// Agents that take the place of configured ones, or are there as well.
    pub(crate) agents: &'a HashMap<AgentName, Arc<dyn AgentRuntime>>,
}

impl fmt::Debug for Wiring<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wiring").field("data_dir", &self.data_dir).finish_non_exhaustive()
    }
}

impl Wiring<'_> {
    /// Makes the parts. Nothing is started, and nothing is connected to.
    ///
    /// # Errors
    /// When a token cannot be kept, or a section cannot be used.
    pub(crate) fn parts(&self) -> Result<Parts, WiringError> {
        let http = http_client()?;
        let hang_up = CancellationToken::new();
        let result_keys = ResultKeys::new(&self.made("hook-result-key")?.token);
        let (hooks, hook_infos) = self.hooks(&http, &hang_up, &result_keys)?;
        let (chats, chat_infos) = self.chats()?;
        let (bots, bot_infos) = (self.bots(&http)?, self.bot_infos());
        let (agents, agent_infos) = self.agents(&http)?;
        let (admin_token, admin_shown) = self.token(&self.config.admin.token, "admin-token")?;
        Ok(Parts {
            settings: self.settings(),
            agents,
            agent_infos,
            hooks,
            hook_infos,
            result_keys,
            chats,
            chat_infos,
            bots,
            bot_infos,
            admin_token,
            admin_shown,
            hang_up,
            public_url: self.config.server.public_url.clone(),
            request_timeout: self.config.server.request_timeout,
            drain: self.config.server.drain,
        })
    }

    fn token(&self, token: &Token, file: &str) -> Result<(SecretString, Shown), WiringError> {
        match token {
            Token::Given(secret) => Ok((secret.get().clone(), Shown::Given)),
            Token::Generate => {
                let made = self.made(file)?;
                Ok((made.token.clone(), Shown::Made(made)))
            }
        }
    }

    /// What the gateway has made itself, and keeps in `file` of its data directory.
    fn made(&self, file: &str) -> Result<MadeToken, WiringError> {
        let made = match self.tokens {
            Tokens::Make => secrets::kept_or_made(self.data_dir, file),
            Tokens::Look => secrets::kept_or_none(self.data_dir, file),
        };
        made.map_err(|source| WiringError::Token { path: self.data_dir.join(file), source })
    }

    fn hooks(
        &self,
        http: &reqwest::Client,
        hang_up: &CancellationToken,
        result_keys: &ResultKeys,
    ) -> Result<(Vec<Arc<WebhookAdapter>>, Vec<HookInfo>), WiringError> {
        let mut hooks = Vec::new();
        let mut infos = Vec::new();
        for (name, hook) in &self.config.channels.webhook {
            let token =
                hook.token.as_ref().map(|token| self.token(token, &format!("hook-{name}-token"))).transpose()?;
            let (token, shown) = token.map_or((None, None), |(token, shown)| (Some(token), Some(shown)));
            let callback = hook.callback_url.as_ref().zip(hook.callback_secret.as_ref());
            let settings = WebhookSettings {
                name: name.clone(),
                token,
                signing_secret: hook.signing_secret.clone().map(Into::into),
                hub_secret: hook.hub_secret.clone().map(Into::into),
                result_keys: result_keys.clone(),
                wait: hook.wait,
                body_limit: hook.body_limit.unwrap_or(self.config.server.body_limit).bytes(),
                conversation: hook.conversation.clone(),
                public_url: self.config.server.public_url.clone(),
                callback: callback
                    .map(|(url, secret)| CallbackSettings { url: url.clone(), secret: secret.get().clone() }),
                clock: Arc::clone(self.clock),
                http: http.clone(),
                hang_up: hang_up.clone(),
            };
            let adapter = WebhookAdapter::new(settings)
                .map_err(|error| WiringError::Hook { name: name.clone(), reason: error.to_string() })?;
            hooks.push(Arc::new(adapter));
            infos.push(HookInfo { name: name.clone(), token: shown });
        }
        Ok((hooks, infos))
    }

    fn chats(&self) -> Result<(Vec<Arc<WebchatAdapter>>, Vec<ChatInfo>), WiringError> {
        let mut chats = Vec::new();
        let mut infos = Vec::new();
        for (name, chat) in &self.config.channels.webchat {
            let token =
                chat.token.as_ref().map(|token| self.token(token, &format!("chat-{name}-token"))).transpose()?;
            let (access, shown) = match token {
                Some((token, shown)) => (WebchatAccess::Token(token), Some(shown)),
                None => (WebchatAccess::Loopback, None),
            };
            let public_origin = self.config.server.public_url.as_ref().map(|url| url.origin().ascii_serialization());
            let adapter = WebchatAdapter::new(WebchatSettings {
                name: name.clone(),
                access,
                title: chat.title.clone(),
                greeting: chat.greeting.clone(),
                origins: public_origin.into_iter().collect(),
                clock: Arc::clone(self.clock),
            });
            chats.push(Arc::new(adapter));
            infos.push(ChatInfo { name: name.clone(), token: shown });
        }
        Ok((chats, infos))
    }

    #[cfg_attr(
        not(any(feature = "discord", feature = "matrix", feature = "telegram")),
        expect(unused_variables, reason = "there is nobody to call")
    )]
    fn bots(&self, http: &reqwest::Client) -> Result<Bots, WiringError> {
        check_platforms(self.config)?;
        let bots = Bots::default();
        #[cfg(feature = "discord")]
        let bots = bots.and(discord::bots(self, http)?);
        #[cfg(feature = "matrix")]
        let bots = bots.and(matrix::accounts(self, http)?);
        #[cfg(feature = "telegram")]
        let bots = bots.and(telegram::bots(self, http)?);
        Ok(bots)
    }

    fn bot_infos(&self) -> Vec<BotInfo> {
        let channels = &self.config.channels;
        let discord = channels.discord.iter().map(|(name, bot)| BotInfo {
            channel: ChannelId::new("discord", name),
            description: format!("connects to {}", bot.api_url.host_str().unwrap_or_default()),
        });
        let matrix = channels.matrix.iter().map(|(name, account)| BotInfo {
            channel: ChannelId::new("matrix", name),
            description: format!("syncs with {}", account.homeserver.host_str().unwrap_or_default()),
        });
        let telegram = channels.telegram.iter().map(|(name, bot)| {
            let description = match (bot.mode, &bot.webhook) {
                (UpdateMode::Webhook, Some(webhook)) => format!("updates are posted to {}", webhook.url),
                _ => format!("asks {} for updates", bot.api_url.host_str().unwrap_or_default()),
            };
            BotInfo { channel: ChannelId::new("telegram", name), description }
        });
        discord.chain(matrix).chain(telegram).collect()
    }

    #[expect(clippy::type_complexity, reason = "a pair of two plain collections")]
    fn agents(
        &self,
        http: &reqwest::Client,
    ) -> Result<(HashMap<AgentName, Arc<dyn AgentRuntime>>, Vec<AgentInfo>), WiringError> {
        let mut agents: HashMap<AgentName, Arc<dyn AgentRuntime>> = HashMap::new();
        let mut infos = Vec::new();
        for (name, agent) in &self.config.agents {
            let name = AgentName::from(name.as_str());
            let runtime: Arc<dyn AgentRuntime> =
                match agent {
                    _ if self.agents.contains_key(&name) => Arc::clone(&self.agents[&name]),
                    Agent::FrontDesk(_) => Arc::new(self.front_desk()),
                    Agent::OpenAi(openai) => {
                        let mut settings = OpenAiSettings::new(
                            Arc::clone(&name),
                            openai.base_url.clone(),
                            openai.model.clone(),
                            http.clone(),
                        );
                        settings.api_key = openai.api_key.clone().map(Into::into);
                        settings.system_prompt.clone_from(&openai.system_prompt);
                        settings.temperature = openai.temperature;
                        settings.max_tokens = openai.max_tokens;
                        settings.tools = openai.tools;
                        settings.images = openai.images;
                        settings.thinks_first = openai.thinks_first;
                        settings.history_messages = openai.history_messages as usize;
                        settings.history_chars = openai.history_chars as usize;
                        settings.first_token_timeout = openai.first_token_timeout;
                        settings.idle_timeout = openai.idle_timeout;
                        Arc::new(OpenAi::new(settings).map_err(|error| WiringError::Agent {
                            name: name.to_string(),
                            reason: error.to_string(),
                        })?)
                    }
                };
            infos.push(AgentInfo {
                name: Arc::clone(&name),
                kind: agent.kind(),
                description: runtime.describe(),
                is_default: *name == *self.config.routing.default_agent,
            });
            agents.insert(name, runtime);
        }
        for (name, agent) in self.agents {
            agents.entry(Arc::clone(name)).or_insert_with(|| Arc::clone(agent));
        }
        Ok((agents, infos))
    }

    fn front_desk(&self) -> FrontDesk {
        let status = Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started: self.started_at,
            channels: self.channel_ids().iter().map(ToString::to_string).collect(),
        };
        FrontDesk::new(move || status.clone())
    }

    /// Every channel, with the agent that it names.
    fn channel_agents(&self) -> impl Iterator<Item = (ChannelId, Option<&str>)> {
        let channels = &self.config.channels;
        let discord = channels.discord.iter().map(|(name, bot)| (ChannelId::new("discord", name), &bot.agent));
        let matrix = channels.matrix.iter().map(|(name, account)| (ChannelId::new("matrix", name), &account.agent));
        let telegram = channels.telegram.iter().map(|(name, bot)| (ChannelId::new("telegram", name), &bot.agent));
        let chats = channels.webchat.iter().map(|(name, chat)| (ChannelId::new("webchat", name), &chat.agent));
        let hooks = channels.webhook.iter().map(|(name, hook)| (ChannelId::new("webhook", name), &hook.agent));
        let bots = discord.chain(matrix).chain(telegram);
        bots.chain(chats).chain(hooks).map(|(channel, agent)| (channel, agent.as_deref()))
    }

    fn channel_ids(&self) -> Vec<ChannelId> {
        self.channel_agents().map(|(channel, _)| channel).collect()
    }

    /// Who may talk to the agent, on every channel where strangers can write.
    fn people(&self) -> impl Iterator<Item = (ChannelId, People<'_>)> {
        let channels = &self.config.channels;
        let discord = channels.discord.iter().map(|(name, bot)| (ChannelId::new("discord", name), bot.people()));
        let telegram = channels.telegram.iter().map(|(name, bot)| (ChannelId::new("telegram", name), bot.people()));
        let matrix = channels.matrix.iter().map(|(name, account)| (ChannelId::new("matrix", name), account.people()));
        discord.chain(matrix).chain(telegram)
    }

    /// The channels whose agents are told when somebody reacts to what they said.
    fn telling(&self) -> impl Iterator<Item = ChannelId> {
        let channels = &self.config.channels;
        let discord = channels.discord.iter().map(|(name, bot)| (ChannelId::new("discord", name), bot.tell_reactions));
        let telegram =
            channels.telegram.iter().map(|(name, bot)| (ChannelId::new("telegram", name), bot.tell_reactions));
        let matrix =
            channels.matrix.iter().map(|(name, account)| (ChannelId::new("matrix", name), account.tell_reactions));
        discord.chain(matrix).chain(telegram).filter_map(|(channel, is_told)| is_told.then_some(channel))
    }

    /// The most bytes that any channel takes from a person. Each of them keeps to its own.
    fn max_attachment(&self) -> usize {
        let channels = &self.config.channels;
        let discord = channels.discord.values().map(|bot| bot.max_attachment);
        let telegram = channels.telegram.values().map(|bot| bot.max_attachment);
        let matrix = channels.matrix.values().map(|account| account.max_attachment);
        discord.chain(matrix).chain(telegram).max().map_or(MAX_ATTACHMENT, Size::bytes)
    }

    fn settings(&self) -> Settings {
        let (routing, outbox) = (&self.config.routing, &self.config.outbox);
        let chosen = self.channel_agents().filter_map(|(channel, agent)| Some((channel, AgentName::from(agent?))));
        Settings {
            default_agent: AgentName::from(routing.default_agent.as_str()),
            channel_agents: chosen.collect(),
            access: self.people().map(|(channel, people)| (channel, access(&people))).collect(),
            tells_reactions: self.telling().collect(),
            max_attachment: self.max_attachment(),
            policies: self.policies(),
            words: self.words(),
            max_concurrent_turns: routing.max_concurrent_turns as usize,
            delivery_lifetime: outbox.lifetime,
            min_attempts: outbox.min_attempts,
        }
    }

    /// What becomes of a message of which nobody knows whether it arrived.
    fn on_unknown(&self, channel: &str) -> rejoinder_config::OnUnknown {
        let own = channel.split_once('.').and_then(|(platform, name)| match platform {
            "telegram" => self.config.channels.telegram.get(name)?.on_unknown,
            _ => None,
        });
        own.unwrap_or(self.config.guard.on_unknown)
    }

    /// A policy for every channel and kind of chat, and one for turns of channels that are gone.
    fn policies(&self) -> Policies {
        let mut policies = Policies::new(self.policy("default", Chat::Direct));
        for channel in self.channel_ids() {
            for (kind, chat) in [(ChatKind::Direct, Chat::Direct), (ChatKind::Group, Chat::Group)] {
                policies = policies.with(channel.as_str(), kind, self.policy(channel.as_str(), chat));
            }
        }
        policies
    }

    fn policy(&self, channel: &str, chat: Chat) -> Policy {
        let guard = &self.config.guard;
        let mut ladder = Ladder::empty();
        for cause in rejoinder_config::Cause::ALL {
            let rungs = guard.ladder.rungs(channel, chat, cause).iter().map(rung).collect();
            ladder = ladder.with(self::cause(cause), rungs);
        }
        Policy {
            soft_deadline: guard.soft_deadline,
            hard_deadline: guard.hard_deadline,
            max_runs: guard.max_runs,
            max_deferrals: guard.max_deferrals,
            max_defer: guard.max_defer,
            late_answer: match guard.late_answer {
                rejoinder_config::LateAnswer::Deliver => LateAnswer::Deliver,
                rejoinder_config::LateAnswer::Record => LateAnswer::Record,
            },
            on_unknown: match self.on_unknown(channel) {
                rejoinder_config::OnUnknown::Resend => OnUnknown::Resend,
                rejoinder_config::OnUnknown::Label => OnUnknown::Label,
                rejoinder_config::OnUnknown::Hold => OnUnknown::Hold,
            },
            ladder,
        }
    }

    fn words(&self) -> Words {
        let guard = &self.config.guard;
        let everywhere = guard.templates.for_channel("");
        let mut words = Words::default();
        for (name, text) in &everywhere {
            words = words.with_template("", name, text);
        }
        for channel in self.channel_ids() {
            for (name, text) in guard.templates.for_channel(channel.as_str()) {
                if everywhere.get(name) != Some(&text) {
                    words = words.with_template(channel.as_str(), name, text);
                }
            }
        }
        for (name, question) in &guard.clarify {
            let question = Question {
                text: question.question.clone(),
                choices: question.choices.clone(),
                anyone: question.anyone,
            };
            words = words.with_question(name, question);
        }
        words
    }
}

fn access(people: &People<'_>) -> Access {
    Access {
        direct: match people.dm_policy {
            DmPolicy::Allowlist => DirectPolicy::Allowlist,
            DmPolicy::Open => DirectPolicy::Open,
            DmPolicy::Disabled => DirectPolicy::Disabled,
        },
        allow: people.allow_from.iter().collect(),
        group: match people.group_policy {
            ConfiguredGroupPolicy::Mention => GroupPolicy::Mention,
            ConfiguredGroupPolicy::All => GroupPolicy::All,
            ConfiguredGroupPolicy::Disabled => GroupPolicy::Disabled,
        },
        group_allow: people.group_allow_from.iter().collect(),
    }
}

fn rung(rung: &ConfiguredRung) -> Rung {
    match rung {
        ConfiguredRung::Handoff(agent) => Rung::Handoff(agent.clone()),
        ConfiguredRung::Clarify(question) => Rung::Clarify(question.clone()),
        ConfiguredRung::Say(template) => Rung::Say(template.clone()),
        ConfiguredRung::React(emoji) => Rung::React(emoji.clone()),
    }
}

const fn cause(cause: rejoinder_config::Cause) -> Cause {
    match cause {
        rejoinder_config::Cause::Silent => Cause::Silent,
        rejoinder_config::Cause::Error => Cause::Error,
        rejoinder_config::Cause::Timeout => Cause::Timeout,
        rejoinder_config::Cause::Refused => Cause::Refused,
        rejoinder_config::Cause::Unreadable => Cause::Unreadable,
    }
}

#[cfg(test)]
mod tests {
    use rejoinder_config::{Environment, Options};

    use super::*;

    fn config(text: &str) -> Config {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rejoinder.toml");
        std::fs::write(&path, text).unwrap();
        let options =
            Options { path: Some(path), working_dir: folder.path().to_owned(), environment: Environment::default() };
        rejoinder_config::load(&options).unwrap().config
    }

    /// The configuration knows the name without knowing the core.
    #[test]
    fn no_agent_has_the_name_of_the_gateways_own_commands() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rejoinder.toml");
        std::fs::write(&path, format!("[agents.{}]\nkind = \"front-desk\"", rejoinder_core::GATEWAY_AGENT)).unwrap();
        let options =
            Options { path: Some(path), working_dir: folder.path().to_owned(), environment: Environment::default() };

        assert!(rejoinder_config::load(&options).is_err());
    }

    fn parts(text: &str) -> Result<Parts, WiringError> {
        let (config, folder) = (config(text), tempfile::tempdir().unwrap());
        let clock: SharedClock = Arc::new(rejoinder_core::SystemClock);
        let (started_at, agents) = (clock.now(), HashMap::new());
        let tokens = Tokens::Make;
        Wiring { config: &config, data_dir: folder.path(), tokens, clock: &clock, started_at, agents: &agents }.parts()
    }

    const CHANNELS: &str = r#"
[channels.webhook.siri]
token = "t"
agent = "short"
[channels.webhook.door]
token = "t"
[channels.webchat.main]
[agents.main]
kind = "front-desk"
[agents.short]
kind = "front-desk"
[routing]
default_agent = "main"
"#;

    #[test]
    fn a_ladder_is_the_channels_own_then_its_platforms_then_everyones() {
        let own = "[guard.ladder.\"webhook.siri\".direct]\nerror = [{ react = \"👎\" }]\n";

        let policies = parts(&format!("{CHANNELS}{own}")).unwrap().settings.policies;

        let ladder = |channel: &ChannelId| policies.of(channel, ChatKind::Direct).ladder.clone();
        let (siri, door) = (ChannelId::new("webhook", "siri"), ChannelId::new("webhook", "door"));
        assert_eq!(ladder(&siri).rungs(Cause::Error), [Rung::React("👎".to_owned())]);
        assert_eq!(ladder(&siri).rungs(Cause::Silent), [Rung::Say("silent".to_owned())]);
        assert_eq!(ladder(&door).rungs(Cause::Error), [Rung::Say("failed".to_owned())]);
        let page = ladder(&ChannelId::new("webchat", "main"));
        assert_eq!(page.rungs(Cause::Silent)[0], Rung::Clarify("what_next".to_owned()));
        let gone = ladder(&ChannelId::new("pager", "gone"));
        assert_eq!(gone.rungs(Cause::Timeout), [Rung::Say("late".to_owned())]);
    }

    /// A11.
    #[test]
    fn words_are_the_operators_where_they_are_said() {
        let own = "[guard.templates.\"webhook.siri\"]\nfailed = \"Oh dear.\"\n";

        let words = parts(&format!("{CHANNELS}{own}")).unwrap().settings.words;

        assert_eq!(words.say(&ChannelId::new("webhook", "siri"), "failed"), "Oh dear.");
        assert_eq!(
            words.say(&ChannelId::new("webhook", "door"), "failed"),
            "Sorry, that did not work. Please try again."
        );
        assert_eq!(
            words.say(&ChannelId::new("webchat", "main"), "late"),
            "Sorry, that took too long. Please try again."
        );
        assert_eq!(words.question("what_next").map(|question| question.choices.len()), Some(3));
    }

    #[test]
    fn a_channel_has_its_own_agent_or_the_default_one() {
        let parts = parts(CHANNELS).unwrap();

        assert_eq!(&**parts.settings.agent(&ChannelId::new("webhook", "siri")), "short");
        assert_eq!(&**parts.settings.agent(&ChannelId::new("webhook", "door")), "main");
        assert_eq!(parts.agent_infos.iter().filter(|agent| agent.is_default).count(), 1);
        assert_eq!(parts.channels().len(), 3);
    }

    #[cfg(feature = "telegram")]
    const BOT: &str = "[channels.telegram.main]\ntoken = \"123456:abc\"\n";

    /// N1.
    #[cfg(feature = "telegram")]
    #[test]
    fn a_bot_is_for_those_whom_the_operator_lets_in() {
        let more =
            "allow_from = [42, \"@Ada_L\"]\ngroup_policy = \"all\"\ngroup_allow_from = [-5]\ntell_reactions = true\n";

        let settings = parts(&format!("{BOT}{more}")).unwrap().settings;
        let bare = parts(BOT).unwrap().settings;

        let main = ChannelId::new("telegram", "main");
        assert_eq!(bare.access[&main], Access::default());
        assert_eq!(
            settings.access[&main],
            Access {
                direct: DirectPolicy::Allowlist,
                allow: ["42", "ada_l"].into_iter().collect(),
                group: GroupPolicy::All,
                group_allow: ["-5"].into_iter().collect(),
            }
        );
        assert!(settings.tells_reactions.contains(&main) && bare.tells_reactions.is_empty());
        assert_eq!(bare.max_attachment, 20 << 20);
    }

    /// D7.
    #[cfg(feature = "telegram")]
    #[test]
    fn a_bots_own_way_with_what_may_have_arrived_comes_first() {
        let own = "on_unknown = \"hold\"\n[channels.telegram.other]\ntoken = \"234567:abc\"\n[guard]\non_unknown = \"resend\"\n";

        let policies = parts(&format!("{BOT}{own}")).unwrap().settings.policies;

        let of = |name| policies.of(&ChannelId::new("telegram", name), ChatKind::Group).on_unknown;
        assert_eq!((of("main"), of("other")), (OnUnknown::Hold, OnUnknown::Resend));
    }

    #[cfg(feature = "telegram")]
    #[test]
    fn every_way_to_run_a_bot_can_be_wired() {
        let posted = "mode = \"webhook\"\nwebhook = { url = \"https://x.example/telegram/main\" }\nstreaming = \"draft\"\npace = \"server\"\nagent = \"front-desk\"\n";

        for more in ["", "streaming = \"off\"\nreactions = { \"🥦\" = \"🔥\" }\n", posted] {
            let parts = parts(&format!("{BOT}{more}")).unwrap();
            let channels: Vec<_> = parts.channels().iter().map(|channel| channel.channel().to_string()).collect();
            assert_eq!((channels, parts.bot_infos.len()), (vec!["telegram.main".to_owned()], 1));
        }
    }

    #[cfg(feature = "discord")]
    const APPLICATION: &str = "[channels.discord.main]\ntoken = \"MTIz.abc.def\"\n";

    /// N1.
    #[cfg(feature = "discord")]
    #[test]
    fn an_application_is_for_those_whom_the_operator_lets_in() {
        let more = "allow_from = [42, \"@Ada_L\"]\ngroup_policy = \"all\"\ngroup_allow_from = [5]\ntell_reactions = true\nagent = \"front-desk\"\n";

        let settings = parts(&format!("{APPLICATION}{more}")).unwrap().settings;
        let bare = parts(APPLICATION).unwrap().settings;

        let main = ChannelId::new("discord", "main");
        assert_eq!(bare.access[&main], Access::default());
        assert_eq!(
            settings.access[&main],
            Access {
                direct: DirectPolicy::Allowlist,
                allow: ["42", "ada_l"].into_iter().collect(),
                group: GroupPolicy::All,
                group_allow: ["5"].into_iter().collect(),
            }
        );
        assert!(settings.tells_reactions.contains(&main) && bare.tells_reactions.is_empty());
        assert_eq!(bare.max_attachment, 25 << 20);
    }

    #[cfg(feature = "discord")]
    #[test]
    fn every_way_to_run_an_application_can_be_wired() {
        let other = "streaming = \"off\"\npace = \"server\"\ncommand_guilds = [7]\nallow_bots = [\"robot\"]\ngateway_url = \"ws://127.0.0.1:1/\"\n";

        for more in ["", "auto_thread = true\nsuppress_embeds = true\n", other] {
            let parts = parts(&format!("{APPLICATION}{more}")).unwrap();
            let channels: Vec<_> = parts.channels().iter().map(|channel| channel.channel().to_string()).collect();
            assert_eq!((channels, parts.bot_infos.len()), (vec!["discord.main".to_owned()], 1));
        }
    }

    #[cfg(feature = "matrix")]
    const ACCOUNT: &str = "[channels.matrix.main]\nhomeserver = \"http://127.0.0.1:1\"\nuser = \"@agent:example.org\"\npassword = \"p\"\n";

    /// N1.
    #[cfg(feature = "matrix")]
    #[test]
    fn an_account_is_for_those_whom_the_operator_lets_in() {
        let more = "allow_from = [\"@Ada:example.org\", \"*:example.com\"]\ngroup_policy = \"all\"\ngroup_allow_from = [\"!r:example.org\"]\ntell_reactions = true\nagent = \"front-desk\"\n";

        let settings = parts(&format!("{ACCOUNT}{more}")).unwrap().settings;
        let bare = parts(ACCOUNT).unwrap().settings;

        let main = ChannelId::new("matrix", "main");
        assert_eq!(bare.access[&main], Access::default());
        assert_eq!(
            settings.access[&main],
            Access {
                direct: DirectPolicy::Allowlist,
                allow: ["ada:example.org", "*:example.com"].into_iter().collect(),
                group: GroupPolicy::All,
                group_allow: ["!r:example.org"].into_iter().collect(),
            }
        );
        assert!(settings.tells_reactions.contains(&main) && bare.tells_reactions.is_empty());
        assert_eq!(bare.max_attachment, 50 << 20);
    }

    #[cfg(feature = "matrix")]
    #[test]
    fn every_way_to_run_an_account_can_be_wired() {
        let other = "streaming = \"off\"\npace = \"server\"\nauto_join = \"always\"\nread_receipts = \"off\"\nrecovery_key = \"k\"\n";

        for more in ["", other] {
            let parts = parts(&format!("{ACCOUNT}{more}")).unwrap();
            let channels: Vec<_> = parts.channels().iter().map(|channel| channel.channel().to_string()).collect();
            assert_eq!((channels, parts.bot_infos.len()), (vec!["matrix.main".to_owned()], 1));
        }
    }

    #[cfg(all(feature = "discord", feature = "matrix", feature = "telegram"))]
    #[test]
    fn platforms_stand_beside_each_other() {
        let parts = parts(&format!("{BOT}max_attachment = \"64 MiB\"\n{APPLICATION}{ACCOUNT}{CHANNELS}")).unwrap();

        let channels: Vec<_> = parts.channels().iter().map(|channel| channel.channel().platform().to_owned()).collect();
        assert_eq!(channels, ["webhook", "webhook", "webchat", "discord", "matrix", "telegram"]);
        assert_eq!((parts.settings.access.len(), parts.settings.max_attachment), (3, 64 << 20));
    }

    #[cfg(not(feature = "discord"))]
    #[test]
    fn discord_that_was_left_out_is_named() {
        let error = parts("[channels.discord.main]\ntoken = \"MTIz.abc.def\"\n").err().unwrap().to_string();

        assert!(error.contains("`channels.discord`") && error.contains("the feature `discord`"), "{error}");
    }

    #[cfg(not(feature = "matrix"))]
    #[test]
    fn matrix_that_was_left_out_is_named() {
        let account = "homeserver = \"https://x\"\nuser = \"@a:b\"\npassword = \"p\"\n";
        let error = parts(&format!("[channels.matrix.main]\n{account}")).err().unwrap().to_string();

        assert!(error.contains("`channels.matrix`") && error.contains("the feature `matrix`"), "{error}");
    }

    #[cfg(not(feature = "telegram"))]
    #[test]
    fn telegram_that_was_left_out_is_named() {
        let error = parts("[channels.telegram.main]\ntoken = \"123456:abc\"\n").err().unwrap().to_string();

        assert!(error.contains("`channels.telegram`") && error.contains("the feature `telegram`"), "{error}");
    }

    #[test]
    fn how_long_a_delivery_is_tried_is_the_operators() {
        let usual = parts(CHANNELS).unwrap().settings;
        let chosen = parts(&format!("{CHANNELS}[outbox]\nlifetime = \"1h\"\nmin_attempts = 3\n")).unwrap().settings;

        assert_eq!((usual.delivery_lifetime, usual.min_attempts), (Duration::from_hours(24), 10));
        assert_eq!((chosen.delivery_lifetime, chosen.min_attempts), (Duration::from_hours(1), 3));
    }

    #[test]
    fn who_may_write_to_a_bot_is_remarked_on() {
        let said = |more: &str| remarks(&config(&format!("[channels.telegram.main]\ntoken = \"1:a\"\n{more}")));

        assert!(
            said("")[0].contains("lets nobody in yet") && said("")[0].contains("channels.telegram.main.allow_from")
        );
        assert!(said("dm_policy = \"open\"")[0].contains("whoever finds the bot"));
        assert!(said("allow_from = [42]").is_empty());
        let discord = |more: &str| remarks(&config(&format!("[channels.discord.main]\ntoken = \"a.b.c\"\n{more}")));
        assert!(discord("")[0].contains("channels.discord.main.allow_from"));
        assert!(discord("allow_from = [42]").is_empty());
        let wordless = discord("allow_from = [42]\nauto_thread = true\nmessage_content = false");
        assert!(wordless[0].contains("only what mentions it"), "{wordless:?}");
        let matrix = |homeserver: &str, more: &str| {
            let account = format!("homeserver = \"{homeserver}\"\nuser = \"@a:b\"\npassword = \"p\"\n{more}");
            remarks(&config(&format!("[channels.matrix.main]\n{account}")))
        };
        assert!(matrix("https://x", "")[0].contains("put user ids"));
        assert!(matrix("https://x", "allow_from = [\"@a:b\"]").is_empty());
        assert!(matrix("http://[::1]:8008", "allow_from = [\"@a:b\"]").is_empty());
        assert!(matrix("http://x", "allow_from = [\"@a:b\"]")[0].contains("can be read on the way"));
        let posted = |path: &str| {
            said(&format!("allow_from = [42]\nmode = \"webhook\"\nwebhook = {{ url = \"https://x.example{path}\" }}"))
        };
        assert!(posted("/telegram/main").is_empty());
        assert!(posted("/bot")[0].contains("/telegram/main"));
    }

    #[test]
    fn what_others_cannot_reach_is_remarked_on() {
        let open = config("[server]\nlisten = \"0.0.0.0:7420\"\n[channels.webchat.main]\n");
        let closed = config("[channels.webchat.main]\n");

        assert_eq!((remarks(&open).len(), remarks(&closed).len()), (1, 0));
    }
}
