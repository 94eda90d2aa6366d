//! Counts a turn of an agent among those of its sender, and ends one that is too many for the minute or the day.

use crate::intake::{
    arrival::{Arrival, Verdict},
    limits::{Counted, Limits, is_limited},
};

pub(in crate::intake) async fn limits(arrival: &mut Arrival, limits: &Limits) -> Verdict {
    // A command acts on turns that run and wait, and is not limited.
    if arrival.is_command() || !is_limited(&arrival.event) {
        return Ok(());
    }
    arrival.counted = match limits.count(&arrival.event, &arrival.known) {
        Ok(counted) => counted,
        Err(over) => return arrival.end_over_limit(over),
    };
    if let Some(counted) = &mut arrival.counted {
        let over = match limits.check_minute(&arrival.event, counted, &arrival.known).await? {
            None => limits.check_day(&arrival.event, counted, &arrival.known).await?,
            over => over,
        };
        if let Some(over) = over {
            return arrival.end_over_limit(over);
        }
    }
    if let Some(day) = arrival.counted.as_ref().and_then(Counted::limited_soon) {
        arrival.note_limit(day);
    }
    Ok(())
}
