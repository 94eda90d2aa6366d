//! Who is known, who asks to be let in, where people are reached and in which language. Nothing here sends a message.
//!
//! Memory holds everybody who is known, so that no event waits for a look at the store, and the few requests that wait. A
//! stranger who is given no code costs nothing here.
//!
//! What changes is stored first and then taken over. A change is decided and stored while [`People::deciding`] is held, so
//! that of two decisions on one request the second finds that it was decided.

pub(crate) mod access;
mod configured;
pub(crate) mod quiet_hours;

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use arc_swap::ArcSwap;
use rand::seq::IndexedRandom;
use rejoinder_guard::Timestamp;
use tokio::sync::{Notify, OwnedMutexGuard};

use self::configured::planted;
use crate::{
    base::channels::Channels,
    model::{
        approvers::ApprovalSettings,
        conversation::{ChannelId, ChatKind, ConversationRef},
        event::{InboundEvent, SenderKind},
        finding::{PersonFilter, meant, nearest},
        ids::{PersonId, TurnId},
        language::Language,
        log::{LogEvent, NewLogEntry, Subject},
        people::{
            DirectChat, Identity, KnownAs, KnownIdentity, KnownPeople, Pairing, PairingState, PeopleChange,
            PersonRecord, PersonRole, SeedPerson, is_hidden,
        },
        target::Target,
    },
    ports::{
        clock::SharedClock,
        store::{Store, StoreError, transition::Transition},
    },
};

/// How long a code is valid, and how long somebody who was given one is not told again.
const LIFETIME: Duration = Duration::from_hours(1);

/// How long a code is valid with which somebody who is known links another channel.
const LINKING: Duration = Duration::from_mins(10);

/// How long somebody cannot ask again after the answer was no.
const DECLINED: Duration = Duration::from_hours(7 * 24);

/// How many requests of a channel may wait at once.
const PENDING: usize = 3;

/// The characters of a code: letters and digits that are not mistaken for each other.
const ALPHABET: &[u8] = b"ABCDEFGHJKMNPQRSTUVWXYZ23456789";

/// How many codes that do not exist somebody may try within [`GUESSING`].
const GUESSES: usize = 10;

/// How many all who hold keys of one channel may try together: in a year they hit a code of 31⁸ that is always open with a chance
/// of 1 in 97,000.
const SHARED_GUESSES: usize = 1000;

const GUESSING: Duration = Duration::from_hours(1);

/// Of how many callers the tries are remembered. Strangers may try codes too: the first of them are forgotten.
const GUESSERS: usize = 1000;

/// Who is known, and who asks to be let in.
pub(crate) struct People {
    store: Arc<dyn Store>,
    clock: SharedClock,
    known: ArcSwap<KnownPeople>,
    state: Mutex<State>,
    deciding: Arc<tokio::sync::Mutex<()>>,
    let_in: Notify,
    asked: Notify,
    reachable: Notify,
}

#[derive(Default)]
struct State {
    people: Vec<PersonRecord>,
    pairings: Vec<Pairing>,
    /// The languages that people chose.
    languages: HashMap<Identity, Language>,
    /// Where people who are known are reached.
    chats: HashMap<Identity, DirectChat>,
    /// Where those are reached, by the configuration, who chose nothing else.
    homes: HashSet<Identity>,
    /// The languages that the configuration says.
    configured_languages: HashMap<Identity, Language>,
    /// When a stranger last got no code because too many requests wait.
    turned_away: HashMap<ChannelId, Timestamp>,
    /// Who has tried codes that do not exist, since when, and which.
    guesses: HashMap<String, (Timestamp, HashSet<String>)>,
}

/// What becomes of a stranger's request to be let in.
pub(crate) enum Asked {
    /// It waits; they are given its code, if they were not yet.
    Waits(Pairing),
    /// So many wait on the channel that they are given none.
    Full,
    /// The answer was no, or they have been let in meanwhile.
    Over,
}

/// Why a code opens nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WrongCode {
    /// Nobody was given it, its time has passed, or the request was decided.
    Unknown,
    /// The caller has tried too many codes that do not exist: they may try again after this time.
    Locked(Duration),
}

/// Why people cannot be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreachable {
    /// Nobody who is known is meant.
    Unknown,
    /// Several people have that name.
    Ambiguous,
    /// Nobody who is meant has written in a direct chat.
    Silent,
}

/// Somebody who is known and is meant by a target.
pub(crate) struct Meant {
    pub(crate) person: PersonId,
    pub(crate) role: PersonRole,
    /// The direct chat in which they are reached.
    pub(crate) chat: Option<DirectChat>,
    pub(crate) identities: Vec<KnownIdentity>,
}

impl People {
    /// Reads who is known, and adds those whom the configuration names.
    pub(crate) async fn load(
        store: Arc<dyn Store>,
        clock: SharedClock,
        seeds: &[SeedPerson],
    ) -> Result<Self, StoreError> {
        let (mut people, pairings) = (store.people().await?, store.pairings().await?);
        let languages = store.languages().await?.into_iter().collect();
        let chats = store.direct_chats().await?.into_iter().map(|chat| (chat.identity.clone(), chat)).collect();
        let changes = planted(seeds, &[], &mut people, clock.now());
        let (homes, configured_languages) = wishes(seeds);
        if !changes.is_empty() {
            store.commit(Transition { people: changes, ..Transition::default() }).await?;
        }
        Ok(Self {
            known: ArcSwap::from_pointee(KnownPeople::of(&people)),
            state: Mutex::new(State {
                people,
                pairings,
                languages,
                chats,
                homes,
                configured_languages,
                turned_away: HashMap::new(),
                guesses: HashMap::new(),
            }),
            store,
            clock,
            deciding: Arc::default(),
            let_in: Notify::new(),
            asked: Notify::new(),
            reachable: Notify::new(),
        })
    }

    /// Adds the people of a configuration that was read again, as far as they differ from those of `before`: who was revoked
    /// since stays so. Returns who was let in, and who stays known although they are no longer configured.
    pub(crate) async fn plant(
        &self,
        seeds: &[SeedPerson],
        before: &[SeedPerson],
    ) -> Result<(Vec<KnownAs>, Vec<KnownAs>), StoreError> {
        let _deciding = self.deciding().await;
        let known = self.state().people.clone();
        let mut people = known.clone();
        let changes = planted(seeds, before, &mut people, self.clock.now());
        if !changes.is_empty() {
            self.change(Transition { people: changes, ..Transition::default() }).await?;
        }
        let mut state = self.state();
        (state.homes, state.configured_languages) = wishes(seeds);
        let all: Vec<_> = people.iter().flat_map(KnownAs::all_of).collect();
        let has = |people: &[PersonRecord], it: &KnownAs| people.iter().any(|one| one.identity(&it.identity).is_some());
        let names =
            |seeds: &[SeedPerson], it: &KnownAs| seeds.iter().any(|seed| seed.identities.contains(&it.identity));
        let let_in = all.iter().filter(|it| !has(&known, it)).cloned().collect();
        let still_known = all.iter().filter(|it| names(before, it) && !names(seeds, it)).cloned().collect();
        Ok((let_in, still_known))
    }

    /// Everybody who is known now.
    pub(crate) fn known(&self) -> Arc<KnownPeople> {
        self.known.load_full()
    }

    /// Held while a change is decided and stored.
    pub(crate) async fn deciding(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.deciding).lock_owned().await
    }

    /// Takes over changes that were stored.
    pub(crate) fn apply(&self, changes: &[PeopleChange]) {
        let mut state = self.state();
        for change in changes {
            apply(&mut state.people, change);
            change_request(&mut state.pairings, change);
            change_language(&mut state.languages, change);
            change_chat(&mut state.chats, change);
        }
        self.known.store(Arc::new(KnownPeople::of(&state.people)));
        if state.pairings.iter().any(|one| one.state == PairingState::Approved) {
            self.let_in.notify_one();
        }
        if changes.iter().any(|change| matches!(change, PeopleChange::Asked(_))) {
            self.asked.notify_one();
        }
        if changes
            .iter()
            .any(|change| matches!(change, PeopleChange::Writes(_) | PeopleChange::Home(..) | PeopleChange::Known(_)))
        {
            self.look_again();
        }
    }

    /// Stores changes, and takes them over.
    pub(crate) async fn change(&self, transition: Transition) -> Result<(), StoreError> {
        let changes = transition.people.clone();
        self.store.commit(transition).await?;
        self.apply(&changes);
        Ok(())
    }

    /// The request of a stranger to be let in: theirs, if they were given a code before.
    pub(crate) async fn ask(&self, event: &InboundEvent) -> Result<Asked, StoreError> {
        let identity = event.identity();
        if let Some(asked) = self.asked_before(&identity) {
            return Ok(asked);
        }
        let _deciding = self.deciding().await;
        // Another event of theirs, or another stranger's, may have come first.
        if let Some(asked) = self.asked_before(&identity) {
            return Ok(asked);
        }
        let pairing = self.with_new_code(event, PairingState::Waiting, LIFETIME);
        let now = pairing.asked_at;
        let subject = Subject::channel(&pairing.identity.channel);
        let asked = LogEvent::PersonAsked { identity: pairing.identity.to_string() };
        let log = vec![NewLogEntry { at: now, subject, event: asked }];
        let people = vec![PeopleChange::Asked(pairing.clone())];
        self.change(Transition { log, people, ..Transition::default() }).await?;
        Ok(Asked::Waits(pairing))
    }

    /// What became of the request of somebody who can make no new one.
    fn asked_before(&self, identity: &Identity) -> Option<Asked> {
        if let Some(known) = self.request_of(identity) {
            let is_waiting = known.state == PairingState::Waiting;
            return Some(if is_waiting { Asked::Waits(known) } else { Asked::Over });
        }
        if self.known().has(&identity.channel, &identity.id) {
            return Some(Asked::Over);
        }
        self.is_full(&identity.channel).then(|| {
            let now = self.clock.now();
            let before = self.state().turned_away.insert(identity.channel.clone(), now);
            if before.is_none_or(|at| at + LIFETIME <= now) {
                self.asked.notify_one();
            }
            Asked::Full
        })
    }

    /// The channels on which as many requests wait as may, and strangers were turned away lately; each with when that was.
    pub(crate) fn turned_away(&self) -> Vec<(ChannelId, Timestamp)> {
        let now = self.clock.now();
        let turned_away = self.state().turned_away.clone();
        let is_new = |(channel, at): &(ChannelId, Timestamp)| *at + LIFETIME > now && self.is_full(channel);
        turned_away.into_iter().filter(is_new).collect()
    }

    /// The code with which the sender of an event links another channel, in place of an earlier one of theirs.
    pub(crate) fn new_link(&self, event: &InboundEvent) -> Pairing {
        self.with_new_code(event, PairingState::Links, LINKING)
    }

    /// How a code is stored that somebody has used in `turn`: the person who made it is asked.
    pub(crate) fn link_used(&self, link: Pairing, turn: TurnId) -> PeopleChange {
        let now = self.clock.now();
        PeopleChange::Asked(Pairing { asked_at: now, expires_at: now + LINKING, linked_by: Some(turn), ..link })
    }

    /// The codes that somebody has used, and about which the people who made them are asked.
    pub(crate) fn links_used(&self) -> Vec<(Pairing, TurnId)> {
        let now = self.clock.now();
        let used = |one: &Pairing| {
            let is_used = one.state == PairingState::Links && one.expires_at > now;
            one.linked_by.filter(|_| is_used).map(|turn| (one.clone(), turn))
        };
        self.state().pairings.iter().filter_map(used).collect()
    }

    /// The code that was used in `turn`, while the person who made it may confirm that.
    pub(crate) fn link_used_in(&self, turn: TurnId) -> Option<Pairing> {
        self.links_used().into_iter().find(|(_, used_in)| *used_in == turn).map(|(link, _)| link)
    }

    /// Whether somebody has used this code, and the person who made it is asked: the message with it may arrive once more.
    pub(crate) fn is_used_link(&self, typed: &str) -> bool {
        let code = normalised(typed);
        self.links_used().iter().any(|(link, _)| link.code == code)
    }

    /// The code to link with that somebody made and nobody has used.
    pub(crate) fn link_of(&self, identity: &Identity) -> Option<Pairing> {
        self.request_of(identity).filter(Pairing::is_open_link)
    }

    /// The requests that wait, oldest first.
    pub(crate) fn waiting(&self) -> Vec<Pairing> {
        let now = self.clock.now();
        self.state().pairings.iter().filter(|it| it.is_waiting(now)).cloned().collect()
    }

    /// Who was let in, and was not told yet.
    pub(crate) fn untold(&self) -> Vec<Pairing> {
        self.state().pairings.iter().filter(|it| it.state == PairingState::Approved).cloned().collect()
    }

    /// Waits until somebody was let in.
    pub(crate) async fn until_let_in(&self) {
        self.let_in.notified().await;
    }

    /// Waits until somebody asked to be let in.
    pub(crate) async fn until_asked(&self) {
        self.asked.notified().await;
    }

    /// Waits until somebody can be reached in another place than before, or is known as somebody else.
    pub(crate) async fn until_reachable(&self) {
        self.reachable.notified().await;
    }

    /// Has whoever waits for people who can be reached look again.
    pub(crate) fn look_again(&self) {
        self.reachable.notify_one();
    }

    /// The owners, each with the direct chat in which they are reached.
    pub(crate) fn reachable_owners(&self, channels: &Channels) -> Vec<(PersonId, DirectChat)> {
        self.reachable(channels, |person| person.role == PersonRole::Owner)
    }

    /// Those who may decide what agents ask approval for, each with the direct chat in which they are reached.
    pub(crate) fn reachable_approvers(
        &self,
        settings: &ApprovalSettings,
        channels: &Channels,
    ) -> Vec<(PersonId, DirectChat)> {
        self.reachable(channels, |person| person.may_decide(settings))
    }

    /// Whether somebody who is known is meant by a name.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        !meant(&self.state().people, name).is_empty()
    }

    /// Those who are meant by a name or an identity.
    pub(crate) fn called(&self, name: &str) -> Vec<PersonRecord> {
        meant(&self.state().people, name).into_iter().cloned().collect()
    }

    /// The name of somebody who is known and among these that may have been meant.
    pub(crate) fn nearest(&self, name: &str, among: impl Fn(&PersonRecord) -> bool) -> Option<String> {
        nearest(self.state().people.iter().filter(|person| among(person)), name).map(ToOwned::to_owned)
    }

    /// The name of somebody who is known; `None` if the person was forgotten, or is known on channels only that are not seen.
    pub(crate) fn name_of(&self, id: PersonId, sees: impl Fn(&ChannelId) -> bool) -> Option<String> {
        let state = self.state();
        let person = state.people.iter().find(|person| person.id == id)?;
        (!is_hidden(&person.identities, sees)).then(|| person.name.clone())
    }

    /// Whom a list is about.
    pub(crate) fn filter(&self, text: &str) -> PersonFilter {
        let state = self.state();
        let chats: Vec<_> = state.chats.values().cloned().collect();
        PersonFilter::new(text, &state.people, &chats)
    }

    /// Whether somebody is known who may decide what agents ask approval for.
    pub(crate) fn has_approver(&self, settings: &ApprovalSettings) -> bool {
        self.state().people.iter().any(|person| person.may_decide(settings))
    }

    fn reachable(&self, channels: &Channels, is_meant: impl Fn(&PersonRecord) -> bool) -> Vec<(PersonId, DirectChat)> {
        let state = self.state();
        let meant = state.people.iter().filter(|person| is_meant(person));
        meant
            .filter_map(|person| Some((person.id, state.reached(person, |chat| channels.takes_messages(chat))?)))
            .collect()
    }

    /// The name of the person who is reached in a direct chat.
    pub(crate) fn name_in(&self, place: &ConversationRef) -> Option<String> {
        self.in_chat(place, |person| person.name.clone())
    }

    /// The language of what the gateway tells whoever is reached in a direct chat.
    pub(crate) fn language_in_chat(&self, place: &ConversationRef) -> Option<Language> {
        let chat = self.state().chats.values().find(|chat| chat.conversation == *place).cloned();
        self.spoken_language(&chat?)
    }

    /// The person who is reached in a direct chat.
    pub(crate) fn reached_in(&self, place: &ConversationRef) -> Option<PersonId> {
        self.in_chat(place, |person| person.id)
    }

    /// The direct chats in which somebody is reached.
    pub(crate) fn direct_chats(&self, person: PersonId) -> Vec<ConversationRef> {
        let state = self.state();
        let people = state.people.iter().filter(|one| one.id == person);
        people.flat_map(|one| state.chats_of(one)).map(|chat| chat.conversation.clone()).collect()
    }

    fn in_chat<T>(&self, place: &ConversationRef, read: impl Fn(&PersonRecord) -> T) -> Option<T> {
        let state = self.state();
        let mut people = state.people.iter();
        people.find(|person| state.chats_of(person).any(|chat| chat.conversation == *place)).map(read)
    }

    /// Whether somebody who is known is meant by a target.
    pub(crate) fn is_meant(&self, target: &Target) -> bool {
        !self.state().meant_by(target).is_empty()
    }

    /// Those whom a name or a role means, each with the direct chat in which they are reached.
    pub(crate) fn whom(&self, target: &Target, channels: &Channels) -> Result<Vec<Meant>, Unreachable> {
        let state = self.state();
        let meant: Vec<_> = state
            .meant_by(target)
            .into_iter()
            .map(|person| Meant {
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

    /// The direct chat in which the person who is known by an identity is reached.
    pub(crate) fn chat_of(&self, identity: &Identity, channels: &Channels) -> Option<DirectChat> {
        let state = self.state();
        let person = state.people.iter().find(|person| person.identity(identity).is_some())?;
        state.reached(person, |chat| channels.takes_messages(chat))
    }

    /// The home of the person who is known by an identity: what they chose, or else what the configuration says.
    pub(crate) fn home_of(&self, identity: &Identity) -> Option<Identity> {
        let state = self.state();
        let person = state.people.iter().find(|person| person.identity(identity).is_some())?;
        let chosen = state.reached(person, |chat| chat.is_home).map(|chat| chat.identity);
        let configured = || person.identities.iter().map(|known| &known.identity).find(|it| state.homes.contains(it));
        chosen.or_else(|| configured().cloned())
    }

    /// Where the person who is known by an identity chose to be reached: on one channel, unless two people with a home each have
    /// become one.
    pub(crate) fn chosen_homes(&self, identity: &Identity) -> Vec<Identity> {
        let state = self.state();
        let Some(person) = state.people.iter().find(|person| person.identity(identity).is_some()) else {
            return Vec::new();
        };
        state.chats_of(person).filter(|chat| chat.is_home).map(|chat| chat.identity.clone()).collect()
    }

    /// What an event changes of where people are reached, and in which language. `told`: the one that the platform tells. Decided
    /// while [`deciding`](Self::deciding) is held.
    pub(crate) fn moves(&self, event: &InboundEvent, told: Option<Language>) -> Vec<PeopleChange> {
        match event.chat {
            ChatKind::Group => {
                self.joined_by_others(&event.conversation).into_iter().map(PeopleChange::Leaves).collect()
            }
            ChatKind::Direct => self.moves_to(event, told).map(PeopleChange::Writes).into_iter().collect(),
        }
    }

    /// Whose direct chat a group was: others have joined it since.
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

    /// The language that somebody chose, here or on another channel of theirs.
    pub(crate) fn chosen_language(&self, identity: &Identity) -> Option<Language> {
        self.language_in(|state| &state.languages, identity)
    }

    /// The language that the configuration says of somebody.
    pub(crate) fn configured_language(&self, identity: &Identity) -> Option<Language> {
        self.language_in(|state| &state.configured_languages, identity)
    }

    /// The language of what the gateway tells somebody of its own accord in their direct chat.
    pub(crate) fn spoken_language(&self, chat: &DirectChat) -> Option<Language> {
        let told = self.chosen_language(&chat.identity).or(chat.language);
        told.or_else(|| self.configured_language(&chat.identity))
    }

    /// What a map has for somebody, or else for another identity of theirs.
    fn language_in(
        &self,
        map: impl Fn(&State) -> &HashMap<Identity, Language>,
        identity: &Identity,
    ) -> Option<Language> {
        let state = self.state();
        let map = map(&state);
        if map.is_empty() {
            return None;
        }
        map.get(identity).copied().or_else(|| self.known().all_of(identity).iter().find_map(|it| map.get(it).copied()))
    }

    /// The request with this code, if it waits.
    pub(crate) fn waiting_with(&self, code: &str) -> Option<Pairing> {
        let now = self.clock.now();
        self.state().pairings.iter().find(|one| one.code == code && one.is_waiting(now)).cloned()
    }

    /// The request of a sender, also a decided one, if its time has not passed.
    pub(crate) fn request_of(&self, identity: &Identity) -> Option<Pairing> {
        let now = self.clock.now();
        self.state().pairings.iter().find(|one| one.identity == *identity && one.expires_at > now).cloned()
    }

    /// The waiting request with a code, as `who` typed it, among those that they may decide.
    pub(crate) fn with_code(
        &self,
        typed: &str,
        who: &str,
        may: impl Fn(&Pairing) -> bool,
    ) -> Result<Pairing, WrongCode> {
        let is_meant = |one: &Pairing| one.state == PairingState::Waiting && may(one);
        self.state().with_code(typed, &[(who.to_owned(), GUESSES)], is_meant, self.clock.now())
    }

    /// The code that somebody who is known made to link another channel, as the sender of an event typed it.
    pub(crate) fn link_with(&self, typed: &str, event: &InboundEvent) -> Result<Pairing, WrongCode> {
        let is_meant = Pairing::is_open_link;
        let identity = event.identity();
        let mut callers = vec![(identity.to_string(), GUESSES)];
        // Anybody can begin another conversation with another key.
        if event.sender.kind == SenderKind::KeyHolder {
            callers.push((identity.channel.to_string(), SHARED_GUESSES));
        }
        self.state().with_code(typed, &callers, is_meant, self.clock.now())
    }

    /// The person whom a channel knows by this identity.
    pub(crate) fn person_of(&self, identity: &Identity) -> Option<PersonRecord> {
        self.state().people.iter().find(|person| person.identity(identity).is_some()).cloned()
    }

    /// How a request is stored to which the answer is no.
    pub(crate) fn declined(&self, pairing: Pairing) -> PeopleChange {
        PeopleChange::Asked(Pairing {
            state: PairingState::Declined,
            expires_at: self.clock.now() + DECLINED,
            ..pairing
        })
    }

    /// The sender of an event, with a code that nobody has.
    fn with_new_code(&self, event: &InboundEvent, state: PairingState, lifetime: Duration) -> Pairing {
        let now = self.clock.now();
        Pairing {
            code: self.state().new_code(),
            identity: event.identity(),
            name: event.sender.name.clone(),
            username: event.sender.username.clone(),
            language: event.language,
            conversation: event.conversation.clone(),
            asked_at: now,
            expires_at: now + lifetime,
            state,
            linked_by: None,
        }
    }

    fn is_full(&self, channel: &ChannelId) -> bool {
        let now = self.clock.now();
        let of_channel = |one: &&Pairing| one.is_waiting(now) && one.identity.channel == *channel;
        self.state().pairings.iter().filter(of_channel).count() >= PENDING
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// A code that no request has.
    fn new_code(&self) -> String {
        let mut rng = rand::rng();
        loop {
            let bytes = (0..Pairing::CODE_LENGTH).filter_map(|_| ALPHABET.choose(&mut rng));
            let code: String = bytes.map(|byte| char::from(*byte)).collect();
            if self.pairings.iter().all(|one| one.code != code) {
                return code;
            }
        }
    }

    /// The request with a code that was typed. A try counts for each of `callers`, who each have so many.
    fn with_code(
        &mut self,
        typed: &str,
        callers: &[(String, usize)],
        is_meant: impl Fn(&Pairing) -> bool,
        now: Timestamp,
    ) -> Result<Pairing, WrongCode> {
        self.guesses.retain(|_, (since, _)| *since + GUESSING > now && *since <= now);
        let locked = |(who, most): &(String, usize)| {
            let guesses = self.guesses.get(who).filter(|(_, codes)| codes.len() >= *most);
            guesses.map(|(since, _)| *since + GUESSING)
        };
        if let Some(until) = callers.iter().filter_map(locked).max() {
            return Err(WrongCode::Locked(until.since(now)));
        }
        let code = normalised(typed);
        let found = self.pairings.iter().find(|one| one.code == code && one.expires_at > now && is_meant(one));
        if let Some(found) = found {
            return Ok(found.clone());
        }
        // What no code looks like is a mistake, and no guess.
        if code.len() == Pairing::CODE_LENGTH {
            for (who, _) in callers {
                self.forget_a_guesser(who);
                self.guesses.entry(who.clone()).or_insert_with(|| (now, HashSet::new())).1.insert(code.clone());
            }
        }
        Err(WrongCode::Unknown)
    }

    /// Makes room for another one who tries codes.
    fn forget_a_guesser(&mut self, newcomer: &str) {
        if self.guesses.len() < GUESSERS || self.guesses.contains_key(newcomer) {
            return;
        }
        // Of what many share, more are remembered than anybody has alone: new callers must not bring those tries back.
        let guessers = self.guesses.iter();
        let first =
            guessers.min_by_key(|(_, (since, codes))| (codes.len() > GUESSES, *since)).map(|(who, _)| who.clone());
        first.map(|who| self.guesses.remove(&who));
    }
}

impl PersonRecord {
    fn may_decide(&self, settings: &ApprovalSettings) -> bool {
        let identities: Vec<_> = self.identities.iter().map(|known| known.identity.clone()).collect();
        settings.may_decide(self.role, &identities)
    }

    /// What is known of one of their identities, if it is theirs.
    pub(crate) fn identity(&self, identity: &Identity) -> Option<&KnownIdentity> {
        self.identities.iter().find(|one| one.identity == *identity)
    }
}

impl Pairing {
    fn is_waiting(&self, now: Timestamp) -> bool {
        self.state == PairingState::Waiting && self.expires_at > now
    }

    /// Whether it is a code to link with that nobody has used.
    fn is_open_link(&self) -> bool {
        self.state == PairingState::Links && self.linked_by.is_none()
    }
}

/// A code as it is stored, of what somebody typed.
fn normalised(typed: &str) -> String {
    typed.chars().filter(char::is_ascii_alphanumeric).map(|char| char.to_ascii_uppercase()).collect()
}

/// The homes and the languages that the configuration gives to people.
fn wishes(seeds: &[SeedPerson]) -> (HashSet<Identity>, HashMap<Identity, Language>) {
    let homes = seeds.iter().flat_map(SeedPerson::homes).cloned().collect();
    let spoken = |seed: &SeedPerson| Some((seed.identities.clone(), seed.language?));
    let languages = seeds.iter().filter_map(spoken);
    let languages = languages.flat_map(|(identities, language)| identities.into_iter().map(move |it| (it, language)));
    (homes, languages.collect())
}

/// Changes who is known, as the store does.
fn apply(people: &mut Vec<PersonRecord>, change: &PeopleChange) {
    let take = |people: &mut Vec<PersonRecord>, identity: &Identity, keeper: Option<PersonId>| {
        for person in people.iter_mut() {
            person.identities.retain(|one| one.identity != *identity);
        }
        people.retain(|person| !person.identities.is_empty() || Some(person.id) == keeper);
    };
    match change {
        PeopleChange::Known(new) => {
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
        PeopleChange::Forgotten(identity) => take(people, identity, None),
        PeopleChange::Asked(_)
        | PeopleChange::Told(_)
        | PeopleChange::Writes(_)
        | PeopleChange::Leaves(_)
        | PeopleChange::Home(..)
        | PeopleChange::Speaks(..) => {}
    }
}

/// Changes who asks, as the store does.
fn change_request(pairings: &mut Vec<Pairing>, change: &PeopleChange) {
    match change {
        PeopleChange::Asked(new) => {
            pairings.retain(|one| one.identity != new.identity && one.expires_at > new.asked_at);
            pairings.push(new.clone());
        }
        PeopleChange::Known(person) => {
            pairings.retain(|one| person.identities.iter().all(|known| known.identity != one.identity));
        }
        PeopleChange::Forgotten(identity) | PeopleChange::Told(identity) => {
            pairings.retain(|one| one.identity != *identity);
        }
        PeopleChange::Writes(_) | PeopleChange::Leaves(_) | PeopleChange::Home(..) | PeopleChange::Speaks(..) => {}
    }
}

/// Changes who chose which language, as the store does.
fn change_language(languages: &mut HashMap<Identity, Language>, change: &PeopleChange) {
    match change {
        PeopleChange::Speaks(identity, Some(language)) => {
            languages.insert(identity.clone(), *language);
        }
        PeopleChange::Speaks(identity, None) | PeopleChange::Forgotten(identity) => {
            languages.remove(identity);
        }
        PeopleChange::Asked(_)
        | PeopleChange::Known(_)
        | PeopleChange::Told(_)
        | PeopleChange::Writes(_)
        | PeopleChange::Home(..)
        | PeopleChange::Leaves(_) => {}
    }
}

/// Changes where people are reached, as the store does.
fn change_chat(chats: &mut HashMap<Identity, DirectChat>, change: &PeopleChange) {
    match change {
        PeopleChange::Writes(chat) => {
            chats.insert(chat.identity.clone(), chat.clone());
        }
        PeopleChange::Leaves(identity) | PeopleChange::Forgotten(identity) => {
            chats.remove(identity);
        }
        PeopleChange::Home(identity, is_home) => {
            if let Some(chat) = chats.get_mut(identity) {
                chat.is_home = *is_home;
            }
        }
        PeopleChange::Asked(_) | PeopleChange::Known(_) | PeopleChange::Told(_) | PeopleChange::Speaks(..) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    #[test]
    fn ten_codes_that_do_not_exist_lock_the_caller_out_for_an_hour() {
        let mut state = State::default();
        let mut tries =
            |code: &str, who: &str, seconds| state.with_code(code, &[(who.to_owned(), GUESSES)], |_| true, at(seconds));
        for number in 0..10 {
            // What is no code, and the one before once more, are no guesses.
            assert_eq!(tries("", "eve", number), Err(WrongCode::Unknown));
            assert_eq!(tries(&format!("aaaaaa{:02}", (number - 1).max(0)), "eve", number), Err(WrongCode::Unknown));
            assert_eq!(tries(&format!("AAAA-AA{number:02}"), "eve", number), Err(WrongCode::Unknown));
        }

        assert_eq!(tries("AAAABBBB", "eve", 600), Err(WrongCode::Locked(Duration::from_mins(50))));
        assert_eq!(tries("AAAABBBB", "bob", 600), Err(WrongCode::Unknown), "others are not locked out");
        assert_eq!(tries("AAAABBBB", "eve", 3600), Err(WrongCode::Unknown));
    }

    /// Each holder of a key has tries of their own, and all on their channel have some together.
    #[test]
    fn who_shares_tries_with_many_locks_out_nobody_but_themselves() {
        fn tries(state: &mut State, who: &str, number: usize) -> Result<Pairing, WrongCode> {
            let callers = [(who.to_owned(), GUESSES), ("webchat.main".to_owned(), SHARED_GUESSES)];
            state.with_code(&format!("A{number:07}"), &callers, |_| true, at(0))
        }
        let mut state = State::default();
        for number in 0..10 {
            assert_eq!(tries(&mut state, "eve", number), Err(WrongCode::Unknown));
        }

        assert_eq!(tries(&mut state, "eve", 10), Err(WrongCode::Locked(GUESSING)));
        for number in 10..SHARED_GUESSES {
            assert_eq!(tries(&mut state, &format!("key {number}"), number), Err(WrongCode::Unknown));
        }
        for number in 0..GUESSERS {
            let stranger = [(format!("stranger {number}"), GUESSES)];
            assert_eq!(state.with_code("AAAABBBB", &stranger, |_| true, at(0)), Err(WrongCode::Unknown));
        }
        assert_eq!(tries(&mut state, "another key", 1000), Err(WrongCode::Locked(GUESSING)));
    }

    /// O2.
    #[test]
    fn a_crowd_that_guesses_fills_no_memory() {
        let mut state = State::default();
        for number in 0..10_000 {
            let wrong = state.with_code("AAAABBBB", &[(number.to_string(), GUESSES)], |_| true, at(number));
            assert_eq!(wrong, Err(WrongCode::Unknown));
        }

        assert!(state.guesses.len() <= GUESSERS, "{}", state.guesses.len());
        assert!(state.guesses.contains_key("9999"));
    }
}
