//! Who is known, and who asks to be let in.
//!
//! Memory holds the identities of everybody who is known, so that no event waits for a look at the store, and the few
//! requests that wait. A stranger who is given no code costs nothing here.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use arc_swap::ArcSwap;
use rand::seq::IndexedRandom;
use rejoinder_guard::Timestamp;

use crate::{
    model::{
        event::InboundEvent,
        ids::PersonId,
        log::{LogEvent, NewLogEntry, Subject},
        people::{Identity, KnownIdentity, KnownPeople, Pairing, PeopleChange, PersonRecord, SeedPerson},
    },
    ports::{
        clock::SharedClock,
        store::{Store, StoreError, transition::Transition},
    },
};

/// How long a code is valid, and how long somebody who was given one is not told again.
const LIFETIME: Duration = Duration::from_hours(1);

/// How long somebody cannot ask again after the answer was no.
const DECLINED: Duration = Duration::from_hours(7 * 24);

/// How many requests of a channel may wait at once.
const PENDING: usize = 3;

/// The characters of a code: letters and digits that are not mistaken for each other.
const ALPHABET: &[u8] = b"ABCDEFGHJKMNPQRSTUVWXYZ23456789";

/// The length of a code.
const LENGTH: usize = 8;

/// How many codes that do not exist may be tried within [`GUESSING`].
const GUESSES: u32 = 10;

const GUESSING: Duration = Duration::from_hours(1);

/// The name under which the configuration's people are let in.
const CONFIGURATION: &str = "configuration";

/// Who is known, and who asks to be let in.
pub(crate) struct People {
    store: Arc<dyn Store>,
    clock: SharedClock,
    known: ArcSwap<KnownPeople>,
    requests: Mutex<Requests>,
}

#[derive(Default)]
struct Requests {
    pairings: Vec<Pairing>,
    /// Whose requests are being stored.
    unstored: Vec<Identity>,
    /// When the first of the codes was tried that do not exist, and how many they are.
    guesses: Option<(Timestamp, u32)>,
}

/// Why a code opens nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WrongCode {
    /// Nobody was given it, or its time has passed.
    Unknown,
    /// Too many codes were tried that do not exist: try again after this time.
    Locked(Duration),
}

impl People {
    /// Reads who is known, and adds those whom the configuration names.
    pub(crate) async fn load(
        store: Arc<dyn Store>,
        clock: SharedClock,
        seeds: &[SeedPerson],
    ) -> Result<Self, StoreError> {
        let people = Self { store, clock, known: ArcSwap::default(), requests: Mutex::default() };
        let stored = people.store.people().await?;
        let changes: Vec<_> = seeds.iter().filter_map(|seed| people.planted(seed, &stored)).collect();
        if !changes.is_empty() {
            people.store.commit(Transition { people: changes, ..Transition::default() }).await?;
        }
        people.reload().await?;
        Ok(people)
    }

    /// What has to be stored so that somebody of the configuration is known, if anything.
    fn planted(&self, seed: &SeedPerson, stored: &[PersonRecord]) -> Option<PeopleChange> {
        let now = self.clock.now();
        let has =
            |person: &PersonRecord, identity: &Identity| person.identities.iter().any(|one| one.identity == *identity);
        // By who they are: a stranger may have been let in under any name.
        let known = stored.iter().find(|person| seed.identities.iter().any(|identity| has(person, identity)));
        let has = |identity: &Identity| known.is_some_and(|known| has(known, identity));
        let is_same = known.is_some_and(|known| known.role == seed.role && known.name == seed.name);
        if is_same && seed.identities.iter().all(has) {
            return None;
        }
        let new = seed.identities.iter().filter(|identity| !has(identity));
        let identities = new
            .map(|identity| KnownIdentity {
                identity: identity.clone(),
                added_at: now,
                added_by: CONFIGURATION.to_owned(),
            })
            .collect();
        Some(PeopleChange::Known(PersonRecord {
            id: known.map_or_else(|| PersonId::new(now), |known| known.id),
            name: seed.name.clone(),
            role: seed.role,
            created_at: known.map_or(now, |known| known.created_at),
            identities,
        }))
    }

    /// Reads again what is stored.
    pub(crate) async fn reload(&self) -> Result<(), StoreError> {
        let people = self.store.people().await?;
        let pairings = self.store.pairings().await?;
        self.known.store(Arc::new(KnownPeople::of(&people)));
        self.requests().replace(pairings);
        Ok(())
    }

    /// Everybody who is known now.
    pub(crate) fn known(&self) -> Arc<KnownPeople> {
        self.known.load_full()
    }

    /// The request of a stranger to be let in. Theirs, if they were given a code before; `None` if so many wait on the channel
    /// that they are given none, or the answer was no.
    pub(crate) async fn ask(&self, event: &InboundEvent) -> Result<Option<Pairing>, StoreError> {
        let identity = Identity { channel: event.conversation.channel.clone(), id: event.person().to_owned() };
        let Some((pairing, is_new)) = self.requests().ask(identity, event, self.clock.now()) else { return Ok(None) };
        if is_new {
            let subject = Subject::channel(&pairing.identity.channel);
            let asked = LogEvent::PersonAsked { identity: pairing.identity.to_string(), code: dashed(&pairing.code) };
            let log = vec![NewLogEntry { at: pairing.asked_at, subject, event: asked }];
            let people = vec![PeopleChange::Asked(pairing.clone())];
            let stored = self.store.commit(Transition { people, log, ..Transition::default() }).await;
            self.requests().stored(&pairing.identity, stored.is_ok());
            stored?;
        }
        Ok(Some(pairing))
    }

    /// The requests that wait, oldest first.
    pub(crate) fn waiting(&self) -> Vec<Pairing> {
        let now = self.clock.now();
        self.requests().pairings.iter().filter(|it| it.is_waiting(now)).cloned().collect()
    }

    /// The waiting request with a code, as somebody typed it.
    pub(crate) fn with_code(&self, typed: &str) -> Result<Pairing, WrongCode> {
        self.requests().with_code(typed, self.clock.now())
    }

    /// How a request is stored to which the answer is no.
    pub(crate) fn declined(&self, pairing: Pairing) -> PeopleChange {
        PeopleChange::Asked(Pairing { is_declined: true, expires_at: self.clock.now() + DECLINED, ..pairing })
    }

    fn requests(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Requests {
    /// The request of somebody, and whether it is new.
    fn ask(&mut self, identity: Identity, event: &InboundEvent, now: Timestamp) -> Option<(Pairing, bool)> {
        self.pairings.retain(|one| one.expires_at > now);
        if let Some(known) = self.pairings.iter().find(|one| one.identity == identity) {
            return (!known.is_declined).then(|| (known.clone(), false));
        }
        let of_channel = |one: &&Pairing| one.is_waiting(now) && one.identity.channel == identity.channel;
        if self.pairings.iter().filter(of_channel).count() >= PENDING {
            return None;
        }
        let pairing = Pairing {
            code: self.new_code(),
            identity,
            name: event.sender.name.clone(),
            username: event.sender.username.clone(),
            conversation: event.conversation.clone(),
            asked_at: now,
            expires_at: now + LIFETIME,
            is_declined: false,
        };
        self.pairings.push(pairing.clone());
        self.unstored.push(pairing.identity.clone());
        Some((pairing, true))
    }

    /// A new request was stored, or could not be.
    fn stored(&mut self, identity: &Identity, is_stored: bool) {
        self.unstored.retain(|one| one != identity);
        if !is_stored {
            self.pairings.retain(|one| one.identity != *identity);
        }
    }

    /// Takes over what is stored, beside what is being stored now.
    fn replace(&mut self, mut stored: Vec<Pairing>) {
        let Self { pairings, unstored, .. } = self;
        let is_unstored = |one: &Pairing| unstored.contains(&one.identity);
        let known: Vec<_> = stored.iter().map(|one| one.identity.clone()).collect();
        stored.extend(pairings.drain(..).filter(|one| is_unstored(one) && !known.contains(&one.identity)));
        self.pairings = stored;
    }

    /// A code that no request has.
    fn new_code(&self) -> String {
        let mut rng = rand::rng();
        loop {
            let code: String =
                (0..LENGTH).filter_map(|_| ALPHABET.choose(&mut rng)).map(|byte| char::from(*byte)).collect();
            if self.pairings.iter().all(|one| one.code != code) {
                return code;
            }
        }
    }

    fn with_code(&mut self, typed: &str, now: Timestamp) -> Result<Pairing, WrongCode> {
        if let Some((since, guesses)) = self.guesses {
            let until = since + GUESSING;
            if until <= now || since > now {
                self.guesses = None;
            } else if guesses >= GUESSES {
                return Err(WrongCode::Locked(until.since(now)));
            }
        }
        let code = normalised(typed);
        if let Some(found) = self.pairings.iter().find(|one| one.code == code && one.is_waiting(now)) {
            return Ok(found.clone());
        }
        let (since, guesses) = self.guesses.unwrap_or((now, 0));
        self.guesses = Some((since, guesses + 1));
        Err(WrongCode::Unknown)
    }
}

impl Pairing {
    fn is_waiting(&self, now: Timestamp) -> bool {
        !self.is_declined && self.expires_at > now
    }
}

/// A code as it is shown: with a dash in the middle.
pub(crate) fn dashed(code: &str) -> String {
    let (first, last) = code.split_at_checked(LENGTH / 2).unwrap_or((code, ""));
    format!("{first}-{last}")
}

/// A code as it is stored, of what somebody typed.
fn normalised(typed: &str) -> String {
    typed.chars().filter(char::is_ascii_alphanumeric).map(|char| char.to_ascii_uppercase()).collect()
}
