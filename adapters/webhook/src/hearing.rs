//! Has recordings written down while their callers wait.

use std::time::Duration;

use rejoinder_core::Intake;

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
        intake: &Intake,
        wait: Duration,
    ) -> (CheckedMessage, Duration) {
        let recording = intake.hears().then(|| message.recording()).flatten();
        let Some(recording) = recording else { return (message, wait) };
        let began = self.clock.now();
        let most = if wait.is_zero() { UNWAITED } else { wait.saturating_sub(LEFT).max(LEFT) };
        let heard = intake.hear(recording, most).await;
        let took = self.clock.now().since(began);
        let left = if wait.is_zero() { wait } else { wait.saturating_sub(took).max(LEFT) };
        (message.heard(heard), left)
    }
}
