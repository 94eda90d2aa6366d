//! People who write more than the limits allow.

use std::time::Duration;

use rejoinder_core::{
    Accepted, AgentTurn, Attachment, Clock, Directed, Identity, InboundEvent, PersonLimits, PersonRole, SeedPerson,
    Sender, SenderKind, SpecialLimits, Usage, conformance::scripted::Script,
};

use crate::{
    gateway::{GatewaySetup, TestGateway, ambient, chat, comes_in, main_channel, said, secs},
    life::Crash,
};

const NOTICE: &str = "Not so fast.";

/// A gateway whose agent echoes after `taking` seconds.
async fn with(turns_per_minute: Option<u32>, waiting_turns: Option<u32>, taking: u64) -> TestGateway {
    let mut setup = GatewaySetup::new()
        .agent("main", move |turn: &AgentTurn| Script::replies(&turn.message.text).taking(secs(taking)));
    setup.limits = PersonLimits { turns_per_minute, waiting_turns, ..PersonLimits::default() };
    setup.start().await
}

fn by(sender: &str, event: InboundEvent) -> InboundEvent {
    InboundEvent { sender: Sender { id: sender.to_owned(), ..event.sender.clone() }, ..event }
}

#[tokio::test]
async fn who_writes_too_much_in_a_minute_is_told_once_and_opens_no_turn() {
    let gateway = with(Some(2), None, 0).await;
    gateway.advance(secs(20)).await;
    for text in ["one", "two"] {
        gateway.receives(said(&chat("ada"), text)).await;
    }
    let third = said(&chat("ada"), "three");

    assert_eq!(comes_in(&gateway, third.clone()).await, Accepted::Limited { retry_after: secs(30) });
    let elsewhere = comes_in(&gateway, said(&chat("another chat"), "four")).await;
    assert!(matches!(elsewhere, Accepted::Limited { .. }), "the limit is the person's, in all chats: {elsewhere:?}");

    assert_eq!(gateway.visible(&chat("ada")), ["one", "two", NOTICE]);
    assert!(gateway.visible(&chat("another chat")).is_empty(), "one notice a minute is enough");
    let again = comes_in(&gateway, third.clone()).await;
    assert!(matches!(&again, Accepted::Duplicate { turn: None, message: None }), "{again:?}");
    gateway.receives(by("bob", said(&chat("bob"), "hello"))).await;
    assert_eq!(gateway.visible(&chat("bob")), ["hello"]);

    gateway.advance(secs(40)).await;
    gateway.receives(said(&chat("ada"), "five")).await;
    assert_eq!(gateway.visible(&chat("ada")), ["one", "two", NOTICE, "five"]);
    gateway.at_rest().await;
}

/// A restart does not forget the turns of the last minute.
#[tokio::test]
async fn the_turns_of_a_minute_are_limited_over_a_restart() {
    let mut gateway = with(Some(2), None, 0).await;
    for text in ["one", "two"] {
        gateway.receives(said(&chat("ada"), text)).await;
    }
    gateway.restart().await;

    let third = comes_in(&gateway, said(&chat("ada"), "three")).await;
    assert!(matches!(third, Accepted::Limited { .. }), "{third:?}");
    gateway.receives(by("bob", said(&chat("bob"), "hello"))).await;
    gateway.advance(secs(60)).await;
    gateway.receives(said(&chat("ada"), "four")).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one", "two", NOTICE, "four"]);
    assert_eq!(gateway.visible(&chat("bob")), ["hello"]);
    gateway.at_rest().await;
}

#[tokio::test]
async fn commands_are_not_limited() {
    let gateway = with(Some(1), Some(1), 60).await;
    gateway.receives(said(&chat("ada"), "one")).await;
    assert!(matches!(comes_in(&gateway, said(&chat("ada"), "two")).await, Accepted::Limited { .. }));

    gateway.receives(said(&chat("ada"), "/status")).await;
    gateway.receives(said(&chat("ada"), "/stop")).await;

    assert_eq!(gateway.visible(&chat("ada")), [NOTICE, "Running for 0 s: one", "Stopped."]);
    gateway.at_rest().await;
}

/// A restart does not forget what waits.
#[tokio::test]
async fn who_has_many_waiting_turns_opens_no_more() {
    let mut gateway = with(None, Some(2), 5).await;
    for text in ["one", "two", "three"] {
        gateway.receives(said(&chat("ada"), text)).await;
    }
    assert!(matches!(comes_in(&gateway, said(&chat("ada"), "four")).await, Accepted::Limited { .. }));
    gateway.restart().await;
    assert!(matches!(comes_in(&gateway, said(&chat("ada"), "five")).await, Accepted::Limited { .. }));
    let free = comes_in(&gateway, said(&chat("a free chat"), "six")).await;
    assert!(matches!(free, Accepted::Turn(_)), "a turn that need not wait is not limited: {free:?}");

    gateway.advance(secs(30)).await;

    assert_eq!(gateway.visible(&chat("ada")), [NOTICE, "one", "two", "three"]);
    gateway.receives(said(&chat("ada"), "seven")).await;
    gateway.advance(secs(10)).await;
    assert_eq!(gateway.visible(&chat("ada")).last().map(String::as_str), Some("seven"));
    gateway.at_rest().await;
}

#[tokio::test]
async fn nobody_is_told_who_was_owed_nothing() {
    let gateway = with(Some(1), None, 0).await;
    for number in 0..3 {
        comes_in(&gateway, ambient(&chat("group"), &format!("{number}"))).await;
    }

    assert_eq!(gateway.visible(&chat("group")), ["0"]);
    gateway.at_rest().await;
}

/// A call of a hook, whose sender is told by the result.
fn called(conversation: &str, text: &str) -> InboundEvent {
    InboundEvent { directed: Directed::Asked, ..said(&chat(conversation), text) }
}

/// A limited call may be repeated with its key, and is answered then. The key of an answered one still finds its turn.
#[tokio::test]
async fn a_caller_over_the_limit_repeats_the_call_with_its_key() {
    let gateway = with(Some(1), None, 0).await;
    let (first, second) = (called("ada", "one"), called("ada", "two"));
    let answered = gateway.receives(first.clone()).await;

    for _ in 0..2 {
        assert_eq!(comes_in(&gateway, second.clone()).await, Accepted::Limited { retry_after: secs(60) });
    }
    let again = comes_in(&gateway, first).await;
    assert!(matches!(&again, Accepted::Duplicate { turn: Some(turn), .. } if *turn == answered), "{again:?}");
    gateway.advance(secs(60)).await;
    gateway.receives(second).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one", "two"]);
    gateway.at_rest().await;
}

/// The same where the limit is on the turns that wait.
#[tokio::test]
async fn a_caller_with_many_waiting_turns_repeats_the_call_with_its_key() {
    let gateway = with(None, Some(1), 5).await;
    for text in ["one", "two"] {
        gateway.receives(called("ada", text)).await;
    }
    let third = called("ada", "three");
    assert!(matches!(comes_in(&gateway, third.clone()).await, Accepted::Limited { .. }));
    gateway.advance(secs(10)).await;

    gateway.receives(third).await;
    gateway.advance(secs(10)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one", "two", "three"]);
    gateway.at_rest().await;
}

/// What opens no turn does not count: an event that the store cannot take, and one that arrives again.
#[tokio::test]
async fn only_turns_count() {
    let gateway = with(Some(2), None, 0).await;
    let first = said(&chat("ada"), "one");
    gateway.life.set_store_down(true);
    for _ in 0..5 {
        gateway.intake().accept(first.clone()).await.expect_err("the store cannot write");
    }
    gateway.life.set_store_down(false);
    gateway.receives(first.clone()).await;
    for _ in 0..5 {
        assert!(matches!(comes_in(&gateway, first.clone()).await, Accepted::Duplicate { turn: Some(_), .. }));
    }

    gateway.receives(said(&chat("ada"), "two")).await;

    assert!(matches!(comes_in(&gateway, said(&chat("ada"), "three")).await, Accepted::Limited { .. }));
    assert_eq!(gateway.visible(&chat("ada")), ["one", "two", NOTICE]);
    gateway.at_rest().await;
}

/// Picture `number` of the album `name`.
fn picture(gateway: &TestGateway, name: &str, number: i64) -> InboundEvent {
    let url = format!("file:{number}.jpg");
    InboundEvent {
        attachments: vec![Attachment { name: url.clone(), url, media_type: "image/jpeg".to_owned() }],
        part_of: Some(name.to_owned()),
        more_within: Some(secs(1)),
        received_at: gateway.clock.now(),
        ..said(&chat("ada"), "")
    }
}

/// The pictures of an album are answered together: each joins the first, which was let in.
#[tokio::test]
async fn an_album_is_let_in_as_a_whole() {
    let gateway = with(Some(2), Some(1), 5).await;
    gateway.receives(said(&chat("ada"), "one")).await;
    for number in 1..=5 {
        let accepted = comes_in(&gateway, picture(&gateway, "album", number)).await;
        assert!(matches!(accepted, Accepted::Turn(_) | Accepted::Amended(_)), "{number}: {accepted:?}");
    }
    assert!(gateway.visible(&chat("ada")).is_empty(), "nothing was refused");
    assert!(matches!(comes_in(&gateway, said(&chat("ada"), "three")).await, Accepted::Limited { .. }));

    gateway.advance(secs(20)).await;

    let runs = gateway.agent("main").runs();
    assert_eq!(runs.iter().map(|run| run.turn.message.attachments.len()).collect::<Vec<_>>(), [0, 5]);
    gateway.at_rest().await;
}

/// The pictures that come after the limit has passed are no album of their own.
#[tokio::test]
async fn an_album_is_refused_as_a_whole_and_its_sender_is_told_once() {
    let gateway = with(Some(60), None, 0).await;
    gateway.advance(Duration::from_millis(59_500)).await;
    for number in 0..60 {
        gateway.receives(said(&chat("ada"), &format!("{number}"))).await;
    }
    assert!(matches!(comes_in(&gateway, picture(&gateway, "album", 1)).await, Accepted::Limited { .. }));
    gateway.advance(secs(2)).await;

    for number in 2..=3 {
        let accepted = comes_in(&gateway, picture(&gateway, "album", number)).await;
        assert!(matches!(accepted, Accepted::Limited { .. }), "{accepted:?}");
    }
    gateway.receives(said(&chat("ada"), "later")).await;

    let seen = gateway.visible(&chat("ada"));
    assert_eq!(seen[60..], [NOTICE, "later"]);
    gateway.at_rest().await;
}

/// Where the channel cannot tell people apart, each conversation counts as a person.
#[tokio::test]
async fn unnamed_people_are_limited_by_conversation() {
    let gateway = with(Some(1), None, 0).await;
    let unnamed = |name: &str| {
        let event = said(&chat(name), "hello");
        InboundEvent { sender: Sender { kind: SenderKind::Unnamed, ..event.sender.clone() }, ..event }
    };

    assert!(matches!(comes_in(&gateway, unnamed("a")).await, Accepted::Turn(_)));
    assert!(matches!(comes_in(&gateway, unnamed("b")).await, Accepted::Turn(_)));
    let second = comes_in(&gateway, unnamed("a")).await;

    assert_eq!(second, Accepted::Limited { retry_after: secs(60) });
    assert_eq!(gateway.visible(&chat("a")), ["hello"], "the caller is told by the result");
    gateway.at_rest().await;
}

/// Guests have a limit of their own, and Carl has another. Known people are counted on all channels together.
#[tokio::test]
async fn roles_and_people_have_limits_of_their_own() {
    let person = |name: &str, role, ids: &[&str]| {
        let identity = |id: &&str| Identity { channel: main_channel(), id: (*id).to_owned() };
        SeedPerson {
            name: name.to_owned(),
            role,
            identities: ids.iter().map(identity).collect(),
            home: None,
            language: None,
        }
    };
    let limits = |most| PersonLimits { turns_per_minute: Some(most), ..PersonLimits::default() };
    let mut setup = GatewaySetup::new().always(Script::replies("done"));
    setup.people = vec![
        person("Ada", PersonRole::Guest, &["ada", "ada2"]),
        person("Bob", PersonRole::Member, &["bob"]),
        person("Carl", PersonRole::Guest, &["carl"]),
    ];
    setup.limits = limits(4);
    setup.special_limits = SpecialLimits {
        roles: [(PersonRole::Guest, limits(2))].into(),
        people: [("Carl".to_owned(), limits(3))].into(),
    };
    let gateway = setup.start().await;
    let let_in = async |ids: &[&str]| {
        let mut count = 0;
        for number in 0..6 {
            let id = ids[number % ids.len()];
            let accepted = comes_in(&gateway, by(id, said(&chat(id), "hello"))).await;
            count += usize::from(!matches!(accepted, Accepted::Limited { .. }));
        }
        count
    };

    assert_eq!(let_in(&["ada", "ada2"]).await, 2, "she is one person");
    assert_eq!(let_in(&["bob"]).await, 4, "members have the general limit");
    assert_eq!(let_in(&["carl"]).await, 3);
    assert_eq!(let_in(&["dave"]).await, 4, "who is not known has the general limit");
    gateway.at_rest().await;
}

/// Of a person with several identities all waiting turns count together. A fourth person beside three noisy ones is served.
#[tokio::test]
async fn three_noisy_people_fill_their_own_lines_only() {
    let mut setup = GatewaySetup::new().agent("main", |_| Script::replies("done").taking(secs(10))).slots(1);
    let identities = ["eve", "eve2"].map(|id| Identity { channel: main_channel(), id: id.to_owned() });
    setup.people = vec![SeedPerson {
        name: "Eve".to_owned(),
        role: PersonRole::Guest,
        identities: identities.into(),
        home: None,
        language: None,
    }];
    let guests = PersonLimits { waiting_turns: Some(2), ..PersonLimits::default() };
    setup.limits = PersonLimits { waiting_turns: Some(4), ..PersonLimits::default() };
    setup.special_limits = SpecialLimits { roles: [(PersonRole::Guest, guests)].into(), ..SpecialLimits::default() };
    let gateway = setup.start().await;
    let mut let_in = Vec::new();
    for ids in [["ada", "ada"], ["bob", "bob"], ["eve", "eve2"]] {
        let mut count = 0;
        for number in 0..10 {
            let id = ids[number % 2];
            let accepted = comes_in(&gateway, by(id, said(&chat(&format!("{id}{number}")), "hello"))).await;
            count += usize::from(!matches!(accepted, Accepted::Limited { .. }));
        }
        let_in.push(count);
    }
    assert_eq!(let_in, [5, 4, 2], "one of the first runs");

    gateway.receives(by("dave", said(&chat("dave"), "hello"))).await;
    gateway.advance(secs(70)).await;
    let told = gateway.visible(&chat("dave"));
    assert_eq!(
        told.last().map(String::as_str),
        Some("done"),
        "he waits for one turn of each, not for all ten: {told:?}"
    );
    gateway.advance(secs(100)).await;
    gateway.at_rest().await;
}

/// N. With the default limits and permits, three people write as much as they may, to an agent that takes 200 ms: a fourth one
/// waits less than a second longer than alone, whenever they write.
#[tokio::test]
async fn three_noisy_people_cost_a_fourth_one_less_than_a_second() {
    const TICK: Duration = Duration::from_millis(50);
    let wait = async |noisy: &[&str], after: u32| {
        let mut setup =
            GatewaySetup::new().agent("main", |_| Script::replies("done").taking(Duration::from_millis(200))).slots(64);
        setup.limits =
            PersonLimits { turns_per_minute: Some(300), waiting_turns: Some(300), ..PersonLimits::default() };
        let gateway = setup.start().await;
        let now = || gateway.clock.now();
        let mut number = 0;
        let flood = async |number: &mut u32| {
            for who in noisy {
                loop {
                    *number += 1;
                    let address = chat(&format!("{who}{}", *number % 40));
                    let event = by(who, InboundEvent { received_at: now(), ..said(&address, "hello") });
                    let accepted = gateway.intake().accept(event).await.expect("accepted");
                    if matches!(accepted, Accepted::Limited { .. }) {
                        break;
                    }
                }
            }
        };
        for _ in 0..after {
            flood(&mut number).await;
            gateway.advance(TICK).await;
        }
        let started = now();
        gateway.receives(by("dave", InboundEvent { received_at: started, ..said(&chat("dave"), "hello") })).await;
        while !gateway.visible(&chat("dave")).contains(&"done".to_owned()) {
            flood(&mut number).await;
            gateway.advance(TICK).await;
        }
        let waited = now().since(started);
        gateway.advance(secs(120)).await;
        gateway.at_rest().await;
        waited
    };
    let alone = wait(&[], 1).await;
    for after in [1, 20] {
        let beside = wait(&["ada", "bob", "carl"], after).await;
        assert!(beside < alone + secs(1), "after {after}: {beside:?} beside them, {alone:?} alone");
    }
}

const DAY: u64 = 24 * 3600;

/// Ada is known by two ids. What is used of a day is limited; the agent uses ten tokens for a turn.
async fn by_day(limits: PersonLimits) -> TestGateway {
    let usage = Usage { input_tokens: 7, output_tokens: 3 };
    let mut setup = GatewaySetup::new().always(Script::replies("done").consuming(usage));
    setup.limits = limits;
    let identities = ["ada", "ada2"].map(|id| Identity { channel: main_channel(), id: id.to_owned() });
    setup.people = vec![SeedPerson {
        name: "Ada".to_owned(),
        role: PersonRole::Member,
        identities: identities.into(),
        home: None,
        language: None,
    }];
    setup.start().await
}

async fn writes(gateway: &TestGateway, id: &str, text: &str) -> String {
    let event = InboundEvent { received_at: gateway.clock.now(), ..said(&chat(id), text) };
    comes_in(gateway, by(id, event)).await;
    gateway.visible(&chat(id)).pop().unwrap_or_default()
}

/// Who has used their turns of the day is told once, also over a restart, and is answered again on the next day.
#[tokio::test]
async fn the_turns_of_a_day_are_limited_over_a_restart() {
    let mut gateway = by_day(PersonLimits { turns_per_day: Some(3), ..PersonLimits::default() }).await;
    assert_eq!(writes(&gateway, "ada", "one").await, "done");
    assert_eq!(writes(&gateway, "ada2", "two").await, "done");
    gateway.restart().await;
    assert_eq!(writes(&gateway, "ada", "/status").await, "Nothing is going on.\n2 of 3 turns.\n10 tokens.");
    assert_eq!(writes(&gateway, "ada", "three").await, "done");

    gateway.advance(secs(2 * 3600)).await;
    assert_eq!(writes(&gateway, "ada", "four").await, "Enough for today, for 22 h.");
    gateway.restart().await;
    let shown = gateway.visible(&chat("ada")).len();
    writes(&gateway, "ada", "five").await;
    gateway.advance(secs(300)).await;
    writes(&gateway, "ada", "six").await;
    assert_eq!(gateway.visible(&chat("ada")).len(), shown, "she is told once");
    assert_eq!(writes(&gateway, "bob", "hello").await, "done", "others are not limited");
    assert_eq!(gateway.agent("main").runs().len(), 4);

    gateway.advance(secs(DAY)).await;
    assert_eq!(writes(&gateway, "ada", "seven").await, "done");
    assert_eq!(writes(&gateway, "ada", "/status").await, "Nothing is going on.\n1 of 3 turns.\n10 tokens.");
    gateway.at_rest().await;
}

/// The turn that reaches the limit is answered.
#[tokio::test]
async fn the_tokens_of_a_day_are_limited() {
    let mut gateway = by_day(PersonLimits { tokens_per_day: Some(15), ..PersonLimits::default() }).await;
    assert_eq!(writes(&gateway, "ada", "one").await, "done");
    assert_eq!(writes(&gateway, "ada2", "two").await, "done");
    gateway.restart().await;
    assert!(writes(&gateway, "ada", "three").await.starts_with("Enough"));
    assert_eq!(writes(&gateway, "ada", "/status").await, "Nothing is going on.\n20 of 15 tokens.");
    assert_eq!(writes(&gateway, "bob", "hello").await, "done");

    gateway.advance(secs(DAY)).await;
    assert_eq!(writes(&gateway, "ada", "four").await, "done");
    gateway.at_rest().await;
}

/// N: three people who have used their day cost a fourth one nothing; a caller who waits is told when to come again.
#[tokio::test]
async fn who_waits_for_the_result_is_told_when_the_day_ends() {
    let gateway = by_day(PersonLimits { turns_per_day: Some(1), ..PersonLimits::default() }).await;
    for id in ["bob", "carl", "dora"] {
        assert_eq!(writes(&gateway, id, "one").await, "done");
        for _ in 0..5 {
            let event =
                InboundEvent { received_at: gateway.clock.now(), directed: Directed::Asked, ..said(&chat(id), "more") };
            let Accepted::Limited { retry_after } = comes_in(&gateway, by(id, event)).await else { panic!("{id}") };
            assert!(retry_after <= secs(DAY) && retry_after > secs(60), "{retry_after:?}");
        }
    }
    assert_eq!(writes(&gateway, "erin", "hello").await, "done");
    gateway.at_rest().await;
}

/// `kill -9` at every write: a turn is counted once.
#[tokio::test]
async fn a_crash_counts_a_turn_once() {
    for write in 1..=8 {
        let mut gateway = by_day(PersonLimits { turns_per_day: Some(2), ..PersonLimits::default() }).await;
        gateway.life.crash_at(write, Crash::After);
        let event = by("ada", InboundEvent { received_at: gateway.clock.now(), ..said(&chat("ada"), "one") });
        let (intake, again) = (gateway.intake(), event.clone());
        tokio::spawn(async move { intake.accept(event).await });
        gateway.settle().await;
        gateway.restart().await;
        comes_in(&gateway, again).await;
        gateway.advance(secs(600)).await;

        let used = writes(&gateway, "ada", "/status").await;
        assert!(used.contains("1 of 2 turns."), "after write {write}: {used}");
        gateway.at_rest().await;
    }
}
