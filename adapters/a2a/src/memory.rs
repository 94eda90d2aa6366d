//! Which context and task of the agent belongs to which session of ours.

use parking_lot::Mutex;
use rejoinder_agents::sessions::SessionSlot;
use rejoinder_core::AgentTurn;
use serde::{Deserialize, Serialize};

/// The most bytes of one of the agent's ids. Two of them are stored.
pub(crate) const MAX_ID: usize = 1_000;

/// What is stored as the agent's own id of a session.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) context: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) task: Option<TaskMemory>,
}

/// The latest task of a context.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub(crate) struct TaskMemory {
    pub(crate) id: String,
    /// The turn for which it was begun.
    pub(crate) turn: String,
    /// How many messages it was given.
    pub(crate) messages: usize,
    /// Whether it waits for the next message of the session.
    pub(crate) waits: bool,
}

impl Memory {
    pub(crate) fn encode(&self) -> String {
        serde_json::to_string(self).expect("strings and numbers are JSON")
    }

    fn decode(stored: &str) -> Option<Self> {
        serde_json::from_str(stored).ok()
    }

    /// The task that waits for the next message.
    pub(crate) fn waiting(&self) -> Option<&str> {
        self.task.as_ref().filter(|task| task.waits).map(|task| &*task.id)
    }

    /// The task that an earlier run of this turn has begun with the same messages.
    pub(crate) fn begun_for(&self, turn: &AgentTurn) -> Option<&TaskMemory> {
        let task = self.task.as_ref().filter(|task| !task.waits)?;
        (task.turn == turn.turn.to_string() && task.messages == messages(turn)).then_some(task)
    }
}

/// How many messages a turn has.
pub(crate) fn messages(turn: &AgentTurn) -> usize {
    1 + turn.more.len()
}

/// What is known of a session.
#[derive(Debug, Default)]
enum Known {
    /// Nothing since the gateway began: what is stored counts.
    #[default]
    Stored,
    Memory {
        memory: Memory,
        /// Whether a run has left its task, because the state of it was not told.
        is_left: bool,
    },
    /// Nothing is to be used any more, whatever is stored.
    Gone,
}

#[derive(Default)]
struct State {
    /// Counts how often something was removed from the session.
    epoch: u64,
    known: Known,
}

/// What belongs to one of our sessions.
#[derive(Default)]
pub(crate) struct Slot(Mutex<State>);

/// What a run begins with.
pub(crate) struct Begin {
    pub(crate) epoch: u64,
    pub(crate) memory: Option<Memory>,
    /// Whether its task may go on: an earlier process of the gateway has stored it, or a run has left it.
    pub(crate) may_go_on: bool,
}

impl Slot {
    /// `stored` is the agent's own id of the session.
    pub(crate) fn begin(&self, stored: Option<&str>) -> Begin {
        let State { epoch, known } = &*self.0.lock();
        let (memory, may_go_on) = match known {
            Known::Stored => (stored.and_then(Memory::decode), true),
            Known::Memory { memory, is_left } => (Some(memory.clone()), *is_left),
            Known::Gone => (None, false),
        };
        Begin { epoch: *epoch, memory, may_go_on }
    }

    /// Whether nothing was removed since `epoch`.
    pub(crate) fn is_current(&self, epoch: u64) -> bool {
        self.0.lock().epoch == epoch
    }

    /// Keeps the memory. Returns `false` if something was removed since `epoch`.
    pub(crate) fn keep(&self, epoch: u64, memory: Memory) -> bool {
        let mut state = self.0.lock();
        let is_current = state.epoch == epoch;
        if is_current {
            state.known = Known::Memory { memory, is_left: false };
        }
        is_current
    }

    /// The state of the task is not told: the next run of the turn asks for it.
    pub(crate) fn leave(&self, epoch: u64) {
        let mut state = self.0.lock();
        if state.epoch == epoch
            && let Known::Memory { is_left, .. } = &mut state.known
        {
            *is_left = true;
        }
    }

    /// The agent does not know the context or the task any more. A run that goes on keeps its own.
    pub(crate) fn forget(&self, epoch: u64) {
        let mut state = self.0.lock();
        if state.epoch == epoch {
            state.known = Known::Gone;
        }
    }
}

impl SessionSlot for Slot {
    fn remove(&self) {
        let mut state = self.0.lock();
        state.epoch += 1;
        state.known = Known::Gone;
    }
}

#[cfg(test)]
mod tests {
    use rejoinder_core::{AgentTurn, conformance::runtime::turn};

    use super::*;

    fn memory(turn: &AgentTurn, waits: bool) -> Memory {
        let task = TaskMemory { id: "t1".to_owned(), turn: turn.turn.to_string(), messages: 1, waits };
        Memory { context: "c1".to_owned(), task: Some(task) }
    }

    #[test]
    fn what_was_stored_counts_until_something_is_known() {
        let (slot, turn) = (Slot::default(), turn("Hi"));
        let stored = memory(&turn, true);

        let begin = slot.begin(Some(&stored.encode()));
        assert_eq!((begin.memory.as_ref(), begin.may_go_on), (Some(&stored), true));
        assert_eq!(slot.begin(Some("")).memory, None);

        assert!(slot.keep(begin.epoch, memory(&turn, false)));
        let begin = slot.begin(Some(&stored.encode()));
        assert_eq!((begin.memory, begin.may_go_on), (Some(memory(&turn, false)), false));
    }

    #[test]
    fn a_task_that_was_left_may_go_on_until_another_one_is_known() {
        let (slot, turn) = (Slot::default(), turn("Hi"));
        slot.keep(0, memory(&turn, false));

        slot.leave(1);
        assert!(!slot.begin(None).may_go_on, "something was removed before");
        slot.leave(0);
        assert!(slot.begin(None).may_go_on);
        slot.keep(0, memory(&turn, false));

        assert!(!slot.begin(None).may_go_on);
    }

    /// A notice may come while a run goes on.
    #[test]
    fn a_context_from_which_something_was_removed_is_not_kept_by_the_run_before() {
        let (slot, turn) = (Slot::default(), turn("Hi"));
        let before = slot.begin(None).epoch;

        slot.remove();

        assert!(!slot.keep(before, memory(&turn, false)) && !slot.is_current(before));
        let after = slot.begin(Some(&memory(&turn, true).encode()));
        assert_eq!(after.memory, None, "what is stored may be that of before");
        assert!(slot.keep(after.epoch, memory(&turn, false)));
    }

    #[test]
    fn a_task_goes_on_for_its_turn_or_for_the_next_one() {
        let turn = turn("Hi");
        let (waits, works) = (memory(&turn, true), memory(&turn, false));

        assert_eq!((waits.waiting(), works.waiting()), (Some("t1"), None));
        assert!(works.begun_for(&turn).is_some() && waits.begun_for(&turn).is_none());
        let other = rejoinder_core::conformance::runtime::turn("Hi");
        assert!(works.begun_for(&other).is_none());
    }
}
