//! `/new`: starts a new session; the agent no longer gets the earlier history.

use super::command::{Answer, Command};
use crate::{model::ids::SessionId, ports::store::transition::NewSession};

pub(super) const NEW: Command = Command {
    name: "new",
    texts: &["/new", "/reset"],
    arguments: 0,
    description: "Start afresh: what was said before is forgotten",
    is_recorded: true,
    act: |call| {
        Box::pin(async {
            let session =
                NewSession { id: SessionId::new(call.now), conversation: call.turn.conversation, at: call.now };
            Ok(Answer { session: Some(session), ..Answer::of("new_session") })
        })
    },
};
