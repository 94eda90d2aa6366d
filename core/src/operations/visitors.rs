//! Lets people sign in to a chat page, and signs them out.

use rejoinder_guard::Timestamp;

use super::Operations;
use crate::{
    base::conflicts::decide_anew,
    model::{ChannelId, Identity, Invitation, KnownIdentity, PeopleChange, PersonRecord, Subject, VisitorChange},
    operator::{
        actor::{Actor, operation},
        error::OperationError,
    },
    ports::Transition,
};

/// A link for a person's first passkey on a chat page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewInvitation {
    /// The chat page.
    pub channel: ChannelId,
    /// The SHA-256 of the link's code.
    pub code: [u8; 32],
    /// From when on it opens nothing.
    pub expires_at: Timestamp,
}

impl Operations {
    /// Invites a person to a chat page: as `person`, if that is an identity there. One who has no identity there gets one. Returns the
    /// identity.
    pub async fn invite(
        &self,
        person: &Identity,
        invitation: NewInvitation,
        by: Actor,
    ) -> Result<Identity, OperationError> {
        let NewInvitation { channel, code, expires_at } = invitation;
        if !by.may(&channel) {
            return Err(OperationError::Unknown("there is no chat page with this name"));
        }
        Ok(decide_anew!({
            let (seen, now) = (self.people.seen(), self.clock.now());
            let unknown = || OperationError::Unknown("nobody is known by this channel and id");
            let record = self.people.person_of(person).filter(|_| by.may(&person.channel)).ok_or_else(unknown)?;
            let is_on_page = |known: &&KnownIdentity| known.identity.channel == channel;
            let named = record.identities.iter().find(|known| known.identity == *person).filter(is_on_page);
            let found = named.or_else(|| record.identities.iter().find(is_on_page));
            let (identity, people) = if let Some(known) = found {
                (known.identity.clone(), Vec::new())
            } else {
                let identity = Identity { channel: channel.clone(), id: record.id.to_string() };
                let known = KnownIdentity { identity: identity.clone(), added_at: now, added_by: by.name.clone() };
                let person = PersonRecord { identities: vec![known], ..record };
                (identity, vec![PeopleChange::PersonSaved(person)])
            };
            let (channel, account) = (channel.clone(), identity.id.clone());
            let visitors = vec![VisitorChange::Invite(Invitation { code, channel, account, expires_at })];
            let operation = Some(operation(&by, "invite", &identity, Subject::channel(&identity.channel), now));
            let transition = Transition { operation, visitors, people, ..Transition::default() };
            self.people.change(seen, transition).await?.then_some(identity)
        })?)
    }

    /// Ends all visits and invitations of somebody at a chat page, and removes their passkeys if that is wanted.
    pub async fn sign_out(&self, of: &Identity, with_passkeys: bool, by: Actor) -> Result<(), OperationError> {
        Ok(decide_anew!({
            let (seen, at) = (self.people.seen(), self.clock.now());
            if !by.may(&of.channel) || !self.people.known().has(&of.channel, &of.id) {
                return Err(OperationError::Unknown("nobody is known by this channel and id"));
            }
            let passkeys = with_passkeys.then(|| VisitorChange::RemovePasskeys(of.clone()));
            let visitors = std::iter::once(VisitorChange::EndAll { of: of.clone(), at }).chain(passkeys).collect();
            let operation = Some(operation(&by, "sign_out", of, Subject::channel(&of.channel), at));
            let transition = Transition { operation, visitors, ..Transition::default() };
            self.people.change(seen, transition).await?.then_some(())
        })?)
    }
}
