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
}

impl Voice {
    /// An event's only file. `seconds`: how long it is, which is rounded; anything but a number of seconds is not known.
    pub fn lasting(seconds: Option<f64>) -> Self {
        let rounded = |seconds: f64| Duration::try_from_secs_f64(seconds + 0.5).ok().map(|time| time.as_secs());
        Self { file: 0, seconds: seconds.filter(|seconds| *seconds >= 0.0).and_then(rounded) }
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
        assert_eq!(Voice::lasting(given), Voice { file: 0, seconds });
    }
}
