//! Triggers: turns that the gateway begins in a conversation because of its messages.

use std::{sync::Arc, time::Duration};

use rejoinder_guard::Timestamp;

use crate::model::{
    agent::AgentName, event::InboundEvent, ids::TurnId, people::KnownPeople, routing::Condition, turn::TurnSeq,
    words::Words,
};

/// The minimum time after the last message for which messages are remembered.
const REMEMBERED: Duration = Duration::from_hours(1);

/// Puts a prompt before an agent when enough was said in a conversation, or nothing was for a time.
#[derive(Clone, Debug, PartialEq)]
pub struct ConversationTrigger {
    /// Its name. Unique.
    pub name: Arc<str>,
    /// For which conversations it is: all must hold for a message. Empty: for all.
    pub conditions: Vec<Condition>,
    /// After how many messages; `None`: their number does not matter.
    pub after_messages: Option<u32>,
    /// How long after the last message; `None`: time does not matter.
    pub idle: Option<Duration>,
    /// The shortest time between two turns in a conversation.
    pub cooldown: Duration,
    /// What the agent is told to do.
    pub prompt: Arc<str>,
    /// The agent, if not that of the conversation.
    pub agent: Option<AgentName>,
    /// Whether the agent owes nothing.
    pub quiet: bool,
    pub words: Words,
}

/// What was said in a conversation since a trigger last fired there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) messages: u32,
    pub(crate) last: TurnId,
    pub(crate) seq: TurnSeq,
    pub(crate) last_at: Timestamp,
    pub(crate) fired_at: Option<Timestamp>,
}

impl ConversationTrigger {
    pub(crate) fn is_for(&self, event: &InboundEvent, known: &KnownPeople) -> bool {
        self.conditions.iter().all(|condition| condition.holds(event, known))
    }

    /// When it fires if nothing more is said; `None` if it does not.
    pub(crate) fn due_at(&self, said: &Said) -> Option<Timestamp> {
        if said.messages == 0 {
            return None;
        }
        let by_number = self.after_messages.filter(|after| said.messages >= *after).map(|_| said.last_at);
        let by_time = self.idle.map(|idle| said.last_at + idle);
        let due = by_number.into_iter().chain(by_time).min()?;
        Some(said.fired_at.map_or(due, |fired_at| due.max(fired_at + self.cooldown)))
    }

    /// The end of that time, if it does not fire before: the store knows the messages, too.
    pub(crate) fn remembered_until(&self, said: &Said) -> Timestamp {
        let cooled_down = said.fired_at.map(|fired_at| fired_at + self.cooldown);
        cooled_down.map_or(said.last_at + REMEMBERED, |cooled_down| cooled_down.max(said.last_at + REMEMBERED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    fn mins(minutes: u64) -> Duration {
        Duration::from_mins(minutes)
    }

    fn due(after_messages: Option<u32>, idle: Option<u64>, messages: u32, fired: Option<u64>) -> Option<Duration> {
        let trigger = ConversationTrigger {
            name: "a test".into(),
            conditions: Vec::new(),
            after_messages,
            idle: idle.map(mins),
            cooldown: mins(60),
            prompt: "Sum it up.".into(),
            agent: None,
            quiet: true,
            words: Words::default(),
        };
        // Minutes before the last message.
        let (last_at, ago) = (START + mins(600), |ago| START + mins(600 - ago));
        let said = Said { messages, last: TurnId::new(last_at), seq: 1, last_at, fired_at: fired.map(ago) };
        trigger.due_at(&said).map(|due| due.since(last_at))
    }

    #[test]
    fn it_fires_when_enough_was_said_or_nothing_for_a_time() {
        assert_eq!(due(Some(3), None, 2, None), None);
        assert_eq!(due(Some(3), None, 3, None), Some(mins(0)));
        assert_eq!(due(Some(3), Some(30), 2, None), Some(mins(30)));
        assert_eq!(due(Some(3), Some(30), 3, None), Some(mins(0)));
        assert_eq!(due(None, Some(30), 0, None), None);
    }

    #[test]
    fn it_waits_until_it_has_cooled_down() {
        assert_eq!(due(Some(3), None, 3, Some(20)), Some(mins(40)));
        assert_eq!(due(Some(3), None, 3, Some(61)), Some(mins(0)));
        assert_eq!(due(None, Some(50), 1, Some(20)), Some(mins(50)));
    }
}
