//! Checks of nodes and their leases.
//!
//! A store that admits one process grants each lease for good, to whatever handle asks, and knows no nodes: that is all it promises.
//! A store that several processes share passes the rest as well.

use std::time::Duration;

use super::{
    subject::Subject,
    turn::{at, chat, commit, gone, me, new_turn, said},
};
use crate::{
    model::{
        agent::AgentName,
        conversation::ChannelId,
        down::{Down, Part},
        ids::NodeId,
        log::{LogEvent, LogFilter, NewLogEntry, Subject as LogSubject},
    },
    ports::{
        clock::{Clock, SystemClock},
        store::{
            Store,
            accept::{Beside, CursorMove},
            error::StoreError,
            nodes::{Fence, Granted, Lease, LeaseName, NodeReport, NodeStore, NodeSummary, Pulse, WantedPermits},
            transition::{Commit, Transition},
        },
    },
};

fn channel(name: &str) -> LeaseName {
    LeaseName::Channel(ChannelId::new("test", name))
}

/// A node whose configuration has no revision, and whose clock is right.
pub(super) fn report(node: NodeId) -> NodeReport {
    NodeReport {
        node,
        name: "a machine".to_owned(),
        version: "1.0.0".to_owned(),
        revision: None,
        draining: false,
        channels: vec![ChannelId::new("test", "main")],
        agents: vec!["main".into()],
        downs: Vec::new(),
        now: SystemClock.now(),
    }
}

pub(super) async fn lives(store: &dyn NodeStore, report: &NodeReport) -> Pulse {
    store.heartbeat(report, &[]).await.expect("the node lives")
}

/// Runs a check of two nodes on two handles, if the store has leases that end. Otherwise both have all leases for good.
async fn of_two(subject: &mut impl Subject, check: impl AsyncFn(&dyn NodeStore, &dyn NodeStore)) {
    let (one, other) = (subject.store(), subject.another().await);
    lives(&*one, &report(me())).await;
    let wanted = [LeaseName::Housekeeper, channel("probe")];
    match one.take_leases(me(), &wanted).await.expect("leases are taken") {
        Granted::ForGood => {
            for (store, node) in [(&one, me()), (&other, gone())] {
                let granted = store.take_leases(node, &wanted).await.expect("leases are taken");
                assert_eq!(granted, Granted::ForGood, "a store has leases that end, or all of them for good");
                let held = wanted.clone().map(|name| (name, Fence::default()));
                let pulse = store.heartbeat(&report(node), &held).await.expect("the node lives");
                assert_eq!(pulse, Pulse { kept: wanted.to_vec(), ..Pulse::default() });
                assert_eq!(store.nodes().await.expect("nodes are read"), []);
                assert!(!store.ask_to_drain(node, true).await.expect("it is no error"));
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
    lives(store, &report(node)).await;
    match store.take_leases(node, wanted).await.expect("leases are taken") {
        Granted::These(leases) => leases,
        Granted::ForGood => panic!("a store has leases that end, or all of them for good"),
    }
}

async fn keeps(store: &dyn NodeStore, node: NodeId, held: &[(LeaseName, Fence)]) -> Vec<LeaseName> {
    let mut kept = store.heartbeat(&report(node), held).await.expect("the node lives").kept;
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
        for (_, since) in nodes.iter().flat_map(|summary| &summary.leases) {
            let age = SystemClock.now().as_millis() - since.as_millis();
            assert!((-MINUTE..MINUTE).contains(&age), "it is held for {age} ms");
        }
        let names = |node: &NodeSummary| node.leases.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        let nodes: Vec<_> = nodes.iter().map(|summary| (summary.node, names(summary))).collect();
        assert_eq!(nodes, [(gone(), vec![channel("b")]), (me(), wanted.to_vec())]);
    }
}

/// In milliseconds. Clocks of one machine, and the time that a check takes, differ by less.
const MINUTE: i64 = 60_000;

/// Each node hears how many others live and of the latest configuration, and both are listed as they were last.
pub async fn nodes_say_how_they_are(subject: &mut impl Subject) {
    of_two(subject, reported).await;
}

async fn reported(one: &dyn NodeStore, other: &dyn NodeStore) {
    let says = async |report: NodeReport| {
        let pulse = lives(one, &report).await;
        let off = SystemClock.now().as_millis() - pulse.now.expect("the store tells its time").as_millis();
        assert!((-MINUTE..MINUTE).contains(&off), "its clock is {off} ms off");
        Pulse { now: None, ..pulse }
    };
    assert_eq!(says(report(me())).await, Pulse::default());
    let (siri, helper) = (ChannelId::new("test", "siri"), AgentName::from("helper"));
    let down = |problem: &str, since| Down { is_mute: true, problem: problem.to_owned(), since };
    let down = vec![
        (Part::Channel(ChannelId::new("test", "main")), down("the token is \"refused\"", Some(at(7)))),
        (Part::Agent("lab".to_owned()), down("503", None)),
    ];
    let ahead = NodeReport {
        name: "another machine".to_owned(),
        version: "1.1.0".to_owned(),
        revision: Some(7),
        draining: true,
        channels: vec![siri.clone()],
        agents: vec![helper.clone(), "main".into()],
        downs: down.clone(),
        now: SystemClock.now() + Duration::from_hours(1),
        ..report(gone())
    };
    assert_eq!(lives(other, &ahead).await.others, 1);

    let pulse = says(NodeReport { revision: Some(6), ..report(me()) }).await;
    let agents = vec![helper, "main".into()];
    assert_eq!(pulse, Pulse { others: 1, agents, latest_revision: Some(7), ..Pulse::default() });
    let pulse = says(NodeReport { revision: Some(8), ..report(me()) }).await;
    assert_eq!(pulse.latest_revision, Some(8), "its own counts at once");

    let nodes = other.nodes().await.expect("nodes are read");
    let listed = |node: &NodeSummary| (node.name.clone(), node.version.clone(), node.revision, node.draining);
    assert_eq!(
        nodes.iter().map(listed).collect::<Vec<_>>(),
        [
            ("another machine".to_owned(), "1.1.0".to_owned(), Some(7), true),
            ("a machine".to_owned(), "1.0.0".to_owned(), Some(8), false)
        ]
    );
    let channels: Vec<_> = nodes.iter().map(|node| node.channels.clone()).collect();
    assert_eq!(channels, [vec![siri], report(me()).channels]);
    assert_eq!(nodes.iter().map(|node| &*node.downs).collect::<Vec<_>>(), [&*down, &[]]);
    for (node, ahead) in nodes.iter().zip([60 * MINUTE, 0]) {
        assert!((ahead - MINUTE..ahead + MINUTE).contains(&node.clock_ms), "{node:?}");
        assert!(node.seen_ago < Duration::from_secs(15), "{node:?}");
    }
}

/// What it held is free at once, and other nodes recover what it left.
pub async fn a_node_that_leaves_is_over(subject: &mut impl Subject) {
    of_two(subject, left).await;
}

async fn left(one: &dyn NodeStore, other: &dyn NodeStore) {
    let wanted = [channel("a"), LeaseName::Housekeeper];
    let held = takes(one, me(), &wanted).await;
    takes(other, gone(), &[channel("b")]).await;

    one.leave(me()).await.expect("it leaves");

    assert_eq!(other.nodes().await.expect("nodes are read").iter().map(|node| node.node).collect::<Vec<_>>(), [gone()]);
    assert_eq!(lives(other, &report(gone())).await.others, 0);
    assert_eq!(other.lost_nodes().await.expect("nodes are read"), [], "it is not lost");
    assert_eq!(names(&takes(other, gone(), &wanted).await), wanted);
    assert_eq!(keeps(one, me(), &grants(&held)).await, []);
}

/// Also from another handle. Its heartbeats change nothing of that, and after its row was removed they keep it.
pub async fn a_node_is_asked_to_drain(subject: &mut impl Subject) {
    of_two(subject, drained).await;
}

async fn drained(one: &dyn NodeStore, other: &dyn NodeStore) {
    assert!(!other.ask_to_drain(gone(), true).await.expect("it is no error"), "it has not lived");
    for drains in [true, false] {
        assert!(other.ask_to_drain(me(), drains).await.expect("it is asked"));

        for _ in 0..2 {
            assert_eq!(lives(one, &report(me())).await.drains, drains);
        }
        let nodes = other.nodes().await.expect("nodes are read");
        assert_eq!(nodes.iter().map(|node| (node.node, node.draining)).collect::<Vec<_>>(), [(me(), drains)]);
    }
    one.leave(me()).await.expect("its row is removed");
    assert!(lives(one, &NodeReport { draining: true, ..report(me()) }).await.drains);
}

/// Writes under a lease: a transition, an event with a cursor, and an event alone. Returns whether that was done: all or nothing.
async fn writes(store: &dyn Store, fence: &(LeaseName, Fence), key: &str) -> bool {
    let (main, fence) = (ChannelId::new("test", "main"), Some(fence.clone()));
    let log = vec![NewLogEntry { at: at(1), subject: LogSubject::default(), event: LogEvent::ChannelUp }];
    let cursor = CursorMove { channel: main.clone(), name: "updates".to_owned(), position: key.to_owned(), fence };
    let fence = cursor.fence.clone();
    let entries = async || {
        let filter = LogFilter { limit: 100, ..LogFilter::default() };
        store.log(&filter).await.expect("the log is read").iter().filter(|entry| &*entry.topic == "channel.up").count()
    };
    let (logged, moved_from) = (entries().await, store.cursor(&main, "updates").await.expect("cursors are read"));

    let committed = commit(store, Transition { log, fence: fence.clone(), ..Transition::default() }).await;
    let is_done = committed == Commit::Done;
    assert_eq!(committed, if is_done { Commit::Done } else { Commit::NotOwner });
    assert_eq!(entries().await, logged + usize::from(is_done));
    for (number, beside) in [Some(Beside::Cursor(cursor)), fence.map(Beside::Lease)].into_iter().enumerate() {
        let event = new_turn(said(&chat("a"), &format!("{key}.{number}")));
        let turn = event.turn.as_ref().expect("it has a turn").id;
        match store.accept(vec![event], beside).await {
            Ok(stored) => assert!(is_done, "{stored:?}"),
            Err(StoreError::NotOwner) => assert!(!is_done),
            Err(error) => panic!("{error}"),
        }
        assert_eq!(store.turn(turn).await.expect("turns are read").is_some(), is_done);
    }
    let expected = if is_done { Some(key.to_owned()) } else { moved_from };
    assert_eq!(store.cursor(&main, "updates").await.expect("cursors are read"), expected);
    is_done
}

/// Only the latest grant that was not given back counts. A store that grants leases for good asks for none.
pub async fn what_is_written_under_a_lease_needs_it(subject: &mut impl Subject) {
    let (one, other) = (subject.store(), subject.another().await);
    let name = channel("probe");
    one.heartbeat(&report(me()), &[]).await.expect("the node lives");
    match one.take_leases(me(), std::slice::from_ref(&name)).await.expect("leases are taken") {
        Granted::ForGood => {
            assert!(writes(&*one, &(name.clone(), Fence::default()), "1").await);
            assert!(writes(&*other, &(name, Fence(7)), "2").await);
        }
        Granted::These(leases) => {
            let held = grants(&leases).remove(0);
            assert!(writes(&*one, &held, "1").await);
            assert!(!writes(&*one, &(name.clone(), Fence(held.1.0 + 1)), "2").await);
            assert!(!writes(&*one, &(channel("another"), held.1), "3").await);
            one.give_back(me(), std::slice::from_ref(&held)).await.expect("it is given back");
            assert!(!writes(&*one, &held, "4").await);

            let taken = grants(&takes(&*other, gone(), std::slice::from_ref(&name)).await).remove(0);
            assert!(!writes(&*one, &held, "5").await);
            assert!(writes(&*other, &taken, "6").await);
            other.give_back(gone(), &[taken]).await.expect("it is given back");
        }
    }
    other.close().await;
}

/// Asks for permits of an agent, of which there are four, as a node that holds so many and could use so many.
async fn asks(store: &dyn NodeStore, node: NodeId, (held, wanted): (u32, u32)) -> u32 {
    asks_with(store, node, (held, wanted), true).await
}

/// The same, as a node at which the agent has a worker or not.
async fn asks_with(store: &dyn NodeStore, node: NodeId, (held, wanted): (u32, u32), has_worker: bool) -> u32 {
    let of = |agent: &str, limit| WantedPermits { agent: agent.into(), held, wanted, limit, has_worker };
    let granted = store.permits(node, &[of("main", 4), of("other", 100)]).await.expect("permits are granted");
    let agents: Vec<_> = granted.iter().map(|(agent, _)| &**agent).collect();
    assert_eq!(agents, ["main", "other"]);
    granted[0].1
}

/// What a node holds it has until it says that it does not.
pub async fn nodes_have_no_more_permits_together_than_the_limit(subject: &mut impl Subject) {
    let store = subject.store();
    if store.take_leases(me(), &[]).await.expect("leases are taken") == Granted::ForGood {
        assert_eq!(asks(&*store, me(), (0, 0)).await, 4);
    }
    of_two(subject, limited).await;
}

async fn limited(one: &dyn NodeStore, other: &dyn NodeStore) {
    takes(one, me(), &[]).await;
    assert_eq!(asks(one, me(), (0, 0)).await, 4, "it is alone");
    takes(other, gone(), &[]).await;
    assert_eq!(asks(other, gone(), (0, 3)).await, 0);

    assert_eq!(asks(one, me(), (4, 1)).await, 1);
    assert_eq!(asks(other, gone(), (0, 3)).await, 0, "the first one may not know it yet");
    assert_eq!(asks(one, me(), (2, 2)).await, 2, "two run there");
    assert_eq!(asks(other, gone(), (0, 3)).await, 2);
    assert_eq!(asks(one, me(), (2, 0)).await, 1);
    assert_eq!(asks(one, me(), (1, 0)).await, 1);
    assert_eq!(asks(other, gone(), (2, 3)).await, 3);

    assert_eq!(asks_with(other, gone(), (0, 4), false).await, 0, "the first one has a worker");
    assert_eq!(asks(one, me(), (1, 4)).await, 4);
    assert_eq!(asks_with(one, me(), (0, 0), false).await, 1, "the other one waits for permits");
    assert_eq!(asks_with(other, gone(), (0, 4), false).await, 3, "there is no worker");
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::conformance::{
        clock::TestClock,
        leases::{LASTS, LeaseTable},
    };

    #[tokio::test]
    async fn a_node_that_is_over_without_leaving_is_lost_if_it_had_leases() {
        let clock = TestClock::new();
        let table = LeaseTable::new(clock.clone());
        let held = takes(&*table, me(), &[LeaseName::Housekeeper]).await;
        lives(&*table, &report(gone())).await;
        keeps(&*table, me(), &grants(&held)).await;
        assert_eq!(table.lost_nodes().await.expect("nodes are read"), []);

        for _ in 0..3 {
            clock.advance(LASTS / 3);
            lives(&*table, &report(gone())).await;
        }

        let lost = table.lost_nodes().await.expect("nodes are read");
        assert_eq!(
            lost.iter().map(|lost| (lost.node, &*lost.leases)).collect::<Vec<_>>(),
            [(me(), &[LeaseName::Housekeeper][..])]
        );
    }

    /// No node can have had a heartbeat. After the first one the others have 15 seconds, but for those that were over before.
    #[tokio::test]
    async fn nobody_is_over_because_of_an_outage() {
        let (clock, third) = (TestClock::new(), NodeId::new(at(1)));
        let table = LeaseTable::new(clock.clone());
        for node in [me(), gone(), third] {
            table.heartbeat(&report(node), &[(LeaseName::Housekeeper, Fence(1))]).await.expect("the node lives");
        }
        let lost = async || {
            let lost = table.lost_nodes().await.expect("nodes are read");
            lost.into_iter().map(|lost| lost.node).collect::<Vec<_>>()
        };
        let passes = async |nodes: &[NodeId]| {
            for _ in 0..3 {
                clock.advance(LASTS / 3);
                for node in nodes {
                    lives(&*table, &report(*node)).await;
                }
            }
        };
        passes(&[me(), gone()]).await;
        assert_eq!(lost().await, [third]);

        clock.advance(LASTS * 10);
        assert_eq!(lost().await, [third]);
        assert_eq!(lives(&*table, &report(me())).await.others, 1);
        clock.advance(LASTS / 3);
        lives(&*table, &report(me())).await;
        assert_eq!(lost().await, [third]);

        passes(&[me()]).await;
        assert_eq!(lives(&*table, &report(me())).await.others, 0);
    }

    #[tokio::test]
    async fn the_permits_of_a_node_are_free_when_it_is_over() {
        let clock = TestClock::new();
        let table = LeaseTable::new(clock.clone());
        table.live(me(), LASTS * 2);
        table.live(gone(), LASTS);
        assert_eq!(asks(&*table, gone(), (0, 0)).await, 2, "another one lives, and has none yet");
        assert_eq!(asks(&*table, me(), (0, 4)).await, 2);

        clock.advance(LASTS);
        assert_eq!(asks(&*table, me(), (2, 4)).await, 4);
    }

    /// The double that other tests use is a store whose leases end.
    #[tokio::test]
    async fn a_table_of_leases_passes_the_checks() {
        let table = || LeaseTable::new(Arc::new(SystemClock));
        let mut one = table();
        one_holder(&*one, &*one).await;
        one = table();
        given_back(&*one, &*one).await;
        one = table();
        taken_anew(&*one, &*one).await;
        one = table();
        listed(&*one, &*one).await;
        one = table();
        lives(&*one, &report(me())).await;
        reported(&*one, &*one).await;
        one = table();
        left(&*one, &*one).await;
        one = table();
        lives(&*one, &report(me())).await;
        drained(&*one, &*one).await;
        one = table();
        limited(&*one, &*one).await;
    }
}
