//! The rows of slots and of agents' permits.

use rejoinder_core::{
    AgentName, CancelledBy, Clock, NodeId, Policy, SystemClock,
    store::{
        Commit, HousekeepingStore, InboxStore, NodeStore, Removal, RunStart, Stored, Transition, Transitions,
        TurnChange, WantedPermits,
    },
};
use rejoinder_guard::Event;
use sqlx::Executor;

use crate::common::{Database, new_turn};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slot_goes_with_its_conversation() {
    let Some(database) = Database::new().await else { return };
    let (store, mut elsewhere) = (&database.store, database.elsewhere().await);
    let (now, policy) = (SystemClock.now(), Policy::default());
    let mut new = new_turn("1");
    let turn = new.turn.as_mut().expect("it has a turn");
    let (id, handler, node) = (turn.id, turn.handler.clone(), NodeId::new(now));
    let _ = turn.obligation.on(Event::Begin, &policy, now);
    turn.run = Some(RunStart { turn: id, number: 1, handler, node, at: now });
    let mut obligation = turn.obligation.clone();
    let stored = store.accept(vec![new], None).await.expect("it is accepted");
    assert!(matches!(stored[..], [Stored::Turn { .. }]), "{stored:?}");
    let mut slots = async || {
        let count = sqlx::query_scalar::<_, i64>("select count(*) from slots");
        count.fetch_one(&mut elsewhere).await.expect("they are counted")
    };
    assert_eq!(slots().await, 1);

    let _ = obligation.on(Event::Cancelled { by: CancelledBy::Deletion }, &policy, now);
    let turns = vec![TurnChange { turn: id, expected: 1, obligation, at: now }];
    let ended = store.commit(Transition { turns, ..Transition::default() }).await.expect("it is stored");
    assert_eq!((ended, slots().await), (Commit::Done, 1));
    store.remove(Removal::Turns(vec![id])).await.expect("it is removed");

    assert_eq!(slots().await, 0);
}

/// The transaction of a request ends with its connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_for_permits_that_fails_stops_no_further_one() {
    let Some(database) = Database::new().await else { return };
    let mut elsewhere = database.elsewhere().await;
    let (agent, node) = (AgentName::from("main"), NodeId::new(SystemClock.now()));
    let (held, wanted, limit, has_worker) = (0, 0, 4, true);
    let wanted = [WantedPermits { agent: AgentName::clone(&agent), held, wanted, limit, has_worker }];
    elsewhere.execute("alter table agent_permits rename to hidden").await.expect("it is renamed");
    database.store.permits(node, &wanted).await.expect_err("there is no such table");
    elsewhere.execute("alter table hidden rename to agent_permits").await.expect("it is renamed");

    let granted = database.store.permits(node, &wanted).await.expect("permits are granted");

    assert_eq!(granted, [(agent, 4)]);
}
