//! `[sessions]`: when a conversation begins a new session by itself.

use std::time::Duration;

use jiff::tz::TimeZone;
use rejoinder_core::{NewInGroups, SessionReset};
use serde::{Deserialize, Serialize};

use crate::{
    alerts::{TimeOfDay, Written},
    duration::{self, SECOND},
    text,
};

/// When a conversation begins a new session by itself.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Sessions {
    /// Whether it does, and what decides.
    reset: Reset,
    /// The time of day for `daily`, in `routing.time_zone`.
    reset_at: DayStart,
    /// How long nothing is said for `idle`.
    #[serde(
        serialize_with = "duration::write",
        deserialize_with = "duration::between::<_, { 300 * SECOND }, { 31_536_000 * SECOND }>"
    )]
    idle: Duration,
    /// Who may begin a new session in a group.
    pub new_in_groups: NewInGroups,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Reset {
    Never,
    Daily,
    Idle,
}

/// `04:00`.
#[derive(Clone, Copy, Debug)]
struct DayStart(TimeOfDay);

text::as_text!(DayStart, "a time of day such as \"04:00\"", TimeOfDay::parse);

impl Sessions {
    /// In the form that the core uses. Days begin in `zone`.
    pub fn reset(&self, zone: &TimeZone) -> SessionReset {
        match self.reset {
            Reset::Never => SessionReset::Never,
            Reset::Daily => SessionReset::Daily(self.reset_at.0.0, zone.clone()),
            Reset::Idle => SessionReset::Idle(self.idle),
        }
    }
}
