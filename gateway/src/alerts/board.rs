//! The problems, the alerts that were sent about them, and the alerts that are due. Pure: the time is an argument.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use rejoinder_config::AlertKind;
use rejoinder_core::{
    ChannelId, Timestamp,
    store::{LogEntry, LogEvent, NewLogEntry, Subject},
};

use crate::problems::Problem;

/// What an alert is about: a kind of problem, and its channel, agent or schedule.
pub(super) type Key = (&'static str, Option<String>);

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
    fn allow(&self, kinds: &BTreeSet<AlertKind>) -> bool {
        kinds.iter().any(|kind| self.at_once.contains(kind) && (!self.is_quiet || self.always.contains(kind)))
    }
}

/// Whether this process can tell if something is still wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CanTell {
    Yes,
    /// It shows with time.
    NotYet,
    /// Another node has it from now on, and does not show it yet.
    Moved,
    /// More is wrong of its kind than is listed.
    Unlisted,
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
    /// Another node tells what else is wrong.
    pub(super) is_part: bool,
}

#[derive(Clone, Debug)]
struct Item {
    problem: Problem,
    /// What people who chose one of these are told of it. It only grows, so that they are told of its end.
    kinds: BTreeSet<AlertKind>,
    since: Timestamp,
    /// Since when each turn or delivery is part of it.
    seen: BTreeMap<i64, Timestamp>,
    /// Since when it is no longer wrong.
    gone: Option<Timestamp>,
    /// What of it was told, if it was told.
    told: Option<Told>,
    /// Whether only an earlier process has seen it.
    is_remembered: bool,
    /// Whether another problem explains all of it now.
    is_explained: bool,
}

/// What of a problem was told, and is still so.
#[derive(Clone, Debug)]
struct Told {
    count: u64,
    ids: BTreeSet<i64>,
}

impl Item {
    fn of(problem: Problem, now: Timestamp) -> Self {
        let (kinds, seen) = (problem.alerts(), problem.ids.iter().map(|id| (*id, now)).collect());
        Self { problem, kinds, since: now, seen, gone: None, told: None, is_remembered: false, is_explained: false }
    }

    /// It is still wrong, or again.
    fn go_on(&mut self, problem: Problem, now: Timestamp) {
        self.kinds.extend(problem.alerts());
        self.seen.retain(|id, _| problem.ids.contains(id));
        for id in &problem.ids {
            self.seen.entry(*id).or_insert(now);
        }
        let count = problem.count.unwrap_or(1);
        if let Some(told) = &mut self.told {
            if self.is_remembered {
                // The earlier process has told the oldest of them.
                let oldest = usize::try_from(told.count).unwrap_or(usize::MAX);
                told.ids = problem.ids.iter().copied().take(oldest).collect();
            }
            told.ids.retain(|id| problem.ids.contains(id));
            // What comes after a part was mended is new.
            told.count = told.count.min(count);
        }
        (self.problem, self.gone, self.is_remembered, self.is_explained) = (problem, None, false, false);
    }

    fn has_lasted(&self, now: Timestamp, after: Duration) -> bool {
        let is_old = |since: &Timestamp| now.since(*since) >= after;
        if self.seen.is_empty() { is_old(&self.since) } else { self.seen.values().any(is_old) }
    }

    /// Whether something of it was not told, and has lasted for `after`.
    fn has_grown(&self, told: &Told, now: Timestamp, after: Duration) -> bool {
        if self.seen.is_empty() {
            return self.problem.count.unwrap_or(1) > told.count;
        }
        self.seen.iter().any(|(id, since)| !told.ids.contains(id) && now.since(*since) >= after)
    }
}

/// The problems, and the alerts that were sent about them.
#[derive(Clone, Debug, Default)]
pub(super) struct Board {
    items: BTreeMap<Key, Item>,
    told_at: BTreeMap<Key, Timestamp>,
}

impl Problem {
    /// What an alert about it is about.
    fn key(&self) -> Key {
        (self.kind, self.subject.clone())
    }

    /// Whether what another problem of this kind and subject is about may be part of this one.
    fn explains(&self, (kind, subject): &Key) -> bool {
        match *kind {
            "overdue" => self.people.is_some(),
            "parked" | "parked_alerts" => subject.as_ref().is_some_and(|channel| self.channels.contains(channel)),
            _ => false,
        }
    }
}

impl Board {
    /// The board of an earlier process, from its entries in the log, oldest first.
    pub(super) fn of_log(entries: &[LogEntry]) -> Self {
        let mut board = Self::default();
        for LogEntry { at, topic, data, .. } in entries {
            let text = |name: &str| data[name].as_str().map(ToOwned::to_owned);
            let kind = text("kind").unwrap_or_default();
            let Some(problem) = Problem::told(&kind, text("text").unwrap_or_default()) else { continue };
            let problem = Problem { subject: text("about"), count: data["count"].as_u64(), ..problem };
            let key = problem.key();
            if topic == "alert.cleared" {
                board.items.remove(&key);
                continue;
            }
            let since = board.items.get(&key).map_or(*at, |item| item.since);
            let told = Told { count: problem.count.unwrap_or(1), ids: BTreeSet::new() };
            let mut item = Item { since, told: Some(told), is_remembered: true, ..Item::of(problem, *at) };
            item.kinds.extend(Problem::alert_of(key.0));
            board.told_at.insert(key.clone(), *at);
            board.items.insert(key, item);
        }
        board
    }

    /// Takes in the present problems. `known` says of a problem that is not among them whether this process can tell
    /// that it is over.
    pub(super) fn look(&mut self, now: Timestamp, problems: Vec<Problem>, known: impl Fn(&Key) -> CanTell) {
        let explaining: Vec<Problem> =
            problems.iter().filter(|it| it.people.or(it.messages).is_some()).cloned().collect();
        let is_told_of = |problem: &Problem| !problem.alerts().is_empty();
        let mut found: BTreeMap<Key, Problem> =
            problems.into_iter().filter(is_told_of).map(|problem| (problem.key(), problem)).collect();
        self.items.retain(|key, item| {
            if let Some(problem) = found.remove(key) {
                item.go_on(problem, now);
                return true;
            }
            match known(key) {
                CanTell::NotYet if item.is_remembered => return true,
                CanTell::Never if item.is_remembered => return false,
                CanTell::Moved if item.told.is_some() => return true,
                CanTell::Unlisted => return item.told.is_some(),
                _ => {}
            }
            item.seen.clear();
            item.is_explained = explaining.iter().any(|problem| problem.explains(key));
            // It is neither told nor over while something else explains it.
            item.gone = if item.is_explained { None } else { item.gone.or(Some(now)) };
            item.told.is_some()
        });
        for (key, problem) in found {
            self.items.insert(key, Item::of(problem, now));
        }
    }

    /// Forgets all problems but those of a kind: another node tells of the others.
    pub(super) fn keep_only(&mut self, kind: &'static str) {
        self.items.retain(|(other, _), _| *other == kind);
    }

    /// What is to be told now, if anything.
    pub(super) fn news(&self, now: Timestamp, rules: &Rules<'_>) -> Option<News> {
        let mut news = News::default();
        for (key, item) in self.items.iter().filter(|(_, item)| !item.is_explained) {
            let is_in_window = self.told_at.get(key).is_some_and(|at| now.since(*at) < rules.window);
            let problem = || item.problem.clone();
            match (&item.told, item.gone) {
                _ if !rules.allow(&item.kinds) => {}
                (None, None) if item.has_lasted(now, rules.after) && !is_in_window => news.begun.push(problem()),
                (Some(told), None) if item.has_grown(told, now, rules.after) && !is_in_window => {
                    news.grown.push(problem());
                }
                (Some(_), Some(gone)) if now.since(gone) >= rules.after => {
                    news.ended.push((problem(), gone.since(item.since)));
                }
                (Some(_), None) => news.still.push(problem()),
                _ => {}
            }
        }
        let is_news = !(news.begun.is_empty() && news.grown.is_empty() && news.ended.is_empty());
        is_news.then_some(news)
    }

    /// Notes a sent alert.
    pub(super) fn told(&mut self, now: Timestamp, news: &News) {
        for problem in news.begun.iter().chain(&news.grown) {
            let key = problem.key();
            if let Some(item) = self.items.get_mut(&key) {
                let ids = problem.ids.iter().filter(|id| item.seen.contains_key(id)).copied().collect();
                item.told = Some(Told { count: problem.count.unwrap_or(1), ids });
            }
            self.told_at.insert(key, now);
        }
        for (problem, _) in &news.ended {
            self.items.remove(&problem.key());
        }
    }

    /// Whether this kind of problem is there, also if it was not told.
    pub(super) fn has(&self, kind: &'static str, subject: Option<&str>) -> bool {
        let key = (kind, subject.map(ToOwned::to_owned));
        self.items.get(&key).is_some_and(|item| item.gone.is_none())
    }

    /// All that is wrong now.
    pub(super) fn wrong(&self) -> Vec<Problem> {
        self.items
            .values()
            .filter(|item| item.gone.is_none() && !item.is_explained)
            .map(|item| item.problem.clone())
            .collect()
    }
}

impl News {
    /// What the log keeps of it.
    pub(super) fn log(&self, at: Timestamp) -> Vec<NewLogEntry> {
        let raised = self.begun.iter().chain(&self.grown).map(|problem| LogEvent::AlertRaised {
            kind: problem.kind.to_owned(),
            about: problem.subject.clone(),
            text: problem.text.clone(),
            count: problem.count,
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
        if !self.is_part && self.begun.is_empty() && self.grown.is_empty() && self.still.is_empty() {
            lines.push("**All clear.**".to_owned());
        }
        lines.extend(self.begun.iter().chain(&self.grown).map(|problem| format!("**{}**", problem.text)));
        lines.extend(self.ended.iter().map(over));
        if !self.still.is_empty() {
            lines.push("Still wrong:".to_owned());
            lines.extend(self.still.iter().map(|problem| format!("* {}", problem.text)));
        }
        let mut news = self.begun.iter().chain(&self.grown);
        match (news.next().map(|problem| problem.link.clone()), news.next()) {
            (Some(Some(link)), None) => lines.push(link),
            (Some(Some(link)), Some(_)) => lines.extend(link.find("/admin").map(|at| format!("{}/admin", &link[..at]))),
            _ => {}
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
    format!("{}, after {}.", problem.over(), crate::time::age(*lasted))
}

#[cfg(test)]
mod property;
#[cfg(test)]
mod tests;
