//! Those elsewhere whom a gateway needs, for whoever asks after them.

use std::path::Path;

use rejoinder_agents::{Knows, ModelsError};
use rejoinder_config::{Agent, Config, GroupPolicy, Matrix, OpenAi, UpdateMode};
use rejoinder_core::ChannelId;
use reqwest::Client;
use secrecy::SecretString;
use url::Url;

use super::{
    BotCheckError, CHECK_TIMEOUT, DiscordBot, HAS_DISCORD, HAS_MATRIX, HAS_TELEGRAM, MatrixStanding, TelegramBot,
    TelegramPosting, check_discord, check_telegram, check_telegram_posting, matrix_standing,
};

/// An agent of the configuration.
pub(crate) struct AgentContact<'a> {
    pub(crate) name: &'a str,
    pub(crate) is_default: bool,
    /// Where it is; `None`: it is built in.
    pub(crate) server: Option<ModelServer<'a>>,
}

/// A server with the Chat Completions API, and the model that is asked there.
pub(crate) struct ModelServer<'a>(&'a OpenAi);

impl ModelServer<'_> {
    pub(crate) fn model(&self) -> &str {
        &self.0.model
    }

    /// Where it is, without secrets.
    pub(crate) fn place(&self) -> String {
        rejoinder_agents::place(&self.0.base_url).as_str().trim_end_matches('/').to_owned()
    }

    pub(crate) const fn has_key(&self) -> bool {
        self.0.api_key.is_some()
    }

    /// Asks whether it has the model.
    ///
    /// # Errors
    /// When it does not say.
    pub(crate) async fn ask(&self, http: &Client) -> Result<Knows, ModelsError> {
        let key = self.0.api_key.as_ref().map(rejoinder_config::Secret::get);
        let asking = rejoinder_agents::knows_model(http, &self.0.base_url, key, &self.0.model);
        let in_time = tokio::time::timeout(CHECK_TIMEOUT, asking).await;
        in_time.unwrap_or_else(|_| Err(ModelsError::Unreachable("it does not answer in time".to_owned())))
    }
}

/// The agents.
pub(crate) fn agent_contacts(config: &Config) -> Vec<AgentContact<'_>> {
    let contacts = config.agents.iter().map(|(name, agent)| AgentContact {
        name,
        is_default: *name == config.routing.default_agent,
        server: match agent {
            Agent::FrontDesk(_) => None,
            Agent::OpenAi(openai) => Some(ModelServer(openai)),
        },
    });
    contacts.collect()
}

/// A Telegram bot of the configuration.
pub(crate) struct TelegramContact<'a> {
    pub(crate) channel: ChannelId,
    /// Whether all that is said in groups is to be put before the agent.
    pub(crate) is_for_all: bool,
    /// Where updates are to be posted to; `None`: they are asked for.
    pub(crate) posted_to: Option<&'a Url>,
    api_url: &'a Url,
    token: &'a SecretString,
}

impl TelegramContact<'_> {
    /// Asks who it is, and where its updates go.
    ///
    /// # Errors
    /// When its token is nobody's, or nobody answers.
    pub(crate) async fn ask(&self, http: &Client) -> Result<(TelegramBot, TelegramPosting), BotCheckError> {
        tokio::try_join!(
            check_telegram(http, self.api_url, self.token),
            check_telegram_posting(http, self.api_url, self.token)
        )
    }
}

/// The Telegram bots; none where this build has no Telegram.
pub(crate) fn telegram_contacts(config: &Config) -> Vec<TelegramContact<'_>> {
    let bots = config.channels.telegram.iter().filter(|_| HAS_TELEGRAM);
    let contacts = bots.map(|(name, bot)| TelegramContact {
        channel: ChannelId::new("telegram", name),
        is_for_all: bot.group_policy == GroupPolicy::All,
        posted_to: bot.webhook.as_ref().filter(|_| bot.mode == UpdateMode::Webhook).map(|webhook| &webhook.url),
        api_url: &bot.api_url,
        token: bot.token.get(),
    });
    contacts.collect()
}

/// A Discord application of the configuration.
pub(crate) struct DiscordContact<'a> {
    pub(crate) channel: ChannelId,
    /// Whether what is said in servers without a mention is to be read.
    pub(crate) wants_content: bool,
    api_url: &'a Url,
    token: &'a SecretString,
}

impl DiscordContact<'_> {
    /// Asks who it is.
    ///
    /// # Errors
    /// When its token is nobody's, or nobody answers.
    pub(crate) async fn ask(&self, http: &Client) -> Result<DiscordBot, BotCheckError> {
        check_discord(http, self.api_url, self.token).await
    }
}

/// The Discord applications; none where this build has no Discord.
pub(crate) fn discord_contacts(config: &Config) -> Vec<DiscordContact<'_>> {
    let bots = config.channels.discord.iter().filter(|_| HAS_DISCORD);
    let contacts = bots.map(|(name, bot)| DiscordContact {
        channel: ChannelId::new("discord", name),
        wants_content: bot.message_content,
        api_url: &bot.api_url,
        token: bot.token.get(),
    });
    contacts.collect()
}

/// A Matrix account of the configuration.
pub(crate) struct MatrixContact<'a> {
    pub(crate) channel: ChannelId,
    name: &'a str,
    account: &'a Matrix,
    data_dir: &'a Path,
}

impl MatrixContact<'_> {
    /// Asks how it stands.
    ///
    /// # Errors
    /// When it cannot be used as it is, or nobody answers.
    pub(crate) async fn ask(&self, http: &Client) -> Result<MatrixStanding, BotCheckError> {
        matrix_standing(http, self.data_dir, self.name, self.account).await
    }
}

/// The Matrix accounts; none where this build has no Matrix.
pub(crate) fn matrix_contacts<'a>(config: &'a Config, data_dir: &'a Path) -> Vec<MatrixContact<'a>> {
    let accounts = config.channels.matrix.iter().filter(|_| HAS_MATRIX);
    let contacts = accounts.map(|(name, account)| MatrixContact {
        channel: ChannelId::new("matrix", name),
        name,
        account,
        data_dir,
    });
    contacts.collect()
}
