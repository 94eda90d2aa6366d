//! `/link`: lets somebody who is known on one channel be the same person on another one, with a code. `/unlink`: takes a
//! channel out again.

use super::command::{Answer, Call, Command, Decision, Held};
use crate::{
    ledger::trigger::DecidedPerson,
    model::{
        conversation::ChatKind,
        event::SenderKind,
        log::Subject,
        people::{Identity, KnownIdentity, PeopleChange, PersonRecord, PersonRole},
    },
    operations::{Actor, operation},
    people::WrongCode,
    words::plain,
};

pub(crate) const LINK: Command = Command {
    name: "link",
    texts: &["/link"],
    arguments: 3,
    description: "Be the same person to me on another channel",
    act: |call| {
        Box::pin(async {
            Ok(match (refusal(call), code_in(&call.turn.event.text)) {
                (Some(refusal), _) => refusal,
                (None, Some(typed)) => join(call, &typed).await,
                (None, None) => give_code(call).await,
            })
        })
    },
};

pub(super) const UNLINK: Command = Command {
    name: "unlink",
    texts: &["/unlink"],
    arguments: 0,
    description: "Be nobody to me on this channel that you linked",
    act: |call| {
        Box::pin(async {
            Ok(match refusal(call) {
                Some(refusal) => refusal,
                None => leave(call).await,
            })
        })
    },
};

/// The code in a message that is `/link` with one.
pub(crate) fn code_in(text: &str) -> Option<String> {
    let typed: String = text.split_whitespace().skip(1).collect();
    (LINK.matches(text) && !typed.is_empty()).then_some(typed)
}

/// What is said where nobody can be linked: where neither people nor their conversations can be told apart, and in groups, where
/// everybody would read the code.
fn refusal(call: &Call<'_>) -> Option<Answer> {
    let event = &call.turn.event;
    let has_people = call.settings.access.contains_key(&event.conversation.channel);
    let is_told_apart = match event.sender.kind {
        SenderKind::Person => has_people,
        SenderKind::KeyHolder => true,
        _ => false,
    };
    if !is_told_apart {
        return Some(Answer::of("whoami_unnamed"));
    }
    (event.chat != ChatKind::Direct).then(|| Answer::of("link_direct"))
}

/// Gives somebody who is known a code. Whoever has the key of a conversation gets none: with it they would be the person, and an
/// owner perhaps, on a channel of their own.
async fn give_code(call: &Call<'_>) -> Answer {
    let event = &call.turn.event;
    let held = call.people.deciding().await;
    match call.people.person_of(&event.identity()) {
        None => return Answer::of("link_unknown"),
        Some(person) if event.sender.kind == SenderKind::KeyHolder => return naming("link_same", &person),
        Some(_) => {}
    }
    let link = call.people.new_link(event);
    let code = link.shown_code();
    let person = DecidedPerson { changes: vec![PeopleChange::Asked(link)], operation: None };
    Answer { decision: Some(Decision { person, held }), ..Answer::filled("link_code", vec![("code", code)]) }
}

/// Makes the sender, on this channel, the person who made the code.
async fn join(call: &Call<'_>, typed: &str) -> Answer {
    let identity = call.turn.event.identity();
    let held = call.people.deciding().await;
    let link = match call.people.link_with(typed, &call.turn.event) {
        Ok(link) => link,
        Err(WrongCode::Unknown) => return Answer::of("link_wrong"),
        Err(WrongCode::Locked(_)) => return Answer::of("code_locked"),
    };
    let Some(person) = call.people.person_of(&link.identity) else { return Answer::of("link_wrong") };
    let former = call.people.person_of(&identity);
    if former.as_ref().is_some_and(|former| former.id == person.id) {
        return naming("link_same", &person);
    }
    if former.is_some_and(|former| is_operators(&former, &identity) || is_higher(former.role, person.role)) {
        return Answer::of("link_refused");
    }
    let by = format!("{} ({})", person.name, link.identity);
    let added = KnownIdentity { identity: identity.clone(), added_at: call.now, added_by: by.clone() };
    let answer = naming("linked", &person);
    let has_home = !call.people.chosen_homes(&link.identity).is_empty();
    let language = call.people.chosen_language(&link.identity);
    // The code is used up.
    let mut changes = vec![
        PeopleChange::Known(PersonRecord { identities: vec![added], ..person }),
        PeopleChange::Told(link.identity),
    ];
    // A person has one home: that of whoever made the code.
    changes.extend(has_home.then(|| PeopleChange::Home(identity.clone(), false)));
    changes.extend(language.map(|language| PeopleChange::Speaks(identity, Some(language))));
    Answer { decision: Some(decision(call, LINK.name, by, changes, held)), ..answer }
}

/// Takes this channel out of the sender's others.
async fn leave(call: &Call<'_>) -> Answer {
    let identity = call.turn.event.identity();
    let held = call.people.deciding().await;
    let Some(person) = call.people.person_of(&identity).filter(|person| person.identities.len() > 1) else {
        return Answer::of("unlink_only");
    };
    if is_operators(&person, &identity) {
        return Answer::of("link_refused");
    }
    let by = format!("{} ({identity})", person.name);
    let changes = vec![PeopleChange::Forgotten(identity)];
    Answer { decision: Some(decision(call, UNLINK.name, by, changes, held)), ..naming("unlinked", &person) }
}

/// Whether the configuration says who this is: a change would be undone by the next start.
fn is_operators(person: &PersonRecord, identity: &Identity) -> bool {
    person.identity(identity).is_some_and(KnownIdentity::is_configured)
}

/// Whether somebody with the role `former` would lose rights as somebody with the role `next`.
fn is_higher(former: PersonRole, next: PersonRole) -> bool {
    former == PersonRole::Owner && next != PersonRole::Owner
}

fn naming(template: &'static str, person: &PersonRecord) -> Answer {
    Answer::filled(template, vec![("name", plain(&person.name))])
}

/// A change of who the sender is, with its entry in the audit.
fn decision(call: &Call<'_>, action: &str, by: String, changes: Vec<PeopleChange>, held: Held) -> Decision {
    let identity = call.turn.event.identity();
    let by = Actor::named(by);
    let operation = operation(&by, action, &identity, Subject::channel(&identity.channel), call.now);
    Decision { person: DecidedPerson { changes, operation: Some(operation) }, held }
}
