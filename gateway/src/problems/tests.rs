use std::time::Duration;

use rejoinder_core::{
    Missed, NewSchedule, ScheduleId, ScheduledAction, When,
    store::{DeadTurn, LineLevel, ScheduleOrigin, ScheduleState},
};

use super::*;

fn at(minutes: i64) -> Timestamp {
    Timestamp::from_millis(minutes * 60_000)
}

fn main() -> ChannelId {
    ChannelId::new("telegram", "main")
}

fn overdue(seq: i64, is_claimed: bool) -> OverdueTurn {
    let (channel, agent) = (main(), "main".into());
    OverdueTurn { seq, channel, agent, person: format!("person {seq}"), is_claimed, since: at(seq) }
}

fn sentences(facts: Facts) -> Vec<String> {
    let problems = facts.problems("rejoinder.db");
    problems.iter().map(|problem| problem.sentence(at(660), &TimeZone::UTC)).collect()
}

#[test]
fn one_cause_is_one_problem() {
    let down = Down { is_mute: true, problem: "502 Bad Gateway".to_owned(), since: Some(at(658)) };
    let stuck = Stuck { overdue: (1..=10).map(|seq| overdue(seq, true)).collect(), ..Stuck::default() };
    let facts = Facts {
        down: HashMap::from([(Part::Channel(main()), down)]),
        waits: Waits { stuck, ..Waits::default() },
        ..Facts::default()
    };

    let words = "10 people wait because telegram.main cannot send since 10:58 UTC (2 min ago): 502 Bad Gateway.";
    assert_eq!(sentences(facts), [words]);
}

#[test]
fn what_is_down_explains_only_what_waits_for_it() {
    let down = |problem: &str| Down { is_mute: false, problem: problem.to_owned(), since: None };
    let parked = ParkedDelivery {
        seq: 1,
        channel: main(),
        person: "ada".to_owned(),
        owed: false,
        error: Some("500 Internal Server Error".to_owned()),
        since: at(650),
    };
    let facts = Facts {
        down: HashMap::from([
            (Part::Channel(ChannelId::new("telegram", "old")), down("the token is refused")),
            (Part::Agent("lab".to_owned()), down("503")),
        ]),
        waits: Waits {
            stuck: Stuck {
                overdue: vec![overdue(658, true), overdue(659, false)],
                parked: vec![parked],
                dead: Vec::new(),
            },
            ..Waits::default()
        },
        ..Facts::default()
    };

    let words = [
        "telegram.old is down: the token is refused.",
        "The agent lab fails: 503.",
        "2 turns are late, the first since 10:58 UTC (2 min ago): these people have seen no answer in time.",
        "One message gets nowhere on telegram.main since 10:50 UTC (10 min ago): 500 Internal Server Error.",
    ];
    assert_eq!(sentences(facts), words);
}

#[test]
fn an_answer_that_gets_nowhere_is_told_from_a_message() {
    let parked = |seq, owed| ParkedDelivery {
        seq,
        channel: main(),
        person: "ada".to_owned(),
        owed,
        error: Some("500".to_owned()),
        since: at(650),
    };
    let said = |owed: &[bool], down: Option<Down>| {
        let parked = (1..).zip(owed).map(|(seq, owed)| parked(seq, *owed)).collect();
        let waits = Waits { stuck: Stuck { parked, ..Stuck::default() }, ..Waits::default() };
        let down = down.into_iter().map(|down| (Part::Channel(main()), down)).collect();
        let problems = Facts { down, waits, ..Facts::default() }.problems("rejoinder.db");
        problems.into_iter().map(|problem| problem.what).collect::<Vec<_>>()
    };
    let down = || Some(Down { is_mute: true, problem: "502".to_owned(), since: None });

    assert_eq!(said(&[true], None), ["One answer gets nowhere on telegram.main"]);
    assert_eq!(said(&[true, true], None), ["2 answers get nowhere on telegram.main"]);
    assert_eq!(said(&[true, false], None), ["2 messages (one of them an answer) get nowhere on telegram.main"]);
    let words = "3 messages (2 of them answers) wait because telegram.main cannot send";
    assert_eq!(said(&[true, true, false], down()), [words]);
    assert_eq!(said(&[true], down()), ["One answer waits because telegram.main cannot send"]);
}

/// Each alert about them would be one more of them.
#[test]
fn alerts_that_do_not_arrive_are_one_problem_that_does_not_grow() {
    let dead = |seq| DeadTurn { seq, person: "alerts".to_owned(), owed: false, since: at(650 + seq) };
    let stuck = Stuck { dead: vec![dead(1), dead(2)], ..Stuck::default() };
    let facts = Facts { waits: Waits { stuck, ..Waits::default() }, ..Facts::default() };

    let problems = facts.problems("rejoinder.db");

    let [Problem { kind: "undelivered_alerts", what, count: None, ids, .. }] = &problems[..] else {
        panic!("{problems:?}")
    };
    assert_eq!((&**what, ids.len()), ("2 alerts could not be delivered", 0));
}

/// On some channels people choose their ids.
#[test]
fn a_person_who_has_the_name_of_the_alerts_is_a_person() {
    let stuck = Stuck {
        dead: vec![DeadTurn { seq: 1, person: "alerts".to_owned(), owed: true, since: at(650) }],
        ..Stuck::default()
    };
    let facts = Facts { waits: Waits { stuck, ..Waits::default() }, ..Facts::default() };

    assert_eq!(sentences(facts), ["One turn could not be answered at 10:50 UTC (10 min ago)."]);
}

fn error(id: i64, channel: Option<ChannelId>) -> ErrorRecord {
    ErrorRecord {
        id,
        last_line: id,
        level: LineLevel::Error,
        target: "rejoinder".to_owned(),
        message: "the token is refused".to_owned(),
        channel,
        count: 1,
        first_at: at(650),
        last_at: at(650),
        fields: serde_json::Map::new(),
        acknowledged_at: None,
        is_muted: false,
    }
}

fn node(draining: bool, channels: &[&ChannelId]) -> NodeSummary {
    NodeSummary {
        node: NodeId::new(at(1)),
        name: "one".to_owned(),
        version: "1.0.0".to_owned(),
        revision: None,
        since: at(1),
        seen_ago: Duration::ZERO,
        clock_ms: 0,
        draining,
        channels: Vec::new(),
        leases: channels.iter().map(|channel| (LeaseName::Channel((*channel).clone()), at(1))).collect(),
        downs: Vec::new(),
    }
}

fn with_revision(revision: i64) -> NodeSummary {
    NodeSummary { name: format!("machine {revision}"), revision: Some(revision), ..node(false, &[]) }
}

fn lost() -> LostNode {
    let leases = vec![LeaseName::Channel(main()), LeaseName::Housekeeper];
    LostNode { node: NodeId::new(at(2)), name: "two".to_owned(), at: at(658), leases }
}

#[test]
fn a_channel_that_no_node_has_explains_what_waits_for_it() {
    let siri = ChannelId::new("webhook", "siri");
    let stuck = Stuck { overdue: vec![overdue(658, true)], ..Stuck::default() };
    let facts = |nodes| Facts {
        channels: vec![main(), siri.clone()],
        waits: Waits { nodes, stuck: stuck.clone(), ..Waits::default() },
        ..Facts::default()
    };

    assert_eq!(
        sentences(facts(vec![node(true, &[&siri])])),
        ["One person waits because no node has telegram.main: all nodes drain."]
    );
    assert_eq!(
        sentences(facts(vec![node(false, &[&siri]), node(true, &[])])),
        ["One person waits because no node has telegram.main."]
    );
    let held = sentences(facts(vec![node(false, &[&siri]), node(false, &[&main()])]));
    assert!(held.iter().all(|sentence| !sentence.contains("no node")), "{held:?}");
    let unknown = sentences(facts(Vec::new()));
    assert!(unknown.iter().all(|sentence| !sentence.contains("no node")), "{unknown:?}");
}

#[test]
fn a_node_that_was_lost_is_told_with_its_channels() {
    let facts = Facts { waits: Waits { lost: vec![lost()], ..Waits::default() }, ..Facts::default() };

    assert_eq!(sentences(facts), ["The node two was lost at 10:58 UTC (2 min ago): it had telegram.main."]);
}

/// Each restart of a machine has another id.
#[test]
fn a_machine_that_was_lost_again_is_one_problem_with_each_loss() {
    let again = LostNode { at: at(659), leases: vec![LeaseName::Channel(ChannelId::new("telegram", "new"))], ..lost() };
    let facts = Facts { waits: Waits { lost: vec![lost(), again], ..Waits::default() }, ..Facts::default() };

    let problems = facts.problems("rejoinder.db");

    let [Problem { kind: "node", what, why, subject, ids, .. }] = &problems[..] else { panic!("{problems:?}") };
    assert_eq!(
        (&**what, why.as_deref()),
        ("The node two was lost 2 times", Some("it had telegram.main, telegram.new"))
    );
    assert_eq!((subject.as_deref(), ids.len()), (Some("two"), 2));
    assert_eq!(problems[0].over(), "The node two lives again, or its loss was an hour ago");
}

/// What this node knows itself comes first.
#[test]
fn what_is_down_at_another_node_is_a_problem_too() {
    let down = |problem: &str| Down { is_mute: false, problem: problem.to_owned(), since: None };
    let (here, this) = (HashMap::from([(Part::Channel(main()), down("401"))]), NodeId::new(at(7)));
    let there = vec![(Part::Channel(main()), down("502")), (Part::Agent("lab".to_owned()), down("503"))];
    let other = NodeSummary { name: "two".to_owned(), downs: there, ..node(false, &[]) };
    let itself =
        NodeSummary { node: this, downs: vec![(Part::Agent("main".to_owned()), down("500"))], ..other.clone() };

    let facts = Facts { down: everywhere(here, &[itself, other], this), ..Facts::default() };

    assert_eq!(sentences(facts), ["telegram.main is down: 401.", "The agent lab fails: 503 at the node two."]);
}

#[test]
fn of_several_nodes_each_tells_of_its_own_trouble_with_the_store() {
    let facts = |node| Facts { store: Some(("full".to_owned(), None)), node, ..Facts::default() };
    let one = facts(Some("one".to_owned())).problems("chats at db:5432").remove(0);

    assert_eq!((&*one.what, one.subject.as_deref()), ("The store cannot write at the node one", Some("one")));
    assert_eq!(one.over(), "The store can write again at the node one");
    assert_eq!(facts(None).problems("rejoinder.db").remove(0).over(), "The store can write again");
}

#[test]
fn each_kind_of_alert_has_words_for_its_end() {
    for (kind, _, over) in ALERTS {
        let ended = Problem { kind, what: "what".to_owned(), subject: Some("one".to_owned()), ..Problem::default() };
        let said = ended.over();
        assert!(!said.is_empty() && !said.contains("{}"), "{kind}: {said}");
        assert_eq!(ALERTS.iter().filter(|(_, _, other)| *other == over).count(), 1, "{said}");
    }
}

/// One without a configuration to compare has none that is earlier.
#[test]
fn a_node_with_an_earlier_configuration_is_told() {
    let sentences = |nodes| sentences(Facts { waits: Waits { nodes, ..Waits::default() }, ..Facts::default() });

    assert_eq!(sentences(vec![with_revision(2), node(false, &[]), with_revision(2)]), Vec::<String>::new());
    assert_eq!(
        sentences(vec![with_revision(2), with_revision(1)]),
        [
            "The node machine 1 has an earlier configuration than the latest: start it again with the latest, or make its own the \
          latest (`rejoinder config reload` there)."
        ]
    );
}

#[test]
fn a_node_that_is_alone_with_a_configuration_that_was_replaced_is_told() {
    let (alone, other) = (with_revision(1), NodeId::new(at(2)));
    let kinds = |this| {
        let waits = Waits { nodes: vec![alone.clone()], ..Waits::default() };
        let problems = Facts { waits, behind: this, ..Facts::default() }.problems("rejoinder.db");
        problems.into_iter().map(|problem| problem.kind).collect::<Vec<_>>()
    };

    assert_eq!((kinds(None), kinds(Some(other))), (Vec::new(), Vec::new()));
    assert_eq!(kinds(Some(alone.node)), ["configuration"]);
}

/// What is wrong on two channels, of every kind.
fn everything() -> Facts {
    let down = |problem: &str| Down { is_mute: false, problem: problem.to_owned(), since: None };
    let (siri, posted) = (ChannelId::new("webhook", "siri"), ChannelId::new("telegram", "posted"));
    let parked = |seq, person: &str| ParkedDelivery {
        seq,
        channel: posted.clone(),
        person: person.to_owned(),
        owed: false,
        error: Some("500".to_owned()),
        since: at(650),
    };
    let dead = |seq, person: &str, owed| DeadTurn { seq, person: person.to_owned(), owed, since: at(650) };
    Facts {
        room: Some(Room { free: 1, size: 1 << 40 }),
        channels: vec![main()],
        down: HashMap::from([(Part::Channel(main()), down("401")), (Part::Agent("lab".to_owned()), down("503"))]),
        paused: vec![(main(), Pause { since: at(1), by: "ada".to_owned(), reason: None })],
        turning_away: vec![main(), siri.clone()],
        schedules: vec![schedule("telegram.main/42")],
        waits: Waits {
            backlog: Backlog { absent: 1, dead_copies: 1, overdue: 1, ..Backlog::default() },
            stuck: Stuck {
                overdue: vec![overdue(658, false)],
                parked: vec![parked(1, "ada"), parked(2, Sender::ALERTER)],
                dead: vec![dead(1, "ada", true), dead(2, "ada", false), dead(3, Sender::ALERTER, false)],
            },
            errors: vec![error(1, Some(main())), error(2, Some(siri)), error(3, None)],
            nodes: vec![with_revision(1), with_revision(2)],
            lost: vec![lost()],
        },
        ..Facts::default()
    }
}

/// One that has paused itself.
fn schedule(to: &str) -> Schedule {
    let new = NewSchedule {
        name: "tea".to_owned(),
        when: When::Every(Duration::from_hours(1)),
        time_zone: "UTC".into(),
        to: to.parse().unwrap(),
        action: ScheduledAction::Message("Tea.".to_owned()),
        missed: Missed::Once,
    };
    Schedule {
        id: ScheduleId::new(at(1)),
        new,
        origin: ScheduleOrigin::Operator,
        by: "ada".to_owned(),
        turn: None,
        asked_by: None,
        created_at: at(1),
        state: ScheduleState::Paused,
        why: None,
        next_at: None,
        failures: 5,
        counted_from: None,
    }
}

/// A token that is limited to channels reads nothing of the others.
#[test]
fn problems_of_other_channels_are_hidden() {
    // All that waits would wait for it.
    let store = Facts { store: Some(("the disk is full".to_owned(), None)), ..Facts::default() };
    let problems = [everything(), store].map(|facts| facts.problems("rejoinder.db")).concat();
    let kinds: BTreeSet<_> = problems.iter().map(|problem| problem.kind).collect();
    assert!(ALERTS.iter().all(|(kind, ..)| kinds.contains(kind)), "a kind is missing: {kinds:?}");

    let siri = [ChannelId::new("webhook", "siri")];
    let seen: Vec<_> = problems.iter().filter(|problem| problem.is_seen_by(Some(&siri), &[])).collect();

    assert!(problems.iter().all(|problem| problem.is_seen_by(None, &[schedule("telegram.main/42")])));
    let named: Vec<_> = seen.iter().filter(|it| it.what.contains("telegram") || it.what.contains("tea")).collect();
    assert!(named.is_empty(), "{named:?}");
    let of_one = seen.iter().filter(|it| matches!(it.kind, "error" | "pairing" | "parked" | "schedule"));
    let of_one: Vec<_> = of_one.map(|it| &*it.what).collect();
    let words = ["Newcomers are turned away on webhook.siri", "A new error on webhook.siri, “the token is refused”"];
    assert_eq!(of_one, words);
}
