//! People: who they are on which channel, and who asks to be let in.

use std::{collections::HashMap, fmt};

use rejoinder_guard::Timestamp;

use crate::model::{
    conversation::{ChannelId, ConversationRef},
    ids::{PersonId, TurnId},
    language::Language,
};

/// Somebody as a channel knows them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
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

named! {
    /// What a person may do besides talking to the agent.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum PersonRole {
        /// Nothing. Rules and limits can tell guests from members.
        Guest = "guest",
        /// Nothing.
        #[default]
        Member = "member",
        /// Lets others in, with `/approve`.
        Owner = "owner",
    }
}

/// A person, with everything by which channels know them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonRecord {
    pub id: PersonId,
    /// What operators call them.
    pub name: String,
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
    pub added_at: Timestamp,
    /// Who let them in: the name of an operator's token, `configuration`, or the name of an owner.
    pub added_by: String,
}

/// Whether somebody is known only on channels that an operator does not see.
pub(crate) fn is_hidden(identities: &[KnownIdentity], sees: impl Fn(&ChannelId) -> bool) -> bool {
    !identities.is_empty() && !identities.iter().any(|known| sees(&known.identity.channel))
}

/// A known person's identity on one channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownAs {
    /// The channel, and the id there.
    pub identity: Identity,
    /// What operators call them.
    pub name: String,
    pub role: PersonRole,
}

impl KnownAs {
    /// A person, by each of their identities.
    pub(crate) fn all_of(person: &PersonRecord) -> impl Iterator<Item = Self> {
        let of = |known: &KnownIdentity| (known.identity.clone(), person.name.clone(), person.role);
        person.identities.iter().map(of).map(|(identity, name, role)| Self { identity, name, role })
    }
}

/// Writes `CHANNEL/ID (NAME, ROLE)`.
impl fmt::Display for KnownAs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, {})", self.identity, self.name, self.role.as_str())
    }
}

/// The direct chat in which a known person is reached on a channel: the last one in which they wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectChat {
    pub identity: Identity,
    pub conversation: ConversationRef,
    /// Since when they write there, and not on another of their channels.
    pub since: Timestamp,
    /// Whether they chose to be reached here.
    pub is_home: bool,
    /// The language that the platform told last.
    pub language: Option<Language>,
}

/// A person whom the configuration names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeedPerson {
    pub name: String,
    pub role: PersonRole,
    pub identities: Vec<Identity>,
    /// The channel on which they are reached unless they chose another one; `None`: that where they wrote last.
    pub home: Option<ChannelId>,
    /// Their language, if they chose none and the platform tells none.
    pub language: Option<Language>,
}

impl SeedPerson {
    pub(crate) fn homes(&self) -> impl Iterator<Item = &Identity> {
        self.identities.iter().filter(|identity| Some(&identity.channel) == self.home.as_ref())
    }
}

/// A stranger's request to be let in, or a known person's code to link another channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pairing {
    /// The code that they were given: 8 characters without a dash.
    pub code: String,
    pub identity: Identity,
    /// The display name that the platform gave.
    pub name: Option<String>,
    /// The unique name that the platform gave, without `@`.
    pub username: Option<String>,
    /// Their language, if it was known when they asked.
    pub language: Option<Language>,
    pub conversation: ConversationRef,
    pub asked_at: Timestamp,
    /// When the code expires. Of a declined request: until when they cannot ask again.
    pub expires_at: Timestamp,
    pub state: PairingState,
    /// Of a code to link with: the turn in which it was used.
    pub linked_by: Option<TurnId>,
}

named! {
    /// What became of a request to be let in.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum PairingState {
        /// Nobody has decided it yet.
        Waiting = "waiting",
        Declined = "declined",
        /// They are let in, and were not told yet.
        Approved = "approved",
        /// No request: somebody who is known made the code, to be known by it on another channel. Once it is used, they are asked.
        Links = "links",
    }
}

impl Pairing {
    /// The number of characters of a code, without the dash.
    pub const CODE_LENGTH: usize = 8;

    /// Stands for a code to link with in what is stored: the code itself is put in its place when it is sent.
    pub(crate) const HIDDEN_CODE: &str = "••••-••••";

    /// The code as it is shown: with a dash in the middle.
    pub fn shown_code(&self) -> String {
        let (first, last) = self.code.split_at_checked(Self::CODE_LENGTH / 2).unwrap_or((&self.code, ""));
        format!("{first}-{last}")
    }
}

/// A try of a code that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guess {
    /// Whose try it is: an operator's name, an identity, or a channel of which all key holders share their tries.
    pub who: String,
    pub code: String,
    /// When the first of the tries came that count together.
    pub since: Timestamp,
}

/// A change of people's records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeopleChange {
    /// A request was made or decided, in place of an earlier one of its identity. Requests that had expired when it was made are
    /// removed.
    PairingSaved(Pairing),
    /// A person is new, or has another name or role. The named identities are added to this person, taken from any other, and
    /// their requests are removed; a person who loses the last identity is removed.
    PersonSaved(PersonRecord),
    /// The request or code of an identity is over: it was used or refused, and its person knows.
    PairingRemoved(Identity),
    /// An identity belongs to no person any more; its request, direct chat and language are removed with it, and a person without
    /// identities.
    IdentityRemoved(Identity),
    /// The direct chat of an identity is another one, or has another language.
    DirectChatSet(DirectChat),
    /// An identity has no direct chat any more: others read it now.
    DirectChatCleared(Identity),
    /// Whether the person is reached in the direct chat of this identity. Has no effect without a direct chat.
    HomeSet(Identity, bool),
    /// The person chose the language of the gateway's messages; `None`: the language that the platform tells.
    LanguageSet(Identity, Option<Language>),
    /// Somebody tried a code that does not exist. Tries since another time than this one are no longer counted for them, and
    /// those since `forgets` or before for nobody.
    CodeTried {
        guess: Guess,
        /// Until when tries are forgotten.
        forgets: Timestamp,
    },
}

/// Everybody who is known, as access rules need it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownPeople {
    /// By channel and by their id there.
    by_id: HashMap<ChannelId, HashMap<String, KnownPerson>>,
    identities: HashMap<PersonId, Vec<Identity>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct KnownPerson {
    person: PersonId,
    role: PersonRole,
    name: String,
}

impl KnownPeople {
    pub(crate) fn of(people: &[PersonRecord]) -> Self {
        let mut known = Self::default();
        for person in people {
            for KnownIdentity { identity: Identity { channel, id }, .. } in &person.identities {
                let of_channel = known.by_id.entry(channel.clone()).or_default();
                let name = person.name.clone();
                of_channel.insert(id.clone(), KnownPerson { person: person.id, role: person.role, name });
            }
            let identities = person.identities.iter().map(|known| known.identity.clone());
            known.identities.insert(person.id, identities.collect());
        }
        known
    }

    /// Whether somebody is known.
    pub fn has(&self, channel: &ChannelId, id: &str) -> bool {
        self.find(channel, id).is_some()
    }

    pub(crate) fn get(&self, channel: &ChannelId, id: &str) -> Option<(PersonRole, &str)> {
        self.find(channel, id).map(|known| (known.role, known.name.as_str()))
    }

    pub(crate) fn person(&self, channel: &ChannelId, id: &str) -> Option<PersonId> {
        self.find(channel, id).map(|known| known.person)
    }

    /// Everything by which channels know a person.
    pub(crate) fn identities(&self, person: PersonId) -> &[Identity] {
        self.identities.get(&person).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn all_of(&self, identity: &Identity) -> Vec<Identity> {
        match self.person(&identity.channel, &identity.id) {
            Some(person) => self.identities(person).to_vec(),
            None => vec![identity.clone()],
        }
    }

    fn find(&self, channel: &ChannelId, id: &str) -> Option<&KnownPerson> {
        self.by_id.get(channel)?.get(id)
    }
}
