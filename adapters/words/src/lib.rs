//! Places for words that are for nobody's chat: what a schedule, a trigger or a hook has an agent say goes to a file, to a URL, or
//! nowhere but into the record.
//!
//! Each configured place is a channel of its own (`words.journal`): a [`WordsAdapter`]. Each conversation whose history an agent
//! gets has a conversation of its own there. So the guard, the outbox, its retries and dead letters, and what operators see are
//! those of every channel.
//!
//! Nobody writes here: nothing is ever received. A place is the operator's choice alone, and is never named by a caller or an agent.
//!
//! # How to add a kind of place
//!
//! A key in `section.rs`, a variant of `Destination`, and what it does in `WordsAdapter::deliver`.

mod capabilities;
mod file;
mod pattern;
mod post;
mod section;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use jiff::tz::TimeZone;
use rejoinder_config::Secret;
use rejoinder_core::{
    Action, Capabilities, ChannelAdapter, ChannelError, ChannelHealth, ChannelId, Content, ConversationRef, Delivery,
    DeliveryError, Intake, Receipt, SharedClock, Surface, Timestamp, WordsTo, shows_anything,
};
use rejoinder_kit::{SignedPost, WhileRunning};
use tokio_util::sync::CancellationToken;

use self::file::Journal;
pub use self::{pattern::Pattern, section::WordsSection};

/// What a [`WordsAdapter`] is built from.
#[derive(Debug)]
pub struct WordsSettings {
    /// `journal` in `words.journal`.
    pub name: String,
    pub section: WordsSection,
    pub data_dir: PathBuf,
    /// The zone of the days in the names of files.
    pub zone: TimeZone,
    pub clock: SharedClock,
    /// It must not follow redirects: words go only to the URL that the operator configured.
    pub http: reqwest::Client,
}

/// The secret is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotASigningKey;

/// One place: the channel `words.{name}`.
pub struct WordsAdapter {
    channel: ChannelId,
    destination: Destination,
    clock: SharedClock,
    running_since: WhileRunning<Timestamp>,
}

enum Destination {
    File(Arc<Journal>),
    Url(SignedPost),
    Nowhere,
}

impl WordsAdapter {
    /// # Errors
    /// When the secret is no key.
    pub fn new(settings: WordsSettings) -> Result<Self, NotASigningKey> {
        let WordsSettings { name, section, data_dir, zone, clock, http } = settings;
        let destination = match (section.file, section.url) {
            (Some(pattern), _) => Destination::File(Arc::new(Journal::new(&data_dir, pattern, zone))),
            (None, Some(url)) => {
                let secret = section.secret.as_ref().map(Secret::expose).unwrap_or_default();
                Destination::Url(SignedPost::new(url, secret, Arc::clone(&clock), http).ok_or(NotASigningKey)?)
            }
            (None, None) => Destination::Nowhere,
        };
        let channel = ChannelId::new(WordsTo::PLATFORM, &name);
        Ok(Self { channel, destination, clock, running_since: WhileRunning::default() })
    }

    /// The folder below the data directory in which all files are.
    #[must_use]
    pub fn folder(data_dir: &Path) -> PathBuf {
        data_dir.join(WordsTo::PLATFORM)
    }
}

#[async_trait]
impl ChannelAdapter for WordsAdapter {
    fn channel(&self) -> &ChannelId {
        &self.channel
    }

    fn capabilities(&self, _conversation: &ConversationRef) -> Capabilities {
        capabilities::capabilities()
    }

    fn surface(&self) -> Surface {
        Surface::Chat(
            match self.destination {
                Destination::File(_) => "a file of notes in Markdown, which nobody answers",
                Destination::Url(_) => "a program, which reads Markdown and answers nothing",
                Destination::Nowhere => "a record in Markdown, which nobody answers",
            }
            .into(),
        )
    }

    fn health(&self) -> ChannelHealth {
        let inbound_at = self.running_since.get().map(|since| *since);
        ChannelHealth { inbound_at, stale_after: None, problem: None, notice: None }
    }

    fn shows_anything(&self, text: &str) -> bool {
        shows_anything(text)
    }

    fn runs_at_each_node(&self) -> bool {
        true
    }

    async fn run(&self, _intake: Intake, shutdown: CancellationToken) -> Result<(), ChannelError> {
        let _running = self.running_since.open(self.clock.now());
        shutdown.cancelled().await;
        Ok(())
    }

    async fn deliver(&self, delivery: &Delivery) -> Result<Receipt, DeliveryError> {
        let content = words(delivery)?;
        match &self.destination {
            Destination::File(journal) => Arc::clone(journal).append(delivery, content).await,
            Destination::Url(post) => post.send(delivery, post::body(delivery, content)).await,
            // The row of the delivery is the record.
            Destination::Nowhere => Ok(Receipt::of(delivery.id().to_string())),
        }
    }
}

/// The content of a delivery.
fn words(delivery: &Delivery) -> Result<&Content, DeliveryError> {
    match delivery.action() {
        Action::Send { content, .. } => Ok(content),
        other => Err(DeliveryError::Unsupported(format!("a place for words takes messages, not {other:?}"))),
    }
}

/// The conversation that words are about: the address of the conversation on a channel of words holds it.
fn about(address: &ConversationRef) -> String {
    address.thread.as_ref().map_or_else(|| address.chat.to_string(), |chat| format!("{}/{chat}", address.chat))
}
