//! Taking updates in, however they came: read, stored, and only then known to be ours.

use rejoinder_core::{Accepted, Backoff, EventKind, InboundEvent, Intake, IntakeError, StoreError};
use serde::de::IgnoredAny;
use teloxide::{payloads::AnswerCallbackQuery, types::CallbackQueryId};
use tokio_util::sync::CancellationToken;

use crate::{
    Telegram,
    check::BotProfile,
    closing::{Closing, closing},
    normalise::{Read, Reader},
};

/// How often the store may reject what it could write, before less of it is stored.
const MAX_REJECTED: u32 = 3;

/// Whether there is any sense in going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Everything is durable.
    In,
    /// The gateway is shutting down, and something was not taken in: Telegram will send it again.
    NotNow,
}

/// What the intake said to what it did not take.
enum Rejected {
    /// Nothing can be written at the moment.
    ForNow,
    /// This cannot.
    AsItIs,
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
        let (mut backoff, mut rejected) = (Backoff::default(), 0);
        while rejected < MAX_REJECTED {
            match intake.accept_all(events.clone(), Some((cursor.0, cursor.1.clone()))).await {
                Ok(accepted) => {
                    self.are_in(read, &accepted);
                    return Taken::In;
                }
                Err(error) => match self.not_taken(&error, backoff.pause(), shutdown).await {
                    Some(Rejected::ForNow) => {}
                    Some(Rejected::AsItIs) => rejected += 1,
                    None => return Taken::NotNow,
                },
            }
        }
        // One of them cannot be stored: the others are, and of that one what can be.
        for one in read {
            if self.take_one_in(intake, one, shutdown).await == Taken::NotNow {
                return Taken::NotNow;
            }
        }
        loop {
            let Err(error) = intake.accept_all(Vec::new(), Some((cursor.0, cursor.1.clone()))).await else {
                return Taken::In;
            };
            if self.not_taken(&error, backoff.pause(), shutdown).await.is_none() {
                return Taken::NotNow;
            }
        }
    }

    async fn take_one_in(&self, intake: &Intake, read: &Read, shutdown: &CancellationToken) -> Taken {
        let as_it_is = read.event.clone();
        let bare = bare(&as_it_is, read.number);
        let stages = [as_it_is, bare.clone(), InboundEvent { raw: String::new(), ..bare }];
        let (mut backoff, mut rejected, mut stage) = (Backoff::default(), 0, 0);
        loop {
            match intake.accept_all(vec![stages[stage].clone()], None).await {
                Ok(accepted) => {
                    self.are_in(std::slice::from_ref(read), &accepted);
                    return Taken::In;
                }
                Err(error) => match self.not_taken(&error, backoff.pause(), shutdown).await {
                    Some(Rejected::ForNow) => {}
                    Some(Rejected::AsItIs) => rejected += 1,
                    None => return Taken::NotNow,
                },
            }
            if rejected >= MAX_REJECTED && stage + 1 < stages.len() {
                tracing::error!(channel = %self.channel, update = read.number, "an update cannot be stored as it is");
                (rejected, stage) = (0, stage + 1);
            }
        }
    }

    /// Waits before the next try; `None` when there is none.
    async fn not_taken(
        &self,
        error: &IntakeError,
        pause: std::time::Duration,
        shutdown: &CancellationToken,
    ) -> Option<Rejected> {
        let rejected = match error {
            IntakeError::ShuttingDown => return None,
            IntakeError::Store(StoreError::Unavailable(_)) => Rejected::ForNow,
            IntakeError::Store(_) => Rejected::AsItIs,
        };
        tracing::warn!(channel = %self.channel, %error, "updates cannot be stored, trying again");
        self.pulse.fails(format!("updates cannot be stored: {error}"));
        self.pause(pause, shutdown).await.then_some(rejected)
    }

    /// What follows once updates are durable.
    pub(crate) fn are_in(&self, read: &[Read], accepted: &[Accepted]) {
        for (read, accepted) in read.iter().zip(accepted) {
            if let Accepted::Turn(turn) = accepted
                && let Some(message) = read.event.message_id.as_ref().and_then(|id| id.parse().ok())
            {
                self.asked.insert(*turn, message);
            }
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

/// An update of which nothing but its payload is kept.
fn bare(event: &InboundEvent, number: Option<i64>) -> InboundEvent {
    InboundEvent {
        external_id: format!("update:{}", number.unwrap_or_default()),
        revision: 0,
        kind: EventKind::Other,
        text: String::new(),
        attachments: Vec::new(),
        quoted: None,
        amends: None,
        more_within: None,
        ..event.clone()
    }
}
