//! Erases what is stored about a person.

use std::{sync::Arc, time::Duration};

use rejoinder_guard::Timestamp;

use super::{Farewell, Operations};
use crate::{
    base::conflicts::decide_anew,
    model::{Identity, PeopleChange, Subject},
    operator::{actor::Actor, error::OperationError},
    people::People,
    ports::{AgentSessionStore, HousekeepingStore, Removal, SharedClock, StoreError, StoreState, Transition},
    schedules::Calendar,
};

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

/// Erases what is stored about people.
pub struct Erasure {
    pub(crate) store: Arc<dyn HousekeepingStore>,
    pub(crate) agent_sessions: Arc<dyn AgentSessionStore>,
    pub(crate) state: Arc<dyn StoreState>,
    pub(crate) operations: Arc<Operations>,
    pub(crate) calendar: Arc<Calendar>,
    pub(crate) people: Arc<People>,
    pub(crate) clock: SharedClock,
}

impl Erasure {
    /// Erases what is stored about a person. Gives up what is still owed to them. Returns after about `patience`, also if it
    /// is not done: the next call goes on.
    pub async fn forget(&self, person: &Identity, patience: Duration, by: Actor) -> Result<Forgotten, OperationError> {
        if !by.may(&person.channel) {
            return Err(OperationError::Unknown("there is no channel with this name"));
        }
        let subject = || Subject::channel(&person.channel);
        let begun_by = Actor { answer: None, ..by.clone() };
        self.operations.record(&begun_by, "begin_forget", person, subject()).await?;
        self.calendar.forget(person).await?;
        let until = self.clock.now() + patience;
        decide_anew!({
            let people = vec![PeopleChange::IdentityRemoved(person.clone())];
            let transition = Transition { people, ..Transition::default() };
            self.people.change(self.people.seen(), transition).await?.then_some(())
        })?;
        let mut forgotten = Forgotten::default();
        // Others may be told of them on other channels.
        let everywhere = Actor { channels: None, answer: None, ..by.clone() };
        for turn in self.store.unended_of(person).await? {
            match self.operations.cancel(turn, Farewell::Silence, everywhere.clone()).await {
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
        self.wait_for_agents(until).await?;
        while self.store.scrub().await? {
            if self.clock.now() > until {
                return Ok(forgotten);
            }
        }
        self.operations.record(&by, "forget", person, subject()).await?;
        forgotten.is_done = true;
        Ok(forgotten)
    }

    /// Waits until agents were told, or could not be: what they call sessions is gone before removed rows are overwritten.
    async fn wait_for_agents(&self, until: Timestamp) -> Result<(), StoreError> {
        let mut noticed = self.state.noticed();
        while !self.agent_sessions.agent_notices(self.clock.now(), 1).await?.is_empty() {
            tokio::select! {
                Ok(()) = noticed.changed() => {}
                () = self.clock.sleep(until.since(self.clock.now())) => break,
            }
        }
        Ok(())
    }
}
