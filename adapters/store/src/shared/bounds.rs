//! Bounds and lists that hold for each database.

use std::time::Duration;

pub(crate) const TABLES: [&str; 34] = [
    "agent_notices",
    "agent_sessions",
    "asides",
    "attempts",
    "audit",
    "channels_cursor",
    "conversations",
    "daily_use",
    "deliveries",
    "direct_chats",
    "errors",
    "events",
    "file_uses",
    "files",
    "identities",
    "invitations",
    "languages",
    "log",
    "log_lines",
    "pairings",
    "passkeys",
    "people",
    "push_subscriptions",
    "questions",
    "reactions",
    "remarks",
    "run_contents",
    "run_settings",
    "runs",
    "sessions",
    "transcript",
    "turns",
    "visits",
    "whole_requests",
];

/// When what waits for the end of a turn is looked at again: nothing announces it.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_hours(1);

/// Among how many of a conversation's last turns a later delivery is looked for.
pub(crate) const LAST_TURNS: u32 = 1000;

/// Among how many of a conversation's last turns its deliveries are listed.
pub(crate) const LISTED_TURNS: u32 = 1000;

/// How long a question waits for its answer, in milliseconds: a week. Then it is forgotten.
pub(crate) const ASKED_FOR: i64 = 7 * 24 * 60 * 60 * 1000;

/// How many turns before it are searched.
pub(crate) const ANSWERED_WITHIN: u32 = 64;

/// Among how many of the latest turns of a conversation the answer is searched.
pub(crate) const REACTED_WITHIN: u32 = 64;

/// The reactions of how many people to an answer are kept: the latest.
pub(crate) const REACTIONS_KEPT: u32 = 8;

/// How many attempts of a delivery are kept in any case.
pub(crate) const ATTEMPTS_KEPT: u32 = 20;

/// How long the answer to a request is kept, in milliseconds: a day.
pub(crate) const ANSWERS_KEPT: i64 = 24 * 60 * 60 * 1000;

/// How long a visit that is over is kept, in milliseconds: so long its challenge is not used again. Longer than a challenge counts.
pub(crate) const CHALLENGES_KEPT: i64 = 60 * 60 * 1000;

/// How far the last run of settings is ahead of the one that is written down, at most: a thousand turns. So it is seldom
/// written.
pub(crate) const SETTINGS_STEP: i64 = 1000 << 16;

pub(crate) const MILLIS_OF_DAY: i64 = 24 * 60 * 60 * 1000;
