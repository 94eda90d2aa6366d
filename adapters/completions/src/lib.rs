//! The agents as models of an OpenAI-compatible API: any client that speaks it talks to them.
//!
//! Each configured API is a channel of its own (`api.main`): a [`CompletionsAdapter`]. A [`router`] serves it: `main`
//! at `/v1`, and another one at `/api/NAME/v1`:
//!
//! * `POST chat/completions` starts a turn with the last message of the user, and waits for its answer. With `stream` the
//!   answer is written while it grows.
//! * `GET chat/completions/{id}` returns the stored answer.
//! * `GET models` and `GET models/{id}` list the agents that may be chosen.
//!
//! The stored answer is the receipt. The adapter never fetches a URL that a caller names, never runs a caller's tools, and keeps
//! nothing that is owed in memory only. A caller who loses a response repeats the request with the same `Idempotency-Key`, or
//! fetches the answer by its id.
//!
//! # Decisions
//!
//! * **Conversation**: with `user` it is that of the token and the user, whose session and history are the gateway's own.
//!   Without it the call is a conversation of its own, and the messages before the last one are what was said before.
//! * **Instructions** of the roles `system` and `developer` come from a holder of a token. Agents get them apart from the
//!   operator's own.
//! * **A slow answer** is no error: the response is held. When the wait is over, it says so as a deferral does, with the URL of
//!   the answer. In a stream a deferral is no content, because clients would show it as the answer: it is in `rejoinder`.
//! * **What was streamed** cannot be taken back. If the settled answer does not begin with it, the whole answer follows in a
//!   paragraph of its own.
//!
//! # How to add …
//!
//! * a kind of content: a case in `inbound/content.rs`;
//! * an option that must be refused: `refuse_options` in `inbound.rs`;
//! * a field of `rejoinder`: `About` in `answer.rs`, and its description in `schema.rs`.

mod access;
mod answer;
mod caller;
mod capabilities;
#[cfg(test)]
mod conformance;
mod drafts;
mod error;
mod inbound;
mod models;
mod openapi;
mod outbound;
mod receive;
mod schema;
mod section;
mod stream;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use rejoinder_config::Size;
use rejoinder_core::{
    Attachment, Capabilities, ChannelAdapter, ChannelError, ChannelHealth, ChannelId, ConversationRef, Delivery,
    DeliveryError, FetchError, FileLimits, Intake, Receipt, SharedClock, Surface, Timestamp, TurnId,
};
use rejoinder_kit::{Guesses, Tokens, WhileRunning, data_url};
use tokio_util::sync::CancellationToken;
use url::Url;

use self::{access::Access, drafts::Drafts, inbound::Limits};
pub use self::{
    access::{OperatorToken, OperatorTokens},
    answer::ApiTexts,
    models::{Models, OfferedAgent},
    openapi::openapi,
    receive::router,
    section::CompletionsSection,
};

/// What a [`CompletionsAdapter`] is built from.
pub struct CompletionsSettings {
    /// `main` of `api.main`.
    pub name: String,
    pub section: CompletionsSection,
    /// The section's token, already generated if the section says so.
    pub token: Option<Tokens>,
    /// The agents that callers may choose.
    pub models: Models,
    /// Slows down who guesses a token.
    pub guesses: Arc<Guesses>,
    /// The largest body in bytes, unless the section sets its own limit.
    pub body_limit: usize,
    /// The limits on the files of a message.
    pub files: FileLimits,
    /// How long a body may take to arrive.
    pub body_timeout: Duration,
    /// The gateway's public URL, for the URLs of answers.
    pub public_url: Option<Url>,
    pub texts: ApiTexts,
    pub clock: SharedClock,
    /// Cancelled at the end of a soft shutdown's drain: callers that still wait then get the current state.
    pub stop_waiting: CancellationToken,
}

/// One API: the channel `api.{name}`.
pub struct CompletionsAdapter {
    channel: ChannelId,
    /// Where it is served, such as `/v1`.
    path: String,
    /// Where callers reach the gateway: its public URL without a final slash, or empty.
    base: String,
    access: Access,
    models: Models,
    wait: Duration,
    limits: Limits,
    body_timeout: Duration,
    texts: ApiTexts,
    drafts: Arc<Drafts>,
    clock: SharedClock,
    stop_waiting: CancellationToken,
    context: WhileRunning<ApiContext>,
}

/// What an API has while it accepts turns.
struct ApiContext {
    intake: Intake,
    since: Timestamp,
}

impl CompletionsAdapter {
    /// The API responds 503 until [`run`](ChannelAdapter::run) is called and after it has returned.
    #[must_use]
    pub fn new(settings: CompletionsSettings) -> Self {
        let channel = ChannelId::new("api", &settings.name);
        let path = Self::path_of(&settings.name);
        let base = settings.public_url.as_ref().map(|url| url.as_str().trim_end_matches('/')).unwrap_or_default();
        Self {
            access: Access { own: settings.token, guesses: settings.guesses, surface: channel.to_string() },
            base: base.to_owned(),
            channel,
            path,
            models: settings.models,
            wait: settings.section.wait,
            limits: Limits {
                body: settings.section.body_limit.map_or(settings.body_limit, Size::bytes),
                files: settings.files,
            },
            body_timeout: settings.body_timeout,
            texts: settings.texts,
            drafts: Arc::default(),
            clock: settings.clock,
            stop_waiting: settings.stop_waiting,
            context: WhileRunning::default(),
        }
    }

    /// Where the API of this name is served.
    #[must_use]
    pub fn path_of(name: &str) -> String {
        if name == "main" { "/v1".to_owned() } else { format!("/api/{name}/v1") }
    }

    /// Where the answer to a turn can be read.
    fn result_url(&self, turn: TurnId) -> String {
        format!("{}{}/chat/completions/{}", self.base, self.path, answer::completion_id(turn))
    }
}

#[async_trait]
impl ChannelAdapter for CompletionsAdapter {
    fn channel(&self) -> &ChannelId {
        &self.channel
    }

    fn capabilities(&self, _conversation: &ConversationRef) -> Capabilities {
        capabilities::table()
    }

    fn surface(&self) -> Surface {
        Surface::Chat("a chat client".into())
    }

    fn health(&self) -> ChannelHealth {
        // An open listener does not go stale: there is no platform behind it to poll.
        let inbound_at = self.context.get().map(|context| context.since);
        ChannelHealth { inbound_at, stale_after: None, problem: None, notice: None }
    }

    fn runs_at_each_node(&self) -> bool {
        true
    }

    fn is_watched(&self, _conversation: &ConversationRef, turn: TurnId) -> bool {
        self.drafts.has_readers(turn)
    }

    async fn run(&self, intake: Intake, shutdown: CancellationToken) -> Result<(), ChannelError> {
        let _opened = self.context.open(ApiContext { intake, since: self.clock.now() });
        shutdown.cancelled().await;
        Ok(())
    }

    async fn fetch(&self, attachment: &Attachment, limit: usize) -> Result<Vec<u8>, FetchError> {
        data_url::fetch(attachment, limit)
    }

    async fn deliver(&self, delivery: &Delivery) -> Result<Receipt, DeliveryError> {
        outbound::deliver(&self.drafts, delivery)
    }
}
