//! Checks for problems, and tells people of them.

use std::{mem, sync::Arc, time::Duration};

use anyhow::{Result, anyhow};
use rejoinder_config::{AlertTarget, Alerts};
use rejoinder_core::{
    SharedClock, Timestamp,
    store::{
        LeaseName, LogEntry, LogEvent, LogFilter, LogSeq, LogStore, NewLogEntry, Subject, Transition, Transitions,
    },
};
use serde::Serialize;
use standardwebhooks::Webhook;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use utoipa::ToSchema;
use uuid::Builder;

use super::{
    board::{Board, CanTell, Key, News, Rules},
    digest,
    send::{Alert, Data, Sender, signer},
};
use crate::{
    client::http_client,
    figures::Figures,
    problems::{Problem, Problems, Waits},
    time::{next, zoned},
};

/// How often it looks.
const LOOK: Duration = Duration::from_secs(1);

/// What waits is counted at least as often, and whenever something was logged.
const COUNT: Duration = Duration::from_secs(10);

/// How many of the latest alerts a start reads, and in how many of the latest entries of the log it looks for them.
const REMEMBERED: (u32, LogSeq) = (1000, 200_000);

/// How long after the start a channel may not show yet that it is down.
const TIME_TO_SHOW: Duration = Duration::from_secs(45);

/// The same for an agent, which shows it only when it runs.
const TIME_TO_RUN: Duration = Duration::from_hours(1);

/// How long a test may take: somebody waits for it.
const TEST_WITHIN: Duration = Duration::from_secs(10);

/// How long a node that is not the housekeeper keeps a digest: longer than it takes until another node is that.
const DIGEST_KEPT: Duration = Duration::from_mins(1);

/// The pause after an alert or a digest that nobody got, or that could not be logged.
const TRY_AGAIN: Duration = Duration::from_secs(30);

pub(crate) struct Alerter {
    settings: Alerts,
    sources: Sources,
    sender: Sender,
    pub(super) board: Mutex<Board>,
}

/// What every alerter of a gateway looks at.
#[derive(Clone)]
pub(crate) struct Sources {
    pub(crate) problems: Problems,
    pub(crate) figures: Arc<Figures>,
    pub(crate) log: Arc<dyn LogStore>,
    pub(crate) transitions: Arc<dyn Transitions>,
    pub(crate) clock: SharedClock,
}

/// What alerts are sent with.
pub(crate) struct Means {
    settings: Alerts,
    http: reqwest::Client,
    signer: Option<Webhook>,
}

impl Means {
    /// `None` if nobody is to be told.
    pub(crate) fn of(settings: &Alerts) -> Result<Option<Self>> {
        if settings.to.is_empty() {
            return Ok(None);
        }
        let signer = settings.secret.as_ref().map(signer).transpose()?;
        Ok(Some(Self { settings: settings.clone(), http: http_client()?, signer }))
    }
}

/// How an alert to one target went.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Told {
    /// The target, as in the configuration; of a URL only the host.
    pub(crate) target: String,
    pub(crate) ok: bool,
    /// Why it was not sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

impl Alerter {
    pub(super) fn new(means: Means, seen: Board, sources: Sources) -> Self {
        let Means { settings, http, signer } = means;
        let sender = Sender::new(sources.problems.engine.clone(), Arc::clone(&sources.clock), http, signer);
        Self { settings, sources, sender, board: Mutex::new(seen) }
    }

    /// Looks, and tells, until `ends` is cancelled. `unlogged`: what was told, and could not be logged yet. Returns what is so at the end.
    ///
    /// Of several nodes the housekeeper tells what is wrong. While the store is away no node is that, so each tells of its own trouble with
    /// the store.
    pub(super) async fn run(
        self: Arc<Self>,
        ends: CancellationToken,
        mut unlogged: Vec<NewLogEntry>,
    ) -> Vec<NewLogEntry> {
        let engine = &self.sources.problems.engine;
        let mut is_housekeeper = engine.is_housekeeper();
        let sent_at = self.remember(&unlogged).await;
        let mut started_at = self.sources.clock.now();
        let next = self.next_digest(started_at);
        let mut digests = Digests { next, due: None, sent_at, not_before: started_at };
        let logged = self.sources.log.logged();
        let (mut counted_at, mut counted_to, mut waits) = (None::<Timestamp>, 0, None);
        let mut not_before = self.sources.clock.now();
        let mut log_not_before = self.sources.clock.now();
        while ends.run_until_cancelled(self.sources.clock.sleep(LOOK)).await.is_some() {
            let (now, last) = (self.sources.clock.now(), *logged.borrow());
            let was_housekeeper = mem::replace(&mut is_housekeeper, engine.is_housekeeper());
            if is_housekeeper && !was_housekeeper {
                // Another node has told meanwhile what it saw.
                digests.sent_at = self.remember(&unlogged).await.or(digests.sent_at);
                (started_at, counted_at, waits) = (now, None, None);
            }
            let is_due = last != counted_to || counted_at.is_none_or(|at| now.since(at) >= COUNT);
            if is_housekeeper && is_due {
                // While the store cannot be read, what it said last holds.
                if let Ok(read) = self.sources.problems.waits(now).await {
                    (counted_at, counted_to, waits) = (Some(now), last, Some(read));
                }
            }
            let trouble = self.sources.log.trouble().map(|error| error.to_string());
            let mut problems = self.sources.problems.find(trouble, waits.as_ref(), now);
            let has_more_errors = waits.as_ref().is_some_and(Waits::has_more_errors);
            let news = {
                let mut board = self.board.lock().await;
                if !is_housekeeper {
                    waits = None;
                    problems.retain(|problem| problem.kind == "store");
                    board.keep_only("store");
                }
                board.look(now, problems, |key| match key.0 {
                    "error" if has_more_errors => CanTell::Unlisted,
                    _ => self.known(key, started_at, waits.as_ref(), now),
                });
                let news = board.news(now, &self.rules(now));
                news.map(|news| News { is_part: !is_housekeeper, ..news })
            };
            let mut is_new = false;
            if let Some(news) = news.filter(|_| now >= not_before) {
                if self.tell(&news).await {
                    self.board.lock().await.told(now, &news);
                    unlogged.extend(news.log(now));
                    is_new = true;
                } else {
                    not_before = now + TRY_AGAIN;
                }
            }
            if let Some(at) = digests.due_now(now, is_housekeeper, || self.next_digest(now)) {
                if self.send_digest(at, now).await {
                    digests.sent_at = Some(now);
                    unlogged.push(NewLogEntry { at: now, subject: Subject::default(), event: LogEvent::AlertDigest });
                    is_new = true;
                } else {
                    digests.not_before = now + TRY_AGAIN;
                }
            }
            // A nearly full disk may have room for what was told.
            let may_log = is_new || self.sources.log.trouble().is_none() && now >= log_not_before;
            if may_log && !unlogged.is_empty() && !self.log(&mut unlogged).await {
                log_not_before = now + TRY_AGAIN;
            }
        }
        unlogged
    }

    /// Logs what was told. What cannot be logged stays, for a later try. Returns whether it is logged.
    async fn log(&self, told: &mut Vec<NewLogEntry>) -> bool {
        let transition = Transition { log: told.clone(), ..Transition::default() };
        match self.sources.transitions.commit(transition).await {
            Ok(_) => {
                told.clear();
                true
            }
            Err(error) => {
                warn!(%error, "an alert cannot be logged yet: after a restart it would be told again");
                false
            }
        }
    }

    /// Whether it can be told since the start if this is wrong.
    fn known(&self, (kind, about): &Key, started_at: Timestamp, waits: Option<&Waits>, now: Timestamp) -> CanTell {
        let (since, about) = (now.since(started_at), about.as_deref().unwrap_or_default());
        let Problems { engine, .. } = &self.sources.problems;
        match *kind {
            _ if !Problem::alert_of(kind).is_some_and(|alert| self.settings.at_once.contains(&alert)) => CanTell::Never,
            "channel" if !engine.channels().iter().any(|(channel, _)| channel.as_str() == about) => CanTell::Never,
            "channel" if since < TIME_TO_SHOW => CanTell::NotYet,
            "channel" if waits.is_some_and(|waits| has_moved(about, waits, started_at, now)) => CanTell::Moved,
            // Each node tells of its own.
            "store" if engine.node_name().unwrap_or_default() != about => CanTell::Never,
            "agent" => match engine.agents().into_iter().find(|(name, _)| **name == *about) {
                Some((_, health)) if health.ok_at.is_some() || health.is_down() => CanTell::Yes,
                // One that nobody writes to any more may be told of again.
                Some(_) if since < TIME_TO_RUN => CanTell::NotYet,
                _ => CanTell::Never,
            },
            _ => CanTell::Yes,
        }
    }

    /// Reads the alerts of an earlier process or alerter, of which these are not in the log. Returns when the last digest was sent.
    async fn remember(&self, unlogged: &[NewLogEntry]) -> Option<Timestamp> {
        let ((limit, within), last) = (REMEMBERED, *self.sources.log.logged().borrow());
        let topics = vec!["alert.*".to_owned()];
        let filter = LogFilter { topics, after: last - within, newest_first: true, limit, ..LogFilter::default() };
        match self.sources.log.log(&filter).await {
            Ok(mut entries) => {
                entries.reverse();
                entries.extend(unlogged.iter().map(stored));
                *self.board.lock().await = Board::of_log(&entries);
                let is_digest = |entry: &&LogEntry| entry.topic == LogEvent::AlertDigest.topic();
                entries.iter().rev().find(is_digest).map(|entry| entry.at)
            }
            Err(error) => {
                warn!(%error, "cannot read which alerts were sent: some may be sent again");
                None
            }
        }
    }

    fn rules(&self, now: Timestamp) -> Rules<'_> {
        let Alerts { at_once, always, after, window, quiet_hours, .. } = &self.settings;
        let time = zoned(now, &self.settings.time_zone.zone).time();
        let is_quiet = quiet_hours.0.is_some_and(|hours| hours.contains(time));
        Rules { at_once, always, is_quiet, after: *after, window: *window }
    }

    /// Whether another node tells people by now: this one may have stood still since it looked. What is on its way cannot be held back.
    fn is_relieved(&self) -> bool {
        self.sources.problems.engine.housekeeping_fence().is_err()
    }

    /// Whether anybody was told.
    async fn tell(&self, news: &News) -> bool {
        // Each node tells of its own trouble with the store, whichever is the housekeeper.
        if !news.is_part && self.is_relieved() {
            return false;
        }
        let ended = news.ended.iter().map(|(problem, _)| problem.clone()).collect();
        let News { begun, grown, still, .. } = news.clone();
        let alert = self.sender.alert("alert", Data { text: news.text(), begun, grown, ended, still });
        info!(text = %alert.data.text, "an alert");
        self.send(&alert).await
    }

    /// Tells all in `to` that can be reached; if none can, those in `otherwise`.
    async fn send(&self, alert: &Alert) -> bool {
        let Alerts { to, otherwise, .. } = &self.settings;
        let (mut reachable, mut others) = (Vec::new(), Vec::new());
        for target in to {
            if self.can_reach(target).await { reachable.push(target) } else { others.push(target) }
        }
        if self.send_to(&reachable, alert).await {
            return true;
        }
        let otherwise: Vec<_> = otherwise.iter().collect();
        if !otherwise.is_empty() {
            return self.send_to(&otherwise, alert).await;
        }
        // It waits there until the channel is back.
        self.send_to(&others, alert).await
    }

    /// Whether a target works, as far as is known.
    async fn can_reach(&self, target: &AlertTarget) -> bool {
        let AlertTarget::Conversation(conversation) = target else { return true };
        let board = self.board.lock().await;
        let channel = conversation.channel.as_str();
        let is_broken = |kind| board.has(kind, Some(channel));
        !board.has("store", self.sources.problems.engine.node_name())
            && !is_broken("channel")
            && !is_broken("parked_alerts")
    }

    /// Whether one of these got it.
    async fn send_to(&self, targets: &[&AlertTarget], alert: &Alert) -> bool {
        let mut is_sent = false;
        for told in self.try_all(targets.iter().copied(), alert, Duration::MAX).await {
            is_sent |= told.ok;
            if let Some(error) = told.error {
                warn!(target = %told.target, %error, "an alert was not sent");
            }
        }
        is_sent
    }

    async fn try_all(&self, targets: impl Iterator<Item = &AlertTarget>, alert: &Alert, within: Duration) -> Vec<Told> {
        let tries = targets.map(async |target| {
            let sent = tokio::time::timeout(within, self.sender.send(target, alert)).await;
            let sent = sent.unwrap_or_else(|_| Err(anyhow!("it did not answer within {within:?}")));
            let error = sent.err().map(|error| format!("{error:#}"));
            Told { target: target.to_string(), ok: error.is_none(), error }
        });
        futures_util::future::join_all(tries).await
    }

    pub(crate) async fn test(&self) -> Vec<Told> {
        let text = "This is a test of the alerts. Nothing is wrong.".to_owned();
        let alert = self.sender.alert("test", Data { text, ..Data::default() });
        self.try_all(self.settings.to.iter().chain(&self.settings.otherwise), &alert, TEST_WITHIN).await
    }

    /// What is wrong now, whether it was told or not.
    pub(crate) async fn wrong(&self) -> Vec<Problem> {
        self.board.lock().await.wrong()
    }

    fn next_digest(&self, now: Timestamp) -> Option<Timestamp> {
        let at = self.settings.digest.0?;
        next(now, at.0, &self.settings.time_zone.zone)
    }

    /// Sends the digest of `at`. Returns whether anybody got it.
    async fn send_digest(&self, at: Timestamp, now: Timestamp) -> bool {
        let wrong = self.board.lock().await.wrong();
        match digest::text(&self.sources.figures, &*self.sources.problems.lists, &wrong, now).await {
            Ok(text) => {
                let alert = self.sender.alert("digest", Data { text, still: wrong, ..Data::default() });
                !self.is_relieved() && self.send(&Alert { id: digest_id(at), ..alert }).await
            }
            Err(error) => {
                warn!(%error, "the digest cannot be made");
                false
            }
        }
    }
}

/// The digests, at each of several nodes: the one that should send one may be lost.
struct Digests {
    next: Option<Timestamp>,
    /// One whose time has come.
    due: Option<Timestamp>,
    /// When the last one was sent, here or at another node.
    sent_at: Option<Timestamp>,
    /// None is sent before: nobody got the last one.
    not_before: Timestamp,
}

impl Digests {
    /// The time of the digest that this node sends now. `next` is the time of the one after it.
    fn due_now(
        &mut self,
        now: Timestamp,
        is_housekeeper: bool,
        next: impl FnOnce() -> Option<Timestamp>,
    ) -> Option<Timestamp> {
        if let Some(at) = self.next.filter(|at| *at <= now) {
            (self.next, self.due) = (next(), Some(at));
        }
        let is_sent = |at: Timestamp| self.sent_at.is_some_and(|sent| sent >= at);
        let is_kept = |at: Timestamp| is_housekeeper || now.since(at) < DIGEST_KEPT;
        self.due = self.due.filter(|at| !is_sent(*at) && is_kept(*at));
        self.due.filter(|_| is_housekeeper && now >= self.not_before)
    }
}

/// The id of the digest of `at`: the same at each node, so that it is not told twice.
fn digest_id(at: Timestamp) -> String {
    let millis = u64::try_from(at.as_millis()).unwrap_or_default();
    Builder::from_unix_timestamp_millis(millis, &[0; 10]).into_uuid().to_string()
}

/// Whether no node has a channel, or one has taken it since the start so lately that it may not show yet that it is down.
fn has_moved(channel: &str, waits: &Waits, started_at: Timestamp, now: Timestamp) -> bool {
    let is_its = |name: &LeaseName| matches!(name, LeaseName::Channel(held) if held.as_str() == channel);
    let held = waits.nodes.iter().flat_map(|node| &node.leases).find(|(name, _)| is_its(name));
    !waits.nodes.is_empty() && held.is_none_or(|(_, since)| *since > started_at && now.since(*since) < TIME_TO_SHOW)
}

/// An entry as it will be in the log.
fn stored(entry: &NewLogEntry) -> LogEntry {
    let NewLogEntry { at, subject, event } = entry.clone();
    let (topic, data) = (event.topic().into_owned(), serde_json::to_value(&event).unwrap_or_default());
    LogEntry { seq: 0, at, topic, subject, data }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    /// The digest of second 10, and that of the next day.
    fn digests() -> Digests {
        Digests { next: Some(at(10)), due: None, sent_at: None, not_before: at(0) }
    }

    fn look(digests: &mut Digests, seconds: i64, is_housekeeper: bool) -> Option<Timestamp> {
        digests.due_now(at(seconds), is_housekeeper, || Some(at(86_410)))
    }

    #[test]
    fn a_digest_that_is_due_while_no_node_tells_is_sent_by_the_next_one() {
        let mut digests = digests();
        assert_eq!([look(&mut digests, 9, true), look(&mut digests, 10, false)], [None, None]);

        assert_eq!(look(&mut digests, 30, true), Some(at(10)));
        digests.not_before = at(60);
        assert_eq!([look(&mut digests, 31, true), look(&mut digests, 60, true)], [None, Some(at(10))]);
        digests.sent_at = Some(at(60));
        assert_eq!([look(&mut digests, 61, true), look(&mut digests, 86_410, true)], [None, Some(at(86_410))]);
    }

    #[test]
    fn a_digest_that_another_node_has_sent_or_may_have_sent_long_ago_is_not_sent() {
        let (mut told, mut late) = (digests(), digests());
        assert_eq!([look(&mut told, 10, false), look(&mut late, 10, false)], [None, None]);

        told.sent_at = Some(at(11));
        assert_eq!(look(&mut told, 20, true), None);
        assert_eq!([look(&mut late, 70, false), look(&mut late, 71, true)], [None, None]);
    }

    /// This machine slept at the time.
    #[test]
    fn the_only_node_sends_a_digest_however_late() {
        assert_eq!(look(&mut digests(), 7200, true), Some(at(10)));
    }
}
