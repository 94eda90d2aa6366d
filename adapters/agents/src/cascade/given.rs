//! The turn as one member gets it.

use rejoinder_core::{AgentFile, AgentRuntime, AgentTurn};

use super::member::Member;

/// A turn with as much of it as the member reads: its lines of the history, its files, and the model that was chosen if the
/// member has it.
pub(super) fn to(member: &Member, runtime: &dyn AgentRuntime, turn: &AgentTurn) -> AgentTurn {
    let mut turn = turn.clone();
    turn.place.model = turn.place.model.filter(|model| member.has(model));
    // That of the cascade is not the member's.
    turn.rights.budget = None;
    let history = &mut turn.past.history;
    history.drain(..history.len().saturating_sub(runtime.history()));
    for file in turn.files_mut() {
        leave_out(file, runtime);
    }
    turn
}

/// Removes the bytes of a file that the runtime does not read.
fn leave_out(file: &mut AgentFile, runtime: &dyn AgentRuntime) {
    let largest = runtime.reads(&file.attachment.media_type).unwrap_or_default();
    file.bytes = file.bytes.take().filter(|bytes| bytes.len() <= largest);
}
