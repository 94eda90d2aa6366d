//! What is said in the conversations that have triggers. In memory, of those in which something was said lately: the store knows
//! the rest.

use std::{
    cmp::Ordering,
    collections::{HashMap, HashSet},
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rejoinder_guard::Timestamp;
use tokio::sync::Notify;

use crate::model::{
    ConversationRef, ConversationTrigger, EventKind, InboundEvent, KnownPeople, Said, TurnId, TurnRecord, TurnSeq,
};

/// A trigger, by its name, in a conversation.
pub(crate) type Watched = (Arc<str>, ConversationRef);

/// What is known of conversations.
#[derive(Default)]
pub(crate) struct Activity {
    known: Mutex<Known>,
    changed: Notify,
}

/// What is known of what was said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Heard {
    /// Something, and the store is to be asked what.
    #[default]
    Something,
    /// All of it.
    All(Said),
}

impl Heard {
    /// With one more message: a turn, its place, and when it was accepted.
    fn with(self, turn: TurnId, seq: TurnSeq, at: Timestamp) -> Self {
        let Self::All(said) = self else { return self };
        match seq.cmp(&said.seq) {
            Ordering::Greater => Self::All(Said { messages: said.messages + 1, last: turn, seq, last_at: at, ..said }),
            // The store has told of it.
            Ordering::Equal => self,
            // The store may have told of it, or a later one was noted first.
            Ordering::Less => Self::Something,
        }
    }
}

#[derive(Default)]
struct Known {
    said: HashMap<Watched, Heard>,
    /// Those of which something new is known.
    changed: HashSet<Watched>,
    /// Those whose turn could not be begun, and which the operator was told of.
    blocked: HashSet<Watched>,
}

impl Activity {
    /// A message was accepted.
    pub(crate) fn note(
        &self,
        turn: &TurnRecord,
        triggers: &[ConversationTrigger],
        people: &KnownPeople,
        at: Timestamp,
    ) {
        if triggers.is_empty() || turn.handler.is_gateway() || !is_said(&turn.event) {
            return;
        }
        for trigger in triggers.iter().filter(|trigger| trigger.is_for(&turn.event, people)) {
            let watched = (Arc::clone(&trigger.name), turn.event.conversation.clone());
            let mut known = self.known();
            let heard = known.said.entry(watched.clone()).or_default();
            *heard = heard.with(turn.id, turn.seq, at);
            known.changed.insert(watched);
            self.changed.notify_one();
        }
    }

    /// The store is to be asked what was said there.
    pub(crate) fn ask_about(&self, watched: Watched) {
        let mut known = self.known();
        known.said.entry(watched.clone()).or_default();
        known.changed.insert(watched);
    }

    /// Nothing needs to be known of it, unless something is said there from now on.
    pub(crate) fn forget(&self, watched: &Watched) {
        let mut known = self.known();
        known.said.remove(watched);
        known.blocked.remove(watched);
    }

    /// What the store says. If something was said since it was [forgotten](Self::forget), the store is to be asked again.
    pub(crate) fn learn(&self, watched: &Watched, said: Said) {
        self.known().said.entry(watched.clone()).or_insert(Heard::All(said));
    }

    /// A trigger fired because of what was said until then.
    pub(crate) fn fired(&self, watched: &Watched, because: &Said, at: Timestamp) {
        let mut known = self.known();
        known.blocked.remove(watched);
        if let Some(Heard::All(said)) = known.said.get_mut(watched) {
            let messages = said.messages.saturating_sub(because.messages);
            *said = Said { messages, fired_at: Some(at), ..*said };
        }
    }

    /// Its turn could not be begun. `true` if that is new.
    pub(crate) fn blocked(&self, watched: &Watched) -> bool {
        self.known().blocked.insert(watched.clone())
    }

    /// What is known of it; `None`: nothing was said since it was forgotten.
    pub(crate) fn heard(&self, watched: &Watched) -> Option<Heard> {
        self.known().said.get(watched).copied()
    }

    /// Those of which something new is known since this was last called.
    pub(crate) fn take_changed(&self) -> HashSet<Watched> {
        mem::take(&mut self.known().changed)
    }

    /// Something was said since [`take_changed`](Self::take_changed) was last called.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether somebody said something: triggers count that alone.
fn is_said(event: &InboundEvent) -> bool {
    event.sender.kind.is_human() && matches!(event.kind, EventKind::Message | EventKind::Choice { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    /// Two messages are stored, then the store is asked, then both are noted, in any order.
    #[test]
    fn what_the_store_has_told_of_is_not_counted_again() {
        let (turn, at) = (TurnId::new(START), START);
        let told = Heard::All(Said { messages: 2, last: turn, seq: 8, last_at: at, fired_at: None });

        assert_eq!(told.with(turn, 8, at), told);
        assert_eq!(told.with(turn, 7, at).with(turn, 8, at), Heard::Something, "the store is asked again");
        let Heard::All(more) = told.with(turn, 9, at) else { panic!("it is known how many") };
        assert_eq!((more.messages, more.seq), (3, 9));
    }
}
