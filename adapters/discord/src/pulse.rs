//! How the channel is doing.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rejoinder_core::{ChannelHealth, Timestamp};

/// How often Discord asks for heartbeats, until it has said so itself.
const USUAL_INTERVAL: Duration = Duration::from_millis(41_250);

/// How the channel is doing.
#[derive(Debug, Default)]
pub(crate) struct Pulse(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// When Discord last acknowledged a heartbeat, or sent us an event.
    inbound_at: Option<Timestamp>,
    /// How often heartbeats go out.
    interval: Option<Duration>,
    /// What keeps events from coming in.
    inbound: Option<String>,
    /// What keeps what came in from being stored.
    storing: Option<String>,
    /// What keeps everything from going out.
    outbound: Option<String>,
    /// What is missing on Discord's side.
    setup: Option<String>,
}

impl Pulse {
    /// Events come in.
    pub(crate) fn beats(&self, now: Timestamp) {
        let mut state = self.lock();
        state.inbound_at = Some(now);
        state.inbound = None;
    }

    /// Heartbeats go out this often.
    pub(crate) fn interval(&self, interval: Duration) {
        self.lock().interval = Some(interval);
    }

    /// Events do not come in.
    pub(crate) fn fails(&self, problem: String) {
        self.lock().inbound = Some(problem);
    }

    /// What came in cannot be stored. `None`: it is.
    pub(crate) fn storing(&self, problem: Option<String>) {
        self.lock().storing = problem;
    }

    /// Nothing goes out. `None`: it does.
    pub(crate) fn outbound(&self, problem: Option<&str>) {
        let mut state = self.lock();
        if state.outbound.as_deref() != problem {
            state.outbound = problem.map(str::to_owned);
        }
    }

    /// The application lacks something that only its owner can give it. Whether that is news.
    pub(crate) fn lacks(&self, problem: &str) -> bool {
        let mut state = self.lock();
        let is_news = state.setup.as_deref() != Some(problem);
        state.setup = Some(problem.to_owned());
        is_news
    }

    /// The application has what it needs.
    pub(crate) fn lacks_nothing(&self) {
        self.lock().setup = None;
    }

    /// As the core wants it.
    pub(crate) fn health(&self) -> ChannelHealth {
        let state = self.lock();
        let problems = [&state.inbound, &state.storing, &state.outbound, &state.setup];
        let problem = problems.into_iter().flatten().next().cloned();
        // One heartbeat that is not acknowledged, and the connection that takes its place.
        let stale_after = state.interval.unwrap_or(USUAL_INTERVAL) * 2 + Duration::from_secs(20);
        ChannelHealth { inbound_at: state.inbound_at, stale_after: Some(stale_after), problem }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F4.
    #[test]
    fn a_channel_without_acknowledged_heartbeats_is_dead_after_a_while() {
        let pulse = Pulse::default();
        let at = |seconds: i64| Timestamp::from_millis(seconds * 1000);
        assert!(!pulse.health().is_live(at(0)), "nothing is proved yet");

        pulse.interval(Duration::from_secs(40));
        pulse.beats(at(0));

        assert!(pulse.health().is_live(at(90)));
        assert!(!pulse.health().is_live(at(101)));
    }

    #[test]
    fn an_event_does_not_hide_what_the_application_lacks() {
        let pulse = Pulse::default();

        assert!(pulse.lacks("an intent"));
        assert!(!pulse.lacks("an intent"));
        pulse.beats(Timestamp::from_millis(0));

        assert_eq!(pulse.health().problem.as_deref(), Some("an intent"));
    }
}
