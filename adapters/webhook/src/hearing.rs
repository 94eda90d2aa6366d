//! Has recordings written down while their callers wait.

use std::time::Duration;

use rejoinder_core::Intake;
use tracing::warn;

use crate::{WebhookAdapter, inbound::CheckedMessage};

/// What is left of a caller's wait at least for the answer: enough to say that it takes longer.
pub(crate) const LEFT: Duration = Duration::from_secs(1);

/// How long writing down takes at most for a caller who does not wait for the answer.
const UNWAITED: Duration = Duration::from_secs(25);

impl WebhookAdapter {
    /// The message with the words of its recording, if it is one, and what is left of the wait of its caller.
    pub(crate) async fn heard(
        &self,
        message: CheckedMessage,
        wait: Duration,
        intake: &Intake,
    ) -> (CheckedMessage, Duration) {
        let recording =
            self.speech.transcriber.as_ref().and_then(|transcriber| Some((transcriber, message.recording()?)));
        let Some((transcriber, recording)) = recording else { return (message, wait) };
        let began = self.clock.now();
        let most = if wait.is_zero() { UNWAITED } else { wait.saturating_sub(LEFT).max(LEFT) };
        // Apart from what may be given up: a write to the store may not.
        let written = match intake.may_be_heard(&recording, transcriber.as_ref()).await {
            Ok(true) => tokio::select! {
                written = transcriber.transcribe(recording) => written.map_err(|error| error.summary()),
                () = self.clock.sleep(most) => Err(format!("the caller waits no longer than {most:?} for it")),
            },
            Ok(false) => Err("it is too long, or what may be written down in a day is used up".to_owned()),
            Err(error) => Err(error.to_string()),
        };
        let words = match written {
            Ok(words) => Some(words.replace('\0', "")).filter(|words| !words.trim().is_empty()),
            Err(error) => {
                warn!(channel = %self.channel, %error, "what was spoken is not written down");
                None
            }
        };
        let took = self.clock.now().since(began);
        let left = if wait.is_zero() { wait } else { wait.saturating_sub(took).max(LEFT) };
        (message.heard(words), left)
    }
}
