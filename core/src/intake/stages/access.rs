//! Decides whether the sender may open a turn, which agent or command it is for, what is owed, and in which language people
//! are told of it.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Handles, Stage};
use crate::{
    intake::{
        arrival::{Arrival, Verdict},
        notice::Notice,
    },
    model::event::Amends,
    people::People,
    ports::store::StoreError,
    router::{self, Route},
};

pub(super) struct Access {
    people: Arc<People>,
}

impl Access {
    pub(super) fn new(handles: &Handles<'_>) -> Self {
        Self { people: Arc::clone(handles.people) }
    }
}

#[async_trait]
impl Stage for Access {
    async fn decide(&self, mut arrival: Arrival) -> Result<Verdict, StoreError> {
        let settings = Arc::clone(&arrival.settings);
        let rule = router::rule(&arrival.event, &settings, &arrival.known);
        arrival.told = arrival.event.language;
        arrival.event.language = router::language(&arrival.event, rule, &self.people);
        let is_edit = arrival.event.amends == Some(Amends::Replaces);
        let verdict = match router::route(&arrival.event, rule, &settings, &self.people) {
            // An event of a sender without access amends no turn.
            Route::NoTurn => arrival.end_unamended(None),
            Route::Stranger => arrival.end_unamended((!is_edit).then_some(Notice::Stranger)),
            Route::Asks => arrival.end_unamended((!is_edit).then_some(Notice::Pairing)),
            // An edit makes no turn, unless it makes its message a command.
            Route::To { handler, .. } if is_edit && !handler.is_gateway() => arrival.end(None),
            Route::To { handler, expectation } => {
                arrival.handling.handler = handler;
                arrival.handling.rule = rule.map(|rule| Arc::clone(&rule.name));
                arrival.expectation = expectation;
                Verdict::Continue(arrival)
            }
        };
        Ok(verdict)
    }
}
