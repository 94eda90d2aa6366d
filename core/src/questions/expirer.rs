//! Closes questions that nobody answered in time.

use std::sync::Arc;

use rejoinder_guard::Timestamp;
use tracing::warn;

use super::open_questions::{OpenQuestions, PAGE};
use crate::{
    base::{lifecycle::Lifecycle, pauses},
    model::{LiveSettings, QuestionFilter, QuestionRecord, TurnId},
    nodes::leases::Leases,
    notices::expired,
    ports::{Inlet, IntakeError, QuestionStore, SharedClock},
};

/// Closes the questions that nobody picked from in time, and says so in their conversations. Both are one row's change: a
/// crash before it changes nothing, and after it nothing is left to do.
pub(crate) struct Expirer {
    pub(crate) store: Arc<dyn QuestionStore>,
    pub(crate) questions: Arc<OpenQuestions>,
    pub(crate) inlet: Arc<dyn Inlet>,
    pub(crate) leases: Arc<Leases>,
    pub(crate) settings: LiveSettings,
    pub(crate) clock: SharedClock,
}

impl Expirer {
    /// Closes each question when it expires, until it is stopped.
    pub(crate) async fn run(self: Arc<Self>, lifecycle: Lifecycle) {
        loop {
            let next = match self.close_due().await {
                Ok(next) => next,
                Err(error) => {
                    if !error.is_move() {
                        warn!(%error, "cannot close the questions that have expired, retrying");
                    }
                    Some(self.clock.now())
                }
            };
            // What is due already was not closed, or there are many: neither is tried without a pause.
            let next = next.map(|at| at.max(self.clock.now() + pauses::READ_AGAIN));
            tokio::select! {
                () = self.clock.sleep_until_next(next) => {}
                () = self.questions.expiring.notified() => {}
                () = lifecycle.stopping.cancelled() => return,
            }
        }
    }

    /// Closes the questions that have expired. Returns when the next one expires.
    async fn close_due(&self) -> Result<Option<Timestamp>, IntakeError> {
        let now = self.clock.now();
        for QuestionRecord { question, .. } in self.store.questions(QuestionFilter::DueAt(now), PAGE).await? {
            let told = self.questions.told_of_expiry(&question, &self.settings.get()).await?;
            let notice = (TurnId::new(now), expired(&question, told, now));
            let beside = self.leases.housekeeping()?.beside();
            self.inlet.accept(&question.address.channel, vec![notice], beside).await?;
        }
        Ok(self.store.next_question_expiry().await?)
    }
}
