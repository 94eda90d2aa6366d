//! Checks of the keyrings of channels, which a store that several processes share has.

use std::sync::Arc;

use super::{
    nodes::{lives, report},
    subject::Subject,
    turn::{gone, me},
};
use crate::{
    model::{conversation::ChannelId, ids::NodeId},
    ports::{
        keyring::{Keyring, OpenKeyring},
        store::{
            Store,
            error::StoreError,
            keyring::{KeyChanges, KeyName, KeyRange, KeyringStore},
            nodes::{Fence, Granted, LeaseName},
        },
    },
};

fn channel() -> ChannelId {
    ChannelId::new("test", "keyring")
}

/// Takes the lease of the channel for a node; `None` if there are no leases that end.
async fn lease(store: &dyn Store, node: NodeId) -> Option<(LeaseName, Fence)> {
    lives(store, &report(node)).await;
    match store.take_leases(node, &[LeaseName::Channel(channel())]).await.expect("leases are taken") {
        Granted::ForGood => None,
        Granted::These(leases) => leases.into_iter().next().map(|lease| (lease.name, lease.fence)),
    }
}

async fn opened(store: &Arc<dyn Store>, lease: &(LeaseName, Fence), anew: bool) -> Result<OpenKeyring, StoreError> {
    let store = Arc::clone(store) as Arc<dyn KeyringStore>;
    Keyring::new(store, channel(), lease.clone()).open(anew).await
}

fn changes(changes: &[(KeyName, Option<&str>)]) -> KeyChanges {
    let change = |(name, value): &(KeyName, Option<&str>)| (name.clone(), value.map(|value| value.as_bytes().to_vec()));
    changes.iter().map(change).collect()
}

fn key(id: &str) -> KeyName {
    KeyName::new("key", "ann", id)
}

async fn values(keyring: &OpenKeyring, range: KeyRange) -> Vec<String> {
    let values = keyring.values_in(&range).await.expect("keys are read");
    values.into_iter().map(|value| String::from_utf8(value).expect("it is a text")).collect()
}

fn is_refused(result: &Result<(), StoreError>) -> bool {
    matches!(result, Err(StoreError::NotOwner))
}

/// Also by names that no text of the database can hold, and by long ones.
pub async fn keys_are_found_by_their_names(subject: &mut impl Subject) {
    let store = subject.store();
    let Some(held) = lease(&*store, me()).await else { return };
    let keyring = opened(&store, &held, false).await.expect("it opens");
    let (odd, long) = (key("a\0b"), key(&"long ".repeat(1000)));
    let others = [KeyName::new("key", "bob", "a"), KeyName::new("other", "ann", "a")];

    let put = changes(&[
        (key("c"), Some("c")),
        (key("a"), Some("a")),
        (key("b"), Some("b")),
        (others[0].clone(), Some("bob's")),
        (others[1].clone(), Some("other")),
    ]);
    keyring.change(put).await.expect("keys are changed");
    let put =
        changes(&[(key("a"), Some("A")), (key("b"), None), (odd.clone(), Some("odd")), (long.clone(), Some("long"))]);
    keyring.change(put).await.expect("keys are changed");
    keyring.change(changes(&[(key("nothing"), None)])).await.expect("it is no error");
    keyring.change(KeyChanges::new()).await.expect("it is no error");

    for name in [&odd, &long] {
        assert_eq!(keyring.values(std::slice::from_ref(name)).await.expect("keys are read").len(), 1);
        keyring.change(KeyChanges::from([(name.clone(), None)])).await.expect("keys are changed");
    }
    assert_eq!(values(&keyring, KeyRange::of("key", "ann")).await, ["A", "c"]);
    assert_eq!(values(&keyring, KeyRange::of("key", "ann").after("a")).await, ["c"]);
    assert_eq!(values(&keyring, KeyRange::of("key", "ann").limit(1)).await, ["A"]);
    assert_eq!(values(&keyring, KeyRange::all("key")).await, ["A", "c", "bob's"]);
    assert_eq!(values(&keyring, KeyRange::all("key").limit(2)).await, ["A", "c"]);
    let some = keyring.values(&[key("c"), key("b"), key("a"), others[1].clone()]).await.expect("keys are read");
    assert_eq!(some, [b"A".to_vec(), b"c".to_vec(), b"other".to_vec()]);
    for (kind, number) in [("key", 3), ("other", 1), ("none", 0)] {
        assert_eq!(keyring.count(kind).await.expect("keys are counted"), number, "{kind}");
    }
}

/// Of two uses at one node the later one, and of two nodes the one with the lease.
pub async fn a_keyring_is_changed_by_its_latest_use(subject: &mut impl Subject) {
    let (one, other) = (subject.store(), subject.another().await);
    let Some(held) = lease(&*one, me()).await else { return other.close().await };
    let put = |value| changes(&[(key("a"), Some(value))]);
    let first = opened(&one, &held, false).await.expect("it opens");
    first.change(put("first")).await.expect("keys are changed");

    let second = opened(&one, &held, false).await.expect("it opens");
    assert!(is_refused(&first.change(put("late")).await));
    second.change(put("second")).await.expect("keys are changed");

    one.give_back(me(), std::slice::from_ref(&held)).await.expect("it is given back");
    assert!(is_refused(&second.change(put("late")).await));
    let taken = lease(&*other, gone()).await.expect("it is free");
    let third = opened(&other, &taken, false).await.expect("it opens");
    assert!(is_refused(&second.change(put("late")).await));
    assert!(matches!(opened(&one, &held, true).await, Err(StoreError::NotOwner)));
    assert_eq!(values(&third, KeyRange::all("key")).await, ["second"]);

    let anew = opened(&other, &taken, true).await.expect("it opens");
    assert!(is_refused(&third.change(put("late")).await));
    assert_eq!(anew.count("key").await.expect("keys are counted"), 0);
    other.close().await;
}
