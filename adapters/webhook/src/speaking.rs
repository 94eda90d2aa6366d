//! How long callers wait who want sound.

use std::time::Duration;

use rejoinder_kit::Format;

use crate::hearing::LEFT;

/// How much of a caller's wait is left for speaking, at least.
pub(crate) const SPEAKING: Duration = Duration::from_secs(3);

/// How much of a caller's wait is for the answer itself: in sound, the rest is for speaking it.
pub(crate) fn patience(format: Format, wait: Duration) -> Duration {
    if matches!(format, Format::Sound(_)) && !wait.is_zero() { wait.saturating_sub(SPEAKING).max(LEFT) } else { wait }
}

#[cfg(test)]
mod tests {
    use rejoinder_core::SoundFormat;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(Format::Sound(SoundFormat::Mp3), 25, 22)]
    #[case(Format::Sound(SoundFormat::Opus), 2, 1)]
    #[case(Format::Sound(SoundFormat::Wav), 0, 0)]
    #[case(Format::Text, 25, 25)]
    fn who_wants_sound_gets_it_within_the_wait(#[case] format: Format, #[case] wait: u64, #[case] patience: u64) {
        let secs = Duration::from_secs;

        assert_eq!(super::patience(format, secs(wait)), secs(patience));
    }
}
