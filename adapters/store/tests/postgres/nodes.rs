//! Which nodes are over, after times that pass for their rows alone.

use rejoinder_core::{
    ChannelId, Clock, NodeId, Obligation, Policy, StoreError, SystemClock,
    store::{
        AgreementStore, AnswerUnderWay, DeadlineStore, InboxStore, LeaseName, NodeReport, NodeStore, RunStart,
        TurnStore,
    },
};
use rejoinder_guard::Event;
use rejoinder_store::PostgresStore;
use sqlx::PgConnection;

use crate::common::{Database, new_turn};

/// So many seconds pass for the rows of nodes, in which none has a heartbeat.
async fn pass(elsewhere: &mut PgConnection, seconds: i64) {
    let sql = "update nodes set until = until - $1 * interval '1 second'";
    sqlx::query(sql).bind(seconds).execute(elsewhere).await.expect("they pass");
}

/// A node has had no heartbeat for a while, and others have.
async fn ends(elsewhere: &mut PgConnection, node: NodeId) {
    let sql = "update nodes set until = until - interval '1 minute' where id = $1";
    sqlx::query(sql).bind(node.as_uuid()).execute(elsewhere).await.expect("it is over");
}

/// A node has its heartbeat; returns how many others live.
pub(crate) async fn lives(store: &PostgresStore, node: NodeId) -> u32 {
    let (name, version, now) = ("a machine".to_owned(), "1.0.0".to_owned(), SystemClock.now());
    let (channels, agents, downs) = Default::default();
    let (revision, draining) = (None, false);
    let report = NodeReport { node, name, version, revision, draining, channels, agents, downs, now };
    store.heartbeat(&report, &[]).await.expect("the node lives").others
}

/// What a node had begun is its own, until it had time for a heartbeat.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_over_because_of_an_outage() {
    let Some(database) = Database::new().await else { return };
    let (store, mut elsewhere) = (&database.store, database.elsewhere().await);
    let [one, other] = [(); 2].map(|()| NodeId::new(SystemClock.now()));
    let (now, mut new) = (SystemClock.now(), new_turn("1"));
    let turn = new.turn.as_mut().expect("it has a turn");
    let _ = turn.obligation.on(Event::Begin, &Policy::default(), now);
    turn.run = Some(RunStart { turn: turn.id, number: 1, handler: turn.handler.clone(), node: other, at: now });
    store.accept(vec![new], None).await.expect("it is accepted");
    let answer =
        |node: NodeId| AnswerUnderWay { by: "ada".to_owned(), key: "key".to_owned(), node, request: node.as_uuid() };
    assert!(store.begin_answer(&answer(other)).await.expect("it is begun"));
    let is_over = async || {
        let runs = store.runs_left(one, &[], None, 10).await.expect("runs are read").len();
        let is_free = store.begin_answer(&answer(one)).await.expect("it is asked");
        assert_eq!(runs == 1, is_free);
        is_free
    };
    lives(store, other).await;
    lives(store, one).await;

    pass(&mut elsewhere, 7200).await;
    assert!(!is_over().await, "no node has had a heartbeat since");
    assert_eq!(lives(store, one).await, 1);
    assert!(!is_over().await);
    for _ in 0..2 {
        pass(&mut elsewhere, 5).await;
        assert_eq!(lives(store, one).await, 1);
    }

    pass(&mut elsewhere, 5).await;
    assert_eq!(lives(store, one).await, 0);
    assert!(is_over().await);
}

/// It is not taken for another one, and the rest of the node is read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_later_version_has_is_left_out() {
    let Some(database) = Database::new().await else { return };
    let (store, mut elsewhere) = (&database.store, database.elsewhere().await);
    let later = NodeId::new(SystemClock.now());
    lives(store, later).await;
    let has = "
        with named as (
            update nodes set held = array['archivist', 'channel/test.main'], downs = $2::jsonb where id = $1 returning id
        )
        insert into leases (name, fence, node, since, until)
        select name, nextval('fence_seq'), id, clock_timestamp(), clock_timestamp() + interval '15 seconds'
        from named cross join unnest(array['archivist', 'channel/test.main']) as l (name)";
    let down = r#"{"is_mute": false, "problem": "it is full", "since": null}"#;
    let downs = format!(r#"[[{{"archive": "old"}}, {down}], [{{"agent": "main"}}, {down}]]"#);
    sqlx::query(has).bind(later.as_uuid()).bind(downs).execute(&mut elsewhere).await.expect("it has them");
    let known = LeaseName::Channel(ChannelId::new("test", "main"));

    let nodes = store.nodes().await.expect("nodes are read");
    lives(store, NodeId::new(SystemClock.now())).await;
    ends(&mut elsewhere, later).await;
    let lost = store.lost_nodes().await.expect("nodes are read");

    let names: Vec<_> = nodes[0].leases.iter().map(|(name, _)| name).collect();
    assert_eq!((names, nodes[0].downs.len()), (vec![&known], 1));
    assert_eq!(lost.into_iter().map(|node| node.leases).collect::<Vec<_>>(), [[known]]);
}

/// A value that only the other version knows is no damage.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_that_cannot_be_read_is_ended_when_all_nodes_have_one_version() {
    let Some(database) = Database::new().await else { return };
    let (store, mut elsewhere, now) = (&database.store, database.elsewhere().await, SystemClock.now());
    let new = new_turn("1");
    let turn = new.turn.as_ref().expect("it has a turn").id;
    store.accept(vec![new], None).await.expect("it is accepted");
    let [one, later] = [(); 2].map(|()| NodeId::new(now));
    lives(store, one).await;
    lives(store, later).await;
    let sql = "update nodes set version = '1.1.0' where id = $1";
    sqlx::query(sql).bind(later.as_uuid()).execute(&mut elsewhere).await.expect("it is a later version");
    let sql = "update turns set body = jsonb_set(body::jsonb, '{state}', '\"archived\"')::text where id = $1";
    sqlx::query(sql).bind(turn.as_uuid()).execute(&mut elsewhere).await.expect("it is written");
    let set_aside = async || {
        let Err(StoreError::CorruptTurn { turn: unreadable, reason }) = store.turn(turn).await else {
            panic!("the turn can be read")
        };
        assert_eq!(unreadable, turn);
        store.set_aside(turn, Obligation::set_aside("damaged".to_owned(), now), &reason, now).await
    };

    let left = set_aside().await;
    ends(&mut elsewhere, later).await;
    let ended = set_aside().await;

    assert!(matches!(left, Err(StoreError::NotOwner)), "{left:?}");
    assert!(ended.is_ok(), "{ended:?}");
    store.turn(turn).await.expect("turns are read").expect("the turn is there");
}
