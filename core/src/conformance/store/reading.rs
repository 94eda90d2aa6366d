//! Checks of finding and viewing turns.

use std::time::Duration;

use rejoinder_guard::{
    Attachment, CancelledBy, Cause, Event, Expectation, Ladder, Obligation, Outcome, Policy, Reply, Rung, SignalKind,
    Via,
};

use super::{
    nodes::{lives, report},
    slots::begun,
    subject::Subject,
    turn::{START, Turn, accept_one, at, chat, deliveries, done, gone, main, me, new_turn, policy, runs_left, said},
};
use crate::{
    model::{
        agent::{HistoryLine, LineState, Speaker},
        conversation::{ChannelId, ConversationRef},
        delivery::{Action, Content},
        event::{InboundEvent, Sender},
        ids::{ConversationId, TurnId},
        stored_delivery::{DeliveryRecord, DeliveryState},
        turn::Handler,
        view::{FallbackView, TurnStatus},
    },
    ports::store::{
        Store,
        list::{TurnFilter, TurnListState},
        nodes::{Granted, LeaseName},
        record::{AbsentChannel, LeftRun, WaitingTurn},
        transition::{AttemptStart, DeliveryChange, TranscriptLine, Transition, TurnChange},
    },
};

/// Accepts `N` turns of one chat, oldest first.
pub(super) async fn turns<const N: usize>(store: &dyn Store, name: &str) -> [Turn; N] {
    let mut turns = Vec::new();
    for number in 0..N {
        turns.push(Turn::accept(store, said(&chat(name), &format!("{name} {number}"))).await);
    }
    turns.try_into().expect("there are as many as were made")
}

/// Accepts an ambient turn: it waits for a run and is owed nothing.
pub(super) async fn ambient(store: &dyn Store, conversation: &ConversationRef, key: &str) -> TurnId {
    let mut event = new_turn(said(conversation, key));
    let turn = event.turn.as_mut().expect("it has a turn");
    turn.obligation = Obligation::open(Expectation::Nothing, &policy(), None, START);
    let id = turn.id;
    accept_one(store, event).await;
    id
}

/// The turns that match `filter`, by their ids.
pub(super) async fn list(store: &dyn Store, filter: TurnFilter) -> Vec<TurnId> {
    let turns = store.list_turns(&filter).await.expect("lists are read");
    turns.into_iter().map(|turn| turn.turn_id).collect()
}

/// The first turns of the conversations that wait, in their order.
async fn first_turns(store: &dyn Store, limit: u32) -> Vec<TurnId> {
    let found = store.waiting(limit).await.expect("turns are read");
    found.iter().map(|found| found.turn).collect()
}

/// D1, D9: a conversation that waits is found with its first turn.
pub async fn what_waits_is_found(subject: &mut impl Subject) {
    let store = subject.store();
    let [mut a1, a2] = turns(&*store, "a").await;
    let [b1, _b2, _b3] = turns(&*store, "b").await;
    let ambient = ambient(&*store, &chat("c"), "ambient").await;
    let oldest = async || first_turns(&*store, 10).await;
    assert_eq!(oldest().await, [a1.id, b1.id, ambient]);
    assert_eq!(first_turns(&*store, 2).await, [a1.id, b1.id]);
    let expected = WaitingTurn {
        turn: a1.id,
        version: 1,
        conversation: a1.conversation,
        channel: ChannelId::new("test", "main"),
        agent: "main".into(),
        owed: true,
        rank: a1.seq,
        position: a1.seq,
        is_alone: false,
    };
    assert_eq!(store.waiting(1).await.expect("turns are read"), [expected]);

    let next = async |conversation: ConversationId| {
        store.next_waiting(conversation).await.expect("turns are read").map(|turn| turn.id)
    };
    assert_eq!(next(a1.conversation).await, Some(a1.id));
    a1.begin(&*store).await;
    assert_eq!(next(a1.conversation).await, Some(a2.id));
    assert_eq!(oldest().await, [b1.id, a2.id, ambient], "a conversation takes its place again after each turn");
    let alone = store.waiting(10).await.expect("turns are read").into_iter().map(|found| found.is_alone);
    assert_eq!(alone.collect::<Vec<_>>(), [false, true, true]);
    assert_eq!(next(ConversationId::new(START)).await, None);
}

/// However many turns of a conversation wait, the scheduler reads one row for it.
pub async fn a_long_line_is_one_row(subject: &mut impl Subject) {
    let store = subject.store();
    let flood: [Turn; 300] = turns(&*store, "flood").await;
    let [other] = turns(&*store, "other").await;
    assert_eq!(first_turns(&*store, 2).await, [flood[0].id, other.id]);
}

/// A turn of the person `sender` that waits.
async fn turn_by(store: &dyn Store, sender: &str, name: &str, key: &str) -> Turn {
    let event = said(&chat(name), &format!("{name} {key}"));
    let sender = Sender { id: sender.to_owned(), ..event.sender.clone() };
    Turn::accept(store, InboundEvent { sender, ..event }).await
}

/// A person's second conversation takes a later position, so that the first one of somebody else comes before.
pub async fn a_person_with_many_conversations_waits_longer(subject: &mut impl Subject) {
    let store = subject.store();
    let first = turn_by(&*store, "flood", "a", "1").await;
    let mut more = Vec::new();
    for number in 0..50 {
        more.push(turn_by(&*store, "flood", &format!("b{number}"), "1").await.id);
    }
    let mut other = turn_by(&*store, "other", "c", "1").await;
    let other_again = turn_by(&*store, "other", "d", "1").await;

    let line = async || first_turns(&*store, 100).await;
    let order = line().await;
    let position = |turn: TurnId| order.iter().position(|found| *found == turn).expect("it waits");
    assert_eq!(
        (position(first.id), position(more[0]), position(other.id)),
        (0, 1, 2),
        "position 33 is before position 52"
    );
    assert_eq!(position(other_again.id), 4, "position 84 is after position 65");
    assert_eq!(order.len(), 53);

    // The line is kept while turns begin, end and wait again.
    other.begin(&*store).await;
    assert!(!line().await.contains(&other.id));
    let again = other.on(Event::Recovered, 3);
    done(&*store, again).await;
    assert!(line().await.contains(&other.id));
    drop(store);
    subject.reopen().await;
    assert_eq!(first_turns(&*subject.store(), 100).await.len(), 53);
}

/// The turns of a person that wait are counted, up to a limit.
pub async fn the_waiting_turns_of_a_person_are_counted(subject: &mut impl Subject) {
    let store = subject.store();
    let mut first = turn_by(&*store, "flood", "a", "1").await;
    turn_by(&*store, "flood", "b", "1").await;
    ambient(&*store, &chat("c"), "talk of somebody else").await;
    let count = async |person: &str, limit| {
        store.waiting_of(&ChannelId::new("test", "main"), person, limit).await.expect("turns are counted")
    };
    assert_eq!((count("flood", 10).await, count("flood", 1).await, count("nobody", 10).await), (2, 1, 0));
    assert_eq!(store.waiting_of(&ChannelId::new("test", "other"), "flood", 10).await.expect("turns are counted"), 0);
    first.begin(&*store).await;
    assert_eq!(count("flood", 10).await, 1);
}

/// What is owed an answer goes before what is not, within a conversation and between several.
pub async fn what_is_owed_is_first_in_the_line(subject: &mut impl Subject) {
    let store = subject.store();
    let talk = ambient(&*store, &chat("a"), "talk").await;
    let elsewhere = ambient(&*store, &chat("b"), "talk elsewhere").await;
    assert_eq!(first_turns(&*store, 10).await, [talk, elsewhere]);
    let mut owed = Turn::accept(&*store, said(&chat("a"), "owed")).await;

    assert_eq!(first_turns(&*store, 10).await, [owed.id, elsewhere]);
    let next = store.next_waiting(owed.conversation).await.expect("turns are read").map(|turn| turn.id);
    assert_eq!(next, Some(owed.id));
    let stopped = owed.on(Event::Cancelled { by: CancelledBy::Deletion }, 1);
    done(&*store, stopped).await;
    assert_eq!(first_turns(&*store, 10).await, [elsewhere, talk]);
}

/// The lines of channels and agents are read apart, so that none hides another.
pub async fn each_channel_and_agent_has_a_line(subject: &mut impl Subject) {
    let store = subject.store();
    let first = Turn::accept(&*store, said(&chat("1"), "1")).await;
    Turn::accept(&*store, said(&chat("2"), "2")).await;
    let elsewhere = ConversationRef::new(ChannelId::new("test", "other"), "a");
    let elsewhere = Turn::accept(&*store, said(&elsewhere, "1")).await;
    let mut another = new_turn(said(&chat("4"), "4"));
    let turn = another.turn.as_mut().expect("it has a turn");
    turn.handler = Handler::Agent("another".into());
    let another_id = turn.id;
    accept_one(&*store, another).await;

    let mut found = first_turns(&*store, 1).await;
    found.sort_unstable();
    let mut expected = [first.id, elsewhere.id, another_id];
    expected.sort_unstable();
    assert_eq!(found, expected);
}

/// A turn that was handed over waits in the line of its new agent.
pub async fn a_turn_that_is_handed_over_waits_for_its_new_agent(subject: &mut impl Subject) {
    let store = subject.store();
    let mut turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    turn.begin(&*store).await;
    let expected = turn.version;
    let ladder = Ladder::empty().with(Cause::Silent, vec![Rung::Handoff("second".to_owned())]);
    let policy = Policy { ladder, ..policy() };
    let _ = turn.obligation.on(Event::Outcome(Outcome::Silent("no words".to_owned())), &policy, at(2));
    let change = TurnChange { turn: turn.id, expected, obligation: turn.obligation.clone(), at: at(2) };
    done(&*store, Transition { turns: vec![change], ..Transition::default() }).await;

    let waiting = store.waiting(10).await.expect("turns are read");
    assert_eq!(waiting.iter().map(|line| (line.turn, &*line.agent)).collect::<Vec<_>>(), [(turn.id, "second")]);
}

/// D1: the runs that another node left in flight are found.
pub async fn what_runs_is_found(subject: &mut impl Subject) {
    let store = subject.store();
    let [mut first, mut second, third] = turns(&*store, "a").await;
    assert!(runs_left(&*store).await.is_empty());
    first.begin(&*store).await;
    second.begin(&*store).await;
    assert_eq!(runs_left(&*store).await, [first.id, second.id]);
    let page = async |after, limit| store.runs_left(me(), &[], after, limit).await.expect("turns are read");
    assert_eq!(page(None, 1).await, [LeftRun { turn: first.id, runs: 0 }]);
    assert_eq!(page(Some(first.id), 10).await, [LeftRun { turn: second.id, runs: 0 }]);
    done(&*store, Transition { runs_started: vec![second.run(1)], ..Transition::default() }).await;
    let begun = LeftRun { turn: second.id, runs: 1 };
    assert_eq!(page(Some(first.id), 10).await, [begun]);
    let by_its_node = async |in_flight: &[TurnId]| {
        store.runs_left(gone(), in_flight, Some(first.id), 10).await.expect("turns are read")
    };
    assert_eq!(by_its_node(&[second.id]).await, [], "a node does not recover what it runs");
    assert_eq!(by_its_node(&[third.id]).await, [begun], "nobody else does");
    let of_another = store.runs_left(me(), &[second.id], Some(first.id), 10).await.expect("turns are read");
    assert_eq!(of_another, [begun], "it is in flight nowhere");
    let runs = store.runs(second.id).await.expect("runs are read");
    assert_eq!(runs.iter().map(|run| (run.number, &run.handler)).collect::<Vec<_>>(), [(1, &main())]);
    let stopped = first.on(Event::Failed("no".to_owned()), 2);
    done(&*store, stopped).await;
    assert_eq!(runs_left(&*store).await, [second.id]);
    assert_eq!(store.waiting(10).await.expect("turns are read").len(), 1, "{}", third.id);
}

/// Longer than any turn waits.
const NEVER: Duration = Duration::from_hours(1000);

/// The turns whose drafts, deferrals and marks an earlier process may not have removed. Those of other channels are not counted.
pub async fn what_ended_last_with_a_draft_is_found(subject: &mut impl Subject) {
    let store = subject.store();
    let channels = [chat("a").channel];
    let found = async |span: u64, waited: Duration, limit: u32| {
        store.ended_last(&channels, Duration::from_secs(span), waited, limit).await.expect("turns are read")
    };
    assert!(found(5, NEVER, 10).await.is_empty());
    let [mut old, mut plain, mut unshown, mut recent, open] = turns(&*store, "a").await;
    let elsewhere = ConversationRef::new(ChannelId::new("other", "main"), "e");
    let mut other = Turn::accept(&*store, said(&elsewhere, "e")).await;
    for (turn, messages) in [(&old, vec!["1"]), (&unshown, vec![]), (&recent, vec!["2"]), (&open, vec!["3"])] {
        let message_ids = messages.into_iter().map(str::to_owned).collect();
        done(&*store, deliveries([DeliveryRecord { message_ids, ..turn.delivery(0, "draft") }])).await;
    }
    for (turn, seconds) in [(&mut old, 1), (&mut plain, 7), (&mut unshown, 8), (&mut recent, 9), (&mut other, 10)] {
        let ended = turn.on(Event::Cancelled { by: CancelledBy::Deletion }, seconds);
        done(&*store, ended).await;
    }

    assert_eq!(found(5, NEVER, 10).await, [recent.id]);
    assert_eq!(found(60, NEVER, 10).await, [old.id, recent.id]);
    assert_eq!(found(60, NEVER, 2).await, [old.id, recent.id], "those that left nothing do not count");
    assert_eq!(found(60, NEVER, 1).await, [recent.id]);
    let waited = found(60, Duration::ZERO, 10).await;
    assert_eq!(waited, [old.id, plain.id, unshown.id, recent.id], "none of them began before it ended");
}

/// The clock was set back between two starts: later turns have smaller ids. Their order is that of their acceptance.
pub async fn the_order_is_that_of_acceptance_whatever_the_ids(subject: &mut impl Subject) {
    let store = subject.store();
    let accept = async |number: u128, key: &str| {
        let mut event = new_turn(said(&chat("a"), key));
        let turn = event.turn.as_mut().expect("it has a turn");
        turn.id = TurnId::from(uuid::Uuid::from_u128(number));
        turn.conversation = ConversationId::from(uuid::Uuid::from_u128(number));
        let (id, session) = (turn.id, turn.session.id);
        accept_one(store.as_ref(), event).await;
        (id, store.turn(id).await.expect("turns are read").map_or(session, |turn| turn.session))
    };
    let (first, session) = accept(9, "1").await;
    let (second, _) = accept(5, "2").await;
    let (third, _) = accept(7, "3").await;
    let expected = [first, second, third];

    let first_record = store.turn(first).await.expect("turns are read").expect("it is there");
    let conversation = first_record.conversation;
    let next = store.next_waiting(conversation).await.expect("turns are read").map(|turn| turn.id);
    assert_eq!(next, Some(first));
    assert_eq!(store.open_turns(conversation).await.expect("turns are read"), expected);
    let views = store.views(&chat("a"), None, 10).await.expect("views are read");
    assert_eq!(views.iter().map(|view| view.turn_id).collect::<Vec<_>>(), expected);
    assert!(views.is_sorted_by_key(|view| view.seq), "{views:?}");
    let views = store.views(&chat("a"), Some(third), 1).await.expect("views are read");
    assert_eq!(views.iter().map(|view| view.turn_id).collect::<Vec<_>>(), [second]);
    for state in [None, Some(TurnListState::Open)] {
        let filter = TurnFilter { state, limit: 10, ..TurnFilter::default() };
        assert_eq!(list(&*store, filter.clone()).await, [third, second, first]);
        assert_eq!(list(&*store, TurnFilter { before: Some(third), limit: 1, ..filter }).await, [second]);
    }
    let deadline = policy().soft_deadline.expect("there is a deferral");
    assert_eq!(store.due(START + deadline, 10).await.expect("turns are read"), expected);

    for turn in [third, first, second] {
        let (at, seq) = (START, store.turn(turn).await.expect("turns are read").expect("it is there").seq);
        let line = HistoryLine {
            spoken: false,
            speaker: Speaker::Agent,
            author: None,
            forwarded: None,
            text: turn.to_string(),
            at,
            state: LineState::Seen,
        };
        let transcript = vec![TranscriptLine { session, turn, seq, claim: 1, line }];
        done(&*store, Transition { transcript, ..Transition::default() }).await;
    }
    let expected = expected.map(|turn| turn.to_string());
    let lines = async |store: &dyn Store| {
        let lines = store.transcript(session, 10).await.expect("transcripts are read");
        lines.iter().map(|line| line.text.clone()).collect::<Vec<_>>()
    };
    assert_eq!(lines(&*store).await, expected);
    drop(store);
    subject.reopen().await;
    assert_eq!(lines(&*subject.store()).await, expected, "the same when it is read from disk");
}

/// The sweep reads the overdue turns, the most overdue first.
pub async fn what_is_due_is_found(subject: &mut impl Subject) {
    let store = subject.store();
    let late = InboundEvent { received_at: at(5), ..said(&chat("a"), "late") };
    let late = Turn::accept(&*store, late).await;
    let [early] = turns(&*store, "b").await;
    ambient(&*store, &chat("b"), "ambient").await;
    let soft = policy().soft_deadline.expect("there is a deferral");
    assert_eq!(early.obligation.wake_at(), Some(START + soft));

    let due = async |now, limit| store.due(now, limit).await.expect("turns are read");
    let just_before = soft.saturating_sub(Duration::from_millis(1));
    assert!(due(START + just_before, 10).await.is_empty());
    assert_eq!(due(START + soft, 10).await, [early.id]);
    assert_eq!(due(at(5) + soft, 10).await, [early.id, late.id]);
    assert_eq!(due(at(500), 1).await, [early.id]);
}

/// A node acts on what it runs, and on what no living node runs on its channels.
pub async fn what_is_due_is_found_by_the_node_that_acts_on_it(subject: &mut impl Subject) {
    let store = subject.store();
    let [waits] = turns(&*store, "a").await;
    let runs = Turn::of(&*store, begun(said(&chat("b"), "b"), gone())).await;
    let (here, elsewhere) = (ChannelId::new("test", "main"), ChannelId::new("other", "main"));
    let due = async |node, channels: &[ChannelId]| {
        store.due_at(node, channels, at(100_000), 10).await.expect("turns are read")
    };
    let with_time = |turn: &Turn| (turn.id, turn.obligation.wake_at().expect("it is due at some time"));
    let (waits, runs) = (with_time(&waits), with_time(&runs));

    assert_eq!(due(gone(), &[]).await, [runs]);
    assert_eq!(due(me(), &[]).await, []);
    assert_eq!(due(me(), std::slice::from_ref(&elsewhere)).await, []);
    assert_eq!(due(me(), &[elsewhere, here.clone()]).await, [waits, runs], "the node of the run is over");
    let early = store.due_at(me(), std::slice::from_ref(&here), at(0), 10).await.expect("turns are read");
    assert_eq!(early, []);

    lives(&*store, &report(gone())).await;
    lives(&*store, &report(me())).await;
    let granted = store.take_leases(me(), &[LeaseName::Housekeeper]).await.expect("leases are taken");
    let found = due(me(), &[here]).await;
    // Of a store that admits one process, every other node is over.
    let expected = if granted == Granted::ForGood { vec![waits, runs] } else { vec![waits] };
    assert_eq!(found, expected);
}

/// Accepts a turn on the channel `gone.main`.
async fn turn_on_a_channel_that_goes(store: &dyn Store, name: &str) -> Turn {
    let there = ConversationRef::new(ChannelId::new("gone", "main"), name);
    Turn::accept(store, said(&there, &format!("gone {name}"))).await
}

/// Work on an absent channel is not found by the queries that schedule work; it is counted and listed.
pub async fn what_belongs_to_an_absent_channel_waits(subject: &mut impl Subject) {
    let store = subject.store();
    let (here, away) = (ChannelId::new("test", "main"), ChannelId::new("gone", "main"));
    let mut running = turn_on_a_channel_that_goes(&*store, "a").await;
    running.begin(&*store).await;
    let waiting = turn_on_a_channel_that_goes(&*store, "b").await;
    let mut claimed = turn_on_a_channel_that_goes(&*store, "c").await;
    let delivery = claimed.answer(&*store, "hello").await;
    let mut ended = turn_on_a_channel_that_goes(&*store, "d").await;
    let answer = ended.answer(&*store, "hello").await;
    ended.settle(&*store, answer).await;
    let copy = DeliveryRecord { is_copy: true, ..ended.delivery(1, "hello") };
    done(&*store, deliveries([copy])).await;
    let mut cut_off = turn_on_a_channel_that_goes(&*store, "e").await;
    let begun = cut_off.answer(&*store, "hello").await;
    let attempt = AttemptStart { delivery: begun, number: 1, node: gone(), at: at(3) };
    let record = store.deliveries(cut_off.id).await.expect("deliveries are read").remove(0);
    let sending = DeliveryChange { state: DeliveryState::Sending, attempts: 1, ..DeliveryChange::of(&record) };
    let (attempts_started, delivery_changes) = (vec![attempt], vec![sending]);
    done(&*store, Transition { delivery_changes, attempts_started, ..Transition::default() }).await;
    let [there] = turns(&*store, "there").await;

    assert_eq!(store.set_channels(&[here.clone(), away.clone()]).await.expect("written"), []);
    let absent = store.set_channels(std::slice::from_ref(&here)).await.expect("written");

    assert_eq!(absent, [AbsentChannel { channel: away.clone(), turns: 4, deliveries: 3 }]);
    assert_eq!(
        store.set_channels(std::slice::from_ref(&here)).await.expect("written"),
        absent,
        "a repeated call gives the same result"
    );
    let found = store.waiting(10).await.expect("turns are read");
    assert_eq!(found.iter().map(|found| found.turn).collect::<Vec<_>>(), [there.id]);
    assert!(store.next_waiting(waiting.conversation).await.expect("turns are read").is_none());
    assert!(runs_left(&*store).await.is_empty());
    assert_eq!(store.due(at(100_000), 10).await.expect("turns are read"), [there.id]);
    assert_eq!(store.upcoming(&away, 10).await.expect("deliveries are read"), []);
    assert_eq!(store.attempts_left(Some(me())).await.expect("deliveries are read"), []);
    assert_eq!(store.next_wake().await.expect("it is read"), there.obligation.wake_at());
    let list = async |state| {
        let filter = TurnFilter { state: Some(state), now: Some(at(100_000)), limit: 10, ..TurnFilter::default() };
        let turns = store.list_turns(&filter).await.expect("turns are listed");
        turns.into_iter().map(|turn| turn.turn_id).collect::<Vec<_>>()
    };
    assert_eq!(list(TurnListState::Absent).await, [cut_off.id, claimed.id, waiting.id, running.id]);
    assert_eq!(list(TurnListState::Overdue).await, [there.id]);
    assert_eq!(list(TurnListState::Open).await.len(), 5);
    let backlog = store.backlog().await.expect("the backlog is read");
    assert_eq!((backlog.open, backlog.waiting, backlog.pending_deliveries, backlog.absent), (5, 1, 0, 4));
    let absent = async |turn| store.dossier(turn).await.expect("readable").expect("it is there").absent;
    assert!(absent(waiting.id).await && absent(claimed.id).await && absent(ended.id).await && !absent(there.id).await);

    assert_eq!(store.set_channels(&[here, away.clone()]).await.expect("written"), []);
    assert_eq!(store.waiting(10).await.expect("turns are read").len(), 2);
    assert_eq!(runs_left(&*store).await, [running.id]);
    assert_eq!(store.upcoming(&away, 10).await.expect("deliveries are read").len(), 2);
    let interrupted = store.attempts_left(Some(me())).await.expect("deliveries are read");
    assert_eq!(interrupted.iter().map(|one| one.id).collect::<Vec<_>>(), [begun]);
    let next = store.next_deliveries(claimed.conversation).await.expect("readable").list;
    assert_eq!(next.iter().map(|one| one.id).collect::<Vec<_>>(), [delivery]);
    assert_eq!(list(TurnListState::Absent).await, []);
    assert_eq!(store.backlog().await.expect("the backlog is read").absent, 0);
}

/// Deadlines do not move while a channel is absent: an overdue turn is overdue when the channel is back.
pub async fn what_is_due_on_an_absent_channel_is_due_when_it_is_back(subject: &mut impl Subject) {
    let store = subject.store();
    let (here, gone) = (ChannelId::new("test", "main"), ChannelId::new("gone", "main"));
    let turn = turn_on_a_channel_that_goes(&*store, "a").await;
    store.set_channels(std::slice::from_ref(&here)).await.expect("written");
    assert_eq!(store.next_wake().await.expect("it is read"), None);
    subject.reopen().await;
    let store = subject.store();
    assert_eq!(store.next_wake().await.expect("it is read"), None);

    store.set_channels(&[here, gone]).await.expect("written");

    assert_eq!(store.due(at(100_000), 10).await.expect("turns are read"), [turn.id]);
    assert_eq!(store.next_wake().await.expect("it is read"), turn.obligation.wake_at());
}

/// `open_turns` returns the turns that have not ended, owed or not: those that a cancel affects.
pub async fn what_is_open_is_found(subject: &mut impl Subject) {
    let store = subject.store();
    let [mut first, second, mut third] = turns(&*store, "a").await;
    let [elsewhere] = turns(&*store, "b").await;
    let ambient = ambient(&*store, &chat("a"), "ambient").await;
    let open = async |turn: &Turn| store.open_turns(turn.conversation).await.expect("turns are read");
    let delivery = first.answer(&*store, "yes").await;
    assert_eq!(open(&first).await, [first.id, second.id, third.id, ambient]);
    first.settle(&*store, delivery).await;
    let cancelled = third.on(Event::Cancelled { by: CancelledBy::Turn(second.id.to_string()) }, 4);
    done(&*store, cancelled).await;
    assert_eq!(open(&first).await, [second.id, ambient]);
    assert_eq!(open(&elsewhere).await, [elsewhere.id]);
}

/// H5: the sweep sleeps until exactly this time.
pub async fn the_next_wake_is_the_earliest(subject: &mut impl Subject) {
    let store = subject.store();
    let wake = async || store.next_wake().await.expect("the next wake is read");
    assert_eq!(wake().await, None);
    ambient(&*store, &chat("a"), "ambient").await;
    assert_eq!(wake().await, None);
    let turn = Turn::accept(&*store, said(&chat("b"), "1")).await;
    assert_eq!(wake().await, turn.obligation.wake_at());
    assert_eq!(wake().await, Some(at(20)));
}

/// G2: a view shows the deferral first, and later the answer in its place.
pub async fn a_view_shows_the_latest_signal(subject: &mut impl Subject) {
    let store = subject.store();
    let event = InboundEvent { attachments: vec![file("in.txt")], ..said(&chat("a"), "1") };
    let mut turn = Turn::accept(&*store, event).await;
    let view = async |turn: &Turn| store.view(turn.id).await.expect("views are read").expect("the turn is there");

    let seen = view(&turn).await;
    assert_eq!((seen.turn_id, &seen.conversation, seen.at), (turn.id, &turn.address, START));
    assert_eq!((&*seen.text, &seen.attachments[..]), ("text of 1", &[file("in.txt")][..]));
    assert_eq!((seen.status, seen.shown), (TurnStatus::Accepted, None));

    turn.begin(&*store).await;
    let mut transition = turn.on(Event::Tick { ran: None }, 21);
    let deferral = DeliveryRecord {
        signal: SignalKind::Deferral,
        via: Via::Deferral,
        state: DeliveryState::Delivered,
        ..turn.delivery(1, "Still working on this.")
    };
    transition.deliveries = deliveries([deferral]).deliveries;
    done(&*store, transition).await;
    let transition = turn.on(Event::Delivered { claim: 1, messages: vec!["m".to_owned()] }, 21);
    done(&*store, transition).await;
    let seen = view(&turn).await;
    assert_eq!(seen.status, TurnStatus::Deferred);
    let shown = seen.shown.expect("a deferral is shown");
    assert_eq!((shown.signal, &*shown.text, shown.at), (SignalKind::Deferral, "Still working on this.", at(2)));
    assert!(turn.obligation.due().is_some(), "an answer is owed");
    assert_eq!((shown.agent, shown.due, shown.fallback), (None, None, None), "the gateway promises no time");

    let mut transition = turn.on(Event::Outcome(Outcome::Reply(Reply::text("yes"))), 30);
    let content = Content {
        text: "yes".to_owned(),
        attachments: vec![file("out.txt")],
        choices: vec!["more".to_owned()],
        ..Content::default()
    };
    let via = Via::Fallback { cause: Cause::Silent, rung: Rung::Say("silent".to_owned()) };
    let answer = DeliveryRecord {
        action: Action::Edit { message: "m".to_owned(), content, reply_to: None },
        state: DeliveryState::Delivered,
        via,
        created_at: at(30),
        ..turn.delivery(2, "")
    };
    let copy = DeliveryRecord { is_copy: true, state: DeliveryState::Pending, ..turn.delivery(2, "copy") };
    transition.deliveries = deliveries([answer, copy]).deliveries;
    done(&*store, transition).await;
    let transition = turn.on(Event::Delivered { claim: 2, messages: vec!["m".to_owned()] }, 31);
    done(&*store, transition).await;
    let seen = view(&turn).await;
    assert_eq!(seen.status, TurnStatus::Answered);
    let shown = seen.shown.expect("an answer is shown");
    assert_eq!((shown.signal, &*shown.text, shown.at), (SignalKind::Reply, "yes", at(30)));
    assert_eq!(shown.fallback, Some(FallbackView { cause: Cause::Silent, rung: "say:silent".to_owned() }));
    assert_eq!(
        (shown.agent, shown.due, shown.choices, shown.attachments),
        (None, None, vec!["more".to_owned()], vec![file("out.txt")])
    );

    assert_eq!(store.view(TurnId::new(START)).await.expect("views are read"), None);
}

fn file(name: &str) -> Attachment {
    Attachment { name: name.to_owned(), media_type: "text/plain".to_owned(), url: format!("file:{name}") }
}

/// An agent that defers is named, with the time that it named, until it works on the turn again.
pub async fn a_view_says_who_speaks(subject: &mut impl Subject) {
    let store = subject.store();
    let mut turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let id = turn.id;
    let shown = async || {
        let view = store.view(id).await.expect("views are read").expect("the turn is there");
        let shown = view.shown.expect("a deferral is shown");
        (shown.agent.as_deref().map(ToOwned::to_owned), shown.due)
    };
    turn.begin(&*store).await;
    let note = Some("Tonight.".to_owned());
    let mut transition = turn.on(Event::Outcome(Outcome::Defer { note, due: at(3600) }), 2);
    let (signal, state) = (SignalKind::Deferral, DeliveryState::Delivered);
    transition.deliveries = deliveries([DeliveryRecord { signal, state, ..turn.delivery(1, "Tonight.") }]).deliveries;
    done(&*store, transition).await;
    let transition = turn.on(Event::Delivered { claim: 1, messages: vec!["m".to_owned()] }, 3);
    done(&*store, transition).await;
    assert_eq!(shown().await, (Some("main".to_owned()), Some(at(3600))));

    let transition = turn.on(Event::Tick { ran: None }, 3600);
    done(&*store, transition).await;
    let transition = turn.on(Event::Begin, 3601);
    done(&*store, transition).await;
    assert_eq!(shown().await, (Some("main".to_owned()), None));
}

/// A signal is shown once all its parts are delivered.
pub async fn a_view_shows_no_half_signal(subject: &mut impl Subject) {
    let store = subject.store();
    let turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let part = |claim, part, text: &str, state| DeliveryRecord { part, parts: 2, state, ..turn.delivery(claim, text) };
    let shown = async || {
        let view = store.view(turn.id).await.expect("views are read").expect("the turn is there");
        view.shown.map(|shown| shown.text)
    };
    let first = [part(1, 2, "two", DeliveryState::Delivered), part(1, 1, "one ", DeliveryState::Delivered)];
    done(&*store, deliveries(first)).await;
    assert_eq!(shown().await.as_deref(), Some("one two"));
    let half = [part(2, 1, "new", DeliveryState::Delivered), part(2, 2, "newer", DeliveryState::Sending)];
    done(&*store, deliveries(half)).await;
    assert_eq!(shown().await.as_deref(), Some("one two"));
    let reaction = Action::React { message: None, emoji: "👍".to_owned() };
    let reaction =
        DeliveryRecord { action: reaction, signal: SignalKind::Reaction, ..part(3, 1, "", DeliveryState::Delivered) };
    done(&*store, deliveries([reaction])).await;
    assert_eq!(shown().await.as_deref(), Some("👍"));
}

/// The history that a chat page shows when it reconnects.
pub async fn views_are_of_one_conversation_oldest_first(subject: &mut impl Subject) {
    let store = subject.store();
    let [first, mut second, third] = turns(&*store, "a").await;
    turns::<2>(&*store, "b").await;
    let delivery = second.answer(&*store, "yes").await;
    second.settle(&*store, delivery).await;
    let views = async |before, limit| {
        let views = store.views(&first.address, before, limit).await.expect("views are read");
        views.into_iter().map(|view| (view.turn_id, view.shown.map(|shown| shown.text))).collect::<Vec<_>>()
    };
    let yes = Some("yes".to_owned());
    assert_eq!(views(None, 10).await, [(first.id, None), (second.id, yes.clone()), (third.id, None)]);
    assert_eq!(views(None, 2).await, [(second.id, yes.clone()), (third.id, None)]);
    assert_eq!(views(Some(third.id), 1).await, [(second.id, yes)]);
    assert!(views(Some(first.id), 10).await.is_empty());
    assert!(store.views(&chat("nowhere"), None, 10).await.expect("views are read").is_empty());
}
