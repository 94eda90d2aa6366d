//! The only place where obligations change.
//!
//! Everything that happens to a turn comes here as an event: the guard decides on it, the decision is stored
//! in one transaction by compare-and-swap, and it is acted on only after it was stored. If the swap fails, the
//! turn is read again and the guard decides again.

pub(crate) mod consequences;
pub(crate) mod persistence;
pub(crate) mod transaction;
pub(crate) mod trigger;

use std::sync::Arc;

use rejoinder_guard::Event;

use self::{
    consequences::Followers,
    transaction::{Terms, Transaction},
    trigger::{Decided, Step, Trigger},
};
use crate::{
    crash::crash_point,
    ledger::persistence::Persistence,
    lifecycle::Lifecycle,
    model::{ids::TurnId, turn::TurnRecord},
    ports::{
        clock::SharedClock,
        store::{
            Store, StoreError,
            transition::{Commit, DeliveryChange, Transition},
        },
    },
};

/// Lets the guard decide, stores the decision, and passes it to the followers.
pub(crate) struct Ledger {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: SharedClock,
    pub(crate) terms: Terms,
    pub(crate) followers: Followers,
    pub(crate) lifecycle: Lifecycle,
}

impl Ledger {
    /// Lets the guard decide on an event of one turn, and stores the decision. Updates `turn` to what is stored.
    pub(crate) async fn decide(
        &self,
        turn: &mut TurnRecord,
        event: Event,
        trigger: Trigger,
    ) -> Result<Decided, StoreError> {
        self.decide_on(turn, vec![event], trigger).await
    }

    /// As [`decide`](Self::decide), on several events.
    pub(crate) async fn decide_on(
        &self,
        turn: &mut TurnRecord,
        events: Vec<Event>,
        trigger: Trigger,
    ) -> Result<Decided, StoreError> {
        let mut steps = [Step { turn: turn.clone(), events }];
        let decided = self.decide_all(&mut steps, &trigger).await;
        let [step] = steps;
        *turn = step.turn;
        Ok(decided?.pop().unwrap_or_default())
    }

    /// As [`decide`](Self::decide), and retries until it is stored. `None` if that was given up (see [`Persistence`]):
    /// the turn's stored deadline ends it then.
    pub(crate) async fn decide_until_stored(
        &self,
        turn: &mut TurnRecord,
        event: Event,
        trigger: Trigger,
    ) -> Option<Decided> {
        let mut persistence = self.persist("an event of a turn", turn.id);
        loop {
            match self.decide(turn, event.clone(), trigger.clone()).await {
                Ok(decided) => return Some(decided),
                Err(error) if persistence.tries_again(&error).await => {}
                Err(_) => return None,
            }
        }
    }

    /// The retries for something of `turn` that must be stored; `what` names it in log lines.
    pub(crate) fn persist(&self, what: &'static str, turn: TurnId) -> Persistence {
        Persistence::new(what, turn, self.lifecycle.clone())
    }

    /// Decides on several turns in one transaction, and again after each conflict.
    pub(crate) async fn decide_all(&self, steps: &mut [Step], trigger: &Trigger) -> Result<Vec<Decided>, StoreError> {
        loop {
            if let Some(decided) = self.try_to_decide(steps, trigger).await? {
                return Ok(decided);
            }
            for step in &mut *steps {
                step.turn = self.turn(step.turn.id).await?;
            }
        }
    }

    /// As [`decide_all`](Self::decide_all), but tries once; `None` if one of the turns was changed meanwhile.
    pub(crate) async fn try_to_decide(
        &self,
        steps: &mut [Step],
        trigger: &Trigger,
    ) -> Result<Option<Vec<Decided>>, StoreError> {
        let mut transaction = Transaction::new(&self.terms, trigger, self.clock.now());
        let outcomes: Vec<_> = steps.iter().map(|step| transaction.decide(step)).collect();
        let transition = transaction.into_transition();
        if !transition.is_empty() && !self.commit(transition).await? {
            return Ok(None);
        }
        let mut decided = Vec::with_capacity(steps.len());
        for (step, outcome) in steps.iter_mut().zip(outcomes) {
            decided.push(outcome.decided);
            if let Some(next) = outcome.next {
                let before = std::mem::replace(&mut step.turn, next);
                self.followers.follow(&before, &step.turn, outcome.consequences);
            }
        }
        Ok(Some(decided))
    }

    /// Stores a trigger that needs no decision.
    pub(crate) async fn record(&self, trigger: Trigger) -> Result<(), StoreError> {
        self.decide_all(&mut [], &trigger).await.map(drop)
    }

    /// Stores a change of a delivery that needs no decision.
    pub(crate) async fn change_delivery(&self, change: DeliveryChange) -> Result<(), StoreError> {
        let transition = Transition { delivery_changes: vec![change], ..Transition::default() };
        self.store.commit(transition).await.map(drop)
    }

    /// Reads a turn that must exist.
    pub(crate) async fn turn(&self, turn: TurnId) -> Result<TurnRecord, StoreError> {
        self.store.turn(turn).await?.ok_or_else(|| StoreError::Corrupt(format!("turn {turn} is gone")))
    }

    /// `false` if a turn was changed meanwhile.
    async fn commit(&self, transition: Transition) -> Result<bool, StoreError> {
        #[cfg(feature = "crash-points")]
        let claims = transition.deliveries.iter().any(|delivery| !delivery.record().is_draft());
        crash_point!("before_commit" if claims);
        let is_done = self.store.commit(transition).await? == Commit::Done;
        crash_point!("after_commit" if claims && is_done);
        Ok(is_done)
    }
}
