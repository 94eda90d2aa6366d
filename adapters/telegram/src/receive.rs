//! Taking updates in, however they came: read, stored, and only then known to be ours.

mod albums;
mod polling;
mod webhook;

use rejoinder_core::{Accepted, Backoff, InboundEvent, Intake, IntakeError};
use serde::de::IgnoredAny;
use teloxide::{payloads::AnswerCallbackQuery, types::CallbackQueryId};
use tokio_util::sync::CancellationToken;

pub use self::webhook::webhook_routes;
pub(crate) use self::{albums::Albums, polling::stale_after, webhook::Door};
use crate::{
    Telegram,
    check::BotProfile,
    closing::{Closing, closing},
    inbound::{Read, Reader},
};

/// Whether there is any sense in going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Everything is durable.
    In,
    /// The gateway is shutting down, and something was not taken in: Telegram will send it again.
    NotNow,
}

impl Telegram {
    /// Reads updates, in the order in which they came.
    pub(crate) fn read<'a>(&self, me: &BotProfile, raw: impl Iterator<Item = &'a str>) -> Vec<Read> {
        let reader = Reader { channel: &self.channel, me, said: &self.said, now: self.clock.now() };
        let mut read: Vec<Read> = raw.map(|raw| reader.read(raw)).collect();
        let mut events: Vec<&mut InboundEvent> = read.iter_mut().map(|read| &mut read.event).collect();
        self.albums.direct(&mut events);
        read
    }

    /// Stores a batch together with the cursor that covers it, for as long as it takes.
    pub(crate) async fn take_in(
        &self,
        intake: &Intake,
        read: &[Read],
        cursor: (&str, String),
        shutdown: &CancellationToken,
    ) -> Taken {
        let events: Vec<InboundEvent> = read.iter().map(|read| read.event.clone()).collect();
        let mut backoff = Backoff::default();
        loop {
            match intake.accept_all(events.clone(), Some((cursor.0, cursor.1.clone()))).await {
                Ok(accepted) => {
                    self.are_in(read, &accepted);
                    return Taken::In;
                }
                Err(IntakeError::ShuttingDown) => return Taken::NotNow,
                Err(error @ IntakeError::Store(_)) => {
                    tracing::warn!(channel = %self.channel, %error, "updates cannot be stored, trying again");
                    self.pulse.fails(format!("updates cannot be stored: {error}"));
                }
            }
            if !self.pause(backoff.pause(), shutdown).await {
                return Taken::NotNow;
            }
        }
    }

    /// What follows once updates are durable.
    pub(crate) fn are_in(&self, read: &[Read], accepted: &[Accepted]) {
        for (read, accepted) in read.iter().zip(accepted) {
            if let Some(query) = &read.query {
                let choice = accepted.choice(&read.event);
                let closing = choice.and_then(|choice| closing(&read.event.raw, choice, self.link_previews()));
                self.answer(query.clone(), closing);
            }
        }
    }

    /// Tells Telegram that a button was noticed: until then it shows that it waits. A question that is answered is
    /// closed.
    fn answer(&self, query: String, closing: Option<Closing>) {
        let (api, channel) = (std::sync::Arc::clone(&self.api), self.channel.clone());
        self.tasks.spawn(async move {
            let answer = AnswerCallbackQuery::new(CallbackQueryId(query));
            if let Err(error) = api.call::<_, bool>(&answer).await {
                // Nothing hangs on it: the choice itself is stored.
                tracing::debug!(%channel, %error, "a pressed button was not acknowledged");
            }
            let closed = match closing {
                None => return,
                Some(Closing::Words(edit)) => api.call::<_, IgnoredAny>(&*edit).await,
                Some(Closing::Buttons(edit)) => api.call::<_, IgnoredAny>(&edit).await,
            };
            if let Err(error) = closed {
                // Nor on this: whoever presses again changes nothing, and closes it.
                tracing::debug!(%channel, %error, "a question that was answered keeps its buttons");
            }
        });
    }

    /// Waits; whether to go on afterwards.
    pub(crate) async fn pause(&self, pause: std::time::Duration, shutdown: &CancellationToken) -> bool {
        tokio::select! {
            () = self.clock.sleep(pause) => true,
            () = shutdown.cancelled() => false,
        }
    }
}
