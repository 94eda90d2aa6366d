//! Checks of accepting events.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use rejoinder_guard::Attachment;

use super::{
    subject::Subject,
    turn::{START, Turn, accept_one, at, chat, gone, main, new_turn, policy, runs_left, said},
};
use crate::{
    model::{
        conversation::{ChannelId, ChatKind, ConversationRef},
        event::{Author, Directed, EventKind, InboundEvent, Quote, Sender, SenderKind},
        ids::TurnId,
        language::Language,
        trace::CallerTrace,
        voice::{Unheard, Voice},
    },
    ports::store::{
        accept::{Beside, CursorMove, EarlierMessage, NewEvent, Stored},
        transition::RunStart,
    },
};

/// The result when the event with the key 1 arrives again.
fn duplicate(turn: Option<TurnId>) -> Stored {
    let message = EarlierMessage { text: "text of 1".to_owned(), sender: "ann".to_owned(), seal_to: None };
    Stored::Duplicate { turn, message: Some(message) }
}

fn turn_of(event: &NewEvent) -> TurnId {
    event.turn.as_ref().expect("it has a turn").id
}

/// E1, E6.
pub async fn an_event_is_accepted_once(subject: &mut impl Subject) {
    let store = subject.store();
    let first = new_turn(said(&chat("a"), "1"));
    let mut again = new_turn(said(&chat("a"), "1"));
    let bob = Sender { id: "bob".to_owned(), ..again.event.sender.clone() };
    again.event = Arc::new(InboundEvent { text: "something else".to_owned(), sender: bob, ..(*again.event).clone() });
    let (id, other) = (turn_of(&first), turn_of(&again));

    let stored = accept_one(&*store, first).await;
    assert!(matches!(stored, Stored::Turn { has_history: false, .. }), "{stored:?}");
    let stored = accept_one(&*store, again).await;
    assert_eq!(stored, duplicate(Some(id)));
    assert!(store.turn(id).await.expect("turns are read").is_some());
    assert!(store.turn(other).await.expect("turns are read").is_none());
}

/// E6.
pub async fn the_same_event_twice_at_once_is_one_turn(subject: &mut impl Subject) {
    let store = subject.store();
    let events: Vec<NewEvent> = ["1", "2", "1", "3", "2"].iter().map(|key| new_turn(said(&chat("a"), key))).collect();
    let ids: Vec<TurnId> = events.iter().map(turn_of).collect();
    // The same event with the same id, as a caller sends it again after it got no result.
    let mut events = events;
    events.push(events[3].clone());

    let stored = store.accept(events, None).await.expect("events are accepted");
    let turn = |stored: &Stored| match stored {
        Stored::Turn { .. } => None,
        Stored::Duplicate { turn, .. } => *turn,
        Stored::Kept
        | Stored::Unknown
        | Stored::Picked { .. }
        | Stored::Expired
        | Stored::Amended { .. }
        | Stored::Busy => panic!("every event is a turn"),
    };
    let turns: Vec<Option<TurnId>> = stored.iter().map(turn).collect();
    assert_eq!(turns, [None, None, Some(ids[0]), None, Some(ids[1]), Some(ids[3])]);
    assert_eq!(store.backlog().await.expect("the backlog is read").waiting, 3);
}

/// E6.
pub async fn of_many_that_bring_the_same_event_one_opens_the_turn(subject: &mut impl Subject) {
    let store = subject.store();
    let tasks = (0..64).map(|_| {
        let store = Arc::clone(&store);
        tokio::spawn(async move { accept_one(&*store, new_turn(said(&chat("a"), "1"))).await })
    });
    let stored: Vec<Stored> = join_all(tasks).await.into_iter().map(|stored| stored.expect("no task fails")).collect();

    assert_eq!(stored.iter().filter(|stored| matches!(stored, Stored::Turn { .. })).count(), 1);
    let waiting = store.waiting(10).await.expect("turns are read");
    assert_eq!(waiting.len(), 1);
    let duplicate = duplicate(Some(waiting[0].turn));
    assert_eq!(stored.iter().filter(|stored| **stored == duplicate).count(), 63);
}

/// An edited message arrives with the next revision.
pub async fn a_revision_is_an_event_of_its_own(subject: &mut impl Subject) {
    let store = subject.store();
    let event = said(&chat("a"), "1");
    let edited = InboundEvent { revision: 1, ..event.clone() };
    assert!(matches!(accept_one(&*store, new_turn(event)).await, Stored::Turn { .. }));
    assert!(matches!(accept_one(&*store, new_turn(edited)).await, Stored::Turn { .. }));
}

/// Keys come from the platform, so they are unique only within a channel.
pub async fn the_same_key_on_another_channel_is_another_event(subject: &mut impl Subject) {
    let store = subject.store();
    let elsewhere = ConversationRef::new(ChannelId::new("test", "other"), "a");
    assert!(matches!(accept_one(&*store, new_turn(said(&chat("a"), "1"))).await, Stored::Turn { .. }));
    assert!(matches!(accept_one(&*store, new_turn(said(&elsewhere, "1"))).await, Stored::Turn { .. }));
    assert!(matches!(accept_one(&*store, new_turn(said(&chat("b"), "1"))).await, Stored::Duplicate { .. }));
}

/// O1: of an event without a turn, such as another agent's message, only the key is stored.
pub async fn what_is_no_turn_is_known_by_its_key_alone(subject: &mut impl Subject) {
    let store = subject.store();
    let kept = || NewEvent { turn: None, ..new_turn(said(&chat("a"), "1")) };
    assert_eq!(accept_one(&*store, kept()).await, Stored::Kept);
    assert_eq!(accept_one(&*store, kept()).await, Stored::Duplicate { turn: None, message: None });
    assert!(store.waiting(10).await.expect("turns are read").is_empty());
}

/// Of an event that is only looked for nothing is stored, so that it may come again. A known one is a duplicate.
pub async fn what_is_only_looked_for_is_not_stored(subject: &mut impl Subject) {
    let store = subject.store();
    let looked_for = |key: &str| NewEvent { turn: None, only_if_known: true, ..new_turn(said(&chat("a"), key)) };
    let known = new_turn(said(&chat("a"), "1"));
    let turn = turn_of(&known);
    accept_one(&*store, known).await;

    let batch = vec![looked_for("2"), new_turn(said(&chat("a"), "3")), looked_for("1"), looked_for("4")];
    let stored = store.accept(batch, None).await.expect("events are accepted");

    assert!(matches!(stored[1], Stored::Turn { .. }), "{stored:?}");
    assert_eq!([&stored[0], &stored[3]], [&Stored::Unknown; 2]);
    assert_eq!(stored[2], duplicate(Some(turn)));
    assert!(matches!(accept_one(&*store, new_turn(said(&chat("a"), "2"))).await, Stored::Turn { .. }));
}

/// The first turn of a conversation decides its ids; those that later turns propose are ignored.
pub async fn turns_of_a_conversation_share_it_and_its_session(subject: &mut impl Subject) {
    let store = subject.store();
    let events = ["1", "2"].iter().map(|key| new_turn(said(&chat("a"), key))).collect();
    let stored = store.accept(events, None).await.expect("events are accepted");
    let numbers = |stored: &Stored| match stored {
        Stored::Turn { seq, conversation, session, has_history: false } => (*seq, (*conversation, *session)),
        other => panic!("it should be a turn, and is {other:?}"),
    };
    let [(1, first), (2, second)] = [numbers(&stored[0]), numbers(&stored[1])] else { panic!("{stored:?}") };
    assert_eq!(first, second);
    let third = accept_one(&*store, new_turn(said(&chat("a"), "3"))).await;
    assert_eq!(numbers(&third), (3, first));
    let elsewhere = accept_one(&*store, new_turn(said(&chat("b"), "4"))).await;
    assert_ne!(numbers(&elsewhere).1, first);
}

/// L2.
pub async fn a_thread_is_a_conversation_of_its_own(subject: &mut impl Subject) {
    let store = subject.store();
    let chat = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let thread = chat.address.clone().in_thread("7");
    let thread = Turn::accept(&*store, said(&thread, "2")).await;
    assert_ne!(chat.conversation, thread.conversation);
    let record = store.turn(thread.id).await.expect("turns are read").expect("the turn is there");
    assert_eq!(record.event.conversation, thread.address);
}

/// A duplicate key does not open the other conversation that it names.
pub async fn a_duplicate_opens_no_conversation(subject: &mut impl Subject) {
    let store = subject.store();
    accept_one(&*store, new_turn(said(&chat("a"), "1"))).await;
    let again = new_turn(said(&chat("b"), "1"));
    let proposed = again.turn.as_ref().expect("it has a turn").conversation;
    accept_one(&*store, again).await;
    let turn = Turn::accept(&*store, said(&chat("b"), "2")).await;
    assert_ne!(turn.conversation, proposed);
}

/// E1.
pub async fn a_cursor_moves_with_the_events_it_covers(subject: &mut impl Subject) {
    let store = subject.store();
    let channel = ChannelId::new("test", "main");
    let to = |name: &str, position: &str| {
        let (channel, name, position) = (channel.clone(), name.to_owned(), position.to_owned());
        Some(Beside::Cursor(CursorMove { channel, name, position, fence: None }))
    };
    let cursor = async |name| store.cursor(&channel, name).await.expect("cursors are read");

    assert_eq!(cursor("updates").await, None);
    let event = new_turn(said(&chat("a"), "1"));
    store.accept(vec![event.clone()], to("updates", "5")).await.expect("events are accepted");
    assert_eq!(cursor("updates").await.as_deref(), Some("5"));
    store.accept(vec![event], to("updates", "6")).await.expect("duplicates are accepted");
    assert_eq!(cursor("updates").await.as_deref(), Some("6"));
    store.accept(Vec::new(), to("room", "x")).await.expect("a cursor moves alone");
    assert_eq!(cursor("room").await.as_deref(), Some("x"));
    assert_eq!(cursor("updates").await.as_deref(), Some("6"));
}

/// E1, E4.
pub async fn what_cannot_be_accepted_whole_changes_nothing(subject: &mut impl Subject) {
    let store = subject.store();
    let known = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let good = new_turn(said(&chat("b"), "2"));
    let mut bad = new_turn(said(&chat("c"), "3"));
    bad.turn.as_mut().expect("it has a turn").id = known.id;
    let channel = ChannelId::new("test", "main");
    let cursor =
        CursorMove { channel: channel.clone(), name: "updates".to_owned(), position: "9".to_owned(), fence: None };

    let good_id = turn_of(&good);
    store.accept(vec![good.clone(), bad], Some(Beside::Cursor(cursor))).await.expect_err("a turn's id is used once");
    assert!(store.turn(good_id).await.expect("turns are read").is_none());
    assert_eq!(store.cursor(&channel, "updates").await.expect("cursors are read"), None);
    assert!(matches!(accept_one(&*store, good).await, Stored::Turn { .. }));
}

/// D10: all fields are stored unchanged.
pub async fn a_turn_is_read_back_as_it_was_accepted(subject: &mut impl Subject) {
    let store = subject.store();
    let event = InboundEvent {
        chat: ChatKind::Group,
        revision: 4,
        message_id: Some("77".to_owned()),
        sender: Sender {
            id: "bo".to_owned(),
            name: Some("Bo \"B\" Ö".to_owned()),
            username: None,
            kind: SenderKind::Person,
        },
        kind: EventKind::Choice { turn: TurnId::new(START) },
        directed: Directed::Mention,
        text: "multi\nline 'quotes' \"double\" \\ back\u{1}bell 🦀 \u{1f468}\u{200d}\u{1f469}".to_owned(),
        attachments: vec![Attachment {
            name: "a.png".to_owned(),
            media_type: "image/png".to_owned(),
            url: "https://example.org/a.png".to_owned(),
        }],
        voice: Some(Voice::lasting(Some(3.0)).failed(Unheard::TooLong)),
        quoted: Some(Quote {
            author: Author {
                id: Some("cy".to_owned()),
                username: Some("cy_2".to_owned()),
                is_stranger: true,
                ..Author::ourselves().elsewhere()
            },
            text: "before\u{1}".to_owned(),
            attachments: vec![Attachment {
                name: "b.png".to_owned(),
                media_type: "image/png".to_owned(),
                url: "https://example.org/b.png".to_owned(),
            }],
            message_id: Some("76".to_owned()),
        }),
        said: Some("the second".to_owned()),
        forwarded: Some(Author { name: Some("Di \"D\"".to_owned()), ..Author::default() }),
        patience: Some(Duration::from_millis(1500)),
        amends: None,
        part_of: Some("album \"1\"".to_owned()),
        more_within: Some(Duration::from_secs(1)),
        language: Language::of("de"),
        trace: CallerTrace::read("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", Some("a=1")),
        received_at: at(9),
        raw: "not json \u{1}\t{]".to_owned(),
        ..said(&chat("a").in_thread("t"), "key \"with\" quotes")
    };
    let turn = Turn::accept(&*store, event.clone()).await;
    let record = store.turn(turn.id).await.expect("turns are read").expect("the turn is there");
    assert_eq!(*record.event, event);
    assert_eq!(record.obligation, turn.obligation);
    assert_eq!((record.id, record.version, record.runs), (turn.id, 1, 0));
    assert_eq!((record.conversation, record.session), (turn.conversation, turn.session));
    assert_eq!((record.handler, record.has_history), (main(), false));
}

/// A turn whose conversation is free is stored as running.
pub async fn a_run_can_start_with_the_turn(subject: &mut impl Subject) {
    let store = subject.store();
    let mut event = new_turn(said(&chat("a"), "1"));
    let turn = event.turn.as_mut().expect("it has a turn");
    let _ = turn.obligation.on(rejoinder_guard::Event::Begin, &policy(), START);
    turn.run = Some(RunStart { turn: turn.id, number: 1, handler: main(), node: gone(), at: START });
    let id = turn.id;

    accept_one(&*store, event).await;
    assert_eq!(runs_left(&*store).await, [id]);
    assert!(store.waiting(10).await.expect("turns are read").is_empty());
    let record = store.turn(id).await.expect("turns are read").expect("the turn is there");
    assert_eq!(record.runs, 1);
}
