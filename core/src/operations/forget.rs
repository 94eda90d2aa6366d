//! Erases what is stored about a person.

use std::time::Duration;

use super::{Farewell, Operations};
use crate::{
    model::{log::Subject, people::Identity},
    operator::{
        actor::{Actor, operation},
        error::OperationError,
    },
    ports::store::{housekeeping::Removal, transition::Transition},
};

/// The most rows of one step.
const STEP: u32 = 500;

/// The pause before another look at turns that have not ended.
const PAUSE: Duration = Duration::from_millis(200);

/// How far a person is forgotten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forgotten {
    /// How many turns were removed.
    pub turns: usize,
    /// How many turns could not be removed yet: their runs or deliveries go on.
    pub unended: usize,
    /// Whether nothing is left.
    pub is_done: bool,
}

impl Operations {
    /// Erases what is stored about a person. Gives up what is still owed to them. Returns after about `patience`, also if it
    /// is not done: the next call goes on.
    pub async fn forget(&self, person: &Identity, patience: Duration, by: Actor) -> Result<Forgotten, OperationError> {
        if !by.may(&person.channel) {
            return Err(OperationError::Unknown("there is no channel with this name"));
        }
        self.record(person, "begin_forget", &Actor { answer: None, ..by.clone() }).await?;
        self.calendar.forget(person).await?;
        let until = self.clock.now() + patience;
        self.forget_identity(person).await?;
        let mut forgotten = Forgotten::default();
        // Others may be told of them on other channels.
        let everywhere = Actor { channels: None, answer: None, ..by.clone() };
        for turn in self.store.unended_of(person).await? {
            match self.cancel(turn, Farewell::Silence, everywhere.clone()).await {
                // It has ended meanwhile, or only its callback is still to be delivered.
                Ok(()) | Err(OperationError::Unfit(_)) => {}
                Err(error) => return Err(error),
            }
        }
        loop {
            while let Some(removal) = self.store.stored_of(person, STEP).await? {
                let removed = if let Removal::Turns(ids) = &removal { ids.len() } else { 0 };
                self.store.remove(removal).await?;
                forgotten.turns += removed;
                if self.clock.now() > until {
                    return Ok(forgotten);
                }
            }
            forgotten.unended = self.store.unended_of(person).await?.len();
            if forgotten.unended == 0 {
                break;
            }
            if self.clock.now() > until {
                return Ok(forgotten);
            }
            self.clock.sleep(PAUSE).await;
        }
        self.store.remove(Removal::Mentions(person.clone())).await?;
        while self.store.scrub().await? {
            if self.clock.now() > until {
                return Ok(forgotten);
            }
        }
        self.record(person, "forget", &by).await?;
        forgotten.is_done = true;
        Ok(forgotten)
    }

    /// Writes an entry of the audit.
    async fn record(&self, person: &Identity, action: &str, by: &Actor) -> Result<(), OperationError> {
        let operation = operation(by, action, person, Subject::channel(&person.channel), self.clock.now());
        self.store.commit(Transition { operation: Some(operation), ..Transition::default() }).await?;
        Ok(())
    }
}
