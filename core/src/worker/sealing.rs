//! Keeps the answer of a turn from its asker in the clear if it is to be sealed.

use rejoinder_guard::{Outcome, is_blank};

use crate::{model::Handler, ports::AgentError};

/// Why a run does not begin whose agent cannot seal its answer.
pub(super) fn cannot(agent: &Handler) -> String {
    format!(
        "the answer is to be sealed to the key of the asker (`seal_to`), which `{agent}` cannot: agents of the kinds pull, http and \
         command can"
    )
}

/// The outcome of a run, if it is sealed exactly if it is to be. The text of a deferral is the agent's, and is left out.
pub(super) fn checked(ended: Result<Outcome, AgentError>, is_to_be_sealed: bool) -> Result<Outcome, AgentError> {
    match ended? {
        // Nothing is said: that is silence.
        Outcome::Reply(reply) if is_blank(&reply.text) && reply.attachments.is_empty() => Ok(Outcome::Reply(reply)),
        Outcome::Reply(reply) if reply.sealed.is_some() == is_to_be_sealed => Ok(Outcome::Reply(reply)),
        Outcome::Reply(_) if !is_to_be_sealed => {
            Err(AgentError::Failed("it sealed an answer that is not to be sealed".to_owned()))
        }
        Outcome::Reply(_) | Outcome::React(_) if is_to_be_sealed => {
            Err(AgentError::Failed("it answered in the clear, and the answer is to be sealed".to_owned()))
        }
        Outcome::Defer { due, .. } if is_to_be_sealed => Ok(Outcome::Defer { note: None, due }),
        outcome => Ok(outcome),
    }
}

#[cfg(test)]
mod tests {
    use rejoinder_guard::{Reply, Timestamp};

    use super::*;

    fn reply() -> Outcome {
        Outcome::Reply(Reply::text("the diagnosis"))
    }

    fn sealed() -> Outcome {
        Outcome::Reply(Reply::sealed("-----BEGIN AGE ENCRYPTED FILE-----"))
    }

    #[test]
    fn an_answer_is_sealed_if_and_only_if_it_is_to_be() {
        let is_refused = |outcome, is_to_be_sealed| checked(Ok(outcome), is_to_be_sealed).is_err();

        assert!(is_refused(reply(), true) && is_refused(Outcome::React("👍".to_owned()), true));
        assert!(is_refused(sealed(), false));
        assert_eq!(checked(Ok(sealed()), true), Ok(sealed()));
        assert_eq!(checked(Ok(reply()), false), Ok(reply()));
        let nothing = Outcome::Reply(Reply::text(" "));
        assert_eq!(checked(Ok(nothing.clone()), true), Ok(nothing));
    }

    #[test]
    fn a_deferral_of_a_sealed_answer_says_nothing_of_it() {
        let due = Timestamp::from_millis(1);
        let defer = |note: Option<&str>| Outcome::Defer { note: note.map(ToOwned::to_owned), due };

        assert_eq!(checked(Ok(defer(Some("It is the heart."))), true), Ok(defer(None)));
        assert_eq!(checked(Ok(defer(Some("Later."))), false), Ok(defer(Some("Later."))));
    }
}
