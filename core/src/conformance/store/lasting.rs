//! The check of what outlives the process.

use std::sync::Arc;

use rejoinder_guard::Event;

use super::{
    subject::Subject,
    turn::{Turn, accept_one, at, chat, commit, deliveries, done, gone, me, new_turn, runs_left, said},
};
use crate::{
    model::{
        agent::{HistoryLine, LineState, Speaker},
        conversation::ChannelId,
        event::Author,
        stored_delivery::{DeliveryRecord, DeliveryState},
    },
    ports::store::{
        accept::{Beside, CursorMove, Stored},
        record::BlockedScope,
        transition::{AttemptStart, Commit, TranscriptLine, Transition},
    },
};

/// D1, D9, E1, H5.
pub async fn a_restart_keeps_everything(subject: &mut impl Subject) {
    let store = subject.store();
    let channel = ChannelId::new("test", "main");
    let cursor =
        CursorMove { channel: channel.clone(), name: "updates".to_owned(), position: "5".to_owned(), fence: None };
    store.accept(Vec::new(), Some(Beside::Cursor(cursor))).await.expect("a cursor moves alone");
    let blocked = BlockedScope { channel: channel.clone(), chat: None, until: at(60) };
    store.block(blocked.clone()).await.expect("the scope is recorded");
    let waiting = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let mut running = Turn::accept(&*store, said(&chat("b"), "2")).await;
    running.begin(&*store).await;
    let record = DeliveryRecord { state: DeliveryState::Sending, ..running.delivery(1, "x") };
    let delivery = record.id;
    done(&*store, deliveries([record])).await;
    let author = Some(Author { name: Some("Ann".to_owned()), ..Author::default() });
    let line = HistoryLine {
        spoken: false,
        speaker: Speaker::Person,
        author,
        forwarded: None,
        text: "hello".to_owned(),
        at: at(1),
        state: LineState::Seen,
    };
    let along = Transition {
        attempts_started: vec![AttemptStart { delivery, number: 1, node: gone(), at: at(2) }],
        transcript: vec![TranscriptLine {
            session: running.session,
            turn: running.id,
            seq: running.seq,
            claim: 0,
            line: line.clone(),
        }],
        ..Transition::default()
    };
    done(&*store, along).await;
    drop(store);

    subject.reopen().await;
    let store = subject.store();
    assert_eq!(store.cursor(&channel, "updates").await.expect("cursors are read").as_deref(), Some("5"));
    assert_eq!(store.blocked(at(0)).await.expect("scopes are read"), [blocked]);
    assert_eq!(store.waiting(10).await.expect("turns are read")[0].turn, waiting.id);
    assert_eq!(runs_left(&*store).await, [running.id]);
    assert_eq!(store.attempts_left(Some(me())).await.expect("deliveries are read")[0].id, delivery);
    assert_eq!(store.transcript(running.session, 10).await.expect("transcripts are read"), [Arc::new(line)]);
    let again = accept_one(&*store, new_turn(said(&chat("a"), "1"))).await;
    assert!(matches!(again, Stored::Duplicate { turn: Some(turn), .. } if turn == waiting.id), "{again:?}");
    let recovered = running.on(Event::Recovered, 3);
    assert_eq!(commit(&*store, recovered).await, Commit::Done);
}
