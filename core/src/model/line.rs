//! Lines of the gateway's own log, as the store keeps them: what its code reports, for the operator.
//!
//! They are not the [log](super::log), which has an entry for each step of each turn and is complete. Lines may be missing.

use std::borrow::Cow;

use rejoinder_guard::Timestamp;
use serde_json::{Map, Value};

use crate::model::{conversation::ChannelId, ids::TurnId, nul::Texts};

/// The target of lines on standard error that the store has stored by itself, in the transaction of what they report.
pub const STORED_LINES: &str = "rejoinder_store::told";

/// The position of a line: larger than that of every line that was stored before.
pub type LineId = i64;

named! {
    /// How important a line is, the most important first.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum LineLevel {
        /// The operator must act.
        Error = "error",
        /// The operator may have to act.
        Warn = "warn",
        /// Something notable happened.
        Info = "info",
        /// A decision, or a detail.
        Debug = "debug",
    }
}

/// A line.
#[derive(Clone, Debug, PartialEq)]
pub struct LogLine {
    pub at: Timestamp,
    pub level: LineLevel,
    /// The module that wrote it: `rejoinder_core::worker`.
    pub target: String,
    /// What happened, in words.
    pub message: String,
    pub channel: Option<ChannelId>,
    pub turn_id: Option<TurnId>,
    pub fields: Map<String, Value>,
}

impl LogLine {
    /// The line without U+0000, which PostgreSQL cannot store. It is copied only if it has one.
    pub fn without_nul(&self) -> Cow<'_, Self> {
        let is_clean = |value: &Value| value.as_str().is_none_or(|text| !text.contains('\0'));
        if !self.message.contains('\0') && self.fields.values().all(is_clean) {
            return Cow::Borrowed(self);
        }
        let mut line = self.clone();
        line.message.strip_nul();
        for value in line.fields.values_mut() {
            if let Value::String(text) = value {
                text.strip_nul();
            }
        }
        Cow::Owned(line)
    }

    /// Whether it is counted among the equal ones: those with the same level, target, message, channel and [cause](Self::cause).
    pub fn is_counted(&self) -> bool {
        self.level <= LineLevel::Warn
    }

    /// Whether it is news also after an equal one was acknowledged.
    pub fn is_always_news(&self) -> bool {
        self.level == LineLevel::Error && ALWAYS_NEWS.contains(&self.message.as_str())
    }

    /// Why, without what differs from one to the next: numbers, except the codes of HTTP, and ids.
    pub fn cause(&self) -> String {
        let texts = CAUSES.iter().filter_map(|name| self.fields.get(*name)?.as_str());
        let text = texts.collect::<Vec<_>>().join("; ");
        let is_code =
            |word: &str| word.len() == 3 && word.starts_with(['4', '5']) && word.bytes().all(|it| it.is_ascii_digit());
        let differs = |word: &str| {
            let digits = word.bytes().filter(u8::is_ascii_digit).count();
            digits > 0 && !is_code(word) && (digits == word.len() || word.len() >= 6)
        };
        let mut words = String::new();
        for part in text.split_inclusive(|char: char| !char.is_alphanumeric()) {
            let word = part.trim_end_matches(|char: char| !char.is_alphanumeric());
            words.push_str(if differs(word) { "#" } else { word });
            words.push_str(&part[word.len()..]);
        }
        words.chars().take(MOST_CAUSE).collect()
    }
}

/// An agent has reached [`Budget::MOST`](super::Budget::MOST) of its day. Another day is news.
pub(crate) const BUDGET_SOON: &str = "an agent has used most of its budget of the day";

/// An agent has nothing left of its day.
pub(crate) const BUDGET_USED: &str = "an agent has used its budget of the day: it begins no run before the next";

/// Errors that are news each time.
const ALWAYS_NEWS: [&str; 3] = ["a panic", BUDGET_SOON, BUDGET_USED];

/// The fields that say why.
const CAUSES: [&str; 5] = ["error", "reason", "problem", "what", "location"];

/// How many characters of a cause tell it from others.
const MOST_CAUSE: usize = 200;

/// A line, as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct LogLineRecord {
    pub id: LineId,
    pub line: LogLine,
}

/// Which lines are listed, newest first.
#[derive(Clone, Debug, Default)]
pub struct LogLineFilter {
    /// Only lines at least as important as this; `None` for all.
    pub level: Option<LineLevel>,
    /// Only lines about these channels; `None` for all, and for what is about no channel.
    pub channels: Option<Vec<ChannelId>>,
    pub turn: Option<TurnId>,
    /// Only lines with this text in their message or fields, in any case of its ASCII letters.
    pub text: Option<String>,
    /// Only lines before this one: the cursor for the next page.
    pub before: Option<LineId>,
    /// The maximum number.
    pub limit: u32,
}

/// Errors or warnings that are equal: of the same level, module, message, channel and cause.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorRecord {
    pub id: i64,
    /// The position of the latest of them, which is the cursor for the next page.
    pub last_line: LineId,
    /// How important they are: [`LineLevel::Error`] or [`LineLevel::Warn`].
    pub level: LineLevel,
    /// The module that wrote them.
    pub target: String,
    /// What happened, in words.
    pub message: String,
    pub channel: Option<ChannelId>,
    pub count: u64,
    pub first_at: Timestamp,
    /// When the latest of them was written.
    pub last_at: Timestamp,
    /// The other fields of the latest.
    pub fields: Map<String, Value>,
    /// When an operator said that they have seen it; `None` for a panic that has happened again since.
    pub acknowledged_at: Option<Timestamp>,
    /// Whether no operator wants to hear of it. It is kept then, also without its lines.
    pub is_muted: bool,
}

/// What an operator says of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorMark {
    /// They have seen it: it is no news any more.
    Acknowledged,
    /// They do not want to hear of it.
    Muted,
    /// They want to hear of it again.
    Unmuted,
}

impl ErrorMark {
    pub(crate) const fn audit_action(self) -> &'static str {
        match self {
            Self::Acknowledged => "acknowledge_error",
            Self::Muted => "mute_error",
            Self::Unmuted => "unmute_error",
        }
    }
}

/// Which errors are listed, first those that happened last.
#[derive(Clone, Debug, Default)]
pub struct ErrorFilter {
    /// Only those about these channels; `None` for all, and for what is about no channel.
    pub channels: Option<Vec<ChannelId>>,
    pub id: Option<i64>,
    /// Only those of [`LineLevel::Error`] that no operator has acknowledged or muted and that happened since then.
    pub news_since: Option<Timestamp>,
    /// Only those whose latest line is before this one: the cursor for the next page.
    pub before: Option<LineId>,
    /// The maximum number.
    pub limit: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_differ_in_words_and_codes_and_not_in_ids_and_times() {
        let of = |error: &str| {
            let fields = Map::from_iter([("error".to_owned(), error.into())]);
            let (target, message) = ("rejoinder_core::worker".to_owned(), "failed".to_owned());
            let at = Timestamp::from_millis(0);
            LogLine { at, level: LineLevel::Error, target, message, channel: None, turn_id: None, fields }.cause()
        };

        assert_ne!(of("403 Forbidden: bot was blocked"), of("400 Bad Request: chat not found"));
        assert_ne!(of("502 Bad Gateway"), of("503 Service Unavailable"));
        assert_eq!(of("chat 12345 gave up after 31.4 s"), of("chat 987 gave up after 2.25 s"));
        assert_eq!(of("turn 0190a1b2-aaaa is lost"), of("turn 0190a1c9-aaaa is lost"));
    }
}
