//! The agent: it behaves as a message asks.

use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use rejoinder_tests::{Call, Script, ScriptedAgent};

use crate::words::{self, Behaviour};

/// The gateway's soft deadline.
pub(crate) const SOFT_DEADLINE: Duration = Duration::from_secs(2);
/// The gateway's hard deadline.
pub(crate) const HARD_DEADLINE: Duration = Duration::from_secs(8);

/// How long a deferred answer is put off.
const PUT_OFF: Duration = Duration::from_secs(3);

/// Starts the agent. `paragraph` is the length of a paragraph on the platform of a token.
pub(crate) async fn start(paragraph: impl Fn(&str) -> usize + Send + Sync + 'static) -> ScriptedAgent {
    let deferred = Mutex::new(HashSet::new());
    ScriptedAgent::start(move |call, _| script(call, &deferred, &paragraph)).await
}

fn script(call: &Call, deferred: &Mutex<HashSet<String>>, paragraph: &impl Fn(&str) -> usize) -> Script {
    let text = call.said();
    let Some((behaviour, token)) = words::request_in(&text) else {
        return Script::replies("There is no token in this.");
    };
    let answer = words::answer(token);
    match behaviour {
        Behaviour::Answer => Script::replies(&answer).taking(Duration::from_millis(50)),
        Behaviour::Long => Script::replies(&words::long_answer(token, 3, paragraph(token))),
        Behaviour::Stream => {
            let words = answer.split_inclusive(' ');
            words.fold(Script::replies(&answer), |it, word| it.streaming(word).taking(Duration::from_millis(100)))
        }
        Behaviour::Slow => Script::replies(&answer).taking(SOFT_DEADLINE + Duration::from_secs(1)),
        Behaviour::Stall => Script::hangs(),
        Behaviour::Fail => Script::fails("the agent of the soak fails"),
        Behaviour::Refuse => Script::refuses(503),
        Behaviour::Cut => {
            let half = &answer[..answer.len() / 2];
            Script::fails("the agent of the soak is cut off").streaming(half).taking(Duration::from_millis(500))
        }
        Behaviour::Defer => {
            if deferred.lock().unwrap_or_else(PoisonError::into_inner).insert(token.to_owned()) {
                Script::defers(Some("I will come back to this."), PUT_OFF)
            } else {
                Script::replies(&answer)
            }
        }
        Behaviour::Silent => Script::is_silent("the soak asks for it"),
        Behaviour::Empty => Script::replies(""),
        Behaviour::React => Script::reacts("👍"),
    }
}
