//! Makes a `/retry` the question that it puts before the agent again.

use crate::{
    commands::{self, retry::RETRY},
    conversations::{
        addresses::Addresses,
        sessions::{self, Sessions},
    },
    intake::arrival::{Arrival, Verdict},
    model::EventKind,
    people::People,
    ports::Repeated,
    router::{self, Route},
};

/// It stays the command, which says why, if there is no such question, or its answer may still come.
pub(in crate::intake) async fn retry(
    arrival: &mut Arrival,
    people: &People,
    addresses: &Addresses,
    sessions: &Sessions,
) -> Verdict {
    if !is_retry(arrival, people) {
        return Ok(());
    }
    let conversation = arrival.conversation(addresses).await?.id;
    let person = sessions::session_person(&arrival.event, &arrival.known);
    let last = sessions.last_question(&arrival.event, conversation, person, true).await?;
    // Asked without its key, the question would be answered in the clear.
    if let Some(last) = last.filter(|last| !last.is_open() && !last.is_sealed()) {
        arrival.handling.repeats = Some(Repeated { session: last.session, turns: last.ids() });
        arrival.event = last.asked_by(arrival.event.clone());
    }
    Ok(())
}

fn is_retry(arrival: &Arrival, people: &People) -> bool {
    let Arrival { event, settings, known, .. } = arrival;
    let is_new = event.amends.is_none() && event.kind == EventKind::Message;
    if !is_new || !commands::find(&event.text).is_some_and(|command| command.handler() == RETRY.handler()) {
        return false;
    }
    let route = router::route(event, router::rule(event, settings, known), settings, people);
    matches!(route, Route::To { handler, .. } if handler == RETRY.handler())
}
