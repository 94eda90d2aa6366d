//! Checks of what nodes agree on.
//!
//! A store that admits one process keeps nothing of it, and says yes to all: that is what it promises. A store that several processes
//! share passes the rest as well.

use std::time::Duration;

use futures_util::future::join_all;
use uuid::Uuid;

use super::{
    nodes::{lives, report},
    sessions::known,
    subject::Subject,
    turn::{commit, done, gone, me},
};
use crate::{
    model::ids::{NodeId, PersonId},
    ports::store::{
        Store,
        agreements::{AnswerUnderWay, Configuration},
        transition::{Commit, Transition},
    },
};

const MINUTE: Duration = Duration::from_mins(1);

/// Whether several processes share a store.
async fn is_shared(store: &dyn Store) -> bool {
    store.configuration(&[0; 32]).await.expect("the configuration is set").is_some()
}

/// Of two nodes that make a secret, both use that of the first. Also over a restart.
pub async fn nodes_use_the_secret_that_was_given_first(subject: &mut impl Subject) {
    let (one, other) = (subject.store(), subject.another().await);
    let put = async |store: &dyn Store, name: &str, made: &str| {
        store.put_secret(name, made).await.expect("the secret is stored")
    };
    assert_eq!(put(&*one, "admin-token", "one").await, "one");
    let expected = if is_shared(&*one).await { "one" } else { "other" };
    assert_eq!(put(&*other, "admin-token", "other").await, expected);
    assert_eq!(put(&*other, "hook-result-key", "key").await, "key");
    other.close().await;
    drop(one);

    subject.reopen().await;
    let store = subject.store();
    assert_eq!(put(&*store, "admin-token", expected).await, expected);
}

/// One that was replaced has the number that it had last, until an operator chooses it. Also over a restart of all nodes.
pub async fn a_configuration_that_was_replaced_is_the_latest_again_if_it_is_chosen(subject: &mut impl Subject) {
    let (one, other) = (subject.store(), subject.another().await);
    let begin = async |store: &dyn Store, digest: u8| {
        store.configuration(&[digest; 32]).await.expect("the configuration is set")
    };
    let is_shared = begin(&*one, 1).await.is_some();
    let revision = |revision, digest: u8| is_shared.then_some(Configuration { revision, digest: [digest; 32] });
    assert_eq!(begin(&*other, 1).await, revision(1, 1));
    assert_eq!(begin(&*other, 2).await, revision(2, 2));
    assert_eq!(begin(&*one, 1).await, revision(1, 1));
    done(&*one, chosen(3, 3)).await;
    assert_eq!(begin(&*other, 2).await, revision(2, 2));
    other.close().await;
    drop(one);

    subject.reopen().await;
    let store = subject.store();
    assert_eq!(begin(&*store, 1).await, revision(1, 1));
    done(&*store, chosen(4, 1)).await;
    assert_eq!(begin(&*store, 1).await, revision(4, 1));
    assert_eq!(begin(&*store, 3).await, revision(3, 3));
    assert_eq!(store.latest_configuration().await.expect("the configuration is read"), revision(4, 1));
}

/// A node that paused meanwhile stores nothing of it, also after a restart of all nodes.
pub async fn what_is_of_a_configuration_that_was_replaced_is_not_stored(subject: &mut impl Subject) {
    let (one, other) = (subject.store(), subject.another().await);
    let is_shared = is_shared(&*one).await;
    let of = |revision: i64, digest: u8, person: u128| Transition {
        people: vec![known(PersonId::from(Uuid::from_u128(person)), &person.to_string())],
        ..chosen(revision, digest)
    };
    assert_eq!(commit(&*one, of(1, 0, 1)).await, Commit::Done, "it is the latest");
    assert_eq!(commit(&*other, of(2, 9, 2)).await, Commit::Done, "it is the next one");
    assert_eq!(commit(&*one, of(2, 9, 3)).await, Commit::Done, "another node has made it the latest");
    let refused = if is_shared { Commit::Conflict } else { Commit::Done };
    for (revision, digest) in [(1, 0), (2, 8), (4, 8)] {
        assert_eq!(commit(&*one, of(revision, digest, 4)).await, refused, "{revision}");
    }
    other.close().await;
    drop(one);

    subject.reopen().await;
    let store = subject.store();
    let latest = store.latest_configuration().await.expect("the configuration is read");
    assert_eq!(latest, is_shared.then_some(Configuration { revision: 2, digest: [9; 32] }));
    let people = store.people().await.expect("people are read");
    assert_eq!(people.len(), if is_shared { 3 } else { 4 });
}

/// All of them follow the same one.
pub async fn of_16_configurations_that_are_chosen_at_once_one_is_the_latest(subject: &mut impl Subject) {
    let (one, other) = (subject.store(), subject.another().await);
    let expected = if is_shared(&*one).await { 1 } else { 16 };
    let all = (1..=16_u8).map(|digest| {
        let store = if digest.is_multiple_of(2) { &one } else { &other };
        async move { commit(&**store, chosen(2, digest)).await }
    });

    let applied = join_all(all).await.into_iter().filter(|commit| *commit == Commit::Done).count();

    assert_eq!(applied, expected);
    other.close().await;
}

/// Makes a configuration the latest.
fn chosen(revision: i64, digest: u8) -> Transition {
    let configuration = Some(Configuration { revision, digest: [digest; 32] });
    Transition { configuration, ..Transition::default() }
}

/// Those that begin it at the same moment have one number.
pub async fn of_32_that_begin_with_a_configuration_all_have_its_number(subject: &mut impl Subject) {
    let (one, other) = (subject.store(), subject.another().await);
    let all = (0..32_u32).map(|number| {
        let store = if number.is_multiple_of(2) { &one } else { &other };
        async move { store.configuration(&[7; 32]).await }
    });
    let all = join_all(all).await;

    let numbers: Vec<_> = all.into_iter().map(|number| number.expect("the configuration is set")).collect();
    assert!(numbers.iter().all(|number| *number == numbers[0]), "{numbers:?}");
    other.close().await;
}

/// A node that is over does not stand in the way, and one that has begun anew does not free the key of what came after it.
pub async fn an_idempotency_key_is_used_by_one_node_at_a_time(subject: &mut impl Subject) {
    let (one, other) = (subject.store(), subject.another().await);
    let answer = |key: &str, node, request| AnswerUnderWay {
        by: "admin".to_owned(),
        key: key.to_owned(),
        node,
        request: Uuid::from_u128(request),
    };
    lives(&*one, &report(me())).await;
    lives(&*other, &report(gone())).await;
    let begins = async |store: &dyn Store, answer: &AnswerUnderWay| {
        store.begin_answer(answer).await.expect("the key is looked up")
    };
    let (first, foreign) = (answer("a", me(), 1), answer("a", gone(), 2));
    let by_another = AnswerUnderWay { by: "grace".to_owned(), ..foreign.clone() };
    assert!(begins(&*one, &first).await);
    assert_eq!(begins(&*other, &foreign).await, !is_shared(&*one).await);
    assert!(begins(&*other, &answer("b", gone(), 3)).await && begins(&*other, &by_another).await);

    // The end of the first request comes late.
    let second = answer("a", me(), 4);
    assert!(begins(&*one, &second).await);
    one.end_answer(&first).await.expect("it is no error");
    assert_eq!(begins(&*other, &foreign).await, !is_shared(&*one).await);
    one.end_answer(&second).await.expect("the key is free");
    assert!(begins(&*other, &foreign).await);

    // It has had no heartbeat.
    let of_dead = answer("c", NodeId::from(Uuid::from_u128(9)), 5);
    assert!(begins(&*other, &of_dead).await && begins(&*one, &answer("c", me(), 6)).await);
    other.close().await;
}

/// By the clock of the store, whatever those of the nodes are.
pub async fn the_turns_of_a_minute_are_counted_at_all_nodes(subject: &mut impl Subject) {
    let (one, other) = (subject.store(), subject.another().await);
    let share = MINUTE / 2;
    let count = async |store: &dyn Store, who: &str, is_let_in| {
        store.count_minute(who, share, is_let_in).await.expect("the turn is counted")
    };
    if !is_shared(&*one).await {
        for _ in 0..3 {
            assert_eq!(count(&*one, "ann", false).await, None);
        }
        return other.close().await;
    }
    assert_eq!(count(&*one, "ann", false).await, None);
    assert_eq!(count(&*other, "ann", false).await, None);

    let wait = count(&*one, "ann", false).await.expect("it is one too many");
    assert!(wait <= share && wait > share / 2, "{wait:?}");
    assert_eq!(count(&*one, "bob", false).await, None, "somebody else has a minute of their own");

    // What was refused was not counted, and what is not opened does not count.
    other.uncount_minute("ann", share).await.expect("it does not count");
    assert_eq!(count(&*one, "ann", false).await, None);
    assert_eq!(count(&*other, "ann", true).await, None, "it is let in");
    assert!(count(&*one, "ann", false).await.is_some_and(|wait| wait > share / 2));
    other.close().await;
}
