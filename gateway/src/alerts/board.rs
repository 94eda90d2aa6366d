//! What is wrong, what was told of it, and what is to be told now. Pure: the time is an argument.

use std::{collections::BTreeMap, time::Duration};

use rejoinder_config::AlertKind;
use rejoinder_core::{
    ChannelId, Timestamp,
    store::{LogEntry, LogEvent, NewLogEntry, Subject},
};

use crate::problems::Problem;

/// What an alert is about: a kind, and its channel, agent or schedule.
pub(super) type Key = (AlertKind, Option<String>);

/// When something is told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules<'a> {
    pub(super) at_once: &'a [AlertKind],
    pub(super) always: &'a [AlertKind],
    pub(super) is_quiet: bool,
    pub(super) after: Duration,
    pub(super) window: Duration,
}

impl Rules<'_> {
    fn allow(&self, kind: AlertKind) -> bool {
        self.at_once.contains(&kind) && (!self.is_quiet || self.always.contains(&kind))
    }
}

/// Whether this process can tell if something is wrong that an earlier one has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    Yes,
    /// It shows with time.
    NotYet,
    /// Nobody is told of it any more, or it is gone from the configuration.
    Never,
}

/// What is to be told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct News {
    pub(super) begun: Vec<Problem>,
    /// There are more of them than were told.
    pub(super) grown: Vec<Problem>,
    /// With how long they lasted.
    pub(super) ended: Vec<(Problem, Duration)>,
    /// What was told before, and is still wrong.
    pub(super) still: Vec<Problem>,
}

#[derive(Clone, Debug)]
struct Item {
    problem: Problem,
    since: Timestamp,
    /// Since when it is no longer wrong.
    gone: Option<Timestamp>,
    /// How many of it were told, if it was told.
    told: Option<u64>,
    /// Whether only an earlier process has seen it.
    is_remembered: bool,
}

impl Item {
    fn count(&self) -> u64 {
        self.problem.count.unwrap_or(1)
    }
}

/// What is wrong, and what was told of it.
#[derive(Debug, Default)]
pub(super) struct Board {
    items: BTreeMap<Key, Item>,
    told_at: BTreeMap<Key, Timestamp>,
}

impl Problem {
    /// What an alert about it is about.
    fn key(&self) -> Option<Key> {
        Some((self.alert()?, self.subject.clone()))
    }
}

impl Board {
    /// The board of an earlier process, from what it wrote to the log, oldest first.
    pub(super) fn of_log(entries: &[LogEntry]) -> Self {
        let mut board = Self::default();
        for LogEntry { at, topic, data, .. } in entries {
            let text = |name: &str| data[name].as_str().map(ToOwned::to_owned);
            let kind = text("kind").unwrap_or_default();
            let Some(problem) = Problem::told(&kind, text("text").unwrap_or_default()) else { continue };
            let problem = Problem { subject: text("about"), count: data["count"].as_u64(), ..problem };
            let Some(key) = problem.key() else { continue };
            if topic == "alert.cleared" {
                board.items.remove(&key);
                continue;
            }
            let since = board.items.get(&key).map_or(*at, |item| item.since);
            let mut item = Item { problem, since, gone: None, told: None, is_remembered: true };
            item.told = Some(item.count());
            board.told_at.insert(key.clone(), *at);
            board.items.insert(key, item);
        }
        board
    }

    /// Takes in what is wrong now. `known` says of what only an earlier process has seen whether this one can tell.
    pub(super) fn look(&mut self, now: Timestamp, problems: Vec<Problem>, known: impl Fn(&Key) -> Known) {
        let mut found: BTreeMap<Key, Problem> =
            problems.into_iter().filter_map(|problem| Some((problem.key()?, problem))).collect();
        self.items.retain(|key, item| {
            if let Some(problem) = found.remove(key) {
                (item.problem, item.gone, item.is_remembered) = (problem, None, false);
                return true;
            }
            match known(key) {
                Known::NotYet if item.is_remembered => return true,
                Known::Never if item.is_remembered => return false,
                _ => {}
            }
            item.gone.get_or_insert(now);
            item.told.is_some()
        });
        for (key, problem) in found {
            self.items.insert(key, Item { problem, since: now, gone: None, told: None, is_remembered: false });
        }
    }

    /// What is to be told now, if anything.
    pub(super) fn news(&self, now: Timestamp, rules: &Rules<'_>) -> Option<News> {
        // Turns are late because of something else that is wrong, or was until now.
        let is_cause = |kind| matches!(kind, AlertKind::Store | AlertKind::Channel | AlertKind::Agent);
        let has_cause = self.items.iter().any(|((kind, _), item)| !item.is_remembered && is_cause(*kind));
        let mut news = News::default();
        for (key, item) in &self.items {
            let kind = key.0;
            let is_in_window = self.told_at.get(key).is_some_and(|at| now.since(*at) < rules.window);
            let is_settled = now.since(item.gone.unwrap_or(item.since)) >= rules.after;
            let problem = || item.problem.clone();
            match (item.told, item.gone) {
                _ if !rules.allow(kind) => {}
                (None, None) if kind == AlertKind::Overdue && has_cause => {}
                (None, None) if is_settled && !is_in_window => news.begun.push(problem()),
                (Some(told), None) if item.count() > told && !is_in_window => news.grown.push(problem()),
                (Some(_), Some(gone)) if is_settled => news.ended.push((problem(), gone.since(item.since))),
                (Some(_), None) => news.still.push(problem()),
                _ => {}
            }
        }
        let is_news = !(news.begun.is_empty() && news.grown.is_empty() && news.ended.is_empty());
        is_news.then_some(news)
    }

    /// Takes down what was told.
    pub(super) fn told(&mut self, now: Timestamp, news: &News) {
        for problem in news.begun.iter().chain(&news.grown) {
            let Some(key) = problem.key() else { continue };
            if let Some(item) = self.items.get_mut(&key) {
                item.told = Some(item.count());
            }
            self.told_at.insert(key, now);
        }
        for (problem, _) in &news.ended {
            self.items.retain(|(kind, subject), _| (Some(*kind), subject) != (problem.alert(), &problem.subject));
        }
    }

    /// Whether this is wrong, also if it was not told.
    pub(super) fn has(&self, kind: AlertKind, subject: Option<&str>) -> bool {
        self.items.iter().any(|((of, about), item)| *of == kind && about.as_deref() == subject && item.gone.is_none())
    }

    /// All that is wrong now.
    pub(super) fn wrong(&self) -> Vec<Problem> {
        self.items.values().filter(|item| item.gone.is_none()).map(|item| item.problem.clone()).collect()
    }
}

impl News {
    /// What the log keeps of it.
    pub(super) fn log(&self, at: Timestamp) -> Vec<NewLogEntry> {
        let raised =
            self.begun.iter().chain(&self.grown).map(|Problem { kind, text, subject, count }| LogEvent::AlertRaised {
                kind: (*kind).to_owned(),
                about: subject.clone(),
                text: text.clone(),
                count: *count,
            });
        let cleared = self.ended.iter().map(|(Problem { kind, subject, .. }, _)| LogEvent::AlertCleared {
            kind: (*kind).to_owned(),
            about: subject.clone(),
        });
        raised.chain(cleared).map(|event| NewLogEntry { at, subject: subject_of(&event), event }).collect()
    }

    /// What people read.
    pub(super) fn text(&self) -> String {
        let mut lines: Vec<String> = Vec::new();
        if self.begun.is_empty() && self.grown.is_empty() && self.still.is_empty() {
            lines.push("**All clear.**".to_owned());
        }
        lines.extend(self.begun.iter().chain(&self.grown).map(|problem| format!("**{}**", problem.text)));
        lines.extend(self.ended.iter().map(over));
        if !self.still.is_empty() {
            lines.push("Still wrong:".to_owned());
            lines.extend(self.still.iter().map(|problem| format!("* {}", problem.text)));
        }
        lines.join("\n\n").replace("\n\n* ", "\n* ")
    }
}

fn subject_of(event: &LogEvent) -> Subject {
    match event {
        LogEvent::AlertRaised { kind, about: Some(channel), .. }
        | LogEvent::AlertCleared { kind, about: Some(channel) }
            if kind == "channel" =>
        {
            Subject::channel(&ChannelId::from_stored(channel))
        }
        _ => Subject::default(),
    }
}

/// That a problem is over.
fn over((problem, lasted): &(Problem, Duration)) -> String {
    let subject = problem.subject.as_deref().unwrap_or_default();
    let what = match problem.kind {
        "store" => "The store can write again".to_owned(),
        "disk" => "There is room on the disk again".to_owned(),
        "channel" => format!("{subject} works again"),
        "agent" => format!("The agent {subject} answers again"),
        "overdue" => "No turn is late any more".to_owned(),
        "undeliverable" => "No dead letter is left".to_owned(),
        "schedule" => format!("The schedule {subject} was resumed or removed"),
        _ => "No callback that was given up is left".to_owned(),
    };
    format!("{what}, after {}.", crate::time::age(*lasted))
}

#[cfg(test)]
mod tests;
