//! Telegram as a channel: a bot that people talk to in private chats, groups and topics.
//!
//! Each configured bot is a channel (`telegram.main`): a [`Telegram`]. Updates arrive by long polling or are posted
//! to [`webhook_routes`]. Either way, an update of any kind is stored with its original payload before it is
//! confirmed to Telegram. Answers go out as text and entities (see [`format`](mod@format)).
//!
//! Requests are built from teloxide's types but sent by our own client, because a delivery must know whether its
//! request was written. Receiving is our own too, because teloxide's listeners confirm updates before they are
//! handled. Payloads are parsed into our own types (`payload.rs`), which accept unknown fields and kinds.
//!
//! The adapter never confirms an update that is not stored, never lets an unreadable update block the ones behind
//! it, never opens an address that somebody else supplied, never reveals the token, and answers a webhook post with
//! a status only.
//!
//! # Decisions
//!
//! * **Conversation**: the chat, and the topic if the message is in one. Reply threads are not topics.
//! * **Ids**: a message is `chat:message`, with the date of an edit as its revision. An album is one event with a
//!   revision for each part.
//! * **Replies**: in groups an answer replies to the message that it answers; in private chats only a late answer
//!   does, because other messages came between.
//! * **429** blocks its chat. Telegram does not say when the whole bot is limited; the adapter assumes it when three
//!   private chats are limited at the same time.
//! * **5xx**: a new message may have been sent. An edit, a reaction or a deletion is repeated.
//! * **Reactions** to our messages become events. Telegram does not say whose message it is: a message from before the start is looked
//!   up in the store.
//!
//! # To add …
//!
//! * a kind of content: its type in `payload.rs`, and its text in `inbound/message.rs` or its line in
//!   `inbound/files.rs`;
//! * a kind of update: its type, its arm in `inbound.rs`, its line in `receive::polling::ALLOWED`;
//! * handling of an error from Telegram: a predicate in `errors.rs`, its outcome in `outbound/classify.rs`.

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
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use rejoinder_core::{
    Attachment, Capabilities, ChannelAdapter, ChannelError, ChannelHealth, ChannelId, CommandHelp, ConversationRef,
    Delivery, DeliveryError, FetchError, Intake, Language, Receipt, SharedClock, Surface,
};
use rejoinder_kit::{Health, Receiver, RunEnd, WhileRunning};
use reqwest::Client;
use teloxide::{
    payloads::{GetFile, SetMyCommands},
    types::{BotCommand, FileId},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{
    api::Api,
    capabilities::{ChatTraits, Drafts},
    errors::{ApiError, Refusal},
    inbound::OwnMessages,
    limited::LimitedChats,
    payload::FilePath,
    reactions::Reactions,
    receive::{Albums, WebhookSecret},
};
pub use self::{
    check::{BotProfile, CheckError, WebhookStatus, check, check_webhook},
    receive::webhook_routes,
    section::{API_URL, ID_FORMAT, Pace, Streaming, TelegramSection, TelegramWebhook, UpdateMode},
};

const UNKNOWN_TOKEN: &str = "Telegram does not know the token";

/// How long shutdown waits for background calls that no delivery depends on.
const BACKGROUND_TIMEOUT: Duration = Duration::from_secs(2);

/// One bot: the adapter of one channel.
pub struct Telegram {
    channel: ChannelId,
    options: TelegramSection,
    api: Arc<Api>,
    clock: SharedClock,
    health: Health,
    reactions: Reactions,
    limited: LimitedChats,
    sent: OwnMessages,
    albums: Albums,
    /// The server has no `sendMessageDraft`.
    lacks_drafts: AtomicBool,
    /// Checks the secret of posted updates; `None` when polling.
    webhook_secret: Option<WebhookSecret>,
    webhook_context: WhileRunning<WebhookContext>,
    /// Background calls: acknowledging pressed buttons.
    tasks: TaskTracker,
}

struct WebhookContext {
    intake: Intake,
    shutdown: CancellationToken,
    me: BotProfile,
}

impl Telegram {
    /// Creates the bot that `options` describe. Makes no call before [`run`](ChannelAdapter::run).
    ///
    /// `http` must not follow redirects: requests go only where the operator configured.
    #[must_use]
    pub fn new(channel: ChannelId, options: TelegramSection, clock: SharedClock, http: Client) -> Self {
        let token = options.token.get();
        let (webhook_secret, health) = match options.active_webhook() {
            None => (None, Health::stale_after(receive::stale_after(options.poll_timeout))),
            Some(webhook) => (Some(WebhookSecret::new(channel.name(), token, webhook)), Health::default()),
        };
        Self {
            api: Arc::new(Api::new(http, options.api_url.clone(), token.clone())),
            reactions: Reactions::new(&options.reactions),
            channel,
            options,
            clock,
            health,
            limited: LimitedChats::default(),
            sent: OwnMessages::default(),
            albums: Albums::default(),
            lacks_drafts: AtomicBool::new(false),
            webhook_secret,
            webhook_context: WhileRunning::default(),
            tasks: TaskTracker::new(),
        }
    }

    fn drafts(&self, is_private: bool) -> Drafts {
        match self.options.streaming {
            Streaming::Edit => Drafts::Messages,
            Streaming::Draft if is_private && !self.lacks_drafts.load(Ordering::Relaxed) => Drafts::Bubbles,
            Streaming::Draft | Streaming::Off => Drafts::No,
        }
    }

    async fn receive(&self, receiver: &Receiver<'_>) -> Result<(), RunEnd> {
        let classify = |error: &ApiError| match error.refusal() {
            Some(refusal) if refusal.is_about_token(true) => Err(self.unauthorized(refusal)),
            _ => Ok(Duration::ZERO),
        };
        let me = receiver.ask("Telegram", || check::who_am_i(&self.api), classify).await?;
        tracing::info!(channel = %self.channel, bot = me.username, "connected to Telegram");
        receiver.until_shutdown(self.list_commands(receiver.intake)).await?;
        match self.options.active_webhook() {
            None => self.poll(&me, receiver).await,
            Some(webhook) => self.listen(webhook, &me, receiver).await,
        }
    }

    /// Reports that Telegram rejects the token. Nothing works until the operator changes it.
    fn unauthorized(&self, refusal: &Refusal) -> ChannelError {
        self.health.inbound_fails(UNKNOWN_TOKEN);
        ChannelError::Unauthorized(refusal.to_string())
    }

    /// Registers the gateway's commands, so that Telegram lists them to people who type a slash, in their language.
    async fn list_commands(&self, intake: &Intake) {
        for menu in menus(&intake.commands()) {
            if let Err(error) = self.api.call::<_, bool>(&menu).await {
                // The commands work without being listed.
                tracing::warn!(channel = %self.channel, %error, "the command list could not be registered");
            }
        }
    }
}

/// The menu for everybody, and those for people whose app is in another language. Telegram knows languages by two letters
/// (<https://core.telegram.org/bots/api#setmycommands>).
fn menus(commands: &[CommandHelp]) -> Vec<SetMyCommands> {
    let languages: BTreeSet<Language> = commands.iter().flat_map(|it| it.descriptions.keys().copied()).collect();
    let for_all = SetMyCommands::new(commands.iter().map(|it| BotCommand::new(&*it.name, &*it.description)));
    let in_language = |language: &Language| {
        let description =
            |it: &CommandHelp| it.descriptions.get(language).map_or(&*it.description, String::as_str).to_owned();
        let mut menu = SetMyCommands::new(commands.iter().map(|it| BotCommand::new(&*it.name, description(it))));
        menu.language_code = Some(language.to_string());
        menu
    };
    let two_letters = languages.iter().filter(|language| language.as_str().len() == 2);
    std::iter::once(for_all).chain(two_letters.map(in_language)).collect()
}

#[async_trait]
impl ChannelAdapter for Telegram {
    fn channel(&self) -> &ChannelId {
        &self.channel
    }

    fn capabilities(&self, conversation: &ConversationRef) -> Capabilities {
        let is_private = !conversation.chat.starts_with(['-', '@']);
        let max_upload = self.options.max_upload.bytes();
        let chat = ChatTraits { is_private, drafts: self.drafts(is_private), max_upload };
        capabilities::capabilities(chat, &self.options.pace.limits(), self.reactions.known())
    }

    fn surface(&self) -> Surface {
        Surface::Chat("Telegram".into())
    }

    fn health(&self) -> ChannelHealth {
        self.health.report()
    }

    fn parts(&self, text: &str) -> Vec<String> {
        format::parts(text)
    }

    fn album_of(&self, file: &Attachment) -> Option<&'static str> {
        outbound::files::album_of(file, self.options.max_upload.bytes())
    }

    fn fits_caption(&self, text: &str) -> bool {
        format::fits_caption(text)
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
            () = self.clock.sleep(BACKGROUND_TIMEOUT) => {}
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
        let path = file.file_path.ok_or_else(|| FetchError::Failed("Telegram returned no file path".to_owned()))?;
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
