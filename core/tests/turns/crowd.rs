//! Many simultaneous conversations.

use std::time::Duration;

use rejoinder_core::{AgentTurn, Policy, Resend, conformance::scripted::Script};

use crate::{
    gateway::{GatewaySetup, chat, policy, said, secs},
    texts::LATE,
};

/// Of 64 conversations one floods; the others do not wait for it.
#[tokio::test]
async fn a_flood_in_one_conversation_starves_no_other() {
    let gateway = GatewaySetup::new()
        .slots(4)
        .agent("main", |turn: &AgentTurn| Script::replies(&turn.message.text).taking(secs(1)))
        .start()
        .await;
    for number in 0..200 {
        gateway.accepts(said(&chat("flood"), &format!("{number}"))).await;
    }
    for number in 0..63 {
        gateway.accepts(said(&chat(&format!("c{number}")), "hello")).await;
    }

    // 64 conversations share 4 slots: after 16 s each has had its turn of 1 s, the flood included.
    gateway.advance(secs(22)).await;
    let answered = (0..63).filter(|number| gateway.visible(&chat(&format!("c{number}"))).contains(&"hello".to_owned()));
    assert_eq!(answered.count(), 63);

    gateway.advance(secs(300)).await;
    let expected: Vec<String> = (0..200).map(|number| format!("{number}")).collect();
    assert_eq!(gateway.visible(&chat("flood")), expected);
    gateway.at_rest().await;
}

/// Batches of one conversation keep their order, also when turns end meanwhile.
#[tokio::test]
async fn a_batch_is_answered_in_its_order() {
    let gateway =
        GatewaySetup::new().agent("main", |turn: &AgentTurn| Script::replies(&turn.message.text)).start().await;
    let batch = |from: u32| (from..from + 5).map(|number| said(&chat("ada"), &format!("{number}"))).collect();

    for from in [0, 5, 10] {
        gateway.intake().accept_all(batch(from), Some(("updates", format!("{from}")))).await.expect("accepted");
    }
    gateway.settle().await;

    let expected: Vec<String> = (0..15).map(|number| format!("{number}")).collect();
    assert_eq!(gateway.visible(&chat("ada")), expected);
    assert_eq!(gateway.intake().cursor("updates").await.expect("readable").as_deref(), Some("10"));
    gateway.at_rest().await;
}

/// Otherwise all turns that come would be rows, and each would cost a transaction more, as long as the crowd lasts.
#[tokio::test]
async fn turns_of_a_crowd_are_rows_only_until_the_agent_is_known_to_be_fast() {
    const TAKES: Duration = Duration::from_millis(10);
    let gateway = GatewaySetup::new().slots(4).always(Script::replies("done").taking(TAKES)).start().await;
    let stored = async |name: &str| {
        let turn = gateway.accepts(said(&chat(name), "hello")).await;
        gateway.store.turn(turn).await.expect("readable").expect("there").obligation
    };
    for number in 0..100 {
        let obligation = stored(&format!("c{number}")).await;
        assert_eq!(obligation.is_running(), number < 4);
    }
    for _ in 0..18 {
        gateway.advance(TAKES).await;
    }
    assert!(!gateway.store.waiting(1).await.expect("readable").is_empty());

    assert!(stored("late").await.is_running());

    gateway.advance(secs(2)).await;
    let answered = (0..100).filter(|number| gateway.visible(&chat(&format!("c{number}"))) == ["done"]);
    assert_eq!((answered.count(), gateway.visible(&chat("late"))), (100, vec!["done".to_owned()]));
    gateway.at_rest().await;
}

/// Nor are turns that waited for a promised permit.
#[tokio::test]
async fn turns_of_a_crowd_are_not_read_again_before_they_run() {
    let script = Script::replies("done").taking(Duration::from_millis(10));
    let gateway = GatewaySetup::new().slots(4).always(script).start().await;
    for number in 0..100 {
        gateway.accepts(said(&chat(&format!("c{number}")), "hello")).await;
    }
    gateway.advance(secs(2)).await;

    let answered = (0..100).filter(|number| gateway.visible(&chat(&format!("c{number}"))) == ["done"]);
    assert_eq!((answered.count(), gateway.life.reads("next_waiting")), (100, 0));
    gateway.at_rest().await;
}

/// An agent that hangs, and answers that would come late: nobody waits longer than the deadlines of those who came before.
#[tokio::test]
async fn a_thousand_people_have_their_word_from_an_agent_that_hangs() {
    let (soft_deadline, late_window) = (None, secs(120));
    let policy = Policy { hard_deadline: secs(3), soft_deadline, late_window, ..policy() };
    let gateway = GatewaySetup::new().policy(policy).slots(64).always(Script::hangs()).start().await;
    let crowd = (0..1000).map(|number| said(&chat(&format!("c{number}")), "hello")).collect();
    gateway.intake().accept_all(crowd, None).await.expect("accepted");

    // 16 times 64.
    gateway.advance(secs(3) * 16).await;

    let told = (0..1000).filter(|number| gateway.visible(&chat(&format!("c{number}"))).contains(&LATE.to_owned()));
    assert_eq!(told.count(), 1000);
    gateway.advance(secs(120)).await;
    gateway.at_rest().await;
}

/// More conversations than have a lane at once: the others wait without being looked at again and again, and go on when
/// lanes are free.
#[tokio::test]
async fn conversations_that_wait_for_a_lane_cost_no_reads() {
    let mut gateway = GatewaySetup::new()
        .capable(|it| it.resend = Resend::Idempotent)
        .slots(2048)
        .always(Script::replies("done"))
        .start()
        .await;
    gateway.platform.hold(true);
    let crowd = (0..1500).map(|number| said(&chat(&format!("c{number}")), "hello")).collect();
    gateway.intake().accept_all(crowd, None).await.expect("accepted");
    gateway.settle().await;
    gateway.restart().await;

    let done = gateway.life.done();
    gateway.advance(secs(30)).await;
    let calls = gateway.life.done() - done;
    assert!(calls < 20, "{calls} calls of the store while everything waits");

    gateway.platform.hold(false);
    gateway.advance(secs(30)).await;
    let answered = (0..1500).filter(|number| gateway.visible(&chat(&format!("c{number}"))) == ["done"]);
    assert_eq!(answered.count(), 1500);
    gateway.at_rest().await;
}
