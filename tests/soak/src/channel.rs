//! The platforms: how people write there, how each fails, and what people see.
//!
//! To add one: write a file here with a [`Channel`], and add it to [`Platform`].

mod discord;
mod example;
mod telegram;
mod webchat;
mod webhook;

use std::sync::Arc;

use async_trait::async_trait;
use clap::ValueEnum;
use rand::rngs::StdRng;

use self::{discord::Discord, example::Example, telegram::Telegram, webchat::Webchat, webhook::Webhook};

/// The name of every channel below its platform: `telegram.soak`.
const NAME: &str = "soak";

/// A platform of the soak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Platform {
    Telegram,
    Discord,
    Webhook,
    Webchat,
    Example,
}

impl Platform {
    /// As in `--channels` and in the configuration.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Telegram => "telegram",
            Self::Discord => "discord",
            Self::Webhook => "webhook",
            Self::Webchat => "webchat",
            Self::Example => "example",
        }
    }

    /// What its tokens begin with.
    pub(crate) const fn prefix(self) -> &'static str {
        match self {
            Self::Telegram => "tg",
            Self::Discord => "dc",
            Self::Webhook => "wh",
            Self::Webchat => "wc",
            Self::Example => "ex",
        }
    }

    /// The length of a paragraph of which a message holds one, and not two.
    pub(crate) const fn paragraph(self) -> usize {
        match self {
            Self::Telegram => 2500,
            Self::Discord => 1200,
            Self::Webhook | Self::Webchat | Self::Example => 600,
        }
    }

    /// Starts its double, for a gateway that will listen at `gateway`.
    pub(crate) async fn start(self, gateway: &str) -> anyhow::Result<Arc<dyn Channel>> {
        Ok(match self {
            Self::Telegram => Arc::new(Telegram::start().await),
            Self::Discord => Arc::new(Discord::start().await),
            Self::Webhook => Arc::new(Webhook::new(gateway)?),
            Self::Webchat => Arc::new(Webchat::new(gateway)),
            Self::Example => Arc::new(Example::start().await?),
        })
    }
}

/// What a person sees of the gateway, now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// A message.
    Text(String),
    /// A reaction to the person's message with this text.
    Reaction { to: String },
}

/// A channel with people who write.
#[async_trait]
pub(crate) trait Channel: Send + Sync {
    fn platform(&self) -> Platform;

    /// Its section of the configuration.
    fn section(&self) -> String;

    /// A new person in a chat; returns the chat's id.
    async fn open(&self) -> String;

    /// Whether the person may write commands there.
    fn takes_commands(&self, chat: &str) -> bool;

    /// Writes until the platform has accepted the message; `key` is the same each time. Returns the turn, where the platform
    /// tells it.
    async fn say(&self, chat: &str, key: &str, text: &str) -> Option<String>;

    /// Makes the platform fail until it [heals](Self::heal). Returns what is wrong with it, in a few words.
    async fn fail(&self, random: &mut StdRng) -> &'static str;

    /// Ends all failures.
    async fn heal(&self);

    /// How many accepted messages the gateway has not yet acknowledged, where the platform knows.
    fn unacknowledged(&self) -> usize;

    /// Whether this first line of a request to the platform asks it to show something.
    fn is_send(&self, _line: &str) -> bool {
        false
    }

    /// What the person sees in a chat.
    async fn seen(&self, chat: &str) -> Vec<Seen>;
}

/// Picks one of these.
fn one_of<T: Copy>(random: &mut StdRng, choices: &[T]) -> T {
    use rand::Rng as _;
    choices[random.random_range(0..choices.len())]
}
