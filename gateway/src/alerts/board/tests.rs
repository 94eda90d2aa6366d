//! What is told, and when.

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
    Problem {
        subject: Some("telegram.main".to_owned()),
        text: "It is down.".to_owned(),
        ..Problem::new("channel", String::new())
    }
}

fn counted(kind: &'static str, count: u64) -> Problem {
    of(kind, (1..=i64::try_from(count).unwrap()).collect())
}

fn of(kind: &'static str, ids: BTreeSet<i64>) -> Problem {
    let count = ids.len() as u64;
    Problem { count: Some(count), ids, text: format!("{count} of {kind}."), ..Problem::new(kind, String::new()) }
}

/// Looks once a second from `from` to `until`, tells what there is to tell, and returns that.
fn pass(board: &mut Board, rules: &Rules<'_>, (from, until): (i64, i64), problems: &[Problem]) -> Vec<(i64, News)> {
    let mut all = Vec::new();
    for second in from..until {
        board.look(at(second), problems.to_vec(), |_| CanTell::Yes);
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

    let waited_for = Problem { people: Some(200), ..channel() };
    let mut told = pass(&mut board, &RULES, (0, 5), &[channel()]);
    told.extend(pass(&mut board, &RULES, (5, 60), std::slice::from_ref(&waited_for)));
    told.extend(pass(&mut board, &RULES, (60, 63), &[counted("overdue", 50)]));
    told.extend(pass(&mut board, &RULES, (63, 200), &[]));

    let begun = News { begun: vec![waited_for.clone()], ..News::default() };
    let ended = News { ended: vec![(waited_for, Duration::from_mins(1))], ..News::default() };
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

/// The channel works at the other node, or it is down there as well.
#[rstest::rstest]
#[case::and_is_down_there(vec![channel()], &[])]
#[case::and_works_there(Vec::new(), &[70])]
fn a_channel_that_goes_to_another_node_is_not_over_at_once(#[case] then: Vec<Problem>, #[case] ended_at: &[i64]) {
    let mut board = Board::default();
    assert_eq!(pass(&mut board, &RULES, (0, 20), &[channel()]).len(), 1);

    for second in 20..60 {
        board.look(at(second), Vec::new(), |_| CanTell::Moved);
        assert_eq!(board.news(at(second), &RULES), None);
    }

    let told = pass(&mut board, &RULES, (60, 100), &then);
    assert_eq!(
        told.iter().map(|(at, news)| (*at, news.ended.len())).collect::<Vec<_>>(),
        ended_at.iter().map(|at| (*at, 1)).collect::<Vec<_>>()
    );
}

#[test]
fn what_was_not_told_ends_when_it_moves() {
    let mut board = Board::default();
    board.look(at(0), vec![channel()], |_| CanTell::Yes);

    board.look(at(1), Vec::new(), |_| CanTell::Moved);

    assert_eq!(board.wrong(), []);
}

/// The housekeeper says whether all is well.
#[test]
fn a_node_that_follows_only_the_store_gives_no_all_clear_for_the_rest() {
    let store = Problem { subject: Some("two".to_owned()), ..Problem::new("store", String::new()) };
    let mut board = Board::default();
    pass(&mut board, &RULES, (0, 20), &[store.clone(), channel()]);

    board.keep_only("store");

    assert_eq!(board.wrong(), [store]);
    let (_, news) = pass(&mut board, &RULES, (20, 40), &[]).remove(0);
    let text = News { is_part: true, ..news }.text();
    assert_eq!(text, "The store can write again at the node two, after 20 s.");
}

#[test]
fn an_error_that_falls_off_the_list_is_not_over() {
    let rules = Rules { at_once: &[AlertKind::Error], ..RULES };
    let error = Problem { subject: Some("1".to_owned()), ..Problem::new("error", "A new error".to_owned()) };
    let mut board = Board::default();
    assert_eq!(pass(&mut board, &rules, (0, 20), &[error]).len(), 1);

    for second in 20..60 {
        board.look(at(second), Vec::new(), |_| CanTell::Unlisted);
        assert_eq!(board.news(at(second), &rules), None);
    }

    let told = pass(&mut board, &rules, (60, 80), &[]);
    assert_eq!(told.into_iter().map(|(at, news)| (at, news.ended.len())).collect::<Vec<_>>(), [(70, 1)]);
}

#[test]
fn turns_that_are_late_for_no_other_reason_are_told() {
    let mut board = Board::default();

    let told = pass(&mut board, &RULES, (0, 20), &[counted("overdue", 3)]);

    assert_eq!(told.len(), 1);
}

#[test]
fn what_fails_after_a_part_was_mended_is_told() {
    let mut board = Board::default();

    let mut told = pass(&mut board, &RULES, (0, 20), &[of("undeliverable", (1..=5).collect())]);
    told.extend(pass(&mut board, &RULES, (20, 700), &[of("undeliverable", (5..=5).collect())]));
    told.extend(pass(&mut board, &RULES, (700, 720), &[of("undeliverable", (5..=8).collect())]));

    assert_eq!(told.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [10, 710]);
}

#[test]
fn late_turns_that_a_channel_explains_from_now_on_are_neither_told_nor_over() {
    let mut board = Board::default();
    let waited_for = Problem { people: Some(3), ..channel() };

    let mut told = pass(&mut board, &RULES, (0, 20), &[counted("overdue", 3)]);
    told.extend(pass(&mut board, &RULES, (20, 60), std::slice::from_ref(&waited_for)));
    told.extend(pass(&mut board, &RULES, (60, 100), &[]));

    let begun = News { begun: vec![waited_for.clone()], ..News::default() };
    assert_eq!(told[1], (30, begun));
    let ended = vec![(waited_for, Duration::from_secs(40)), (counted("overdue", 3), Duration::from_mins(1))];
    assert_eq!(told[2..], [(70, News { ended, ..News::default() })]);
}

#[test]
fn in_quiet_hours_only_the_worst_is_told_and_the_rest_afterwards() {
    let (mut board, quiet) = (Board::default(), Rules { is_quiet: true, ..RULES });
    let store = Problem { text: "It cannot write.".to_owned(), ..Problem::new("store", String::new()) };

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
            if *kind == "channel" { CanTell::NotYet } else { CanTell::Yes }
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
    let [left] = &Board::of_log(&log.collect::<Vec<_>>()).wrong()[..] else { panic!("one is left") };
    assert_eq!((left.kind, left.count), ("undeliverable", Some(3)));
}

#[test]
fn what_nobody_is_told_of_any_more_is_forgotten_and_hides_nothing() {
    let told = News { begun: vec![channel()], ..News::default() };
    let log: Vec<LogEntry> = told.log(at(10)).into_iter().zip(1..).map(stored).collect();
    let mut board = Board::of_log(&log);

    board.look(at(20), vec![counted("overdue", 3)], |_| CanTell::NotYet);
    board.look(at(40), vec![counted("overdue", 3)], |_| CanTell::NotYet);
    let news = board.news(at(40), &RULES).unwrap();
    assert_eq!((news.begun, news.still), (vec![counted("overdue", 3)], vec![channel()]));
    board.look(at(41), Vec::new(), |_| CanTell::Never);
    assert_eq!(board.news(at(60), &RULES), None);
}

fn stored((entry, seq): (NewLogEntry, i64)) -> LogEntry {
    let data = serde_json::to_value(&entry.event).unwrap();
    LogEntry { seq, at: entry.at, topic: entry.event.topic().into_owned(), subject: entry.subject, data }
}

#[test]
fn what_could_not_be_told_is_told_later() {
    let mut board = Board::default();
    board.look(at(0), vec![channel()], |_| CanTell::Yes);
    board.look(at(10), vec![channel()], |_| CanTell::Yes);

    assert!(board.news(at(10), &RULES).is_some());
    assert!(board.news(at(11), &RULES).is_some());
}
