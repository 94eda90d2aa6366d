//! Authorised and unauthorised senders.

use rejoinder_core::{
    Accepted, Access, Clock, DirectPolicy, Directed, EventKind, GroupPolicy, InboundEvent, Lifetimes, Sender,
    SenderKind,
    conformance::scripted::Script,
    store::{Cutoffs, LogFilter, StoreStats},
};

use crate::gateway::{GatewaySetup, TestGateway, ambient, chat, comes_in, main_channel, mention, said, secs};

const STRANGER: &str = "I do not know you, ada.";

async fn guarded(access: Access) -> TestGateway {
    let mut setup = GatewaySetup::new().always(Script::replies("hello"));
    setup.access.insert(main_channel(), access);
    setup.start().await
}

fn allowing(entries: &[&str]) -> Access {
    Access { allow: entries.iter().collect(), ..listed() }
}

/// Nobody is on the list.
fn listed() -> Access {
    Access { direct: DirectPolicy::Allowlist, ..Access::default() }
}

/// Checks that nothing was owed and no agent was run.
async fn nobody_ran(gateway: &TestGateway) {
    assert!(gateway.agent("main").runs().is_empty());
    assert!(gateway.turns().await.iter().all(|turn| !turn.owed && turn.ended_at.is_some()));
}

/// N1, O2. Without an allow list an unauthorised sender is notified once a day, and no agent runs.
#[tokio::test]
async fn a_stranger_is_told_once_a_day_and_runs_no_agent() {
    let gateway = guarded(listed()).await;
    for number in 0..20 {
        let accepted = comes_in(&gateway, said(&chat("ada"), &format!("{number}"))).await;
        assert_eq!(accepted, Accepted::Kept);
        gateway.advance(secs(3600)).await;
    }
    assert_eq!(gateway.visible(&chat("ada")), [STRANGER]);

    gateway.advance(secs(4 * 3600)).await;
    for _ in 0..3 {
        comes_in(&gateway, said(&chat("ada"), "and today?")).await;
    }

    assert_eq!(gateway.visible(&chat("ada")), [STRANGER, STRANGER]);
    nobody_ran(&gateway).await;
    gateway.at_rest().await;
}

/// N1. Each unauthorised sender of a batch is notified.
#[tokio::test]
async fn every_stranger_is_told() {
    let gateway = guarded(listed()).await;
    let bob = Sender { id: "bob".to_owned(), name: None, username: None, kind: SenderKind::Person };
    let all = vec![said(&chat("ada"), "one"), InboundEvent { sender: bob, ..said(&chat("bob"), "two") }];

    gateway.intake().accept_all(all, Some(("updates", "2".to_owned()))).await.expect("accepted");
    gateway.settle().await;

    assert_eq!(gateway.visible(&chat("ada")), [STRANGER]);
    assert_eq!(gateway.visible(&chat("bob")), ["I do not know you, bob."]);
    gateway.at_rest().await;
}

/// A message of 4 KB from stranger `number`, as Telegram delivers it.
fn from_stranger(number: usize) -> InboundEvent {
    let id = format!("{number}");
    let sender = Sender { id: id.clone(), name: None, username: None, kind: SenderKind::Person };
    InboundEvent { sender, raw: "r".repeat(5000), ..said(&chat(&id), &"x".repeat(4096)) }
}

async fn stats(gateway: &TestGateway) -> StoreStats {
    let nothing = Cutoffs::at(gateway.clock.now(), &Lifetimes::default());
    gateway.store.stats(&nothing).await.expect("readable")
}

/// N1. Beside a list, a stranger costs the key of their message and nothing else.
#[tokio::test]
async fn a_stranger_leaves_nothing_but_the_key_of_their_message() {
    const STRANGERS: usize = 2000;
    let gateway = guarded(allowing(&["bob"])).await;
    let before = stats(&gateway).await;

    for number in 0..STRANGERS {
        gateway.intake().accept(from_stranger(number)).await.expect("accepted");
    }

    let after = stats(&gateway).await;
    let each = (after.bytes - before.bytes) / STRANGERS as u64;
    assert!(each < 300, "{each} bytes for each stranger");
    assert_eq!(after.rows["events"], STRANGERS as u64);
    assert_eq!((after.rows["turns"], after.rows["conversations"]), (0, 0));
    gateway.at_rest().await;
}

/// N1. Of a flood of strangers some are told their id in each hour, however many write in the meantime.
#[tokio::test]
async fn of_a_flood_of_strangers_some_are_told_in_every_hour() {
    let gateway = guarded(listed()).await;
    for _ in 0..200 {
        comes_in(&gateway, said(&chat("ada"), "let me in")).await;
    }
    for number in 0..200 {
        comes_in(&gateway, from_stranger(number)).await;
    }
    let told = async || gateway.turns().await.len();
    assert_eq!(told().await, 60, "Ada had one notice, and it counts once");

    gateway.advance(secs(3600)).await;
    for number in 0..200 {
        comes_in(&gateway, from_stranger(number)).await;
    }

    assert_eq!(told().await, 120);
    assert_eq!(gateway.visible(&chat("ada")), [STRANGER]);
    gateway.at_rest().await;
}

/// N1. Neither a restart nor a duplicate event repeats the notice.
#[tokio::test]
async fn a_restart_does_not_tell_a_stranger_again() {
    let mut gateway = guarded(listed()).await;
    let event = said(&chat("ada"), "hello");
    comes_in(&gateway, event.clone()).await;
    gateway.restart().await;

    gateway.advance(secs(3600)).await;
    let again = comes_in(&gateway, event).await;
    comes_in(&gateway, said(&chat("ada"), "hello?")).await;

    assert!(matches!(again, Accepted::Duplicate { turn: None, .. }), "{again:?}");
    assert_eq!(gateway.visible(&chat("ada")), [STRANGER]);
    gateway.at_rest().await;
}

/// A notice interrupted by a crash is sent after the restart.
#[tokio::test]
async fn a_notice_that_was_interrupted_is_given_after_the_restart() {
    let mut gateway = guarded(listed()).await;
    gateway.life.crash_at(1, crate::life::Crash::After);
    let intake = gateway.intake();
    tokio::spawn(async move { intake.accept(said(&chat("ada"), "hello")).await });
    gateway.settle().await;

    gateway.restart().await;

    assert_eq!(gateway.visible(&chat("ada")), [STRANGER]);
    nobody_ran(&gateway).await;
    gateway.at_rest().await;
}

/// N1. With an allow list, senders who are not on it are not notified.
#[tokio::test]
async fn beside_a_list_there_is_silence() {
    let gateway = guarded(allowing(&["bob"])).await;

    comes_in(&gateway, said(&chat("ada"), "hello")).await;
    comes_in(&gateway, said(&chat("ada"), "/start")).await;

    assert!(gateway.visible(&chat("ada")).is_empty());
    nobody_ran(&gateway).await;
    gateway.at_rest().await;
}

/// An allow list names people by id or username, or allows everyone (`*`).
#[tokio::test]
async fn whoever_is_on_the_list_is_answered() {
    for entry in ["ada", "@Lovelace", "*"] {
        let gateway = guarded(allowing(&[entry])).await;
        let mut event = said(&chat("ada"), "hello");
        event.sender.username = Some("lovelace".to_owned());

        gateway.receives(event).await;

        assert_eq!(gateway.visible(&chat("ada")), ["hello"], "{entry}");
        gateway.at_rest().await;
    }
}

/// An unauthorised sender's command is not executed; it only causes the notice. Their edits and reactions are ignored.
#[tokio::test]
async fn a_stranger_commands_nothing() {
    let gateway = guarded(listed()).await;
    let emoji = EventKind::Reaction { message: "m1".to_owned(), emoji: "👍".to_owned(), removed: None };
    let edit = InboundEvent { amends: Some(rejoinder_core::Amends::Replaces), ..said(&chat("ada"), "helo") };

    comes_in(&gateway, InboundEvent { kind: emoji, ..said(&chat("ada"), "") }).await;
    comes_in(&gateway, edit).await;
    assert!(gateway.visible(&chat("ada")).is_empty());
    comes_in(&gateway, said(&chat("ada"), "/stop")).await;

    assert_eq!(gateway.visible(&chat("ada")), [STRANGER]);
    nobody_ran(&gateway).await;
    gateway.at_rest().await;
}

/// A5, B5. In groups the policy decides whether the agent gets mentions, all messages or none; only of allowed senders.
#[tokio::test]
async fn a_group_is_heard_as_its_policy_says() {
    let room = chat("room");
    for (group, heard) in [(GroupPolicy::Mention, 1), (GroupPolicy::All, 2), (GroupPolicy::Disabled, 0)] {
        let gateway = guarded(Access { group, ..allowing(&["ada"]) }).await;

        comes_in(&gateway, ambient(&room, "nice weather")).await;
        comes_in(&gateway, mention(&room, "is it?")).await;
        let bob = Sender { id: "bob".to_owned(), name: None, username: None, kind: SenderKind::Person };
        comes_in(&gateway, InboundEvent { sender: bob, ..mention(&room, "let me in") }).await;

        assert_eq!(gateway.agent("main").runs().len(), heard, "{group:?}");
        assert_eq!(gateway.visible(&room).len(), heard, "{group:?}");
        gateway.at_rest().await;
    }
}

/// N1. In a group an unauthorised sender is not notified.
#[tokio::test]
async fn in_a_group_a_stranger_is_not_told() {
    let gateway = guarded(listed()).await;

    comes_in(&gateway, mention(&chat("room"), "hello")).await;

    assert!(gateway.visible(&chat("room")).is_empty());
    nobody_ran(&gateway).await;
    gateway.at_rest().await;
}

/// A group can be allowed as a whole, independently of direct chats.
#[tokio::test]
async fn a_group_on_the_list_is_let_in_as_a_whole() {
    let access =
        Access { direct: DirectPolicy::Disabled, group_allow: ["room"].into_iter().collect(), ..Access::default() };
    let gateway = guarded(access).await;

    comes_in(&gateway, mention(&chat("room"), "hello")).await;
    comes_in(&gateway, mention(&chat("elsewhere"), "hello")).await;
    comes_in(&gateway, said(&chat("ada"), "hello")).await;

    assert_eq!(gateway.visible(&chat("room")), ["hello"]);
    assert!(gateway.visible(&chat("elsewhere")).is_empty() && gateway.visible(&chat("ada")).is_empty());
    gateway.at_rest().await;
}

/// O1. Another agent gets no answer, even with open access.
#[tokio::test]
async fn another_agent_is_not_answered() {
    let gateway = guarded(Access::open()).await;
    let mut event = mention(&chat("room"), "hello, agent");
    event.sender.kind = SenderKind::OtherAgent;

    assert_eq!(comes_in(&gateway, event).await, Accepted::Kept);

    assert!(gateway.visible(&chat("room")).is_empty());
    nobody_ran(&gateway).await;
    gateway.at_rest().await;
}

/// O1. Another agent that the operator lets in is answered like a person, also by the rules for groups. One that answers our
/// answers without end is not heard for a while.
#[tokio::test]
async fn an_agent_that_is_let_in_is_answered_but_not_forever() {
    let access =
        Access { agents: ["robot", "stranger"].iter().collect(), allow: ["robot"].iter().collect(), ..listed() };
    let gateway = guarded(access).await;
    let hears = |name: &str| {
        let mut event = mention(&chat("room"), "and you?");
        event.sender = Sender { id: name.to_owned(), kind: SenderKind::OtherAgent, ..event.sender };
        event
    };

    assert_eq!(comes_in(&gateway, hears("stranger")).await, Accepted::Kept);
    assert_eq!(comes_in(&gateway, hears("other")).await, Accepted::Kept);
    let mut answered = 0;
    loop {
        let event = hears("robot");
        let again = event.clone();
        if comes_in(&gateway, event).await == Accepted::Kept {
            break;
        }
        // The platform delivers it twice: it counts once.
        assert!(matches!(comes_in(&gateway, again).await, Accepted::Duplicate { .. }));
        answered += 1;
        gateway.advance(secs(1)).await;
    }

    assert_eq!((answered, gateway.visible(&chat("room")).len()), (10, 10));
    let interrupted = LogFilter { topics: vec!["agents.interrupted".to_owned()], limit: 10, ..LogFilter::default() };
    let log = gateway.store.log(&interrupted).await.expect("the log can be read");
    assert_eq!(log.iter().map(|entry| entry.data["identity"].as_str()).collect::<Vec<_>>(), [Some("test.main/robot")]);
    gateway.advance(secs(10 * 60)).await;
    assert!(matches!(comes_in(&gateway, hears("robot")).await, Accepted::Turn(_)));
    gateway.at_rest().await;
}

/// A reaction to our message is given to the agent if the operator enables it, and is owed nothing.
#[tokio::test]
async fn an_emoji_is_told_to_the_agent_and_owed_nothing() {
    let kind = || EventKind::Reaction { message: "m1".to_owned(), emoji: "👎".to_owned(), removed: None };
    let emoji = || InboundEvent { kind: kind(), directed: Directed::ReplyToUs, ..said(&chat("ada"), "") };

    for script in [Script::is_silent("noted"), Script::fails("broken")] {
        let mut setup = GatewaySetup::new().always(script);
        setup.reaction_channels.insert(main_channel());
        let gateway = setup.start().await;
        gateway.receives(emoji()).await;
        gateway.advance(secs(3600)).await;

        let runs = gateway.agent("main").runs();
        assert_eq!(runs[0].turn.message.reaction.as_deref(), Some("👎"));
        assert!(gateway.visible(&chat("ada")).is_empty());
        assert!(gateway.turns().await.iter().all(|turn| !turn.owed));
        gateway.at_rest().await;
    }

    let gateway = TestGateway::with(Script::replies("hello")).await;
    assert_eq!(comes_in(&gateway, emoji()).await, Accepted::Kept);
    nobody_ran(&gateway).await;
    gateway.at_rest().await;
}
