//! Makes a `/retry` the question that it puts before the agent again, and lets a message take the place of the last question.

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

/// If there is no such question, or its answer may still come, a `/retry` stays the command, which says why, and a message is a new one.
pub(in crate::intake) async fn retry(
    arrival: &mut Arrival,
    people: &People,
    addresses: &Addresses,
    sessions: &Sessions,
) -> Verdict {
    let replaced = arrival.event.instead_of.take();
    let is_new = arrival.event.amends.is_none() && arrival.event.kind == EventKind::Message;
    let is_retry = is_new && is_retry(arrival, people);
    if !is_retry && (replaced.is_none() || !is_new) {
        return Ok(());
    }
    let conversation = arrival.conversation(addresses).await?.id;
    let person = sessions::session_person(&arrival.event, &arrival.known);
    let last = sessions.last_question(&arrival.event, conversation, person, true).await?;
    // Asked without its key, the question would be answered in the clear.
    let Some(last) = last.filter(|last| !last.is_open() && !last.is_sealed()) else { return Ok(()) };
    let turns = last.ids();
    if replaced.is_some_and(|replaced| !turns.contains(&replaced)) {
        return Ok(());
    }
    if is_retry {
        arrival.event = last.asked_by(arrival.event.clone());
    } else if arrival.event.attachments.is_empty() {
        arrival.event.attachments = last.files();
    }
    arrival.event.instead_of = turns.first().copied();
    arrival.handling.repeats = Some(Repeated { session: last.session, turns });
    Ok(())
}

fn is_retry(arrival: &Arrival, people: &People) -> bool {
    let Arrival { event, settings, known, .. } = arrival;
    if !commands::find(&event.text).is_some_and(|command| command.handler() == RETRY.handler()) {
        return false;
    }
    let route = router::route(event, router::rule(event, settings, known), settings, people);
    matches!(route, Route::To { handler, .. } if handler == RETRY.handler())
}
