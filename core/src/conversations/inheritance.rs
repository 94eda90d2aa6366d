//! Hands over the sessions of a person who is no longer known. A store calls this in the transaction that removes the
//! person's last identity, or gives it to another person.

use crate::model::{PersonId, SessionId};

/// A session of a person who is no longer known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftSession {
    /// Its id.
    pub id: SessionId,
    /// The person.
    pub person: Option<PersonId>,
    /// Its name.
    pub name: Option<String>,
    /// Whether it has lines of another conversation than the one in which it began.
    pub is_shared: bool,
}

/// Gives sessions to the person who has got the identity. A name that this person has given already, one of `taken`, is left out.
pub fn hand_over(sessions: &mut [LeftSession], to: PersonId, mut taken: Vec<String>) {
    for session in sessions {
        session.person = Some(to);
        session.name = session.name.take().filter(|name| !taken.iter().any(|other| other.eq_ignore_ascii_case(name)));
        taken.extend(session.name.clone());
    }
}

/// Takes the names from sessions. Sessions of one conversation become that conversation's own. Shared ones keep their
/// former person, so that nobody uses them: people in one conversation must not read lines of another.
pub fn disown(sessions: &mut [LeftSession]) {
    for session in sessions {
        session.name = None;
        session.person = session.person.filter(|_| session.is_shared);
    }
}

#[cfg(test)]
mod tests {
    use rejoinder_guard::Timestamp;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(0);

    fn left(person: PersonId, name: &str, is_shared: bool) -> LeftSession {
        LeftSession { id: SessionId::new(NOW), person: Some(person), name: Some(name.to_owned()), is_shared }
    }

    #[test]
    fn a_name_stays_that_of_one_session() {
        let [former, next] = [PersonId::new(NOW), PersonId::new(NOW)];
        let mut sessions = [left(former, "Trip", false), left(former, "tax", true), left(former, "TAX", false)];

        hand_over(&mut sessions, next, vec!["trip".to_owned()]);

        assert!(sessions.iter().all(|session| session.person == Some(next)));
        assert_eq!(sessions.map(|session| session.name), [None, Some("tax".to_owned()), None]);
    }

    #[test]
    fn a_session_of_several_conversations_becomes_nobodys() {
        let former = PersonId::new(NOW);
        let mut sessions = [left(former, "trip", false), left(former, "tax", true)];

        disown(&mut sessions);

        assert_eq!(sessions.each_ref().map(|session| session.person), [None, Some(former)]);
        assert!(sessions.iter().all(|session| session.name.is_none()));
    }
}
