//! Checks of two handles of one store, as two processes have them.

use std::{collections::BTreeSet, sync::Arc};

use futures_util::future::join_all;
use rejoinder_guard::{Event, Outcome, Reply};
use uuid::Uuid;

use super::{
    operating::{operation, token},
    sessions::known,
    subject::Subject,
    transitions::version,
    turn::{Turn, accept_one, at, chat, commit, done, new_session, new_turn, said},
};
use crate::{
    model::{
        conversation::ChannelId,
        ids::{PersonId, ScheduleId, SessionId},
        log::{LogEvent, LogFilter, LogSeq, NewLogEntry, Subject as LogSubject},
        schedule::ScheduleChange,
        session::SessionChange,
        tokens::TokenChange,
    },
    ports::store::{
        Store,
        accept::{Beside, CursorMove, Stored},
        list::AuditFilter,
        transition::{Commit, Noun, Seen, Transition},
    },
};

/// How many turns or transitions each of the two writes.
const EACH: usize = 24;

/// How many write beside a reader of the log, two to a store.
const WRITERS: usize = 16;

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

/// Both have read the same rows, and one stores its decision first. Also over a restart.
pub async fn of_two_stores_that_decide_on_the_same_rows_one_decides_anew(subject: &mut impl Subject) {
    let (one, other) = (subject.store(), subject.another().await);
    let turn = Turn::accept(&*one, said(&chat("a"), "1")).await;
    let elsewhere = Turn::accept(&*one, said(&chat("b"), "2")).await;
    let (ann, theirs) = (PersonId::from(Uuid::from_u128(1)), SessionId::new(at(1)));
    let (conversation, person) = (elsewhere.conversation, Some(ann));
    let session = SessionChange::New { id: theirs, conversation, name: None, person, at: at(1) };
    done(&*one, Transition { people: vec![known(ann, "ann")], ..Transition::default() }).await;
    done(&*one, Transition { sessions: vec![session], ..Transition::default() }).await;
    let change = |noun: Noun, number: u8| {
        let rename = |session| vec![SessionChange::Rename { session, name: number.to_string() }];
        let none = Transition::default();
        match noun {
            Noun::People => Transition { people: vec![known(ann, "ann")], ..none },
            Noun::Schedules => Transition { schedules: vec![ScheduleChange::Removed(ScheduleId::new(at(1)))], ..none },
            Noun::SessionsIn(_) => Transition { sessions: rename(turn.session), ..none },
            Noun::SessionsOf(_) => Transition { sessions: rename(theirs), ..none },
            Noun::Tokens => Transition { token: Some(TokenChange::Create(token(number, 1))), ..none },
        }
    };
    let nouns =
        [Noun::People, Noun::Schedules, Noun::SessionsIn(turn.conversation), Noun::SessionsOf(ann), Noun::Tokens];
    let of = async |store: &dyn Store, noun| store.version(noun).await.expect("versions are read");
    let mut versions = Vec::new();
    for noun in nouns {
        let seen = Seen { noun, version: of(&*one, noun).await };
        let decision = |number| Transition { seen: vec![seen], ..change(noun, number) };
        done(&*other, decision(1)).await;
        let late = Transition { operation: Some(operation("retry", None)), ..decision(2) };
        assert_eq!(commit(&*one, late).await, Commit::Conflict, "{noun:?}");
        assert_eq!(of(&*one, noun).await, seen.version + 1, "{noun:?}");
        done(&*one, change(noun, 3)).await;
        assert_eq!(of(&*other, noun).await, seen.version + 2, "{noun:?}");
        versions.push(seen.version + 2);
    }
    let names: Vec<_> = one.tokens().await.expect("tokens are read").into_iter().map(|token| token.name).collect();
    assert_eq!(names, ["token 1", "token 3"]);
    assert!(one.audit(&AuditFilter { before: None, limit: 10 }).await.expect("the audit is read").is_empty());
    other.close().await;
    drop((one, other));

    subject.reopen().await;
    let store = subject.store();
    for (noun, expected) in nouns.into_iter().zip(versions) {
        assert_eq!(of(&*store, noun).await, expected, "{noun:?}");
    }
}

/// Who decides on the sessions of a conversation or a person does not wait for others.
pub async fn sessions_of_others_are_no_conflict(subject: &mut impl Subject) {
    let store = subject.store();
    let mut turns = Vec::new();
    for address in ["a", "b"] {
        turns.push(Turn::accept(&*store, said(&chat(address), address)).await);
    }
    let mut decisions = Vec::new();
    for (number, turn) in (1..).zip(&turns) {
        let noun = Noun::SessionsIn(turn.conversation);
        let seen = vec![Seen { noun, version: store.version(noun).await.expect("versions are read") }];
        let sessions = vec![new_session(SessionId::new(at(number)), turn.conversation, number)];
        decisions.push(Transition { seen, sessions, ..Transition::default() });
    }
    for decision in decisions {
        assert_eq!(commit(&*store, decision).await, Commit::Done);
    }
}

/// What one has written is read by the other as soon as the write has returned.
pub async fn what_one_store_writes_another_reads(subject: &mut impl Subject) {
    let (one, other) = (subject.store(), subject.another().await);
    let channel = ChannelId::new("test", "main");
    let cursor =
        CursorMove { channel: channel.clone(), name: "updates".to_owned(), position: "5".to_owned(), fence: None };
    let event = new_turn(said(&chat("a"), "1"));
    let id = event.turn.as_ref().expect("it has a turn").id;

    one.accept(vec![event], Some(Beside::Cursor(cursor))).await.expect("the event is accepted");
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

/// A reader reads on after the last entry that it has read: an entry that is committed later must have a higher position.
pub async fn a_reader_of_the_log_skips_no_entry_that_commits_late(subject: &mut impl Subject) {
    let mut stores = vec![subject.store()];
    while stores.len() < WRITERS / 2 {
        stores.push(subject.another().await);
    }
    let write = |store: Arc<dyn Store>, entries: usize| async move {
        for _ in 0..EACH / 4 {
            let entry = NewLogEntry { at: at(1), subject: LogSubject::default(), event: LogEvent::ChannelUp };
            done(&*store, Transition { log: vec![entry; entries], ..Transition::default() }).await;
        }
    };
    // Long transitions begin before short ones of others, and end after them.
    let long_and_short =
        |store: &Arc<dyn Store>| [100, 1].map(|entries| tokio::spawn(write(Arc::clone(store), entries)));
    let writers: Vec<_> = stores.iter().flat_map(long_and_short).collect();
    let read = async |after: LogSeq| {
        let filter = LogFilter { after, limit: u32::MAX, ..LogFilter::default() };
        let entries = stores[0].log(&filter).await.expect("the log is read");
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
    assert_eq!(seen.len(), stores.len() * (EACH / 4) * 101);
    assert_eq!(seen, read(0).await);
    for other in &stores[1..] {
        other.close().await;
    }
}
