//! Keeps the parts of an album from the agent whose caption is a command.

use async_trait::async_trait;
use quick_cache::sync::Cache;

use super::Stage;
use crate::{
    intake::arrival::{Arrival, Verdict},
    ports::store::StoreError,
};

/// How many albums are remembered. Their parts follow each other directly.
const REMEMBERED: usize = 256;

pub(super) struct Album {
    /// The latest albums with a command in their caption.
    commands: Cache<String, ()>,
}

impl Album {
    pub(super) fn new() -> Self {
        Self { commands: Cache::new(REMEMBERED) }
    }
}

#[async_trait]
impl Stage for Album {
    async fn decide(&self, arrival: Arrival) -> Result<Verdict, StoreError> {
        if let Some(album) = &arrival.event.part_of {
            if arrival.is_command() {
                self.commands.insert(album.clone(), ());
            } else if self.commands.get(album).is_some() {
                return Ok(arrival.end(None));
            }
        }
        Ok(Verdict::Continue(arrival))
    }
}
