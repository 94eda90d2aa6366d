//! Checks of the lines of the gateway's own log, and of the errors among them.

use std::time::Duration;

use rejoinder_guard::Timestamp;
use serde_json::Map;

use super::{
    subject::Subject,
    turn::{START, Turn, at, chat, done, said},
};
use crate::{
    model::{
        conversation::ChannelId,
        ids::TurnId,
        line::{BUDGET_SOON, ErrorFilter, ErrorMark, ErrorRecord, LineLevel, LogLine, LogLineFilter, LogLineRecord},
        log::{AuditEntry, Subject as LogSubject},
        settings::Lifetimes,
    },
    ports::store::{
        Store,
        housekeeping::{Cutoffs, Removal},
        transition::{Operation, Transition},
    },
};

const ALL: LogLineFilter =
    LogLineFilter { level: None, channels: None, turn: None, text: None, before: None, limit: 100 };

/// A line about a channel, `seconds` after the start.
fn line(level: LineLevel, message: &str, channel: Option<&str>, seconds: u64) -> LogLine {
    LogLine {
        at: at(seconds),
        level,
        target: "rejoinder_core::worker".to_owned(),
        message: message.to_owned(),
        channel: channel.map(|name| ChannelId::new("test", name)),
        turn_id: None,
        fields: Map::from_iter([("second".to_owned(), seconds.into())]),
    }
}

fn of_turn(line: LogLine, turn: TurnId) -> LogLine {
    LogLine { turn_id: Some(turn), ..line }
}

async fn keep(store: &dyn Store, lines: impl IntoIterator<Item = LogLine>) {
    store.keep_lines(lines.into_iter().collect()).await.expect("lines are kept");
}

async fn lines(store: &dyn Store, filter: LogLineFilter) -> Vec<LogLineRecord> {
    store.log_lines(&filter).await.expect("lines are read")
}

async fn messages(store: &dyn Store, filter: LogLineFilter) -> Vec<String> {
    lines(store, filter).await.into_iter().map(|record| record.line.message).collect()
}

async fn errors(store: &dyn Store, filter: ErrorFilter) -> Vec<ErrorRecord> {
    store.errors(&ErrorFilter { limit: 100, ..filter }).await.expect("errors are read")
}

/// Also over a restart.
pub async fn lines_are_read_back_newest_first(subject: &mut impl Subject) {
    let store = subject.store();
    let first = line(LineLevel::Info, "it is \"back\" – after 100 %", Some("main"), 1);
    let second = of_turn(line(LineLevel::Debug, "a detail", None, 2), TurnId::new(at(1)));
    keep(&*store, [first.clone(), second.clone()]).await;
    drop(store);
    subject.reopen().await;
    let store = subject.store();
    let third = line(LineLevel::Error, "no", Some("main"), 3);
    keep(&*store, [third.clone()]).await;

    let all = lines(&*store, ALL).await;
    assert_eq!(all.iter().map(|record| &record.line).collect::<Vec<_>>(), [&third, &second, &first]);
    let page = lines(&*store, LogLineFilter { before: Some(all[0].id), limit: 1, ..ALL }).await;
    assert_eq!(page, all[1..2]);
}

/// Filters narrow the list, alone and together.
pub async fn lines_can_be_narrowed(subject: &mut impl Subject) {
    use LineLevel::{Debug, Error, Info, Warn};
    let store = subject.store();
    let turn = TurnId::new(at(1));
    let all = [
        line(Error, "e", Some("a"), 1),
        line(Warn, "w", Some("b"), 2),
        of_turn(line(Info, "i", Some("a"), 3), turn),
        of_turn(line(Debug, "100 % d", Some("c"), 4), turn),
        line(Error, "of nothing", None, 5),
    ];
    keep(&*store, all).await;
    let channels = |names: &[&str]| Some(names.iter().map(|name| ChannelId::new("test", name)).collect());
    let found = async |filter| messages(&*store, filter).await;

    assert_eq!(found(LogLineFilter { level: Some(Error), ..ALL }).await, ["of nothing", "e"]);
    assert_eq!(found(LogLineFilter { level: Some(Warn), ..ALL }).await, ["of nothing", "w", "e"]);
    assert_eq!(found(LogLineFilter { level: Some(Info), ..ALL }).await, ["of nothing", "i", "w", "e"]);
    assert_eq!(found(LogLineFilter { level: Some(Debug), ..ALL }).await.len(), 5);
    assert_eq!(found(LogLineFilter { channels: channels(&["a"]), ..ALL }).await, ["i", "e"]);
    assert_eq!(found(LogLineFilter { channels: channels(&["a", "b"]), ..ALL }).await, ["i", "w", "e"]);
    assert_eq!(found(LogLineFilter { channels: channels(&[]), ..ALL }).await.len(), 0);
    assert_eq!(found(LogLineFilter { turn: Some(turn), ..ALL }).await, ["100 % d", "i"]);
    let narrow = LogLineFilter { turn: Some(turn), channels: channels(&["a"]), level: Some(Warn), ..ALL };
    assert_eq!(found(narrow).await.len(), 0);
    assert_eq!(found(LogLineFilter { text: Some("OF".to_owned()), ..ALL }).await, ["of nothing"]);
    assert_eq!(found(LogLineFilter { text: Some("0 %".to_owned()), ..ALL }).await, ["100 % d"]);
    assert_eq!(found(LogLineFilter { text: Some("\"second\":2".to_owned()), ..ALL }).await, ["w"]);
}

/// PostgreSQL cannot store U+0000: it is left out, also when equal lines are counted.
pub async fn a_line_is_kept_without_nul(subject: &mut impl Subject) {
    let store = subject.store();
    let failed = |message: &str, cause: &str| {
        let fields = Map::from_iter([("error".to_owned(), cause.into())]);
        LogLine { fields, ..line(LineLevel::Error, message, None, 1) }
    };
    let clean = failed("it failed", "no route");
    keep(&*store, [failed("it\u{0} failed\u{0}", "no\u{0} route"), clean.clone()]).await;

    let kept: Vec<_> = lines(&*store, ALL).await.into_iter().map(|record| record.line).collect();
    assert_eq!(kept, [clean.clone(), clean]);
    let counts: Vec<_> = errors(&*store, ErrorFilter::default()).await.iter().map(|error| error.count).collect();
    assert_eq!(counts, [2]);
}

/// What is known of a turn need not be said in each line.
pub async fn a_line_about_a_turn_has_its_channel(subject: &mut impl Subject) {
    let store = subject.store();
    let turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let failed = of_turn(line(LineLevel::Warn, "a run failed", None, 1), turn.id);
    keep(&*store, [failed]).await;

    assert_eq!(lines(&*store, ALL).await[0].line.channel, Some(turn.address.channel.clone()));
    assert_eq!(errors(&*store, ErrorFilter::default()).await[0].channel, Some(turn.address.channel));
}

/// Equal are those of the same level, module, message, channel and cause. The one that happened last comes first.
pub async fn equal_errors_are_counted(subject: &mut impl Subject) {
    let store = subject.store();
    let (warn, error) = (LineLevel::Warn, LineLevel::Error);
    let elsewhere = LogLine { target: "rejoinder_core::sweep".to_owned(), ..line(warn, "x", Some("a"), 5) };
    let first =
        [line(warn, "x", Some("a"), 1), line(LineLevel::Info, "x", Some("a"), 2), line(error, "x", Some("a"), 3)];
    keep(&*store, first).await;
    keep(&*store, [line(warn, "x", None, 4), elsewhere, line(warn, "x", Some("a"), 6)]).await;

    let found = errors(&*store, ErrorFilter::default()).await;
    let brief = |record: &ErrorRecord| (record.level, record.count, record.first_at, record.last_at);
    let once = |level, seconds: u64| (level, 1, at(seconds), at(seconds));
    let expected = [(warn, 2, at(1), at(6)), once(warn, 5), once(warn, 4), once(error, 3)];
    assert_eq!(found.iter().map(brief).collect::<Vec<_>>(), expected);
    assert_eq!(found[0].fields["second"], 6);
    let of_a = Some(vec![ChannelId::new("test", "a")]);
    assert_eq!(errors(&*store, ErrorFilter { channels: of_a, ..ErrorFilter::default() }).await.len(), 3);
    let rest = errors(&*store, ErrorFilter { before: Some(found[1].last_line), ..ErrorFilter::default() }).await;
    assert_eq!(rest, found[2..]);
}

/// Also over a restart. One that was muted is kept without its lines; a panic is news each time, and so is an agent's budget.
pub async fn what_operators_say_of_errors_is_kept(subject: &mut impl Subject) {
    let store = subject.store();
    let failed = |cause: &str, seconds| {
        let mut failed = line(LineLevel::Error, "it failed", None, seconds);
        failed.fields.insert("error".to_owned(), cause.into());
        failed
    };
    let panicked = |seconds| line(LineLevel::Error, "a panic", None, seconds);
    let spent = |seconds| line(LineLevel::Error, BUDGET_SOON, None, seconds);
    keep(&*store, [failed("403 Forbidden", 1), failed("400 Bad Request", 2), panicked(3), spent(4)]).await;
    let news = async |store: &dyn Store| {
        let filter = ErrorFilter { news_since: Some(START), ..ErrorFilter::default() };
        let news = errors(store, filter).await;
        news.into_iter().map(|error| (error.id, error.count)).collect::<Vec<_>>()
    };
    let found = news(&*store).await;
    assert_eq!(found.len(), 4, "two causes are two errors: {found:?}");
    let [(budget, _), (panic, _), (bad, _), (forbidden, _)] = found[..] else { panic!("{found:?}") };
    let said = |id: i64, mark| {
        let entry = AuditEntry {
            by: "ada".to_owned(),
            action: "mark".to_owned(),
            target: id.to_string(),
            reason: None,
            not_reached: Vec::new(),
        };
        let operation = Operation { at: at(9), entry, subject: LogSubject::default(), answer: None };
        Transition { error: Some((id, mark)), operation: Some(operation), ..Transition::default() }
    };
    done(&*store, said(budget, ErrorMark::Acknowledged)).await;
    done(&*store, said(panic, ErrorMark::Acknowledged)).await;
    done(&*store, said(bad, ErrorMark::Acknowledged)).await;
    done(&*store, said(forbidden, ErrorMark::Muted)).await;
    drop(store);
    subject.reopen().await;
    let store = subject.store();
    assert_eq!(news(&*store).await, []);

    keep(&*store, [failed("403 Forbidden", 4), failed("400 Bad Request", 5), panicked(6), spent(7)]).await;
    assert_eq!(news(&*store).await, [(budget, 2), (panic, 2)]);
    let last = lines(&*store, ALL).await[0].id;
    store.remove(Removal::Lines { through: last, lines: 1 }).await.expect("rows are removed");
    let left = errors(&*store, ErrorFilter::default()).await;
    assert_eq!(left.iter().map(|error| (error.id, error.is_muted)).collect::<Vec<_>>(), [(forbidden, true)]);
    keep(&*store, [failed("403 Forbidden", 7)]).await;
    assert_eq!(news(&*store).await, []);
}

/// An error goes with the last of its lines. Numbers of lines are not used again.
pub async fn lines_are_removed_by_their_age(subject: &mut impl Subject) {
    const NEVER: Cutoffs =
        Cutoffs { turns: START, dead_letters: START, payloads: START, keys: START, lines: START, voice: START };
    let store = subject.store();
    let next = async |keep: Option<Duration>| {
        let lifetimes = Lifetimes { lines: keep, ..Lifetimes::default() };
        store.next_expiry(&lifetimes).await.expect("rows are read")
    };
    let hour = Duration::from_hours(1);
    assert_eq!(next(Some(hour)).await, None::<Timestamp>);
    let (old, lasting) = (line(LineLevel::Error, "old", None, 1), line(LineLevel::Error, "lasting", None, 2));
    keep(&*store, [old, lasting, line(LineLevel::Info, "i", None, 3)]).await;
    keep(&*store, [line(LineLevel::Error, "lasting", None, 50)]).await;
    let last = lines(&*store, ALL).await[0].id;
    assert_eq!((next(None).await, next(Some(hour)).await), (None, Some(at(1) + hour)));
    let cutoffs = Cutoffs { lines: at(50), ..NEVER };
    assert_eq!(store.stats(&cutoffs).await.expect("stats are read").expired.lines, 3);

    let mut steps = Vec::new();
    while let Some(removal) = store.expired(&cutoffs, 2).await.expect("expired rows are read") {
        let Removal::Lines { lines, .. } = &removal else { panic!("only lines are past their time: {removal:?}") };
        steps.push(*lines);
        store.remove(removal).await.expect("rows are removed");
    }

    assert_eq!(steps, [2, 1]);
    assert_eq!(messages(&*store, ALL).await, ["lasting"]);
    let [error] = &errors(&*store, ErrorFilter::default()).await[..] else { panic!("one error is left") };
    assert_eq!((&*error.message, error.count), ("lasting", 2));
    store.remove(Removal::Lines { through: last, lines: 1 }).await.expect("rows are removed");
    assert_eq!(errors(&*store, ErrorFilter::default()).await, []);
    keep(&*store, [line(LineLevel::Info, "new", None, 60)]).await;
    assert!(lines(&*store, ALL).await[0].id > last);
}
