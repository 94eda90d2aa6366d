//! What the person has answered in a turn, for the calls to come. No I/O.

use rejoinder_core::{ApprovalRequest, PersonAnswer, as_stored};

/// The answers of the person, each for one call.
pub(super) struct Answers {
    /// In the order in which they were given.
    untold: Vec<PersonAnswer>,
    told: Vec<PersonAnswer>,
}

impl Answers {
    /// Those that an agent has when its run begins.
    pub(super) fn of(answers: &[PersonAnswer]) -> Self {
        let mut untold = answers.to_vec();
        drop_superseded(&mut untold);
        Self { untold, told: Vec::new() }
    }

    /// Keeps an answer. `is_told`: whether a call has got it.
    pub(super) fn add(&mut self, answer: PersonAnswer, is_told: bool) {
        if is_told { self.told.push(answer) } else { self.untold.push(answer) }
    }

    /// Takes out the first answer to this question that no call has got.
    pub(super) fn take(&mut self, question: &ApprovalRequest) -> Option<PersonAnswer> {
        let stored = as_stored(question);
        let index = self.untold.iter().position(|answer| answer.question == stored)?;
        Some(self.untold.remove(index))
    }

    /// Somebody else has the run from now on, who has heard nothing.
    pub(super) fn begin_again(&mut self) {
        self.told.append(&mut self.untold);
        std::mem::swap(&mut self.told, &mut self.untold);
        drop_superseded(&mut self.untold);
    }
}

/// Drops each question that was not answered in time, if it was asked again: what became of that one counts.
fn drop_superseded(answers: &mut Vec<PersonAnswer>) {
    let mut later: Vec<ApprovalRequest> = Vec::new();
    let mut kept = Vec::with_capacity(answers.len());
    for answer in answers.drain(..).rev() {
        let is_superseded = answer.answer.is_none() && later.contains(&answer.question);
        later.push(answer.question.clone());
        if !is_superseded {
            kept.push(answer);
        }
    }
    answers.extend(kept.into_iter().rev());
}
