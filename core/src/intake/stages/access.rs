//! Decides whether the sender may open a turn, which agent or command it is for, what is owed, and in which language people
//! are told of it.

use std::sync::Arc;

use crate::{
    intake::arrival::{Arrival, Notice, Verdict, end},
    model::{Amends, EventKind},
    people::{People, access::Permit},
    router::{self, Route},
};

pub(in crate::intake) fn access(arrival: &mut Arrival, people: &People) -> Verdict {
    let settings = Arc::clone(&arrival.settings);
    let rule = router::rule(&arrival.event, &settings, &arrival.known);
    // The language of a voice note was noted when it came.
    let is_heard = arrival.event.is_heard();
    arrival.told = arrival.event.language.filter(|_| !is_heard);
    arrival.event.language = router::language(&arrival.event, rule, people);
    let is_reaction = matches!(arrival.event.kind, EventKind::Reaction { .. });
    if is_reaction && router::permit(&arrival.event, &settings, people) != Some(Permit::Granted) {
        // Not kept with the answer.
        arrival.event.kind = EventKind::Other;
    }
    let is_edit = arrival.event.amends == Some(Amends::Replaces);
    match router::route(&arrival.event, rule, &settings, people) {
        // The turn was opened when its sender had access.
        Route::NoTurn | Route::Stranger | Route::Asks if is_heard => end(None),
        // An event of a sender without access amends no turn.
        Route::NoTurn => arrival.end_unamended(None),
        Route::Stranger => arrival.end_unamended((!is_edit).then_some(Notice::Stranger)),
        Route::Asks => arrival.end_unamended((!is_edit).then_some(Notice::Pairing)),
        // An edit makes no turn, unless it makes its message a command. What is said may answer a question of the gateway's own.
        Route::To { handler, .. } if is_edit && !handler.is_gateway() && arrival.asks.is_none() => end(None),
        Route::To { handler, expectation } => {
            arrival.handling.handler = handler;
            arrival.handling.rule = rule.map(|rule| Arc::clone(&rule.name));
            arrival.expectation = expectation;
            Ok(())
        }
    }
}
