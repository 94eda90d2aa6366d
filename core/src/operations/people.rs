//! Lets people in, and out again.

use rejoinder_guard::Timestamp;

use super::Operations;
use crate::{
    model::{
        ids::PersonId,
        log::Subject,
        people::{DirectChat, Identity, KnownIdentity, Pairing, PairingState, PeopleChange, PersonRecord, PersonRole},
    },
    operator::{
        actor::{Actor, operation},
        error::OperationError,
    },
    people::codes::WrongCode,
    ports::store::transition::Transition,
};

/// As whom somebody is let in.
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
        let _deciding = self.people.deciding().await;
        let pairing = self.pairing(code, &by)?;
        let settings = self.settings.get();
        let is_taken = |name: &str| self.people.is_called(name) || settings.names_person(name);
        let (changes, person) = pairing.approved(person, is_taken, &by.name, self.clock.now());
        self.change_people(changes, "approve", &pairing.identity, &by).await?;
        Ok(person)
    }

    /// Does not let somebody in who was given this code.
    pub async fn decline(&self, code: &str, by: Actor) -> Result<(), OperationError> {
        let _deciding = self.people.deciding().await;
        let pairing = self.pairing(code, &by)?;
        let identity = pairing.identity.clone();
        self.change_people(vec![self.people.declined(pairing)], "decline", &identity, &by).await
    }

    /// Lets somebody out: an identity is nobody's any more.
    pub async fn revoke(&self, identity: &Identity, by: Actor) -> Result<(), OperationError> {
        let _deciding = self.people.deciding().await;
        if !by.may(&identity.channel) || !self.people.known().has(&identity.channel, &identity.id) {
            return Err(OperationError::Unknown("nobody is known by this channel and id"));
        }
        self.change_people(vec![PeopleChange::IdentityRemoved(identity.clone())], "revoke", identity, &by).await
    }

    /// Removes what is stored of who somebody is.
    pub(super) async fn forget_identity(&self, identity: &Identity) -> Result<(), OperationError> {
        let _deciding = self.people.deciding().await;
        let people = vec![PeopleChange::IdentityRemoved(identity.clone())];
        Ok(self.people.change(Transition { people, ..Transition::default() }).await?)
    }

    /// The request with a code, if it waits and the operator may decide it.
    fn pairing(&self, code: &str, by: &Actor) -> Result<Pairing, OperationError> {
        let may = |pairing: &Pairing| by.may(&pairing.identity.channel);
        self.people.with_code(code, &by.name, may).map_err(|wrong| match wrong {
            WrongCode::Unknown => OperationError::Unknown("no request that waits has this code"),
            WrongCode::Locked(retry_after) => OperationError::TooMany { retry_after },
        })
    }

    /// Stores changes with who made them.
    async fn change_people(
        &self,
        people: Vec<PeopleChange>,
        action: &str,
        identity: &Identity,
        by: &Actor,
    ) -> Result<(), OperationError> {
        let operation = operation(by, action, identity, Subject::channel(&identity.channel), self.clock.now());
        let operation = Some(operation);
        Ok(self.people.change(Transition { operation, people, ..Transition::default() }).await?)
    }
}
