//! Checks of nodes and their leases.
//!
//! A store that admits one process grants each lease for good, to whatever handle asks, and knows no nodes: that is all it promises.
//! A store that several processes share passes the rest as well.

use super::{
    subject::Subject,
    turn::{gone, me},
};
use crate::{
    model::{conversation::ChannelId, ids::NodeId},
    ports::store::nodes::{Fence, Granted, Lease, LeaseName, NodeStore},
};

fn channel(name: &str) -> LeaseName {
    LeaseName::Channel(ChannelId::new("test", name))
}

/// Runs a check of two nodes on two handles, if the store has leases that end. Otherwise both have all leases for good.
async fn of_two(subject: &mut impl Subject, check: impl AsyncFn(&dyn NodeStore, &dyn NodeStore)) {
    let (one, other) = (subject.store(), subject.another().await);
    one.heartbeat(me(), &[]).await.expect("the node lives");
    let wanted = [LeaseName::Housekeeper, channel("probe")];
    match one.take_leases(me(), &wanted).await.expect("leases are taken") {
        Granted::ForGood => {
            for (store, node) in [(&one, me()), (&other, gone())] {
                let granted = store.take_leases(node, &wanted).await.expect("leases are taken");
                assert_eq!(granted, Granted::ForGood, "a store has leases that end, or all of them for good");
                let held = wanted.clone().map(|name| (name, Fence::default()));
                assert_eq!(store.heartbeat(node, &held).await.expect("the node lives"), wanted);
                assert_eq!(store.nodes().await.expect("nodes are read"), []);
            }
        }
        Granted::These(leases) => {
            one.give_back(me(), &grants(&leases)).await.expect("leases are given back");
            check(&*one, &*other).await;
        }
    }
    other.close().await;
}

/// Takes leases for a node that lives.
async fn takes(store: &dyn NodeStore, node: NodeId, wanted: &[LeaseName]) -> Vec<Lease> {
    store.heartbeat(node, &[]).await.expect("the node lives");
    match store.take_leases(node, wanted).await.expect("leases are taken") {
        Granted::These(leases) => leases,
        Granted::ForGood => panic!("a store has leases that end, or all of them for good"),
    }
}

async fn keeps(store: &dyn NodeStore, node: NodeId, held: &[(LeaseName, Fence)]) -> Vec<LeaseName> {
    let mut kept = store.heartbeat(node, held).await.expect("the node lives");
    kept.sort_unstable();
    kept
}

fn grants(leases: &[Lease]) -> Vec<(LeaseName, Fence)> {
    leases.iter().map(|lease| (lease.name.clone(), lease.fence)).collect()
}

fn names(leases: &[Lease]) -> Vec<LeaseName> {
    let mut names: Vec<_> = leases.iter().map(|lease| lease.name.clone()).collect();
    names.sort_unstable();
    names
}

/// Neither takes the other's lease, renews it or gives it back.
pub async fn a_lease_is_held_by_one_node(subject: &mut impl Subject) {
    of_two(subject, one_holder).await;
}

async fn one_holder(one: &dyn NodeStore, other: &dyn NodeStore) {
    let wanted = [channel("a"), LeaseName::Housekeeper];
    let held = takes(one, me(), &wanted).await;
    assert_eq!(names(&held), wanted);

    assert_eq!(takes(other, gone(), &wanted).await, []);
    assert_eq!(keeps(other, gone(), &grants(&held)).await, []);
    other.give_back(gone(), &grants(&held)).await.expect("it is no error");

    assert_eq!(takes(other, gone(), &wanted).await, []);
    assert_eq!(keeps(one, me(), &grants(&held)).await, wanted);
    assert_eq!(names(&takes(other, gone(), &[channel("b")]).await), [channel("b")]);
}

/// Each grant has a higher fence, and who held the lease before does not have it back.
pub async fn a_lease_that_is_given_back_is_granted_anew(subject: &mut impl Subject) {
    of_two(subject, given_back).await;
}

async fn given_back(one: &dyn NodeStore, other: &dyn NodeStore) {
    let wanted = [channel("a"), channel("b")];
    let before = takes(one, me(), &wanted).await;
    let (first, second): (Vec<_>, Vec<_>) = grants(&before).into_iter().partition(|(name, _)| *name == channel("a"));
    one.give_back(me(), &first).await.expect("it is given back");

    let after = takes(other, gone(), &wanted).await;

    assert_eq!(names(&after), [channel("a")]);
    assert!(after[0].fence > first[0].1, "{after:?} after {first:?}");
    assert_eq!(keeps(one, me(), &grants(&before)).await, [channel("b")]);
    one.give_back(me(), &first).await.expect("it is no error");
    assert_eq!(keeps(other, gone(), &grants(&after)).await, [channel("a")]);
    assert_eq!(keeps(one, me(), &second).await, [channel("b")]);
}

/// The answer to the first request was lost, or the node does not rely on the lease any more.
pub async fn a_node_that_takes_its_own_lease_holds_it_anew(subject: &mut impl Subject) {
    of_two(subject, taken_anew).await;
}

async fn taken_anew(one: &dyn NodeStore, _: &dyn NodeStore) {
    let wanted = [LeaseName::Housekeeper];
    let before = takes(one, me(), &wanted).await;

    let after = takes(one, me(), &wanted).await;

    assert_eq!(names(&after), wanted);
    assert!(after[0].fence > before[0].fence, "{after:?} after {before:?}");
    assert_eq!(keeps(one, me(), &grants(&before)).await, []);
    assert_eq!(keeps(one, me(), &grants(&after)).await, wanted);
}

/// Each node is known to the other.
pub async fn nodes_are_listed_with_their_leases(subject: &mut impl Subject) {
    of_two(subject, listed).await;
}

async fn listed(one: &dyn NodeStore, other: &dyn NodeStore) {
    let wanted = [channel("a"), LeaseName::Housekeeper];
    takes(one, me(), &wanted).await;
    takes(other, gone(), &[channel("b")]).await;

    for store in [one, other] {
        let nodes = store.nodes().await.expect("nodes are read");
        let nodes: Vec<_> = nodes.into_iter().map(|summary| (summary.node, summary.leases)).collect();
        assert_eq!(nodes, [(gone(), vec![channel("b")]), (me(), wanted.to_vec())]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::{clock::TestClock, leases::LeaseTable};

    /// The double that other tests use is a store whose leases end.
    #[tokio::test]
    async fn a_table_of_leases_passes_the_checks() {
        let mut table = LeaseTable::new(TestClock::new());
        one_holder(&*table, &*table).await;
        table = LeaseTable::new(TestClock::new());
        given_back(&*table, &*table).await;
        table = LeaseTable::new(TestClock::new());
        taken_anew(&*table, &*table).await;
        table = LeaseTable::new(TestClock::new());
        listed(&*table, &*table).await;
    }
}
