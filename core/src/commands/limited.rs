//! The notices to a person who wrote more than the limits allow.

use super::command::{Answer, Call, Command};
use crate::{base::words::age, model::Day};

pub(crate) const LIMITED: Command =
    Command::notice("limited", "Tell a person that they wrote too much at once", |_| {
        Box::pin(async { Ok(Answer::of("limited")) })
    });

pub(crate) const LIMITED_SOON: Command =
    Command::notice("limited_soon", "Tell a person that most of what they may use of the day is used", |call| {
        Box::pin(async { Ok(until_tomorrow("limited_soon", call)) })
    });

pub(crate) const LIMITED_TODAY: Command =
    Command::notice("limited_today", "Tell a person that they have reached their limit of the day", |call| {
        Box::pin(async { Ok(until_tomorrow("limited_today", call)) })
    });

fn until_tomorrow(template: &'static str, call: &Call<'_>) -> Answer {
    let ends_at = Day::of(call.now, &call.settings.time_zone).ends_at;
    Answer::filled(template, vec![("time", age(ends_at.since(call.now)))])
}
