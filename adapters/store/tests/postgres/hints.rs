//! Hints between two stores on one database.

use std::time::Duration;

use rejoinder_core::store::{Hint, StoreState};
use sqlx::Executor;
use tokio::{sync::broadcast::Receiver, time::timeout};

use crate::common::{Database, open};

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

/// More than one notification holds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_hints_come_in_time() {
    let Some(database) = Database::new().await else { return };
    let other = open(&database.url).await;
    let mut hints = database.store.hints();
    assert_eq!(next(&mut hints).await, Hint::All);
    let mut told: Vec<_> = (0..1000).map(|number| Hint::Waiting(format!("agent {number}").as_str().into())).collect();

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
