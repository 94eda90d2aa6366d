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
mod tests {
    use super::*;

    const ALL: [AlertKind; 4] = [AlertKind::Store, AlertKind::Channel, AlertKind::Overdue, AlertKind::Undeliverable];

    const RULES: Rules<'static> = Rules {
        at_once: &ALL,
        always: &[AlertKind::Store],
        is_quiet: false,
        after: Duration::from_secs(10),
        window: Duration::from_mins(10),
    };

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    fn channel() -> Problem {
        Problem { subject: Some("telegram.main".to_owned()), ..Problem::new("channel", "It is down.".to_owned()) }
    }

    fn counted(kind: &'static str, count: u64) -> Problem {
        Problem { count: Some(count), ..Problem::new(kind, format!("{count} of {kind}.")) }
    }

    /// Looks once a second from `from` to `until`, tells what there is to tell, and returns that.
    fn pass(board: &mut Board, rules: &Rules<'_>, (from, until): (i64, i64), problems: &[Problem]) -> Vec<(i64, News)> {
        let mut all = Vec::new();
        for second in from..until {
            board.look(at(second), problems.to_vec(), |_| Known::Yes);
            if let Some(news) = board.news(at(second), rules) {
                board.told(at(second), &news);
                all.push((second, news));
            }
        }
        all
    }

    #[test]
    fn an_outage_under_many_turns_is_one_alert_and_one_all_clear() {
        let mut board = Board::default();

        let mut told = pass(&mut board, &RULES, (0, 5), &[channel()]);
        told.extend(pass(&mut board, &RULES, (5, 60), &[channel(), counted("overdue", 200)]));
        told.extend(pass(&mut board, &RULES, (60, 63), &[counted("overdue", 50)]));
        told.extend(pass(&mut board, &RULES, (63, 200), &[]));

        let begun = News { begun: vec![channel()], ..News::default() };
        let ended = News { ended: vec![(channel(), Duration::from_mins(1))], ..News::default() };
        assert_eq!(told, [(10, begun), (70, ended.clone())]);
        assert_eq!(ended.text(), "**All clear.**\n\ntelegram.main works again, after 1 min.");
    }

    #[test]
    fn what_is_over_at_once_is_not_told() {
        let mut board = Board::default();

        let mut told = pass(&mut board, &RULES, (0, 9), &[channel()]);
        told.extend(pass(&mut board, &RULES, (9, 100), &[]));

        assert_eq!(told, []);
    }

    #[test]
    fn what_comes_back_is_told_when_the_window_ends() {
        let mut board = Board::default();

        let mut told = pass(&mut board, &RULES, (0, 20), &[channel()]);
        told.extend(pass(&mut board, &RULES, (20, 40), &[]));
        told.extend(pass(&mut board, &RULES, (40, 700), &[channel()]));

        assert_eq!(told.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [10, 30, 610]);
    }

    #[test]
    fn more_of_the_same_are_told_once_in_a_window() {
        let mut board = Board::default();

        let mut told = pass(&mut board, &RULES, (0, 20), &[counted("undeliverable", 1)]);
        for count in 2..=500 {
            let second = i64::try_from(count).unwrap() + 18;
            told.extend(pass(&mut board, &RULES, (second, second + 1), &[counted("undeliverable", count)]));
        }
        told.extend(pass(&mut board, &RULES, (520, 700), &[counted("undeliverable", 500)]));

        let grown = News { grown: vec![counted("undeliverable", 500)], ..News::default() };
        assert_eq!(told[1..], [(610, grown)]);
    }

    #[test]
    fn turns_that_are_late_for_no_other_reason_are_told() {
        let mut board = Board::default();

        let told = pass(&mut board, &RULES, (0, 20), &[counted("overdue", 3)]);

        assert_eq!(told.len(), 1);
    }

    #[test]
    fn in_quiet_hours_only_the_worst_is_told_and_the_rest_afterwards() {
        let (mut board, quiet) = (Board::default(), Rules { is_quiet: true, ..RULES });
        let store = Problem::new("store", "It cannot write.".to_owned());

        let told = pass(&mut board, &quiet, (0, 60), &[channel(), store.clone()]);
        let later = pass(&mut board, &RULES, (60, 100), &[channel(), store.clone()]);

        assert_eq!(told, [(10, News { begun: vec![store.clone()], ..News::default() })]);
        assert_eq!(later, [(60, News { begun: vec![channel()], still: vec![store], ..News::default() })]);
    }

    #[test]
    fn a_restart_tells_nothing_twice_and_gives_the_all_clear() {
        let mut board = Board::default();
        let told = pass(&mut board, &RULES, (0, 20), &[channel(), counted("undeliverable", 3)]);
        let log: Vec<LogEntry> = told[0].1.log(at(10)).into_iter().zip(1..).map(stored).collect();

        let mut board = Board::of_log(&log);
        for second in 30..60 {
            board.look(at(second), vec![counted("undeliverable", 3)], |(kind, _)| {
                if *kind == AlertKind::Channel { Known::NotYet } else { Known::Yes }
            });
            assert_eq!(board.news(at(second), &RULES), None);
        }
        let mut told = pass(&mut board, &RULES, (60, 61), &[channel(), counted("undeliverable", 3)]);
        told.extend(pass(&mut board, &RULES, (61, 100), &[channel(), counted("undeliverable", 3)]));
        told.extend(pass(&mut board, &RULES, (100, 200), &[counted("undeliverable", 3)]));

        let still = vec![counted("undeliverable", 3)];
        let ended = vec![(channel(), Duration::from_secs(90))];
        assert_eq!(told, [(110, News { ended, still, ..News::default() })]);
        let log = log.into_iter().chain(told[0].1.log(at(110)).into_iter().zip(3..).map(stored));
        assert_eq!(Board::of_log(&log.collect::<Vec<_>>()).wrong(), [counted("undeliverable", 3)]);
    }

    #[test]
    fn what_nobody_is_told_of_any_more_is_forgotten_and_hides_nothing() {
        let told = News { begun: vec![channel()], ..News::default() };
        let log: Vec<LogEntry> = told.log(at(10)).into_iter().zip(1..).map(stored).collect();
        let mut board = Board::of_log(&log);

        board.look(at(20), vec![counted("overdue", 3)], |_| Known::NotYet);
        board.look(at(40), vec![counted("overdue", 3)], |_| Known::NotYet);
        let news = board.news(at(40), &RULES).unwrap();
        assert_eq!((news.begun, news.still), (vec![counted("overdue", 3)], vec![channel()]));
        board.look(at(41), Vec::new(), |_| Known::Never);
        assert_eq!(board.news(at(60), &RULES), None);
    }

    fn stored((entry, seq): (NewLogEntry, i64)) -> LogEntry {
        let data = serde_json::to_value(&entry.event).unwrap();
        LogEntry { seq, at: entry.at, topic: entry.event.topic().into_owned(), subject: entry.subject, data }
    }

    #[test]
    fn what_could_not_be_told_is_told_later() {
        let mut board = Board::default();
        board.look(at(0), vec![channel()], |_| Known::Yes);
        board.look(at(10), vec![channel()], |_| Known::Yes);

        assert!(board.news(at(10), &RULES).is_some());
        assert!(board.news(at(11), &RULES).is_some());
    }
}
