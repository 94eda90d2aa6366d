//! Lets people in, and out again.

use rejoinder_guard::Timestamp;

use super::Operations;
use crate::{
    base::conflicts::decide_anew,
    model::{
        DirectChat, Identity, KnownIdentity, Pairing, PairingState, PeopleChange, PersonId, PersonRecord, PersonRole,
        Subject,
    },
    operator::{
        actor::{Actor, operation},
        error::OperationError,
    },
    people::codes::WrongCode,
    ports::{Seen, Transition},
};

/// The name and role with which somebody is let in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewPerson {
    /// What operators call them; `None` for the name that the platform gave.
    pub name: Option<String>,
    /// What they may do.
    pub role: PersonRole,
}

impl Pairing {
    /// Who they are once they are let in. A name of their own choice that means somebody else to the operator gets their id.
    fn let_in(
        &self,
        NewPerson { name, role }: NewPerson,
        is_taken: impl Fn(&str) -> bool,
        by: &str,
        at: Timestamp,
    ) -> PersonRecord {
        let id = &self.identity.id;
        let named = || match self.name.as_ref().or(self.username.as_ref()) {
            Some(name) if is_taken(name) => format!("{name} ({id})"),
            Some(name) => name.clone(),
            None => id.clone(),
        };
        let identity = KnownIdentity { identity: self.identity.clone(), added_at: at, added_by: by.to_owned() };
        PersonRecord {
            id: PersonId::new(at),
            name: name.unwrap_or_else(named),
            role,
            created_at: at,
            identities: vec![identity],
        }
    }

    /// What is stored when they are let in, and who they are then.
    pub(crate) fn approved(
        &self,
        person: NewPerson,
        is_taken: impl Fn(&str) -> bool,
        by: &str,
        at: Timestamp,
    ) -> (Vec<PeopleChange>, PersonRecord) {
        let person = self.let_in(person, is_taken, by, at);
        let untold = Self { state: PairingState::Approved, ..self.clone() };
        // They asked in a direct chat, and can be reached there before they write again.
        let chat = DirectChat {
            identity: self.identity.clone(),
            conversation: self.conversation.clone(),
            since: at,
            is_home: false,
            language: self.language,
        };
        let changes = vec![
            PeopleChange::PersonSaved(person.clone()),
            PeopleChange::DirectChatSet(chat),
            PeopleChange::PairingSaved(untold),
        ];
        (changes, person)
    }
}

impl Operations {
    /// Lets somebody in who was given this code. They are told.
    pub async fn approve(&self, code: &str, person: NewPerson, by: Actor) -> Result<PersonRecord, OperationError> {
        Ok(decide_anew!({
            let seen = self.people.seen();
            match self.pairing(seen, code, &by).await? {
                None => None,
                Some(pairing) => {
                    let settings = self.settings.get();
                    let is_taken = |name: &str| self.people.is_called(name) || settings.names_person(name);
                    let (changes, person) = pairing.approved(person.clone(), is_taken, &by.name, self.clock.now());
                    self.change_people(seen, changes, "approve", &pairing.identity, &by).await?.then_some(person)
                }
            }
        })?)
    }

    /// Does not let somebody in who was given this code.
    pub async fn decline(&self, code: &str, by: Actor) -> Result<(), OperationError> {
        Ok(decide_anew!({
            let seen = self.people.seen();
            match self.pairing(seen, code, &by).await? {
                None => None,
                Some(pairing) => {
                    let identity = pairing.identity.clone();
                    let changes = vec![self.people.declined(pairing)];
                    self.change_people(seen, changes, "decline", &identity, &by).await?.then_some(())
                }
            }
        })?)
    }

    /// Lets somebody out: an identity is nobody's any more.
    pub async fn revoke(&self, identity: &Identity, by: Actor) -> Result<(), OperationError> {
        Ok(decide_anew!({
            let seen = self.people.seen();
            if !by.may(&identity.channel) || !self.people.known().has(&identity.channel, &identity.id) {
                return Err(OperationError::Unknown("nobody is known by this channel and id"));
            }
            let changes = vec![PeopleChange::IdentityRemoved(identity.clone())];
            self.change_people(seen, changes, "revoke", identity, &by).await?.then_some(())
        })?)
    }

    /// The request with a code, if it waits and the operator may decide it; `None` if something was changed since `seen`.
    async fn pairing(&self, seen: Seen, code: &str, by: &Actor) -> Result<Option<Pairing>, OperationError> {
        let may = |pairing: &Pairing| by.may(&pairing.identity.channel);
        let tried = match self.people.with_code(code, &by.name, may) {
            Ok(pairing) => return Ok(Some(pairing)),
            Err(WrongCode::Locked(retry_after)) => return Err(OperationError::TooMany { retry_after }),
            Err(WrongCode::Unknown(tried)) => Transition { people: tried, ..Transition::default() },
        };
        if tried.is_empty() || self.people.change(seen, tried).await? {
            return Err(OperationError::Unknown("no request that waits has this code"));
        }
        Ok(None)
    }

    /// Stores changes with who made them; `false` if something was changed since `seen`.
    async fn change_people(
        &self,
        seen: Seen,
        people: Vec<PeopleChange>,
        action: &str,
        identity: &Identity,
        by: &Actor,
    ) -> Result<bool, OperationError> {
        let operation = operation(by, action, identity, Subject::channel(&identity.channel), self.clock.now());
        let operation = Some(operation);
        Ok(self.people.change(seen, Transition { operation, people, ..Transition::default() }).await?)
    }
}
