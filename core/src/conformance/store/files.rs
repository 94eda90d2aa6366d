//! Files: each is stored once, with the rows that refer to it, and removed with the last of them.

use std::{sync::Arc, time::Duration};

use rejoinder_guard::Event;

use super::{
    subject::Subject,
    turn::{NEVER, START, Turn, accept_one, at, chat, commit, done, new_turn, said},
};
use crate::{
    model::{Amends, InboundEvent, Lifetimes, NewFile, StoredFile, TurnFile, TurnId},
    ports::{Commit, Cutoffs, NewEvent, Removal, Store, Stored, Transition},
};

const CONTENT: &[u8] = b"what is in the file";

fn new_file(content: &[u8]) -> NewFile {
    NewFile { file: StoredFile::of(content), bytes: Some(content.to_vec().into()), spoken_at: None }
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

/// The sounds of a turn go before it, but not one that another turn has for another reason, nor those of a turn that has not ended.
pub async fn a_sound_of_spoken_words_goes_before_its_turn(subject: &mut impl Subject) {
    let store = subject.store();
    let spoken = |content: &[u8], seconds| NewFile { spoken_at: Some(at(seconds)), ..new_file(content) };
    let (first, second) = (ended(&*store, "a").await, ended(&*store, "b").await);
    let mut waits = Turn::accept(&*store, said(&chat("c"), "c")).await;
    for file in [spoken(CONTENT, 1), spoken(b"the answer", 2), spoken(b"shared", 2), new_file(b"a picture")] {
        done(&*store, of_turn(first, file)).await;
    }
    done(&*store, of_turn(second, again(b"shared"))).await;
    done(&*store, of_turn(waits.id, spoken(b"in work", 1))).await;
    let cutoffs = |seconds| Cutoffs { voice: at(seconds), ..NEVER };
    let expired = async |seconds| {
        let removal = store.expired(&cutoffs(seconds), 10).await.expect("expired rows are read");
        removal.filter(|removal| !matches!(removal, Removal::Pages(_)))
    };
    assert_eq!(expired(1).await, None);
    assert_eq!(store.stats(&cutoffs(2)).await.expect("stats are read").expired.sounds, 2);
    let lifetimes = Lifetimes { voice: Some(Duration::from_mins(1)), ..Lifetimes::default() };
    assert_eq!(store.next_expiry(&lifetimes).await.expect("rows are read"), Some(at(61)));

    let removal = expired(2).await.expect("a sound is past its time");
    assert_eq!(removal, Removal::Sounds(vec![first]));
    store.remove(removal).await.expect("they are removed");

    assert_eq!((read(&*store, CONTENT).await, read(&*store, b"the answer").await), (None, None));
    for kept in [&b"shared"[..], b"a picture", b"in work"] {
        assert_eq!(read(&*store, kept).await.as_deref(), Some(kept));
    }
    assert_eq!(rows(&*store).await, (3, 3));
    let dossier = store.dossier(first).await.expect("dossiers are read").expect("the turn stays");
    assert_eq!(dossier.files, [StoredFile::of(b"a picture").digest].into());
    // Also if its end was read before it was in work again.
    store.remove(Removal::Sounds(vec![waits.id])).await.expect("nothing is removed");
    assert_eq!((read(&*store, b"in work").await.is_some(), expired(2).await), (true, None));
    let delivery = waits.answer(&*store, "x").await;
    waits.settle(&*store, delivery).await;
    assert_eq!(expired(2).await, Some(Removal::Sounds(vec![waits.id])));
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
