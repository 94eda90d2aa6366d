//! Albums: several messages that are one turn.
//!
//! The words of an album stand with one of its parts, and so does what directs it at us. The others are as
//! directed as that one is: in a group they would not be let in by themselves.

use quick_cache::sync::Cache;
use rejoinder_core::{Amends, Directed, InboundEvent};

/// How many albums are remembered: their parts follow one another at once.
const REMEMBERED: usize = 1024;

/// How the latest albums are directed, by their events' id.
pub(crate) struct Albums(Cache<String, Directed>);

impl Default for Albums {
    fn default() -> Self {
        Self(Cache::new(REMEMBERED))
    }
}

impl Albums {
    /// Directs the parts of albums among `events` as one.
    pub(crate) fn direct(&self, events: &mut [&mut InboundEvent]) {
        for event in events.iter().filter(|event| is_part(event) && event.directed != Directed::Ambient) {
            self.0.insert(event.external_id.clone(), event.directed);
        }
        for event in events.iter_mut().filter(|event| is_part(event) && event.directed == Directed::Ambient) {
            if let Some(directed) = self.0.get(&event.external_id) {
                event.directed = directed;
            }
        }
    }
}

fn is_part(event: &InboundEvent) -> bool {
    event.amends == Some(Amends::Continues)
}
