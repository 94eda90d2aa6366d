//! Rules of routing: which agent answers, how long it may take, and in which language.

use std::collections::BTreeMap;

use jiff::{
    civil::{Weekday, time},
    tz::TimeZone,
};
use rejoinder_core::{
    Access, Brief, Cause, ChatKind, CommandAnswer, Condition, ConversationRef, EarlierLine, GroupPolicy, Handler,
    Hours, Identity, InboundEvent, Language, OwnCommand, PersonRole, PolicyChange, QueueMode, RouteAccess, Rule,
    RuleVerdict, Rung, SeedPerson, Timestamp,
    conformance::{clock::START, scripted::Script},
};

use crate::{
    gateway::{
        GatewaySetup, HARD_DEADLINE, SOFT_DEADLINE, TestGateway, ambient, chat, main_channel, mention, said, secs,
    },
    texts::{FAILED, LATE, SILENT},
};

fn rule(name: &str, conditions: Vec<Condition>) -> Rule {
    Rule { name: name.into(), conditions, agent: None, language: None, queue: None, policy: PolicyChange::default() }
}

fn to(agent: &str, rule: Rule) -> Rule {
    Rule { agent: Some(agent.into()), ..rule }
}

/// Two agents that say who they are.
fn setup(rules: Vec<Rule>) -> GatewaySetup {
    let setup = GatewaySetup { rules, ..GatewaySetup::new().always(Script::replies("I am main")) };
    setup.agent("cheap", |_| Script::replies("I am cheap"))
}

/// Between midnight and one minute after it.
fn first_minute() -> Condition {
    Condition::Between(vec![Hours { from: time(0, 0, 0, 0), until: time(0, 1, 0, 0) }], TimeZone::UTC)
}

fn at(event: InboundEvent, at: Timestamp) -> InboundEvent {
    InboundEvent { received_at: at, ..event }
}

async fn answer(gateway: &TestGateway, event: InboundEvent) -> String {
    let address = event.conversation.clone();
    gateway.receives(event).await;
    gateway.visible(&address).pop().unwrap_or_default()
}

#[tokio::test]
async fn the_first_rule_whose_conditions_all_hold_decides() {
    let bob = SeedPerson {
        name: "Bob".to_owned(),
        role: PersonRole::Owner,
        identities: vec![Identity { channel: main_channel(), id: "bob".to_owned() }],
        home: None,
        language: None,
    };
    let setup = setup(vec![
        to("cheap", rule("owner", vec![Condition::Role(vec![PersonRole::Owner])])),
        to("main", rule("kitchen", vec![Condition::Conversation(vec![chat("kitchen")])])),
        to(
            "cheap",
            rule("code", vec![Condition::Command(vec!["/code".to_owned()]), Condition::Chat(vec![ChatKind::Direct])]),
        ),
        to("cheap", rule("ada", vec![Condition::Person(vec!["test.main/eve".to_owned(), "Carl".to_owned()])])),
        to(
            "cheap",
            rule("groups", vec![Condition::Chat(vec![ChatKind::Group]), Condition::Channel(vec!["test".to_owned()])]),
        ),
    ]);
    let gateway = GatewaySetup { people: vec![bob], ..setup }.start().await;
    let from = |id: &str, event: InboundEvent| {
        let sender = rejoinder_core::Sender { id: id.to_owned(), ..event.sender.clone() };
        InboundEvent { sender, ..event }
    };
    let thread = ConversationRef::new(main_channel(), "kitchen").in_thread("7");

    assert_eq!(answer(&gateway, said(&chat("ada"), "hello")).await, "I am main");
    assert_eq!(answer(&gateway, from("bob", said(&chat("bob"), "hello"))).await, "I am cheap");
    assert_eq!(answer(&gateway, from("eve", said(&chat("eve"), "hello"))).await, "I am cheap");
    assert_eq!(answer(&gateway, said(&chat("ada"), "/code fix it")).await, "I am cheap");
    assert_eq!(answer(&gateway, said(&chat("ada"), "what does /code do?")).await, "I am main");
    assert_eq!(answer(&gateway, mention(&chat("garden"), "hello")).await, "I am cheap");
    assert_eq!(answer(&gateway, mention(&chat("kitchen"), "hello")).await, "I am main");
    assert_eq!(answer(&gateway, mention(&thread, "hello")).await, "I am main", "a conversation has all its threads");
    let given: Vec<_> = gateway.agent("cheap").runs().iter().map(|run| run.turn.message.text.clone()).collect();
    assert_eq!(given, ["hello", "hello", "/code fix it", "hello"], "the agent is given the word, too");
    gateway.at_rest().await;
}

#[tokio::test]
async fn times_and_days_are_those_of_the_time_zone() {
    let vienna = TimeZone::get("Europe/Vienna").expect("it is known");
    let night = Hours { from: time(22, 0, 0, 0), until: time(1, 30, 0, 0) };
    let gateway = setup(vec![to(
        "cheap",
        rule(
            "night",
            vec![Condition::Between(vec![night], vienna.clone()), Condition::Days(vec![Weekday::Thursday], vienna)],
        ),
    )])
    .start()
    .await;
    let hours = |hours: u64| secs(hours * 3600);

    // Thursday, one o'clock in Vienna.
    assert_eq!(answer(&gateway, at(said(&chat("ada"), "now"), START)).await, "I am cheap");
    assert_eq!(answer(&gateway, at(said(&chat("ada"), "later"), START + hours(1))).await, "I am main");
    assert_eq!(answer(&gateway, at(said(&chat("ada"), "at night"), START + hours(22))).await, "I am cheap");
    // Friday.
    assert_eq!(answer(&gateway, at(said(&chat("ada"), "tomorrow"), START + hours(24))).await, "I am main");
    gateway.at_rest().await;
}

/// N3. The rule is stored with the turn.
#[tokio::test]
async fn the_deadlines_and_the_ladder_of_a_rule_last_longer_than_its_hours_and_a_crash() {
    let quick = PolicyChange {
        soft_deadline: Some(None),
        hard_deadline: Some(secs(60)),
        ladder: vec![(Cause::Timeout, vec![Rung::Say("failed".to_owned())])],
    };
    let rules = vec![Rule { policy: quick, ..rule("quick", vec![first_minute()]) }];
    let mut gateway = GatewaySetup { rules, ..GatewaySetup::new().always(Script::hangs()) }.start().await;
    let first = gateway.receives(said(&chat("ada"), "one")).await;
    let second = gateway.receives(said(&chat("ada"), "two")).await;

    gateway.advance(secs(60)).await;
    assert_eq!(gateway.visible(&chat("ada")), [FAILED]);
    gateway.restart().await;
    gateway.advance(secs(60)).await;
    assert_eq!(gateway.visible(&chat("ada")), [FAILED, FAILED], "the second waited until the hours were over");

    let third = gateway.receives(at(said(&chat("ada"), "three"), START + secs(600))).await;
    gateway.advance(SOFT_DEADLINE + HARD_DEADLINE).await;
    assert_eq!(gateway.visible(&chat("ada")).last().map(String::as_str), Some(LATE), "of the channel");
    for (turn, rule) in [(first, Some("quick")), (second, Some("quick")), (third, None)] {
        assert_eq!(gateway.dossier(turn).await.turn.rule.as_deref(), rule);
    }
    assert!(
        gateway.explained(first).await.contains("routed by the rule `quick`"),
        "{}",
        gateway.explained(first).await
    );
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_turn_whose_rule_is_gone_has_its_channels_deadlines() {
    let quick = PolicyChange { hard_deadline: Some(secs(60)), soft_deadline: Some(None), ladder: Vec::new() };
    let rules = vec![Rule { policy: quick, ..rule("quick", vec![first_minute()]) }];
    let mut gateway = GatewaySetup { rules, ..GatewaySetup::new().always(Script::hangs()) }.start().await;
    gateway.receives(said(&chat("ada"), "one")).await;
    gateway.receives(said(&chat("ada"), "two")).await;

    gateway.forget_rules().await;
    gateway.advance(secs(60)).await;
    assert!(gateway.visible(&chat("ada")).is_empty());
    gateway.advance(HARD_DEADLINE).await;
    assert_eq!(gateway.visible(&chat("ada")), [LATE]);
    gateway.advance(HARD_DEADLINE).await;
    gateway.at_rest().await;
}

#[tokio::test]
async fn what_somebody_chose_comes_before_the_rule_and_that_before_what_the_platform_tells() {
    let rules = vec![Rule { language: Language::of("en"), ..rule("english", Vec::new()) }];
    let gateway = GatewaySetup { rules, ..GatewaySetup::new().always(Script::is_silent("nothing")) }.start().await;
    let says = |text| InboundEvent { language: Language::of("de"), ..said(&chat("ada"), text) };

    assert_eq!(answer(&gateway, says("hello")).await, SILENT);
    assert_eq!(answer(&gateway, says("/language de")).await, "Deutsch.");
    assert_eq!(answer(&gateway, says("hello")).await, "Nichts.");
    gateway.at_rest().await;
}

/// B5.
#[tokio::test]
async fn a_group_can_have_a_policy_and_a_queue_of_its_own() {
    let access = Access {
        groups: [("kitchen".into(), GroupPolicy::All), ("cellar".into(), GroupPolicy::Disabled)].into(),
        ..Access { group: GroupPolicy::Mention, ..Access::open() }
    };
    let kitchen = Condition::Conversation(vec![chat("kitchen")]);
    let rules = vec![Rule { queue: Some(QueueMode::Collect), ..rule("kitchen", vec![kitchen]) }];
    let setup = GatewaySetup::new().agent("main", |turn| Script::replies(&format!("{} messages", 1 + turn.more.len())));
    let access = [(main_channel(), access)].into();
    let gateway = GatewaySetup { rules, access, ..setup }.start().await;

    gateway.receives(mention(&chat("kitchen"), "one")).await;
    gateway.receives(mention(&chat("kitchen"), "two")).await;
    gateway.advance(secs(10)).await;
    assert_eq!(gateway.visible(&chat("kitchen")), ["2 messages"]);
    let heard = async |event: InboundEvent| {
        gateway.engine().explain_route(event).await.expect("the store is read").handler.is_some()
    };
    assert!(heard(ambient(&chat("kitchen"), "hello")).await && heard(mention(&chat("garden"), "hello")).await);
    assert!(!heard(ambient(&chat("garden"), "hello")).await && !heard(mention(&chat("cellar"), "hello")).await);
    gateway.at_rest().await;
}

#[tokio::test]
async fn the_queue_of_a_group_of_its_own_is_what_auto_means_there() {
    let kitchen = Condition::Conversation(vec![chat("kitchen")]);
    let rules = vec![Rule { queue: Some(QueueMode::Collect), ..rule("kitchen", vec![kitchen]) }];
    let gateway = GatewaySetup { rules, ..GatewaySetup::new().always(Script::replies("yes")) }.start().await;

    let told = answer(&gateway, mention(&chat("kitchen"), "/queue auto")).await;
    let elsewhere = answer(&gateway, mention(&chat("garden"), "/queue auto")).await;

    assert_eq!([&*told, &elsewhere], ["From now on collect.", "From now on followup."]);
    gateway.at_rest().await;
}

/// On a channel whose people write it so, `!` stands for the slash of every command: the gateway's, the operator's, and what a
/// rule names. In capital letters, too.
#[tokio::test]
async fn a_bang_is_a_slash_where_people_write_it_so() {
    let code = vec![Condition::Command(vec!["/code".to_owned()])];
    let own = |answer| OwnCommand { description: "What it does".to_owned(), answer };
    let commands = [
        ("hours", CommandAnswer::Words("From nine to {text}.".to_owned())),
        ("joke", CommandAnswer::Prompt("Tell a joke.".to_owned())),
    ];
    let commands: BTreeMap<_, _> = commands.map(|(name, answer)| (name.to_owned(), own(answer))).into();
    for is_written_so in [true, false] {
        let setup = setup(vec![to("cheap", rule("code", code.clone()))]).capable(|it| it.bang_commands = is_written_so);
        let gateway = GatewaySetup { commands: commands.clone(), ..setup }.start().await;
        let texts =
            ["!status", "!Stop", "!hours five", "!Hours six", "!Code fix it", "!JOKE", "!stop it", "!important"];
        let mut answers = Vec::new();
        for text in texts {
            answers.push(answer(&gateway, said(&chat("ada"), text)).await);
        }
        let explained = gateway.engine().explain_route(said(&chat("ada"), "!code")).await.expect("the store is read");

        let to_main = gateway.agent("main").runs().into_iter().map(|run| run.turn.message.text).collect::<Vec<_>>();
        if is_written_so {
            let own = ["From nine to five.", "From nine to six.", "I am cheap", "I am main", "I am main", "I am main"];
            assert_eq!(answers[..2], ["Nothing is going on.", "There is nothing to stop."]);
            assert_eq!(answers[2..], own);
            assert_eq!(to_main, ["Tell a joke.", "!stop it", "!important"]);
            assert_eq!(explained.handler.map(|(handler, _)| handler), Some(Handler::Agent("cheap".into())));
        } else {
            assert_eq!(to_main, texts, "an ordinary message");
        }
        gateway.at_rest().await;
    }
}

#[tokio::test]
async fn a_route_is_explained_rule_by_rule() {
    let access = [(main_channel(), Access::default())].into();
    let ada = SeedPerson {
        name: "Ada".to_owned(),
        role: PersonRole::Member,
        identities: vec![Identity { channel: main_channel(), id: "ada".to_owned() }],
        home: None,
        language: None,
    };
    let setup = setup(vec![
        rule("owners", vec![Condition::Chat(vec![ChatKind::Direct]), Condition::Role(vec![PersonRole::Owner])]),
        to("cheap", rule("direct", vec![Condition::Chat(vec![ChatKind::Direct])])),
        rule("rest", Vec::new()),
    ]);
    let gateway = GatewaySetup { access, people: vec![ada], ..setup }.start().await;

    let explained = gateway.engine().explain_route(said(&chat("ada"), "hello")).await.expect("the store is read");
    let verdicts: Vec<_> = explained.rules.into_iter().map(|rule| rule.verdict).collect();
    let condition = "role = \"owner\"".to_owned();
    let found = "is from a person with the role member".to_owned();
    assert_eq!(verdicts, [RuleVerdict::Fails { condition, found }, RuleVerdict::Holds, RuleVerdict::NotReached]);
    assert_eq!(explained.access, RouteAccess::Granted);
    assert_eq!(explained.handler.map(|(handler, _)| handler), Some(Handler::Agent("cheap".into())));

    let event = said(&chat("eve"), "hello");
    let eve = rejoinder_core::Sender { id: "eve".to_owned(), ..event.sender.clone() };
    let explained =
        gateway.engine().explain_route(InboundEvent { sender: eve, ..event }).await.expect("the store is read");
    assert_eq!((explained.access, explained.handler), (RouteAccess::DeniedWithCode, None));
    gateway.at_rest().await;
}

/// What a program names comes before a rule, and what it tells takes the place of the transcript, also in the run after a crash.
#[tokio::test]
async fn a_program_says_who_answers_and_what_was_said_before() {
    let mut gateway = setup(vec![to("main", rule("kitchen", Vec::new()))]).start().await;
    assert_eq!(answer(&gateway, said(&chat("ada"), "hello")).await, "I am main");
    let line = |is_agents, text: &str| EarlierLine { is_agents, text: text.to_owned() };
    let brief = Brief {
        agent: Some("cheap".into()),
        model: Some("fast".into()),
        instructions: Some("Be brief.".to_owned()),
        said_before: Some(vec![line(false, "Hi"), line(true, "Yes?")]),
    };
    let asked = InboundEvent { brief: Some(Box::new(brief)), ..said(&chat("ada"), "and now?") };

    assert_eq!(answer(&gateway, asked.clone()).await, "I am cheap");

    let turn = gateway.agent("cheap").runs().pop().expect("a run").turn;
    let told: Vec<_> = turn.past.history.iter().map(|line| &*line.text).collect();
    assert_eq!(
        (told, turn.place.model.as_deref(), turn.person.instructions.as_deref()),
        (vec!["Hi", "Yes?"], Some("fast"), Some("Be brief."))
    );
    gateway.restart().await;
    let command = InboundEvent { text: "/help".to_owned(), external_id: "help".to_owned(), ..asked };
    assert_ne!(answer(&gateway, command).await, "I am cheap");
    gateway.at_rest().await;
}
