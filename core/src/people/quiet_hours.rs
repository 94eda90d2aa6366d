//! Quiet hours: messages that the gateway begins on its own wait until they are over.

use rejoinder_guard::Timestamp;

use crate::{
    model::{InboundEvent, Settings},
    people::People,
};

/// The end of the quiet hours of the person in the conversation of an event, if they are now and hold for its messages.
pub(crate) fn quiet_until(
    event: &InboundEvent,
    people: &People,
    settings: &Settings,
    now: Timestamp,
) -> Option<Timestamp> {
    if !event.waits_in_quiet_hours || settings.quiet_hours.is_empty() {
        return None;
    }
    let hours = settings.quiet_hours.get(&people.name_in(&event.conversation)?)?;
    hours.end(now, &settings.time_zone)
}
