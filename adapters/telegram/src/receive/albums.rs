//! Albums: several messages that become one turn.
//!
//! Only one part of an album carries its text, and with it a mention of us. The other parts take over how that part is
//! directed; otherwise a group's policy would not let them in.

use quick_cache::sync::Cache;
use rejoinder_core::{Amends, Directed, InboundEvent};

/// How many albums are remembered. The parts of an album follow each other directly.
const REMEMBERED: usize = 1024;

/// How the latest albums are directed, by their events' `external_id`.
pub(crate) struct Albums(Cache<String, Directed>);

impl Default for Albums {
    fn default() -> Self {
        Self(Cache::new(REMEMBERED))
    }
}

impl Albums {
    /// Gives all parts of an album among `events` the same direction.
    pub(crate) fn share_direction(&self, events: &mut [&mut InboundEvent]) {
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
