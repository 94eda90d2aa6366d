//! A message that was spoken.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// That a message is a voice note, whose file is a recording of what the person says, and not music or another file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Voice {
    /// Which of the event's files it is, counted from 0.
    pub file: usize,
    /// How long it is, as far as the platform says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// Whether its words are known.
    #[serde(default, skip_serializing_if = "is_not_tried")]
    pub heard: Heard,
}

/// What became of the words of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Heard {
    /// Nobody has tried to write them down.
    #[default]
    NotTried,
    /// They are the text of the message.
    Words,
    /// They could not be written down.
    Failed,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_not_tried(heard: &Heard) -> bool {
    matches!(heard, Heard::NotTried)
}

impl Voice {
    /// An event's only file. `seconds`: how long it is, which is rounded; anything but a number of seconds is not known.
    pub fn lasting(seconds: Option<f64>) -> Self {
        let rounded = |seconds: f64| Duration::try_from_secs_f64(seconds + 0.5).ok().map(|time| time.as_secs());
        let seconds = seconds.filter(|seconds| *seconds >= 0.0).and_then(rounded);
        Self { file: 0, seconds, heard: Heard::default() }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

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
        assert_eq!(Voice::lasting(given), Voice { file: 0, seconds, heard: Heard::NotTried });
    }
}
