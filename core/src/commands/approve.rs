//! `/approve CODE`: an owner lets somebody in. `/decline CODE`: or does not.

use super::command::{Answer, Call, Command, Decision, Filled, Words};
use crate::{
    model::people::{Pairing, PeopleChange, PersonRole},
    operations::people::NewPerson,
    people::WrongCode,
};

pub(super) const APPROVE: Command = Command {
    name: "approve",
    texts: &["/approve"],
    takes_argument: true,
    description: "Let somebody in who was given this code",
    act: |call| {
        let answer = decide(call, APPROVE.name, "approved", |pairing, owner| {
            PeopleChange::Known(pairing.let_in(NewPerson::default(), owner, call.now))
        });
        Box::pin(std::future::ready(Ok(answer)))
    },
};

pub(super) const DECLINE: Command = Command {
    name: "decline",
    texts: &["/decline"],
    takes_argument: true,
    description: "Do not let somebody in who was given this code",
    act: |call| {
        let answer = decide(call, DECLINE.name, "declined", |pairing, _| call.people.declined(pairing.clone()));
        Box::pin(std::future::ready(Ok(answer)))
    },
};

/// An owner's decision on the request with the code that they wrote.
fn decide(
    call: &Call<'_>,
    action: &'static str,
    template: &'static str,
    change: impl FnOnce(&Pairing, &str) -> PeopleChange,
) -> Answer {
    let event = &call.turn.event;
    let known = call.people.known();
    let Some((PersonRole::Owner, owner)) = known.get(&event.conversation.channel, event.person()) else {
        return Answer::of("owners_only");
    };
    let code = event.text.split_whitespace().nth(1).unwrap_or_default();
    let pairing = match call.people.with_code(code) {
        Ok(pairing) => pairing,
        Err(WrongCode::Unknown) => return Answer::of("code_unknown"),
        Err(WrongCode::Locked(_)) => return Answer::of("code_locked"),
    };
    let name = pairing.name.clone().unwrap_or_else(|| pairing.identity.id.clone());
    let words = Words::Templates(vec![Filled { template, values: vec![("name", name)] }]);
    let decision = Decision { action, by: owner.to_owned(), change: change(&pairing, owner), pairing };
    Answer { words, decision: Some(decision), ..Answer::of(template) }
}
