//! Tells browsers of answers while no page shows the conversation: Web Push (RFC 8030).
//!
//! This is beside the turn: nobody waits for it, and what cannot be told is in the conversation nevertheless. A push service is chosen by
//! the browser, which may be anybody's: it is asked as one that a stranger has chosen.

mod message;
mod vapid;

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use futures_util::future::join_all;
use parking_lot::Mutex;
use rejoinder_core::{
    Intake, SharedClock, Shown, SignalKind, TurnStatus, TurnView, excerpt, spoken, store::PushSubscription,
};
use rejoinder_kit::{public_url, retry_after};
use reqwest::{
    Client, StatusCode,
    header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE},
};
use secrecy::SecretString;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tokio::{sync::Semaphore, time::sleep};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use url::Url;

use self::vapid::VapidKey;
use crate::{inbound, rooms::Rooms, section::PushKind};

/// Of how many answers browsers are told at once. Others are not told.
const MOST: usize = 64;

/// How long a push service may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How long a push service keeps a message for a browser that is not connected, in seconds: a day.
const KEPT: u32 = 24 * 60 * 60;

/// The pauses before the second try and the third, unless the push service names longer ones.
const PAUSES: [Duration; 2] = [Duration::from_secs(10), Duration::from_mins(1)];

/// The longest pause that a push service may name. Anybody can name a service, and what waits for it keeps the place of another answer.
const LONGEST_PAUSE: Duration = Duration::from_mins(2);

/// How many characters of an answer are told.
const LONGEST: usize = 160;

/// How messages are sent to push services.
#[derive(Clone)]
pub struct PushSettings {
    /// The gateway's key at push services is made of this.
    pub secret: SecretString,
    /// Where push services reach the operator: a URL, `https` or `mailto`.
    pub contact: String,
    /// Makes the client for push services that browsers name, once there is something to send. It must reach public addresses only, and
    /// follow no redirects.
    pub public: fn() -> Result<Client, reqwest::Error>,
    /// For the operator's own push services.
    pub own: Client,
}

/// Tells the browsers of one chat.
pub(crate) struct Pushes {
    key: VapidKey,
    contact: String,
    make_public: fn() -> Result<Client, reqwest::Error>,
    public: OnceLock<Client>,
    own: Client,
    /// The URLs of the operator's own push services.
    services: Vec<Url>,
    has_words: bool,
    title: String,
    /// The path of the page.
    path: String,
    rooms: Arc<Rooms>,
    clock: SharedClock,
    permits: Arc<Semaphore>,
    /// Until when push services want no message, by their origin.
    paused: Mutex<HashMap<String, Instant>>,
}

/// What a push service said.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Taken,
    /// The browser does not want messages any more.
    Gone,
    /// The same message may be taken later.
    Later(Option<Duration>),
    Refused(String),
}

impl Pushes {
    /// `None` if the section says that nobody is told.
    pub(crate) fn of(
        settings: PushSettings,
        (kind, services): (PushKind, &[Url]),
        (name, title): (&str, &str),
        (rooms, clock): (&Arc<Rooms>, &SharedClock),
    ) -> Option<Arc<Self>> {
        let PushSettings { secret, contact, public, own } = settings;
        (kind != PushKind::Off).then(|| {
            Arc::new(Self {
                key: VapidKey::of(&secret),
                contact,
                make_public: public,
                public: OnceLock::new(),
                own,
                services: services.to_vec(),
                has_words: kind == PushKind::Words,
                title: title.to_owned(),
                path: if name == "main" { "/chat".to_owned() } else { format!("/chat/{name}") },
                rooms: Arc::clone(rooms),
                clock: Arc::clone(clock),
                permits: Arc::new(Semaphore::new(MOST)),
                paused: Mutex::default(),
            })
        })
    }

    /// The public key for which browsers subscribe.
    pub(crate) fn key(&self) -> &str {
        self.key.public()
    }

    /// The subscription that a page names; `None` if nothing can be sent to it.
    pub(crate) fn subscription(&self, endpoint: String, key: &str, auth: &str) -> Option<PushSubscription> {
        self.url(&endpoint)?;
        let decoded = |text: &str| BASE64_URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok();
        let (key, auth) = (decoded(key)?, decoded(auth)?);
        let has_keys = key.len() == usize::from(message::KEY) && auth.len() == message::AUTH;
        has_keys.then_some(PushSubscription { endpoint, key, auth })
    }

    /// The URL of an endpoint, and whether it is one of the operator's own; `None` if it is not asked.
    fn url(&self, endpoint: &str) -> Option<(Url, bool)> {
        let is_below = |url: &Url, service: &Url| {
            let rest = url.path().strip_prefix(service.path().trim_end_matches('/'));
            service.origin() == url.origin() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let own = Url::parse(endpoint).ok();
        let own = own.filter(|url| self.services.iter().any(|service| is_below(url, service)));
        own.map(|url| (url, true)).or_else(|| public_url(endpoint).map(|url| (url, false)))
    }

    fn client(&self, is_own: bool) -> Option<&Client> {
        if is_own {
            return Some(&self.own);
        }
        if let Some(client) = self.public.get() {
            return Some(client);
        }
        let made = (self.make_public)().inspect_err(|error| tracing::warn!(%error, "cannot create the HTTP client"));
        let made = made.ok()?;
        Some(self.public.get_or_init(|| made))
    }

    /// Tells those who want to know of a turn that changed, if that is news and no page shows it. Returns at once.
    pub(crate) fn tell(
        self: &Arc<Self>,
        view: &Arc<TurnView>,
        intake: &Intake,
        (tasks, closing): (&TaskTracker, &CancellationToken),
    ) {
        let Some(shown) = news(view).filter(|_| !self.is_open(view)) else { return };
        let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else { return count("dropped") };
        let (text, shown_at) = (self.message(view, shown), shown.at);
        let (pushes, view, intake, closing) = (Arc::clone(self), Arc::clone(view), intake.clone(), closing.clone());
        tasks.spawn(async move {
            let _permit = permit;
            match intake.untold(&view.conversation, shown_at).await {
                Ok(untold) => {
                    let told = untold.iter().map(|to| pushes.send(to, &text, &view, &intake, &closing));
                    join_all(told).await;
                }
                Err(error) => tracing::debug!(turn = %view.turn_id, %error, "cannot read whom to tell of an answer"),
            }
        });
    }

    fn is_open(&self, view: &TurnView) -> bool {
        self.rooms.is_open(&inbound::room(&view.conversation))
    }

    /// What the worker of the page reads. The conversation is named by a digest: the page knows the id to which that belongs.
    fn message(&self, view: &TurnView, shown: &Shown) -> String {
        let Self { path, title, .. } = self;
        if !self.has_words {
            return json!({ "path": path }).to_string();
        }
        let words = if shown.text.trim().is_empty() {
            shown.attachments.first().map_or_else(String::new, |file| file.name.clone())
        } else {
            spoken(&shown.text)
        };
        let (text, conversation) = (excerpt(&words, LONGEST), inbound::digest_of(&view.conversation));
        json!({ "path": path, "conversation": conversation, "title": title, "text": text }).to_string()
    }

    /// Sends a message to one browser.
    async fn send(
        &self,
        to: &PushSubscription,
        text: &str,
        view: &TurnView,
        intake: &Intake,
        closing: &CancellationToken,
    ) {
        let (room, mut pauses) = (inbound::room(&view.conversation), PAUSES.into_iter());
        loop {
            let answer = tokio::select! {
                answer = self.post(to, text, &room) => answer,
                () = closing.cancelled() => return,
            };
            match answer {
                Answer::Taken => return count("sent"),
                Answer::Gone => {
                    count("gone");
                    if let Err(error) = intake.unsubscribe(&to.endpoint).await {
                        tracing::debug!(%error, "cannot remove a push subscription");
                    }
                    return;
                }
                Answer::Refused(reason) => {
                    tracing::warn!(turn = %view.turn_id, reason, "a push service refuses a message");
                    return count("refused");
                }
                Answer::Later(pause) => {
                    let Some(shortest) = pauses.next() else { return count("failed") };
                    self.pause(&to.endpoint, pause.unwrap_or_default().max(shortest));
                }
            }
            // The page may have been opened meanwhile.
            if self.is_open(view) {
                return;
            }
        }
    }

    /// Has messages to a push service wait.
    fn pause(&self, endpoint: &str, pause: Duration) {
        let (now, pause) = (Instant::now(), pause.min(LONGEST_PAUSE));
        let mut paused = self.paused.lock();
        paused.retain(|_, until| *until > now);
        paused.insert(origin(endpoint), now + pause);
    }

    async fn post(&self, to: &PushSubscription, text: &str, room: &str) -> Answer {
        let until = self.paused.lock().get(&origin(&to.endpoint)).copied();
        if let Some(until) = until {
            sleep(until.saturating_duration_since(Instant::now())).await;
        }
        let Some((url, is_own)) = self.url(&to.endpoint) else { return Answer::Gone };
        let Some(client) = self.client(is_own) else { return Answer::Later(None) };
        let now = self.clock.now();
        let (Ok(body), Ok(authorization)) =
            (message::encrypted(text.as_bytes(), to), self.key.authorization(&url, &self.contact, now))
        else {
            return Answer::Gone;
        };
        // Of a conversation a browser that comes back is told the latest answer alone.
        let topic = BASE64_URL_SAFE_NO_PAD.encode(&Sha256::digest(room)[..24]);
        let request = client
            .post(url)
            .timeout(TIMEOUT)
            .header(AUTHORIZATION, authorization)
            .header(CONTENT_ENCODING, "aes128gcm")
            .header(CONTENT_TYPE, "application/octet-stream")
            .header("ttl", KEPT)
            .header("topic", topic)
            .body(body);
        match request.send().await {
            Ok(response) => judged(response.status(), retry_after(response.headers(), now)),
            Err(error) => {
                // The URL is left out, because it is a secret of the browser.
                tracing::debug!(error = %error.without_url(), "a push service cannot be reached");
                Answer::Later(None)
            }
        }
    }
}

/// What somebody whose page is closed wants to know: an answer, a question, or what the agent says first.
fn news(view: &TurnView) -> Option<&Shown> {
    let shown = view.shown.as_ref()?;
    let is_question = view.status == TurnStatus::Deferred && !shown.choices.is_empty();
    let is_answer = view.status == TurnStatus::Answered && shown.signal == SignalKind::Reply;
    ((is_answer || is_question) && view.picked.is_none() && view.merged_into.is_none()).then_some(shown)
}

fn judged(status: StatusCode, pause: Option<Duration>) -> Answer {
    match status {
        status if status.is_success() => Answer::Taken,
        StatusCode::NOT_FOUND | StatusCode::GONE => Answer::Gone,
        StatusCode::TOO_MANY_REQUESTS => Answer::Later(pause),
        status if status.is_server_error() => Answer::Later(pause),
        status => Answer::Refused(format!("it answered {status}")),
    }
}

/// The push service of an endpoint.
fn origin(endpoint: &str) -> String {
    Url::parse(endpoint).map(|url| url.origin().ascii_serialization()).unwrap_or_default()
}

fn count(result: &'static str) {
    metrics::counter!("rejoinder_webchat_pushes_total", "result" => result).increment(1);
}

#[cfg(test)]
mod tests;
