//! Files: each is stored once, with the rows that refer to it, and removed with the last of them.

use std::sync::Arc;

use rejoinder_guard::Event;

use super::{
    subject::Subject,
    turn::{START, Turn, accept_one, chat, commit, done, new_turn, said},
};
use crate::{
    model::{Amends, InboundEvent, Lifetimes, NewFile, StoredFile, TurnFile, TurnId},
    ports::{Commit, Cutoffs, NewEvent, Removal, Store, Stored, Transition},
};

const CONTENT: &[u8] = b"what is in the file";

fn new_file(content: &[u8]) -> NewFile {
    NewFile { file: StoredFile::of(content), bytes: Some(content.to_vec().into()) }
}

/// As a row refers to it that repeats what an earlier one said.
fn again(content: &[u8]) -> NewFile {
    NewFile { bytes: None, ..new_file(content) }
}

fn of_turn(turn: TurnId, file: NewFile) -> Transition {
    Transition { files: vec![TurnFile { turn, file }], ..Transition::default() }
}

async fn read(store: &dyn Store, content: &[u8]) -> Option<Vec<u8>> {
    store.file(StoredFile::of(content).digest).await.expect("files are read")
}

/// How many rows there are of files, and of what refers to them.
async fn rows(store: &dyn Store) -> (u64, u64) {
    let stats = store.stats(&Cutoffs::at(START, &Lifetimes::default())).await.expect("stats are read");
    (stats.rows["files"], stats.rows["file_uses"])
}

/// A turn that has ended.
async fn ended(store: &dyn Store, key: &str) -> TurnId {
    let mut turn = Turn::accept(store, said(&chat(key), key)).await;
    let delivery = turn.answer(store, "x").await;
    turn.settle(store, delivery).await;
    turn.id
}

/// The bytes of several rows of several turns are one row, until the last turn goes.
pub async fn a_file_is_stored_once_and_goes_with_its_last_turn(subject: &mut impl Subject) {
    let store = subject.store();
    let (first, second) = (ended(&*store, "a").await, ended(&*store, "b").await);
    done(&*store, of_turn(first, new_file(CONTENT))).await;
    done(&*store, of_turn(first, new_file(CONTENT))).await;
    done(&*store, of_turn(second, again(CONTENT))).await;
    done(&*store, of_turn(first, new_file(b"another"))).await;
    assert_eq!(rows(&*store).await, (2, 3));
    assert_eq!(read(&*store, CONTENT).await.as_deref(), Some(CONTENT));

    store.remove(Removal::Turns(vec![first])).await.expect("it is removed");
    assert_eq!(read(&*store, CONTENT).await.as_deref(), Some(CONTENT), "the other turn has it");
    assert_eq!((read(&*store, b"another").await, rows(&*store).await), (None, (1, 1)));

    store.remove(Removal::Turns(vec![second])).await.expect("it is removed");
    assert_eq!((read(&*store, CONTENT).await, rows(&*store).await), (None, (0, 0)));
    done(&*store, of_turn(ended(&*store, "c").await, again(CONTENT))).await;
    assert_eq!(rows(&*store).await, (0, 0), "there are no bytes to refer to");
}

/// An event's file is stored if the event opens or changes a turn.
pub async fn the_file_of_an_event_is_stored_with_its_turn(subject: &mut impl Subject) {
    let store = subject.store();
    let event = || NewEvent { files: vec![new_file(CONTENT)], ..new_turn(said(&chat("a"), "1")) };
    assert_eq!(accept_one(&*store, NewEvent { turn: None, ..event() }).await, Stored::Kept);
    assert_eq!(rows(&*store).await, (0, 0), "nobody can read it");

    let key_of_it = NewEvent { files: vec![new_file(CONTENT)], ..new_turn(said(&chat("a"), "2")) };
    let turn = Turn::of(&*store, key_of_it).await;
    assert_eq!((read(&*store, CONTENT).await.as_deref(), rows(&*store).await), (Some(CONTENT), (1, 1)));

    let edit = InboundEvent { revision: 1, amends: Some(Amends::Replaces), ..said(&chat("a"), "2") };
    let (turn_of_edit, files) = (None, vec![new_file(b"another")]);
    let edit = NewEvent { turn: turn_of_edit, files, event: Arc::new(edit), ..event() };
    assert_eq!(accept_one(&*store, edit).await, Stored::Amended { turn: turn.id });
    assert_eq!((read(&*store, b"another").await.as_deref(), rows(&*store).await), (Some(&b"another"[..]), (2, 2)));
}

/// What conflicts stores no file.
pub async fn a_transition_that_conflicts_stores_no_file(subject: &mut impl Subject) {
    let store = subject.store();
    let mut turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let mut stale = turn.clone();
    turn.begin(&*store).await;
    let conflicting = Transition { files: of_turn(turn.id, new_file(CONTENT)).files, ..stale.on(Event::Begin, 1) };

    assert_eq!(commit(&*store, conflicting).await, Commit::Conflict);

    assert_eq!((read(&*store, CONTENT).await, rows(&*store).await), (None, (0, 0)));
}

/// Each part is read by itself, and one beyond the end is empty.
pub async fn a_file_is_read_in_parts(subject: &mut impl Subject) {
    // Of several pages, on either database.
    let content: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
    let store = subject.store();
    let turn = ended(&*store, "a").await;
    done(&*store, of_turn(turn, new_file(&content))).await;
    let digest = StoredFile::of(&content).digest;
    let part = async |from, most| store.file_part(digest, from, most).await.expect("a part is read");

    for (from, most) in [(0, 1), (0, content.len()), (7, 300_000), (399_999, 1), (399_999, 10), (5, 0)] {
        let expected = &content[from..content.len().min(from + most)];
        assert!(part(from, most).await.as_deref() == Some(expected), "{most} bytes from {from}");
    }
    for from in [content.len(), content.len() + 5] {
        assert_eq!(part(from, 10).await.as_deref(), Some(&b""[..]));
    }
    store.remove(Removal::Turns(vec![turn])).await.expect("it is removed");
    assert_eq!(part(0, 1).await, None);
}
