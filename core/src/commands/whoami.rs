//! `/whoami`: tells the sender who they are to the gateway.

use super::command::{Answer, Command};
use crate::model::{PersonRole, SenderKind};

pub(super) const WHOAMI: Command = Command::new("whoami", &["/whoami"], 0, "Who you are here", |call| {
    Box::pin(async {
        let event = &call.turn.event;
        // Their id is the conversation's, which may be a secret.
        if event.sender.kind == SenderKind::Unnamed {
            return Ok(Answer::of("whoami_unnamed"));
        }
        let (identity, known) = (event.identity(), call.people.known());
        let (template, name) = match event.known_as(&known) {
            Some((PersonRole::Owner, name)) => ("whoami_owner", name),
            Some((PersonRole::Guest | PersonRole::Member, name)) => ("whoami_member", name),
            None => ("whoami", ""),
        };
        Ok(Answer::filled(template, vec![("name", name.to_owned()), ("identity", identity.to_string())]))
    })
});
