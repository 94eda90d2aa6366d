//! `/approve CODE`: an owner lets somebody in. `/decline CODE`: or does not.

use super::command::{Answer, Call, Command, Decision};
use crate::{
    ledger::trigger::DecidedPerson,
    model::{
        conversation::ChatKind,
        log::Subject,
        people::{Pairing, PeopleChange, PersonRole},
    },
    operations::{Actor, operation, people::NewPerson},
    people::WrongCode,
};

pub(super) const APPROVE: Command = Command {
    name: "approve",
    texts: &["/approve"],
    arguments: 3,
    description: "Let somebody in who was given this code",
    is_recorded: false,
    act: |call| {
        Box::pin(async {
            let change = |pairing: &Pairing, owner: &str| pairing.approved(NewPerson::default(), owner, call.now).0;
            Ok(decide(call, APPROVE.name, "approved", change).await)
        })
    },
};

pub(super) const DECLINE: Command = Command {
    name: "decline",
    texts: &["/decline"],
    arguments: 3,
    description: "Do not let somebody in who was given this code",
    is_recorded: false,
    act: |call| {
        Box::pin(async {
            let change = |pairing: &Pairing, _: &str| vec![call.people.declined(pairing.clone())];
            Ok(decide(call, DECLINE.name, "declined", change).await)
        })
    },
};

/// An owner's decision on the request with the code that they wrote.
async fn decide(
    call: &Call<'_>,
    action: &str,
    template: &'static str,
    change: impl Fn(&Pairing, &str) -> Vec<PeopleChange>,
) -> Answer {
    let (event, identity) = (&call.turn.event, call.turn.event.identity());
    let known = call.people.known();
    let owner = match known.get(&identity.channel, &identity.id) {
        // In a group everybody would read the code.
        Some((PersonRole::Owner, name)) if event.chat == ChatKind::Direct => format!("{name} ({identity})"),
        _ => return Answer::of("owners_only"),
    };
    let typed: String = event.text.split_whitespace().skip(1).collect();
    let held = call.people.deciding().await;
    let pairing = match call.people.with_code(&typed, &identity.to_string(), |_| true) {
        Ok(pairing) => pairing,
        Err(WrongCode::Unknown) => return Answer::of("code_unknown"),
        Err(WrongCode::Locked(_)) => return Answer::of("code_locked"),
    };
    let whose = &pairing.identity;
    let by = Actor { name: owner.clone(), reason: None, channels: None, answer: None };
    let operation = operation(&by, action, whose, Subject::channel(&whose.channel), call.now);
    let person = DecidedPerson { changes: change(&pairing, &owner), operation: Some(operation) };
    let name = plain(pairing.name.as_deref().unwrap_or(&whose.id));
    let answer = Answer::filled(template, vec![("name", name), ("identity", whose.to_string())]);
    Answer { decision: Some(Decision { person, held }), ..answer }
}

/// A name without Markdown: it was chosen by somebody who may mean harm.
fn plain(name: &str) -> String {
    let is_plain =
        |char: &char| !matches!(char, '*' | '_' | '`' | '[' | ']' | '(' | ')' | '<' | '>' | '\\' | '#' | '|' | '~');
    name.chars().filter(is_plain).collect()
}
