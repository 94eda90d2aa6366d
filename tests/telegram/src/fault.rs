//! Faults: failures on demand.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::ApiError;

/// A failure of the next matching calls.
///
/// ```
/// # use rejoinder_telegram_double::Fault;
/// Fault::lost_answer().on("sendMessage").times(2);
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Fault {
    /// What happens.
    pub effect: Effect,
    /// Applies only to this method, in any case; downloads are `file`.
    #[serde(default)]
    pub method: Option<String>,
    /// Applies only to calls with this chat id.
    #[serde(default)]
    pub chat: Option<i64>,
    /// Applies only to calls whose `text` contains this.
    #[serde(default)]
    pub words: Option<String>,
    /// Applies only to calls whose `text` does not contain this.
    #[serde(default)]
    pub other_words: Option<String>,
    /// How many calls it affects; `None` is unlimited.
    #[serde(default = "once")]
    pub times: Option<u32>,
}

/// The effect of a fault.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Executed; the connection closes without a response.
    LostAnswer,
    /// Not executed; the connection is reset.
    Reset,
    /// Not executed; responds with this HTTP status.
    ErrorBefore(u16),
    /// Not executed; responds with this HTTP status and a page, as a proxy in front of the server does.
    PageBefore(u16),
    /// Executed; responds with this HTTP status.
    ErrorAfter(u16),
    /// Executed after this many milliseconds.
    Late(u64),
    /// Executed at once; responds after this many milliseconds.
    SlowAnswer(u64),
    /// Not executed; responds with this error.
    Refuse(ApiError),
    /// Not executed; no response until the faults are removed.
    Stall,
}

#[expect(clippy::unnecessary_wraps, reason = "the default of an optional field")]
fn once() -> Option<u32> {
    Some(1)
}

impl Fault {
    fn new(effect: Effect) -> Self {
        Self { effect, method: None, chat: None, words: None, other_words: None, times: once() }
    }

    /// Executed; the connection closes without a response.
    #[must_use]
    pub fn lost_answer() -> Self {
        Self::new(Effect::LostAnswer)
    }

    /// Not executed; the connection is reset.
    #[must_use]
    pub fn reset() -> Self {
        Self::new(Effect::Reset)
    }

    /// Not executed; responds with this HTTP status.
    #[must_use]
    pub fn error_before(status: u16) -> Self {
        Self::new(Effect::ErrorBefore(status))
    }

    /// Not executed; responds with this HTTP status and a page, as a proxy in front of the server does.
    #[must_use]
    pub fn page_before(status: u16) -> Self {
        Self::new(Effect::PageBefore(status))
    }

    /// Executed; responds with this HTTP status.
    #[must_use]
    pub fn error_after(status: u16) -> Self {
        Self::new(Effect::ErrorAfter(status))
    }

    /// Executed after this time.
    #[must_use]
    pub fn late(time: Duration) -> Self {
        Self::new(Effect::Late(millis(time)))
    }

    /// Executed at once; responds after this time.
    #[must_use]
    pub fn slow_answer(time: Duration) -> Self {
        Self::new(Effect::SlowAnswer(millis(time)))
    }

    /// Rejected with this error.
    #[must_use]
    pub fn refuse(error: ApiError) -> Self {
        Self::new(Effect::Refuse(error))
    }

    /// Rejected with a 429 and this `retry_after` in seconds.
    #[must_use]
    pub fn too_many(retry_after: u64) -> Self {
        Self::refuse(ApiError::too_many(retry_after))
    }

    /// No response until the faults are removed.
    #[must_use]
    pub fn stall() -> Self {
        Self::new(Effect::Stall)
    }

    /// Restricts it to this method.
    #[must_use]
    pub fn on(mut self, method: &str) -> Self {
        self.method = Some(method.to_owned());
        self
    }

    /// Restricts it to calls with this chat id.
    #[must_use]
    pub fn in_chat(mut self, chat: i64) -> Self {
        self.chat = Some(chat);
        self
    }

    /// Restricts it to calls whose text contains this.
    #[must_use]
    pub fn saying(mut self, words: &str) -> Self {
        self.words = Some(words.to_owned());
        self
    }

    /// Restricts it to calls whose text does not contain this.
    #[must_use]
    pub fn not_saying(mut self, words: &str) -> Self {
        self.other_words = Some(words.to_owned());
        self
    }

    /// Limits how many calls it affects.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    /// Affects all calls until the faults are removed.
    #[must_use]
    pub fn forever(mut self) -> Self {
        self.times = None;
        self
    }

    fn hits(&self, method: &str, chat: Option<i64>, text: &str) -> bool {
        self.method.as_deref().is_none_or(|it| it.eq_ignore_ascii_case(method))
            && self.chat.is_none_or(|it| chat == Some(it))
            && self.words.as_deref().is_none_or(|it| text.contains(it))
            && self.other_words.as_deref().is_none_or(|it| !text.contains(it))
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Effect {
    /// Its name in the call log.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::LostAnswer => "lost_answer",
            Self::Reset => "reset",
            Self::ErrorBefore(_) => "error_before",
            Self::PageBefore(_) => "page_before",
            Self::ErrorAfter(_) => "error_after",
            Self::Late(_) => "late",
            Self::SlowAnswer(_) => "slow_answer",
            Self::Refuse(_) => "refuse",
            Self::Stall => "stall",
        }
    }
}

/// The active faults.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<Fault>);

impl Faults {
    pub(crate) fn add(&mut self, fault: Fault) {
        if fault.times != Some(0) {
            self.0.push(fault);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Takes the effect of the first fault that matches this call, and counts it.
    pub(crate) fn take(&mut self, method: &str, chat: Option<i64>, text: &str) -> Option<Effect> {
        let at = self.0.iter().position(|fault| fault.hits(method, chat, text))?;
        let fault = &mut self.0[at];
        let effect = fault.effect.clone();
        match &mut fault.times {
            Some(1) => drop(self.0.remove(at)),
            Some(times) => *times -= 1,
            None => (),
        }
        Some(effect)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}
