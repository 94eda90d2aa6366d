//! Tries of codes that do not exist: by whom, since when, and which codes.

use std::collections::{HashMap, HashSet};

use rejoinder_guard::Timestamp;

use crate::model::{Guess, PeopleChange};

/// The number of codes that do not exist that a caller may try within an hour.
pub(super) const GUESSES: usize = 10;

/// The same for all key holders of one channel together. In a year they hit a code of 31⁸ that is always open with a
/// chance of 1 in 97,000.
pub(super) const SHARED_GUESSES: usize = 1000;

/// The number of callers whose tries are remembered. Strangers may try codes too: the first of them are forgotten.
pub(super) const GUESSERS: usize = 1000;

/// By the name of the caller: the time of the first try, and the codes.
pub(super) type Guesses = HashMap<String, (Timestamp, HashSet<String>)>;

/// Applies changes of tries, as the store does.
pub(super) fn change_guesses(guesses: &mut Guesses, change: &PeopleChange) {
    match change {
        PeopleChange::CodeTried { guess: Guess { who, code, since }, forgets } => {
            guesses.retain(|_, (since, _)| *since > *forgets);
            forget_a_guesser(guesses, who);
            let theirs = guesses.entry(who.clone()).or_insert_with(|| (*since, HashSet::new()));
            if theirs.0 != *since {
                *theirs = (*since, HashSet::new());
            }
            theirs.1.insert(code.clone());
        }
        PeopleChange::IdentityRemoved(identity) => drop(guesses.remove(&identity.to_string())),
        PeopleChange::PairingSaved(_)
        | PeopleChange::PersonSaved(_)
        | PeopleChange::PairingRemoved(_)
        | PeopleChange::DirectChatSet(_)
        | PeopleChange::DirectChatCleared(_)
        | PeopleChange::HomeSet(..)
        | PeopleChange::LanguageSet(..) => {}
    }
}

/// Makes room for another caller.
fn forget_a_guesser(guesses: &mut Guesses, newcomer: &str) {
    if guesses.len() < GUESSERS || guesses.contains_key(newcomer) {
        return;
    }
    // Of what many share, more are remembered than anybody has alone: new callers must not bring those tries back.
    let first = guesses.iter().min_by_key(|(_, (since, codes))| (codes.len() > GUESSES, *since));
    first.map(|(who, _)| who.clone()).map(|who| guesses.remove(&who));
}
