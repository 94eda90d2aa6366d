//! Which session a turn is in. A store calls this in the transaction that accepts the turn.

use rejoinder_guard::Timestamp;

use crate::model::{PersonId, SessionUse};

/// How old the time of the last use may be before it is stored anew, in milliseconds.
const USE_STEP: i64 = 60_000;

/// The session in which a conversation continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CurrentSession {
    /// Whose it is; `None`: that of the conversation in which it began.
    pub person: Option<PersonId>,
    /// Whether it has a name.
    pub is_named: bool,
    /// Whether it began in the conversation.
    pub began_here: bool,
    /// When it was last used; before that, when it began.
    pub used_at: Timestamp,
}

impl CurrentSession {
    /// Whether a turn of this person may be in it: the session is theirs, or the conversation's own.
    pub fn admits(&self, person: Option<PersonId>) -> bool {
        if self.person.is_some() { self.person == person } else { self.began_here }
    }

    fn is_unused(&self, wanted: &SessionUse) -> bool {
        !self.is_named && wanted.unused_since.is_some_and(|since| self.used_at < since)
    }
}

/// The session of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionOfTurn {
    /// A new session. The conversation continues in it.
    New,
    /// A new session, with what was chosen for the current one. All conversations that continued in the current one continue
    /// in the new one.
    Replacement,
    /// The current session.
    Current {
        /// The person that it gets.
        new_person: Option<PersonId>,
        /// Whether the time of its last use is stored.
        is_use_stored: bool,
    },
}

/// In which session a turn is that an agent (`is_agents`) or a command answers.
pub fn session_of_turn(
    current: Option<&CurrentSession>,
    wanted: &SessionUse,
    is_agents: bool,
    at: Timestamp,
) -> SessionOfTurn {
    let Some(current) = current.filter(|current| !wanted.is_checked || current.admits(wanted.person)) else {
        return SessionOfTurn::New;
    };
    if wanted.is_untouched {
        return SessionOfTurn::Current { new_person: None, is_use_stored: false };
    }
    if current.is_unused(wanted) {
        return SessionOfTurn::Replacement;
    }
    SessionOfTurn::Current {
        new_person: wanted.person.filter(|_| current.person.is_none()),
        is_use_stored: is_agents && current.used_at.as_millis() + USE_STEP <= at.as_millis(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SessionId;

    const fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    const OWN: CurrentSession = CurrentSession { person: None, is_named: false, began_here: true, used_at: at(0) };

    const GOES_ON: SessionOfTurn = SessionOfTurn::Current { new_person: None, is_use_stored: false };

    fn wanted(person: Option<PersonId>) -> SessionUse {
        SessionUse { person, is_checked: true, ..SessionUse::current(SessionId::new(at(0))) }
    }

    #[test]
    fn the_first_turn_of_a_conversation_begins_a_session() {
        assert_eq!(session_of_turn(None, &wanted(None), true, at(1)), SessionOfTurn::New);
    }

    #[test]
    fn a_session_is_left_by_those_who_do_not_own_it() {
        let [ann, bob] = [PersonId::new(at(0)), PersonId::new(at(0))];
        let owned = CurrentSession { person: Some(ann), ..OWN };
        let of = |current: &CurrentSession, wanted: &SessionUse| session_of_turn(Some(current), wanted, true, at(1));

        assert_eq!(of(&owned, &wanted(Some(ann))), GOES_ON);
        assert_eq!(of(&owned, &wanted(Some(bob))), SessionOfTurn::New);
        assert_eq!(of(&owned, &wanted(None)), SessionOfTurn::New);
        assert_eq!(of(&OWN, &wanted(None)), GOES_ON);
        let elsewhere = CurrentSession { began_here: false, ..OWN };
        assert_eq!(of(&elsewhere, &wanted(None)), SessionOfTurn::New, "it is another conversation's own");
        assert_eq!(of(&elsewhere, &SessionUse::current(SessionId::new(at(0)))), GOES_ON, "a group checks nothing");
    }

    #[test]
    fn a_session_without_an_owner_gets_the_person_who_is_known() {
        let person = PersonId::new(at(0));
        let adopted = SessionOfTurn::Current { new_person: Some(person), is_use_stored: false };
        assert_eq!(session_of_turn(Some(&OWN), &wanted(Some(person)), true, at(1)), adopted);
        let untouched = SessionUse { is_untouched: true, ..wanted(Some(person)) };
        assert_eq!(session_of_turn(Some(&OWN), &untouched, true, at(100)), GOES_ON);
    }

    #[test]
    fn an_unused_session_is_replaced_unless_it_has_a_name() {
        let since = |seconds| SessionUse { unused_since: Some(at(seconds)), ..wanted(None) };
        let of = |current: &CurrentSession, wanted: &SessionUse| session_of_turn(Some(current), wanted, true, at(50));

        assert_eq!(of(&OWN, &since(1)), SessionOfTurn::Replacement);
        assert_eq!(of(&OWN, &since(0)), GOES_ON);
        assert_eq!(of(&CurrentSession { is_named: true, ..OWN }, &since(1)), GOES_ON);
        assert_eq!(of(&OWN, &SessionUse { is_untouched: true, ..since(1) }), GOES_ON);
    }

    #[test]
    fn the_use_by_an_agent_is_stored_once_a_minute() {
        let of = |is_agents, seconds| session_of_turn(Some(&OWN), &wanted(None), is_agents, at(seconds));

        assert_eq!(of(true, 59), GOES_ON);
        assert_eq!(of(true, 60), SessionOfTurn::Current { new_person: None, is_use_stored: true });
        assert_eq!(of(false, 60), GOES_ON, "a command is no use");
    }
}
