//! Long polling (<https://core.telegram.org/bots/api#getupdates>).
//!
//! An update is confirmed when the next call asks for a larger number. So a batch is stored in one transaction with the
//! number of the next update, before that call.

use std::time::Duration;

use rejoinder_core::{Backoff, ChannelError, Timestamp};
use rejoinder_kit::{Receiver, RunEnd, ShuttingDown};
use serde_json::value::RawValue;
use teloxide::{
    payloads::{DeleteWebhook, GetUpdates},
    requests::Payload,
    types::AllowedUpdate,
};

use crate::{
    Telegram,
    check::BotProfile,
    errors::{ApiError, Refusal},
    inbound::ReadUpdate,
};

const CURSOR: &str = "updates";

/// After this long without an update, a stored number is not used: Telegram starts at a random number after a week
/// (<https://core.telegram.org/bots/api#update>).
const CURSOR_LIFETIME: Duration = Duration::from_hours(6 * 24);

/// The kinds of updates to ask for. Telegram sends reactions only if they are named.
pub(crate) const ALLOWED: [AllowedUpdate; 5] = [
    AllowedUpdate::Message,
    AllowedUpdate::EditedMessage,
    AllowedUpdate::CallbackQuery,
    AllowedUpdate::MessageReaction,
    AllowedUpdate::MyChatMember,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cursor {
    /// The number of the next update.
    next: i64,
    /// When the last update arrived.
    at: Timestamp,
}

impl Cursor {
    fn parse(text: &str) -> Option<Self> {
        let (next, at) = text.split_once(' ')?;
        Some(Self { next: next.parse().ok()?, at: Timestamp::from_millis(at.parse().ok()?) })
    }

    fn to_text(self) -> String {
        format!("{} {}", self.next, self.at.as_millis())
    }

    /// The offset to ask for. `None` if the numbers may have restarted: Telegram then sends all unconfirmed updates.
    fn offset(self, now: Timestamp) -> Option<i32> {
        (now.since(self.at) < CURSOR_LIFETIME).then(|| i32::try_from(self.next).ok()).flatten()
    }
}

/// How much longer than the server our poll waits before it times out.
fn margin(poll: Duration) -> Duration {
    (poll / 2).clamp(Duration::from_secs(1), Duration::from_secs(10))
}

/// How long after the last proof of inbound the channel counts as dead.
pub(crate) fn stale_after(poll: Duration) -> Duration {
    // Time for one poll that stalls, the pause after it, and the next poll.
    (poll + margin(poll)) * 2 + Duration::from_secs(10)
}

impl Telegram {
    pub(crate) async fn poll(&self, me: &BotProfile, receiver: &Receiver<'_>) -> Result<(), RunEnd> {
        let mut cursor = receiver.cursor(CURSOR).await?.as_deref().and_then(Cursor::parse);
        let mut backoff = Backoff::default();
        let mut has_webhook = true;
        // The first poll returns at once, to prove that polling works.
        let mut wait = Duration::ZERO;
        let mut is_away = true;
        let mut has_skipped = false;
        loop {
            let polled = async {
                if has_webhook {
                    self.api.call::<_, bool>(&DeleteWebhook::new()).await?;
                    has_webhook = false;
                }
                self.updates(cursor, wait).await
            };
            let updates = match receiver.until_shutdown(polled).await? {
                Ok(updates) => updates,
                Err(error) => {
                    let pause = match error.refusal() {
                        Some(_) => backoff.pause(),
                        None => backoff.pause_unreachable(),
                    };
                    let pause = pause.max(self.classify_poll_error(&error)?);
                    is_away = true;
                    has_webhook |= error.refusal().is_some_and(is_about_webhook);
                    wait = Duration::ZERO;
                    receiver.pause(pause).await?;
                    continue;
                }
            };
            if std::mem::take(&mut is_away) {
                receiver.intake.report_recovered();
            }
            wait = self.options.poll_timeout;
            self.health.inbound_works(self.clock.now());
            self.health.outbound_works();
            let raw: Vec<_> = updates.iter().map(|update| update.get()).collect();
            let mut read = self.read_updates(me, receiver, &raw).await?;
            read.retain(|read| read.number.is_some());
            if read.len() < updates.len() && !std::mem::replace(&mut has_skipped, true) {
                tracing::warn!(channel = %self.channel, "an update has no number, so it cannot be confirmed: skipping it");
            }
            let stored = self.store_batch(receiver, &read).await?;
            if stored.is_some() || updates.is_empty() {
                cursor = stored.or(cursor);
                backoff.reset();
            } else {
                // What was skipped comes again at once.
                receiver.pause(backoff.pause()).await?;
            }
        }
    }

    async fn updates(&self, cursor: Option<Cursor>, wait: Duration) -> Result<Vec<Box<RawValue>>, ApiError> {
        let mut payload = GetUpdates::new();
        payload.offset = cursor.and_then(|cursor| cursor.offset(self.clock.now()));
        payload.timeout = u32::try_from(wait.as_secs()).ok();
        payload.allowed_updates = Some(ALLOWED.to_vec());
        self.api.ask(GetUpdates::NAME, &payload, wait + margin(self.options.poll_timeout)).await
    }

    /// Stores a batch and returns the cursor after it; `None` if no update has a number.
    async fn store_batch(&self, receiver: &Receiver<'_>, read: &[ReadUpdate]) -> Result<Option<Cursor>, ShuttingDown> {
        let Some(last) = read.iter().filter_map(|read| read.number).max() else { return Ok(None) };
        let cursor = Cursor { next: last.saturating_add(1), at: self.clock.now() };
        self.store(receiver, read, Some((CURSOR, &cursor.to_text()))).await?;
        // Storing may have taken longer than a poll, so inbound is proved again.
        self.health.inbound_works(self.clock.now());
        Ok(Some(cursor))
    }

    /// The minimum pause after a failed poll; an error if the token is rejected.
    fn classify_poll_error(&self, error: &ApiError) -> Result<Duration, ChannelError> {
        let problem = match error.refusal() {
            Some(refusal) if refusal.is_about_token(true) => return Err(self.unauthorized(refusal)),
            Some(refusal) if refusal.code == 409 && is_about_webhook(refusal) => {
                "another program set a webhook for this bot, removing it (409)".to_owned()
            }
            Some(refusal) if refusal.code == 409 => {
                "another program polls with this bot's token, and Telegram allows only one (409)".to_owned()
            }
            _ => format!("polling fails: {error}"),
        };
        tracing::warn!(channel = %self.channel, %error, problem, "polling failed, retrying");
        self.health.inbound_fails(problem);
        let limited = error.refusal().filter(|refusal| refusal.code == 429);
        Ok(limited.map(Refusal::limit).unwrap_or_default())
    }
}

fn is_about_webhook(refusal: &Refusal) -> bool {
    refusal.code == 409 && refusal.description.to_lowercase().contains("webhook")
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MS: i64 = 24 * 60 * 60 * 1000;

    #[test]
    fn the_cursor_is_forgotten_before_the_numbers_begin_anew() {
        let cursor = Cursor { next: 42, at: Timestamp::from_millis(DAY_MS) };

        assert_eq!(Cursor::parse(&cursor.to_text()), Some(cursor));
        assert_eq!(cursor.offset(Timestamp::from_millis(6 * DAY_MS)), Some(42));
        assert_eq!(cursor.offset(Timestamp::from_millis(7 * DAY_MS)), None);
    }

    #[test]
    fn a_poll_that_stalls_is_given_up_before_the_channel_counts_as_dead() {
        for seconds in [1, 30, 50] {
            let poll = Duration::from_secs(seconds);
            assert!(poll + margin(poll) < stale_after(poll));
        }
    }
}
