//! `/approve CODE`: an owner lets somebody in. `/decline CODE`: or does not.

use super::command::{Answer, Call, Command};
use crate::{
    base::words::plain,
    ledger::trigger::DecidedPerson,
    model::{ChatKind, Pairing, PeopleChange, PersonRole},
    operations::people::NewPerson,
    operator::actor::{Actor, operation},
    people::codes::WrongCode,
    ports::Seen,
};

pub(super) const APPROVE: Command =
    Command::new("approve", &["/approve"], 3, "Let somebody in who was given this code", |call| {
        Box::pin(async { Ok(decide(call, approve)) })
    });

pub(super) const DECLINE: Command =
    Command::new("decline", &["/decline"], 3, "Do not let somebody in who was given this code", |call| {
        Box::pin(async { Ok(decide(call, decline)) })
    });

/// An owner's decision on the request with the code that they wrote.
fn decide(call: &Call<'_>, decision: impl Fn(&Call<'_>, &str, &Pairing, Seen) -> Answer) -> Answer {
    let Some(owner) = owner_of(call) else { return Answer::of("owners_only") };
    let event = &call.turn.event;
    let typed: String = event.text.split_whitespace().skip(1).collect();
    let seen = call.people.seen();
    match call.people.with_code(&typed, &event.identity().to_string(), |_| true) {
        Ok(pairing) => decision(call, &owner, &pairing, seen),
        Err(WrongCode::Unknown(tried)) => wrong(tried, seen, Answer::of("code_unknown")),
        Err(WrongCode::Locked(_)) => Answer::of("code_locked"),
    }
}

/// The answer to a code that does not exist, which counts the try.
pub(super) fn wrong(tried: Vec<PeopleChange>, seen: Seen, answer: Answer) -> Answer {
    let person = Some(DecidedPerson { changes: tried, operation: None });
    Answer { person, seen: vec![seen], ..answer }
}

/// The owner who sent a message in a direct chat: in a group everybody would read the code.
pub(super) fn owner_of(call: &Call<'_>) -> Option<String> {
    let (event, known) = (&call.turn.event, call.people.known());
    match event.known_as(&known) {
        Some((PersonRole::Owner, name)) if event.chat == ChatKind::Direct => {
            Some(format!("{name} ({})", event.identity()))
        }
        _ => None,
    }
}

pub(super) fn approve(call: &Call<'_>, owner: &str, pairing: &Pairing, seen: Seen) -> Answer {
    let is_taken = |name: &str| call.people.is_called(name) || call.settings.names_person(name);
    let (changes, _) = pairing.approved(NewPerson::default(), is_taken, owner, call.now);
    decided(call, (APPROVE.name, "approved"), owner, pairing, changes, seen)
}

pub(super) fn decline(call: &Call<'_>, owner: &str, pairing: &Pairing, seen: Seen) -> Answer {
    let changes = vec![call.people.declined(pairing.clone())];
    decided(call, (DECLINE.name, "declined"), owner, pairing, changes, seen)
}

fn decided(
    call: &Call<'_>,
    (action, template): (&str, &'static str),
    owner: &str,
    pairing: &Pairing,
    changes: Vec<PeopleChange>,
    seen: Seen,
) -> Answer {
    let whose = &pairing.identity;
    let by = Actor::named(owner.to_owned());
    let operation = operation(&by, action, whose, call.decides_on(whose), call.now);
    let person = Some(DecidedPerson { changes, operation: Some(operation) });
    let name = plain(pairing.name.as_deref().unwrap_or(&whose.id));
    let answer = Answer::filled(template, vec![("name", name), ("identity", whose.to_string())]);
    Answer { person, seen: vec![seen], ..answer }
}
