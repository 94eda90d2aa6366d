//! Lets people in, and out again.

use rejoinder_guard::Timestamp;
use tracing::warn;

use super::{Actor, OperationError, Operations};
use crate::{
    commands::message::paired,
    model::{
        ids::PersonId,
        log::{AuditEntry, Subject},
        people::{Identity, KnownIdentity, Pairing, PeopleChange, PersonRecord, PersonRole},
    },
    people::WrongCode,
    ports::{
        intake::Inlet,
        store::transition::{Operation, Transition},
    },
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
    /// Who they are once they are let in.
    pub(crate) fn let_in(&self, NewPerson { name, role }: NewPerson, by: &str, at: Timestamp) -> PersonRecord {
        let named = || self.name.clone().or_else(|| self.username.clone()).unwrap_or_else(|| self.identity.id.clone());
        let identity = KnownIdentity { identity: self.identity.clone(), added_at: at, added_by: by.to_owned() };
        PersonRecord {
            id: PersonId::new(at),
            name: name.unwrap_or_else(named),
            role,
            created_at: at,
            identities: vec![identity],
        }
    }
}

impl Operations {
    /// Lets somebody in who was given this code, and tells them.
    pub(crate) async fn approve(
        &self,
        inlet: &dyn Inlet,
        code: &str,
        as_whom: NewPerson,
        by: Actor,
    ) -> Result<PersonRecord, OperationError> {
        let _operating = self.operating.lock().await;
        let (pairing, at) = (self.pairing(code, &by)?, self.clock.now());
        let person = pairing.let_in(as_whom, &by.name, at);
        self.change_people(PeopleChange::Known(person.clone()), "approve", &pairing.identity, Some(by)).await?;
        let (to, event) = (pairing.conversation.channel.clone(), paired(&pairing, &self.settings.get(), at));
        if let Err(error) = inlet.accept(&to, vec![event], None).await {
            warn!(identity = %pairing.identity, %error, "somebody was let in and could not be told");
        }
        Ok(person)
    }

    /// Does not let somebody in who was given this code.
    pub(crate) async fn decline(&self, code: &str, by: Actor) -> Result<(), OperationError> {
        let _operating = self.operating.lock().await;
        let pairing = self.pairing(code, &by)?;
        let identity = pairing.identity.clone();
        self.change_people(self.people.declined(pairing), "decline", &identity, Some(by)).await
    }

    /// Lets somebody out: an identity is nobody's any more.
    pub(crate) async fn revoke(&self, identity: &Identity, by: Actor) -> Result<(), OperationError> {
        let _operating = self.operating.lock().await;
        if !by.may(&identity.channel) || !self.people.known().has(&identity.channel, &identity.id) {
            return Err(OperationError::Unknown("nobody is known by this channel and id"));
        }
        self.change_people(PeopleChange::Forgotten(identity.clone()), "revoke", identity, Some(by)).await
    }

    /// Removes what is stored of who somebody is, if anything is.
    pub(super) async fn forget_identity(&self, identity: &Identity) -> Result<(), OperationError> {
        self.change_people(PeopleChange::Forgotten(identity.clone()), "revoke", identity, None).await
    }

    fn pairing(&self, code: &str, by: &Actor) -> Result<Pairing, OperationError> {
        let pairing = self.people.with_code(code).map_err(|wrong| match wrong {
            WrongCode::Unknown => OperationError::Unknown("no request that waits has this code"),
            WrongCode::Locked(retry_after) => OperationError::TooMany { retry_after },
        })?;
        if by.may(&pairing.identity.channel) {
            return Ok(pairing);
        }
        Err(OperationError::Unknown("no request that waits has this code"))
    }

    /// Stores a change with who did it. Without an operator it is a part of something else that they do.
    async fn change_people(
        &self,
        change: PeopleChange,
        action: &str,
        identity: &Identity,
        by: Option<Actor>,
    ) -> Result<(), OperationError> {
        let at = self.clock.now();
        let operation = by.map(|by| Operation {
            at,
            entry: AuditEntry {
                by: by.name,
                action: action.to_owned(),
                target: identity.to_string(),
                reason: by.reason,
            },
            subject: Subject::channel(&identity.channel),
            answer: by.answer,
        });
        self.store.commit(Transition { people: vec![change], operation, ..Transition::default() }).await?;
        self.people.reload().await?;
        Ok(())
    }
}
