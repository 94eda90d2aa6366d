//! Hints between two stores on one database.

use std::time::Duration;

use rejoinder_core::{
    ConversationId, Timestamp, TurnId,
    store::{Hint, HintStore, StoreState},
};
use sqlx::Executor;
use tokio::{sync::broadcast::Receiver, time::timeout};

use crate::{
    common::{Database, open},
    proxy::Proxy,
};

async fn next(hints: &mut Receiver<Hint>) -> Hint {
    timeout(Duration::from_secs(10), hints.recv()).await.expect("it comes soon").expect("none is lost")
}

/// A store that begins to listen tells the others that it is there, and after a lost connection anything may have been missed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_is_looked_at_when_a_store_joins_and_after_a_lost_connection() {
    let Some(database) = Database::new().await else { return };
    let mut hints = database.store.hints();
    assert_eq!(next(&mut hints).await, Hint::All);

    let other = open(&database.url).await;
    let mut others = other.hints();
    assert_eq!((next(&mut others).await, next(&mut hints).await), (Hint::All, Hint::All));

    let ended = "select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and query ilike 'listen%'";
    database.elsewhere().await.execute(ended).await.expect("the connections are ended");
    assert_eq!((next(&mut others).await, next(&mut hints).await), (Hint::All, Hint::All));

    // They have told each other that they are there again, before or after that.
    other.hint(Hint::Questions);
    while next(&mut hints).await != Hint::Questions {}
    other.close().await;
    database.store.close().await;
}

/// The others may not look any more once it has left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_is_sent_when_a_store_closes() {
    let Some(database) = Database::new().await else { return };
    let other = open(&database.url).await;
    let mut hints = database.store.hints();
    assert_eq!(next(&mut hints).await, Hint::All);

    other.hint(Hint::Questions);
    other.close().await;

    assert_eq!(next(&mut hints).await, Hint::Questions);
    database.store.close().await;
}

/// More than one notification holds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_hints_come_in_time() {
    let Some(database) = Database::new().await else { return };
    let other = open(&database.url).await;
    let mut hints = database.store.hints();
    assert_eq!(next(&mut hints).await, Hint::All);
    let waiting = |_| Hint::Waiting("main".into(), ConversationId::new(Timestamp::from_millis(0)));
    let mut told: Vec<_> = (0..1000).map(waiting).collect();

    for hint in &told {
        other.hint(hint.clone());
    }
    while !told.is_empty() {
        let hint = next(&mut hints).await;
        told.retain(|one| *one != hint);
    }
    other.close().await;
    database.store.close().await;
}

/// The others look at everything once they can be told to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hints_that_cannot_be_sent_are_made_up_for() {
    let Some(database) = Database::new().await else { return };
    let mut hints = database.store.hints();
    assert_eq!(next(&mut hints).await, Hint::All);
    let proxy = Proxy::start(&database.url);
    let other = open(&proxy.url).await;

    proxy.cut(true);
    other.hint(Hint::Questions);
    tokio::time::sleep(Duration::from_millis(500)).await;
    proxy.cut(false);

    assert_eq!(next(&mut hints).await, Hint::All);
    other.close().await;
    database.store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nodes_have_left_is_removed_after_ten_minutes() {
    let Some(database) = Database::new().await else { return };
    let mut elsewhere = database.elsewhere().await;
    for at in [1, 2] {
        let turn = TurnId::new(Timestamp::from_millis(at));
        database.store.put_draft(turn, 1, Some("so far")).await.expect("it is kept");
        if at == 1 {
            let age = "update drafts set at = at - interval '10 minutes'";
            elsewhere.execute(age).await.expect("time passes");
        }
    }

    database.store.remove_old_drafts().await.expect("old ones are removed");

    let left: i64 =
        sqlx::query_scalar("select count(*) from drafts").fetch_one(&mut elsewhere).await.expect("rows are counted");
    assert_eq!(left, 1);
    database.store.close().await;
}
