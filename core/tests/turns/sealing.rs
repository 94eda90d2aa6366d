//! Answers that are sealed to the key of the asker.

use rejoinder_core::{
    AgentTurn, Cause, Delivery, Handler, InboundEvent, Ladder, OperationError, Policy, QueueMode, Queues, Receipts,
    Reply, Rung, Shown, Support, TurnId,
    conformance::scripted::{Fault, Script, ScriptedAgent, ScriptedRun},
    store::TurnStatus,
};
use rstest::rstest;

use crate::{
    gateway::{GatewaySetup, TestGateway, chat, operator, policy, said, secs},
    texts::FAILED,
};

/// The core passes it on, and checks nothing of it.
const KEY: &str = "age1key";

const ARMOUR: &str = "-----BEGIN AGE ENCRYPTED FILE-----\nbyte by byte, *as it is*\n-----END AGE ENCRYPTED FILE-----\n";

fn asks_sealed_for(key: Option<&str>, text: &str) -> InboundEvent {
    InboundEvent { seal_to: key.map(Into::into), ..said(&chat("ada"), text) }
}

fn asks_sealed(text: &str) -> InboundEvent {
    asks_sealed_for(Some(KEY), text)
}

/// A gateway whose agent `main` can seal, with a channel whose rows are read by clients.
fn sealing(director: impl Fn(&AgentTurn) -> Script + Clone + Send + Sync + 'static) -> GatewaySetup {
    let mut setup = GatewaySetup::new().capable(|it| (it.receipts, it.drafts) = (Receipts::Row, Support::Full));
    let make = move |clock| ScriptedAgent::new(clock, director.clone()).remembering(50).sealing();
    setup.agents.push(("main", Box::new(make)));
    setup
}

async fn shown(gateway: &TestGateway, turn: TurnId) -> Option<Shown> {
    gateway.store.view(turn).await.expect("it is read").expect("it is there").shown
}

fn texts(run: &ScriptedRun) -> Vec<String> {
    let more = run.turn.more.iter().map(|message| message.text.clone());
    std::iter::once(run.turn.message.text.clone()).chain(more).collect()
}

fn seals() -> Script {
    Script::answers(Reply::sealed(ARMOUR))
}

#[tokio::test]
async fn a_sealed_answer_is_whole_for_its_asker_and_a_line_for_all_others() {
    let gateway =
        sealing(|turn| if turn.person.seal_to.is_some() { seals() } else { Script::replies("Hello.") }).start().await;

    let turn = gateway.receives(asks_sealed("what is it?")).await;
    gateway.receives(asks_sealed_for(None, "hello")).await;

    let shown = shown(&gateway, turn).await.expect("it is answered");
    assert_eq!((&*shown.text, shown.sealed.as_deref()), ("(a sealed answer)", Some(ARMOUR)));
    let runs = gateway.agent("main").runs();
    assert_eq!(runs[0].turn.person.seal_to.as_deref(), Some(KEY));
    let history: Vec<_> = runs[1].turn.past.history.iter().map(|line| &*line.text).collect();
    assert_eq!(history, ["what is it?", "(a sealed answer)"]);
    let explained = gateway.explained(turn).await;
    assert!(explained.contains("must seal it") && explained.contains("(a sealed answer)"), "{explained}");
    assert!(!explained.contains("byte by byte"), "{explained}");
    gateway.at_rest().await;
}

#[rstest]
#[case::a_reply(Script::replies("It is the heart."))]
#[case::a_reaction(Script::reacts("👍"))]
#[case::a_question(Script::asks("Heart or lungs?", &["heart", "lungs"]))]
#[case::a_message(Script::replies("It is the heart.").sending("It is the heart."))]
#[case::a_draft(Script::fails("no").streaming("It is the heart.").rewriting("It is the heart."))]
#[tokio::test]
async fn nothing_in_the_clear_reaches_an_asker_who_wants_it_sealed(#[case] script: Script) {
    let gateway = sealing(move |_| script.clone()).start().await;

    let turn = gateway.receives(asks_sealed("what is it?")).await;

    let shown = shown(&gateway, turn).await.expect("the gateway answers");
    assert_eq!((&*shown.text, shown.agent), (FAILED, None));
    assert!(gateway.dossier(turn).await.deliveries.iter().all(|delivery| !delivery.is_draft()));
    gateway.at_rest().await;
}

#[tokio::test]
async fn an_answer_that_nobody_wanted_sealed_is_none() {
    let gateway = sealing(|_| seals()).start().await;

    let turn = gateway.receives(asks_sealed_for(None, "hello")).await;

    assert_eq!(shown(&gateway, turn).await.expect("the gateway answers").text, FAILED);
    gateway.at_rest().await;
}

#[tokio::test]
async fn an_agent_that_cannot_seal_never_sees_such_a_turn_and_the_ladder_finds_one_that_can() {
    let to_other = vec![Rung::Handoff("other".to_owned()), Rung::Say("failed".to_owned())];
    let ladder = Ladder::empty().with(Cause::Error, to_other);
    let mut setup = GatewaySetup::new().always(Script::replies("In the clear.")).policy(Policy { ladder, ..policy() });
    setup.capabilities.receipts = Receipts::Row;
    let make = |clock| ScriptedAgent::new(clock, |_| seals()).sealing();
    setup.agents.push(("other", Box::new(make)));
    let gateway = setup.start().await;

    let turn = gateway.receives(asks_sealed("what is it?")).await;

    let shown = shown(&gateway, turn).await.expect("the other one answers");
    assert_eq!((shown.sealed.as_deref(), shown.agent.as_deref()), (Some(ARMOUR), Some("other")));
    assert!(gateway.agent("main").runs().is_empty());
    let explained = gateway.explained(turn).await;
    assert!(explained.contains("which `main` cannot: agents of the kinds pull, http and command can"), "{explained}");
    gateway.at_rest().await;
}

/// The gateway seals nothing, so it does not answer as itself.
#[rstest]
#[case("/status")]
#[case("/history")]
#[tokio::test]
async fn a_command_that_is_to_be_answered_sealed_goes_to_the_agent(#[case] command: &str) {
    let gateway = sealing(|_| seals()).start().await;

    let turn = gateway.receives(asks_sealed(command)).await;

    assert_eq!(gateway.dossier(turn).await.turn.handler, Handler::Agent("main".into()));
    assert_eq!(gateway.status(turn).await, TurnStatus::Answered);
    gateway.at_rest().await;
}

/// Each holder of a key gets an answer that they can read.
#[tokio::test]
async fn messages_of_other_keys_are_answered_by_themselves() {
    let mut setup = sealing(|turn| if turn.person.seal_to.is_some() { seals() } else { Script::replies("Hello.") });
    setup.queues = Queues { mode: QueueMode::Collect, ..setup.queues };
    let gateway = setup.start().await;
    for (text, key) in [("one", None), ("two", Some(KEY)), ("three", Some(KEY)), ("four", Some("age1other"))] {
        gateway.receives(asks_sealed_for(key, text)).await;
    }
    gateway.advance(secs(60)).await;

    let given: Vec<_> = gateway.agent("main").runs().iter().map(texts).collect();
    assert_eq!(given, [vec!["one"], vec!["two", "three"], vec!["four"]]);
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_sealed_answer_is_there_after_a_restart() {
    let mut gateway = sealing(|_| seals()).start().await;
    let turn = gateway.receives(asks_sealed("what is it?")).await;

    gateway.restart().await;

    assert_eq!(shown(&gateway, turn).await.and_then(|shown| shown.sealed).as_deref(), Some(ARMOUR));
    gateway.at_rest().await;
}

/// Asked again without its key, it would be answered in the clear.
#[tokio::test]
async fn what_was_to_be_sealed_is_not_tried_again() {
    let gateway = sealing(|turn| if turn.person.seal_to.is_some() { seals() } else { Script::replies("the heart") })
        .start()
        .await;
    gateway.receives(asks_sealed("what is it?")).await;

    let turn = gateway.receives(asks_sealed_for(None, "/retry")).await;

    assert_eq!(gateway.agent("main").runs().len(), 1);
    assert_eq!(shown(&gateway, turn).await.map(|shown| shown.text), Some("Sealed: ask again.".to_owned()));
    gateway.at_rest().await;
}

/// Nobody else could read it: what would be sent is the line that stands in its place.
#[tokio::test]
async fn a_sealed_answer_is_not_redirected() {
    let mut setup = sealing(|turn| if turn.person.seal_to.is_some() { seals() } else { Script::replies("Hello.") });
    setup.capabilities.receipts = Receipts::Platform;
    let gateway = setup.start().await;
    gateway.receives(asks_sealed_for(None, "hello")).await;
    gateway.receives(said(&chat("grace"), "hello")).await;
    gateway.platform.choose_faults(|_: &Delivery| Some(Fault::Refuse));
    gateway.receives(asks_sealed("what is it?")).await;
    gateway.platform.clear_faults();
    let id = gateway.dead_letters().await.remove(0).id;

    let refused = gateway.engine().operations().redirect(id, chat("grace"), operator("elsewhere")).await;

    assert!(matches!(&refused, Err(OperationError::Unfit(why)) if why.contains("sealed")), "{refused:?}");
    assert_eq!(gateway.visible(&chat("grace")), ["Hello."]);
    gateway.at_rest().await;
}

/// It would be stored in the clear.
#[tokio::test]
async fn no_title_and_no_activity_is_kept_of_what_is_sealed() {
    let titled = |turn: &AgentTurn| {
        if turn.person.seal_to.is_some() { seals().titling("The heart") } else { Script::replies("Hello.") }
    };
    let gateway = sealing(titled).start().await;

    gateway.receives(asks_sealed("what is it?")).await;
    gateway.receives(asks_sealed_for(None, "/sessions")).await;

    let posts = format!("{:?}", gateway.platform.seen());
    assert!(!posts.contains("The heart"), "{posts}");
    gateway.at_rest().await;
}
