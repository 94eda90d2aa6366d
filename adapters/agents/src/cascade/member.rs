//! A member of a cascade, what is known of its runs, and the order in which members are asked.

use std::{cmp::Reverse, collections::VecDeque, sync::Arc, time::Duration};

use parking_lot::Mutex;
use rejoinder_core::{AgentName, Cost, MemberHealth, Price, Usage};

use super::{circuit::Circuit, section::Order};

/// The median is that of so many of its latest answers.
const RECENT: usize = 21;

/// The 95th percentile is that of so many of its latest answers. With more than 220 it could be less than the median.
const KEPT: usize = 200;

/// A member, as the configuration describes it.
#[derive(Clone, Debug)]
pub struct CascadeMember {
    /// Its name in the configuration.
    pub name: AgentName,
    /// The models of which it has one for a turn.
    pub models: Vec<Arc<str>>,
    /// What its tokens cost; `None`: unknown.
    pub price: Option<Price>,
    /// Whether people may see what it does.
    pub shows_activity: bool,
}

/// How its runs went.
#[derive(Debug, Default)]
struct Record {
    /// How long its latest answers took, the latest last.
    times: VecDeque<Duration>,
    answered: u64,
    failed: u64,
    usage: Usage,
    /// In its latest currency.
    cost: Option<Cost>,
    /// The latest error, if its latest run failed.
    error: Option<String>,
}

impl Record {
    /// The time that so many in 100 of its latest answers took at most; `None` if it has given none.
    fn quantile(&self, percent: usize, latest: usize) -> Option<Duration> {
        let mut times: Vec<_> = self.times.iter().rev().take(latest).copied().collect();
        times.sort_unstable();
        times.get(times.len() * percent / 100).copied()
    }
}

#[derive(Debug)]
pub(super) struct Member {
    /// The agent in whose place it answers.
    agent: AgentName,
    pub(super) of: CascadeMember,
    pub(super) circuit: Circuit,
    record: Mutex<Record>,
}

impl Member {
    pub(super) fn new(agent: AgentName, of: CascadeMember) -> Self {
        Self { agent, of, circuit: Circuit::default(), record: Mutex::default() }
    }

    /// Whether it has this model.
    pub(super) fn has(&self, model: &str) -> bool {
        self.of.models.iter().any(|own| **own == *model)
    }

    /// Counts an answer, and how long it took.
    pub(super) fn took(&self, time: Duration) {
        let mut record = self.record.lock();
        if record.times.len() == KEPT {
            record.times.pop_front();
        }
        record.times.push_back(time);
        record.answered += 1;
        record.error = None;
    }

    /// Counts a failure.
    pub(super) fn failed(&self, error: String) {
        let mut record = self.record.lock();
        record.failed += 1;
        record.error = Some(error);
    }

    /// Counts what a run has consumed, and what it cost as the member itself says, with the tokens whose cost is not in it.
    pub(super) fn count_usage(&self, usage: Usage, reported: Option<(Cost, Usage)>) {
        let cost = self.cost(usage, reported);
        {
            let mut record = self.record.lock();
            record.usage = record.usage.and(usage);
            record.cost = Cost::sum(record.cost, cost);
        }
        for (direction, tokens) in [("input", usage.input_tokens), ("output", usage.output_tokens)] {
            let [agent, member] = self.labels();
            let labels = [agent, member, ("direction", direction.to_owned())];
            metrics::counter!("rejoinder_member_tokens_total", &labels).increment(tokens);
        }
        if let Some(cost) = cost.filter(|_| self.of.price.is_some()) {
            // A counter of the recorder has no fractions.
            metrics::gauge!("rejoinder_member_cost_total", &self.labels()).increment(cost.amount());
        }
    }

    /// The labels of its metrics.
    pub(super) fn labels(&self) -> [(&'static str, String); 2] {
        [("agent", self.agent.to_string()), ("member", self.of.name.to_string())]
    }

    pub(super) fn health(&self) -> MemberHealth {
        let (name, is_left_out) = (self.of.name.clone(), self.circuit.is_open());
        let record = self.record.lock();
        let Record { answered, failed, usage, cost, ref error, .. } = *record;
        let (median, p95) = (record.quantile(50, RECENT), record.quantile(95, KEPT));
        let error = error.clone();
        MemberHealth { name, is_left_out, answered, failed, median, p95, usage, cost, error }
    }

    /// The median time of its recent answers; `None` if it has given none.
    pub(super) fn median(&self) -> Option<Duration> {
        self.record.lock().quantile(50, RECENT)
    }

    /// What a run cost: what the member says and what the other tokens cost, unless it says it in another currency than its price, else
    /// what its tokens cost. `None` if neither is known.
    fn cost(&self, usage: Usage, reported: Option<(Cost, Usage)>) -> Option<Cost> {
        let price = self.of.price;
        let reported = reported.filter(|(cost, _)| price.is_none_or(|price| price.currency == cost.currency));
        let of = |tokens: Usage| price.filter(|_| tokens != Usage::default()).map(|price| price.cost(tokens));
        match reported {
            Some((cost, unpriced)) => Cost::sum(of(unpriced), Some(cost)),
            None => of(usage),
        }
    }

    /// The price of a million tokens that it reads and a million that it writes.
    fn price(&self) -> Option<f64> {
        self.of.price.map(|price| price.input + price.output)
    }
}

/// The members in the order in which they are asked. Those that have the model that was chosen come before the others.
pub(super) fn in_order<'a>(members: &'a [Member], order: Order, model: Option<&str>) -> Vec<&'a Member> {
    let mut all: Vec<_> = members.iter().collect();
    match order {
        Order::Listed => {}
        Order::Fastest => all.sort_by_cached_key(|member| member.median()),
        Order::Cheapest => all.sort_by(|one, other| {
            let (one, other) = (one.price().unwrap_or(f64::INFINITY), other.price().unwrap_or(f64::INFINITY));
            one.total_cmp(&other)
        }),
    }
    if let Some(model) = model {
        all.sort_by_key(|member| Reverse(member.has(model)));
    }
    all
}

#[cfg(test)]
mod tests {
    use rejoinder_core::Currency;

    use super::*;

    fn member(name: &str, models: &[&str], price: Option<(f64, f64)>) -> Member {
        let price = price.map(|(input, output)| Price { input, output, currency: Currency::USD });
        let models = models.iter().map(|model| (*model).into()).collect();
        Member::new("both".into(), CascadeMember { name: name.into(), models, price, shows_activity: true })
    }

    fn names(members: &[Member], order: Order, model: Option<&str>) -> Vec<String> {
        in_order(members, order, model).iter().map(|member| member.of.name.to_string()).collect()
    }

    #[test]
    fn the_cheapest_is_first_and_one_without_a_price_last() {
        let members = [
            member("unknown", &[], None),
            member("dear", &[], Some((1.0, 9.0))),
            member("cheap", &[], Some((2.0, 3.0))),
            member("free", &[], Some((0.0, 0.0))),
        ];

        assert_eq!(names(&members, Order::Cheapest, None), ["free", "cheap", "dear", "unknown"]);
        assert_eq!(names(&members, Order::Listed, None), ["unknown", "dear", "cheap", "free"]);
    }

    #[test]
    fn the_fastest_is_the_one_with_the_smallest_median() {
        let members = ["slow", "fast", "unknown"].map(|name| member(name, &[], None));
        let secs = Duration::from_secs;
        for (member, times) in members.iter().zip([[4, 4, 1], [90, 2, 3], [0, 0, 0]]).take(2) {
            for time in times {
                member.took(secs(time));
            }
        }

        assert_eq!(members[1].median(), Some(secs(3)), "one slow answer does not count");
        assert_eq!(names(&members, Order::Fastest, None), ["unknown", "fast", "slow"]);
    }

    #[test]
    fn only_recent_answers_count() {
        let member = member("main", &[], None);
        (0..500).for_each(|_| member.took(Duration::from_mins(1)));

        (0..RECENT).for_each(|_| member.took(Duration::from_secs(1)));

        assert_eq!(member.median(), Some(Duration::from_secs(1)));
        assert_eq!(member.health().p95, Some(Duration::from_mins(1)), "it is that of more answers");
        (RECENT..KEPT).for_each(|_| member.took(Duration::from_secs(1)));
        assert_eq!(member.health().p95, Some(Duration::from_secs(1)));
    }

    #[test]
    fn of_100_answers_the_slowest_are_beyond_the_95th_percentile() {
        let (member, secs) = (member("main", &[], None), Duration::from_secs);
        assert_eq!((member.health().median, member.health().p95), (None, None));

        (1..=100).for_each(|time| member.took(secs(time)));

        let MemberHealth { median, p95, .. } = member.health();
        assert_eq!((median, p95), (Some(secs(90)), Some(secs(96))));
    }

    #[test]
    fn its_tokens_cost_what_its_own_price_says() {
        let [priced, unknown] = [Some((2.0, 3.0)), None].map(|price| member("main", &[], price));
        assert_eq!(priced.health().cost, None, "it has reported no tokens");

        for member in [&priced, &unknown] {
            (0..2).for_each(|_| member.count_usage(Usage { input_tokens: 1_000_000, output_tokens: 2_000_000 }, None));
        }

        let usage = Usage { input_tokens: 2_000_000, output_tokens: 4_000_000 };
        assert_eq!((priced.health().usage, unknown.health().usage), (usage, usage));
        assert_eq!(priced.health().cost, Some(Cost { micros: 16_000_000, currency: Currency::USD }));
        assert_eq!(unknown.health().cost, None);

        let said = Some(Cost { micros: 500_000, currency: Currency::USD });
        for member in [&priced, &unknown] {
            member.count_usage(Usage::default(), said.map(|cost| (cost, Usage::default())));
        }
        assert_eq!(priced.health().cost, Some(Cost { micros: 16_500_000, currency: Currency::USD }));
        assert_eq!(unknown.health().cost, said, "it says it itself");

        let unpriced = Usage { input_tokens: 1_000_000, output_tokens: 0 };
        priced.count_usage(usage, said.map(|cost| (cost, unpriced)));
        assert_eq!(priced.health().cost, Some(Cost { micros: 19_000_000, currency: Currency::USD }));
    }

    #[test]
    fn who_has_the_chosen_model_is_asked_first() {
        let members = [member("one", &["a"], None), member("two", &["b", "c"], None), member("three", &["c"], None)];

        assert_eq!(names(&members, Order::Listed, Some("c")), ["two", "three", "one"]);
        assert_eq!(names(&members, Order::Listed, Some("gone")), ["one", "two", "three"]);
    }
}
