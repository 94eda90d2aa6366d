//! Has answers spoken for callers who want sound.

use std::time::Duration;

use rejoinder_core::{Sound, SoundFormat};
use rejoinder_kit::Format;
use tracing::warn;

use crate::{WebhookAdapter, hearing::LEFT};

/// How much of a caller's wait is left for speaking, at least.
pub(crate) const SPEAKING: Duration = Duration::from_secs(3);

/// The longest text that is spoken, in bytes: ten minutes or so.
const MOST: usize = 10_000;

/// How much of a caller's wait is for the answer itself: in sound, the rest is for speaking it.
pub(crate) fn patience(format: Format, wait: Duration) -> Duration {
    if matches!(format, Format::Sound(_)) && !wait.is_zero() { wait.saturating_sub(SPEAKING).max(LEFT) } else { wait }
}

impl WebhookAdapter {
    /// The sound of a text, if it is made within this time.
    pub(crate) async fn spoken(&self, text: &str, format: SoundFormat, most: Duration) -> Option<Sound> {
        let synthesizer = self.speech.synthesizer.as_ref().filter(|_| text.len() <= MOST && !text.trim().is_empty())?;
        let spoken = tokio::select! {
            spoken = synthesizer.synthesize(text, format) => spoken.map_err(|error| error.summary()),
            () = self.clock.sleep(most) => Err(format!("the caller waits no longer than {most:?} for it")),
        };
        spoken.inspect_err(|error| warn!(channel = %self.channel, %error, "an answer is not spoken")).ok()
    }
}

#[cfg(test)]
mod tests {
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
