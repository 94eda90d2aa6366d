//! A message that was spoken.

use std::{fmt, str::FromStr, time::Duration};

use serde::{Deserialize, Serialize};

/// A voice note in a message: one of its files is a recording of what the person says, and not music or another file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Voice {
    /// Which of the event's files it is, counted from 0.
    pub file: usize,
    /// How long it is, as far as the platform says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// What became of the words in it.
    #[serde(default, skip_serializing_if = "Heard::is_not_tried")]
    pub heard: Heard,
    /// Why they could not be written down, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Unheard>,
}

named! {
    /// Which answers are spoken as well, below their text.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum VoiceMode {
        /// None.
        Off = "off",
        /// Those to voice notes.
        #[default]
        Reply = "reply",
        /// All.
        Always = "always",
    }
}

/// The text names no voice mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be `off`, `reply` or `always`")]
pub struct NotAVoiceMode;

impl FromStr for VoiceMode {
    type Err = NotAVoiceMode;

    fn from_str(text: &str) -> Result<Self, NotAVoiceMode> {
        Self::ALL.iter().copied().find(|mode| mode.as_str() == text).ok_or(NotAVoiceMode)
    }
}

impl VoiceMode {
    /// Whether the answer to a message is spoken; `is_voice`: to a voice note.
    pub(crate) const fn speaks(self, is_voice: bool) -> bool {
        match self {
            Self::Off => false,
            Self::Reply => is_voice,
            Self::Always => true,
        }
    }
}

/// What became of the words in a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Heard {
    /// Nobody has tried to write them down.
    #[default]
    NotTried,
    /// They are being written down. The turn does not begin before.
    Awaited,
    /// They are in the text of the event, after what the person wrote beside the recording.
    Words,
    /// They could not be written down.
    Failed,
}

/// Why a recording was not written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unheard {
    /// It is longer than recordings may be.
    TooLong,
    /// What may be written down on one day is used up.
    OverBudget,
    /// The platform did not give it, or it is too large.
    NoFile,
    /// No server is configured any more.
    NoServer,
    /// The server cannot be reached, or gave no usable answer.
    Failed,
    /// Nobody speaks in it.
    NoWords,
}

impl Unheard {
    /// The name that metrics use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TooLong => "too_long",
            Self::OverBudget => "over_budget",
            Self::NoFile => "no_file",
            Self::NoServer => "no_server",
            Self::Failed => "failed",
            Self::NoWords => "no_words",
        }
    }
}

/// As a part of a sentence, for operators.
impl fmt::Display for Unheard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "it is too long",
            Self::OverBudget => "what may be written down in a day is used up",
            Self::NoFile => "it could not be fetched",
            Self::NoServer => "no server is configured for that",
            Self::Failed => "the server gave no words",
            Self::NoWords => "nobody speaks in it",
        })
    }
}

/// How much of a day's bound on speech is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpeechUse {
    pub used: Duration,
    pub most: Duration,
}

/// How much was heard and spoken today, as far as that is bounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpeechOfToday {
    pub heard: Option<SpeechUse>,
    pub spoken: Option<SpeechUse>,
}

impl Heard {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_not_tried(&self) -> bool {
        *self == Self::NotTried
    }
}

impl Voice {
    /// An event's only file. `seconds`: how long it is, which is rounded; anything but a number of seconds is not known.
    pub fn lasting(seconds: Option<f64>) -> Self {
        let rounded = |seconds: f64| Duration::try_from_secs_f64(seconds + 0.5).ok().map(|time| time.as_secs());
        let seconds = seconds.filter(|seconds| *seconds >= 0.0).and_then(rounded);
        Self { file: 0, seconds, heard: Heard::NotTried, why: None }
    }

    /// The same in a turn that asks once more: what has no words yet may be written down this time.
    pub(crate) fn asked_again(self) -> Self {
        if self.heard == Heard::Words { self } else { Self { heard: Heard::NotTried, why: None, ..self } }
    }

    /// The same, whose words are in the text of its event. `seconds`: how long it is, if the platform does not say so.
    #[must_use]
    pub fn written_down(self, seconds: Option<u64>) -> Self {
        Self { heard: Heard::Words, why: None, seconds: self.seconds.or(seconds), ..self }
    }

    /// The same, whose words could not be written down.
    #[must_use]
    pub const fn failed(self, why: Unheard) -> Self {
        Self { heard: Heard::Failed, why: Some(why), ..self }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    #[rstest]
    #[case(Some(3.0), Some(3))]
    #[case(Some(2.6), Some(3))]
    #[case(Some(0.2), Some(0))]
    #[case(Some(-0.2), None)]
    #[case(Some(f64::NAN), None)]
    #[case(Some(1e300), None)]
    #[case(None, None)]
    fn a_time_is_in_whole_seconds_if_it_is_one(#[case] given: Option<f64>, #[case] seconds: Option<u64>) {
        assert_eq!(Voice::lasting(given), Voice { file: 0, seconds, heard: Heard::NotTried, why: None });
    }

    #[rstest]
    #[case(Heard::NotTried, json!({"file": 0}))]
    #[case(Heard::Awaited, json!({"file": 0, "heard": "awaited"}))]
    #[case(Heard::Words, json!({"file": 0, "heard": "words"}))]
    #[case(Heard::Failed, json!({"file": 0, "heard": "failed"}))]
    fn what_became_of_the_words_is_stored(#[case] heard: Heard, #[case] stored: Value) {
        let voice = Voice { heard, ..Voice::lasting(None) };

        assert_eq!(json!(voice), stored);
        assert_eq!(serde_json::from_value::<Voice>(stored).expect("it is read"), voice);
        let failed = voice.failed(Unheard::TooLong);
        assert_eq!(json!(failed), json!({"file": 0, "heard": "failed", "why": "too_long"}));
    }
}
