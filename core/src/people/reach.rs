//! The people of a target, and the direct chat in which each is reached.

use std::time::Duration;

use super::{People, State};
use crate::{
    base::channels::Channels,
    model::{
        ApprovalSettings, ChatKind, ConversationRef, DirectChat, Identity, InboundEvent, KnownIdentity, Language,
        PeopleChange, PersonFilter, PersonId, PersonRecord, PersonRole, Target, meant, nearest,
    },
};

/// Why people cannot be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreachable {
    /// No known person has this name or role.
    Unknown,
    /// Several people have that name.
    Ambiguous,
    /// None of the people has written in a direct chat.
    Silent,
}

/// A known person who is a recipient of a target.
pub(crate) struct TargetPerson {
    pub(crate) person: PersonId,
    pub(crate) role: PersonRole,
    /// The direct chat in which they are reached.
    pub(crate) chat: Option<DirectChat>,
    pub(crate) identities: Vec<KnownIdentity>,
}

impl People {
    /// The owners, each with the direct chat in which they are reached.
    pub(crate) fn reachable_owners(&self, channels: &Channels) -> Vec<(PersonId, DirectChat)> {
        self.reachable(channels, |person| person.role == PersonRole::Owner)
    }

    /// The approvers, each with the direct chat in which they are reached.
    pub(crate) fn reachable_approvers(
        &self,
        settings: &ApprovalSettings,
        channels: &Channels,
    ) -> Vec<(PersonId, DirectChat)> {
        self.reachable(channels, |person| person.may_decide(settings))
    }

    /// Whether a known person has this name.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        !meant(&self.state().people, name).is_empty()
    }

    /// The people whom a text means, as [`meant`](crate::meant).
    pub fn called(&self, name: &str) -> Vec<PersonRecord> {
        meant(&self.state().people, name).into_iter().cloned().collect()
    }

    /// The name of somebody who is known and among these that may have been meant.
    pub fn nearest(&self, name: &str, among: impl Fn(&PersonRecord) -> bool) -> Option<String> {
        nearest(self.state().people.iter().filter(|person| among(person)), name).map(ToOwned::to_owned)
    }

    /// Whom a list is about, as [`PersonFilter::new`].
    pub fn filter(&self, text: &str) -> PersonFilter {
        let state = self.state();
        let chats: Vec<_> = state.chats.values().cloned().collect();
        PersonFilter::new(text, &state.people, &chats)
    }

    /// Whether there is an approver.
    pub(crate) fn has_approver(&self, settings: &ApprovalSettings) -> bool {
        self.state().people.iter().any(|person| person.may_decide(settings))
    }

    pub(super) fn reachable(
        &self,
        channels: &Channels,
        is_meant: impl Fn(&PersonRecord) -> bool,
    ) -> Vec<(PersonId, DirectChat)> {
        let state = self.state();
        let meant = state.people.iter().filter(|person| is_meant(person));
        meant
            .filter_map(|person| Some((person.id, state.reached(person, |chat| channels.takes_messages(chat))?)))
            .collect()
    }

    /// The name of the person who is reached in a direct chat.
    pub(crate) fn name_in(&self, address: &ConversationRef) -> Option<String> {
        self.in_chat(address, |person| person.name.clone())
    }

    /// The person who is reached in a direct chat.
    pub(crate) fn reached_in(&self, address: &ConversationRef) -> Option<PersonId> {
        self.in_chat(address, |person| person.id)
    }

    /// The direct chats in which somebody is reached.
    pub(crate) fn direct_chats(&self, person: PersonId) -> Vec<ConversationRef> {
        let state = self.state();
        let people = state.people.iter().filter(|one| one.id == person);
        people.flat_map(|one| state.chats_of(one)).map(|chat| chat.conversation.clone()).collect()
    }

    fn in_chat<T>(&self, address: &ConversationRef, read: impl Fn(&PersonRecord) -> T) -> Option<T> {
        let state = self.state();
        let mut people = state.people.iter();
        people.find(|person| state.chats_of(person).any(|chat| chat.conversation == *address)).map(read)
    }

    /// Whether a known person is a recipient of a target.
    pub(crate) fn is_meant(&self, target: &Target) -> bool {
        !self.state().meant_by(target).is_empty()
    }

    /// The people with a name or a role, each with the direct chat in which they are reached.
    pub(crate) fn whom(&self, target: &Target, channels: &Channels) -> Result<Vec<TargetPerson>, Unreachable> {
        let state = self.state();
        let meant: Vec<_> = state
            .meant_by(target)
            .into_iter()
            .map(|person| TargetPerson {
                person: person.id,
                role: person.role,
                chat: state.reached(person, |chat| channels.takes_messages(chat)),
                identities: person.identities.clone(),
            })
            .collect();
        match (target, meant.len()) {
            (_, 0) => Err(Unreachable::Unknown),
            (Target::Person(_), 2..) => Err(Unreachable::Ambiguous),
            _ => Ok(meant),
        }
    }

    /// The direct chat in which the sender of an event is reached on another channel.
    pub(crate) fn chat_elsewhere(&self, event: &InboundEvent, channels: &Channels) -> Option<DirectChat> {
        let identity = event.identity();
        let state = self.state();
        let person = state.people.iter().find(|person| person.identity(&identity).is_some())?;
        state.reached(person, |chat| chat.identity.channel != identity.channel && channels.takes_messages(chat))
    }

    /// The direct chat in which the person of an identity is reached.
    pub(crate) fn chat_of(&self, identity: &Identity, channels: &Channels) -> Option<DirectChat> {
        let state = self.state();
        let person = state.people.iter().find(|person| person.identity(identity).is_some())?;
        state.reached(person, |chat| channels.takes_messages(chat))
    }

    /// The home of the person of an identity: their own choice, or else the configuration's.
    pub(crate) fn home_of(&self, identity: &Identity) -> Option<Identity> {
        let state = self.state();
        let person = state.people.iter().find(|person| person.identity(identity).is_some())?;
        let chosen = state.reached(person, |chat| chat.is_home).map(|chat| chat.identity);
        let configured = || person.identities.iter().map(|known| &known.identity).find(|it| state.homes.contains(it));
        chosen.or_else(|| configured().cloned())
    }

    /// Where somebody is reached first: what they chose, or else what the configuration says. `None`: where they wrote last.
    pub fn home(&self, person: &PersonRecord) -> Option<Identity> {
        self.home_of(&person.identities.first()?.identity)
    }

    /// The homes that the person of an identity chose: one, unless two people with a home each have become one.
    pub(crate) fn chosen_homes(&self, identity: &Identity) -> Vec<Identity> {
        let state = self.state();
        let Some(person) = state.people.iter().find(|person| person.identity(identity).is_some()) else {
            return Vec::new();
        };
        state.chats_of(person).filter(|chat| chat.is_home).map(|chat| chat.identity.clone()).collect()
    }

    /// The changes of direct chats and languages that an event brings. `told`: the platform's language of the sender.
    pub(crate) fn moves(&self, event: &InboundEvent, told: Option<Language>) -> Vec<PeopleChange> {
        match event.chat {
            ChatKind::Group => {
                self.joined_by_others(&event.conversation).into_iter().map(PeopleChange::DirectChatCleared).collect()
            }
            ChatKind::Direct => self.moves_to(event, told).map(PeopleChange::DirectChatSet).into_iter().collect(),
        }
    }

    /// The person whose direct chat became a group: others have joined it since.
    fn joined_by_others(&self, group: &ConversationRef) -> Vec<Identity> {
        let state = self.state();
        let was_group =
            |chat: &&DirectChat| chat.conversation.chat == group.chat && chat.conversation.channel == group.channel;
        state.chats.values().filter(was_group).map(|chat| chat.identity.clone()).collect()
    }

    /// The direct chat in which the sender of an event writes from now on. `None` if it is where they wrote last, in the same
    /// language, or nobody knows them.
    fn moves_to(&self, event: &InboundEvent, told: Option<Language>) -> Option<DirectChat> {
        let identity = event.identity();
        let is_direct = event.chat == ChatKind::Direct && event.sender.kind.is_person();
        if !is_direct || !self.known().has(&identity.channel, &identity.id) {
            return None;
        }
        let state = self.state();
        let person = state.people.iter().find(|person| person.identity(&identity).is_some())?;
        let last = state.chats_of(person).max_by_key(|chat| chat.since);
        let here = state.chats.get(&identity);
        // Some platforms tell it with some events only.
        let language = told.or(here.and_then(|here| here.language));
        let since = match last {
            Some(last) if last.identity == identity && last.conversation == event.conversation => last.since,
            // The clock may have been set back.
            Some(last) => self.clock.now().max(last.since + Duration::from_millis(1)),
            None => self.clock.now(),
        };
        let is_home = here.is_some_and(|here| here.is_home);
        let chat = DirectChat {
            conversation: event.conversation.clone(),
            since,
            is_home,
            language,
            identity: identity.clone(),
        };
        (here != Some(&chat)).then_some(chat)
    }
}

impl State {
    fn meant_by(&self, target: &Target) -> Vec<&PersonRecord> {
        match target {
            Target::Conversation(_) => Vec::new(),
            Target::Person(name) => meant(&self.people, name),
            Target::Role(role) => self.people.iter().filter(|person| person.role == *role).collect(),
        }
    }

    fn chats_of(&self, person: &PersonRecord) -> impl Iterator<Item = &DirectChat> {
        person.identities.iter().filter_map(|known| self.chats.get(&known.identity))
    }

    /// The direct chat in which somebody is reached, of those that fit: their home, or else where they wrote last. What the
    /// configuration says counts only if they have chosen none.
    fn reached(&self, person: &PersonRecord, fits: impl Fn(&DirectChat) -> bool) -> Option<DirectChat> {
        let has_chosen = self.chats_of(person).any(|chat| chat.is_home);
        let is_home = |chat: &DirectChat| if has_chosen { chat.is_home } else { self.homes.contains(&chat.identity) };
        self.chats_of(person).filter(|chat| fits(chat)).max_by_key(|chat| (is_home(chat), chat.since)).cloned()
    }
}
