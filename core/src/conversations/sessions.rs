//! In which session a turn is, and what people have chosen for it.
//!
//! What is decided on sessions is stored only if none of the conversation or the person was changed since [`Sessions::seen`], so that
//! nobody continues in a session that another conversation deletes.

use std::sync::Arc;

use rejoinder_guard::{Attachment, Obligation, ObligationState};

use crate::{
    model::{
        AgentName, ChatKind, ConversationId, EventKind, Identity, InboundEvent, KnownPeople, PersonId, SenderKind,
        SessionChoice, SessionId, SessionSettings, SessionUse, TurnId, TurnRecord, Voice,
    },
    ports::{KnownConversation, Noun, Seen, SessionStore, StoreError},
};

/// Reads sessions.
pub(crate) struct Sessions {
    pub(crate) store: Arc<dyn SessionStore>,
}

/// A question that can be put before the agent again.
pub(crate) struct LastQuestion {
    pub(crate) session: SessionId,
    /// The turns that were answered together, in the order in which they came.
    pub(crate) turns: Vec<TurnRecord>,
}

impl LastQuestion {
    pub(crate) fn ids(&self) -> Vec<TurnId> {
        self.turns.iter().map(|turn| turn.id).collect()
    }

    /// Whether an answer may still come.
    pub(crate) fn is_open(&self) -> bool {
        self.turns.iter().any(|turn| is_open(&turn.obligation))
    }

    /// Whether the answer was to be sealed to a key, which nobody but the asker repeats.
    pub(crate) fn is_sealed(&self) -> bool {
        self.turns.iter().any(|turn| turn.event.seal_to.is_some())
    }

    /// What was asked.
    pub(crate) fn text(&self) -> String {
        let texts: Vec<&str> =
            self.turns.iter().map(|turn| turn.event.text.trim()).filter(|it| !it.is_empty()).collect();
        texts.join("\n\n")
    }

    /// The files that came with it.
    pub(crate) fn files(&self) -> Vec<Attachment> {
        self.turns.iter().flat_map(|turn| &turn.event.attachments).cloned().collect()
    }

    /// The question, as if it was asked by `event`.
    pub(crate) fn asked_by(&self, event: InboundEvent) -> InboundEvent {
        let first = self.turns.first().map(|turn| &turn.event);
        InboundEvent {
            said: Some(event.text),
            text: self.text(),
            attachments: self.files(),
            voice: first.and_then(|first| first.voice).map(Voice::asked_again),
            heard_by: first.and_then(|first| first.heard_by.clone()),
            quoted: first.and_then(|first| first.quoted.clone()),
            forwarded: first.and_then(|first| first.forwarded.clone()),
            kind: first.map_or(EventKind::Message, |first| match first.kind {
                EventKind::Unreadable => EventKind::Unreadable,
                _ => EventKind::Message,
            }),
            ..event
        }
    }
}

/// Whether an answer may still come.
pub(crate) fn is_open(obligation: &Obligation) -> bool {
    let is_settled = matches!(obligation.state(), ObligationState::Settled(_) | ObligationState::Undeliverable { .. });
    !is_settled || obligation.is_running()
}

impl Sessions {
    pub(crate) const fn new(store: Arc<dyn SessionStore>) -> Self {
        Self { store }
    }

    /// What a change in a conversation is decided on, whose sender uses the sessions of `person`: read before any session is.
    pub(crate) async fn seen(
        &self,
        conversation: ConversationId,
        person: Option<PersonId>,
    ) -> Result<Vec<Seen>, StoreError> {
        let mut seen = Vec::new();
        for noun in std::iter::once(Noun::SessionsIn(conversation)).chain(person.map(Noun::SessionsOf)) {
            seen.push(Seen { noun, version: self.store.version(noun).await? });
        }
        Ok(seen)
    }

    /// What is chosen for the current session of a conversation, as far as the operator allows it for messages that are
    /// routed to `routed`, and a remark about the rest.
    pub(crate) async fn chosen(
        &self,
        conversation: &KnownConversation,
        person: Option<PersonId>,
        routed: &AgentName,
        settings: &SessionSettings,
    ) -> Result<(SessionChoice, Option<String>), StoreError> {
        if !conversation.has_choice {
            return Ok(Default::default());
        }
        let current = self.store.current_session(conversation.id, person).await?;
        let choice = current.map(|(_, choice)| choice).unwrap_or_default();
        Ok(settings.allowed(choice, routed))
    }

    /// The last question of the current session, with everything that was answered together with it. In a group only what
    /// the sender of `event` asked. `with_unanswered`: also one that has no answer, as far as it was asked in this
    /// conversation.
    pub(crate) async fn last_question(
        &self,
        event: &InboundEvent,
        conversation: ConversationId,
        person: Option<PersonId>,
        with_unanswered: bool,
    ) -> Result<Option<LastQuestion>, StoreError> {
        let Some((session, _)) = self.store.current_session(conversation, person).await? else { return Ok(None) };
        let by: Option<Identity> = (event.chat == ChatKind::Group).then(|| event.identity());
        let here = with_unanswered.then_some(conversation);
        let Some(last) = self.store.last_question(session, here, by.as_ref()).await? else { return Ok(None) };
        let first = match last.obligation.merged_into().and_then(|into| into.parse().ok()) {
            Some(into) => self.store.turn(into).await?,
            None => None,
        };
        let first = first.unwrap_or_else(|| last.clone());
        let mut turns = Vec::new();
        for merged in first.obligation.merged_turns() {
            let Ok(id) = merged.turn.parse() else { continue };
            turns.extend(self.store.readable_turn(id).await?);
        }
        turns.insert(0, first);
        if turns.iter().all(|turn| turn.id != last.id) {
            turns = vec![last];
        }
        Ok(Some(LastQuestion { session, turns }))
    }
}

/// Whose sessions the sender of an event uses: their own, if they are known and write in a direct chat, or in a conversation that
/// they have linked.
pub(crate) fn session_person(event: &InboundEvent, known: &KnownPeople) -> Option<PersonId> {
    let is_theirs =
        event.chat == ChatKind::Direct && matches!(event.sender.kind, SenderKind::Person | SenderKind::KeyHolder);
    is_theirs.then(|| known.person(&event.conversation.channel, event.person())).flatten()
}

/// In which session a turn of an event is.
pub(crate) fn session_of(event: &InboundEvent, known: &KnownPeople, id: SessionId) -> SessionUse {
    let is_checked = event.chat == ChatKind::Direct && event.sender.kind.is_human();
    SessionUse {
        person: session_person(event, known),
        is_checked,
        is_untouched: event.is_on_copy(),
        ..SessionUse::current(id)
    }
}
