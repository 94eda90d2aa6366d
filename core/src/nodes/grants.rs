//! How nodes share the limit of an agent: each asks for permits, and is granted so many that all together have no more than the limit.
//! A store calls this in a transaction of one request at a time.

use crate::ports::WantedPermits;

/// What another living node was granted of an agent, and what it wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// How many it may use, or held when it asked if these are more.
    pub granted: u32,
    /// How many it could use.
    pub wanted: u32,
    /// Whether the agent has a worker there; `None` if the node has not asked yet.
    pub has_worker: Option<bool>,
}

impl Share {
    const fn lacks_some(self) -> bool {
        self.wanted > self.granted
    }
}

/// How many turns of an agent a node may run from now on, while `others` have their shares. As long as it runs more, and until it knows of
/// this, what it [holds](WantedPermits::held) counts as granted.
///
/// Each node has its part of the limit, and what others leave of theirs. One that needs less gives it up to one that needs more, but for
/// one permit, so that its next turn begins at once. With more nodes than permits it gives up that one as well. One without a worker gets
/// none while another one has a worker.
pub fn grant(wanted: &WantedPermits, others: &[Share]) -> u32 {
    let WantedPermits { wanted, limit, has_worker, .. } = *wanted;
    let room = others.iter().fold(limit, |room, other| room.saturating_sub(other.granted));
    if !has_worker && others.iter().any(|other| other.has_worker == Some(true)) {
        return 0;
    }
    let others: Vec<_> =
        others.iter().filter(|other| other.has_worker.is_none_or(|there| there == has_worker)).collect();
    let nodes = u32::try_from(others.len()).map_or(u32::MAX, |others| others.saturating_add(1));
    let part = (limit / nodes).max(1);
    let needs = if others.iter().any(|other| other.lacks_some() && other.granted < part) {
        wanted.max(u32::from(nodes <= limit)).min(part)
    } else if others.iter().any(|other| other.lacks_some()) {
        wanted.max(1)
    } else {
        wanted.max(part)
    };
    needs.min(room)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node with turns of one agent, which it runs for as long as the test wants.
    #[derive(Clone, Copy, Default)]
    struct Node {
        /// How many it may run.
        may_run: u32,
        runs: u32,
        wanted: u32,
        granted: u32,
        has_no_worker: bool,
    }

    struct Nodes<const N: usize> {
        limit: u32,
        nodes: [Node; N],
    }

    impl<const N: usize> Nodes<N> {
        fn new(limit: u32) -> Self {
            Self { limit, nodes: [Node::default(); N] }
        }

        /// A node asks, as it does once a second, and begins what it may.
        fn asks(&mut self, index: usize) {
            let Node { may_run, runs, wanted, has_no_worker, .. } = self.nodes[index];
            let held = may_run.max(runs);
            let others = self.nodes.iter().enumerate().filter(|(other, _)| *other != index);
            let share = |(_, other): (_, &Node)| {
                let Node { granted, wanted, has_no_worker, .. } = *other;
                Share { granted, wanted, has_worker: Some(!has_no_worker) }
            };
            let others: Vec<_> = others.map(share).collect();
            let (agent, limit, has_worker) = ("main".into(), self.limit, !has_no_worker);
            let asked = WantedPermits { agent, held, wanted: wanted.max(runs), limit, has_worker };
            let may_run = grant(&asked, &others);
            let runs = runs.max(wanted.min(may_run));
            self.nodes[index] = Node { may_run, runs, granted: may_run.max(held), ..self.nodes[index] };
            assert!(self.granted().iter().sum::<u32>() <= self.limit, "{:?}", self.granted());
        }

        fn pass(&mut self, rounds: usize) {
            for index in (0..N).cycle().take(N * rounds) {
                self.asks(index);
            }
        }

        fn granted(&self) -> [u32; N] {
            self.nodes.map(|node| node.granted)
        }

        /// The runs of a node end, as far as more than so many are in flight.
        fn ends(&mut self, index: usize, left: u32) {
            self.nodes[index].runs = self.nodes[index].runs.min(left);
        }
    }

    #[test]
    fn a_node_alone_has_all() {
        let mut nodes = Nodes::<1>::new(4);
        nodes.pass(1);
        assert_eq!(nodes.granted(), [4]);
    }

    #[test]
    fn a_node_that_comes_gets_its_part() {
        let mut nodes = Nodes::<2>::new(4);
        nodes.nodes[0] = Node { may_run: 4, granted: 4, ..Node::default() };

        nodes.asks(1);
        assert_eq!(nodes.granted(), [4, 0], "the other one does not know of it");
        nodes.pass(3);
        assert_eq!(nodes.granted(), [2, 2]);
    }

    #[test]
    fn an_idle_node_gives_up_what_another_one_needs() {
        let mut nodes = Nodes::<2>::new(8);
        nodes.pass(2);
        assert_eq!(nodes.granted(), [4, 4]);

        nodes.nodes[0].wanted = 100;
        nodes.pass(3);
        assert_eq!(nodes.granted(), [7, 1]);

        nodes.nodes[1].wanted = 100;
        nodes.pass(3);
        assert_eq!(nodes.granted(), [7, 1], "the first one runs seven");
        nodes.ends(0, 5);
        nodes.pass(3);
        assert_eq!(nodes.granted(), [5, 3]);
        nodes.ends(0, 0);
        nodes.pass(3);
        assert_eq!(nodes.granted(), [4, 4], "each has its part");
    }

    /// Its turns are run by the others. Where none has a worker, turns wait for one at any of them.
    #[test]
    fn a_node_without_a_worker_has_no_permits_while_another_one_has_a_worker() {
        let mut nodes = Nodes::<3>::new(6);
        nodes.nodes.iter_mut().for_each(|node| node.wanted = 100);
        nodes.nodes[2].has_no_worker = true;
        nodes.pass(3);
        assert_eq!(nodes.granted(), [3, 3, 0]);

        nodes.nodes.iter_mut().for_each(|node| node.has_no_worker = true);
        (0..3).for_each(|index| nodes.ends(index, 0));
        nodes.pass(3);
        assert_eq!(nodes.granted(), [2, 2, 2]);
    }

    /// Nothing runs where the others have all permits: any node runs any turn.
    #[test]
    fn of_more_nodes_than_permits_those_have_them_that_need_them() {
        let mut nodes = Nodes::<3>::new(2);
        nodes.pass(2);
        assert_eq!(nodes.granted().iter().sum::<u32>(), 2);

        let without = nodes.granted().iter().position(|granted| *granted == 0).expect("there are too few");
        nodes.nodes[without].wanted = 1;
        nodes.pass(3);
        assert_eq!(nodes.granted()[without], 1);
    }

    /// Whatever they want, and however late what a node begins is known.
    #[test]
    fn there_are_never_more_than_the_limit() {
        let mut nodes = Nodes::<3>::new(7);
        let mut seed: u32 = 1;
        let mut next = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            seed >> 16
        };
        for _ in 0..20_000 {
            let (index, what) = (next() as usize % 3, next());
            match what % 4 {
                0 => nodes.nodes[index].wanted = what % 11,
                1 => nodes.ends(index, what % 5),
                // It begins what it may, and has not asked since.
                2 => {
                    let Node { may_run, runs, wanted, .. } = nodes.nodes[index];
                    nodes.nodes[index].runs = runs.max(wanted.min(may_run));
                }
                _ => nodes.asks(index),
            }
            let runs = nodes.nodes.iter().map(|node| node.runs).sum::<u32>();
            assert!(runs <= 7, "{runs} run");
        }
    }
}
