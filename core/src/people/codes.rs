//! Requests to be let in, codes to link a channel, and who guesses them.

use std::{sync::Arc, time::Duration};

use rand::seq::IndexedRandom;
use rejoinder_guard::Timestamp;

use super::{
    People, State,
    guesses::{GUESSES, SHARED_GUESSES, change_guesses},
};
use crate::{
    base::conflicts::decide_anew,
    model::{
        ChannelId, Guess, Identity, InboundEvent, LogEvent, NewLogEntry, Pairing, PairingState, PeopleChange,
        SenderKind, Subject, TurnId,
    },
    ports::{Seen, StoreError, Transition},
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

/// How long the tries of somebody count.
const GUESSING: Duration = Duration::from_hours(1);

/// What becomes of a stranger's request to be let in.
pub(crate) enum PairingResult {
    /// It waits; they are given its code, if they were not yet.
    Waits(Pairing),
    /// So many wait on the channel that they are given none.
    Full,
    /// The answer was no, or they have been let in meanwhile.
    Over,
}

/// Why a code opens nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WrongCode {
    /// Nobody was given it, its time has passed, or the request was decided. The changes count the try.
    Unknown(Vec<PeopleChange>),
    /// The caller has tried too many codes that do not exist: they may try again after this time.
    Locked(Duration),
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

impl People {
    /// The request of a stranger to be let in: the earlier one, if they have a code.
    pub(crate) async fn ask(self: &Arc<Self>, event: &InboundEvent) -> Result<PairingResult, StoreError> {
        let identity = event.identity();
        decide_anew!({
            let seen = self.seen();
            if self.asked_before(&identity).is_none() {
                self.ask_anew(seen, event).await?;
            }
            self.asked_before(&identity)
        })
    }

    /// Stores nothing if something was changed since `seen`: another event, of this stranger or of another, may have come first.
    async fn ask_anew(self: &Arc<Self>, seen: Seen, event: &InboundEvent) -> Result<(), StoreError> {
        let pairing = self.with_new_code(event, PairingState::Waiting, LIFETIME);
        let now = pairing.asked_at;
        let subject = Subject::channel(&pairing.identity.channel);
        let asked = LogEvent::PersonAsked { identity: pairing.identity.to_string() };
        let log = vec![NewLogEntry { at: now, subject, event: asked }];
        let people = vec![PeopleChange::PairingSaved(pairing)];
        self.change(seen, Transition { log, people, ..Transition::default() }).await.map(drop)
    }

    /// What became of the request of somebody who can make no new one.
    fn asked_before(&self, identity: &Identity) -> Option<PairingResult> {
        if let Some(known) = self.request_of(identity) {
            let is_waiting = known.state == PairingState::Waiting;
            return Some(if is_waiting { PairingResult::Waits(known) } else { PairingResult::Over });
        }
        if self.known().has(&identity.channel, &identity.id) {
            return Some(PairingResult::Over);
        }
        self.is_full(&identity.channel).then(|| {
            let now = self.clock.now();
            let before = self.state().turned_away.insert(identity.channel.clone(), now);
            if before.is_none_or(|at| at + LIFETIME <= now) {
                self.asked.notify_one();
            }
            PairingResult::Full
        })
    }

    /// The channels on which as many requests wait as may, and strangers were turned away lately; each with when that was.
    pub(crate) fn turned_away(&self) -> Vec<(ChannelId, Timestamp)> {
        let now = self.clock.now();
        let turned_away = self.state().turned_away.clone();
        let is_new = |(channel, at): &(ChannelId, Timestamp)| *at + LIFETIME > now && self.is_full(channel);
        turned_away.into_iter().filter(is_new).collect()
    }

    /// The channels on which strangers are turned away, because as many requests to be let in wait as may.
    pub fn turning_away(&self) -> Vec<ChannelId> {
        let mut channels: Vec<_> = self.turned_away().into_iter().map(|(channel, _)| channel).collect();
        channels.sort_unstable();
        channels
    }

    /// The code with which the sender of an event links another channel, in place of their earlier one.
    pub(crate) fn new_link(&self, event: &InboundEvent) -> Pairing {
        self.with_new_code(event, PairingState::Links, LINKING)
    }

    /// How a code is stored that somebody has used in `turn`: the person who made it is asked.
    pub(crate) fn link_used(&self, link: Pairing, turn: TurnId) -> PeopleChange {
        let now = self.clock.now();
        PeopleChange::PairingSaved(Pairing { asked_at: now, expires_at: now + LINKING, linked_by: Some(turn), ..link })
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
    pub fn waiting(&self) -> Vec<Pairing> {
        let now = self.clock.now();
        self.state().pairings.iter().filter(|it| it.is_waiting(now)).cloned().collect()
    }

    /// Who was let in, and was not told yet.
    pub(crate) fn untold(&self) -> Vec<Pairing> {
        self.state().pairings.iter().filter(|it| it.state == PairingState::Approved).cloned().collect()
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

    /// Whether a stranger's message has a code to link with. A wrong one is a try, which is remembered in memory alone: strangers
    /// write no rows.
    pub(crate) fn is_link(&self, typed: &str, event: &InboundEvent) -> bool {
        match self.link_with(typed, event) {
            Ok(_) => true,
            Err(WrongCode::Locked(_)) => false,
            Err(WrongCode::Unknown(tried)) => {
                let mut state = self.state();
                for change in &tried {
                    change_guesses(&mut state.guesses, change);
                }
                false
            }
        }
    }

    /// How a request is stored to which the answer is no.
    pub(crate) fn declined(&self, pairing: Pairing) -> PeopleChange {
        PeopleChange::PairingSaved(Pairing {
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
}

impl State {
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
        &self,
        typed: &str,
        callers: &[(String, usize)],
        is_meant: impl Fn(&Pairing) -> bool,
        now: Timestamp,
    ) -> Result<Pairing, WrongCode> {
        let tries = |who: &str| self.guesses.get(who).filter(|(since, _)| *since + GUESSING > now && *since <= now);
        let locked = |(who, most): &(String, usize)| {
            let guesses = tries(who).filter(|(_, codes)| codes.len() >= *most);
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
        let forgets = Timestamp::from_millis(now.as_millis() - i64::try_from(GUESSING.as_millis()).unwrap_or(i64::MAX));
        let guess = |(who, _): &(String, usize)| {
            let before = tries(who);
            let is_new = before.is_none_or(|(_, codes)| !codes.contains(&code));
            let since = before.map_or(now, |(since, _)| *since);
            let guess = Guess { who: who.clone(), code: code.clone(), since };
            is_new.then_some(PeopleChange::CodeTried { guess, forgets })
        };
        // What no code looks like is a mistake, and no guess.
        let is_guess = code.len() == Pairing::CODE_LENGTH;
        Err(WrongCode::Unknown(callers.iter().filter(|_| is_guess).filter_map(guess).collect()))
    }
}

/// A code as it is stored, of what somebody typed.
fn normalised(typed: &str) -> String {
    typed.chars().filter(char::is_ascii_alphanumeric).map(|char| char.to_ascii_uppercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::people::guesses::GUESSERS;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    /// Tries a code that does not exist. The result is whether it was found to be unknown, or for how long the caller is locked out.
    fn tries(state: &mut State, code: &str, callers: &[(String, usize)], seconds: i64) -> Result<(), Duration> {
        match state.with_code(code, callers, |_| true, at(seconds)) {
            Ok(found) => panic!("{found:?}"),
            Err(WrongCode::Locked(wait)) => Err(wait),
            Err(WrongCode::Unknown(changes)) => {
                for change in &changes {
                    change_guesses(&mut state.guesses, change);
                }
                Ok(())
            }
        }
    }

    #[test]
    fn ten_codes_that_do_not_exist_lock_the_caller_out_for_an_hour() {
        let mut state = State::default();
        let mut tries = |code: &str, who: &str, seconds| tries(&mut state, code, &[(who.to_owned(), GUESSES)], seconds);
        for number in 0..10 {
            // What is no code, and the one before once more, are no guesses.
            assert_eq!(tries("", "eve", number), Ok(()));
            assert_eq!(tries(&format!("aaaaaa{:02}", (number - 1).max(0)), "eve", number), Ok(()));
            assert_eq!(tries(&format!("AAAA-AA{number:02}"), "eve", number), Ok(()));
        }

        assert_eq!(tries("AAAABBBB", "eve", 600), Err(Duration::from_mins(50)));
        assert_eq!(tries("AAAABBBB", "bob", 600), Ok(()), "others are not locked out");
        assert_eq!(tries("AAAABBBB", "eve", 3600), Ok(()));
    }

    /// Each holder of a key has tries of their own, and all on their channel have some together.
    #[test]
    fn who_shares_tries_with_many_locks_out_nobody_but_themselves() {
        fn shares(state: &mut State, who: &str, number: usize) -> Result<(), Duration> {
            let callers = [(who.to_owned(), GUESSES), ("webchat.main".to_owned(), SHARED_GUESSES)];
            tries(state, &format!("A{number:07}"), &callers, 0)
        }
        let mut state = State::default();
        for number in 0..10 {
            assert_eq!(shares(&mut state, "eve", number), Ok(()));
        }

        assert_eq!(shares(&mut state, "eve", 10), Err(GUESSING));
        for number in 10..SHARED_GUESSES {
            assert_eq!(shares(&mut state, &format!("key {number}"), number), Ok(()));
        }
        for number in 0..GUESSERS {
            let stranger = [(format!("stranger {number}"), GUESSES)];
            assert_eq!(tries(&mut state, "AAAABBBB", &stranger, 0), Ok(()));
        }
        assert_eq!(shares(&mut state, "another key", 1000), Err(GUESSING));
    }

    /// O2.
    #[test]
    fn a_crowd_that_guesses_fills_no_memory() {
        let mut state = State::default();
        for number in 0..10_000 {
            let wrong = tries(&mut state, "AAAABBBB", &[(number.to_string(), GUESSES)], number);
            assert_eq!(wrong, Ok(()));
        }

        assert!(state.guesses.len() <= GUESSERS, "{}", state.guesses.len());
        assert!(state.guesses.contains_key("9999"));
    }
}
