//! Checks of questions: what is asked, the first pick, and the end of the time for it.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;

use super::{
    subject::Subject,
    turn::{START, Turn, accept_one, at, chat, deliveries, done, new_turn, said},
};
use crate::{
    model::{
        event::{Amends, EventKind, InboundEvent, Sender},
        ids::TurnId,
        log::LogFilter,
        question::{AskedQuestion, QuestionFilter, QuestionRecord},
        stored_delivery::{DeliveryRecord, DeliveryState},
        voice::{Heard, Voice},
    },
    ports::store::{
        Store,
        accept::{EarlierMessage, NewEvent, Stored},
        list::{TurnFilter, TurnListState},
        transition::{ClosedQuestion, Transition},
    },
};

fn turn_of(event: &NewEvent) -> TurnId {
    event.turn.as_ref().expect("it has a turn").id
}

/// A press on the button `choice` of the question that answered the turn `question`. `key` is the event's key.
fn pick(question: &Turn, key: &str, sender: &str, choice: &str) -> NewEvent {
    let event = said(&question.address, key);
    let sender = Sender { id: sender.to_owned(), ..event.sender.clone() };
    let kind = EventKind::Choice { turn: question.id };
    new_turn(InboundEvent { kind, sender, text: choice.to_owned(), ..event })
}

/// Answers a turn with a question that `chooser` may pick from.
async fn ask(store: &dyn Store, question: &Turn, chooser: Option<&str>) {
    let asked = AskedQuestion { chooser: chooser.map(str::to_owned), ..question.question() };
    done(store, Transition { questions: vec![asked], ..deliveries([question.delivery(1, "Well?")]) }).await;
}

/// Answers a turn with this question, and stores that the person has it.
async fn ask_and_show(store: &dyn Store, question: &mut Turn, asked: AskedQuestion) {
    let delivery = question.answer(store, "Well?").await;
    done(store, Transition { questions: vec![asked], ..Transition::default() }).await;
    question.settle(store, delivery).await;
}

async fn open_in(store: &dyn Store, turn: &Turn) -> Vec<QuestionRecord> {
    store.questions(QuestionFilter::OpenIn(turn.conversation), 10).await.expect("questions are read")
}

async fn has_open(store: &dyn Store, turn: &Turn) -> bool {
    let here = store.arrival(&turn.address).await.expect("conversations are read").expect("it is there");
    here.has_open_question
}

async fn picked(store: &dyn Store, turn: TurnId) -> Option<String> {
    store.view(turn).await.expect("views are read").expect("the turn is there").picked
}

async fn asked(store: &dyn Store) -> Vec<TurnId> {
    let now = Some(START + Duration::from_hours(24));
    let filter = TurnFilter { state: Some(TurnListState::Asked), limit: 10, now, ..TurnFilter::default() };
    store.list_turns(&filter).await.expect("lists are read").into_iter().map(|turn| turn.turn_id).collect()
}

/// A question waits for the person until they pick, or write something else.
pub async fn a_question_that_was_shown_waits_for_the_person(subject: &mut impl Subject) {
    let store = subject.store();
    let mut questions = Vec::new();
    for address in ["a", "b", "c"] {
        let mut question = Turn::accept(&*store, said(&chat(address), address)).await;
        let delivery = question.answer(&*store, "Well?").await;
        done(&*store, Transition { questions: vec![question.question()], ..Transition::default() }).await;
        assert!(!asked(&*store).await.contains(&question.id), "it is not sent yet");
        question.settle(&*store, delivery).await;
        questions.push(question);
    }
    let [one, other, third] = [&questions[0], &questions[1], &questions[2]].map(|question| question.id);
    assert_eq!(asked(&*store).await, [third, other, one]);

    accept_one(&*store, pick(&questions[0], "a pick", "bob", "Yes")).await;
    Turn::accept(&*store, said(&chat("b"), "something else")).await;

    assert_eq!(asked(&*store).await, [third]);
}

/// Only the first pick opens a turn, also after a restart.
pub async fn the_first_pick_answers_a_question_and_later_ones_are_kept(subject: &mut impl Subject) {
    let store = subject.store();
    let question = Turn::accept(&*store, said(&chat("a"), "1")).await;
    ask(&*store, &question, None).await;
    assert_eq!(picked(&*store, question.id).await, None);
    let first = pick(&question, "first", "bob", "Yes");
    let too_late = || Stored::Picked { choice: "Yes".to_owned() };

    let both = store.accept(vec![first.clone(), pick(&question, "double tap", "bob", "Yes")], None).await;
    let both = both.expect("events are accepted");
    assert!(matches!(both[0], Stored::Turn { .. }), "{both:?}");
    assert_eq!(both[1], too_late());
    assert_eq!(picked(&*store, question.id).await.as_deref(), Some("Yes"));
    drop(store);
    subject.reopen().await;

    let store = subject.store();
    assert_eq!(accept_one(&*store, pick(&question, "other", "ann", "No")).await, too_late());
    // The platform sends the first pick again: its acknowledgement was lost.
    let turn = turn_of(&first);
    let message = EarlierMessage { text: "Yes".to_owned(), sender: "bob".to_owned(), seal_to: None };
    let again = Stored::Duplicate { turn: Some(turn), message: Some(message) };
    assert_eq!(accept_one(&*store, first).await, again);
    assert_eq!(store.backlog().await.expect("the backlog is read").waiting, 2);
    assert_eq!(picked(&*store, question.id).await.as_deref(), Some("Yes"));
    assert_eq!(picked(&*store, turn).await, None);
}

/// A voice note says nothing until its words have come. Then it answers the question that they pick from, with the turn that it has.
pub async fn what_is_said_picks_in_its_place(subject: &mut impl Subject) {
    let store = subject.store();
    let mut question = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let asked = question.question();
    ask_and_show(&*store, &mut question, asked).await;
    let voice = |heard| Some(Voice { heard, ..Voice::lasting(None) });
    let spoken = InboundEvent { voice: voice(Heard::Awaited), received_at: at(3), ..said(&chat("a"), "2") };
    let turn = Turn::accept(&*store, spoken.clone()).await;
    assert!(!open_in(&*store, &question).await[0].is_overtaken);
    let written = Turn::accept(&*store, InboundEvent { received_at: at(3), ..said(&chat("a"), "3") }).await;
    assert!(open_in(&*store, &question).await[0].is_overtaken);

    let pick = InboundEvent {
        revision: 1,
        amends: Some(Amends::Replaces),
        kind: EventKind::Choice { turn: question.id },
        text: "Yes".to_owned(),
        said: Some("The first one.".to_owned()),
        voice: voice(Heard::Words),
        ..spoken
    };
    let new = NewEvent { turn: None, ..new_turn(pick) };

    assert_eq!(accept_one(&*store, new).await, Stored::Amended { turn: turn.id });
    assert_eq!(picked(&*store, question.id).await.as_deref(), Some("Yes"));
    assert_eq!(open_in(&*store, &question).await, []);
    let event = store.turn(turn.id).await.expect("turns are read").expect("it is there").event;
    assert_eq!((&*event.text, event.said.as_deref()), ("Yes", Some("The first one.")));
    assert_eq!(event.kind, EventKind::Choice { turn: question.id });
    let waiting = store.waiting_turns(turn.conversation, 10).await.expect("turns are read");
    assert_eq!(waiting.iter().map(|turn| turn.id).collect::<Vec<_>>(), [turn.id, written.id]);
}

/// A question is open from when it is asked until the first pick, also over a restart.
pub async fn a_question_is_open_until_it_is_picked_from(subject: &mut impl Subject) {
    let store = subject.store();
    let mut question = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let asked = AskedQuestion { chooser: Some("ann".to_owned()), free_text: false, ..question.question() };
    let delivery = question.answer(&*store, "Well?").await;
    done(&*store, Transition { questions: vec![asked.clone()], ..Transition::default() }).await;
    let record =
        |is_shown, message_ids| QuestionRecord { question: asked.clone(), is_overtaken: false, is_shown, message_ids };
    assert_eq!(open_in(&*store, &question).await, [record(false, Vec::new())]);
    question.settle(&*store, delivery).await;
    drop(store);
    subject.reopen().await;

    let store = subject.store();
    assert_eq!(open_in(&*store, &question).await, [record(true, vec!["m".to_owned()])]);
    assert!(has_open(&*store, &question).await);
    accept_one(&*store, pick(&question, "a pick", "ann", "Yes")).await;

    assert_eq!(open_in(&*store, &question).await, []);
    assert!(!has_open(&*store, &question).await);
    let found = store.questions(QuestionFilter::Of(question.id), 1).await.expect("questions are read");
    assert_eq!(found, [record(true, vec!["m".to_owned()])]);
}

/// The latest question of a conversation comes first.
pub async fn open_questions_are_read_latest_first(subject: &mut impl Subject) {
    let store = subject.store();
    let mut turns = Vec::new();
    for key in ["1", "2"] {
        let mut turn = Turn::accept(&*store, said(&chat("a"), key)).await;
        let asked = turn.question();
        ask_and_show(&*store, &mut turn, asked).await;
        turns.push(turn);
    }
    let open: Vec<_> = open_in(&*store, &turns[0]).await.iter().map(|record| record.question.turn).collect();
    assert_eq!(open, [turns[1].id, turns[0].id]);
    let asked_with = async |filter| {
        let found = store.questions(filter, 10).await.expect("questions are read");
        found.iter().map(|record| record.question.turn).collect::<Vec<_>>()
    };
    assert_eq!(asked_with(QuestionFilter::OpenAs(turns[0].conversation, "m")).await, open);
    assert_eq!(asked_with(QuestionFilter::OpenAs(turns[0].conversation, "n")).await, []);
    assert_eq!(asked_with(QuestionFilter::Besides(turns[0].id, "m")).await, []);
    done(
        &*store,
        Transition { questions: vec![AskedQuestion { claim: 2, ..turns[0].question() }], ..Transition::default() },
    )
    .await;
    assert_eq!(asked_with(QuestionFilter::Besides(turns[0].id, "m")).await, [turns[0].id]);
    assert_eq!(asked_with(QuestionFilter::OpenBy(turns[0].conversation, "late_asks")).await, []);
}

/// A question that is closed without a word is not picked from any more.
pub async fn a_question_that_nobody_needs_to_answer_is_closed(subject: &mut impl Subject) {
    let store = subject.store();
    let mut question = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let asked = question.question();
    ask_and_show(&*store, &mut question, asked).await;
    let closed = ClosedQuestion { turn: question.id, at: at(5) };
    let close = Transition { closed_questions: vec![closed], ..Transition::default() };
    for _ in 0..2 {
        done(&*store, close.clone()).await;
    }

    assert_eq!(open_in(&*store, &question).await, []);
    assert_eq!(accept_one(&*store, pick(&question, "a pick", "ann", "Yes")).await, Stored::Expired);
    let log = store.log(&LogFilter { limit: 100, ..LogFilter::default() }).await.expect("the log is read");
    assert_eq!(log.iter().filter(|entry| entry.topic == "question.expired").count(), 1);
}

/// The event that closes a question which has expired. `key` is the event's key.
fn expiry(question: &Turn, key: &str) -> NewEvent {
    let kind = EventKind::Expired { turn: question.id };
    new_turn(InboundEvent { kind, received_at: at(50), ..said(&question.address, key) })
}

/// A question that has expired is closed once, and nobody picks from it any more. What somebody says is still a turn.
pub async fn a_question_that_expires_is_closed_once(subject: &mut impl Subject) {
    let store = subject.store();
    let mut question = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let asked = AskedQuestion { expires_at: Some(at(50)), ..question.question() };
    ask_and_show(&*store, &mut question, asked).await;
    let due = async |store: &dyn Store, seconds| {
        store.questions(QuestionFilter::DueAt(at(seconds)), 10).await.expect("questions are read").len()
    };
    assert_eq!((due(&*store, 49).await, due(&*store, 50).await), (0, 1));
    assert_eq!(store.next_question_expiry().await.expect("questions are read"), Some(at(50)));
    let late = |key: &str, said: Option<&str>| {
        let NewEvent { event, .. } = pick(&question, key, "ann", "Yes");
        let said = said.map(str::to_owned);
        new_turn(InboundEvent { received_at: at(50), said, ..(*event).clone() })
    };
    assert_eq!(accept_one(&*store, late("a press", None)).await, Stored::Expired);
    assert_eq!(due(&*store, 50).await, 1, "it is not closed yet");

    assert!(matches!(accept_one(&*store, expiry(&question, "expired")).await, Stored::Turn { .. }));

    assert_eq!((due(&*store, 50).await, open_in(&*store, &question).await), (0, Vec::new()));
    assert_eq!(store.next_question_expiry().await.expect("questions are read"), None);
    assert_eq!(accept_one(&*store, expiry(&question, "expired again")).await, Stored::Kept);
    assert_eq!(accept_one(&*store, late("another press", None)).await, Stored::Expired);
    assert!(matches!(accept_one(&*store, late("words", Some("1"))).await, Stored::Turn { .. }));
    assert_eq!(picked(&*store, question.id).await, None);
}

/// Nobody is told that a question has expired which they were not shown, or have answered in their own words.
pub async fn of_an_expired_question_those_are_told_who_wait_for_it(subject: &mut impl Subject) {
    let store = subject.store();
    for (address, free_text, chooser, is_told) in [
        ("free", true, None, false),
        ("strict", false, None, true),
        ("theirs", true, Some("ann"), false),
        ("another's", true, Some("bob"), true),
    ] {
        let mut question = Turn::accept(&*store, said(&chat(address), address)).await;
        let chooser = chooser.map(str::to_owned);
        let asked = AskedQuestion { free_text, chooser, expires_at: Some(at(50)), ..question.question() };
        ask_and_show(&*store, &mut question, asked).await;
        let answer = said(&chat(address), &format!("ann answers {address}"));
        Turn::accept(&*store, InboundEvent { received_at: at(3), ..answer }).await;
        let stored = accept_one(&*store, expiry(&question, &format!("expired {address}"))).await;
        assert_eq!(matches!(stored, Stored::Turn { .. }), is_told, "{address}: {stored:?}");
    }
    let refused = Turn::accept(&*store, said(&chat("refused"), "refused")).await;
    let record = DeliveryRecord { state: DeliveryState::Refused, ..refused.delivery(1, "Well?") };
    let asked = AskedQuestion { expires_at: Some(at(50)), ..refused.question() };
    done(&*store, Transition { questions: vec![asked], ..deliveries([record]) }).await;
    assert_eq!(accept_one(&*store, expiry(&refused, "expired refused")).await, Stored::Kept);
}

/// What a person wrote is kept beside the choice that it picks: by that a repeated message is known.
pub async fn words_that_pick_are_known_again(subject: &mut impl Subject) {
    let store = subject.store();
    let question = Turn::accept(&*store, said(&chat("a"), "1")).await;
    ask(&*store, &question, None).await;
    let NewEvent { event, .. } = pick(&question, "words", "ann", "No");
    let event = InboundEvent { said: Some("the second".to_owned()), ..(*event).clone() };
    let first = new_turn(event.clone());
    let turn = turn_of(&first);
    assert!(matches!(accept_one(&*store, first).await, Stored::Turn { .. }));

    let again = accept_one(&*store, new_turn(event)).await;

    let message = EarlierMessage { text: "the second".to_owned(), sender: "ann".to_owned(), seal_to: None };
    assert_eq!(again, Stored::Duplicate { turn: Some(turn), message: Some(message) });
    assert_eq!(picked(&*store, question.id).await.as_deref(), Some("No"));
}

/// Of 64 simultaneous picks, one opens a turn and the others learn its choice.
pub async fn of_64_picks_at_once_one_answers(subject: &mut impl Subject) {
    let store = subject.store();
    let question = Turn::accept(&*store, said(&chat("a"), "1")).await;
    ask(&*store, &question, None).await;
    let tasks = (0..64).map(|number| {
        let (store, pick) = (Arc::clone(&store), pick(&question, &format!("p{number}"), "ann", &number.to_string()));
        tokio::spawn(async move { accept_one(&*store, pick).await })
    });
    let stored: Vec<Stored> = join_all(tasks).await.into_iter().map(|stored| stored.expect("no task fails")).collect();

    let first = stored.iter().position(|stored| matches!(stored, Stored::Turn { .. })).expect("one is first");
    let others = stored.iter().filter(|stored| **stored == Stored::Picked { choice: first.to_string() });
    assert_eq!(others.count(), 63);
    assert_eq!(picked(&*store, question.id).await, Some(first.to_string()));
}

/// If a question names its chooser, picks of others are ignored.
pub async fn only_who_was_asked_picks(subject: &mut impl Subject) {
    let store = subject.store();
    let question = Turn::accept(&*store, said(&chat("a"), "1")).await;
    ask(&*store, &question, Some("ann")).await;

    assert_eq!(accept_one(&*store, pick(&question, "bob", "bob", "No")).await, Stored::Kept);
    assert_eq!(picked(&*store, question.id).await, None);
    let stored = accept_one(&*store, pick(&question, "ann", "ann", "Yes")).await;
    assert!(matches!(stored, Stored::Turn { .. }), "{stored:?}");
    assert_eq!(
        accept_one(&*store, pick(&question, "bob 2", "bob", "No")).await,
        Stored::Picked { choice: "Yes".to_owned() }
    );
}

/// A pick without a turn (its sender is unauthorised) answers nothing. Picks of an unknown question are turns.
pub async fn a_pick_of_nothing_is_a_turn(subject: &mut impl Subject) {
    let store = subject.store();
    let question = Turn::accept(&*store, said(&chat("a"), "1")).await;
    ask(&*store, &question, None).await;

    let stranger = NewEvent { turn: None, ..pick(&question, "stranger", "eve", "No") };
    assert_eq!(accept_one(&*store, stranger).await, Stored::Kept);
    assert_eq!(picked(&*store, question.id).await, None);
    let unknown = Turn { id: TurnId::new(START), ..question };
    for key in ["one", "two"] {
        let stored = accept_one(&*store, pick(&unknown, key, "ann", "Yes")).await;
        assert!(matches!(stored, Stored::Turn { .. }), "{stored:?}");
    }
}
