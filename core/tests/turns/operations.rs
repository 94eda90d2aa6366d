//! What operators do: retry, redirect, discard, cancel, hold, resume; messages of theirs; channels that they pause.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use rejoinder_core::{
    Actor, AgentTurn, Capabilities, ChannelId, Clock as _, ConversationRef, Farewell, Ladder, NewMessage,
    OperationError, Policy, Receipts, Resend, Speaker, Support, Target, TurnId,
    conformance::scripted::{Fault, Script, capabilities},
    store::{AuditFilter, DeliveryFilter, DeliveryState, Origin, Role, TokenChange, TokenRecord, TurnStatus},
};
use uuid::Uuid;

use crate::{
    gateway::{GatewaySetup, SOFT_DEADLINE, TestGateway, chat, operator, policy, said, secs},
    life::Crash,
    texts::{DEFERRAL, GIVEN_UP},
};

/// A gateway whose platform refuses the answer and the fallback of the first turn.
async fn refused() -> (TestGateway, TurnId) {
    refused_by(Resend::Ambiguous).await
}

async fn refused_by(resend: Resend) -> (TestGateway, TurnId) {
    let capable = GatewaySetup::new().capable(|it| it.resend = resend);
    let gateway = capable.always(Script::replies("done")).start().await;
    gateway.platform.queue_fault(Fault::Refuse);
    gateway.platform.queue_fault(Fault::Refuse);
    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    assert_eq!(gateway.status(turn).await, TurnStatus::Undeliverable);
    (gateway, turn)
}

async fn audited(gateway: &TestGateway) -> Vec<(String, String, Option<String>)> {
    let audit = gateway.store.audit(&AuditFilter { before: None, limit: 10 }).await.expect("readable");
    audit.into_iter().map(|record| (record.entry.by, record.entry.action, record.entry.reason)).collect()
}

fn done(by: &str, action: &str, reason: &str) -> (String, String, Option<String>) {
    (by.to_owned(), action.to_owned(), Some(reason.to_owned()))
}

#[tokio::test]
async fn a_dead_letter_is_sent_again_as_the_same_delivery() {
    let (gateway, turn) = refused().await;
    let [letter] = &gateway.dead_letters().await[..] else { panic!("there is one") };
    assert_eq!((letter.turn, &*letter.question, letter.is_copy), (turn, "hello", false));
    let delivery = letter.delivery.as_ref().expect("there is something to send");
    assert_eq!((delivery.id.as_uuid(), delivery.state), (letter.id, DeliveryState::Refused));

    gateway.retry(letter.id).await.expect("it is sent again");
    gateway.settle().await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    assert_eq!(gateway.status(turn).await, TurnStatus::Answered);
    assert!(gateway.dead_letters().await.is_empty());
    assert_eq!(gateway.store.backlog().await.expect("readable").undeliverable, 0);
    assert_eq!(audited(&gateway).await, [done("grace", "retry", "it was blocked")]);
    let explained = gateway.explained(turn).await;
    assert!(explained.contains("Sent again by grace: it was blocked."), "{explained}");
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_retry_that_is_refused_is_a_dead_letter_again() {
    let (gateway, turn) = refused().await;
    let letter = gateway.dead_letters().await.remove(0);
    gateway.platform.queue_fault(Fault::Refuse);

    gateway.retry(letter.id).await.expect("it is sent again");
    gateway.settle().await;

    assert!(gateway.visible(&chat("ada")).is_empty());
    assert_eq!(
        gateway.dead_letters().await.iter().map(|one| (one.id, one.turn)).collect::<Vec<_>>(),
        [(letter.id, turn)]
    );
    gateway.retry(turn.as_uuid()).await.expect("the id of the turn will do");
    gateway.settle().await;
    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.at_rest().await;
}

#[tokio::test]
async fn of_two_retries_at_once_one_sends() {
    let (gateway, _) = refused().await;
    let id = gateway.dead_letters().await.remove(0).id;

    let (one, other) = tokio::join!(gateway.retry(id), gateway.retry(id));
    gateway.settle().await;

    assert!(one.is_ok() != other.is_ok(), "{one:?} {other:?}");
    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.at_rest().await;
}

/// D1. A crash at any step of the retry shows the answer once, where the platform recognises what is sent again.
#[tokio::test]
async fn a_retry_survives_a_crash() {
    for crash in [Crash::Before, Crash::After] {
        for number in 1..=3 {
            let (mut gateway, turn) = refused_by(Resend::Idempotent).await;
            let id = gateway.dead_letters().await.remove(0).id;
            gateway.life.crash_at(number, crash);

            let engine = gateway.engine().clone();
            let retrying = tokio::spawn(async move { engine.operations().retry(id, operator("it was blocked")).await });
            gateway.settle().await;
            let is_accepted = retrying.is_finished();
            retrying.abort();
            assert!(gateway.life.is_over(), "{crash:?} {number}");
            gateway.restart().await;
            gateway.advance(secs(30)).await;
            if gateway.status(turn).await == TurnStatus::Undeliverable {
                assert!(!is_accepted, "{crash:?} {number}: what was accepted is done");
                gateway.retry(id).await.expect("it is still a dead letter");
                gateway.settle().await;
            }

            assert_eq!(gateway.visible(&chat("ada")), ["done"], "{crash:?} {number}");
            gateway.at_rest().await;
        }
    }
}

/// Two messages came after it: the person is told what the late one answers.
#[tokio::test]
async fn what_is_sent_again_after_others_says_what_it_answers() {
    let (gateway, _) = refused().await;
    let id = gateway.dead_letters().await.remove(0).id;
    gateway.receives(said(&chat("ada"), "and now?")).await;

    gateway.retry(id).await.expect("it is sent again");
    gateway.settle().await;

    let seen = gateway.platform.seen();
    assert!(seen.last().expect("it is sent").labelled, "{seen:#?}");
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_turn_that_nobody_could_answer_is_run_again() {
    let is_well = Arc::new(AtomicBool::new(false));
    let director = {
        let is_well = Arc::clone(&is_well);
        move |_: &AgentTurn| {
            if is_well.load(Ordering::SeqCst) { Script::replies("done") } else { Script::is_silent("chosen") }
        }
    };
    let ladderless = Policy { ladder: Ladder::empty(), ..policy() };
    let gateway = GatewaySetup::new().policy(ladderless).agent("main", director).start().await;
    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    let [letter] = &gateway.dead_letters().await[..] else { panic!("there is one") };
    assert_eq!((letter.id, letter.delivery.is_none()), (turn.as_uuid(), true));
    is_well.store(true, Ordering::SeqCst);

    gateway.retry(letter.id).await.expect("it is run again");
    gateway.settle().await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_dead_letter_is_sent_to_another_conversation() {
    let (gateway, turn) = refused().await;
    gateway.receives(said(&chat("grace"), "hello")).await;
    let id = gateway.dead_letters().await.remove(0).id;
    let to = |name| gateway.engine().operations().redirect(id, chat(name), operator("ada has blocked us"));
    let nobody = to("nobody").await;
    assert!(matches!(nobody, Err(OperationError::Unfit(_))), "{nobody:?}");

    to("grace").await.expect("it is sent there");
    gateway.settle().await;

    assert!(gateway.visible(&chat("ada")).is_empty());
    assert_eq!(gateway.visible(&chat("grace")), ["done", "done"]);
    assert_eq!(gateway.status(turn).await, TurnStatus::Answered);
    let explained = gateway.explained(turn).await;
    assert!(explained.contains("Redirected by grace, to test.main/grace: ada has blocked us."), "{explained}");
    gateway.at_rest().await;
}

/// A hook's callers fetch the results of their own turns: there is no conversation to send to.
#[tokio::test]
async fn nothing_is_sent_to_where_answers_are_fetched() {
    let hook = ChannelId::new("hook", "main");
    let by_row = Capabilities { receipts: Receipts::Row, edit: Support::No, ..capabilities() };
    let mut setup = GatewaySetup::new().always(Script::replies("done"));
    setup.channels.push((hook.clone(), by_row));
    let gateway = setup.start().await;
    let there = ConversationRef::new(hook, "caller");
    gateway.receives(said(&there, "hello")).await;
    gateway.platform.queue_fault(Fault::Refuse);
    gateway.platform.queue_fault(Fault::Refuse);
    gateway.receives(said(&chat("ada"), "hello")).await;
    let id = gateway.dead_letters().await.remove(0).id;

    let refused = gateway.engine().operations().redirect(id, there, operator("elsewhere")).await;

    assert!(matches!(refused, Err(OperationError::Unfit(_))), "{refused:?}");
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_dead_letter_is_given_up_with_a_reason() {
    let (gateway, turn) = refused().await;
    let id = gateway.dead_letters().await.remove(0).id;

    gateway.engine().operations().discard(id, operator("she left")).await.expect("it is given up");

    assert!(gateway.dead_letters().await.is_empty());
    assert_eq!(gateway.status(turn).await, TurnStatus::Cancelled);
    assert_eq!(gateway.store.backlog().await.expect("readable").undeliverable, 0);
    assert!(gateway.explained(turn).await.starts_with("Given up by the operator"), "{}", gateway.explained(turn).await);
    let again = gateway.retry(id).await;
    assert!(matches!(again, Err(OperationError::Unfit(_))), "{again:?}");
    gateway.at_rest().await;
}

/// A token that is not stored yet.
fn token(gateway: &TestGateway, number: u128, name: &str) -> TokenRecord {
    TokenRecord {
        id: Uuid::from_u128(number),
        name: name.to_owned(),
        hash: [1; 32],
        role: Role::Operator,
        channels: None,
        created_at: gateway.clock.now(),
        created_by: "grace".to_owned(),
        expires_at: None,
        revoked_at: None,
    }
}

/// What is sent with it would be taken for alerts.
#[tokio::test]
async fn no_token_has_the_name_of_the_alerts() {
    let gateway = TestGateway::with(Script::replies("done")).await;
    let token = token(&gateway, 1, "alerts");

    let made = gateway.engine().administration().change_token(TokenChange::Create(token), operator("a test")).await;

    let Err(OperationError::Unfit(why)) = made else { panic!("{made:?}") };
    assert_eq!(why, "the gateway's own alerts have the name alerts: choose another one");
    gateway.at_rest().await;
}

/// Of two decisions at the same moment, the second is made on what the first has left.
#[tokio::test]
async fn what_two_operators_do_at_once_is_done_once() {
    let (gateway, _) = refused().await;
    let letter = gateway.dead_letters().await[0].id;
    let (engine, channel) = (gateway.engine(), chat("ada").channel);
    let create = |number| {
        let token = token(&gateway, number, "grafana");
        engine.administration().change_token(TokenChange::Create(token), operator("both"))
    };
    let discard = || engine.operations().discard(letter, operator("both"));
    let pause = || engine.operations().pause_channel(channel.clone(), true, operator("both"));

    let done = [
        (tokio::join!(discard(), discard()), "it is no dead letter any more"),
        (tokio::join!(pause(), pause()), "the channel is paused already"),
        (tokio::join!(create(1), create(2)), "there is a token with the name grafana"),
    ];

    for (both, why) in done {
        let refused = match both {
            (Ok(()), Err(OperationError::Unfit(refused))) | (Err(OperationError::Unfit(refused)), Ok(())) => refused,
            both => panic!("{both:?}"),
        };
        assert!(refused.contains(why), "{refused}");
    }
    assert_eq!(audited(&gateway).await.len(), 3);
    engine.operations().pause_channel(channel, false, operator("again")).await.expect("it is resumed");
    gateway.at_rest().await;
}

/// Nobody can be told, whatever is to be said.
#[tokio::test]
async fn a_dead_letter_is_not_cancelled_but_retried_redirected_or_discarded() {
    let (gateway, turn) = refused().await;

    for farewell in [Farewell::Template, Farewell::Words("Sorry.".to_owned()), Farewell::Silence] {
        let refused = gateway.engine().operations().cancel(turn, farewell, operator("she left")).await;
        let Err(OperationError::Unfit(why)) = refused else { panic!("it is not refused: {refused:?}") };
        assert!(["dead letter", "retry", "redirect", "discard"].iter().all(|word| why.contains(word)), "{why}");
    }

    assert_eq!(gateway.status(turn).await, TurnStatus::Undeliverable);
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_turn_that_runs_is_cancelled() {
    let gateway = TestGateway::with(Script::replies("done").taking(secs(600))).await;
    let turn = gateway.receives(said(&chat("ada"), "hello")).await;

    gateway
        .engine()
        .operations()
        .cancel(turn, Farewell::Template, operator("it loops"))
        .await
        .expect("it is cancelled");
    gateway.settle().await;

    assert_eq!(gateway.status(turn).await, TurnStatus::Cancelled);
    assert_eq!(gateway.visible(&chat("ada")), [GIVEN_UP]);
    let again = gateway.engine().operations().cancel(turn, Farewell::Template, operator("it loops")).await;
    assert!(matches!(again, Err(OperationError::Unfit(_))), "{again:?}");
    gateway.at_rest().await;
}

/// A turn that was deferred, and is given up with this farewell. What the person sees then.
async fn seen_after(farewell: Farewell) -> (TestGateway, TurnId, Vec<String>) {
    let gateway = TestGateway::with(Script::replies("done").taking(secs(600))).await;
    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(SOFT_DEADLINE).await;
    assert_eq!(gateway.visible(&chat("ada")), [DEFERRAL]);

    gateway.engine().operations().cancel(turn, farewell, operator("it loops")).await.expect("it is given up");
    gateway.settle().await;

    let visible = gateway.visible(&chat("ada"));
    (gateway, turn, visible)
}

#[tokio::test]
async fn a_promise_that_is_given_up_becomes_a_word_that_says_so() {
    let (gateway, turn, visible) = seen_after(Farewell::Template).await;

    assert_eq!(visible, [GIVEN_UP]);
    assert_eq!(gateway.status(turn).await, TurnStatus::Cancelled);
    let explained = gateway.explained(turn).await;
    assert!(
        explained.starts_with("Given up by the operator") && explained.contains("The person was told."),
        "{explained}"
    );
    let topics = gateway.topics(turn).await;
    assert_eq!(topics.last().map(String::as_str), Some("turn.settled"), "{topics:?}");
    gateway.at_rest().await;
}

#[tokio::test]
async fn an_operator_gives_up_in_their_own_words() {
    let (gateway, _, visible) = seen_after(Farewell::Words("Ask Grace, please.".to_owned())).await;

    assert_eq!(visible, ["Ask Grace, please."]);
    gateway.at_rest().await;
}

/// What was held is not sent any more, and the person is told.
#[tokio::test]
async fn a_turn_that_is_given_up_while_it_is_held_says_so() {
    let gateway = TestGateway::with(Script::replies("done").taking(secs(1))).await;
    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.engine().operations().hold(turn, operator("a look at it")).await.expect("it is held");
    gateway.advance(secs(5)).await;

    gateway.engine().operations().cancel(turn, Farewell::Template, operator("no")).await.expect("it is given up");
    gateway.advance(secs(60)).await;

    assert_eq!(gateway.visible(&chat("ada")), [GIVEN_UP]);
    assert_eq!(gateway.status(turn).await, TurnStatus::Cancelled);
    gateway.at_rest().await;
}

#[tokio::test]
async fn only_who_gives_up_silently_leaves_nothing() {
    let (gateway, turn, visible) = seen_after(Farewell::Silence).await;

    assert_eq!((visible, gateway.status(turn).await), (Vec::new(), TurnStatus::Cancelled));
    gateway.at_rest().await;
}

/// The answer is made and kept; the turns behind go on.
#[tokio::test]
async fn a_turn_that_is_held_sends_nothing_until_it_is_resumed() {
    let gateway = TestGateway::with(Script::replies("done").taking(secs(60))).await;
    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.engine().operations().hold(turn, operator("I must read it first")).await.expect("it is held");

    gateway.advance(secs(120)).await;
    assert!(gateway.visible(&chat("ada")).is_empty());
    let states: Vec<_> = gateway.dossier(turn).await.deliveries.iter().map(|one| one.state).collect();
    assert_eq!(states, [DeliveryState::Held]);
    let next = gateway.receives(said(&chat("ada"), "and now?")).await;
    gateway.advance(secs(60)).await;
    assert_eq!(gateway.status(next).await, TurnStatus::Answered);

    gateway.engine().operations().resume(turn, operator("it is fine")).await.expect("it is resumed");
    gateway.settle().await;

    assert_eq!(gateway.status(turn).await, TurnStatus::Answered);
    assert_eq!(gateway.topics(turn).await.iter().filter(|topic| *topic == "turn.resumed").count(), 1);
    gateway.at_rest().await;
}

/// A restart keeps the hold, and what waits for a run does not begin.
#[tokio::test]
async fn a_turn_that_is_held_while_it_waits_does_not_begin() {
    let mut gateway = GatewaySetup::new().always(Script::replies("done").taking(secs(30))).slots(1).start().await;
    gateway.receives(said(&chat("grace"), "first")).await;
    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.engine().operations().hold(turn, operator("wait")).await.expect("it is held");

    gateway.advance(secs(60)).await;
    gateway.restart().await;
    gateway.advance(SOFT_DEADLINE + secs(60)).await;
    assert!(gateway.visible(&chat("ada")).is_empty());

    gateway.engine().operations().resume(turn, operator("go on")).await.expect("it is resumed");
    gateway.settle().await;
    gateway.advance(secs(60)).await;
    let visible = gateway.visible(&chat("ada"));
    assert_eq!(visible.last().map(String::as_str), Some("done"), "{visible:?}");
    assert!(visible.len() == 1 || visible[0] == DEFERRAL, "{visible:?}");
    gateway.at_rest().await;
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let gateway = TestGateway::with(Script::replies("done")).await;

    let unknown = gateway.engine().operations().discard(Uuid::nil(), operator("why not")).await;

    assert!(matches!(unknown, Err(OperationError::Unknown(_))), "{unknown:?}");
    gateway.at_rest().await;
}

async fn sends(gateway: &TestGateway, text: &str, by: Actor) -> Result<TurnId, OperationError> {
    let (to, text) = (Target::Conversation(chat("ada")), text.to_owned());
    let key = TurnId::new(gateway.clock.now()).to_string();
    let sent = gateway
        .engine()
        .initiative()
        .send(&NewMessage { to, text, attachments: Vec::new(), is_urgent: false }, &key, &by)
        .await?;
    Ok(sent.begun[0].turn)
}

/// J4. The agent is not asked, and knows it as a line of the gateway's at the next turn.
#[tokio::test]
async fn an_operators_message_is_sent_once_and_answered_by_nobody() {
    let gateway = GatewaySetup::new().always(Script::replies("done")).start().await;
    gateway.receives(said(&chat("ada"), "hello")).await;

    let turn = sends(&gateway, "We are back.", operator("an outage")).await.expect("it is sent");
    gateway.settle().await;

    assert_eq!(gateway.visible(&chat("ada")), ["done", "We are back."]);
    assert_eq!(gateway.status(turn).await, TurnStatus::Answered);
    assert_eq!(gateway.agent("main").turns().len(), 1);
    assert_eq!(audited(&gateway).await, [done("grace", "message", "an outage")]);
    let origins = DeliveryFilter { origin: Some(Origin::Operator), limit: 10, ..DeliveryFilter::default() };
    let listed = gateway.store.list_deliveries(&origins).await.expect("readable");
    assert_eq!(listed.iter().map(|one| one.delivery.turn).collect::<Vec<_>>(), [turn]);
    gateway.receives(said(&chat("ada"), "thanks")).await;
    let history: Vec<_> = gateway.agent("main").runs()[1]
        .turn
        .past
        .history
        .iter()
        .map(|line| (line.speaker, line.text.clone()))
        .collect();
    assert_eq!(history.last(), Some(&(Speaker::Gateway, "We are back.".to_owned())), "{history:?}");
    gateway.at_rest().await;
}

/// J4. The person does not get the ladder's words for a message that they did not ask for.
#[tokio::test]
async fn an_operators_message_that_is_refused_is_a_dead_letter() {
    let gateway = GatewaySetup::new().always(Script::replies("done")).start().await;
    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.platform.queue_fault(Fault::Refuse);

    let turn = sends(&gateway, "We are back.", operator("an outage")).await.expect("it is accepted");
    gateway.settle().await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    let [letter] = &gateway.dead_letters().await[..] else { panic!("there is one") };
    assert_eq!(letter.turn, turn);
    gateway.retry(letter.id).await.expect("it is sent again");
    gateway.settle().await;
    assert_eq!(gateway.visible(&chat("ada")), ["done", "We are back."]);
    gateway.at_rest().await;
}

/// J4. It passes the gate like an answer, and is repeated like one.
#[tokio::test]
async fn an_operators_message_waits_for_a_channel_that_is_paused_or_down() {
    let mut gateway = GatewaySetup::new().always(Script::replies("done")).start().await;
    gateway.receives(said(&chat("ada"), "hello")).await;
    let channel = chat("ada").channel;
    gateway
        .engine()
        .operations()
        .pause_channel(channel.clone(), true, operator("not yet"))
        .await
        .expect("it is paused");

    sends(&gateway, "We are back.", operator("an outage")).await.expect("it is accepted");
    gateway.advance(secs(60)).await;
    gateway.restart().await;
    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.platform.set_down(true);
    gateway.engine().operations().pause_channel(channel, false, operator("now")).await.expect("it is resumed");
    gateway.advance(secs(60)).await;
    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.platform.set_down(false);
    gateway.advance(secs(600)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done", "We are back."]);
    gateway.at_rest().await;
}

/// The agent answers meanwhile. A restart keeps the pause.
#[tokio::test]
async fn a_paused_channel_sends_nothing_until_it_is_resumed() {
    let mut gateway = GatewaySetup::new().always(Script::replies("done")).start().await;
    let channel = chat("ada").channel;
    gateway
        .engine()
        .operations()
        .pause_channel(channel.clone(), true, operator("the bot misbehaves"))
        .await
        .expect("it is paused");
    let twice = gateway.engine().operations().pause_channel(channel.clone(), true, operator("again")).await;
    assert!(matches!(twice, Err(OperationError::Unfit(_))), "{twice:?}");

    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(300)).await;
    gateway.restart().await;
    gateway.advance(secs(300)).await;
    assert!(gateway.visible(&chat("ada")).is_empty());
    assert_eq!(gateway.agent("main").turns().len(), 1);
    assert_eq!(gateway.engine().paused(&channel).and_then(|pause| pause.reason), Some("the bot misbehaves".to_owned()));

    gateway
        .engine()
        .operations()
        .pause_channel(channel.clone(), false, operator("it is mended"))
        .await
        .expect("it is resumed");
    gateway.advance(secs(1)).await;

    let visible = gateway.visible(&chat("ada"));
    assert_eq!(visible.last().map(String::as_str), Some("done"), "{visible:?}");
    assert_eq!(gateway.status(turn).await, TurnStatus::Answered);
    assert_eq!(gateway.engine().paused(&channel), None);
    gateway.at_rest().await;
}

/// What failed was given up, and nothing else is to be sent: the channel is not down for ever.
#[tokio::test]
async fn a_channel_to_which_nothing_is_to_be_sent_is_not_down() {
    let gateway = GatewaySetup::new().always(Script::replies("done")).start().await;
    gateway.platform.set_down(true);
    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(60)).await;
    let failing = |gateway: &TestGateway| gateway.engine().outbound(&chat("ada").channel).failing_since;
    gateway.engine().watch().await;
    assert!(failing(&gateway).is_some());

    gateway
        .engine()
        .operations()
        .cancel(turn, Farewell::Silence, operator("the platform is gone"))
        .await
        .expect("it is given up");
    gateway.engine().watch().await;

    assert_eq!(failing(&gateway), None);
    gateway.at_rest().await;
}
