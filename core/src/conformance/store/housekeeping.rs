//! Checks of removing rows that are past their time.

use std::{sync::Arc, time::Duration};

use rejoinder_guard::{Event, Reply};

use super::{
    approving::asking_with_more,
    reacting::reacts,
    subject::Subject,
    turn::{NEVER, START, Turn, accept_one, at, chat, deliveries, done, gone, main, new_session, new_turn, said},
};
use crate::{
    model::{
        agent::{HistoryLine, LineState, Speaker},
        brief::Brief,
        conversation::ConversationRef,
        event::{Amends, EventKind, InboundEvent},
        ids::{ConversationId, DeliveryId, SessionId},
        log::LogFilter,
        run::{ModelInput, RunContent},
        settings::Lifetimes,
        stored_delivery::{DeliveryRecord, DeliveryState},
        stored_file::{NewFile, StoredFile, TurnFile},
    },
    ports::store::{
        Store,
        accept::{NewEvent, Stored},
        housekeeping::{Cutoffs, ExpiredRows, Removal},
        record::Remark,
        transition::{AttemptEnd, AttemptStart, DeliveryChange, RunEnd, RunStart, TranscriptLine, Transition},
    },
};

/// The end of turns and dead letters is past its time.
fn ended() -> Cutoffs {
    Cutoffs { turns: at(100), dead_letters: at(100), ..NEVER }
}

/// Removes everything that is past its time, in steps of `limit` rows. Returns the steps, without those that only remove
/// entries of the log or shrink the file.
async fn remove_all(store: &dyn Store, cutoffs: &Cutoffs, limit: u32) -> Vec<Removal> {
    let mut steps = Vec::new();
    while let Some(removal) = store.expired(cutoffs, limit).await.expect("expired rows are read") {
        store.remove(removal.clone()).await.expect("rows are removed");
        if !matches!(removal, Removal::Pages(_) | Removal::Log { .. } | Removal::Lines { .. }) {
            steps.push(removal);
        }
        assert!(steps.len() < 1000, "removing never ends: {:?}", steps.last());
    }
    steps
}

/// A turn that was answered at 3 s.
async fn answered(store: &dyn Store, address: &ConversationRef, key: &str) -> Turn {
    let mut turn = Turn::accept(store, said(address, key)).await;
    let delivery = turn.answer(store, "x").await;
    turn.settle(store, delivery).await;
    turn
}

async fn change(store: &dyn Store, turn: &Turn, delivery: DeliveryId, state: DeliveryState) {
    let records = store.deliveries(turn.id).await.expect("deliveries are read");
    let record = records.iter().find(|record| record.id == delivery).expect("the delivery is there");
    let change = DeliveryChange { state, ..DeliveryChange::of(record) };
    done(store, Transition { delivery_changes: vec![change], ..Transition::default() }).await;
}

async fn is_there(store: &dyn Store, turn: &Turn) -> bool {
    store.turn(turn.id).await.expect("turns are read").is_some()
}

async fn rows(store: &dyn Store, table: &str) -> u64 {
    store.stats(&NEVER).await.expect("stats are read").rows[table]
}

fn line(turn: &Turn, speaker: Speaker) -> TranscriptLine {
    let line = HistoryLine {
        spoken: false,
        speaker,
        author: None,
        forwarded: None,
        text: "words".to_owned(),
        at: at(1),
        state: LineState::Seen,
    };
    TranscriptLine {
        session: turn.session,
        turn: turn.id,
        seq: turn.seq,
        claim: u32::from(speaker != Speaker::Person),
        line,
    }
}

/// Everything about a turn is removed but the key of its event: the event is still known when it arrives again.
pub async fn an_ended_turn_is_removed_with_everything_about_it(subject: &mut impl Subject) {
    let store = subject.store();
    let mut new = new_turn(said(&chat("a"), "1"));
    new.turn.as_mut().expect("it has a turn").about = Some(ConversationId::new(START));
    let mut turn = Turn::of(&*store, new).await;
    let delivery = turn.answer(&*store, "x").await;
    let (number, handler) = (1, main());
    let bytes = b"a file".to_vec();
    let (approval, _, asked) = asking_with_more(turn.id);
    let file = NewFile { file: StoredFile::of(&bytes), bytes: Some(bytes.into()), spoken_at: None };
    let along = Transition {
        files: vec![TurnFile { turn: turn.id, file }],
        attempts_started: vec![AttemptStart { delivery, number, node: gone(), at: at(2) }],
        runs_started: vec![RunStart { turn: turn.id, number, handler, node: gone(), at: at(1) }],
        transcript: vec![line(&turn, Speaker::Person), line(&turn, Speaker::Agent)],
        questions: vec![turn.question()],
        approvals: vec![asked],
        remarks: vec![Remark { turn: turn.id, at: at(2), kind: "recovered".to_owned(), detail: String::new() }],
        ..Transition::default()
    };
    done(&*store, along).await;
    let (end, result) = ("reply".to_owned(), "delivered".to_owned());
    let content = Some(Arc::new(RunContent { input: Some(ModelInput::default()), ..RunContent::default() }));
    let along = Transition {
        attempts_ended: vec![AttemptEnd { delivery, number, at: at(3), result, detail: None }],
        runs_ended: vec![RunEnd { content, ..RunEnd::new(turn.id, number, at(3), end, None) }],
        ..Transition::default()
    };
    done(&*store, along).await;
    turn.settle(&*store, delivery).await;
    accept_one(&*store, reacts(&chat("a"), "ann", "👍", None, 4)).await;
    let other = answered(&*store, &chat("b"), "2").await;
    assert_eq!(store.transcript(turn.session, 10).await.expect("transcripts are read").len(), 2);
    let stats = store.stats(&ended()).await.expect("stats are read");
    assert_eq!((stats.expired.turns, stats.oldest_turn), (2, Some(START)));
    let of_no_turn = [
        "agent_notices",
        "agent_sessions",
        "audit",
        "channels_cursor",
        "daily_use",
        "direct_chats",
        "errors",
        "identities",
        "invitations",
        "languages",
        "log_lines",
        "pairings",
        "passkeys",
        "people",
        "push_subscriptions",
        "visits",
    ];
    assert!(stats.rows.iter().all(|(table, rows)| *rows > 0 || of_no_turn.contains(&&**table)), "{stats:?}");

    store.remove(Removal::Turns(vec![turn.id])).await.expect("rows are removed");

    assert!(!is_there(&*store, &turn).await && is_there(&*store, &other).await);
    assert!(store.dossier(turn.id).await.expect("dossiers are read").is_none());
    assert_eq!(store.whole_request(approval.id).await.expect("it is read"), None);
    assert!(store.view(turn.id).await.expect("views are read").is_none());
    assert!(store.transcript(turn.session, 10).await.expect("transcripts are read").is_empty());
    remove_all(&*store, &ended(), 10).await;
    let stats = store.stats(&ended()).await.expect("stats are read");
    let left: Vec<_> = stats.rows.iter().filter(|(_, rows)| **rows > 0).collect();
    assert_eq!(left, [(&"events".to_owned(), &3), (&"log".to_owned(), &1)]);
    assert_eq!((stats.expired, stats.oldest_turn), (ExpiredRows::default(), None));
    let again = accept_one(&*store, new_turn(said(&chat("a"), "1"))).await;
    assert_eq!(again, Stored::Duplicate { turn: Some(turn.id), message: None });
}

/// A turn that waits, runs, is being sent or is owed later stays, and so does one that has an unfinished delivery.
pub async fn what_has_not_ended_is_never_removed(subject: &mut impl Subject) {
    let store = subject.store();
    let waits = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let mut runs = Turn::accept(&*store, said(&chat("b"), "2")).await;
    runs.begin(&*store).await;
    let mut is_sent = Turn::accept(&*store, said(&chat("c"), "3")).await;
    is_sent.answer(&*store, "x").await;
    let mut has_callback = Turn::accept(&*store, said(&chat("d"), "4")).await;
    let delivery = has_callback.answer(&*store, "x").await;
    let copy = DeliveryRecord { is_copy: true, ..has_callback.delivery(1, "copy") };
    let copy_id = copy.id;
    done(&*store, deliveries([copy])).await;
    has_callback.settle(&*store, delivery).await;
    let all = [&waits, &runs, &is_sent, &has_callback];

    for state in [DeliveryState::Pending, DeliveryState::Sending] {
        change(&*store, &has_callback, copy_id, state).await;
        assert_eq!(remove_all(&*store, &ended(), 10).await, []);
        // Also if their end was read before they were in work again.
        store.remove(Removal::Turns(all.map(|turn| turn.id).into())).await.expect("nothing is removed");
        for turn in all {
            assert!(is_there(&*store, turn).await, "{turn:?}");
        }
    }

    change(&*store, &has_callback, copy_id, DeliveryState::Delivered).await;
    assert_eq!(remove_all(&*store, &ended(), 10).await, [Removal::Turns(vec![has_callback.id])]);
}

/// A turn whose agent answered and still works is kept until the run has ended.
pub async fn a_settled_turn_that_still_runs_is_not_removed(subject: &mut impl Subject) {
    let store = subject.store();
    let mut turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    turn.begin(&*store).await;
    for event in [Event::Sent(Reply::text("x")), Event::Delivered { claim: 1, messages: vec!["m".to_owned()] }] {
        let transition = turn.on(event, 2);
        done(&*store, transition).await;
    }
    assert!(turn.obligation.state().is_final() && turn.obligation.is_running(), "{:?}", turn.obligation);

    assert_eq!(remove_all(&*store, &ended(), 10).await, []);
    store.remove(Removal::Turns(vec![turn.id])).await.expect("nothing is removed");
    assert!(is_there(&*store, &turn).await);

    let ended_run = turn.on(Event::Failed("no".to_owned()), 3);
    done(&*store, ended_run).await;
    assert_eq!(remove_all(&*store, &ended(), 10).await, [Removal::Turns(vec![turn.id])]);
}

/// Dead letters are kept longer, whether the turn is one or only a copy of its answer.
pub async fn a_dead_letter_is_kept_for_its_own_time(subject: &mut impl Subject) {
    let store = subject.store();
    let mut undeliverable = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let delivery = undeliverable.answer(&*store, "x").await;
    let refused = undeliverable.on(Event::Refused { claim: 1, reason: "blocked".to_owned() }, 4);
    done(&*store, refused).await;
    change(&*store, &undeliverable, delivery, DeliveryState::Refused).await;
    let dead_callback = answered(&*store, &chat("b"), "2").await;
    let copy = DeliveryRecord { is_copy: true, state: DeliveryState::Dead, ..dead_callback.delivery(1, "copy") };
    done(&*store, deliveries([copy])).await;

    let settled = Cutoffs { turns: at(100), ..NEVER };
    assert_eq!(remove_all(&*store, &settled, 10).await, []);

    assert_eq!(store.stats(&ended()).await.expect("stats are read").expired.turns, 2);
    let steps = remove_all(&*store, &ended(), 10).await;
    assert_eq!(
        steps,
        [Removal::Turns(vec![dead_callback.id, undeliverable.id])],
        "the first to end is the first to go"
    );
}

/// A payload is removed from its event, with what a program said beside it; the text stays.
pub async fn a_payload_goes_before_its_turn(subject: &mut impl Subject) {
    let store = subject.store();
    let brief = Some(Box::new(Brief { instructions: Some("Be brief.".to_owned()), ..Brief::default() }));
    let seal_to = Some("age1key".into());
    let asked = InboundEvent { brief: brief.clone(), seal_to: seal_to.clone(), ..said(&chat("a"), "1") };
    let early = Turn::accept(&*store, asked).await;
    assert_eq!(store.turn(early.id).await.expect("turns are read").expect("it is there").event.brief, brief);
    let late = Turn::accept(&*store, InboundEvent { received_at: at(50), ..said(&chat("a"), "2") }).await;
    let cutoffs = Cutoffs { payloads: at(50), ..NEVER };
    assert_eq!(store.stats(&cutoffs).await.expect("stats are read").expired.payloads, 1);

    let steps = remove_all(&*store, &cutoffs, 10).await;

    assert!(matches!(&steps[..], [Removal::Payloads(events)] if events.len() == 1), "{steps:?}");
    let event = async |turn: &Turn| store.turn(turn.id).await.expect("turns are read").expect("it is there").event;
    assert_eq!((&*event(&early).await.raw, &*event(&early).await.text), ("", "text of 1"));
    assert_eq!((&event(&early).await.brief, &event(&early).await.seal_to), (&None, &seal_to), "the turn may go on");
    assert_eq!(event(&late).await.raw, "{}");
}

/// Keys of events without a turn are removed after their time; so are those of removed turns, but not of others.
pub async fn a_key_goes_last(subject: &mut impl Subject) {
    let store = subject.store();
    let without_turn = |key: &str, seconds| {
        let event = InboundEvent { received_at: at(seconds), raw: String::new(), ..said(&chat("a"), key) };
        NewEvent { turn: None, ..new_turn(event) }
    };
    accept_one(&*store, without_turn("early", 1)).await;
    accept_one(&*store, without_turn("late", 50)).await;
    let removed = answered(&*store, &chat("a"), "removed").await;
    let kept = Turn::accept(&*store, said(&chat("a"), "kept")).await;
    remove_all(&*store, &ended(), 10).await;
    assert_eq!(rows(&*store, "events").await, 4);
    let cutoffs = Cutoffs { keys: at(50), ..ended() };
    assert_eq!(store.stats(&cutoffs).await.expect("stats are read").expired.keys, 2);

    remove_all(&*store, &cutoffs, 10).await;

    assert_eq!(rows(&*store, "events").await, 2);
    assert_eq!(accept_one(&*store, without_turn("late", 60)).await, Stored::Duplicate { turn: None, message: None });
    let again = accept_one(&*store, new_turn(said(&chat("a"), "kept"))).await;
    assert!(matches!(again, Stored::Duplicate { turn: Some(turn), .. } if turn == kept.id), "{again:?}");
    let again = accept_one(&*store, new_turn(said(&chat("a"), "removed"))).await;
    assert!(matches!(again, Stored::Turn { .. }), "{again:?}");
    assert!(!is_there(&*store, &removed).await);
}

/// The earlier revisions of a message are removed with its turn.
pub async fn every_revision_of_a_message_goes_with_its_turn(subject: &mut impl Subject) {
    let store = subject.store();
    let mut turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    for revision in 1..3 {
        let edit = InboundEvent { revision, amends: Some(Amends::Replaces), ..said(&chat("a"), "1") };
        let stored = accept_one(&*store, NewEvent { turn: None, ..new_turn(edit) }).await;
        assert_eq!(stored, Stored::Amended { turn: turn.id });
    }
    turn.version += 2;
    let delivery = turn.answer(&*store, "x").await;
    turn.settle(&*store, delivery).await;

    remove_all(&*store, &ended(), 10).await;

    for revision in 0..3 {
        let again = accept_one(&*store, new_turn(InboundEvent { revision, ..said(&chat("a"), "1") })).await;
        assert_eq!(again, Stored::Duplicate { turn: Some(turn.id), message: None }, "{revision}");
    }
}

/// A conversation is removed with its last turn. If someone writes there again, another one begins.
pub async fn a_conversation_goes_with_its_last_turn(subject: &mut impl Subject) {
    let store = subject.store();
    let first = answered(&*store, &chat("a"), "1").await;
    let second = answered(&*store, &chat("a"), "2").await;
    let found = async || store.conversation(&chat("a")).await.expect("conversations are read");

    store.remove(Removal::Turns(vec![first.id])).await.expect("rows are removed");
    assert_eq!(found().await, Some(first.conversation));
    assert_eq!((rows(&*store, "conversations").await, rows(&*store, "sessions").await), (1, 1));

    store.remove(Removal::Turns(vec![second.id])).await.expect("rows are removed");
    assert_eq!(found().await, None);
    assert_eq!((rows(&*store, "conversations").await, rows(&*store, "sessions").await), (0, 0));
    let third = Turn::accept(&*store, said(&chat("a"), "3")).await;
    assert_ne!((third.conversation, third.session), (first.conversation, first.session));
}

/// A session without turns is removed, but not the current one of a conversation.
pub async fn a_session_goes_with_its_last_turn(subject: &mut impl Subject) {
    let store = subject.store();
    let first = answered(&*store, &chat("a"), "1").await;
    let (left, current) = (SessionId::new(at(4)), SessionId::new(at(5)));
    let fresh = |id| new_session(id, first.conversation, 4);
    done(&*store, Transition { sessions: vec![fresh(left)], ..Transition::default() }).await;
    let second = answered(&*store, &chat("a"), "2").await;
    done(&*store, Transition { sessions: vec![fresh(current)], ..Transition::default() }).await;

    store.remove(Removal::Turns(vec![first.id])).await.expect("rows are removed");
    assert_eq!(rows(&*store, "sessions").await, 2, "that of the second turn, and the current one");

    assert_ne!(first.session, second.session);
    let third = Turn::accept(&*store, said(&chat("a"), "3")).await;
    assert_eq!(third.session, current);
    store.remove(Removal::Turns(vec![second.id])).await.expect("rows are removed");
    assert_eq!(rows(&*store, "sessions").await, 1);
}

/// Two conversations of a chat that moved are removed, whichever turn ends first.
pub async fn conversations_of_a_chat_that_moved_go_too(subject: &mut impl Subject) {
    let store = subject.store();
    for is_older_first in [true, false] {
        let (old, new) = (chat(&format!("old {is_older_first}")), chat(&format!("new {is_older_first}")));
        let key = |name: &str| format!("{name} {is_older_first}");
        let older = answered(&*store, &old, &key("1")).await;
        let newer = answered(&*store, &new, &key("2")).await;
        let kind = EventKind::Moved { chat: new.chat.to_string() };
        let moved = InboundEvent { kind, raw: String::new(), ..said(&old, &key("moved")) };
        accept_one(&*store, NewEvent { turn: None, ..new_turn(moved) }).await;
        let turns = if is_older_first { [older.id, newer.id] } else { [newer.id, older.id] };

        for turn in turns {
            store.remove(Removal::Turns(vec![turn])).await.expect("rows are removed");
        }

        assert_eq!((rows(&*store, "conversations").await, rows(&*store, "sessions").await), (0, 0));
    }
}

/// The next expiry is that of the row whose time comes first, if its kind has a time.
pub async fn the_next_expiry_is_that_of_the_row_whose_time_comes_first(subject: &mut impl Subject) {
    let store = subject.store();
    let (hour, day) = (Duration::from_hours(1), Duration::from_hours(24));
    let next = async |turns, payloads| {
        let lifetimes = Lifetimes { turns, payloads, ..Lifetimes::default() };
        store.next_expiry(&lifetimes).await.expect("rows are read")
    };
    assert_eq!(next(Some(day), Some(hour)).await, None);
    Turn::accept(&*store, said(&chat("a"), "1")).await;
    assert_eq!((next(Some(day), None).await, next(None, Some(hour)).await), (None, Some(START + hour)));
    answered(&*store, &chat("b"), "2").await;
    assert_eq!((next(Some(day), None).await, next(None, None).await), (Some(at(3) + day), None));
    assert_eq!(next(Some(day), Some(hour)).await, Some(START + hour));

    let key = InboundEvent { raw: String::new(), ..said(&chat("a"), "3") };
    accept_one(&*store, NewEvent { turn: None, ..new_turn(key) }).await;
    assert_eq!(next(None, None).await, Some(START + Lifetimes::KEYS));
}

/// Removing goes in steps, and may be interrupted between them.
pub async fn removing_goes_on_where_it_was_interrupted(subject: &mut impl Subject) {
    let store = subject.store();
    let mut turns = Vec::new();
    for number in 0..7 {
        turns.push(answered(&*store, &chat(&format!("{}", number % 3)), &number.to_string()).await.id);
    }
    let expired = async |store: &dyn Store| store.expired(&ended(), 3).await.expect("expired rows are read");
    let Some(Removal::Turns(first)) = expired(&*store).await else { panic!("turns are expired") };
    assert_eq!(first.len(), 3);
    for _ in 0..2 {
        store.remove(Removal::Turns(first.clone())).await.expect("rows are removed");
    }
    drop(store);

    subject.reopen().await;

    let store = subject.store();
    let steps = remove_all(&*store, &ended(), 3).await;
    assert_eq!(steps.len(), 2);
    for table in ["turns", "conversations", "sessions", "deliveries"] {
        assert_eq!(rows(&*store, table).await, 0, "{table}");
    }
}

/// The file shrinks after many rows were removed.
pub async fn the_file_shrinks_after_many_rows_were_removed(subject: &mut impl Subject) {
    if !subject.shrinks() {
        return;
    }
    let store = subject.store();
    let events = (0..300).map(|number| {
        let event = said(&chat("a"), &number.to_string());
        NewEvent { turn: None, ..new_turn(InboundEvent { raw: "x".repeat(4000), ..event }) }
    });
    store.accept(events.collect(), None).await.expect("events are accepted");
    let before = store.stats(&NEVER).await.expect("stats are read");

    remove_all(&*store, &Cutoffs { payloads: at(100), keys: at(100), ..NEVER }, 50).await;

    let after = store.stats(&NEVER).await.expect("stats are read");
    assert!(after.bytes < before.bytes / 3, "{before:?} {after:?}");
    assert!(after.free_bytes <= after.bytes / 10, "{after:?}");
}

/// Numbers of entries are not used again: a reader of the log would miss an entry with the number of an older one.
pub async fn the_log_is_removed_by_its_age_except_for_its_last_entry(subject: &mut impl Subject) {
    let store = subject.store();
    answered(&*store, &chat("a"), "1").await;
    let log = async |store: &dyn Store| {
        let filter = LogFilter { limit: 100, ..LogFilter::default() };
        store.log(&filter).await.expect("the log is read").iter().map(|entry| entry.seq).collect::<Vec<_>>()
    };
    let before = log(&*store).await;
    let last = *before.last().expect("it has entries");
    assert_eq!(*store.logged().borrow(), last);

    let mut removed = 0;
    while let Some(removal) = store.expired(&ended(), 2).await.expect("expired rows are read") {
        if let Removal::Log { entries, .. } = &removal {
            removed += *entries as usize;
        }
        store.remove(removal).await.expect("rows are removed");
    }

    assert_eq!((removed, log(&*store).await), (before.len() - 1, vec![last]));
    drop(store);
    subject.reopen().await;
    let store = subject.store();
    answered(&*store, &chat("a"), "2").await;
    assert!(log(&*store).await[1] > last);
}
