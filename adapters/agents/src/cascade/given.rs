//! The turn as one member gets it.

use rejoinder_core::{AgentFile, AgentRuntime, AgentTurn};

use super::member::Member;

/// A turn with as much of it as the member reads: its lines of the history, its files, and the model that was chosen if the
/// member has it.
pub(super) fn to(member: &Member, runtime: &dyn AgentRuntime, turn: &AgentTurn) -> AgentTurn {
    let mut turn = turn.clone();
    turn.model = turn.model.filter(|model| member.has(model));
    turn.history.drain(..turn.history.len().saturating_sub(runtime.history()));
    let quotes = turn.quoted.iter_mut().chain(turn.more.iter_mut().filter_map(|message| message.quoted.as_mut()));
    for file in quotes.flat_map(|quote| &mut quote.files) {
        leave_out(file, runtime);
    }
    let messages = turn.more.iter_mut().flat_map(|message| &mut message.attachments);
    for file in turn.attachments.iter_mut().chain(messages) {
        leave_out(file, runtime);
    }
    turn
}

/// Removes the bytes of a file that the runtime does not read.
fn leave_out(file: &mut AgentFile, runtime: &dyn AgentRuntime) {
    let largest = runtime.reads(&file.attachment.media_type).unwrap_or_default();
    file.bytes = file.bytes.take().filter(|bytes| bytes.len() <= largest);
}
