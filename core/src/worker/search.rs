//! What agents search for in what was said in the sessions in which they answer.

use std::{sync::Arc, time::Duration};

use tokio::sync::{Semaphore, oneshot};
use tracing::warn;

use crate::{
    base::lifecycle::Lifecycle,
    model::{SearchQuery, TurnId, TurnRecord},
    ports::{FoundLine, SearchFilter, SearchStore, SharedClock},
};

/// How many lines an agent gets at most.
const MOST_FOUND: usize = 20;

/// How many searches of agents go on at once: operators' lists use the same connections.
const AT_ONCE: usize = 2;

/// How long an agent waits for a search.
const LONGEST: Duration = Duration::from_secs(10);

type Found = Result<Vec<FoundLine>, String>;

/// The searches of agents. A run goes on while one of its own does.
pub(crate) struct Searches {
    lines: Arc<dyn SearchStore>,
    clock: SharedClock,
    lifecycle: Lifecycle,
    room: Arc<Semaphore>,
}

impl Searches {
    pub(crate) fn new(lines: Arc<dyn SearchStore>, clock: SharedClock, lifecycle: Lifecycle) -> Self {
        Self { lines, clock, lifecycle, room: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// Answers with the lines of earlier turns that match, of this conversation and session, newest first. The error is for the agent.
    pub(super) fn begin(&self, turn: &TurnRecord, query: SearchQuery, mut answer: oneshot::Sender<Found>) {
        let merged = turn.obligation.merged_turns().iter().filter_map(|merged| merged.turn.parse().ok());
        let own: Vec<TurnId> = merged.chain([turn.id]).collect();
        let limit = u32::try_from(MOST_FOUND + own.len() * 3).unwrap_or(u32::MAX);
        let (conversations, session) = (Some(vec![turn.conversation]), Some(turn.session));
        let filter = SearchFilter { query, channels: None, conversations, session, before: None, limit };
        let (lines, room, clock, id) = (Arc::clone(&self.lines), Arc::clone(&self.room), self.clock.clone(), turn.id);
        self.lifecycle.work.spawn(async move {
            let search = async {
                let permit = room.acquire_owned().await;
                // One that has begun keeps its place, also if nobody waits for it any longer.
                let searching = tokio::spawn(async move {
                    let _permit = permit;
                    lines.search(&filter).await
                });
                searching.await
            };
            let found = tokio::select! {
                found = search => found,
                () = clock.sleep(LONGEST) => {
                    let _ = answer.send(Err("the search takes too long: try rarer words".to_owned()));
                    return;
                }
                () = answer.closed() => return,
            };
            let found = match found {
                Ok(Ok(found)) => {
                    Ok(found.into_iter().filter(|line| !own.contains(&line.turn)).take(MOST_FOUND).collect())
                }
                Ok(Err(error)) => {
                    warn!(turn = %id, %error, "an agent cannot search what was said");
                    Err("it cannot be searched now: try again later".to_owned())
                }
                Err(_) => Err("it cannot be searched now: try again later".to_owned()),
            };
            let _ = answer.send(found);
        });
    }
}
