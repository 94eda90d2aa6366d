//! Checks of the search in what was said.

use super::{
    subject::Subject,
    turn::{Turn, accept_one, at, chat, done, new_session, new_turn, said},
};
use crate::{
    model::{
        agent::{HistoryLine, LineState, Speaker},
        conversation::{ChannelId, ConversationRef},
        event::{Amends, InboundEvent, Sender},
        ids::SessionId,
        log::{LogEvent, LogFilter, LogSeq, NewLogEntry},
        search::SearchQuery,
        session::SessionChange,
        turn::Handler,
    },
    ports::store::{
        Store,
        accept::{NewEvent, Stored},
        housekeeping::Removal,
        list::{FoundLine, SearchFilter},
        transition::{TranscriptLine, Transition},
    },
};

fn query(typed: &str) -> SearchFilter {
    let query = SearchQuery::parse(typed).expect("it has a word");
    SearchFilter { query, channels: None, conversations: None, session: None, before: None, limit: 100 }
}

async fn search(store: &dyn Store, filter: &SearchFilter) -> Vec<FoundLine> {
    store.search(filter).await.expect("lines are searched")
}

/// The lines that are found, by the beginnings of their texts.
async fn found(store: &dyn Store, typed: &str) -> Vec<String> {
    search(store, &query(typed)).await.into_iter().map(|line| line.excerpt).collect()
}

/// The end of the log. Some stores tell of it a moment after a commit, but not after a reader has seen more.
async fn end_of_log(store: &dyn Store) -> LogSeq {
    store.log(&LogFilter { limit: 1, ..LogFilter::default() }).await.expect("the log is read");
    *store.logged().borrow()
}

/// Indexes everything, in steps.
async fn index(store: &dyn Store, limit: u32) {
    let last = end_of_log(store).await;
    for _ in 0..100 {
        if store.index(limit).await.expect("lines are indexed") >= last {
            return;
        }
    }
    panic!("indexing never ends");
}

fn message(address: &ConversationRef, key: &str, text: &str) -> InboundEvent {
    InboundEvent { text: text.to_owned(), ..said(address, key) }
}

fn entry(turn: &Turn, event: LogEvent) -> NewLogEntry {
    let subject = crate::model::log::Subject {
        turn_id: Some(turn.id),
        conversation_id: Some(turn.conversation),
        channel: Some(turn.address.channel.clone()),
    };
    NewLogEntry { at: at(3), subject, event }
}

fn settled() -> LogEvent {
    LogEvent::TurnSettled { signal: "reply", fallback: None, waited_ms: Some(1), deferred: false }
}

/// Stores a line of ours, and that something happened.
async fn says(store: &dyn Store, turn: &Turn, speaker: Speaker, text: &str, event: LogEvent) {
    let line = HistoryLine {
        spoken: false,
        speaker,
        author: None,
        forwarded: None,
        text: text.to_owned(),
        at: at(2),
        state: LineState::Seen,
    };
    let transcript = vec![TranscriptLine {
        session: turn.session,
        turn: turn.id,
        seq: turn.seq,
        claim: u32::from(speaker != Speaker::Person),
        line,
    }];
    done(store, Transition { transcript, log: vec![entry(turn, event)], ..Transition::default() }).await;
}

/// A turn that ended with an answer.
async fn answered(store: &dyn Store, event: InboundEvent, answer: &str) -> Turn {
    let mut turn = Turn::accept(store, event).await;
    let delivery = turn.answer(store, answer).await;
    turn.settle(store, delivery).await;
    says(store, &turn, Speaker::Agent, answer, settled()).await;
    turn
}

/// Lines are found by all of their words, newest first, once they are indexed.
pub async fn what_was_said_is_found_newest_first(subject: &mut impl Subject) {
    let store = subject.store();
    let sender = Sender { name: Some("Ann".to_owned()), ..said(&chat("a"), "1").sender };
    let asked = InboundEvent { sender, ..message(&chat("a"), "1", "When does the night train to Zürich leave?") };
    let first = answered(&*store, asked, "The train leaves at 22:05, before midnight.").await;
    let second = answered(&*store, message(&chat("b"), "2", "A train at night!"), "Which one?").await;
    let gateway = Turn::accept(&*store, message(&chat("b"), "3", "/help")).await;
    assert_eq!(found(&*store, "train").await, [""; 0]);

    index(&*store, 100).await;

    let all = search(&*store, &query("train")).await;
    let seen: Vec<_> = all.iter().map(|line| (line.turn, line.speaker)).collect();
    assert_eq!(seen, [(second.id, Speaker::Person), (first.id, Speaker::Agent), (first.id, Speaker::Person)]);
    assert!(all.is_sorted_by_key(|line| -line.position), "{all:?}");
    let expected = FoundLine {
        position: all[2].position,
        turn: first.id,
        conversation_id: first.conversation,
        conversation: chat("a"),
        at: said(&chat("a"), "1").received_at,
        speaker: Speaker::Person,
        name: Some("Ann".to_owned()),
        excerpt: "When does the night train to Zürich leave?".to_owned(),
    };
    assert_eq!(all[2], expected);
    assert_eq!((all[1].name.as_deref(), all[1].at), (Some("main"), at(2)));
    for (typed, lines) in [
        ("trai", 3),
        ("trai night", 0),
        ("night trai", 2),
        ("LEAVE zurich", 1),
        ("\"night train\"", 1),
        ("\"train night\"", 0),
        ("\"nigh\"", 0),
        ("mid", 1),
        ("22:05", 1),
        ("bicycle", 0),
        ("train bicycle", 0),
        // It has not ended.
        ("help", 0),
    ] {
        assert_eq!(found(&*store, typed).await.len(), lines, "{typed}");
    }
    says(&*store, &gateway, Speaker::Gateway, "Say what you like.", settled()).await;
    index(&*store, 100).await;
    assert_eq!(found(&*store, "like").await, [""; 0], "it still has not ended");
}

/// Only lines of these channels, or of these conversations.
pub async fn a_search_can_be_narrowed(subject: &mut impl Subject) {
    let store = subject.store();
    let other = ConversationRef::new(ChannelId::new("test", "other"), "a");
    let here = answered(&*store, message(&chat("a"), "1", "a train"), "yes").await;
    let next = answered(&*store, message(&chat("b"), "2", "a train"), "yes").await;
    let there = answered(&*store, message(&other, "3", "a train"), "yes").await;
    index(&*store, 100).await;
    let turns =
        async |filter: SearchFilter| search(&*store, &filter).await.iter().map(|line| line.turn).collect::<Vec<_>>();
    let all = || query("train");

    assert_eq!(turns(all()).await, [there.id, next.id, here.id]);
    let of = |channels: &[&ConversationRef]| Some(channels.iter().map(|address| address.channel.clone()).collect());
    assert_eq!(turns(SearchFilter { channels: of(&[&other]), ..all() }).await, [there.id]);
    assert_eq!(turns(SearchFilter { channels: of(&[&other, &chat("a")]), ..all() }).await.len(), 3);
    assert_eq!(turns(SearchFilter { channels: of(&[]), ..all() }).await, []);
    let conversations = |of: &[&Turn]| Some(of.iter().map(|turn| turn.conversation).collect());
    assert_eq!(turns(SearchFilter { conversations: conversations(&[&next]), ..all() }).await, [next.id]);
    let two = conversations(&[&there, &here]);
    assert_eq!(turns(SearchFilter { conversations: two.clone(), ..all() }).await, [there.id, here.id]);
    assert_eq!(turns(SearchFilter { conversations: two, channels: of(&[&other]), ..all() }).await, [there.id]);
    assert_eq!(turns(SearchFilter { conversations: conversations(&[]), ..all() }).await, []);
}

/// What an agent may search: no other session of the conversation, no command, and nothing that was taken back.
pub async fn a_search_can_be_narrowed_to_the_history_of_a_session(subject: &mut impl Subject) {
    let store = subject.store();
    let kept = answered(&*store, message(&chat("a"), "1", "a train"), "which train?").await;
    let back = answered(&*store, message(&chat("a"), "2", "the train back"), "yes").await;
    let mut command = new_turn(message(&chat("a"), "3", "/link train"));
    command.turn.as_mut().expect("it is a turn").handler = Handler::Gateway("link".into());
    let mut command = Turn::of(&*store, command).await;
    let code = command.answer(&*store, "your code").await;
    command.settle(&*store, code).await;
    says(&*store, &command, Speaker::Gateway, "your code for the train", settled()).await;
    let next = SessionId::new(at(4));
    let sessions = vec![
        new_session(next, kept.conversation, 4),
        SessionChange::LeaveOut { session: kept.session, turns: vec![back.id] },
    ];
    done(&*store, Transition { sessions, ..Transition::default() }).await;
    let other = answered(&*store, message(&chat("a"), "4", "another train"), "no").await;
    index(&*store, 100).await;
    let turns = async |session| {
        let filter =
            SearchFilter { session: Some(session), conversations: Some(vec![kept.conversation]), ..query("train") };
        search(&*store, &filter).await.iter().map(|line| line.turn).collect::<Vec<_>>()
    };

    assert_eq!(other.session, next);
    assert_eq!(turns(kept.session).await, [kept.id, kept.id]);
    assert_eq!(turns(next).await, [other.id]);
}

/// A page begins after the last line of the one before.
pub async fn a_search_goes_on_at_its_cursor(subject: &mut impl Subject) {
    let store = subject.store();
    for number in 0..4 {
        let asked = message(&chat("a"), &number.to_string(), &format!("train {number}?"));
        answered(&*store, asked, &format!("train {number}!")).await;
    }
    index(&*store, 3).await;

    let (mut before, mut pages) = (None, Vec::new());
    loop {
        let page = search(&*store, &SearchFilter { before, limit: 3, ..query("train") }).await;
        before = page.last().map(|line| line.position);
        if page.is_empty() {
            break;
        }
        pages.push(page.into_iter().map(|line| line.excerpt).collect::<Vec<_>>());
    }

    assert_eq!(
        pages,
        [
            vec!["train 3!", "train 3?", "train 2!"],
            vec!["train 2?", "train 1!", "train 1?"],
            vec!["train 0!", "train 0?"]
        ]
    );
}

/// What was removed, edited or replaced is not found any more.
pub async fn a_search_finds_lines_as_they_are(subject: &mut impl Subject) {
    let store = subject.store();
    let removed = answered(&*store, message(&chat("a"), "1", "a train"), "which train?").await;
    let mut edited = Turn::accept(&*store, message(&chat("b"), "2", "a bicicle")).await;
    let edit = InboundEvent { revision: 1, amends: Some(Amends::Replaces), ..message(&chat("b"), "2", "a bicycle") };
    let edit = NewEvent { turn: None, ..new_turn(edit) };
    assert_eq!(accept_one(&*store, edit).await, Stored::Amended { turn: edited.id });
    edited.version += 1;
    let delivery = edited.answer(&*store, "Sorry.").await;
    edited.settle(&*store, delivery).await;
    says(&*store, &edited, Speaker::Agent, "one moment", settled()).await;
    index(&*store, 100).await;
    assert_eq!(found(&*store, "train").await, ["which train?", "a train"]);
    assert_eq!(
        (found(&*store, "bicycle").await, found(&*store, "bicicle").await),
        (vec!["a bicycle".to_owned()], vec![])
    );

    store.remove(Removal::Turns(vec![removed.id])).await.expect("rows are removed");
    let claimed = LogEvent::TurnClaimed { claim: 2, signal: crate::SignalKind::Reply, fallback: None };
    says(&*store, &edited, Speaker::Agent, "It is blue.", claimed).await;
    index(&*store, 100).await;

    assert_eq!(found(&*store, "train").await, [""; 0]);
    assert_eq!(found(&*store, "moment").await, [""; 0]);
    assert_eq!(found(&*store, "blue").await, ["It is blue."]);
    assert_eq!(found(&*store, "bicycle").await, ["a bicycle"]);
}

/// In scripts without spaces, any part of a sentence is found.
pub async fn a_search_finds_parts_of_a_sentence_without_spaces(subject: &mut impl Subject) {
    let store = subject.store();
    let texts = [("1", "昨日は東京タワーへ行きました"), ("2", "วันนี้อากาศดีมาก"), ("3", "iPhoneを買った")];
    for (key, text) in texts {
        answered(&*store, message(&chat("a"), key, text), "👍").await;
    }
    index(&*store, 100).await;

    for (typed, text) in
        [("東京", 0), ("タワー", 0), ("東京 行き", 0), ("อากาศ", 1), ("iphone", 2), ("買っ", 2), ("iph", 2)]
    {
        assert_eq!(found(&*store, typed).await, [texts[text].1], "{typed}");
    }
    for typed in ["京東", "明日", "\"iph\""] {
        assert_eq!(found(&*store, typed).await, [""; 0], "{typed}");
    }
}

/// Whatever is typed is words, and no syntax.
pub async fn whatever_is_typed_is_searched_for(subject: &mut impl Subject) {
    let store = subject.store();
    answered(&*store, message(&chat("a"), "1", "a AND (b) OR NOT place: x* ^y NEAR(z)"), "ok").await;
    index(&*store, 100).await;

    for typed in ["AND", "(b", "OR NOT", "place:", "x*", "^y", "NEAR(z)", "a:b -", "\"x* ^y", "{y} +z"] {
        let lines = usize::from(typed != "a:b -");
        assert_eq!(found(&*store, typed).await.len(), lines, "{typed}");
    }
    for typed in ["ั", "Ⓐ", "① ั x", "a\u{0}", "'", "a ั", "\u{E000}a", "ß\u{301}"] {
        if let Some(query) = SearchQuery::parse(typed) {
            search(&*store, &SearchFilter { query, ..self::query("a") }).await;
        }
    }
}

/// Indexing goes on where it was, also after a restart.
pub async fn indexing_goes_on_where_it_was(subject: &mut impl Subject) {
    let store = subject.store();
    for number in 0..4 {
        answered(&*store, message(&chat("a"), &number.to_string(), &format!("train {number}")), "yes").await;
    }
    let filter = LogFilter { limit: 5, ..LogFilter::default() };
    let log: Vec<_> = store.log(&filter).await.expect("the log is read").iter().map(|entry| entry.seq).collect();
    assert_eq!(store.index(3).await.expect("lines are indexed"), log[2]);
    assert!(found(&*store, "train").await.len() < 4);
    drop(store);

    subject.reopen().await;
    let store = subject.store();
    assert_eq!(store.index(2).await.expect("lines are indexed"), log[4]);
    index(&*store, 2).await;

    assert_eq!(found(&*store, "train").await, ["train 3", "train 2", "train 1", "train 0"]);
    let last = end_of_log(&*store).await;
    assert!(store.index(10).await.expect("lines are indexed") >= last, "there is nothing left");
    assert_eq!(end_of_log(&*store).await, last);
}

/// If entries are removed unread while all turns are indexed, that goes on to its end, and then begins anew.
pub async fn indexing_of_all_turns_ends_while_entries_are_removed(subject: &mut impl Subject) {
    let store = subject.store();
    let remove = async || {
        let event = LogEvent::ChannelUp;
        let up = NewLogEntry { at: at(3), subject: crate::model::log::Subject::default(), event };
        done(&*store, Transition { log: vec![up.clone(), up], ..Transition::default() }).await;
        let through = end_of_log(&*store).await;
        store.remove(Removal::Log { through, entries: 1 }).await.expect("entries are removed");
    };
    let mut open = Turn::accept(&*store, message(&chat("b"), "open", "train open")).await;
    for number in 0..4 {
        answered(&*store, message(&chat("a"), &number.to_string(), &format!("train {number}")), "yes").await;
    }
    remove().await;
    assert_eq!(store.index(2).await.expect("lines are indexed"), 0);
    // It ends when the index is beyond it, and no entry tells of it.
    let delivery = open.answer(&*store, "yes").await;
    open.settle(&*store, delivery).await;

    for _ in 0..2 {
        remove().await;
        assert_eq!(store.index(2).await.expect("lines are indexed"), 0);
    }

    assert_eq!(found(&*store, "train").await, ["train 3", "train 2", "train 1", "train 0"]);
    index(&*store, 2).await;
    assert_eq!(found(&*store, "train").await, ["train 3", "train 2", "train 1", "train 0", "train open"]);
}

/// If entries of the log were removed before they were read, all turns are indexed.
pub async fn turns_without_a_log_are_indexed(subject: &mut impl Subject) {
    let store = subject.store();
    for number in 0..5 {
        answered(&*store, message(&chat("a"), &number.to_string(), &format!("train {number}")), "yes").await;
    }
    let open = Turn::accept(&*store, message(&chat("a"), "open", "train open")).await;
    let last = end_of_log(&*store).await;
    store.remove(Removal::Log { through: last, entries: 1 }).await.expect("entries are removed");

    assert_eq!(store.index(2).await.expect("lines are indexed"), 0);
    assert_eq!(found(&*store, "train").await, ["train 1", "train 0"]);
    let late = answered(&*store, message(&chat("a"), "late", "train late"), "yes").await;
    index(&*store, 2).await;

    assert_eq!(
        found(&*store, "train").await,
        ["train late", "train 4", "train 3", "train 2", "train 1", "train 0"],
        "{late:?} {open:?}"
    );
}
