//! `/home`: tells or changes on which channel the sender is reached.

use super::command::{Answer, Call, Command};
use crate::{
    ledger::trigger::DecidedPerson,
    model::{ChatKind, Identity, PeopleChange},
};

/// What people write to be reached in this chat.
const HERE: &str = "here";

/// What they write to have no home.
const OFF: &str = "off";

/// What may follow the command.
pub(super) const WORDS: [&str; 2] = [HERE, OFF];

pub(super) const HOME: Command =
    Command::new("home", &["/home"], 1, "Where I reach you", |call| Box::pin(async { Ok(home(call)) }));

fn home(call: &Call<'_>) -> Answer {
    let event = &call.turn.event;
    let has_people = call.settings.access.contains_key(&event.conversation.channel);
    if !has_people || !event.sender.kind.is_person() {
        return Answer::of("whoami_unnamed");
    }
    if event.chat != ChatKind::Direct {
        return Answer::of("home_direct");
    }
    let here = event.identity();
    if call.people.person_of(&here).is_none() {
        return Answer::of("home_unknown");
    }
    match event.text.split_whitespace().nth(1).map(str::to_lowercase).as_deref() {
        Some(HERE) => choose(call, &here, true, "home_here"),
        Some(OFF) => choose(call, &here, false, "home_off"),
        _ => tell(call, &here),
    }
}

/// Says where the sender is reached. Their home may be a chat in which they cannot be reached.
fn tell(call: &Call<'_>, here: &Identity) -> Answer {
    let Some(home) = call.people.home_of(here) else { return Answer::of("home_last") };
    let is_there = call.people.chat_of(here, &call.channels).is_some_and(|chat| chat.identity.channel == home.channel);
    let template = if is_there { "home" } else { "home_away" };
    Answer::filled(template, vec![("channel", home.channel.to_string())])
}

/// Makes this chat the sender's home, or no chat.
fn choose(call: &Call<'_>, here: &Identity, is_home: bool, template: &'static str) -> Answer {
    let seen = vec![call.people.seen()];
    let mut changes: Vec<_> =
        call.people.chosen_homes(here).into_iter().map(|home| PeopleChange::HomeSet(home, false)).collect();
    if is_home {
        changes.push(PeopleChange::HomeSet(here.clone(), true));
    }
    let person = Some(DecidedPerson { changes, operation: None });
    Answer { person, seen, ..Answer::of(template) }
}
