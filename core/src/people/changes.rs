//! What a change does to the copy in memory, as the store does it to the rows.

use std::collections::HashMap;

use crate::model::{
    ids::PersonId,
    language::Language,
    people::{DirectChat, Identity, Pairing, PeopleChange, PersonRecord},
};

/// Changes who is known, as the store does.
pub(crate) fn apply(people: &mut Vec<PersonRecord>, change: &PeopleChange) {
    let take = |people: &mut Vec<PersonRecord>, identity: &Identity, keeper: Option<PersonId>| {
        for person in people.iter_mut() {
            person.identities.retain(|one| one.identity != *identity);
        }
        people.retain(|person| !person.identities.is_empty() || Some(person.id) == keeper);
    };
    match change {
        PeopleChange::PersonSaved(new) => {
            for known in &new.identities {
                take(people, &known.identity, Some(new.id));
            }
            match people.iter_mut().find(|person| person.id == new.id) {
                Some(person) => {
                    (person.name, person.role) = (new.name.clone(), new.role);
                    person.identities.extend(new.identities.iter().cloned());
                }
                None => people.push(new.clone()),
            }
        }
        PeopleChange::IdentityRemoved(identity) => take(people, identity, None),
        PeopleChange::PairingSaved(_)
        | PeopleChange::PairingRemoved(_)
        | PeopleChange::DirectChatSet(_)
        | PeopleChange::DirectChatCleared(_)
        | PeopleChange::HomeSet(..)
        | PeopleChange::LanguageSet(..)
        | PeopleChange::CodeTried { .. } => {}
    }
}

/// Changes who asks, as the store does.
pub(crate) fn change_request(pairings: &mut Vec<Pairing>, change: &PeopleChange) {
    match change {
        PeopleChange::PairingSaved(new) => {
            pairings.retain(|one| one.identity != new.identity && one.expires_at > new.asked_at);
            pairings.push(new.clone());
        }
        PeopleChange::PersonSaved(person) => {
            pairings.retain(|one| person.identities.iter().all(|known| known.identity != one.identity));
        }
        PeopleChange::IdentityRemoved(identity) | PeopleChange::PairingRemoved(identity) => {
            pairings.retain(|one| one.identity != *identity);
        }
        PeopleChange::DirectChatSet(_)
        | PeopleChange::DirectChatCleared(_)
        | PeopleChange::HomeSet(..)
        | PeopleChange::LanguageSet(..)
        | PeopleChange::CodeTried { .. } => {}
    }
}

/// Changes who chose which language, as the store does.
pub(crate) fn change_language(languages: &mut HashMap<Identity, Language>, change: &PeopleChange) {
    match change {
        PeopleChange::LanguageSet(identity, Some(language)) => {
            languages.insert(identity.clone(), *language);
        }
        PeopleChange::LanguageSet(identity, None) | PeopleChange::IdentityRemoved(identity) => {
            languages.remove(identity);
        }
        PeopleChange::PairingSaved(_)
        | PeopleChange::PersonSaved(_)
        | PeopleChange::PairingRemoved(_)
        | PeopleChange::DirectChatSet(_)
        | PeopleChange::HomeSet(..)
        | PeopleChange::DirectChatCleared(_)
        | PeopleChange::CodeTried { .. } => {}
    }
}

/// Changes where people are reached, as the store does.
pub(crate) fn change_chat(chats: &mut HashMap<Identity, DirectChat>, change: &PeopleChange) {
    match change {
        PeopleChange::DirectChatSet(chat) => {
            chats.insert(chat.identity.clone(), chat.clone());
        }
        PeopleChange::DirectChatCleared(identity) | PeopleChange::IdentityRemoved(identity) => {
            chats.remove(identity);
        }
        PeopleChange::HomeSet(identity, is_home) => {
            if let Some(chat) = chats.get_mut(identity) {
                chat.is_home = *is_home;
            }
        }
        PeopleChange::PairingSaved(_)
        | PeopleChange::PersonSaved(_)
        | PeopleChange::PairingRemoved(_)
        | PeopleChange::LanguageSet(..)
        | PeopleChange::CodeTried { .. } => {}
    }
}
