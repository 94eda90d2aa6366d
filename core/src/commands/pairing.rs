//! The notice to somebody who is not known, with the code that lets them in.

use super::command::{Answer, Command};
use crate::model::PairingState;

pub(crate) const CROWDED: Command =
    Command::notice("pairing_full", "Tell a sender who is not known that too many others wait to be let in", |_| {
        Box::pin(async { Ok(Answer::of("pairing_full")) })
    });

pub(crate) const PAIRING: Command =
    Command::notice("pairing", "Give a sender who is not known a code to be let in with", |call| {
        Box::pin(async {
            let identity = call.turn.event.identity();
            Ok(match call.people.request_of(&identity) {
                Some(pairing) if pairing.state == PairingState::Waiting => {
                    Answer::filled("pairing", vec![("code", pairing.shown_code())])
                }
                _ if call.people.known().has(&identity.channel, &identity.id) => Answer::of("paired"),
                // The code has expired, or the answer was no, before they could be given it.
                _ => Answer::of("stranger"),
            })
        })
    });
