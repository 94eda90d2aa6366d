//! Webhooks: a turn over HTTP, for Siri Shortcuts and anything else that can POST.
//!
//! Each hook of the configuration is a channel of its own (`webhook.siri`): a [`WebhookAdapter`]. One
//! [`router`] serves them all:
//!
//! * `POST /hooks/{name}` is a turn, and waits for its answer as long as the hook and the caller's
//!   `Prefer: wait=N` say. Afterwards, or at the soft deadline, it answers 202 with something that can be
//!   spoken and the address of the result.
//! * `GET /hooks/{name}/turns/{turn_id}` is the result, durable.
//!
//! A hook's receipt is that durable result; with a callback a copy of it is posted there, signed.
//!
//! What it never does: answer 5xx because the agent is still thinking, fetch or post to an address that a
//! caller named, or keep anything in memory that is owed (a response that is lost is read again at the
//! result's address, or by sending the same `Idempotency-Key` again).
//!
//! # What was decided
//!
//! * **Conversation**: the one that the body names; else the sender's; else the hook's own; else the turn is
//!   a conversation of its own.
//! * **Result address**: absolute, below `public_url` or else below the request's `Host` (and then `https`
//!   where a proxy says `X-Forwarded-Proto: https`); a path where neither is known. A caller who showed the
//!   token shows it again; for one who signed, the address carries a `key`, an HMAC of the turn's id under
//!   a secret of the gateway's own, which opens this one result. It stays good as long as that secret does: also when
//!   the hook has other secrets since, or is not configured any more.
//! * **The same request, sent again**: known by `Idempotency-Key`. For a Standard Webhooks signature it is
//!   `webhook-id` instead, always: that one is signed, so a recorded request cannot be made a new one. Another
//!   text, conversation or list of attachments under the same key is 409.
//! * **`undeliverable` and `cancelled`** are answered with 200: the result is there, and says what became of
//!   the turn. 202 stands for `accepted` and `deferred`, with POST as with GET.
//!
//! # To add …
//!
//! * a media type: a file in `inbound/`, and its lines in `Media`;
//! * a way to authenticate: a field of `Auth` and its arm in `Auth::signed`;
//! * a field of the answer: `Answer` in `answer.rs`, which is also what the API's description is made from.

mod answer;
mod auth;
mod body;
mod capabilities;
mod counters;
mod inbound;
mod keyed;
mod openapi;
mod outbound;
mod prefer;
mod quoted;
mod result_key;
mod result_url;
mod routes;
mod section;

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use rejoinder_config::Size;
use rejoinder_core::{
    Capabilities, ChannelAdapter, ChannelError, ChannelHealth, ChannelId, ConversationRef, Delivery, DeliveryError,
    Intake, Receipt, SharedClock, Timestamp,
};
use rejoinder_kit::Opening;
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;
use url::Url;

use self::{auth::Auth, counters::Counters, outbound::Callback, result_url::ResultUrls};
pub use self::{
    openapi::openapi,
    result_key::ResultKeys,
    routes::{FormerHooks, router},
    section::WebhookSection,
};

/// What one hook is made of.
pub struct WebhookSettings {
    /// Its name: `siri` of `/hooks/siri` and `webhook.siri`.
    pub name: String,
    /// What the operator configured. At least one of the three secrets of callers must be there.
    pub section: WebhookSection,
    /// The section's token, made where it is to be generated.
    pub token: Option<SecretString>,
    /// What opens a result for a caller who does not show the token.
    pub result_keys: ResultKeys,
    /// The largest body, in bytes, where the section names none.
    pub body_limit: usize,
    /// Where the gateway is reached from outside, for the addresses of results.
    pub public_url: Option<Url>,
    /// The clock.
    pub clock: SharedClock,
    /// What callbacks are posted with. It must not follow redirects (`redirect::Policy::none()`): an answer
    /// goes where the operator said, and nowhere else.
    pub http: reqwest::Client,
    /// Cancelled when callers that still wait must be answered with what there is: at the end of a soft
    /// shutdown's drain.
    pub hang_up: CancellationToken,
}

/// Why a hook cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// Nothing is asked of its callers.
    #[error("a hook needs a token, a signing_secret or a hub_secret: none is ever open")]
    Open,
    /// A secret is there, and empty.
    #[error("{0} is empty")]
    Empty(&'static str),
    /// A secret is no key of Standard Webhooks.
    #[error("{0} must be \"whsec_\" and a key in base64")]
    NotASigningKey(&'static str),
}

/// One hook: a channel, and what `/hooks/{name}` answers.
pub struct WebhookAdapter {
    channel: ChannelId,
    auth: Auth,
    wait: Duration,
    body_limit: usize,
    conversation: Option<String>,
    urls: ResultUrls,
    callback: Option<Callback>,
    clock: SharedClock,
    hang_up: CancellationToken,
    counters: Counters,
    opening: Opening<Open>,
}

/// What a hook has while it takes turns in.
struct Open {
    intake: Intake,
    since: Timestamp,
}

impl WebhookAdapter {
    /// The hook that `settings` describe. It answers 503 until [`run`](ChannelAdapter::run) is called, and
    /// after it returned.
    ///
    /// # Errors
    /// When a caller could not be told from anybody else, or a secret is unusable.
    pub fn new(settings: WebhookSettings) -> Result<Self, SettingsError> {
        let auth = Auth::new(&settings)?;
        let callback = Callback::of(&settings)?;
        let WebhookSettings { name, section, body_limit, public_url, clock, hang_up, .. } = settings;
        Ok(Self {
            channel: ChannelId::new("webhook", &name),
            auth,
            wait: section.wait,
            body_limit: section.body_limit.map_or(body_limit, Size::bytes),
            conversation: section.conversation,
            urls: ResultUrls::new(&name, public_url.as_ref()),
            callback,
            clock,
            hang_up,
            counters: Counters::new(name),
            opening: Opening::default(),
        })
    }

    /// The hook `name`, which is not configured any more: it takes nothing in, and gives its results by their keys.
    fn former(name: &str, former: &FormerHooks) -> Self {
        let channel = ChannelId::new("webhook", name);
        let open = Open { intake: (former.intake)(&channel), since: former.clock.now() };
        Self {
            channel,
            auth: Auth::by_result(former.keys.clone()),
            wait: Duration::ZERO,
            body_limit: 0,
            conversation: None,
            urls: ResultUrls::new(name, former.public_url.as_ref()),
            callback: None,
            clock: Arc::clone(&former.clock),
            hang_up: CancellationToken::new(),
            counters: Counters::new("unknown".to_owned()),
            opening: Opening::always(open),
        }
    }
}

impl fmt::Debug for WebhookAdapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookAdapter").field("channel", &self.channel).finish_non_exhaustive()
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

    fn health(&self) -> ChannelHealth {
        ChannelHealth { inbound_at: self.opening.get().map(|open| open.since), stale_after: None, problem: None }
    }

    async fn run(&self, intake: Intake, shutdown: CancellationToken) -> Result<(), ChannelError> {
        let _opened = self.opening.open(Open { intake, since: self.clock.now() });
        shutdown.cancelled().await;
        Ok(())
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
