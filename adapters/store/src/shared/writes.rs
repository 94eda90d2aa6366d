//! The two writes that change transcripts, with what becomes of the cache of these. A store writes the request.

use rejoinder_core::{
    EventKind, StoreError,
    store::{Beside, Commit, NewEvent, Stored, Transition},
};

use super::{
    request::{WriteRequest, WriteResult},
    transcripts::Transcripts,
};

pub(crate) async fn accept<F: Future<Output = Result<WriteResult, StoreError>>>(
    transcripts: &Transcripts,
    events: Vec<NewEvent>,
    beside: Option<Beside<Stored>>,
    write: impl FnOnce(WriteRequest) -> F,
) -> Result<Vec<Stored>, StoreError> {
    let repeated = |event: &NewEvent| Some(event.turn.as_ref()?.repeats.as_ref()?.session);
    let changed: Vec<_> = events.iter().filter_map(repeated).collect();
    let is_reaction = events.iter().any(|event| matches!(event.event.kind, EventKind::Reaction { .. }));
    let _reacting = is_reaction.then(|| transcripts.reacting());
    match write(WriteRequest::Accept { events, beside }).await? {
        WriteResult::Accepted(stored) => {
            for session in changed {
                transcripts.forget(session);
            }
            Ok(stored)
        }
        other => unreachable!("`Accept` ended with {other:?}"),
    }
}

pub(crate) async fn commit<F: Future<Output = Result<WriteResult, StoreError>>>(
    transcripts: &Transcripts,
    transition: Transition,
    write: impl FnOnce(WriteRequest) -> F,
) -> Result<Commit, StoreError> {
    let writing = transcripts.writing(&transition);
    match write(WriteRequest::Commit(Box::new(transition))).await? {
        WriteResult::Committed(commit) => {
            writing.done(commit == Commit::Done);
            Ok(commit)
        }
        other => unreachable!("`Commit` ended with {other:?}"),
    }
}
