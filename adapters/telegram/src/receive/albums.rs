//! Albums: several messages that are answered together.
//!
//! Only one part of an album carries its text, and with it a mention of us. The other parts take over how that part is
//! directed; otherwise a group's policy would not let them in.

use quick_cache::sync::Cache;
use rejoinder_core::{Directed, InboundEvent};

/// How many albums are remembered. The parts of an album follow each other directly.
const REMEMBERED: usize = 1024;

/// How the latest albums are directed, by their names.
pub(crate) struct Albums(Cache<String, Directed>);

impl Default for Albums {
    fn default() -> Self {
        Self(Cache::new(REMEMBERED))
    }
}

impl Albums {
    /// Gives all parts of an album among `events` the same direction.
    pub(crate) fn share_direction(&self, events: &mut [&mut InboundEvent]) {
        for event in events.iter().filter(|event| event.directed != Directed::Ambient) {
            if let Some(album) = &event.part_of {
                self.0.insert(album.clone(), event.directed);
            }
        }
        for event in events.iter_mut().filter(|event| event.directed == Directed::Ambient) {
            if let Some(directed) = event.part_of.as_ref().and_then(|album| self.0.get(album)) {
                event.directed = directed;
            }
        }
    }
}
