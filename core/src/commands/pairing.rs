//! The notice to somebody who is not known, with the code that lets them in.

use super::command::{Answer, Command, Filled, Words};
use crate::{
    model::people::{Identity, Pairing},
    people::dashed,
};

pub(crate) const PAIRING: Command = Command {
    name: "pairing",
    texts: &[],
    takes_argument: false,
    description: "Give a sender who is not known a code to be let in with",
    act: |call| {
        Box::pin(async {
            let event = &call.turn.event;
            let identity = Identity { channel: event.conversation.channel.clone(), id: event.person().to_owned() };
            let is_theirs = |one: &Pairing| one.identity == identity && !one.is_declined;
            let pairing = call.store.pairings().await?.into_iter().find(is_theirs);
            // Without one they have been let in since, or their time has passed.
            let Some(pairing) = pairing else { return Ok(Answer::of("stranger")) };
            let values = vec![("code", dashed(&pairing.code))];
            let words = Words::Templates(vec![Filled { template: "pairing", values }]);
            Ok(Answer { words, ..Answer::of("pairing") })
        })
    },
};
