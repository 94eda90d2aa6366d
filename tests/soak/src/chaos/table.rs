//! The result of a run with several nodes: as JSON, and as Markdown.

use std::{
    collections::BTreeMap,
    fmt::{self, Write as _},
    path::PathBuf,
    time::{Duration, Instant},
};

use clap::ValueEnum as _;
use serde::Serialize;

use super::{
    probes::Probe,
    trouble::{Done, Trouble},
};
use crate::{agent::HARD_DEADLINE, channel::Platform, judge::Verdict, machine::Machine};

/// After how long callers of hooks and pages do not come to a node any more that ended or froze: the front asks each half a second, and
/// waits twice for two seconds.
const ELSEWHERE: Duration = Duration::from_secs(5);
/// How long they may wait from then on.
const AT_ONCE: Duration = Duration::from_secs(5);
/// How long after a trouble all nodes must be ready.
const READY: Duration = Duration::from_secs(20);

/// A run and its result.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    #[serde(flatten)]
    pub(crate) machine: Machine,
    pub(crate) seed: u64,
    pub(crate) nodes: usize,
    pub(crate) database: String,
    /// The binary of the later version.
    pub(crate) upgraded_to: Option<PathBuf>,
    pub(crate) platforms: Vec<&'static str>,
    /// Troubles that could not be made, each with the reason.
    pub(crate) not_run: Vec<(String, &'static str)>,
    pub(crate) parts: Vec<Part>,
}

/// A part of a run, which was judged when nothing was owed any more.
#[derive(Debug, Serialize)]
pub(crate) struct Part {
    /// Its trouble, or `random`.
    pub(crate) name: String,
    /// Seconds until nothing was owed; `None` if that did not happen.
    pub(crate) settled_after: Option<f64>,
    /// Messages that no platform or node had accepted at the end.
    pub(crate) not_accepted: usize,
    /// How often a node ended without being asked, or did not end when it was asked.
    pub(crate) ended_wrongly: u32,
    pub(crate) verdict: Verdict,
    pub(crate) occurrences: Vec<Occurrence>,
}

/// A trouble at one time.
#[derive(Debug, Serialize)]
pub(crate) struct Occurrence {
    pub(crate) trouble: Trouble,
    /// The number of the node that it was done to, from 1.
    pub(crate) node: Option<usize>,
    /// How many channels of platforms this node had.
    pub(crate) node_channels: usize,
    /// Seconds.
    pub(crate) lasted: f64,
    /// Seconds from its end until all nodes were ready. `None`: they were not.
    pub(crate) ready: Option<f64>,
    pub(crate) channels: BTreeMap<&'static str, Gap>,
    pub(crate) sends_without_lease: usize,
    pub(crate) problems: Vec<String>,
}

/// How a channel went on, in seconds. `None`: it did not.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Gap {
    /// From the begin of the trouble to the first answer.
    pub(crate) first: Option<f64>,
    /// The longest time that a message waited for an answer, counted from when the trouble allows it at the earliest.
    pub(crate) longest: Option<f64>,
}

impl Occurrence {
    /// Judges a trouble by what was said on these platforms from its begin on.
    pub(crate) fn judge(
        trouble: Trouble,
        (began, ended): (Instant, Instant),
        done: &Done,
        ready: Option<Duration>,
        platforms: &[Platform],
        probes: &[Probe],
    ) -> Self {
        let mut problems = Vec::new();
        let mut channels = BTreeMap::new();
        // If a message waits through a longer trouble, its person is told that the agent took too long.
        let may_be_late = ended.saturating_duration_since(began) >= HARD_DEADLINE;
        for platform in platforms {
            let its = || probes.iter().filter(|probe| probe.platform == *platform);
            let wait = |probe: &Probe| {
                let from = done.since.max(probe.said);
                let over = probe.answered.or(probe.too_late.filter(|_| may_be_late));
                Some(over?.saturating_duration_since(from))
            };
            let waits: Option<Vec<Duration>> = its().map(wait).collect();
            let longest = waits.and_then(|waits| waits.into_iter().max());
            let first = its().filter_map(|probe| probe.answered).min();
            let gap = Gap {
                first: first.map(|at| at.saturating_duration_since(began).as_secs_f64()),
                longest: longest.map(|longest| longest.as_secs_f64()),
            };
            if longest.is_none_or(|longest| longest > trouble.limit()) {
                let answered = gap.longest.map_or_else(
                    || "was never answered".to_owned(),
                    |longest| format!("was answered after {longest:.1} s, not within {:?}", trouble.limit()),
                );
                problems.push(format!("{}: a message {answered}", platform.name()));
            }
            channels.insert(platform.name(), gap);
            let is_at_each_node = matches!(platform, Platform::Webhook | Platform::Webchat);
            if trouble.leaves_others() && is_at_each_node {
                let elsewhere = its().filter(|probe| probe.said >= done.since + ELSEWHERE).filter_map(wait).max();
                if let Some(late) = elsewhere.filter(|wait| *wait > AT_ONCE) {
                    let (name, late) = (platform.name(), late.as_secs_f64());
                    problems.push(format!("{name}: other nodes answered after {late:.1} s, not within {AT_ONCE:?}"));
                }
            }
        }
        if ready.is_none_or(|ready| ready > READY) {
            problems.push(format!("not all nodes were ready within {READY:?}"));
        }
        if done.sends_without_lease > 0 {
            problems.push(format!("the node sent {} times without a lease", done.sends_without_lease));
        }
        Self {
            trouble,
            node: done.node.map(|node| node + 1),
            node_channels: done.channels,
            lasted: ended.saturating_duration_since(began).as_secs_f64(),
            ready: ready.map(|ready| ready.as_secs_f64()),
            channels,
            sends_without_lease: done.sends_without_lease,
            problems,
        }
    }
}

impl Part {
    /// What must be 0, with names for the table.
    fn failures(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let others = [
            ("not accepted at the end", self.not_accepted),
            ("ended by itself, or not when asked", self.ended_wrongly as usize),
            ("stood still too long, or sent without a lease", self.problems().count()),
        ];
        self.verdict.failures().into_iter().chain(others)
    }

    /// What was wrong with the time and the leases.
    pub(crate) fn problems(&self) -> impl Iterator<Item = &str> {
        self.occurrences.iter().flat_map(|it| it.problems.iter().map(String::as_str))
    }

    /// Whether everything that must be 0 is 0, and somebody wrote.
    pub(crate) fn is_good(&self) -> bool {
        self.failures().all(|(_, count)| count == 0) && self.settled_after.is_some() && self.verdict.total().said > 0
    }
}

impl Summary {
    /// Whether there is a part, and all are good.
    pub(crate) fn is_good(&self) -> bool {
        !self.parts.is_empty() && self.parts.iter().all(Part::is_good)
    }

    pub(crate) fn markdown(&self) -> String {
        let mut text = String::new();
        self.write(&mut text).expect("writing to a string succeeds");
        text
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        let Machine { date, cores, memory_gib } = &self.machine;
        let (nodes, database, seed) = (self.nodes, &self.database, self.seed);
        writeln!(
            out,
            "{date}, {nodes} nodes, {database}, seed {seed}, {cores} cores, {memory_gib:.0} GiB of memory.\n"
        )?;

        let names: Vec<_> = self.parts.iter().take(1).flat_map(Part::failures).map(|(name, _)| name).collect();
        writeln!(
            out,
            "| Judged | messages | **{}** | copies with a label | nothing owed after |",
            names.join("** | **")
        )?;
        writeln!(out, "| --- |{}", " ---: |".repeat(names.len() + 3))?;
        for part in &self.parts {
            let total = part.verdict.total();
            let counts: Vec<_> = part.failures().map(|(_, count)| count.to_string()).collect();
            let (name, counts, settled) = (&part.name, counts.join(" | "), seconds(part.settled_after));
            writeln!(out, "| {name} | {} | {counts} | {} | {settled} |", total.said, total.labelled)?;
        }

        writeln!(
            out,
            "\n| Trouble | times | {} | all ready | channels it had | sends without a lease |",
            self.platforms.join(" | ")
        )?;
        writeln!(out, "| --- |{}", " ---: |".repeat(self.platforms.len() + 4))?;
        let mut by_trouble = BTreeMap::<Trouble, Vec<&Occurrence>>::new();
        for occurrence in self.parts.iter().flat_map(|part| &part.occurrences) {
            by_trouble.entry(occurrence.trouble).or_default().push(occurrence);
        }
        for (trouble, occurrences) in &by_trouble {
            let cell = |platform: &&'static str| {
                let gaps = || occurrences.iter().filter_map(|it| it.channels.get(platform));
                format!(
                    "{} / {}",
                    seconds(longest(gaps().map(|it| it.first))),
                    seconds(longest(gaps().map(|it| it.longest)))
                )
            };
            let cells: Vec<_> = self.platforms.iter().map(cell).collect();
            let sends: usize = occurrences.iter().map(|it| it.sends_without_lease).sum();
            let had: usize = occurrences.iter().map(|it| it.node_channels).sum();
            let (cells, ready) = (cells.join(" | "), seconds(longest(occurrences.iter().map(|it| it.ready))));
            writeln!(out, "| {} | {} | {cells} | {ready} | {had} | {sends} |", trouble.name(), occurrences.len())?;
        }
        let from_message = Trouble::value_variants().iter().filter(|trouble| trouble.counts_from_message());
        let from_message: Vec<_> = from_message.map(|trouble| trouble.name()).collect();
        writeln!(
            out,
            "\nOf each channel: the time from the begin of the trouble to the first answer, and the longest time that a message waited, \
             counted from the message, and at the earliest from when the database or the platform is back, or a node was taken away. \
             With {} it is counted from the message alone.",
            from_message.join(", ")
        )?;
        if let Some(binary) = &self.upgraded_to {
            writeln!(out, "\n{} was to {}.", Trouble::RollingUpgrade.name(), binary.display())?;
        }
        for (trouble, why) in &self.not_run {
            writeln!(out, "\n{trouble} was not run: {why}.")?;
        }
        Ok(())
    }
}

/// The longest time; `None` if one is.
fn longest(times: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let times: Option<Vec<f64>> = times.collect();
    times?.into_iter().max_by(f64::total_cmp)
}

fn seconds(time: Option<f64>) -> String {
    time.map_or_else(|| "never".to_owned(), |time| format!("{time:.1} s"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kill of a node, with one message on one channel: the seconds after the kill when it was said and when it was answered.
    fn killed(said: u64, answered: Option<u64>, sends_without_lease: usize) -> Occurrence {
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        let probe = Probe { platform: Platform::Telegram, said: at(said), answered: answered.map(at), too_late: None };
        let done = Done { since: began, node: Some(0), channels: 3, sends_without_lease };
        let ready = Some(Duration::from_secs(1));
        Occurrence::judge(Trouble::NodeKill, (began, at(17)), &done, ready, &[Platform::Telegram], &[probe])
    }

    #[test]
    fn a_channel_that_stands_still_too_long_is_a_problem() {
        assert!(killed(1, Some(19), 0).problems.is_empty());
        assert_eq!(killed(1, Some(23), 0).problems, ["telegram: a message was answered after 22.0 s, not within 20s"]);
        assert_eq!(killed(1, None, 0).problems, ["telegram: a message was never answered"]);
    }

    #[test]
    fn a_channel_on_which_nobody_could_write_stood_still() {
        let now = Instant::now();
        let done = Done { since: now, node: None, channels: 0, sends_without_lease: 0 };
        let ready = Some(Duration::ZERO);

        let judged = Occurrence::judge(Trouble::DbCrash, (now, now), &done, ready, &[Platform::Webhook], &[]);

        assert_eq!(judged.problems, ["webhook: a message was never answered"]);
    }

    #[test]
    fn a_hook_that_waits_for_a_node_that_is_gone_is_a_problem() {
        let began = Instant::now();
        let done = Done { since: began, node: Some(0), channels: 3, sends_without_lease: 0 };
        let judged = |said, answered| {
            let at = |seconds| began + Duration::from_secs(seconds);
            let probe =
                Probe { platform: Platform::Webhook, said: at(said), answered: Some(at(answered)), too_late: None };
            let (times, ready) = ((began, at(17)), Some(Duration::ZERO));
            Occurrence::judge(Trouble::NodeKill, times, &done, ready, &[Platform::Webhook], &[probe]).problems
        };

        assert!(judged(1, 18).is_empty());
        assert_eq!(judged(8, 18), ["webhook: other nodes answered after 10.0 s, not within 5s"]);
    }

    #[test]
    fn a_message_may_be_too_late_after_a_trouble_that_lasted_longer_than_its_deadline() {
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        let judged = |ended| {
            let done = Done { since: at(ended), node: None, channels: 0, sends_without_lease: 0 };
            let probe = Probe { platform: Platform::Telegram, said: at(1), answered: None, too_late: Some(at(19)) };
            let (times, ready) = ((began, at(ended)), Some(Duration::ZERO));
            Occurrence::judge(Trouble::DbCrash, times, &done, ready, &[Platform::Telegram], &[probe]).problems
        };

        assert!(judged(18).is_empty());
        assert_eq!(judged(7), ["telegram: a message was never answered"]);
    }

    #[test]
    fn a_node_that_does_not_become_ready_is_a_problem() {
        let now = Instant::now();
        let done = Done { since: now, node: None, channels: 0, sends_without_lease: 0 };

        let judged = Occurrence::judge(Trouble::DbCrash, (now, now), &done, None, &[], &[]);

        assert_eq!(judged.problems, ["not all nodes were ready within 20s"]);
    }

    #[test]
    fn who_sends_without_a_lease_is_a_problem() {
        assert_eq!(killed(1, Some(2), 3).problems, ["the node sent 3 times without a lease"]);
    }
}
