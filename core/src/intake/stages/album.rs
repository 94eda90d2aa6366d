//! Keeps an album from the agent if its caption is a command.

use quick_cache::sync::Cache;

use crate::intake::arrival::{Arrival, Verdict, end};

/// The latest albums with a command in their caption. Their parts follow each other directly.
pub(crate) struct CommandAlbums(Cache<String, ()>);

impl Default for CommandAlbums {
    fn default() -> Self {
        Self(Cache::new(256))
    }
}

pub(in crate::intake) fn album(arrival: &Arrival, CommandAlbums(commands): &CommandAlbums) -> Verdict {
    match &arrival.event.part_of {
        Some(album) if arrival.is_command() => commands.insert(album.clone(), ()),
        Some(album) if commands.get(album).is_some() => return end(None),
        _ => {}
    }
    Ok(())
}
