//! Telegram as a channel: a bot that people talk to in private chats, groups and topics.
//!
//! Each bot of the configuration is a channel of its own (`telegram.main`): a [`Telegram`]. Updates come in by
//! long polling, or are posted to [`webhook_routes`]; either way an update is durable before Telegram hears
//! that we have it, with its payload as it came, whatever it is. Answers go out as text and entities (see
//! [`format`](mod@format)).
//!
//! What is sent is made of teloxide's types. The calls are our own, since what counts for a message is whether
//! its request was written; and so is the intake, since teloxide's listeners confirm what was not handled yet.
//! What comes in is read with views of our own (`payload.rs`), to which nothing unknown is an error.
//!
//! What it never does: confirm an update that is not stored, hold up the updates behind one that it cannot
//! read, open an address that somebody else gave, say the token anywhere, or answer a webhook's post with
//! more than a status.
//!
//! # What was decided
//!
//! * **Conversation**: the chat, and the topic where the message is in one. Threads of replies are no topics.
//! * **Ids**: a message is `chat:message`, with the date of an edit as its revision; an album is one event with
//!   a revision for each part.
//! * **Replies** link to what they answer in groups; in a private chat only when something else was said
//!   between.
//! * **429**: blocks its chat. Telegram does not say when it means the bot; three private chats that are
//!   limited at one time are taken for that.
//! * **5xx** after a new message: it may be there. After an edit, a reaction or a removal: it is done again.
//! * **Reactions** of people are told of where the message is ours: in groups those that are remembered since
//!   the start.
//!
//! # To add …
//!
//! * a kind of content: its view in `payload.rs`, and its words in `inbound/message.rs` or its line in
//!   `inbound/files.rs`;
//! * a kind of update: its view, its arm in `inbound.rs`, its line in `receive::polling::ALLOWED`;
//! * a failure of Telegram's that wants something done: its question in `errors.rs`, its answer in
//!   `outbound/judge.rs`.

mod api;
mod capabilities;
mod check;
mod closing;
#[cfg(test)]
mod conformance;
mod errors;
pub mod format;
mod inbound;
mod limited;
mod outbound;
mod payload;
mod reactions;
mod receive;
mod section;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use rejoinder_core::{
    Attachment, COMMANDS, Capabilities, ChannelAdapter, ChannelError, ChannelHealth, ChannelId, ConversationRef,
    Delivery, DeliveryError, FetchError, Intake, Receipt, SharedClock,
};
use rejoinder_kit::{Health, Opening, Receiver, RunEnd};
use reqwest::Client;
use teloxide::{
    payloads::{GetFile, SetMyCommands},
    types::{BotCommand, FileId},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{
    api::Api,
    capabilities::{Drafts, Place},
    errors::{ApiError, Refusal},
    inbound::Sent,
    limited::Limited,
    payload::FilePath,
    reactions::Reactions,
    receive::{Albums, Door},
};
pub use self::{
    check::{BotProfile, CheckError, Posting, check, check_posting},
    receive::webhook_routes,
    section::{API_URL, LOOKS, Pace, Streaming, TelegramSection, TelegramWebhook, UpdateMode},
};

const UNKNOWN_TOKEN: &str = "Telegram does not know the token";

/// How long the end waits for calls that nothing hangs on.
const LAST_CALLS: Duration = Duration::from_secs(2);

/// One bot.
pub struct Telegram {
    channel: ChannelId,
    options: TelegramSection,
    api: Arc<Api>,
    clock: SharedClock,
    health: Health,
    reactions: Reactions,
    limited: Limited,
    sent: Sent,
    albums: Albums,
    /// The server has no `sendMessageDraft`.
    knows_no_drafts: AtomicBool,
    /// What Telegram must show, where it posts updates.
    door: Option<Door>,
    /// What posts need, while they are taken.
    opening: Opening<Open>,
    /// What goes on besides.
    tasks: TaskTracker,
}

/// What posts need, while they are taken.
struct Open {
    intake: Intake,
    shutdown: CancellationToken,
    me: BotProfile,
}

impl Telegram {
    /// The bot that `options` describe, on `channel`. Nothing is called before [`run`](ChannelAdapter::run).
    ///
    /// `http` must not follow redirects: what is sent goes where the operator said.
    #[must_use]
    pub fn new(channel: ChannelId, options: TelegramSection, clock: SharedClock, http: Client) -> Self {
        let token = options.token.get();
        let (door, health) = match options.posted_to() {
            None => (None, Health::stale_after(receive::stale_after(options.poll_timeout))),
            Some(webhook) => (Some(Door::new(channel.name(), token, webhook)), Health::default()),
        };
        Self {
            api: Arc::new(Api::new(http, options.api_url.clone(), token.clone())),
            reactions: Reactions::new(&options.reactions),
            channel,
            options,
            clock,
            health,
            limited: Limited::default(),
            sent: Sent::default(),
            albums: Albums::default(),
            knows_no_drafts: AtomicBool::new(false),
            door,
            opening: Opening::default(),
            tasks: TaskTracker::new(),
        }
    }

    fn drafts(&self, is_private: bool) -> Drafts {
        match self.options.streaming {
            Streaming::Edit => Drafts::Messages,
            Streaming::Draft if is_private && !self.knows_no_drafts.load(Ordering::Relaxed) => Drafts::Bubbles,
            Streaming::Draft | Streaming::Off => Drafts::No,
        }
    }

    /// Takes updates in until the run ends.
    async fn receive(&self, receiver: &Receiver<'_>) -> Result<(), RunEnd> {
        let judge = |error: &ApiError| match error.refusal() {
            Some(refusal) if refusal.is_about_token(true) => Err(self.unauthorized(refusal)),
            _ => Ok(Duration::ZERO),
        };
        let me = receiver.ask("Telegram", || check::who_am_i(&self.api), judge).await?;
        tracing::info!(channel = %self.channel, bot = me.username, "Telegram knows us");
        receiver.until_shutdown(self.list_commands()).await?;
        match self.options.posted_to() {
            None => self.poll(&me, receiver).await,
            Some(webhook) => self.listen(webhook, &me, receiver).await,
        }
    }

    /// The token is not known: nothing works until it is another one.
    fn unauthorized(&self, refusal: &Refusal) -> ChannelError {
        self.health.inbound_fails(UNKNOWN_TOKEN);
        ChannelError::Unauthorized(refusal.to_string())
    }

    /// Has Telegram list the gateway's commands to whoever types a slash.
    async fn list_commands(&self) {
        let commands = COMMANDS.iter().map(|command| BotCommand::new(command.name, command.description));
        if let Err(error) = self.api.call::<_, bool>(&SetMyCommands::new(commands)).await {
            // They work all the same.
            tracing::warn!(channel = %self.channel, %error, "the commands cannot be listed");
        }
    }
}

impl fmt::Debug for Telegram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Telegram").field("channel", &self.channel).finish_non_exhaustive()
    }
}

#[async_trait]
impl ChannelAdapter for Telegram {
    fn channel(&self) -> &ChannelId {
        &self.channel
    }

    fn capabilities(&self, conversation: &ConversationRef) -> Capabilities {
        let is_private = !conversation.chat.starts_with(['-', '@']);
        let place = Place { is_private, drafts: self.drafts(is_private) };
        capabilities::capabilities(place, &self.options.pace.limits(), self.reactions.known())
    }

    fn health(&self) -> ChannelHealth {
        self.health.report()
    }

    fn parts(&self, text: &str) -> Vec<String> {
        format::parts(text)
    }

    fn shows_anything(&self, text: &str) -> bool {
        rejoinder_core::shows_anything(text)
    }

    async fn run(&self, intake: Intake, shutdown: CancellationToken) -> Result<(), ChannelError> {
        let (channel, intake, health, shutdown) = (&self.channel, &intake, &self.health, &shutdown);
        let ended = self.receive(&Receiver { channel, intake, health, shutdown }).await;
        self.tasks.close();
        tokio::select! {
            () = self.tasks.wait() => {}
            () = self.clock.sleep(LAST_CALLS) => {}
        }
        self.tasks.reopen();
        ended.or_else(RunEnd::into_result)
    }

    async fn fetch(&self, attachment: &Attachment, limit: usize) -> Result<Vec<u8>, FetchError> {
        let Some(id) = inbound::file_id(&attachment.url) else {
            return Err(FetchError::NotOurs(attachment.name.clone()));
        };
        let limit = limit.min(self.options.max_attachment.bytes());
        let failed = |error: ApiError| match error.refusal() {
            Some(refusal) if refusal.description.to_lowercase().contains("too big") => FetchError::TooLarge { limit },
            _ => FetchError::Failed(error.to_string()),
        };
        let file: FilePath = self.api.call(&GetFile::new(FileId(id.to_owned()))).await.map_err(failed)?;
        if file.file_size.is_some_and(|size| size > limit as u64) {
            return Err(FetchError::TooLarge { limit });
        }
        let path = file.file_path.ok_or_else(|| FetchError::Failed("Telegram gave no path".to_owned()))?;
        let bytes = self.api.download(&path, limit).await.map_err(failed)?;
        bytes.ok_or(FetchError::TooLarge { limit })
    }

    async fn deliver(&self, delivery: &Delivery) -> Result<Receipt, DeliveryError> {
        let result = self.perform(delivery).await;
        self.health.note_delivery(&result, UNKNOWN_TOKEN);
        result
    }
}

#[cfg(test)]
mod tests;
