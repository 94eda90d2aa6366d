//! Quiet hours: what the gateway begins on its own waits until they are over.

use rejoinder_guard::Timestamp;

use crate::{
    model::{InboundEvent, Settings},
    people::People,
};

/// When the quiet hours end of the person who is reached in the conversation of an event, if they are now and hold for what is
/// sent because of it.
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
