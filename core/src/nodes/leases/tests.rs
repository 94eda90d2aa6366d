use std::task::Poll;

use futures_util::poll;

use super::*;
use crate::{
    conformance::{
        clock::{START, TestClock},
        layered::NullStore,
        leases::{LASTS, LeaseTable},
    },
    ports::{Clock, StoreClock},
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

    /// Another node lives, and this one has heard of it.
    async fn hears_of_another(&self, draining: bool) {
        let report = NodeReport { draining, ..report(self.other, self.clock.now()) };
        self.table.heartbeat(&report, &[]).await.expect("the table answers");
        self.passes(EVERY).await;
    }

    /// The gateway stops, and hands its leases over.
    async fn stops(&self) -> tokio::task::JoinHandle<()> {
        self.leases.lifecycle.stopping.cancel();
        let leases = self.leases.clone();
        let handing = tokio::spawn(async move { leases.hand_over().await });
        settle().await;
        handing
    }

    fn held_here(&self) -> [bool; 2] {
        [of_channel(), LeaseName::Housekeeper].map(|name| self.table.holder(&name) == Some(self.leases.node()))
    }

    async fn term(&self, name: &LeaseName) -> Lifecycle {
        self.leases.held(name).await.expect("the gateway runs").lifecycle().clone()
    }
}

/// Lets the tasks run until they wait.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

fn report(node: NodeId, now: Timestamp) -> NodeReport {
    let (name, version, revision, draining) = ("machine".to_owned(), "1.0.0".to_owned(), None, false);
    let (channels, agents, downs) = (vec![channel()], Vec::new(), Vec::new());
    NodeReport { node, name, version, revision, draining, channels, agents, downs, now }
}

async fn join(store: Arc<dyn NodeStore>, clock: SharedClock) -> Result<Arc<Leases>, StoreError> {
    let (timer, lifecycle) = (Arc::new(Timer::new()), Lifecycle::new(clock.clone()));
    let neighbours = Arc::new(Neighbours::new(clock.clone()));
    let node = ThisNode {
        id: NodeId::new(clock.now()),
        name: "machine".to_owned(),
        version: "1.0.0".to_owned(),
        revision: None,
        agents: Vec::new(),
    };
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

/// Until it lives again by its row, the other nodes may take what it runs for left.
#[tokio::test]
async fn a_heartbeat_that_fails_is_tried_again_within_a_second() {
    let node = Node::alone().await;
    node.table.set_away(true);
    node.passes(EVERY).await;
    node.table.set_away(false);

    node.passes(LOOK_AGAIN).await;

    let nodes = node.leases.nodes().await.expect("the table answers");
    assert_eq!(nodes[0].seen_ago, Duration::ZERO);
}

#[tokio::test]
async fn a_node_that_hears_nothing_for_long_does_not_count_as_alone() {
    let node = Node::alone().await;
    node.passes(Duration::from_mins(1)).await;
    assert!(!node.leases.neighbours.any());
    node.table.set_away(true);

    node.passes(LASTS.saturating_sub(EVERY)).await;
    assert!(!node.leases.neighbours.any());
    node.passes(EVERY + MOMENT).await;
    assert!(node.leases.neighbours.any());

    node.table.set_away(false);
    node.passes(LOOK_AGAIN).await;
    assert!(!node.leases.neighbours.any());
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
    let Poll::Ready(Some(granted)) = poll!(&mut held) else { panic!("it is held again") };
    assert!(!granted.lifecycle().stopping.is_cancelled());
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

    let Poll::Ready(Some(granted)) = poll!(&mut held) else { panic!("it is held") };
    assert!(!granted.lifecycle().stopping.is_cancelled() && node.leases.holds(&channel()).is_some());
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

    let Poll::Ready(Some(granted)) = poll!(&mut held) else { panic!("it is held") };
    assert!(!granted.lifecycle().stopping.is_cancelled() && node.leases.holds(&channel()).is_some());
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

    node.leases.give_back(node.leases.terms()).await;

    assert!(term.ended.is_cancelled() && node.leases.holds(&channel()).is_none());
    assert_eq!(node.other_takes(&of_channel()).await.len(), 1);
}

#[tokio::test]
async fn a_node_that_has_ended_is_over_at_once() {
    let node = Node::alone().await;
    let term = node.term(&of_channel()).await;

    node.leases.leave().await;

    assert!(term.ended.is_cancelled());
    assert_eq!((node.held_here(), node.table.nodes().await.expect("the table answers")), ([false; 2], Vec::new()));
}

/// Its runs may go on for long.
#[tokio::test]
async fn a_node_that_stops_hands_each_lease_over_once_what_is_done_under_it_has_ended() {
    let node = Node::alone().await;
    node.hears_of_another(false).await;
    let term = node.term(&of_channel()).await;
    let in_use = node.leases.begin_use(&channel()).expect("it is held");

    let handing = node.stops().await;

    assert!(node.leases.begin_use(&channel()).is_none(), "nothing else begins");
    assert!(term.stopping.is_cancelled() && !term.ended.is_cancelled());
    assert!(!node.leases.may_begin(&channel()) && node.leases.holds(&channel()).is_some(), "what has begun goes on");
    assert_eq!(node.held_here(), [true, false]);
    node.passes(EVERY).await;
    assert_eq!(node.held_here(), [true, false], "it is renewed meanwhile");

    drop(in_use);
    handing.await.expect("it does not panic");
    assert!(term.ended.is_cancelled());
    assert_eq!(node.held_here(), [false, false]);
}

#[tokio::test]
async fn a_send_that_hangs_does_not_keep_a_lease() {
    let node = Node::alone().await;
    node.hears_of_another(false).await;
    let _in_use = node.leases.begin_use(&channel()).expect("it is held");
    drop(node.stops().await);

    node.passes(GRACE).await;

    assert_eq!(node.held_here(), [false, false]);
}

/// What still ends here is sent here.
#[rstest::rstest]
#[case::alone(None)]
#[case::beside_one_that_drains(Some(true))]
#[tokio::test]
async fn a_node_that_stops_keeps_its_leases_if_no_other_one_takes_them(#[case] draining: Option<bool>) {
    let node = Node::alone().await;
    if let Some(draining) = draining {
        node.hears_of_another(draining).await;
    }

    node.stops().await.await.expect("it does not panic");

    assert!(node.leases.begin_use(&channel()).is_some());
    assert_eq!(node.held_here(), [true, true]);
}

/// That of its machine is months off.
#[tokio::test]
async fn a_node_goes_by_the_clock_of_the_store() {
    let (clock, table) = (Arc::new(StoreClock::default()), LeaseTable::new(TestClock::new()));

    let leases = join(table, clock.clone()).await.expect("the table answers");

    let ahead = clock.now().as_millis() - START.as_millis();
    assert!((0..60_000).contains(&ahead), "{ahead} ms ahead");
    let nodes = leases.nodes().await.expect("the table answers");
    assert!(nodes[0].clock_ms.abs() > 60_000, "{nodes:?}");
}

/// What is answered on the channel meanwhile is sent here.
#[tokio::test]
async fn a_channel_that_no_other_node_has_stays_until_the_end() {
    let node = Node::alone().await;
    let other = NodeReport { channels: Vec::new(), ..report(node.other, node.clock.now()) };
    node.table.heartbeat(&other, &[]).await.expect("the table answers");
    assert_eq!(node.leases.known_channels().await.expect("the table answers"), [channel()].into());

    node.stops().await.await.expect("it does not panic");

    assert!(node.leases.begin_use(&channel()).is_some());
    assert_eq!(node.held_here(), [true, false]);
}

#[tokio::test]
async fn a_node_that_is_asked_to_drain_takes_no_lease_until_it_is_asked_again() {
    let node = Node::alone().await;
    let ask = async |drains| {
        assert!(node.table.ask_to_drain(node.leases.node(), drains).await.expect("the table answers"));
    };

    ask(true).await;
    node.passes(EVERY).await;
    assert!(node.leases.is_draining());
    assert_eq!(node.held_here(), [false, false]);
    node.passes(Duration::from_mins(2)).await;
    assert_eq!(node.held_here(), [false, false]);
    let nodes = node.leases.nodes().await.expect("the table answers");
    assert!(nodes[0].draining && nodes[0].leases.is_empty(), "{nodes:?}");

    ask(false).await;
    node.passes(EVERY * 3).await;
    assert!(!node.leases.is_draining());
    assert_eq!(node.held_here(), [true, true]);
    assert!(!node.term(&of_channel()).await.stopping.is_cancelled());
}

/// The answer to the heartbeat is on its way when the node is asked.
#[tokio::test]
async fn an_answer_from_before_does_not_end_a_drain() {
    let node = Node::alone().await;
    node.table.set_delay(secs(1));
    node.passes(EVERY).await;
    node.table.set_delay(Duration::ZERO);
    assert!(node.leases.ask_to_drain(node.leases.node(), true).await.expect("the table answers"));

    node.passes(secs(1)).await;

    assert!(node.leases.is_draining());
    assert_eq!(node.held_here(), [false, false]);
}

/// Within a second, while a node lives that may give it back; else there is no hurry.
#[tokio::test]
async fn a_lease_that_is_given_back_is_taken_soon() {
    let clock = TestClock::new();
    let table = LeaseTable::new(clock.clone());
    let other = NodeId::new(clock.now());
    table.heartbeat(&report(other, clock.now()), &[]).await.expect("the table answers");
    table.give(&of_channel(), other, Duration::MAX);
    let node = Node { other, ..Node::joins(clock, table).await };
    assert_eq!(node.held_here(), [false, true]);
    node.passes(secs(1)).await;

    node.table.give(&of_channel(), other, Duration::ZERO);
    node.passes(secs(1)).await;

    assert_eq!(node.held_here(), [true, true]);
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

/// PostgreSQL keeps no U+0000.
#[tokio::test]
async fn other_nodes_see_what_is_down_here_after_the_next_heartbeat() {
    let node = Node::alone().await;
    let down = |problem: &str| Down { is_mute: false, problem: problem.to_owned(), since: None };
    let downs = async || node.table.nodes().await.expect("the table answers").remove(0).downs;

    node.leases.set_downs(&HashMap::from([(Part::Agent("lab".to_owned()), down("50\u{0}3"))]));
    node.passes(EVERY).await;
    assert_eq!(downs().await, [(Part::Agent("lab".to_owned()), down("503"))]);

    node.leases.set_downs(&HashMap::new());
    node.passes(EVERY).await;
    assert!(downs().await.is_empty());
}

#[tokio::test]
async fn a_node_knows_that_another_one_has_a_later_configuration() {
    let node = Node::alone().await;
    let hears_of = async |revision| {
        let report = NodeReport { revision: Some(revision), ..report(node.other, node.clock.now()) };
        node.table.heartbeat(&report, &[]).await.expect("the table answers");
        node.passes(EVERY).await;
        node.leases.behind_since()
    };
    assert_eq!(hears_of(7).await, None, "it has none");

    node.leases.set_revision(7);
    assert_eq!(hears_of(7).await, None);
    let since = hears_of(8).await;
    assert!(since.is_some());
    assert_eq!(hears_of(9).await, since);

    node.leases.revision.store(9, Ordering::Relaxed);
    assert_eq!(hears_of(9).await, None, "a heartbeat that began before the reload was noted after it");
    node.leases.set_revision(10);
    assert_eq!((node.leases.behind_since(), hears_of(9).await), (None, None));
}

/// A store that admits one process costs an idle gateway nothing.
/// Not so if it has taken the lease anew since.
#[tokio::test]
async fn a_lease_ends_when_the_store_refuses_a_write_under_it() {
    let node = Node::alone().await;
    let (hold, term) = (node.leases.hold(&channel()).expect("it has the lease"), node.term(&of_channel()).await);
    let fence = hold.fence().expect("it ends");
    let refused = |fence: &(LeaseName, Fence)| node.leases.checked::<()>(Some(fence), Err(StoreError::NotOwner));
    assert!(node.leases.checked(Some(&fence), Ok(())).is_ok());
    assert!(refused(&(of_channel(), Fence(fence.1.0 + 1))).is_err());
    assert!(node.leases.still_holds(&hold));

    assert!(refused(&fence).is_err());
    assert!(!node.leases.still_holds(&hold) && node.leases.hold(&channel()).is_none());
    assert!(hold.ends().is_cancelled() && term.stopping.is_cancelled());

    node.passes(EVERY).await;
    let anew = node.leases.hold(&channel()).expect("nobody else has it");
    assert!(anew.fence().expect("it ends").1 > fence.1);
    assert!(refused(&fence).is_err());
    assert!(node.leases.still_holds(&anew));
}

#[tokio::test]
async fn with_leases_for_good_nothing_is_renewed() {
    let clock = TestClock::new();
    let leases = join(Arc::new(NullStore), clock.clone()).await.expect("it admits this process");

    leases.clone().run().await;

    assert!(leases.are_for_good());
    assert_eq!((clock.next_wake(), clock.slept()), (None, 0));
    clock.advance(Duration::from_hours(24));
    assert_eq!(leases.holds(&channel()), Some(Fence::default()));
    assert!(!leases.neighbours.any());
    let hold = leases.held(&LeaseName::Housekeeper).await.expect("it is held");
    leases.hand_over().await;
    assert!(
        !hold.lifecycle().stopping.is_cancelled() && leases.holds(&channel()).is_some(),
        "there is nobody to give it to"
    );
    let nodes = leases.nodes().await.expect("it is known");
    let names: Vec<_> = nodes[0].leases.iter().map(|(name, _)| name.clone()).collect();
    assert_eq!((nodes.len(), nodes[0].node, names), (1, leases.node(), vec![of_channel(), LeaseName::Housekeeper]));
}
