//! Messages in the conversations with triggers. Memory holds the conversations with recent messages; the store knows
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

/// The messages of conversations, as far as they are known.
#[derive(Default)]
pub(crate) struct Activity {
    messages: Mutex<HeardMessages>,
    changed: Notify,
}

/// The messages of a conversation, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Heard {
    /// Some messages: the store must be asked for them.
    #[default]
    Something,
    /// All messages.
    All(Said),
}

impl Heard {
    /// With one more message: a turn, its position, and when it was accepted.
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
struct HeardMessages {
    said: HashMap<Watched, Heard>,
    /// The conversations with news.
    changed: HashSet<Watched>,
    /// The conversations whose turn could not be begun, of which the operator was told.
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
            let mut all = self.messages();
            let heard = all.said.entry(watched.clone()).or_default();
            *heard = heard.with(turn.id, turn.seq, at);
            all.changed.insert(watched);
            self.changed.notify_one();
        }
    }

    /// The store must be asked for the messages there.
    pub(crate) fn ask_about(&self, watched: Watched) {
        let mut all = self.messages();
        all.said.entry(watched.clone()).or_default();
        all.changed.insert(watched);
    }

    /// The same if its messages are known, of which some may be missing.
    pub(crate) fn ask_anew_about(&self, watched: Watched) {
        let mut all = self.messages();
        all.said.insert(watched.clone(), Heard::Something);
        all.changed.insert(watched);
    }

    /// Forgets a conversation until the next message there.
    pub(crate) fn forget(&self, watched: &Watched) {
        let mut all = self.messages();
        all.said.remove(watched);
        all.blocked.remove(watched);
    }

    /// The store's answer. If a message came since it was [forgotten](Self::forget), the store must be asked again.
    pub(crate) fn learn(&self, watched: &Watched, said: Said) {
        self.messages().said.entry(watched.clone()).or_insert(Heard::All(said));
    }

    /// A trigger fired because of the messages until then.
    pub(crate) fn fired(&self, watched: &Watched, because: &Said, at: Timestamp) {
        let mut all = self.messages();
        all.blocked.remove(watched);
        if let Some(Heard::All(said)) = all.said.get_mut(watched) {
            let messages = said.messages.saturating_sub(because.messages);
            *said = Said { messages, fired_at: Some(at), ..*said };
        }
    }

    /// Its turn could not be begun. `true` if that is new.
    pub(crate) fn blocked(&self, watched: &Watched) -> bool {
        self.messages().blocked.insert(watched.clone())
    }

    /// Its messages; `None`: none came since it was forgotten.
    pub(crate) fn heard(&self, watched: &Watched) -> Option<Heard> {
        self.messages().said.get(watched).copied()
    }

    /// The conversations with news since the last call.
    pub(crate) fn take_changed(&self) -> HashSet<Watched> {
        mem::take(&mut self.messages().changed)
    }

    /// Waits for news since the last call of [`take_changed`](Self::take_changed).
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    fn messages(&self) -> MutexGuard<'_, HeardMessages> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether it is a message of a human sender: triggers count nothing else.
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
