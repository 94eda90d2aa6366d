//! The health of a channel.

use std::time::Duration;

use parking_lot::Mutex;
use rejoinder_core::{ChannelHealth, DeliveryError, Receipt, Timestamp};

/// How many chats a notice names.
const NAMED: usize = 5;

/// The health of a channel: when inbound was last proved to work, and the problem of each part, if any.
#[derive(Debug, Default)]
pub struct Health(Mutex<HealthParts>);

#[derive(Debug, Default)]
struct HealthParts {
    inbound_at: Option<Timestamp>,
    stale_after: Option<Duration>,
    inbound: Option<String>,
    storing: Option<String>,
    outbound: Option<String>,
    setup: Option<String>,
    unread: Option<String>,
}

impl Health {
    /// Health without a proof yet. The channel counts as dead when its last proof of inbound is older than this.
    #[must_use]
    pub fn stale_after(stale_after: Duration) -> Self {
        let health = Self::default();
        health.set_stale_after(stale_after);
        health
    }

    /// Sets how old the last proof of inbound may be.
    pub fn set_stale_after(&self, stale_after: Duration) {
        self.0.lock().stale_after = Some(stale_after);
    }

    /// Reports that inbound works as of `now`: a poll completed, a heartbeat was acknowledged, a sync was read.
    pub fn inbound_works(&self, now: Timestamp) {
        let mut parts = self.0.lock();
        parts.inbound_at = Some(now);
        parts.inbound = None;
    }

    /// Whether inbound was proved at least once since the start.
    #[must_use]
    pub fn has_worked(&self) -> bool {
        self.0.lock().inbound_at.is_some()
    }

    /// Reports that no events arrive.
    pub fn inbound_fails(&self, problem: impl Into<String>) {
        self.0.lock().inbound = Some(problem.into());
    }

    /// Reports that the store accepts events and returns cursors.
    pub fn storing_works(&self) {
        self.0.lock().storing = None;
    }

    /// Reports that the store does not accept events or return cursors.
    pub fn storing_fails(&self, problem: String) {
        self.0.lock().storing = Some(problem);
    }

    /// Reports that the platform accepts deliveries.
    pub fn outbound_works(&self) {
        self.0.lock().outbound = None;
    }

    /// Reports that the platform accepts no deliveries at all.
    pub fn outbound_fails(&self, problem: impl Into<String>) {
        self.0.lock().outbound = Some(problem.into());
    }

    /// Updates the outbound health from the result of a delivery. `refused` is the problem text for rejected credentials.
    /// Any other error concerns one delivery and changes nothing.
    pub fn note_delivery(&self, result: &Result<Receipt, DeliveryError>, refused: &str) {
        match result {
            Ok(_) => self.outbound_works(),
            Err(DeliveryError::Unauthorized(_)) => self.outbound_fails(refused),
            Err(_) => {}
        }
    }

    /// Reports that the account lacks something that only its owner can grant. Returns whether the problem is new.
    pub fn setup_fails(&self, problem: &str) -> bool {
        let mut parts = self.0.lock();
        let is_new = parts.setup.as_deref() != Some(problem);
        parts.setup = Some(problem.to_owned());
        is_new
    }

    /// Reports that the account lacks nothing.
    pub fn setup_is_complete(&self) {
        self.0.lock().setup = None;
    }

    /// Reports the chats whose missed messages cannot be read at the moment. Empty: there are none.
    pub fn set_unread(&self, chats: &[String]) {
        let named = chats.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
        let more = chats.len().checked_sub(NAMED).filter(|more| *more > 0);
        let more = more.map(|more| format!(" and {more} more")).unwrap_or_default();
        self.0.lock().unread = (!chats.is_empty()).then(|| format!("missed messages cannot be read in {named}{more}"));
    }

    /// The health that the core reads. Of several problems it names one: inbound, the store, outbound, setup, in this order.
    #[must_use]
    pub fn report(&self) -> ChannelHealth {
        let parts = self.0.lock();
        let problems = [&parts.inbound, &parts.storing, &parts.outbound, &parts.setup];
        let problem = problems.into_iter().flatten().next().cloned();
        ChannelHealth {
            inbound_at: parts.inbound_at,
            stale_after: parts.stale_after,
            problem,
            notice: parts.unread.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    /// F4.
    #[test]
    fn a_channel_whose_last_proof_is_too_old_is_dead() {
        let health = Health::stale_after(Duration::from_secs(100));
        assert!(!health.report().is_live(at(0)), "nothing is proved yet");

        health.inbound_works(at(0));

        assert!(health.report().is_live(at(90)));
        assert!(!health.report().is_live(at(101)));
        health.set_stale_after(Duration::from_secs(200));
        assert!(health.report().is_live(at(101)));
    }

    #[test]
    fn a_proof_of_inbound_hides_no_other_problem() {
        let health = Health::default();

        assert!(health.setup_fails("an intent"));
        assert!(!health.setup_fails("an intent"), "it is not new");
        health.outbound_fails("the token is refused");
        health.inbound_fails("it cannot be reached");
        assert_eq!(health.report().problem.as_deref(), Some("it cannot be reached"));
        health.inbound_works(at(0));

        assert_eq!(health.report().problem.as_deref(), Some("the token is refused"));
        health.outbound_works();
        assert_eq!(health.report().problem.as_deref(), Some("an intent"));
        health.setup_is_complete();
        assert_eq!(health.report().problem, None);
    }

    #[test]
    fn chats_that_cannot_be_read_are_named_and_the_channel_is_live() {
        let health = Health::default();
        health.inbound_works(at(0));
        let chats: Vec<_> = (1..=7).map(|number| format!("chat {number}")).collect();

        health.set_unread(&chats);

        let report = health.report();
        assert!(report.is_live(at(0)));
        let expected = "missed messages cannot be read in chat 1, chat 2, chat 3, chat 4, chat 5 and 2 more";
        assert_eq!(report.notice.as_deref(), Some(expected));
        health.set_unread(&[]);
        assert_eq!(health.report().notice, None);
    }

    #[test]
    fn a_refused_delivery_is_no_problem_of_the_channel() {
        let health = Health::default();
        let problem = || health.report().problem;

        health.note_delivery(&Err(DeliveryError::Unauthorized("401".to_owned())), "the token is refused");
        health.note_delivery(&Err(DeliveryError::Refused("blocked".to_owned())), "the token is refused");
        assert_eq!(problem().as_deref(), Some("the token is refused"));
        health.note_delivery(&Ok(Receipt::of("1")), "the token is refused");

        assert_eq!(problem(), None);
    }
}
