//! Webhooks: a turn over HTTP, for Siri Shortcuts and anything else that can POST.
//!
//! Each configured hook is a channel of its own (`webhook.siri`): a [`WebhookAdapter`]. One [`router`] serves
//! them all:
//!
//! * `POST /hooks/{name}` starts a turn and waits for its answer, as long as the hook and the caller's
//!   `Prefer: wait=N` allow. After the wait, or at the soft deadline, it responds 202 with the URL of the result,
//!   and after a deferral also with a text that can be spoken.
//! * `GET /hooks/{name}/turns/{turn_id}` returns the stored result.
//!
//! A hook with `deliver_to` takes events instead: what happened elsewhere is put before an agent, or sent as it is, in a
//! conversation of another channel.
//!
//! The stored result is the hook's receipt. If the hook has a callback, a signed copy is posted there.
//!
//! The adapter never responds 5xx because the agent is still working, never fetches or posts to a URL that a
//! caller named, and keeps nothing that is owed in memory only. A caller who loses a response fetches the result's
//! URL, or repeats the request with the same `Idempotency-Key`.
//!
//! # Decisions
//!
//! * **Conversation**: the one that the body names, else the sender's, else the hook's own, else a new one for this
//!   turn alone. A named conversation and a sender of the same name are two conversations.
//! * **Files** come in the body (parts of a form, `data:` URLs) or as URLs. The gateway stores and reads those in the
//!   body; it never fetches a URL.
//! * **A recording** that is all of a message is written down before the message is accepted, within the caller's wait: the words are its
//!   text. If that fails the message is accepted without words, and the turn is answered nevertheless.
//! * **Sound** (`Accept: audio/…`) is made of the words when a response is written, also of a deferral, and within the caller's wait. If
//!   that fails, the response is text.
//! * **Result URL**: absolute, based on `public_url`, else on the request's `Host` (with `https` if a proxy sends
//!   `X-Forwarded-Proto: https`); only a path if neither is known. A caller with the token sends it again. For a
//!   caller who signs, the URL carries a `key`, which opens this one result: an HMAC of the turn's id with a secret of
//!   the gateway. It stays valid when the hook's secrets change and when the hook is removed.
//! * **Repeated requests** are recognised by `Idempotency-Key`. With a Standard Webhooks signature `webhook-id` is used
//!   instead, with a hub signature `X-GitHub-Delivery` before it: equal bodies with other ids are two requests. A different text, sender, conversation or list of attachments under the same key is 409.
//! * **`undeliverable` and `cancelled`** respond 200, because the result is final, with a template as the text. `accepted` and `deferred` respond
//!   202, for POST and GET alike.
//!
//! # How to add …
//!
//! * a media type: a file in `inbound/`, and its cases in `Media`;
//! * an authentication method: a field of `Auth`, and its case in `Auth::proof`;
//! * a field of the answer: `Answer` in `answer.rs`, and its description in `schema.rs`.

mod answer;
mod auth;
mod body;
mod calls;
mod capabilities;
mod counters;
mod events;
mod hearing;
mod inbound;
mod openapi;
mod outbound;
mod prefer;
mod receive;
mod result_key;
mod result_url;
mod schema;
mod section;
mod speaking;
mod template;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use rejoinder_config::Size;
use rejoinder_core::{
    Attachment, Capabilities, ChannelAdapter, ChannelError, ChannelHealth, ChannelId, ConversationRef, Delivery,
    DeliveryError, FetchError, FileLimits, Intake, Receipt, SharedClock, Surface, Timestamp,
};
use rejoinder_kit::{Guesses, Tokens, WhileRunning, data_url};
use tokio_util::sync::CancellationToken;
use url::Url;

pub use self::{
    answer::HookTexts,
    body::Bodies,
    calls::{Call, CallEnd},
    openapi::openapi,
    receive::{FormerHooks, router},
    result_key::ResultKeys,
    section::WebhookSection,
};
use self::{auth::Auth, calls::Calls, counters::Counters, events::Events, outbound::Callback, result_url::ResultUrls};

/// What a [`WebhookAdapter`] is built from.
pub struct WebhookSettings {
    /// `siri` in `/hooks/siri` and `webhook.siri`.
    pub name: String,
    /// At least one of `token`, `signing_secret` and `hub_secret` must be configured.
    pub section: WebhookSection,
    /// The section's tokens, already generated if the section says so.
    pub token: Option<Tokens>,
    /// Opens results for callers without the token.
    pub result_keys: ResultKeys,
    /// Slows down who guesses a secret.
    pub guesses: Arc<Guesses>,
    /// The bodies of all hooks that are not authenticated yet.
    pub bodies: Arc<Bodies>,
    /// The largest body in bytes, unless the section sets its own limit.
    pub body_limit: usize,
    /// The limits on the files of a message.
    pub files: FileLimits,
    /// How long a body may take to arrive.
    pub body_timeout: Duration,
    /// The gateway's public URL, for the URLs of results.
    pub public_url: Option<Url>,
    pub texts: HookTexts,
    pub clock: SharedClock,
    /// Posts callbacks. It must not follow redirects (`redirect::Policy::none()`): an answer goes only to the URL
    /// that the operator configured.
    pub http: reqwest::Client,
    /// Cancelled at the end of a soft shutdown's drain: callers that still wait then get the current state.
    pub stop_waiting: CancellationToken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    #[error("a hook is never open: it needs a token, a signing_secret or a hub_secret")]
    NoSecret,
    #[error("{0} is empty")]
    Empty(&'static str),
    #[error("{0} must be \"whsec_\" followed by a base64 key of 24 to 64 bytes")]
    NotASigningKey(&'static str),
    #[error("template is no template")]
    NotATemplate,
}

/// Where the person reads the answers of a hook that are not read aloud.
const TEXT: &str = "a program that shows text";

/// One hook: the channel `webhook.{name}`, served at `/hooks/{name}`.
pub struct WebhookAdapter {
    channel: ChannelId,
    auth: Auth,
    guesses: Arc<Guesses>,
    bodies: Arc<Bodies>,
    wait: Duration,
    body_limit: usize,
    files: FileLimits,
    body_timeout: Duration,
    conversation: Option<String>,
    surface: Surface,
    urls: ResultUrls,
    texts: HookTexts,
    callback: Option<Callback>,
    events: Option<Events>,
    clock: SharedClock,
    stop_waiting: CancellationToken,
    counters: Counters,
    calls: Calls,
    hook_context: WhileRunning<HookContext>,
}

/// What a hook has while it accepts turns.
struct HookContext {
    intake: Intake,
    since: Timestamp,
}

impl WebhookAdapter {
    /// The hook responds 503 until [`run`](ChannelAdapter::run) is called and after it has returned.
    ///
    /// # Errors
    /// When callers could not be authenticated, or a secret is unusable.
    pub fn new(settings: WebhookSettings) -> Result<Self, SettingsError> {
        let auth = Auth::new(&settings)?;
        let callback = Callback::of(&settings)?;
        let events = Events::of(&settings.section)?;
        Ok(Self {
            channel: ChannelId::new("webhook", &settings.name),
            auth,
            guesses: settings.guesses,
            bodies: settings.bodies,
            wait: settings.section.wait,
            body_limit: settings.section.body_limit.map_or(settings.body_limit, Size::bytes),
            files: settings.files,
            body_timeout: settings.body_timeout,
            conversation: settings.section.conversation,
            surface: if settings.section.spoken { Surface::Voice } else { Surface::Chat(TEXT.into()) },
            urls: ResultUrls::new(&settings.name, settings.public_url.as_ref()),
            texts: settings.texts,
            callback,
            events,
            clock: settings.clock,
            stop_waiting: settings.stop_waiting,
            counters: Counters::new(settings.name),
            calls: Calls::default(),
            hook_context: WhileRunning::default(),
        })
    }

    /// Its last calls at this node, newest first.
    pub fn calls(&self) -> Vec<Call> {
        self.calls.list()
    }

    /// The hook `name`, which is no longer configured. It accepts no turns and shows results by their keys.
    fn former(name: &str, former: &FormerHooks) -> Self {
        let channel = ChannelId::new("webhook", name);
        let context = HookContext { intake: (former.intake)(&channel), since: former.clock.now() };
        Self {
            channel,
            auth: Auth::by_result_key(former.keys.clone()),
            guesses: Arc::clone(&former.guesses),
            bodies: Arc::default(),
            wait: Duration::ZERO,
            body_limit: 0,
            files: FileLimits::default(),
            body_timeout: Duration::ZERO,
            conversation: None,
            surface: Surface::Voice,
            urls: ResultUrls::new(name, former.public_url.as_ref()),
            texts: former.texts.clone(),
            callback: None,
            events: None,
            clock: Arc::clone(&former.clock),
            stop_waiting: CancellationToken::new(),
            counters: Counters::new("unknown".to_owned()),
            calls: Calls::default(),
            hook_context: WhileRunning::always(context),
        }
    }
}

#[async_trait]
impl ChannelAdapter for WebhookAdapter {
    fn channel(&self) -> &ChannelId {
        &self.channel
    }

    fn capabilities(&self, _conversation: &ConversationRef) -> Capabilities {
        capabilities::capabilities(self.callback.is_some())
    }

    fn surface(&self) -> Surface {
        self.surface.clone()
    }

    fn health(&self) -> ChannelHealth {
        ChannelHealth {
            inbound_at: self.hook_context.get().map(|context| context.since),
            stale_after: None,
            problem: None,
            notice: None,
        }
    }

    fn runs_at_each_node(&self) -> bool {
        true
    }

    async fn run(&self, intake: Intake, shutdown: CancellationToken) -> Result<(), ChannelError> {
        let _opened = self.hook_context.open(HookContext { intake, since: self.clock.now() });
        shutdown.cancelled().await;
        Ok(())
    }

    async fn fetch(&self, attachment: &Attachment, limit: usize) -> Result<Vec<u8>, FetchError> {
        data_url::fetch(attachment, limit)
    }

    async fn deliver(&self, delivery: &Delivery) -> Result<Receipt, DeliveryError> {
        match &self.callback {
            Some(callback) => callback.deliver(delivery).await,
            None => {
                Err(DeliveryError::Unsupported("this hook has no callback: its receipt is the stored result".into()))
            }
        }
    }
}
