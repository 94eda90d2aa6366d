use std::task::Poll;

use futures_util::poll;

use super::*;
use crate::{
    conformance::{
        clock::TestClock,
        layered::NullStore,
        leases::{LASTS, LeaseTable},
    },
    ports::Clock,
};

const MOMENT: Duration = Duration::from_millis(1);

/// How long a lease is relied on.
const RELIED: Duration = LASTS.saturating_sub(MARGIN);

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn channel() -> ChannelId {
    ChannelId::new("test", "main")
}

fn of_channel() -> LeaseName {
    LeaseName::Channel(channel())
}

/// A node on a table of leases.
struct Node {
    clock: Arc<TestClock>,
    table: Arc<LeaseTable>,
    leases: Arc<Leases>,
    /// Another one that works on the same table.
    other: NodeId,
}

impl Node {
    /// A node that has joined, and renews its leases from then on.
    async fn joins(clock: Arc<TestClock>, table: Arc<LeaseTable>) -> Self {
        let leases = join(table.clone(), clock.clone()).await.expect("the table answers");
        let other = NodeId::new(clock.now());
        tokio::spawn(leases.clone().run());
        let node = Self { clock, table, leases, other };
        settle().await;
        node
    }

    async fn alone() -> Self {
        let clock = TestClock::new();
        let table = LeaseTable::new(clock.clone());
        Self::joins(clock, table).await
    }

    async fn passes(&self, time: Duration) {
        let until = self.clock.now() + time;
        while self.clock.step(until) {
            settle().await;
        }
        settle().await;
    }

    /// What another node is granted.
    async fn other_takes(&self, name: &LeaseName) -> Vec<Lease> {
        self.table.heartbeat(&report(self.other, self.clock.now()), &[]).await.expect("the table answers");
        match self.table.take_leases(self.other, std::slice::from_ref(name)).await.expect("the table answers") {
            Granted::These(leases) => leases,
            Granted::ForGood => unreachable!("the leases of a table end"),
        }
    }

    async fn term(&self, name: &LeaseName) -> Lifecycle {
        self.leases.held(name).await.expect("the gateway runs")
    }
}

/// Lets the tasks run until they wait.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

fn report(node: NodeId, now: Timestamp) -> NodeReport {
    NodeReport { node, name: "machine".to_owned(), version: "1.0.0".to_owned(), revision: None, draining: false, now }
}

async fn join(store: Arc<dyn NodeStore>, clock: Arc<TestClock>) -> Result<Arc<Leases>, StoreError> {
    let (timer, lifecycle, neighbours) = (Arc::new(Timer::new()), Lifecycle::new(clock.clone()), Arc::default());
    let node = ThisNode { id: NodeId::new(clock.now()), name: "machine".to_owned(), version: "1.0.0".to_owned() };
    Leases::join(store, clock, node, neighbours, timer, lifecycle, vec![channel()]).await.map(Arc::new)
}

#[tokio::test]
async fn a_lease_is_held_as_long_as_it_is_renewed() {
    let node = Node::alone().await;
    let (fence, term) = (node.leases.holds(&channel()), node.term(&of_channel()).await);

    node.passes(Duration::from_mins(10)).await;

    assert!(fence.is_some());
    assert_eq!(node.leases.holds(&channel()), fence);
    assert!(!term.stopping.is_cancelled());
    assert_eq!(node.leases.holds(&ChannelId::new("test", "another")), None);
}

/// The node relies on it for 12 s after its last request that was answered, and the database lets another one have it after 15 s.
#[tokio::test]
async fn a_node_stops_before_another_one_can_begin_while_the_store_is_away() {
    let node = Node::alone().await;
    let (term, fence) = (node.term(&of_channel()).await, node.leases.holds(&channel()));
    node.passes(EVERY).await;
    node.table.set_away(true);

    node.passes(RELIED.saturating_sub(MOMENT)).await;
    assert_eq!(node.leases.holds(&channel()), fence);
    node.passes(MOMENT).await;
    assert_eq!(node.leases.holds(&channel()), None);
    assert!(term.stopping.is_cancelled() && term.ended.is_cancelled());

    node.table.set_away(false);
    node.clock.advance(MARGIN.saturating_sub(MOMENT));
    assert_eq!(node.other_takes(&of_channel()).await, []);
    node.clock.advance(MOMENT);
    assert_eq!(node.other_takes(&of_channel()).await.len(), 1);
}

/// An answer that comes too late brings nothing back: what is done under the lease has stopped.
#[tokio::test]
async fn an_answer_that_comes_too_late_renews_nothing() {
    let node = Node::alone().await;
    let (term, fence) = (node.term(&of_channel()).await, node.leases.holds(&channel()));
    node.table.set_delay(secs(9));

    node.passes(RELIED).await;
    assert!(term.stopping.is_cancelled());
    node.table.set_delay(Duration::ZERO);
    node.passes(secs(2)).await;
    assert_eq!(node.leases.holds(&channel()), None, "it was asked after 5 s, and answered after 14");

    node.passes(secs(1)).await;
    assert!(node.leases.holds(&channel()) > fence, "it is granted anew");
}

/// Each answer comes when the next renewal is due.
#[tokio::test]
async fn a_slow_store_costs_no_lease() {
    let node = Node::alone().await;
    let (term, fence) = (node.term(&of_channel()).await, node.leases.holds(&channel()));
    node.table.set_delay(EVERY);

    node.passes(Duration::from_mins(2)).await;

    assert_eq!(node.leases.holds(&channel()), fence);
    assert!(!term.stopping.is_cancelled());
}

/// No task of the process has run meanwhile.
#[tokio::test]
async fn a_process_that_stood_still_holds_nothing() {
    let node = Node::alone().await;

    node.clock.advance(RELIED.saturating_sub(MOMENT));
    assert!(node.leases.holds(&channel()).is_some());
    node.clock.advance(MOMENT);

    assert_eq!(node.leases.holds(&channel()), None);
    assert!(node.leases.lost(&channel()).is_none() && node.leases.since(&channel()).is_none());
}

/// The uptime and timers stand still meanwhile, and so does the calendar if the system clock was set back before. Once the machine is
/// awake, what is done under the leases stops within a second, whether or not the store answers.
#[rstest::rstest]
#[case::with_a_right_calendar(Duration::ZERO)]
#[case::with_a_calendar_that_stands_still(Duration::from_hours(1))]
#[tokio::test]
async fn a_machine_that_slept_holds_nothing(#[case] set_back: Duration) {
    let node = Node::alone().await;
    let term = node.term(&of_channel()).await;
    node.clock.set_back(set_back);
    node.table.set_away(true);

    node.clock.set_ahead(LASTS);

    assert_eq!(node.leases.holds(&channel()), None);
    node.passes(LOOK_AGAIN).await;
    assert!(term.stopping.is_cancelled() && term.ended.is_cancelled());
}

/// The loop that ends the term has not run yet.
#[tokio::test]
async fn nobody_is_given_a_term_that_is_over() {
    let node = Node::alone().await;
    let name = of_channel();

    node.clock.advance(RELIED);

    let held = node.leases.held(&name);
    tokio::pin!(held);
    assert!(poll!(&mut held).is_pending());
    node.passes(EVERY).await;
    let Poll::Ready(Some(term)) = poll!(&mut held) else { panic!("it is held again") };
    assert!(!term.stopping.is_cancelled());
}

/// The answer comes 12 s after the request: what it grants is over, and is taken again at once.
#[tokio::test]
async fn a_grant_that_comes_too_late_begins_no_term() {
    let node = Node::alone().await;
    let name = of_channel();
    node.clock.set_ahead(LASTS);
    node.table.set_delay(RELIED);
    node.passes((EVERY + RELIED).saturating_sub(MOMENT)).await;
    let held = node.leases.held(&name);
    tokio::pin!(held);
    assert!(poll!(&mut held).is_pending());
    assert_eq!(node.table.holder(&name), Some(node.leases.node.id), "it is granted");

    node.table.set_delay(Duration::ZERO);
    node.passes(MOMENT).await;

    let Poll::Ready(Some(term)) = poll!(&mut held) else { panic!("it is held") };
    assert!(!term.stopping.is_cancelled() && node.leases.holds(&channel()).is_some());
}

#[tokio::test]
async fn a_lease_of_another_node_is_taken_when_it_is_free() {
    let clock = TestClock::new();
    let table = LeaseTable::new(clock.clone());
    let other = NodeId::new(clock.now());
    table.give(&of_channel(), other, LASTS);
    let node = Node { other, ..Node::joins(clock, table).await };
    let name = of_channel();
    let held = node.leases.held(&name);
    tokio::pin!(held);
    assert!(node.leases.holds(&channel()).is_none() && poll!(&mut held).is_pending());
    assert!(!node.term(&LeaseName::Housekeeper).await.stopping.is_cancelled(), "it is another lease");

    // Renewed by nobody, it ends.
    node.passes(LASTS.saturating_sub(MOMENT)).await;
    assert!(poll!(&mut held).is_pending());
    node.passes(EVERY).await;

    let Poll::Ready(Some(term)) = poll!(&mut held) else { panic!("it is held") };
    assert!(!term.stopping.is_cancelled() && node.leases.holds(&channel()).is_some());
}

#[tokio::test]
async fn a_lease_that_another_node_has_is_lost_with_the_next_renewal() {
    let node = Node::alone().await;
    let (term, housekeeper) = (node.term(&of_channel()).await, node.term(&LeaseName::Housekeeper).await);
    node.table.give(&of_channel(), node.other, LASTS);

    node.passes(EVERY).await;

    assert!(node.leases.holds(&channel()).is_none() && term.stopping.is_cancelled());
    assert!(!housekeeper.stopping.is_cancelled(), "it costs no other lease");
    assert_eq!(node.table.holder(&of_channel()), Some(node.other));
}

#[tokio::test]
async fn what_is_given_back_is_free_at_once() {
    let node = Node::alone().await;
    let term = node.term(&of_channel()).await;

    node.leases.give_back().await;

    assert!(term.ended.is_cancelled() && node.leases.holds(&channel()).is_none());
    assert_eq!(node.other_takes(&of_channel()).await.len(), 1);
}

/// Until it has ended, what is done under its leases goes on.
#[tokio::test]
async fn a_gateway_that_stops_takes_no_lease_and_keeps_those_that_it_has() {
    let clock = TestClock::new();
    let table = LeaseTable::new(clock.clone());
    table.give(&LeaseName::Housekeeper, NodeId::new(clock.now()), LASTS);
    let node = Node::joins(clock, table).await;
    let term = node.term(&of_channel()).await;

    node.leases.lifecycle.stopping.cancel();
    node.passes(Duration::from_mins(2)).await;

    assert!(node.leases.held(&of_channel()).await.is_none() && term.stopping.is_cancelled());
    assert!(node.leases.holds(&channel()).is_some() && !term.ended.is_cancelled());
    assert_eq!(node.table.holder(&LeaseName::Housekeeper), None);
    node.leases.lifecycle.ended.cancel();
    settle().await;
    assert_eq!(node.clock.next_wake(), None, "nothing waits any more");
}

#[tokio::test]
async fn a_node_does_not_start_while_the_store_is_away() {
    let clock = TestClock::new();
    let table = LeaseTable::new(clock.clone());
    table.set_away(true);

    assert!(join(table, clock).await.is_err());
}

/// A store that admits one process costs an idle gateway nothing.
#[tokio::test]
async fn with_leases_for_good_nothing_is_renewed() {
    let clock = TestClock::new();
    let leases = join(Arc::new(NullStore), clock.clone()).await.expect("it admits this process");

    leases.clone().run().await;

    assert!(leases.are_for_good());
    assert_eq!((clock.next_wake(), clock.slept()), (None, 0));
    clock.advance(Duration::from_hours(24));
    assert_eq!(leases.holds(&channel()), Some(Fence::default()));
    let term = leases.held(&LeaseName::Housekeeper).await.expect("it is held");
    leases.give_back().await;
    assert!(!term.stopping.is_cancelled() && leases.holds(&channel()).is_some(), "there is nobody to give it to");
}
