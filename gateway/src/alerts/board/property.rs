//! In every history each lasting problem is told, and each told problem is said to be over.

use std::collections::HashMap;

use proptest::{collection::vec, prelude::*};
use rejoinder_core::{
    Down, Part,
    store::{DeadTurn, OverdueTurn, ParkedDelivery, Stuck},
};

use super::*;
use crate::problems::{Facts, Waits};

const AFTER: i64 = 3;
const WINDOW: i64 = 20;
/// Until when something that lasts must have been told.
const PATIENCE: i64 = AFTER + WINDOW + 1;
const END: i64 = 400;

const ALL: [AlertKind; 6] = [
    AlertKind::Store,
    AlertKind::Channel,
    AlertKind::Agent,
    AlertKind::Overdue,
    AlertKind::Parked,
    AlertKind::Undeliverable,
];

const RULES: Rules<'static> = Rules {
    at_once: &ALL,
    always: &[],
    is_quiet: false,
    after: Duration::from_secs(AFTER.unsigned_abs()),
    window: Duration::from_secs(WINDOW.unsigned_abs()),
};

/// What is so from a second on, until it is mended.
#[derive(Clone, Debug)]
struct Lasting<T> {
    what: T,
    from: i64,
    until: i64,
}

impl<T> Lasting<T> {
    const fn holds(&self, second: i64) -> bool {
        self.from <= second && second < self.until
    }
}

fn lasting<T: std::fmt::Debug>(what: impl Strategy<Value = T>, most: usize) -> impl Strategy<Value = Vec<Lasting<T>>> {
    let lasts = prop_oneof![1..2 * AFTER, 1..4 * PATIENCE];
    vec((what, 0..END / 2, lasts).prop_map(|(what, from, lasts)| Lasting { what, from, until: from + lasts }), 0..most)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Broken {
    Store,
    Channel(usize),
    Agent(usize),
}

#[derive(Clone, Debug)]
struct History {
    broken: Vec<Lasting<Broken>>,
    /// The channel, the agent, and whether the answer is on its way.
    overdue: Vec<Lasting<(usize, usize, bool)>>,
    parked: Vec<Lasting<usize>>,
    /// Whether somebody was owed an answer.
    dead: Vec<Lasting<bool>>,
}

fn histories() -> impl Strategy<Value = History> {
    let broken = prop_oneof![1 => Just(Broken::Store), 3 => (0..2_usize).prop_map(Broken::Channel), 2 => (0..2_usize).prop_map(Broken::Agent)];
    let overdue = (0..2_usize, 0..2_usize, any::<bool>());
    (lasting(broken, 7), lasting(overdue, 12), lasting(0..2_usize, 6), lasting(any::<bool>(), 8))
        .prop_map(|(broken, overdue, parked, dead)| History { broken, overdue, parked, dead })
}

const CHANNELS: [&str; 2] = ["telegram.one", "telegram.two"];
const AGENTS: [&str; 2] = ["main", "lab"];

impl History {
    fn is_broken(&self, part: Broken, second: i64) -> bool {
        self.broken.iter().any(|trouble| trouble.what == part && trouble.holds(second))
    }

    fn is_turn_explained(&self, (channel, agent, is_claimed): (usize, usize, bool), second: i64) -> bool {
        let part = if is_claimed { Broken::Channel(channel) } else { Broken::Agent(agent) };
        self.is_broken(Broken::Store, second) || self.is_broken(part, second)
    }

    fn is_parked_explained(&self, channel: usize, second: i64) -> bool {
        self.is_broken(Broken::Store, second) || self.is_broken(Broken::Channel(channel), second)
    }

    /// What the parts of the gateway say of themselves.
    fn facts(&self, second: i64) -> Facts {
        let down = |part| {
            let down = Down { is_mute: true, problem: "502".to_owned(), since: None };
            Some((part, down))
        };
        let channels = (0..2).filter(|channel| self.is_broken(Broken::Channel(*channel), second));
        let agents = (0..2).filter(|agent| self.is_broken(Broken::Agent(*agent), second));
        let channels = channels.filter_map(|channel| down(Part::Channel(ChannelId::from_stored(CHANNELS[channel]))));
        let agents = agents.filter_map(|agent| down(Part::Agent(AGENTS[agent].to_owned())));
        let ids = 1_i64..;
        let overdue =
            ids.clone().zip(&self.overdue).filter(|(_, turn)| turn.holds(second)).map(|(seq, turn)| OverdueTurn {
                seq,
                channel: ChannelId::from_stored(CHANNELS[turn.what.0]),
                agent: AGENTS[turn.what.1].into(),
                person: seq.to_string(),
                is_claimed: turn.what.2,
                since: at(turn.from),
            });
        let parked = ids.clone().zip(&self.parked).filter(|(_, it)| it.holds(second)).map(|(seq, it)| ParkedDelivery {
            seq,
            channel: ChannelId::from_stored(CHANNELS[it.what]),
            person: "ada".to_owned(),
            owed: false,
            error: None,
            since: at(it.from),
        });
        let dead = ids.zip(&self.dead).filter(|(_, turn)| turn.holds(second));
        let dead =
            dead.map(|(seq, turn)| DeadTurn { seq, person: String::new(), owed: turn.what, since: at(turn.from) });
        let stuck = Stuck { overdue: overdue.collect(), parked: parked.collect(), dead: dead.collect() };
        Facts {
            store: self.is_broken(Broken::Store, second).then(|| ("full".to_owned(), None)),
            down: channels.chain(agents).collect(),
            waits: Waits { stuck, ..Waits::default() },
            ..Facts::default()
        }
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_millis(second * 1000)
}

/// Somebody who reads all alerts.
#[derive(Default)]
struct Reader {
    /// What they think is wrong, by the second.
    believes: HashMap<i64, Vec<Key>>,
    /// When they were told of what.
    told: Vec<(i64, Key)>,
}

impl Reader {
    fn of(history: &History) -> Self {
        let (mut board, mut reader, mut believed) = (Board::default(), Self::default(), Vec::<Key>::new());
        for second in 0..END {
            board.look(at(second), history.facts(second).problems("rejoinder.db"), |_| CanTell::Yes);
            if let Some(news) = board.news(at(second), &RULES) {
                board.told(at(second), &news);
                let ended: Vec<Key> = news.ended.iter().map(|(problem, _)| problem.key()).collect();
                believed.retain(|key| !ended.contains(key));
                for problem in news.begun.iter().chain(&news.grown) {
                    believed.push(problem.key());
                    reader.told.push((second, problem.key()));
                }
            }
            reader.believes.insert(second, believed.clone());
        }
        reader
    }

    /// A problem is told once it lasted for long enough, and is said to be over once it was gone for a while.
    fn judge(&self, key: &Key, wrong: impl Fn(i64) -> bool, there: impl Fn(i64) -> bool) -> Result<(), TestCaseError> {
        let (mut wrong_for, mut gone_for) = (0, 0);
        for second in 0..END {
            wrong_for = if wrong(second) { wrong_for + 1 } else { 0 };
            gone_for = if there(second) { 0 } else { gone_for + 1 };
            let believes = self.believes[&second].contains(key);
            prop_assert!(believes || wrong_for <= PATIENCE, "{key:?} was not told until {second}");
            prop_assert!(!believes || gone_for <= AFTER + 1, "{key:?} was not said to be over at {second}");
        }
        Ok(())
    }

    /// Each turn or delivery for which `wrong` holds for so long was told by then, at a moment when it was wrong.
    fn judge_one(&self, key: &Key, wrong: impl Fn(i64) -> bool) -> Result<(), TestCaseError> {
        let mut since = None;
        for second in 0..END {
            since = if wrong(second) { since.or(Some(second)) } else { None };
            if let Some(since) = since.filter(|since| second - since > PATIENCE) {
                let is_told = self.told.iter().any(|(at, told)| told == key && *at <= second && wrong(*at));
                prop_assert!(is_told, "one of {key:?} was not told between {since} and {second}");
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn each_trouble_that_lasts_was_told_and_what_was_told_is_said_to_be_over(history in histories()) {
        let reader = Reader::of(&history);

        for (part, key) in [
            (Broken::Store, ("store", None)),
            (Broken::Channel(0), ("channel", Some(CHANNELS[0].to_owned()))),
            (Broken::Channel(1), ("channel", Some(CHANNELS[1].to_owned()))),
            (Broken::Agent(0), ("agent", Some(AGENTS[0].to_owned()))),
            (Broken::Agent(1), ("agent", Some(AGENTS[1].to_owned()))),
        ] {
            let is_broken = |second| history.is_broken(part, second);
            reader.judge(&key, is_broken, is_broken)?;
        }
        let overdue = ("overdue", None);
        let is_any_overdue = |second| history.overdue.iter().any(|turn| turn.holds(second));
        reader.judge(&overdue, |_| false, is_any_overdue)?;
        for turn in &history.overdue {
            reader.judge_one(&overdue, |second| turn.holds(second) && !history.is_turn_explained(turn.what, second))?;
        }
        for (channel, name) in CHANNELS.iter().enumerate() {
            let key = ("parked", Some((*name).to_owned()));
            let there = |second| history.parked.iter().any(|it| it.what == channel && it.holds(second));
            reader.judge(&key, |_| false, there)?;
            for it in history.parked.iter().filter(|it| it.what == channel) {
                reader.judge_one(&key, |second| it.holds(second) && !history.is_parked_explained(channel, second))?;
            }
        }
        for (owed, kind) in [(true, "undeliverable"), (false, "undelivered")] {
            let there = |second| history.dead.iter().any(|turn| turn.what == owed && turn.holds(second));
            reader.judge(&(kind, None), |_| false, there)?;
            for turn in history.dead.iter().filter(|turn| turn.what == owed) {
                reader.judge_one(&(kind, None), |second| turn.holds(second))?;
            }
        }
        for (index, (second, key)) in reader.told.iter().enumerate() {
            let is_soon = |(at, told): &&(i64, Key)| told == key && second - at < WINDOW;
            prop_assert!(!reader.told[..index].iter().any(|it| is_soon(&it)), "{key:?} was told twice at {second}");
        }
    }
}
