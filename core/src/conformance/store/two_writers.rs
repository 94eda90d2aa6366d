//! Checks of two handles of one store, as two processes have them.

use std::{collections::BTreeSet, sync::Arc};

use futures_util::future::join_all;
use rejoinder_guard::{Event, Outcome, Reply};

use super::{
    subject::Subject,
    transitions::version,
    turn::{Turn, accept_one, at, chat, commit, done, new_turn, said},
};
use crate::{
    model::{
        conversation::ChannelId,
        log::{LogEvent, LogFilter, LogSeq, NewLogEntry, Subject as LogSubject},
    },
    ports::store::{
        Store,
        accept::{CursorMove, Stored},
        transition::{Commit, Transition},
    },
};

/// How many turns or transitions each of the two writes.
const EACH: usize = 24;

/// Both are sent the same events at the same time.
pub async fn of_two_stores_that_accept_an_event_one_opens_its_turn(subject: &mut impl Subject) {
    let (one, other) = (subject.store(), subject.another().await);
    let keys: Vec<String> = (0..EACH).map(|number| number.to_string()).collect();
    let accept = async |store: &dyn Store| {
        let mut opened = BTreeSet::new();
        for key in &keys {
            match accept_one(store, new_turn(said(&chat("a"), key))).await {
                Stored::Turn { conversation, .. } => {
                    opened.insert((key.clone(), conversation));
                }
                Stored::Duplicate { turn, .. } => assert!(turn.is_some()),
                other => panic!("the event should be a turn or a duplicate, and is {other:?}"),
            }
        }
        opened
    };

    let (first, second) = tokio::join!(accept(&*one), accept(&*other));

    let conversations: BTreeSet<_> = first.union(&second).map(|(_, conversation)| *conversation).collect();
    assert_eq!((first.len() + second.len(), conversations.len()), (EACH, 1));
    assert!(first.is_disjoint(&second));
    for store in [&one, &other] {
        assert_eq!(store.backlog().await.expect("the backlog is read").waiting, EACH as u64);
    }
    other.close().await;
}

/// B2.
pub async fn a_change_conflicts_with_that_of_another_store(subject: &mut impl Subject) {
    let (one, other) = (subject.store(), subject.another().await);
    let mut turn = Turn::accept(&*one, said(&chat("a"), "1")).await;
    let mut late = turn.clone();

    turn.begin(&*other).await;
    let stale = late.on(Event::Begin, 2);

    assert_eq!(commit(&*one, stale).await, Commit::Conflict);
    assert_eq!((version(&*one, &turn).await, version(&*other, &turn).await), (2, 2));
    let ended = turn.on(Event::Outcome(Outcome::Reply(Reply::text("yes"))), 3);
    done(&*one, ended).await;
    assert_eq!((version(&*one, &turn).await, version(&*other, &turn).await), (3, 3));
    other.close().await;
}

/// Both decide on the same turns at the same time.
pub async fn of_two_stores_that_race_for_turns_one_wins_each(subject: &mut impl Subject) {
    let (one, other) = (subject.store(), subject.another().await);
    let mut turns = Vec::new();
    for number in 0..EACH {
        turns.push(Turn::accept(&*one, said(&chat("a"), &number.to_string())).await);
    }
    let race = async |store: &dyn Store| {
        let changes = turns.iter().map(|turn| async move { commit(store, turn.clone().on(Event::Begin, 1)).await });
        join_all(changes).await
    };

    let (first, second) = tokio::join!(race(&*one), race(&*other));

    let won = |commits: &[Commit], number: usize| commits[number] == Commit::Done;
    for (number, turn) in turns.iter().enumerate() {
        assert_ne!(won(&first, number), won(&second, number));
        assert_eq!((version(&*one, turn).await, version(&*other, turn).await), (2, 2));
    }
    other.close().await;
}

/// What one has written is read by the other as soon as the write has returned.
pub async fn what_one_store_writes_another_reads(subject: &mut impl Subject) {
    let (one, other) = (subject.store(), subject.another().await);
    let channel = ChannelId::new("test", "main");
    let cursor = CursorMove { channel: channel.clone(), name: "updates".to_owned(), position: "5".to_owned() };
    let event = new_turn(said(&chat("a"), "1"));
    let id = event.turn.as_ref().expect("it has a turn").id;

    one.accept(vec![event], Some(cursor)).await.expect("the event is accepted");
    let position = other.cursor(&channel, "updates").await.expect("cursors are read");
    let read = other.turn(id).await.expect("turns are read").expect("the turn is there");
    let mut next = Turn::accept(&*other, said(&chat("a"), "2")).await;
    let delivery = next.answer(&*other, "yes").await;

    assert_eq!(position.as_deref(), Some("5"));
    assert_eq!((read.conversation, read.session), (next.conversation, next.session));
    assert!(read.seq < next.seq);
    assert_eq!(one.waiting(10).await.expect("turns are read")[0].turn, id);
    assert_eq!(one.next_deliveries(next.conversation).await.expect("deliveries are read").list[0].id, delivery);
    next.settle(&*one, delivery).await;
    let left = other.next_deliveries(next.conversation).await.expect("deliveries are read");
    assert!(left.list.is_empty(), "{left:?}");
    other.close().await;
}

/// A reader reads on after the last entry that it has read: an entry that is committed later must have a higher place.
pub async fn a_reader_of_the_log_skips_no_entry_that_commits_late(subject: &mut impl Subject) {
    let (one, other) = (subject.store(), subject.another().await);
    let write = |store: Arc<dyn Store>, entries: usize| async move {
        for _ in 0..EACH {
            let entry = NewLogEntry { at: at(1), subject: LogSubject::default(), event: LogEvent::ChannelUp };
            done(&*store, Transition { log: vec![entry; entries], ..Transition::default() }).await;
        }
    };
    // The long transitions of the one begin before short ones of the other, and end after them.
    let writers = [tokio::spawn(write(Arc::clone(&one), 100)), tokio::spawn(write(Arc::clone(&other), 1))];
    let read = async |after: LogSeq| {
        let filter = LogFilter { after, limit: u32::MAX, ..LogFilter::default() };
        let entries = one.log(&filter).await.expect("the log is read");
        entries.into_iter().map(|entry| entry.seq).collect::<Vec<_>>()
    };

    let mut seen: Vec<LogSeq> = Vec::new();
    loop {
        let have_ended = writers.iter().all(tokio::task::JoinHandle::is_finished);
        seen.extend(read(seen.last().copied().unwrap_or(0)).await);
        if have_ended {
            break;
        }
    }

    for writer in writers {
        writer.await.expect("it writes");
    }
    assert_eq!(seen.len(), EACH * 101);
    assert_eq!(seen, read(0).await);
    other.close().await;
}
