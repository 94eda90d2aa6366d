//! Messages that come while a turn of their conversation runs.

use std::{sync::Arc, time::Duration};

use rejoinder_core::{
    Accepted, AgentTurn, Amends, Brief, ConversationRef, Farewell, InboundEvent, Overflow, Policy, QueueMode, Queues,
    Receipts, Resend, Sender, Speaker, TurnId,
    conformance::scripted::{Fault, Gate, Script},
    store::TurnStatus,
};

use rstest::rstest;

use crate::{
    gateway::{GatewaySetup, TestGateway, ambient, chat, mention, said, secs},
    life::Crash,
    texts::{DEFERRAL, GIVEN_UP},
};

const LONG: Duration = Duration::from_hours(2);

/// A gateway whose agent answers with all texts that it is given, after 5 s.
fn setup(mode: QueueMode) -> GatewaySetup {
    let together = |turn: &AgentTurn| Script::replies(&given(turn).join(" + ")).taking(secs(5));
    let queues = Queues { mode, ..Queues::default() };
    GatewaySetup { queues, ..GatewaySetup::new().agent("main", together) }
}

fn given(turn: &AgentTurn) -> Vec<String> {
    std::iter::once(turn.message.text.clone()).chain(turn.more.iter().map(|more| more.text.clone())).collect()
}

/// What the agent was given, run by run.
fn runs(gateway: &TestGateway) -> Vec<Vec<String>> {
    gateway.agent("main").runs().iter().map(|run| given(&run.turn)).collect()
}

/// Something that comes now.
fn now(gateway: &TestGateway, text: &str) -> InboundEvent {
    InboundEvent { received_at: rejoinder_core::Clock::now(&*gateway.clock), ..said(&chat("ada"), text) }
}

async fn receives_all(gateway: &TestGateway, texts: &[&str]) -> Vec<TurnId> {
    let mut turns = Vec::new();
    for text in texts {
        turns.push(gateway.receives(now(gateway, text)).await);
    }
    turns
}

#[tokio::test]
async fn what_follows_is_answered_one_after_the_other() {
    let gateway = setup(QueueMode::Followup).start().await;
    receives_all(&gateway, &["one", "two", "three"]).await;
    gateway.advance(secs(30)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one", "two", "three"]);
    gateway.at_rest().await;
}

/// B2. What comes within the window, and what comes during the run, is one run each.
#[tokio::test]
async fn what_is_collected_is_answered_together() {
    let gateway = setup(QueueMode::Collect).start().await;
    let first = receives_all(&gateway, &["one"]).await;
    gateway.advance(secs(1)).await;
    assert!(runs(&gateway).is_empty(), "more may come");
    let second = receives_all(&gateway, &["two"]).await;
    gateway.advance(secs(1)).await;
    assert!(runs(&gateway).is_empty(), "the window begins anew");
    gateway.advance(secs(1)).await;
    assert_eq!(runs(&gateway), [["one", "two"]]);

    receives_all(&gateway, &["three", "four"]).await;
    gateway.advance(secs(30)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one + two", "three + four"]);
    assert_eq!(runs(&gateway), [["one", "two"], ["three", "four"]]);
    let (leader, other) = (gateway.explained(first[0]).await, gateway.explained(second[0]).await);
    assert!(leader.contains(&second[0].to_string()), "{leader}");
    assert!(other.contains(&format!("Answered together with turn {}", first[0])), "{other}");
    assert_eq!(gateway.topics(second[0]).await, ["turn.accepted", "turn.merged", "turn.settled"]);
    gateway.at_rest().await;
}

/// A program's instructions are those of its message: an agent gets one set of them with each run.
#[rstest]
#[case::collect(QueueMode::Collect)]
#[case::interrupt(QueueMode::Interrupt)]
#[tokio::test]
async fn messages_with_other_instructions_are_answered_by_themselves(#[case] mode: QueueMode) {
    let gateway = setup(mode).start().await;
    for (text, instructions) in [("one", None), ("two", Some("Rhyme.")), ("three", Some("Rhyme.")), ("four", None)] {
        let brief = Brief { instructions: instructions.map(str::to_owned), ..Brief::default() };
        gateway.receives(InboundEvent { brief: Some(Box::new(brief)), ..now(&gateway, text) }).await;
    }
    gateway.advance(secs(60)).await;

    assert_eq!(gateway.visible(&chat("ada")).concat().matches("four").count(), 1);
    for run in gateway.agent("main").runs() {
        let rhymes = run.turn.person.instructions.as_deref() == Some("Rhyme.");
        let given = given(&run.turn);
        assert!(given.iter().all(|text| rhymes == matches!(&**text, "two" | "three")), "{given:?}");
    }
    gateway.at_rest().await;
}

/// Somebody who never stops writing is answered nevertheless.
#[tokio::test]
async fn a_window_does_not_grow_for_ever() {
    let gateway = setup(QueueMode::Collect).start().await;
    for number in 0..20 {
        receives_all(&gateway, &[&number.to_string()]).await;
        gateway.advance(secs(1)).await;
    }
    assert!(!runs(&gateway).is_empty());
    gateway.advance(secs(60)).await;
    gateway.at_rest().await;
}

/// The transcript tells the messages before the answer.
#[tokio::test]
async fn the_agent_is_later_told_all_that_was_answered_together() {
    let gateway = setup(QueueMode::Collect).start().await;
    receives_all(&gateway, &["one", "two"]).await;
    gateway.advance(secs(30)).await;
    receives_all(&gateway, &["three"]).await;
    gateway.advance(secs(30)).await;

    let last = gateway.agent("main").runs().pop().expect("there are runs").turn;
    let told: Vec<_> = last.past.history.iter().map(|line| (line.speaker, &*line.text)).collect();
    assert_eq!(told, [(Speaker::Person, "one"), (Speaker::Person, "two"), (Speaker::Agent, "one + two")]);
    gateway.at_rest().await;
}

#[tokio::test]
async fn an_interruption_begins_again_with_both() {
    let gateway = setup(QueueMode::Interrupt).start().await;
    let turns = receives_all(&gateway, &["one"]).await;
    gateway.advance(secs(2)).await;
    receives_all(&gateway, &["two"]).await;
    gateway.advance(secs(1)).await;
    receives_all(&gateway, &["three"]).await;
    gateway.advance(secs(30)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one + two + three"]);
    assert_eq!(runs(&gateway).last().expect("there are runs"), &["one", "two", "three"]);
    let dossier = gateway.dossier(turns[0]).await;
    let ends: Vec<_> = dossier.runs.iter().map(|run| run.end.as_deref().unwrap_or("none")).collect();
    assert_eq!(ends, ["stopped", "stopped", "reply"]);
    gateway.at_rest().await;
}

/// Talk that is not directed at the agent stops nothing.
#[tokio::test]
async fn talk_interrupts_nobody() {
    let gateway = setup(QueueMode::Interrupt).start().await;
    gateway.receives(mention(&chat("room"), "one")).await;
    gateway.receives(ambient(&chat("room"), "blah")).await;
    gateway.advance(secs(30)).await;

    assert_eq!(runs(&gateway)[0], ["one"]);
    assert_eq!(gateway.visible(&chat("room"))[0], "one");
    gateway.at_rest().await;
}

/// An agent that listens gets what came; one that does not answers it afterwards.
#[tokio::test]
async fn what_steers_goes_into_the_run() {
    let gate = Gate::default();
    let script = Script::replies("done").waiting(&gate).listening().listening();
    let queues = Queues { mode: QueueMode::Steer, ..Queues::default() };
    let gateway = GatewaySetup { queues, ..GatewaySetup::new().always(script) }.start().await;
    let turns = receives_all(&gateway, &["one", "two", "three"]).await;
    gate.open();
    gateway.advance(secs(30)).await;

    let runs = gateway.agent("main").runs();
    assert_eq!((runs.len(), &*runs[0].heard), (1, &["two".to_owned(), "three".to_owned()][..]));
    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    assert_eq!(gateway.status(turns[2]).await, TurnStatus::Answered);
    gateway.at_rest().await;
}

#[tokio::test]
async fn what_would_steer_an_agent_that_does_not_listen_follows() {
    let gateway = setup(QueueMode::Steer).start().await;
    receives_all(&gateway, &["one", "two", "three"]).await;
    gateway.advance(secs(30)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one", "two", "three"]);
    gateway.at_rest().await;
}

/// The message that the others were merged into is deleted while the run waits to begin again.
#[tokio::test]
async fn what_was_merged_is_answered_when_the_first_is_cancelled() {
    let gateway = setup(QueueMode::Collect).start().await;
    let turns = receives_all(&gateway, &["one", "two"]).await;
    gateway.advance(secs(2)).await;
    assert_eq!(runs(&gateway), [["one", "two"]]);

    gateway
        .engine()
        .operations()
        .cancel(turns[0], Farewell::Template, crate::gateway::operator("a mistake"))
        .await
        .expect("it is open");
    gateway.advance(secs(30)).await;

    assert_eq!(gateway.status(turns[0]).await, TurnStatus::Cancelled);
    assert_eq!(gateway.visible(&chat("ada")), [GIVEN_UP, "two"]);
    gateway.at_rest().await;
}

/// A message that is deleted before the window ends is not put before the agent.
#[tokio::test]
async fn what_is_deleted_while_it_waits_is_left_out() {
    let gateway = setup(QueueMode::Collect).start().await;
    receives_all(&gateway, &["one"]).await;
    let second = now(&gateway, "two");
    gateway.receives(second.clone()).await;
    let deletion = InboundEvent { revision: 1, amends: Some(Amends::Withdraws), text: String::new(), ..second };
    assert!(matches!(gateway.intake().accept(deletion).await, Ok(Accepted::Amended(_))));
    gateway.advance(secs(30)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one"]);
    gateway.at_rest().await;
}

/// A18. If the answer cannot be delivered, all of them are dead letters, and a retry answers all.
#[tokio::test]
async fn what_was_merged_is_a_dead_letter_with_the_first_and_answered_with_it() {
    let gateway = setup(QueueMode::Collect).start().await;
    gateway.platform.choose_faults(|_| Some(Fault::Refuse));
    let turns = receives_all(&gateway, &["one", "two"]).await;
    gateway.advance(secs(30)).await;
    for turn in &turns {
        assert_eq!(gateway.status(*turn).await, TurnStatus::Undeliverable);
    }

    gateway.platform.clear_faults();
    gateway.retry(turns[0].as_uuid()).await.expect("it is a dead letter");
    gateway.advance(secs(30)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one + two"]);
    for turn in &turns {
        assert_eq!(gateway.status(*turn).await, TurnStatus::Answered);
    }
    gateway.at_rest().await;
}

/// In a group the messages of several people are answered together, and the agent is told who wrote what.
#[tokio::test]
async fn in_a_group_the_agent_is_told_who_wrote_what() {
    let gateway = setup(QueueMode::Collect).start().await;
    let by = |id: &str, text: &str| {
        let event = mention(&chat("room"), text);
        InboundEvent { sender: Sender { id: id.to_owned(), ..event.sender.clone() }, ..event }
    };
    gateway.receives(by("ada", "one")).await;
    gateway.receives(by("bo", "two")).await;
    gateway.advance(secs(30)).await;

    let turn = gateway.agent("main").runs().pop().expect("there is a run").turn;
    let senders: Vec<_> = turn.more.iter().map(|more| &*more.sender.id).collect();
    assert_eq!((&*turn.message.sender.id, senders), ("ada", vec!["bo"]));
    gateway.at_rest().await;
}

/// What was said before a new session is not answered together with what comes after it.
#[tokio::test]
async fn a_new_session_divides_what_waits() {
    let gateway = setup(QueueMode::Collect).start().await;
    receives_all(&gateway, &["one", "/new", "two"]).await;
    gateway.advance(secs(60)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["A new start.", "one", "two"]);
    gateway.at_rest().await;
}

#[tokio::test]
async fn the_mode_can_be_chosen_for_a_conversation() {
    let mut gateway = setup(QueueMode::Followup).start().await;
    receives_all(&gateway, &["/queue", "/queue nonsense", "/queue Collect"]).await;
    gateway.restart().await;
    receives_all(&gateway, &["one", "two"]).await;
    gateway.advance(secs(30)).await;
    let other = said(&chat("bo"), "elsewhere");
    gateway.receives(other).await;
    receives_all(&gateway, &["/queue auto", "three", "four"]).await;
    gateway.advance(secs(30)).await;

    let answers = [
        "Now followup.",
        "Still followup.",
        "From now on collect.",
        "one + two",
        "From now on followup.",
        "three",
        "four",
    ];
    assert_eq!(gateway.visible(&chat("ada")), answers);
    gateway.at_rest().await;
}

/// Its sender is told of a message for which there is no room.
#[tokio::test]
async fn the_newest_message_is_not_taken_when_the_line_is_full() {
    let queues = Queues { cap: 2, ..Queues::default() };
    let gateway = GatewaySetup { queues, ..setup(QueueMode::Followup) }.start().await;
    receives_all(&gateway, &["one", "two", "three"]).await;
    let full = gateway.intake().accept(now(&gateway, "four")).await.expect("it is stored");
    gateway.advance(secs(60)).await;

    assert!(matches!(full, Accepted::Limited { .. }));
    assert_eq!(gateway.visible(&chat("ada")), ["Not so fast.", "one", "two", "three"]);
    gateway.at_rest().await;
}

/// The chat is told of messages that are dropped, and every one of them has ended visibly.
#[tokio::test]
async fn the_oldest_messages_are_dropped_when_the_line_is_full() {
    let queues = Queues { cap: 2, overflow: Overflow::Oldest, ..Queues::default() };
    let gateway = GatewaySetup { queues, ..setup(QueueMode::Followup) }.start().await;
    let turns = receives_all(&gateway, &["one", "two", "three", "four"]).await;
    gateway.advance(secs(60)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["1 dropped: two", "one", "three", "four"]);
    assert_eq!(gateway.status(turns[1]).await, TurnStatus::Cancelled);
    gateway.at_rest().await;
}

/// B5. Talk to which nobody owes an answer is dropped before what is owed, and nobody is told of it.
#[tokio::test]
async fn talk_is_dropped_first_and_silently() {
    let queues = Queues { cap: 1, overflow: Overflow::Oldest, ..Queues::default() };
    let patient = Policy { soft_deadline: None, ..crate::gateway::policy() };
    let setup = GatewaySetup::new().agent("main", |turn| match turn.message.text.as_str() {
        "one" => Script::hangs(),
        text => Script::replies(text),
    });
    let gateway = GatewaySetup { queues, ..setup.policy(patient) }.start().await;
    gateway.receives(mention(&chat("room"), "one")).await;
    let question = gateway.receives(mention(&chat("room"), "two")).await;
    let talk = gateway.receives(ambient(&chat("room"), "talk")).await;
    assert_eq!(gateway.status(talk).await, TurnStatus::Cancelled);
    assert_eq!(gateway.status(question).await, TurnStatus::Accepted);
    assert!(gateway.visible(&chat("room")).is_empty(), "{:?}", gateway.visible(&chat("room")));

    gateway.advance(secs(61)).await;
    gateway.receives(mention(&chat("room"), "three")).await;
    gateway.advance(secs(600)).await;

    assert_eq!(gateway.visible(&chat("room")), ["1 dropped: two", crate::texts::LATE, "three"]);
    assert_eq!(gateway.status(question).await, TurnStatus::Cancelled);
    gateway.at_rest().await;
}

#[tokio::test]
async fn all_that_wait_are_summarised_when_the_line_is_full() {
    let queues = Queues { cap: 2, overflow: Overflow::Summarize, ..Queues::default() };
    let gateway = GatewaySetup { queues, ..setup(QueueMode::Followup) }.start().await;
    let long = "x".repeat(200);
    receives_all(&gateway, &["one", "two", &long, "four", "five"]).await;
    gateway.advance(secs(60)).await;

    let short = format!("{}…", "x".repeat(100));
    assert_eq!(runs(&gateway), [vec!["one"], vec!["two", &short, "four", "five"]]);
    assert_eq!(gateway.visible(&chat("ada")).len(), 2);
    gateway.at_rest().await;
}

/// B1. The deferral of a message that waited is taken back, or replaced, when another turn answers for it.
#[tokio::test]
async fn a_deferral_of_what_waited_does_not_stay() {
    let slow = |turn: &AgentTurn| Script::replies(&given(turn).join(" + ")).taking(secs(25));
    let queues = Queues { mode: QueueMode::Collect, ..Queues::default() };
    let gateway = GatewaySetup { queues, ..GatewaySetup::new().agent("main", slow) }.start().await;
    receives_all(&gateway, &["one"]).await;
    gateway.advance(secs(2)).await;
    receives_all(&gateway, &["two", "three"]).await;
    gateway.advance(secs(90)).await;

    let visible = gateway.visible(&chat("ada"));
    assert_eq!(visible, ["one", "two + three"], "nothing is left of {DEFERRAL:?}");
    gateway.at_rest().await;
}

/// G3. In every mode, whatever write the process dies at, each message has its answer, once; also where our row is the receipt, as
/// on hooks and in the web chat.
#[rstest]
#[tokio::test]
async fn no_message_is_lost_or_answered_twice_whenever_the_gateway_is_killed(
    #[values(QueueMode::Followup, QueueMode::Collect, QueueMode::Steer, QueueMode::Interrupt)] mode: QueueMode,
    #[values(Receipts::Platform, Receipts::Row)] receipts: Receipts,
) {
    for crash in [Crash::Before, Crash::After] {
        for number in 1..60 {
            let script = |turn: &AgentTurn| {
                Script::replies(&given(turn).join(" + ")).taking(secs(5)).listening().taking(secs(1))
            };
            let queues = Queues { mode, ..Queues::default() };
            let setup = GatewaySetup { queues, ..GatewaySetup::new().agent("main", script) };
            let capable = setup.capable(|it| (it.resend, it.receipts) = (Resend::Idempotent, receipts));
            let mut gateway = capable.start().await;
            let life = Arc::clone(&gateway.life);
            life.crash_at(number, crash);
            let events: Vec<_> = ["one", "two", "three"].iter().map(|text| said(&chat("ada"), text)).collect();
            for event in events {
                while !is_accepted(&gateway, event.clone()).await {
                    gateway.restart().await;
                }
                gateway.advance(secs(1)).await;
            }
            gateway.advance(LONG).await;
            if gateway.life.is_over() {
                gateway.restart().await;
            }
            gateway.advance(LONG).await;
            check_each_is_answered(&gateway, mode, receipts, &format!("{mode}, {crash:?} write {number}")).await;
            gateway.at_rest().await;
            if !life.is_over() {
                let least = if receipts == Receipts::Row { 4 } else { 6 };
                assert!(number > least, "three turns take more than {number} writes");
                break;
            }
            assert!(number < 59, "no end of writes");
        }
    }
}

async fn is_accepted(gateway: &TestGateway, event: InboundEvent) -> bool {
    let (intake, life) = (gateway.intake(), Arc::clone(&gateway.life));
    let accepting = tokio::spawn(async move { intake.accept(event).await });
    while !accepting.is_finished() && !life.is_over() {
        tokio::task::yield_now().await;
    }
    if accepting.is_finished() {
        accepting.await.expect("accepting does not panic").expect("it is accepted");
        return true;
    }
    accepting.abort();
    false
}

/// Each of the three messages is in one of the runs that ended in an answer, and every answer is seen once.
async fn check_each_is_answered(gateway: &TestGateway, mode: QueueMode, receipts: Receipts, at: &str) {
    let turns = gateway.turns().await;
    assert_eq!(turns.len(), 3, "{at}");
    for turn in &turns {
        assert_eq!(turn.status, TurnStatus::Answered, "{at}: {turn:?}");
    }
    let visible = if receipts == Receipts::Row { rows(gateway).await } else { gateway.visible(&chat("ada")) };
    let mut seen: Vec<String> = visible.iter().flat_map(|text| text.split(" + ")).map(str::to_owned).collect();
    if mode == QueueMode::Steer {
        // What goes into a run is not a part of the words that this agent says.
        return assert!(!seen.is_empty(), "{at}");
    }
    seen.sort_unstable();
    assert_eq!(seen, ["one", "three", "two"], "{at}: {visible:?}");
}

/// The answers, where our rows are the receipts: that of a merged turn is shown with the one that answers for it.
async fn rows(gateway: &TestGateway) -> Vec<String> {
    let mut answers = Vec::new();
    for turn in gateway.turns().await {
        let view = gateway.store.view(turn.turn_id).await.expect("readable").expect("it is there");
        answers.extend(view.shown.filter(|_| view.merged_into.is_none()).map(|shown| shown.text));
    }
    answers
}

/// L2. Somebody who writes without end keeps nobody else waiting.
#[tokio::test]
async fn a_conversation_that_is_collected_holds_no_permit_while_it_waits() {
    let gateway = setup(QueueMode::Collect).slots(1).start().await;
    receives_all(&gateway, &["one"]).await;
    let other: ConversationRef = chat("bo");
    let event =
        InboundEvent { sender: Sender { id: "bo".to_owned(), ..said(&other, "x").sender }, ..mention(&other, "hi") };
    gateway.receives(event).await;
    gateway.advance(secs(60)).await;

    assert_eq!((gateway.visible(&chat("ada")).len(), gateway.visible(&other).len()), (1, 1));
    gateway.at_rest().await;
}
