//! Checks of hints, and of what nodes look at beside them.
//!
//! A store that admits one process never has a hint: that is all it promises of them.

use std::time::Duration;

use rejoinder_guard::{Event, Expectation, MergedTurn};
use tokio::{sync::broadcast::error::RecvError, time::timeout};

use super::{
    subject::Subject,
    turn::{Turn, at, chat, done, said},
};
use crate::{
    model::{
        agent::{HistoryLine, LineState, Speaker},
        conversation::ChannelId,
        ids::{ConversationId, TurnId},
        turn::Version,
    },
    ports::store::{
        Store,
        hints::{Hint, RunText},
        transition::{Noun, TranscriptLine, Transition},
    },
};

/// How long a hint may take.
const LONGEST: Duration = Duration::from_secs(10);

/// One store hears what the other tells, from when it has begun to listen, and nothing of what it tells itself.
pub async fn hints_are_heard_by_the_other_store(subject: &mut impl Subject) {
    let (one, other) = (subject.store(), subject.another().await);
    let mut heard = one.hints();
    match timeout(LONGEST, heard.recv()).await.expect("a store listens, or has no hints") {
        Err(error) => {
            assert_eq!(error, RecvError::Closed);
            return other.close().await;
        }
        Ok(first) => assert_eq!(first, Hint::All, "hints may have been lost before"),
    }
    let turn = TurnId::new(at(1));
    let waiting = Hint::Waiting("main".into(), ConversationId::new(at(1)));
    let told = [Hint::Turn(ChannelId::new("test", "main"), turn), Hint::Noun(Noun::People), waiting];

    one.hint(Hint::Run(turn));
    for hint in &told {
        other.hint(hint.clone());
    }
    let mut left = told.to_vec();
    while !left.is_empty() {
        let hint = timeout(LONGEST, heard.recv()).await.expect("it comes soon").expect("none is lost");
        assert!(told.contains(&hint), "{hint:?}");
        left.retain(|one| *one != hint);
    }
    other.close().await;
}

/// Those that are not there are found as well, and those with the version that was seen are not.
pub async fn changed_turns_are_found_by_their_versions(subject: &mut impl Subject) {
    let store = subject.store();
    let mut turns = Vec::new();
    for number in 0..3 {
        turns.push(Turn::accept(&*store, said(&chat("a"), &number.to_string())).await);
    }
    let seen: Vec<_> = turns.iter().map(|turn| (turn.id, 1)).collect();
    let changed = async |seen: &[(TurnId, Version)]| store.changed_turns(seen).await.expect("turns are read");
    assert_eq!(changed(&seen).await, []);

    turns[1].begin(&*store).await;

    assert_eq!(changed(&seen).await, [turns[1].id]);
    let missing = TurnId::new(at(9));
    assert_eq!(changed(&[(turns[1].id, 2), (missing, 0)]).await, [missing]);
    assert_eq!(changed(&[]).await, []);
}

/// Each as it is seen by itself.
pub async fn several_turns_are_seen_with_their_versions(subject: &mut impl Subject) {
    let store = subject.store();
    let mut turns = Vec::new();
    for number in 0..3 {
        turns.push(Turn::accept(&*store, said(&chat("a"), &number.to_string())).await);
    }
    let place = turns[1].seq;
    let merged = vec![MergedTurn { turn: turns[1].id.to_string(), place }];
    let absorbed = turns[0].on(Event::Absorbed { turns: merged, owed: Expectation::Answer }, 1);
    let into = turns[0].id.to_string();
    let merged = turns[1].on(Event::Merged { into }, 1);
    done(&*store, Transition { turns: [absorbed.turns, merged.turns].concat(), ..Transition::default() }).await;
    let delivery = turns[0].answer(&*store, "for both").await;
    turns[0].settle(&*store, delivery).await;

    let ids: Vec<_> = turns.iter().map(|turn| turn.id).chain([TurnId::new(at(9))]).collect();
    let mut seen = store.views_of(&ids).await.expect("views are read");
    seen.sort_by_key(|(_, view)| view.seq);
    let mut expected = Vec::new();
    for turn in &turns {
        let view = store.view(turn.id).await.expect("views are read").expect("it is there");
        expected.push((turn.version, view));
    }
    assert_eq!(seen, expected);
    assert_eq!(seen.iter().map(|(_, view)| view.shown.is_some()).collect::<Vec<_>>(), [true, true, false]);
    assert_eq!(store.views_of(&[]).await.expect("views are read"), []);
}

/// The latest text of the latest run.
pub async fn what_a_run_says_is_kept_until_it_is_removed(subject: &mut impl Subject) {
    let store = subject.store();
    let one = Turn::accept(&*store, said(&chat("a"), "1")).await.id;
    let other = Turn::accept(&*store, said(&chat("a"), "2")).await.id;
    let gone = TurnId::new(at(9));
    let put = async |turn: TurnId, run: u32, text: Option<&str>| {
        store.put_draft(turn, run, text).await.expect("it is kept");
    };
    let drafts = async || store.drafts(&[other, gone, one]).await.expect("drafts are read");
    let draft =
        |turn: TurnId, run: u32, text: &str| RunText { turn, conversation: chat("a"), run, text: text.to_owned() };
    let both = |first: RunText, second: RunText| {
        if first.turn < second.turn { [first, second] } else { [second, first] }
    };
    put(one, 1, None).await;
    put(other, 2, Some("a")).await;
    put(gone, 1, Some("a")).await;
    store.remove_old_drafts().await.expect("old ones are removed");
    assert_eq!(drafts().await, both(draft(one, 1, ""), draft(other, 2, "a")));

    put(one, 1, Some("a")).await;
    put(one, 1, Some("ab")).await;
    put(one, 1, None).await;
    put(other, 1, Some("late")).await;
    assert_eq!(drafts().await, both(draft(one, 1, "ab"), draft(other, 2, "a")));

    put(one, 2, None).await;
    store.remove_draft(one, 1).await.expect("that run says nothing any more");
    store.remove_draft(other, 2).await.expect("it is removed");
    assert_eq!(drafts().await, [draft(one, 2, "")]);
}

/// A turn that is not stored has no channel.
pub async fn what_runs_say_on_channels_is_found(subject: &mut impl Subject) {
    let store = subject.store();
    let turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let (here, elsewhere) = (ChannelId::new("test", "main"), ChannelId::new("other", "main"));
    let found = async |channels: &[ChannelId]| store.drafts_on(channels).await.expect("drafts are read");
    assert_eq!(found(std::slice::from_ref(&here)).await, []);

    for turn in [turn.id, TurnId::new(at(9))] {
        store.put_draft(turn, 1, Some("so far")).await.expect("it is kept");
    }

    assert_eq!(found(&[here.clone(), elsewhere.clone()]).await, [turn.id]);
    assert_eq!(found(&[elsewhere]).await, []);
    store.remove_draft(turn.id, 1).await.expect("it is removed");
    assert_eq!(found(&[here]).await, []);
}

/// Another node writes a line of a session that this one has read.
pub async fn a_shared_store_answers_as_another_one_has_written(subject: &mut impl Subject) {
    let (one, other) = (subject.store(), subject.another().await);
    let turn = Turn::accept(&*one, said(&chat("a"), "1")).await;
    let lines = async || one.transcript(turn.session, 10).await.expect("lines are read").len();
    one.set_shared(true);
    one.set_shared(false);
    assert_eq!((lines().await, lines().await), (0, 0), "the second time, it may be cached");
    one.set_shared(true);
    assert_eq!((lines().await, lines().await), (0, 0));

    let said = |claim: u32, speaker: Speaker| {
        let (text, state) = (format!("text of {claim}"), LineState::Seen);
        let line = HistoryLine { spoken: false, speaker, author: None, forwarded: None, text, at: at(1), state };
        TranscriptLine { session: turn.session, turn: turn.id, seq: turn.seq, claim, line }
    };
    let write = async |store: &dyn Store, line: TranscriptLine| {
        done(store, Transition { transcript: vec![line], ..Transition::default() }).await;
    };
    // A store that admits one process answers from memory: nobody else writes.
    let is_alone = timeout(LONGEST, one.hints().recv()).await.expect("a store listens, or has no hints").is_err();
    write(&*other, said(0, Speaker::Person)).await;
    assert!(is_alone || lines().await == 1);

    write(&*one, said(1, Speaker::Person)).await;
    assert!(is_alone || lines().await == 2);
    write(&*other, said(2, Speaker::Person)).await;
    assert!(is_alone || lines().await == 3);
    other.close().await;
}
