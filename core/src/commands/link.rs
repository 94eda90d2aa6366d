//! `/link`: lets somebody who is known on one channel be the same person on another one, with a code, once they confirm it where
//! they got the code. `/unlink`: takes a channel out again.

use super::{
    approve::wrong,
    command::{Answer, Call, Command, Words},
};
use crate::{
    base::words::{excerpt, filled, plain},
    ledger::trigger::DecidedPerson,
    model::{
        ChatKind, Identity, InboundEvent, KnownIdentity, Pairing, PairingState, PeopleChange, PersonRecord, PersonRole,
        SenderKind, TurnId,
    },
    operator::actor::{Actor, operation},
    people::{People, codes::WrongCode},
    ports::{Seen, StoreError},
};

pub(crate) const LINK: Command =
    Command::new("link", &["/link"], 3, "Be the same person to me on another channel", |call| {
        Box::pin(async {
            Ok(match (refusal(call), code_in(&call.turn.event.text)) {
                (refusal, Some(typed)) => use_code(call, &typed, refusal),
                (Some(refusal), None) => refusal,
                (None, None) => give_code(call),
            })
        })
    });

pub(super) const UNLINK: Command =
    Command::new("unlink", &["/unlink"], 0, "Be nobody to me on this channel that you linked", |call| {
        Box::pin(async {
            Ok(match refusal(call) {
                Some(refusal) => refusal,
                None => leave(call),
            })
        })
    });

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

/// Gives somebody who is known a code. A key holder gets none: with it they would be the person, and
/// an owner perhaps, on a channel of their own.
fn give_code(call: &Call<'_>) -> Answer {
    let event = &call.turn.event;
    let seen = call.people.seen();
    match call.people.person_of(&event.identity()) {
        None => return Answer::of("link_unknown"),
        Some(person) if event.sender.kind == SenderKind::KeyHolder => return naming("link_same", &person),
        Some(_) => {}
    }
    let link = call.people.new_link(event);
    let code = Pairing::HIDDEN_CODE.to_owned();
    ends(PeopleChange::PairingSaved(link), seen, Answer::filled("link_code", vec![("code", code)]))
}

/// Has the person who made the code asked whether the sender is them, unless there is a `refusal`. The code is used up in any case:
/// the message that shows it is stored.
fn use_code(call: &Call<'_>, typed: &str, refusal: Option<Answer>) -> Answer {
    let seen = call.people.seen();
    let link = match (call.people.link_with(typed, &call.turn.event), refusal) {
        (Ok(link), None) => link,
        (Ok(link), Some(refusal)) => return ends(PeopleChange::PairingRemoved(link.identity), seen, refusal),
        (Err(WrongCode::Unknown(tried)), refusal) => {
            let refusal = refusal.unwrap_or_else(|| Answer::of("link_wrong"));
            return wrong(tried, seen, refusal);
        }
        (Err(WrongCode::Locked(_)), Some(refusal)) => return refusal,
        (Err(WrongCode::Locked(_)), None) => return Answer::of("code_locked"),
    };
    let hindrance = match call.people.person_of(&link.identity) {
        Some(person) => hindrance(&call.people, &person, &call.turn.event.identity()),
        None => Some(Answer::of("link_wrong")),
    };
    match hindrance {
        Some(hindrance) => ends(PeopleChange::PairingRemoved(link.identity), seen, hindrance),
        None => ends(call.people.link_used(link, call.turn.id), seen, Answer::of("link_waits")),
    }
}

/// An answer that changes what is stored of a code, and leaves everybody who they are.
fn ends(change: PeopleChange, seen: Seen, answer: Answer) -> Answer {
    let person = Some(DecidedPerson { changes: vec![change], operation: None });
    Answer { person, seen: vec![seen], ..answer }
}

/// Why `identity` cannot become one of a person's.
fn hindrance(people: &People, person: &PersonRecord, identity: &Identity) -> Option<Answer> {
    let former = people.person_of(identity)?;
    if former.id == person.id {
        return Some(naming("link_same", person));
    }
    let is_refused = is_operators(&former, identity) || is_higher(former.role, person.role);
    is_refused.then(|| Answer::of("link_refused"))
}

/// Asks a person whether the sender of `turn`, which used their code, is them.
pub(super) async fn asks(call: &Call<'_>, turn: TurnId) -> Result<Answer, StoreError> {
    let used = call.store.readable_turn(turn).await?;
    let (Some(link), Some(used)) = (call.people.link_used_in(turn), used) else { return Ok(Answer::nothing()) };
    let name = called(&used.event).unwrap_or_else(|| "?".to_owned());
    let values = [("name", name), ("identity", used.event.identity().to_string())];
    let text = filled(call.say("link_asks"), &values);
    let question = call.yes_or_no(text, ["link_yes", "link_no"], Some(link.expires_at));
    Ok(Answer::saying(Words::Own(question)))
}

fn called(event: &InboundEvent) -> Option<String> {
    const LONGEST: usize = 80;
    let name = event.sender.name.as_ref().or(event.sender.username.as_ref());
    name.map(|name| plain(&excerpt(name, LONGEST)))
}

/// Whether the sender of an event may say whether the sender of `turn`, which used a code, is them.
pub(crate) fn may_confirm(event: &InboundEvent, turn: TurnId, people: &People) -> bool {
    let is_direct = event.chat == ChatKind::Direct && event.sender.kind.is_person();
    is_direct && people.link_used_in(turn).is_none_or(|link| link.identity == event.identity())
}

/// What a person says of the sender of `turn`, which used their code: with a yes, they have one more identity.
pub(super) async fn decide(call: &Call<'_>, turn: TurnId, is_yes: Option<bool>) -> Result<Answer, StoreError> {
    let (event, used) = (&call.turn.event, call.store.readable_turn(turn).await?);
    let seen = call.people.seen();
    let link = call.people.link_used_in(turn).filter(|_| may_confirm(event, turn, &call.people));
    let person = call.people.person_of(&event.identity());
    let (Some(is_yes), Some(used), Some(link), Some(person)) = (is_yes, used, link, person) else {
        return Ok(Answer::of("link_over"));
    };
    let (linker, maker) = (used.event.identity(), format!("{} ({})", person.name, link.identity));
    if !is_yes {
        let changes = vec![PeopleChange::PairingRemoved(link.identity)];
        let answer = Answer::of("link_declined");
        return Ok(decision(call, "decline", &linker, &Actor::named(maker), changes, seen, answer));
    }
    if hindrance(&call.people, &person, &linker).is_some() {
        return Ok(ends(PeopleChange::PairingRemoved(link.identity), seen, Answer::of("link_over")));
    }
    let (sender, name) = (&used.event.sender, called(&used.event));
    let by = name.map_or_else(|| linker.to_string(), |name| format!("{name} ({linker})"));
    let by = Actor { reason: Some(format!("confirmed by {maker}")), ..Actor::named(by) };
    let has_home = !call.people.chosen_homes(&link.identity).is_empty();
    let language = call.people.chosen_language(&link.identity);
    let untold = Pairing {
        identity: linker.clone(),
        name: sender.name.clone(),
        username: sender.username.clone(),
        language: used.event.language,
        conversation: used.event.conversation.clone(),
        asked_at: call.now,
        state: PairingState::Approved,
        ..link.clone()
    };
    let answer = naming("link_confirmed", &person);
    let added = KnownIdentity { identity: linker.clone(), added_at: call.now, added_by: maker };
    let mut changes = vec![
        PeopleChange::PersonSaved(PersonRecord { identities: vec![added], ..person }),
        PeopleChange::PairingRemoved(link.identity),
        PeopleChange::PairingSaved(untold),
    ];
    // A person has one home: that of the identity that made the code.
    changes.extend(has_home.then(|| PeopleChange::HomeSet(linker.clone(), false)));
    changes.extend(language.map(|language| PeopleChange::LanguageSet(linker.clone(), Some(language))));
    Ok(decision(call, LINK.name, &linker, &by, changes, seen, answer))
}

/// Takes this channel out of the sender's others.
fn leave(call: &Call<'_>) -> Answer {
    let identity = call.turn.event.identity();
    let seen = call.people.seen();
    let Some(person) = call.people.person_of(&identity).filter(|person| person.identities.len() > 1) else {
        return Answer::of("unlink_only");
    };
    if is_operators(&person, &identity) {
        return Answer::of("link_refused");
    }
    let by = Actor::named(format!("{} ({identity})", person.name));
    let changes = vec![PeopleChange::IdentityRemoved(identity.clone())];
    decision(call, UNLINK.name, &identity, &by, changes, seen, naming("unlinked", &person))
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

/// An answer that changes who somebody is, with its entry in the audit.
fn decision(
    call: &Call<'_>,
    action: &str,
    whose: &Identity,
    by: &Actor,
    changes: Vec<PeopleChange>,
    seen: Seen,
    answer: Answer,
) -> Answer {
    let operation = operation(by, action, whose, call.decides_on(whose), call.now);
    let person = Some(DecidedPerson { changes, operation: Some(operation) });
    Answer { person, seen: vec![seen], ..answer }
}
