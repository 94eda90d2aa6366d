//! Opens the turns of events that no stage has ended.

use std::sync::Arc;

use rejoinder_guard::{Effect, Event, Obligation, Policy, Timestamp};

use super::{
    arrival::{Arrival, Handling},
    limits::Counted,
    routed::RoutedEvent,
};
use crate::{
    conversations::sessions,
    events::Run,
    handles::slots::Slot,
    model::{
        ids::{ConversationId, EventId, OwnerId, SessionId},
        turn::Handler,
    },
    people::{People, quiet_hours::quiet_until},
    ports::{
        clock::SharedClock,
        store::{
            accept::{NewEvent, NewTurn},
            transition::RunStart,
        },
    },
    questions::backlog_question::BacklogQuestion,
};

/// Opens turns.
pub(crate) struct Opening {
    pub(crate) people: Arc<People>,
    pub(crate) backlog_question: Arc<BacklogQuestion>,
    pub(crate) clock: SharedClock,
    /// This process, the owner of the runs that begin here.
    pub(crate) owner: OwnerId,
}

impl Opening {
    /// Opens a turn, and begins it if its slot has a permit: it waits for no more. A command needs no slot
    /// and begins at once.
    pub(super) fn open(&self, arrival: Arrival, conversation: ConversationId) -> RoutedEvent {
        let Arrival { id, event, settings, known, handling, expectation, slot, is_postponed, counted, .. } = arrival;
        let Handling { handler, rule, model, remark, repeats, about } = handling;
        let now = self.clock.now();
        let policy = &*settings.policy_for(&event, rule.as_deref());
        // Nobody waits for it before the end of quiet hours.
        let owed_from = quiet_until(&event, &self.people, &settings, now).unwrap_or(now);
        let mut obligation = Obligation::open(expectation, policy, event.patience, owed_from);
        let begins = handler.is_gateway() || slot.as_ref().is_some_and(Slot::has_permit);
        let run = begins.then(|| begin(&mut obligation, policy, &handler, now)).flatten();
        let owner = self.owner;
        let started = run.as_ref().map(|_| RunStart { turn: id, number: 1, handler: handler.clone(), owner, at: now });
        if is_postponed {
            self.backlog_question.note(conversation);
            let _ = obligation.on(Event::Postponed, &Policy::default(), now);
        }
        let mut session = sessions::session_of(&event, &known, SessionId::new(now));
        if handler.agent().is_some() && repeats.is_none() && !session.is_untouched {
            session.unused_since = settings.sessions.reset.unused_since(now);
        }
        let turn = NewTurn {
            id,
            handler,
            rule,
            model,
            remark,
            repeats,
            obligation,
            run: started,
            conversation,
            about,
            session,
            day: counted.as_ref().and_then(Counted::day),
        };
        let event = Arc::new(event);
        RoutedEvent {
            new: NewEvent { id: EventId::new(now), event, turn: Some(turn), only_if_known: false },
            slot,
            run,
            notice: arrival.notice,
            notice_permit: None,
            counted,
            heard: arrival.heard,
            limited: None,
            told: arrival.told,
        }
    }
}

/// Begins a turn before it is stored, so that it is stored as running: if the run crashes the process, it is
/// counted even though nothing else of it was written.
fn begin(obligation: &mut Obligation, policy: &Policy, handler: &Handler, now: Timestamp) -> Option<Run> {
    obligation.on(Event::Begin, policy, now).effects.into_iter().find_map(|effect| match effect {
        Effect::Run { attempt, .. } => Some(Run { handler: handler.clone(), attempt, number: 1, started_at: now }),
        _ => None,
    })
}
