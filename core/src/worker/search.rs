//! What agents search for in what was said in the conversations in which they answer.

use tracing::warn;

use super::Worker;
use crate::{
    model::{SearchQuery, TurnRecord},
    ports::{FoundLine, SearchFilter},
};

/// How many lines an agent gets at most.
const MOST_FOUND: u32 = 20;

impl Worker {
    /// The lines of the conversation's earlier turns that match. The error is for the agent.
    pub(super) async fn search(&self, turn: &TurnRecord, query: SearchQuery) -> Result<Vec<FoundLine>, String> {
        let filter = SearchFilter {
            query,
            channels: None,
            conversation: Some(turn.conversation),
            before: None,
            limit: MOST_FOUND,
        };
        self.lines.search(&filter).await.map_err(|error| {
            warn!(turn = %turn.id, %error, "an agent cannot search what was said");
            "it cannot be searched now: try again later".to_owned()
        })
    }
}
