//! Checks of slots: in a conversation one turn of an agent runs at a time, whichever node runs it.
//!
//! A store that admits one process has none: that process has them in memory. All that it promises is that nothing waits because of them.

use futures_util::future::join_all;
use rejoinder_guard::{ApprovalRequest, CancelledBy, Event, Obligation, Outcome, Reply};

use super::{
    nodes::{lives, report},
    subject::Subject,
    transitions::version,
    turn::{START, Turn, accept_one, at, chat, commit, done, gone, main, me, new_turn, policy, said},
};
use crate::{
    model::{
        conversation::ChannelId,
        event::InboundEvent,
        ids::{NodeId, TurnId},
    },
    ports::store::{
        Store,
        accept::{Beside, CursorMove, NewEvent, Stored},
        nodes::Granted,
        transition::{Commit, RunEnd, RunStart, Transition},
    },
};

/// How many conversations two nodes race for.
const EACH: usize = 12;

/// Whether several processes share the store.
async fn is_shared(store: &dyn Store) -> bool {
    let granted = store.take_leases(me(), &[]).await.expect("leases are taken");
    matches!(granted, Granted::These(_))
}

/// An event whose turn begins with it, on a node.
pub(super) fn begun(event: InboundEvent, node: NodeId) -> NewEvent {
    let mut new = new_turn(event);
    let turn = new.turn.as_mut().expect("it has a turn");
    let _ = turn.obligation.on(Event::Begin, &policy(), START);
    turn.run = Some(RunStart { turn: turn.id, number: 1, handler: main(), node, at: START });
    new
}

/// Has a turn that waits begin on a node.
fn begins(turn: &mut Turn, node: NodeId) -> Transition {
    let run = RunStart { node, ..turn.run(1) };
    Transition { runs_started: vec![run], ..turn.on(Event::Begin, 1) }
}

fn answered() -> Event {
    Event::Outcome(Outcome::Reply(Reply::text("yes")))
}

/// The turn that has the slot of the conversation of a turn.
async fn slot(store: &dyn Store, turn: &Turn) -> Option<TurnId> {
    store.slot_of(turn.conversation).await.expect("slots are read")
}

/// D1. A turn that cannot begin leaves no trace.
pub async fn in_a_conversation_one_turn_runs_at_a_time(subject: &mut impl Subject) {
    let (one, other) = (subject.store(), subject.another().await);
    if is_shared(&*one).await {
        let mut first = Turn::of(&*one, begun(said(&chat("a"), "1"), me())).await;
        assert_eq!(slot(&*other, &first).await, Some(first.id));
        Turn::of(&*other, begun(said(&chat("b"), "2"), gone())).await;

        let event = said(&chat("a"), "3");
        assert_eq!(accept_one(&*other, begun(event.clone(), gone())).await, Stored::Busy);
        let second = Turn::accept(&*other, event).await;
        let begin = begins(&mut second.clone(), gone());
        assert_eq!(commit(&*other, begin.clone()).await, Commit::Conflict);
        assert_eq!((version(&*one, &second).await, slot(&*one, &second).await), (1, Some(first.id)));
        assert!(one.runs(second.id).await.expect("runs are read").is_empty());

        done(&*one, first.on(answered(), 2)).await;
        assert_eq!(slot(&*other, &first).await, None);
        done(&*other, begin).await;
        assert_eq!(slot(&*one, &second).await, Some(second.id));
    }
    other.close().await;
}

/// B1. Another node has accepted the earlier one, and its own run of the conversation has just ended: no slot tells of it.
pub async fn a_turn_does_not_begin_before_one_that_waits_in_its_conversation(subject: &mut impl Subject) {
    let (one, other) = (subject.store(), subject.another().await);
    if is_shared(&*one).await {
        let mut first = Turn::of(&*one, begun(said(&chat("a"), "1"), me())).await;
        let mut second = Turn::accept(&*one, said(&chat("a"), "2")).await;
        done(&*one, first.on(answered(), 2)).await;
        assert_eq!(slot(&*other, &first).await, None);

        let event = said(&chat("a"), "3");
        assert_eq!(accept_one(&*other, begun(event.clone(), gone())).await, Stored::Busy);
        let mut third = Turn::accept(&*other, event).await;
        Turn::of(&*other, begun(said(&chat("b"), "4"), gone())).await;

        done(&*one, begins(&mut second, me())).await;
        done(&*one, second.on(answered(), 3)).await;
        done(&*other, begins(&mut third, gone())).await;
    }
    other.close().await;
}

/// Also of the events for which there was room, and of the cursor that covers them.
pub async fn of_what_comes_with_a_turn_that_cannot_begin_nothing_is_stored(subject: &mut impl Subject) {
    let store = subject.store();
    if !is_shared(&*store).await {
        return;
    }
    Turn::of(&*store, begun(said(&chat("a"), "1"), me())).await;
    let channel = ChannelId::new("test", "main");
    let (name, position) = ("updates".to_owned(), "5".to_owned());
    let cursor = CursorMove { channel: channel.clone(), name, position, fence: None };
    let free = said(&chat("b"), "2");
    let events = vec![new_turn(free.clone()), begun(said(&chat("a"), "3"), gone())];

    let stored = store.accept(events, Some(Beside::Cursor(cursor))).await.expect("it is no error");

    assert_eq!(stored, [Stored::Busy, Stored::Busy]);
    assert_eq!(store.cursor(&channel, "updates").await.expect("cursors are read"), None);
    assert!(matches!(accept_one(&*store, new_turn(free)).await, Stored::Turn { .. }));
}

/// What a run does that does not hold its slot any more changes nothing for the one that does.
pub async fn a_slot_is_free_once_its_run_keeps_nobody_waiting(subject: &mut impl Subject) {
    let store = subject.store();
    if !is_shared(&*store).await {
        return;
    }
    let late = [(Event::Tick { ran: None }, 700), (Event::Failed("no".to_owned()), 701)];
    let resumed = Event::RunResumed { agent: None, attempt: 1 };
    let suspended = [
        (Event::Suspended(ApprovalRequest::action("pay")), 2),
        (Event::Decided, 3),
        (resumed, 4),
        (Event::Tick { ran: None }, 5),
        (answered(), 6),
    ];
    let cases: [(&str, &[(Event, u64)]); 6] = [
        ("late", &late),
        ("suspended", &suspended),
        ("answered", &[(answered(), 2)]),
        ("recovered", &[(Event::Recovered, 2)]),
        ("superseded", &[(Event::Superseded, 2)]),
        ("cancelled", &[(Event::Cancelled { by: CancelledBy::Deletion }, 2)]),
    ];
    for (name, events) in cases {
        let mut turn = Turn::of(&*store, begun(said(&chat(name), &format!("{name} 1")), me())).await;
        let (first, rest) = events.split_first().expect("there is one");
        done(&*store, turn.on(first.0.clone(), first.1)).await;
        assert_eq!(slot(&*store, &turn).await, None, "{name}");

        let mut next = Turn::accept(&*store, said(&chat(name), &format!("{name} 2"))).await;
        done(&*store, begins(&mut next, gone())).await;
        for (event, seconds) in rest {
            done(&*store, turn.on(event.clone(), *seconds)).await;
            assert_eq!(slot(&*store, &turn).await, Some(next.id), "{name}: {event:?}");
        }
    }
}

/// With a turn that is set aside, it is free.
pub async fn a_slot_is_kept_as_long_as_its_turn_can_be_read(subject: &mut impl Subject) {
    let store = subject.store();
    if !is_shared(&*store).await {
        return;
    }
    let mut turn = Turn::of(&*store, begun(said(&chat("a"), "1"), me())).await;
    done(&*store, turn.on(Event::Tick { ran: None }, 2)).await;
    assert_eq!(slot(&*store, &turn).await, Some(turn.id));

    let aside = Obligation::set_aside("damaged".to_owned(), at(3));
    store.set_aside(turn.id, aside, "no such field", at(3)).await.expect("it is written");
    assert_eq!(slot(&*store, &turn).await, None);
    Turn::of(&*store, begun(said(&chat("a"), "2"), gone())).await;
}

/// Also if another one decides on its turn: the agent may still work. A node takes its own slots over.
pub async fn a_slot_is_its_nodes_until_the_run_has_left_it(subject: &mut impl Subject) {
    let store = subject.store();
    if !is_shared(&*store).await {
        return;
    }
    lives(&*store, &report(me())).await;
    lives(&*store, &report(gone())).await;
    let cancelled = async |name: &str| {
        let mut turn = Turn::of(&*store, begun(said(&chat(name), &format!("{name} 1")), me())).await;
        done(&*store, turn.on(Event::Cancelled { by: CancelledBy::Deletion }, 2)).await;
        let next = Turn::accept(&*store, said(&chat(name), &format!("{name} 2"))).await;
        assert_eq!(slot(&*store, &turn).await, Some(turn.id), "{name}");
        assert_eq!(commit(&*store, begins(&mut next.clone(), gone())).await, Commit::Conflict, "{name}");
        (turn, next)
    };
    let waiting = async |node: NodeId| {
        let waiting = store.waiting_for(node, 10).await.expect("turns are read");
        waiting.into_iter().map(|found| found.turn).collect::<Vec<_>>()
    };

    let (turn, mut next) = cancelled("freed").await;
    assert_eq!((waiting(me()).await, waiting(gone()).await), (vec![next.id], vec![]));
    for (node, left) in [(gone(), Some(turn.id)), (me(), None)] {
        store.free_slot(turn.conversation, turn.id, node).await.expect("it is written");
        assert_eq!(slot(&*store, &turn).await, left);
    }
    done(&*store, begins(&mut next, gone())).await;

    let (_, mut next) = cancelled("taken over").await;
    done(&*store, begins(&mut next, me())).await;
    assert_eq!(slot(&*store, &next).await, Some(next.id));

    let mut turn = Turn::of(&*store, begun(said(&chat("ended"), "ended"), me())).await;
    let end = RunEnd::new(turn.id, 1, at(2), "reply".to_owned(), None);
    done(&*store, Transition { runs_ended: vec![end], ..turn.on(answered(), 2) }).await;
    assert_eq!(slot(&*store, &turn).await, None);

    let (_, mut next) = cancelled("left").await;
    store.leave(me()).await.expect("it leaves");
    assert_eq!(waiting(gone()).await, [next.id]);
    done(&*store, begins(&mut next, gone())).await;
}

/// What waits there cannot begin.
pub async fn a_conversation_in_which_another_node_runs_a_turn_is_left_out(subject: &mut impl Subject) {
    let store = subject.store();
    let mut running = Turn::of(&*store, begun(said(&chat("a"), "1"), me())).await;
    let behind = Turn::accept(&*store, said(&chat("a"), "2")).await;
    let free = Turn::accept(&*store, said(&chat("b"), "3")).await;
    let waiting = async |node: NodeId, limit: u32| {
        let waiting = store.waiting_for(node, limit).await.expect("turns are read");
        waiting.into_iter().map(|found| found.turn).collect::<Vec<_>>()
    };
    let all = [behind.id, free.id];
    let elsewhere = if is_shared(&*store).await { vec![free.id] } else { all.to_vec() };

    assert_eq!(waiting(me(), 10).await, all);
    assert_eq!(waiting(gone(), 10).await, elsewhere);
    assert_eq!(waiting(gone(), 1).await, elsewhere[..1], "it hides nothing");
    assert_eq!(store.waiting(10).await.expect("turns are read").len(), 2);

    done(&*store, running.on(answered(), 2)).await;
    assert_eq!(waiting(gone(), 10).await, all);
}

/// Both try at the same time, with turns that wait and with new ones.
pub async fn of_two_nodes_that_begin_turns_of_a_conversation_one_does(subject: &mut impl Subject) {
    let (one, other) = (subject.store(), subject.another().await);
    if is_shared(&*one).await {
        let names: Vec<String> = (0..EACH).map(|number| number.to_string()).collect();
        let (mut firsts, mut seconds) = (Vec::new(), Vec::new());
        for name in &names {
            firsts.push(Turn::accept(&*one, said(&chat(name), &format!("{name} first"))).await);
            seconds.push(Turn::accept(&*one, said(&chat(name), &format!("{name} second"))).await);
        }
        let begin = async |store: &dyn Store, node: NodeId, turns: &[Turn]| {
            join_all(turns.iter().map(|turn| async move { commit(store, begins(&mut turn.clone(), node)).await })).await
        };
        let (mine, theirs) = tokio::join!(begin(&*one, me(), &firsts), begin(&*other, gone(), &seconds));
        for (number, (first, second)) in firsts.iter().zip(&seconds).enumerate() {
            let winner = if mine[number] == Commit::Done { first.id } else { second.id };
            assert_ne!(mine[number], theirs[number]);
            assert_eq!(slot(&*one, first).await, Some(winner));
        }

        let accept = async |store: &dyn Store, node: NodeId| {
            let events =
                names.iter().map(|name| begun(said(&chat(&format!("new {name}")), &format!("{name} {node}")), node));
            join_all(events.map(|event| accept_one(store, event))).await
        };
        let (mine, theirs) = tokio::join!(accept(&*one, me()), accept(&*other, gone()));
        for (mine, theirs) in mine.iter().zip(&theirs) {
            let opened = [mine, theirs].map(|stored| matches!(stored, Stored::Turn { .. }));
            assert!(opened[0] != opened[1] && [mine, theirs].contains(&&Stored::Busy), "{mine:?}, {theirs:?}");
        }
    }
    other.close().await;
}
