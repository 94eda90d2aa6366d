//! Checks of events that change earlier ones: edits, deletions, continuations, and chats that get another id.

use std::{sync::Arc, time::Duration};

use tokio::time::timeout;

use super::{
    subject::Subject,
    turn::{Turn, accept_one, at, chat, deliveries, done, gone, me, new_turn, said},
};
use crate::{
    model::{
        agent::{HistoryLine, LineState, Speaker},
        conversation::ConversationRef,
        delivery::{Action, Content},
        event::{Amends, EventKind, InboundEvent},
        ids::TurnId,
        stored_delivery::{DeliveryRecord, DeliveryState},
        turn::Handler,
    },
    ports::store::{
        Store,
        accept::{NewEvent, Stored},
        transition::{AttemptStart, Commit, DeliveryChange, TranscriptLine, Transition},
    },
};

async fn event(store: &dyn Store, turn: TurnId) -> Arc<InboundEvent> {
    store.turn(turn).await.expect("turns are read").expect("the turn is there").event
}

/// An edit of the event with the key 1.
fn edit(revision: i64, text: &str) -> NewEvent {
    let event = said(&chat("a"), "1");
    let edited = InboundEvent { revision, amends: Some(Amends::Replaces), text: text.to_owned(), ..event };
    NewEvent { turn: None, ..new_turn(edited) }
}

/// An edit replaces the text of a waiting turn and raises its version, so a writer with the earlier text conflicts.
pub async fn an_edit_changes_a_turn_that_waits(subject: &mut impl Subject) {
    let store = subject.store();
    let mut turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let other = Turn::accept(&*store, said(&chat("a"), "2")).await;

    assert_eq!(accept_one(&*store, edit(5, "better")).await, Stored::Amended { turn: turn.id });
    assert_eq!(&*event(&*store, turn.id).await.text, "better");
    assert_eq!(&*event(&*store, other.id).await.text, "text of 2");
    assert_eq!(store.view(turn.id).await.expect("views are read").expect("it is there").text, "better");
    let begin = turn.on(rejoinder_guard::Event::Begin, 1);
    assert_eq!(store.commit(begin).await.expect("the store answers"), Commit::Conflict);

    let again = accept_one(&*store, edit(5, "better")).await;
    assert!(matches!(again, Stored::Duplicate { turn: Some(known), .. } if known == turn.id), "{again:?}");
    assert_eq!(accept_one(&*store, edit(9, "best")).await, Stored::Amended { turn: turn.id });
    assert_eq!(accept_one(&*store, edit(7, "good")).await, Stored::Kept, "it is older than the stored edit");
    assert_eq!(&*event(&*store, turn.id).await.text, "best");
    assert_eq!(store.backlog().await.expect("the backlog is read").waiting, 2);
}

/// A turn that was deferred has a line when it waits again. Another store has read that.
pub async fn an_edit_changes_the_line_that_another_store_has_read(subject: &mut impl Subject) {
    let (one, other) = (subject.store(), subject.another().await);
    let turn = Turn::accept(&*one, said(&chat("a"), "1")).await;
    done(&*one, Transition { transcript: vec![line(&turn, "text of 1")], ..Transition::default() }).await;
    one.set_shared(true);
    let text = async || one.transcript(turn.session, 10).await.expect("lines are read")[0].text.clone();
    assert_eq!((&*text().await, &*text().await), ("text of 1", "text of 1"));
    // A store that admits one process answers from memory: nobody else writes.
    let heard = timeout(Duration::from_secs(10), one.hints().recv()).await;
    let is_alone = heard.expect("a store listens, or has no hints").is_err();

    assert_eq!(accept_one(&*other, edit(5, "better")).await, Stored::Amended { turn: turn.id });

    assert!(is_alone || text().await == "better");
    other.close().await;
}

/// A deletion marks a waiting turn as withdrawn and raises its version, so a writer that read it before conflicts.
pub async fn what_is_taken_back_is_known_of_the_turn_that_waits(subject: &mut impl Subject) {
    let store = subject.store();
    let mut turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let deletion = |revision: i64| {
        let event = said(&chat("a"), "1");
        let event = InboundEvent { revision, amends: Some(Amends::Withdraws), text: String::new(), ..event };
        NewEvent { turn: None, ..new_turn(event) }
    };

    assert_eq!(accept_one(&*store, deletion(5)).await, Stored::Amended { turn: turn.id });
    let event = event(&*store, turn.id).await;
    assert!(event.is_withdrawn());
    assert_eq!(&*event.text, "text of 1", "the operator can still read the text");
    let begin = turn.on(rejoinder_guard::Event::Begin, 1);
    assert_eq!(store.commit(begin).await.expect("the store answers"), Commit::Conflict);

    let mut other = Turn::accept(&*store, said(&chat("a"), "2")).await;
    other.begin(&*store).await;
    let late = |revision: i64, amends: Amends| {
        let event = InboundEvent { revision, amends: Some(amends), ..said(&chat("a"), "2") };
        NewEvent { turn: None, ..new_turn(event) }
    };
    assert_eq!(accept_one(&*store, late(1, Amends::Withdraws)).await, Stored::Kept, "its turn runs already");

    let deferral = rejoinder_guard::Outcome::Defer { note: None, due: at(60) };
    done(&*store, other.on(rejoinder_guard::Event::Outcome(deferral), 2)).await;
    assert_eq!(accept_one(&*store, late(2, Amends::Replaces)).await, Stored::Kept, "the agent has read it");
    assert_eq!(accept_one(&*store, late(3, Amends::Withdraws)).await, Stored::Amended { turn: other.id });
}

/// After its run has begun, an edit no longer changes a turn.
pub async fn an_edit_of_what_runs_or_has_ended_is_kept(subject: &mut impl Subject) {
    let store = subject.store();
    let mut turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    turn.begin(&*store).await;
    assert_eq!(accept_one(&*store, edit(1, "running")).await, Stored::Kept);
    let mut answer = turn
        .on(rejoinder_guard::Event::Outcome(rejoinder_guard::Outcome::Reply(rejoinder_guard::Reply::text("yes"))), 2);
    answer.deliveries = deliveries([turn.delivery(1, "yes")]).deliveries;
    done(&*store, answer).await;
    assert_eq!(accept_one(&*store, edit(2, "claimed")).await, Stored::Kept);
    let delivery = store.deliveries(turn.id).await.expect("deliveries are read").remove(0).id;
    turn.settle(&*store, delivery).await;
    assert_eq!(accept_one(&*store, edit(3, "ended")).await, Stored::Kept);

    assert_eq!(&*event(&*store, turn.id).await.text, "text of 1");
    assert_eq!(store.backlog().await.expect("the backlog is read").waiting, 0);
}

/// An edit of an unknown event or of one without a turn opens no turn.
pub async fn an_edit_of_what_is_no_turn_is_kept(subject: &mut impl Subject) {
    let store = subject.store();
    let brings_a_turn = NewEvent { turn: new_turn(said(&chat("a"), "1")).turn, ..edit(1, "unseen") };
    assert_eq!(accept_one(&*store, brings_a_turn).await, Stored::Kept);
    assert_eq!(accept_one(&*store, edit(2, "again")).await, Stored::Kept);
    assert!(store.waiting(10).await.expect("turns are read").is_empty());
}

/// An edit that makes its message a command. The earlier turn is left for the command to cancel.
pub async fn an_edit_with_a_turn_opens_it_if_the_earlier_one_waits(subject: &mut impl Subject) {
    let store = subject.store();
    let turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let command = |revision: i64| {
        let mut new = NewEvent { turn: new_turn(said(&chat("a"), "1")).turn, ..edit(revision, "/help") };
        new.turn.as_mut().expect("it is a turn").handler = Handler::Gateway("help".into());
        new
    };
    let opened = command(5);
    let id = opened.turn.as_ref().expect("it is a turn").id;

    let stored = accept_one(&*store, opened.clone()).await;
    assert!(matches!(stored, Stored::Turn { .. }), "{stored:?}");
    let again = accept_one(&*store, opened).await;
    assert!(matches!(again, Stored::Duplicate { turn: Some(known), .. } if known == id), "{again:?}");
    assert_eq!((&*event(&*store, turn.id).await.text, &*event(&*store, id).await.text), ("text of 1", "/help"));
    assert_eq!(accept_one(&*store, command(6)).await, Stored::Kept, "it is the command already");

    let mut running = Turn::accept(&*store, said(&chat("a"), "2")).await;
    running.begin(&*store).await;
    let late = InboundEvent { revision: 1, amends: Some(Amends::Replaces), ..said(&chat("a"), "2") };
    assert_eq!(accept_one(&*store, new_turn(late)).await, Stored::Kept, "its turn runs already");
}

/// Only the sender can edit a message, and only in its chat.
pub async fn nobody_changes_what_another_one_said(subject: &mut impl Subject) {
    let store = subject.store();
    let turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let with = |change: fn(&mut InboundEvent)| {
        let edit = edit(5, "mine");
        let mut event = (*edit.event).clone();
        change(&mut event);
        NewEvent { event: Arc::new(event), ..edit }
    };

    let anothers = with(|event| "another".clone_into(&mut event.sender.id));
    assert_eq!(accept_one(&*store, anothers).await, Stored::Kept);
    let elsewhere = with(|event| {
        event.revision = 6;
        event.conversation = chat("b");
    });
    assert_eq!(accept_one(&*store, elsewhere).await, Stored::Kept);

    assert_eq!(&*event(&*store, turn.id).await.text, "text of 1");
}

fn moved(from: &ConversationRef, to: &str, key: &str) -> NewEvent {
    let kind = EventKind::Moved { chat: to.to_owned() };
    NewEvent { turn: None, ..new_turn(InboundEvent { kind, ..said(from, key) }) }
}

fn line(turn: &Turn, text: &str) -> TranscriptLine {
    let line = HistoryLine {
        spoken: false,
        speaker: Speaker::Person,
        author: None,
        forwarded: None,
        text: text.to_owned(),
        at: at(1),
        state: LineState::Seen,
    };
    TranscriptLine { session: turn.session, turn: turn.id, seq: turn.seq, claim: 0, line }
}

/// All conversations of a chat, one for each thread, continue under its new id.
pub async fn a_chat_that_moves_takes_everything_along(subject: &mut impl Subject) {
    let store = subject.store();
    let (old, new) = (chat("old"), chat("new"));
    let waiting = Turn::accept(&*store, said(&old, "1")).await;
    let topic = Turn::accept(&*store, said(&old.clone().in_thread("t"), "2")).await;
    let elsewhere = Turn::accept(&*store, said(&chat("elsewhere"), "3")).await;
    let sends = DeliveryRecord { state: DeliveryState::Sending, ..waiting.delivery(1, "in flight") };
    let delivery = sends.id;
    done(&*store, deliveries([sends, topic.delivery(1, "in the topic"), elsewhere.delivery(1, "x")])).await;
    let along = Transition {
        attempts_started: vec![AttemptStart { delivery, number: 1, node: gone(), at: at(2) }],
        transcript: vec![line(&waiting, "hello")],
        ..Transition::default()
    };
    done(&*store, along).await;

    assert_eq!(accept_one(&*store, moved(&old, "new", "m")).await, Stored::Kept);
    assert!(matches!(accept_one(&*store, moved(&old, "new", "m")).await, Stored::Duplicate { turn: None, .. }));

    let goes_to = async |turn: &Turn| {
        let next = store.next_deliveries(turn.conversation).await.expect("deliveries are read").list.remove(0);
        (next.id, next.conversation)
    };
    assert_eq!(goes_to(&waiting).await, (delivery, new.clone()));
    assert_eq!(goes_to(&topic).await.1, new.clone().in_thread("t"));
    assert_eq!(goes_to(&elsewhere).await.1, chat("elsewhere"));
    let at = async |address: &ConversationRef| store.conversation(address).await.expect("conversations are read");
    assert_eq!((at(&old).await, at(&new).await), (None, Some(waiting.conversation)));
    let both = store.conversations_at(&[old.clone(), new.clone(), chat("unknown")]).await;
    assert_eq!(both.expect("conversations are read"), [waiting.conversation]);
    let address = store.address(waiting.conversation).await.expect("conversations are read");
    assert_eq!(address, Some(new.clone()));
    assert_eq!(store.attempts_left(Some(me())).await.expect("deliveries are read")[0].conversation, new);
    assert_eq!(event(&*store, waiting.id).await.conversation, new);
    assert_eq!(event(&*store, topic.id).await.conversation, new.clone().in_thread("t"));
    assert_eq!(event(&*store, elsewhere.id).await.conversation, chat("elsewhere"));
    assert_eq!(store.views(&new, None, 10).await.expect("views are read").len(), 1);
    assert!(store.views(&old, None, 10).await.expect("views are read").is_empty());

    let later = accept_one(&*store, new_turn(said(&new, "4"))).await;
    let Stored::Turn { conversation, session, has_history, .. } = later else { panic!("{later:?}") };
    assert_eq!((conversation, session, has_history), (waiting.conversation, waiting.session, true));
    let again = accept_one(&*store, new_turn(said(&old, "1"))).await;
    assert!(matches!(again, Stored::Duplicate { turn: Some(turn), .. } if turn == waiting.id), "{again:?}");
}

/// If messages arrived under the new id before the move was known, there are two conversations at one address. Each
/// finishes its own turns under its own id, and their writers see no conflict. New messages go to the older one.
pub async fn a_chat_that_moves_to_one_that_is_known_is_gone_on_with_as_the_older(subject: &mut impl Subject) {
    let store = subject.store();
    let (old, new) = (chat("old"), chat("new"));
    let first = Turn::accept(&*store, said(&old, "1")).await;
    let mut second = Turn::accept(&*store, said(&new, "2")).await;
    done(&*store, Transition { transcript: vec![line(&first, "hello")], ..Transition::default() }).await;
    done(&*store, deliveries([first.delivery(1, "a")])).await;
    done(&*store, deliveries([second.delivery(1, "b")])).await;

    assert_eq!(accept_one(&*store, moved(&old, "new", "m")).await, Stored::Kept);

    for turn in [&first, &second] {
        let next = store.next_deliveries(turn.conversation).await.expect("deliveries are read").list.remove(0);
        assert_eq!((next.turn, next.conversation), (turn.id, new.clone()));
        assert_eq!(event(&*store, turn.id).await.conversation, new);
    }
    let waiting = store.waiting(10).await.expect("turns are read");
    assert_eq!(waiting.iter().map(|waiting| waiting.turn).collect::<Vec<_>>(), [first.id, second.id]);
    let open = store.open_turns(first.conversation).await.expect("turns are read");
    assert_eq!(open, [first.id, second.id], "a stop reaches both");
    let begin = second.on(rejoinder_guard::Event::Begin, 1);
    assert_eq!(store.commit(begin).await.expect("the store answers"), Commit::Done);
    let later = accept_one(&*store, new_turn(said(&new, "3"))).await;
    let Stored::Turn { conversation, session, has_history, .. } = later else { panic!("{later:?}") };
    assert_eq!((conversation, session, has_history), (first.conversation, first.session, true));

    // The old id is free. If the move is reported again, it applies to the conversation that has begun there since.
    let third = Turn::accept(&*store, said(&old, "4")).await;
    assert!(![first.conversation, second.conversation].contains(&third.conversation));
    assert!(matches!(accept_one(&*store, moved(&old, "new", "m")).await, Stored::Duplicate { .. }));
    assert_eq!(event(&*store, third.id).await.conversation, new);
    let at = async |address: &ConversationRef| store.conversation(address).await.expect("conversations are read");
    assert_eq!((at(&old).await, at(&new).await), (None, Some(first.conversation)));

    // All three move to a third address.
    assert_eq!(accept_one(&*store, moved(&new, "third", "n")).await, Stored::Kept);
    for turn in [&first, &second, &third] {
        let address = store.address(turn.conversation).await.expect("conversations are read");
        assert_eq!(address, Some(chat("third")));
        assert_eq!(event(&*store, turn.id).await.conversation, chat("third"));
    }
}

/// Ids do not tell which of two conversations is the older one: the clock may have been set back between two starts.
pub async fn of_two_chats_that_become_one_the_older_goes_on_whatever_its_id(subject: &mut impl Subject) {
    let store = subject.store();
    let with_id = |event: InboundEvent, id: uuid::Uuid| {
        let mut new = new_turn(event);
        new.turn.as_mut().expect("it is a turn").conversation = id.into();
        new
    };
    accept_one(&*store, with_id(said(&chat("old"), "1"), uuid::Uuid::max())).await;
    let old = store.conversation(&chat("old")).await.expect("conversations are read");
    accept_one(&*store, with_id(said(&chat("new"), "2"), uuid::Uuid::nil())).await;

    assert_eq!(accept_one(&*store, moved(&chat("old"), "new", "m")).await, Stored::Kept);

    assert_eq!(store.conversation(&chat("new")).await.expect("conversations are read"), old);
}

/// A stored delivery can change its action: an edit that is impossible becomes a message of its own.
pub async fn a_delivery_can_be_given_something_else_to_do(subject: &mut impl Subject) {
    let store = subject.store();
    let turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    done(&*store, deliveries([turn.delivery(1, "words"), turn.delivery(2, "more")])).await;
    let read = async |claim: usize| store.deliveries(turn.id).await.expect("deliveries are read").remove(claim - 1);
    let (before, other) = (read(1).await, read(2).await);
    let content = Content { text: "words".to_owned(), ..Content::default() };
    let action = Some(Action::Send { content, reply_to: Some("m7".to_owned()) });
    let changed = DeliveryChange { action: action.clone(), ..DeliveryChange::of(&before) };
    done(&*store, Transition { delivery_changes: vec![changed], ..Transition::default() }).await;
    assert_eq!(Some(read(1).await.action), action);
    done(&*store, Transition { delivery_changes: vec![DeliveryChange::of(&before)], ..Transition::default() }).await;
    assert_eq!(Some(read(1).await.action), action, "without an action nothing changes");
    assert_eq!(read(2).await, other);
}
