//! Who is known, who may write, who asks to be let in, and where, when and in which language people are reached. Nothing
//! here sends a message.
//!
//! Memory holds everybody who is known, so that no event waits for a look at the store, and the few requests that wait. A
//! stranger who is given no code costs nothing here.
//!
//! What changes is stored, and then read again. It is stored only if nothing was changed since [`People::seen`], so that of two
//! decisions on one request the second is made anew, and finds that it was decided.

pub(crate) mod access;
pub(crate) mod codes;
mod configured;
mod guesses;
mod languages;
pub(crate) mod quiet_hours;
pub(crate) mod reach;

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use arc_swap::ArcSwap;
use rejoinder_guard::Timestamp;
use tokio::sync::Notify;
use tracing::warn;

use self::{
    configured::planted,
    guesses::{Guesses, change_guesses},
};
use crate::{
    base::{lifecycle::Lifecycle, pauses},
    model::{
        ApprovalSettings, ChannelId, DirectChat, Guess, Identity, KnownAs, KnownIdentity, KnownPeople, Language,
        Pairing, PeopleChange, PersonId, PersonRecord, SeedPerson, Version, is_hidden,
    },
    nodes::hints::Hints,
    ports::{Hint, Noun, PeopleStore, Seen, SharedClock, StoreError, Transition},
};

/// How long a change waits at most for the read after it.
const LONGEST_READ: Duration = Duration::from_secs(5);

/// Who is known, and who asks to be let in.
pub struct People {
    store: Arc<dyn PeopleStore>,
    clock: SharedClock,
    lifecycle: Lifecycle,
    hints: Arc<Hints>,
    known: ArcSwap<KnownPeople>,
    state: Mutex<State>,
    /// Locked while the tables are read: of many tasks that find them changed, one reads.
    reading: tokio::sync::Mutex<()>,
    /// Who stores where somebody writes: of many who write at once, none has to decide anew.
    pub(crate) moving: tokio::sync::Mutex<()>,
    let_in: Notify,
    asked: Notify,
    reachable: Notify,
}

#[derive(Default)]
pub(crate) struct State {
    /// The version of what was read from the store.
    version: Version,
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
    guesses: Guesses,
}

impl People {
    /// Reads the known people. The configured homes and languages hold, also if the configured people are not planted.
    pub(crate) async fn load(
        store: Arc<dyn PeopleStore>,
        clock: SharedClock,
        lifecycle: Lifecycle,
        hints: Arc<Hints>,
        seeds: &[SeedPerson],
    ) -> Result<Arc<Self>, StoreError> {
        let mut state = read(&*store).await?;
        (state.homes, state.configured_languages) = wishes(seeds);
        Ok(Arc::new(Self {
            known: ArcSwap::from_pointee(KnownPeople::of(&state.people)),
            state: Mutex::new(state),
            store,
            clock,
            lifecycle,
            hints,
            reading: tokio::sync::Mutex::default(),
            moving: tokio::sync::Mutex::default(),
            let_in: Notify::new(),
            asked: Notify::new(),
            reachable: Notify::new(),
        }))
    }

    /// The version and the people that this is decided on, and the changes that store those people of a configuration who differ from
    /// `before`.
    pub(crate) fn to_plant(
        &self,
        seeds: &[SeedPerson],
        before: &[SeedPerson],
    ) -> (Seen, Vec<PersonRecord>, Vec<PeopleChange>) {
        let seen = self.seen();
        let known = self.state().people.clone();
        let changes = planted(seeds, before, &known, self.clock.now());
        (seen, known, changes)
    }

    /// Called once the people of a configuration are stored. Returns the people who were let in since `known`, and those who stay known
    /// although they are no longer configured.
    pub(crate) fn planted(
        &self,
        seeds: &[SeedPerson],
        before: &[SeedPerson],
        known: &[PersonRecord],
    ) -> (Vec<KnownAs>, Vec<KnownAs>) {
        let mut state = self.state();
        (state.homes, state.configured_languages) = wishes(seeds);
        let all: Vec<_> = state.people.iter().flat_map(KnownAs::all_of).collect();
        let has = |people: &[PersonRecord], it: &KnownAs| people.iter().any(|one| one.identity(&it.identity).is_some());
        let names =
            |seeds: &[SeedPerson], it: &KnownAs| seeds.iter().any(|seed| seed.identities.contains(&it.identity));
        let let_in = all.iter().filter(|it| !has(known, it)).cloned().collect();
        let still_known = all.iter().filter(|it| names(before, it) && !names(seeds, it)).cloned().collect();
        (let_in, still_known)
    }

    /// Everybody who is known now.
    pub(crate) fn known(&self) -> Arc<KnownPeople> {
        self.known.load_full()
    }

    /// Everybody who is known, oldest first, as the store has them.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn all(&self) -> Result<Vec<PersonRecord>, StoreError> {
        self.store.people().await
    }

    /// What a change is decided on: taken before anything else is looked at.
    pub(crate) fn seen(&self) -> Seen {
        Seen { noun: Noun::People, version: self.state().version }
    }

    /// Reads the changed tables again. A read that fails is retried in the background; until one succeeds, every decision on
    /// people conflicts.
    pub(crate) async fn take_over(self: &Arc<Self>, seen: Seen, changes: &[PeopleChange]) {
        if changes.is_empty() {
            return;
        }
        self.hints.tell(|| Hint::Noun(Noun::People));
        self.let_out(seen, changes);
        let Err(error) = self.read_changed(seen, changes).await else { return };
        warn!(%error, "cannot read who is known, retrying");
        let people = Arc::clone(self);
        let reading = self.lifecycle.work.spawn(async move {
            while people.lifecycle.pause_unless_stopping(pauses::READ_AGAIN).await {
                let Err(error) = people.refresh(seen).await else { return };
                warn!(%error, "cannot read who is known, retrying");
            }
        });
        tokio::select! {
            _ = reading => {}
            _ = self.lifecycle.pause(LONGEST_READ) => {}
        }
    }

    /// Makes the people who are let out unknown at once, even while nothing can be read, and counts the tries of codes.
    fn let_out(&self, seen: Seen, changes: &[PeopleChange]) {
        let mut state = self.state();
        for change in changes {
            change_guesses(&mut state.guesses, change);
        }
        let removed = changes.iter().filter_map(|change| match change {
            PeopleChange::IdentityRemoved(identity) => Some(identity),
            _ => None,
        });
        let removed: HashSet<&Identity> = removed.collect();
        if removed.is_empty() || state.version != seen.version {
            return;
        }
        for person in &mut state.people {
            person.identities.retain(|known| !removed.contains(&known.identity));
        }
        state.people.retain(|person| !person.identities.is_empty());
        state.chats.retain(|identity, _| !removed.contains(identity));
        self.known.store(Arc::new(KnownPeople::of(&state.people)));
    }

    async fn read_changed(&self, seen: Seen, changes: &[PeopleChange]) -> Result<(), StoreError> {
        let is_of_chat = |it: &PeopleChange| changed_chat(it).is_some() || matches!(it, PeopleChange::CodeTried { .. });
        if !changes.iter().all(is_of_chat) {
            return self.refresh(seen).await;
        }
        // These come often: when people write on another of their channels.
        let _reading = self.reading.lock().await;
        let mut read = Vec::new();
        for identity in changes.iter().filter_map(changed_chat) {
            read.push((identity, self.store.direct_chat(identity).await?));
        }
        let may_move = !read.is_empty();
        let mut state = self.state();
        // All may have been read meanwhile.
        if state.version == seen.version {
            state.version += 1;
            for (identity, chat) in read {
                state.chats.remove(identity);
                state.chats.extend(chat.map(|chat| (identity.clone(), chat)));
            }
        }
        if may_move {
            self.look_again();
        }
        Ok(())
    }

    /// Stores changes, and reads them again. `false` if something was changed since `seen`: decide again.
    pub(crate) async fn change(self: &Arc<Self>, seen: Seen, transition: Transition) -> Result<bool, StoreError> {
        let changes = transition.people.clone();
        let transition = Transition { seen: vec![seen], ..transition };
        if !self.store.commit(transition).await?.is_done()? {
            self.refresh(seen).await?;
            return Ok(false);
        }
        self.take_over(seen, &changes).await;
        Ok(true)
    }

    /// Reads the tables if they are newer than `seen`, unless another task has read them since.
    pub(crate) async fn refresh(&self, seen: Seen) -> Result<(), StoreError> {
        let _reading = self.reading.lock().await;
        if self.seen() != seen || self.store.version(Noun::People).await? == seen.version {
            return Ok(());
        }
        let State { version, people, pairings, languages, chats, guesses, .. } = read(&*self.store).await?;
        let mut state = self.state();
        if version > state.version {
            if people != state.people {
                self.known.store(Arc::new(KnownPeople::of(&people)));
            }
            (state.version, state.people, state.pairings) = (version, people, pairings);
            (state.languages, state.chats) = (languages, chats);
            // Tries of strangers are in memory alone.
            state.guesses.extend(guesses);
            [&self.let_in, &self.asked, &self.reachable].into_iter().for_each(Notify::notify_one);
        }
        Ok(())
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

    /// Wakes [`Self::until_reachable`]: a person's direct chat may have changed.
    pub(crate) fn look_again(&self) {
        self.reachable.notify_one();
    }

    /// The name of somebody who is known; `None` if the person was forgotten, or is known on channels only that are not seen.
    pub(crate) fn name_of(&self, id: PersonId, sees: impl Fn(&ChannelId) -> bool) -> Option<String> {
        let state = self.state();
        let person = state.people.iter().find(|person| person.id == id)?;
        (!is_hidden(&person.identities, sees)).then(|| person.name.clone())
    }

    /// The person whom a channel knows by this identity.
    pub(crate) fn person_of(&self, identity: &Identity) -> Option<PersonRecord> {
        self.state().people.iter().find(|person| person.identity(identity).is_some()).cloned()
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PersonRecord {
    pub(super) fn may_decide(&self, settings: &ApprovalSettings) -> bool {
        let identities: Vec<_> = self.identities.iter().map(|known| known.identity.clone()).collect();
        settings.may_decide(self.role, &identities)
    }

    /// The identity as it is known, if it is this person's.
    pub(crate) fn identity(&self, identity: &Identity) -> Option<&KnownIdentity> {
        self.identities.iter().find(|one| one.identity == *identity)
    }
}

/// The identity of a change that concerns a direct chat alone.
const fn changed_chat(change: &PeopleChange) -> Option<&Identity> {
    match change {
        PeopleChange::DirectChatSet(chat) => Some(&chat.identity),
        PeopleChange::DirectChatCleared(identity) | PeopleChange::HomeSet(identity, _) => Some(identity),
        _ => None,
    }
}

/// Reads what is stored.
async fn read(store: &dyn PeopleStore) -> Result<State, StoreError> {
    let version = store.version(Noun::People).await?;
    let (people, pairings) = (store.people().await?, store.pairings().await?);
    let languages = store.languages().await?.into_iter().collect();
    let chats = store.direct_chats().await?.into_iter().map(|chat| (chat.identity.clone(), chat)).collect();
    let mut guesses = Guesses::new();
    for Guess { who, code, since } in store.guesses().await? {
        guesses.entry(who).or_insert_with(|| (since, HashSet::new())).1.insert(code);
    }
    Ok(State { version, people, pairings, languages, chats, guesses, ..State::default() })
}

/// The homes and the languages that the configuration gives to people.
fn wishes(seeds: &[SeedPerson]) -> (HashSet<Identity>, HashMap<Identity, Language>) {
    let homes = seeds.iter().flat_map(SeedPerson::homes).cloned().collect();
    let spoken = |seed: &SeedPerson| Some((seed.identities.clone(), seed.language?));
    let languages = seeds.iter().filter_map(spoken);
    let languages = languages.flat_map(|(identities, language)| identities.into_iter().map(move |it| (it, language)));
    (homes, languages.collect())
}
