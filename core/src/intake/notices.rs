//! The gateway's notices to the senders of events: turns that owe nothing.

use std::time::Duration;

use rejoinder_guard::Expectation;

use super::{
    arrival::{Arrival, Notice},
    event_router::{EventRouter, RoutedEvent},
};
use crate::{
    commands::{
        backlog::{ASKS_ABOUT_BACKLOG, BACKLOG_EXPIRED},
        dropped::DROPPED,
        limited::{LIMITED, LIMITED_SOON, LIMITED_TODAY},
        pairing::{CROWDED, PAIRING},
        stranger::STRANGER,
    },
    model::{EventKind, InboundEvent, TurnId},
    people::codes::PairingResult,
    ports::StoreError,
};

const HOUR_MS: i64 = 60 * 60 * 1000;
const DAY_MS: i64 = 24 * HOUR_MS;

impl EventRouter {
    /// A notice to the sender of `event`. A stranger gets at most one a day or for each code, and a person who is over a
    /// limit one a minute, because its key holds the day, when they asked, or the minute. `None` if the channel has given
    /// all its notices to strangers of this hour, or all its codes.
    pub(super) async fn notice(&self, event: &InboundEvent, notice: Notice) -> Result<Option<RoutedEvent>, StoreError> {
        let (now, person) = (self.clock.now(), event.person());
        let (command, external_id, notice_permit) = match notice {
            Notice::Stranger => {
                let Some(permit) = self.permits.try_take(&event.conversation.channel, now) else { return Ok(None) };
                (&STRANGER, format!("stranger:{person}:{}", now.as_millis() / DAY_MS), Some(permit))
            }
            Notice::Pairing => match self.people.ask(event).await? {
                PairingResult::Waits(pairing) => {
                    (&PAIRING, format!("pairing:{person}:{}", pairing.asked_at.as_millis()), None)
                }
                PairingResult::Full => {
                    let channel = &event.conversation.channel;
                    let Some(permit) = self.permits.try_take(channel, now) else { return Ok(None) };
                    (&CROWDED, format!("crowded:{person}:{}", now.as_millis() / HOUR_MS), Some(permit))
                }
                PairingResult::Over => return Ok(None),
            },
            Notice::Limited { minute } => (&LIMITED, format!("limited:{person}:{minute}"), None),
            Notice::LimitedToday { day } => (&LIMITED_TODAY, format!("limited:{person}:day:{day}"), None),
            Notice::LimitedSoon { day } => (&LIMITED_SOON, format!("limited-soon:{person}:day:{day}"), None),
            Notice::BacklogExpired => {
                // One for what comes together: what is late later was sent after this.
                let window = self.settings.get().queues.late_after.max(Duration::from_mins(1)).as_millis();
                let address = &event.conversation;
                let since = self.leases.at_work_since(&address.channel);
                let number = now.since(since).as_millis() / window;
                (&BACKLOG_EXPIRED, format!("late:{address}:{}:{number}", since.as_millis()), None)
            }
            Notice::AsksAboutBacklog { first } => (&ASKS_ABOUT_BACKLOG, format!("late-asks:{first}"), None),
            Notice::Dropped { minute } => (&DROPPED, format!("dropped:{}:{minute}", event.conversation), None),
        };
        let (settings, known) = (self.settings.get(), self.people.known());
        let mut arrival = Arrival::new(TurnId::new(now), bare(event, external_id), true, settings, known);
        arrival.handling.handler = command.handler();
        arrival.expectation = Expectation::Nothing;
        let conversation = arrival.conversation(&self.addresses).await?;
        Ok(Some(RoutedEvent { notice_permit, ..self.open_turn(arrival, conversation.id) }))
    }
}

/// An event of the same sender in the same conversation, without what was said.
fn bare(event: &InboundEvent, external_id: String) -> InboundEvent {
    InboundEvent {
        external_id,
        revision: 0,
        kind: EventKind::Other,
        text: String::new(),
        said: None,
        attachments: Vec::new(),
        quoted: None,
        forwarded: None,
        amends: None,
        part_of: None,
        more_within: None,
        brief: None,
        seal_to: None,
        trace: None,
        raw: String::new(),
        ..event.clone()
    }
}
