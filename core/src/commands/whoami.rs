//! `/whoami`: tells the sender who they are to the gateway.

use super::command::{Answer, Command, Filled, Words};
use crate::model::people::{Identity, PersonRole};

pub(super) const WHOAMI: Command = Command {
    name: "whoami",
    texts: &["/whoami"],
    takes_argument: false,
    description: "Who you are here",
    act: |call| {
        Box::pin(async {
            let event = &call.turn.event;
            let identity = Identity { channel: event.conversation.channel.clone(), id: event.person().to_owned() };
            let known = call.people.known();
            let (template, name) = match known.get(&identity.channel, &identity.id) {
                Some((PersonRole::Owner, name)) => ("whoami_owner", name),
                Some((PersonRole::Member, name)) => ("whoami_member", name),
                None => ("whoami", ""),
            };
            let values = vec![("name", name.to_owned()), ("identity", identity.to_string())];
            Ok(Answer { words: Words::Templates(vec![Filled { template, values }]), ..Answer::of(template) })
        })
    },
};
