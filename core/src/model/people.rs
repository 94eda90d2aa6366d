//! People: who they are on which channel, and who asks to be let in.

use std::{collections::HashMap, fmt};

use rejoinder_guard::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::{
    conversation::{ChannelId, ConversationRef},
    ids::PersonId,
    language::Language,
};

/// Somebody as a channel knows them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// The channel.
    pub channel: ChannelId,
    /// The key by which the channel knows them: see [`InboundEvent::person`](crate::InboundEvent::person).
    pub id: String,
}

/// Writes `CHANNEL/ID`.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.channel, self.id)
    }
}

/// What a person may do besides talking to the agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PersonRole {
    /// Nothing.
    #[default]
    Member,
    /// Lets others in, with `/approve`.
    Owner,
}

impl PersonRole {
    /// The name in records and interfaces.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Member => "member",
            Self::Owner => "owner",
        }
    }
}

/// A person, with everything by which channels know them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonRecord {
    /// Their id.
    pub id: PersonId,
    /// What operators call them.
    pub name: String,
    /// What they may do.
    pub role: PersonRole,
    /// Since when they are known.
    pub created_at: Timestamp,
    /// Who they are on channels, in the order of the channels.
    pub identities: Vec<KnownIdentity>,
}

/// An identity of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownIdentity {
    /// The channel, and the id there.
    pub identity: Identity,
    /// Since when it is known.
    pub added_at: Timestamp,
    /// Who let them in: the name of an operator's token, `configuration`, or the name of an owner.
    pub added_by: String,
}

/// A person whom the configuration names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeedPerson {
    /// Their name.
    pub name: String,
    /// What they may do.
    pub role: PersonRole,
    /// Who they are on channels.
    pub identities: Vec<Identity>,
}

/// Somebody's request to be let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pairing {
    /// The code that they were given: 8 characters without a dash.
    pub code: String,
    /// Who asks.
    pub identity: Identity,
    /// The display name that the platform gave.
    pub name: Option<String>,
    /// The unique name that the platform gave, without `@`.
    pub username: Option<String>,
    /// Their language, if it was known when they asked.
    pub language: Option<Language>,
    /// Where they asked.
    pub conversation: ConversationRef,
    /// When they asked.
    pub asked_at: Timestamp,
    /// When the code expires. Of a declined request: until when they cannot ask again.
    pub expires_at: Timestamp,
    /// What became of it.
    pub state: PairingState,
}

/// What became of a request to be let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PairingState {
    /// Nobody has decided it yet.
    Waiting,
    /// The answer was no.
    Declined,
    /// They are let in, and were not told yet.
    Approved,
}

impl PairingState {
    /// The name in records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Declined => "declined",
            Self::Approved => "approved",
        }
    }
}

impl Pairing {
    /// The number of characters of a code, without the dash.
    pub const CODE_LENGTH: usize = 8;

    /// The code as it is shown: with a dash in the middle.
    #[must_use]
    pub fn shown_code(&self) -> String {
        let (first, last) = self.code.split_at_checked(Self::CODE_LENGTH / 2).unwrap_or((&self.code, ""));
        format!("{first}-{last}")
    }
}

/// A change of what is stored of people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeopleChange {
    /// Somebody asks to be let in, or their request was decided: in place of an earlier request of theirs. Requests whose time
    /// had passed when they asked are removed.
    Asked(Pairing),
    /// Adds a person, or changes their name and role. Each of their identities becomes theirs and nobody else's, and a request
    /// of it is removed. Identities that are not named stay. Somebody who has lost the last identity is removed.
    Known(PersonRecord),
    /// Somebody who was let in was told so: their request is removed.
    Told(Identity),
    /// An identity is nobody's any more, asks for nothing, and has chosen no language. Somebody who has lost the last identity
    /// is removed.
    Forgotten(Identity),
    /// Somebody chose the language of what the gateway tells them; `None`: that which the platform tells.
    Speaks(Identity, Option<Language>),
}

/// Everybody who is known, as access rules need it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownPeople(HashMap<ChannelId, HashMap<String, (PersonRole, String)>>);

impl KnownPeople {
    pub(crate) fn of(people: &[PersonRecord]) -> Self {
        let mut known = Self::default();
        for person in people {
            for KnownIdentity { identity: Identity { channel, id }, .. } in &person.identities {
                let of_channel = known.0.entry(channel.clone()).or_default();
                of_channel.insert(id.clone(), (person.role, person.name.clone()));
            }
        }
        known
    }

    /// Whether somebody is known.
    #[must_use]
    pub fn has(&self, channel: &ChannelId, id: &str) -> bool {
        self.0.get(channel).is_some_and(|ids| ids.contains_key(id))
    }

    /// The role and the name of whoever has this id.
    pub(crate) fn get(&self, channel: &ChannelId, id: &str) -> Option<(PersonRole, &str)> {
        self.0.get(channel)?.get(id).map(|(role, name)| (*role, name.as_str()))
    }
}
