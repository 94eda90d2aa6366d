//! An exhaustive check of leases: every order of what two nodes, their clocks, the database and a platform can do with one delivery,
//! within small bounds. The platform cannot tell a resend from a new message.
//!
//! The world keeps to what `rejoinder_core::store` and the core promise: a lease is granted and renewed by the clock of the database; a
//! node counts from before it asked, and relies on it until a margin before its end; an attempt is stored under the fence before its
//! first byte; the lease is looked at again before that byte; a holder ends the attempts that others left in flight as unknown; a receipt
//! changes only an attempt that has no end. A node that is frozen, or cut off, is one that does nothing while time passes: each order of
//! steps has such nodes, between any two steps. A [`Bug`] breaks one of these clauses.

use stateright::{Checker, HasDiscoveries, Model, Property};

/// How long a lease lasts from its grant on, and how long before its end it is not relied on any more.
const LASTS: u8 = 3;
const MARGIN: u8 = 1;

/// A clause that the world breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    /// A lease is counted from when the answer came, not from when it was asked for.
    CountsFromTheAnswer,
    /// The clock of a node stands still while its machine sleeps.
    ClockStandsStill,
    /// The lease is not looked at between the attempt's row and its first byte.
    SkipsTheLook,
    /// A holder sends again what another one left in flight, without a label.
    ForgetsAttempts,
    /// A receipt is written although the attempt was ended, by a node that has the lease no more.
    ReceiptWithoutFence,
}

/// The parameters, the same in every state.
#[derive(Clone, Copy, Debug)]
struct World {
    /// When the check ends.
    end: u8,
    attempts: usize,
    /// Of each node.
    requests: u8,
    bug: Option<Bug>,
}

impl World {
    fn has(self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }
}

/// What a request to the database asks for, and when it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Request {
    asked_at: u8,
    /// The fence that it got, once the database has executed it.
    granted: Option<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Term {
    fence: u8,
    /// When it is not relied on any more, by the node's clock.
    until: u8,
}

/// How far a node is with an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    Idle,
    /// It has read the delivery, and will begin its attempt of this number, with a label or without one.
    Read {
        attempt: usize,
        label: bool,
    },
    /// The attempt's row is stored.
    Stored {
        attempt: usize,
        label: bool,
    },
    /// The lease was looked at: the first byte is next.
    Looked {
        attempt: usize,
        label: bool,
    },
    /// The platform answered, or the call broke off (`None`).
    Answered {
        attempt: usize,
        accepted: Option<bool>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Node {
    /// How often it may still ask for the lease.
    requests_left: u8,
    /// How far its clock is behind.
    behind: u8,
    request: Option<Request>,
    term: Option<Term>,
    step: Step,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Delivery {
    Pending,
    Sending,
    Delivered,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Moment {
    now: u8,
    /// The row of the lease.
    fence: u8,
    holder: Option<usize>,
    until: u8,
    /// The rows of the delivery and of its attempts: the node of each, and whether it has ended.
    delivery: Delivery,
    label: bool,
    attempts: Vec<(usize, bool)>,
    nodes: [Node; 2],
    /// How many messages people saw without and with a label.
    shown: (u8, u8),
    /// A node sent although it could have known that its lease was over.
    sent_in_vain: bool,
    was_delivered: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Tick,
    /// The machine of a node sleeps while time passes.
    Sleep(usize),
    /// The node asks for the lease, or for its renewal.
    Ask(usize),
    /// The database executes the request.
    Execute(usize),
    Hear(usize),
    GiveBack(usize),
    /// The holder ends what the other node left in flight.
    Recover(usize),
    Read(usize),
    Store(usize),
    Look(usize),
    /// The platform shows the message, and the answer arrives or is lost.
    Show(usize, bool),
    Refuse(usize),
    Receipt(usize),
}

impl Moment {
    fn clock(&self, node: usize) -> u8 {
        self.now - self.nodes[node].behind
    }

    /// The term that a node relies on, by its own clock.
    fn term(&self, node: usize) -> Option<Term> {
        self.nodes[node].term.filter(|term| self.clock(node) < term.until)
    }

    /// Whether a transaction with this fence is one of the holder.
    fn is_held(&self, node: usize, fence: u8) -> bool {
        self.holder == Some(node) && self.fence == fence && self.now < self.until
    }

    fn execute(&mut self, node: usize) {
        let mine = self.nodes[node].term.map(|term| term.fence);
        let renews = mine.is_some_and(|fence| self.is_held(node, fence));
        let granted = if renews {
            self.until = self.now + LASTS;
            Some(self.fence)
        } else if self.holder.is_none() || self.holder == Some(node) || self.until <= self.now {
            (self.fence, self.holder, self.until) = (self.fence + 1, Some(node), self.now + LASTS);
            Some(self.fence)
        } else {
            None
        };
        match (granted, &mut self.nodes[node].request) {
            (Some(_), Some(request)) => request.granted = granted,
            (_, request) => *request = None,
        }
    }

    fn hear(&mut self, world: World, node: usize) {
        let clock = self.clock(node);
        let Some(Request { asked_at, granted: Some(fence) }) = self.nodes[node].request.take() else { return };
        let from = if world.has(Bug::CountsFromTheAnswer) { clock } else { asked_at };
        let term = Term { fence, until: from + LASTS - MARGIN };
        if clock < term.until {
            self.nodes[node].term = Some(term);
        }
    }

    /// Ends the attempts in flight that are not this node's own, or not of this term.
    fn recover(&mut self, world: World, node: usize) {
        let in_flight = match self.nodes[node].step {
            Step::Stored { attempt, .. } | Step::Looked { attempt, .. } | Step::Answered { attempt, .. } => {
                Some(attempt)
            }
            Step::Idle | Step::Read { .. } => None,
        };
        for (number, (_, has_ended)) in self.attempts.iter_mut().enumerate() {
            if !*has_ended && in_flight != Some(number) {
                *has_ended = true;
                self.delivery = Delivery::Pending;
                self.label |= !world.has(Bug::ForgetsAttempts);
            }
        }
    }

    fn store(&mut self, node: usize) {
        let Step::Read { attempt, label } = self.nodes[node].step else { return };
        let fence = self.nodes[node].term.map_or(0, |term| term.fence);
        // The row of an attempt has its number as its key.
        if self.is_held(node, fence) && self.delivery == Delivery::Pending && self.attempts.len() == attempt {
            self.attempts.push((node, false));
            self.delivery = Delivery::Sending;
            self.nodes[node].step = Step::Stored { attempt, label };
        } else {
            self.nodes[node].step = Step::Idle;
        }
    }

    fn send(&mut self, node: usize, shown: bool, answer: Option<bool>) {
        let Step::Looked { attempt, label } = self.nodes[node].step else { return };
        if shown {
            *(if label { &mut self.shown.1 } else { &mut self.shown.0 }) += 1;
        }
        self.nodes[node].step = Step::Answered { attempt, accepted: answer };
    }

    fn receipt(&mut self, world: World, node: usize) {
        let Step::Answered { attempt, accepted } = self.nodes[node].step else { return };
        self.nodes[node].step = Step::Idle;
        let has_ended = self.attempts[attempt].1;
        if has_ended && !world.has(Bug::ReceiptWithoutFence) {
            return;
        }
        self.attempts[attempt].1 = true;
        self.delivery = if accepted == Some(true) { Delivery::Delivered } else { Delivery::Pending };
        self.label |= accepted.is_none();
        self.was_delivered |= accepted == Some(true);
    }
}

impl Model for World {
    type State = Moment;
    type Action = Action;

    fn init_states(&self) -> Vec<Moment> {
        let node = Node { requests_left: self.requests, behind: 0, request: None, term: None, step: Step::Idle };
        vec![Moment {
            now: 0,
            fence: 0,
            holder: None,
            until: 0,
            delivery: Delivery::Pending,
            label: false,
            attempts: Vec::new(),
            nodes: [node.clone(), node],
            shown: (0, 0),
            sent_in_vain: false,
            was_delivered: false,
        }]
    }

    fn actions(&self, moment: &Moment, actions: &mut Vec<Action>) {
        if moment.now < self.end {
            actions.push(Action::Tick);
            actions.extend([0, 1].map(Action::Sleep));
        }
        for node in [0, 1] {
            let relies = moment.term(node).is_some();
            match moment.nodes[node].request {
                None if moment.nodes[node].requests_left > 0 => actions.push(Action::Ask(node)),
                None => {}
                Some(Request { granted: None, .. }) => actions.push(Action::Execute(node)),
                Some(_) => actions.push(Action::Hear(node)),
            }
            if relies && moment.attempts.iter().any(|(_, has_ended)| !has_ended) {
                actions.push(Action::Recover(node));
            }
            match moment.nodes[node].step {
                Step::Idle if relies => {
                    actions.push(Action::GiveBack(node));
                    if moment.delivery == Delivery::Pending && moment.attempts.len() < self.attempts {
                        actions.push(Action::Read(node));
                    }
                }
                Step::Idle => {}
                Step::Read { .. } => actions.push(Action::Store(node)),
                Step::Stored { .. } => actions.push(Action::Look(node)),
                Step::Looked { .. } => {
                    actions.extend([true, false].map(|arrives| Action::Show(node, arrives)));
                    actions.push(Action::Refuse(node));
                }
                Step::Answered { .. } => actions.push(Action::Receipt(node)),
            }
        }
    }

    fn next_state(&self, moment: &Moment, action: Action) -> Option<Moment> {
        let mut next = moment.clone();
        match action {
            Action::Tick => next.now += 1,
            Action::Sleep(node) => {
                next.now += 1;
                next.nodes[node].behind += u8::from(self.has(Bug::ClockStandsStill));
            }
            Action::Ask(node) => {
                next.nodes[node].requests_left -= 1;
                next.nodes[node].request = Some(Request { asked_at: moment.clock(node), granted: None });
            }
            Action::Execute(node) => next.execute(node),
            Action::Hear(node) => next.hear(*self, node),
            Action::GiveBack(node) => {
                let term = next.nodes[node].term.take()?;
                if next.is_held(node, term.fence) {
                    next.holder = None;
                }
                next.nodes[node].request = None;
            }
            Action::Recover(node) => {
                let fence = moment.term(node)?.fence;
                if next.is_held(node, fence) {
                    next.recover(*self, node);
                }
            }
            Action::Read(node) => {
                next.nodes[node].step = Step::Read { attempt: moment.attempts.len(), label: moment.label };
            }
            Action::Store(node) => next.store(node),
            Action::Look(node) => {
                let Step::Stored { attempt, label } = moment.nodes[node].step else { return None };
                let relies = moment.term(node).is_some();
                let looks = relies || self.has(Bug::SkipsTheLook);
                next.nodes[node].step = if looks { Step::Looked { attempt, label } } else { Step::Idle };
                next.sent_in_vain |= looks && !relies;
            }
            Action::Show(node, arrives) => next.send(node, true, arrives.then_some(true)),
            Action::Refuse(node) => next.send(node, false, Some(false)),
            Action::Receipt(node) => next.receipt(*self, node),
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("one node relies on the lease", |_, moment: &Moment| {
                moment.term(0).is_none() || moment.term(1).is_none()
            }),
            Property::always("never two without a label", |_, moment: &Moment| moment.shown.0 <= 1),
            Property::always("delivered means seen", |_, moment: &Moment| {
                moment.delivery != Delivery::Delivered || moment.shown != (0, 0)
            }),
            Property::always("nothing is sent after the end of a lease", |_, moment: &Moment| !moment.sent_in_vain),
            Property::always("what was delivered stays so", |_, moment: &Moment| {
                !moment.was_delivered || moment.delivery == Delivery::Delivered
            }),
            Property::sometimes("one node delivers what the other left", |_, moment: &Moment| {
                moment.delivery == Delivery::Delivered && moment.attempts.iter().map(|(node, _)| node).eq(&[0, 1])
            }),
        ]
    }
}

const WORLD: World = World { end: 5, attempts: 2, requests: 2, bug: None };

#[test]
fn two_nodes_share_a_channel() {
    let checker = WORLD.checker().threads(2).spawn_dfs().join();
    println!("{} states, at most {} steps", checker.unique_state_count(), checker.max_depth());
    checker.assert_properties();
}

/// The checker finds an order of events in which `bug` breaks the property.
fn breaks(property: &'static str, bug: Bug) {
    let found = HasDiscoveries::AnyOf([property].into());
    let checker = World { bug: Some(bug), ..WORLD }.checker().finish_when(found).spawn_bfs().join();
    println!("{bug:?}: {:?}", checker.assert_any_discovery(property).into_actions());
}

#[test]
fn a_lease_that_is_counted_from_the_answer_is_found() {
    breaks("one node relies on the lease", Bug::CountsFromTheAnswer);
}

#[test]
fn a_clock_that_stands_still_is_found() {
    breaks("one node relies on the lease", Bug::ClockStandsStill);
}

#[test]
fn a_node_that_thaws_and_sends_is_found() {
    breaks("nothing is sent after the end of a lease", Bug::SkipsTheLook);
}

#[test]
fn an_attempt_that_is_sent_again_without_a_label_is_found() {
    breaks("never two without a label", Bug::ForgetsAttempts);
}

#[test]
fn a_receipt_without_a_fence_is_found() {
    breaks("what was delivered stays so", Bug::ReceiptWithoutFence);
}
