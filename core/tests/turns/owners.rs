//! Owners are told who asks to be let in, and decide by a choice.

use rejoinder_core::{
    Accepted, Access, EventKind, InboundEvent, NewPerson, TurnId,
    store::{AuditFilter, Handler, Pairing},
};

use crate::{
    gateway::{TestGateway, chat, comes_in, operator, secs},
    life::Crash,
    linking::{code_for, confirms, guarded, last, says, setup, there},
};

const HOUR: u64 = 3600;

/// A gateway whose owner Grace has written.
async fn owned() -> TestGateway {
    let gateway = guarded().await;
    comes_in(&gateway, says(&chat("grace"), "hello")).await;
    gateway
}

/// Eve, whom nobody knows, writes on the other channel: her request.
async fn asked_by_eve(gateway: &TestGateway) -> Pairing {
    comes_in(gateway, says(&there("eve"), "let me in")).await;
    gateway.engine().people().waiting().pop().expect("a request")
}

fn notice(pairing: &Pairing) -> String {
    let (id, code) = (&pairing.identity.id, pairing.shown_code());
    format!("{} (test.other/{id}) asks, with {code}.", id.to_uppercase())
}

/// The turns that told owners of requests, oldest first.
async fn told(gateway: &TestGateway) -> Vec<TurnId> {
    let turns = gateway.turns().await.into_iter().rev();
    turns.filter(|turn| turn.handler == Handler::Gateway("asks".into())).map(|turn| turn.turn_id).collect()
}

/// A press of a button below the message to an owner.
fn pressed(person: &str, question: TurnId, choice: &str) -> InboundEvent {
    InboundEvent { kind: EventKind::Choice { turn: question }, ..says(&chat(person), choice) }
}

async fn audit(gateway: &TestGateway) -> Vec<(String, String, String)> {
    let audit = gateway.store.audit(&AuditFilter { before: None, limit: 10 }).await.expect("readable");
    audit.into_iter().map(|it| (it.entry.by, it.entry.action, it.entry.target)).collect()
}

fn by_grace(action: &str) -> [(String, String, String); 1] {
    [("Grace (test.main/grace)".to_owned(), action.to_owned(), "test.other/eve".to_owned())]
}

/// N1, N2. The choice counts in words as well as by a button, and once. The agent is told nothing of it.
#[tokio::test]
async fn an_owner_lets_somebody_in_by_a_choice() {
    let gateway = owned().await;
    let eve = asked_by_eve(&gateway).await;
    assert_eq!(gateway.visible(&chat("grace")), ["hello".to_owned(), notice(&eve)]);
    let [question] = told(&gateway).await[..] else { panic!("she is told once") };

    comes_in(&gateway, says(&chat("grace"), "Yes")).await;
    let again = comes_in(&gateway, pressed("grace", question, "No")).await;
    assert!(matches!(&again, Accepted::Picked { choice } if choice == "Yes"), "{again:?}");
    comes_in(&gateway, says(&there("eve"), "thanks")).await;
    comes_in(&gateway, says(&chat("grace"), "what is new?")).await;

    assert_eq!(gateway.visible(&chat("grace"))[2..], ["EVE is in.", "hello"]);
    assert_eq!(gateway.visible(&there("eve"))[1..], ["Come in, says main.", "hello"]);
    assert_eq!(audit(&gateway).await, by_grace("approve"));
    let runs = gateway.agent("main").runs();
    let history = format!("{:?}", runs.last().expect("a run").turn.past.history);
    assert_eq!(runs.len(), 3);
    assert!(!history.contains("EVE") && !history.contains(&eve.shown_code()), "{history}");
    gateway.at_rest().await;
}

#[tokio::test]
async fn an_owner_keeps_somebody_out_by_a_button() {
    let gateway = owned().await;
    asked_by_eve(&gateway).await;
    let [question] = told(&gateway).await[..] else { panic!("she is told once") };

    comes_in(&gateway, pressed("grace", question, "No")).await;

    assert_eq!(last(&gateway, &chat("grace")), "EVE stays out.");
    assert_eq!(gateway.visible(&there("eve")).len(), 1);
    assert_eq!(audit(&gateway).await, by_grace("decline"));
    gateway.at_rest().await;
}

/// What was decided elsewhere is not decided again, and what has expired is not talked about.
#[tokio::test]
async fn a_choice_that_comes_too_late_decides_nothing() {
    let gateway = owned().await;
    let eve = asked_by_eve(&gateway).await;
    gateway.engine().operations().decline(&eve.code, operator("who is this?")).await.expect("it is declined");
    let [question] = told(&gateway).await[..] else { panic!("she is told once") };
    comes_in(&gateway, pressed("grace", question, "Yes")).await;
    assert_eq!(last(&gateway, &chat("grace")), "Too late.");

    comes_in(&gateway, says(&there("dan"), "and me?")).await;
    let [_, second] = told(&gateway).await[..] else { panic!("she is told of Dan") };
    let before = gateway.visible(&chat("grace"));
    gateway.advance(secs(HOUR)).await;
    let late = comes_in(&gateway, pressed("grace", second, "Yes")).await;

    assert!(matches!(late, Accepted::Expired { .. }), "{late:?}");
    assert_eq!(gateway.visible(&chat("grace")), before);
    assert_eq!(gateway.engine().people().all().await.expect("readable").len(), 2);
    gateway.at_rest().await;
}

/// N2.
#[tokio::test]
async fn nobody_else_decides() {
    let gateway = owned().await;
    asked_by_eve(&gateway).await;
    let [question] = told(&gateway).await[..] else { panic!("she is told once") };

    comes_in(&gateway, pressed("ada", question, "Yes")).await;

    assert_eq!(gateway.visible(&chat("ada")), ["You are no owner."]);
    assert_eq!(gateway.engine().people().waiting().len(), 1);
    gateway.at_rest().await;
}

/// O2. However many ask, and however fast they are declined.
#[tokio::test]
async fn owners_are_told_of_three_requests_an_hour() {
    let gateway = owned().await;
    for number in 0..10 {
        comes_in(&gateway, says(&there(&format!("s{number}")), "hello")).await;
        let request = gateway.engine().people().waiting().pop().expect("a request");
        gateway.engine().operations().decline(&request.code, operator("no")).await.expect("it is declined");
    }
    assert_eq!(told(&gateway).await.len(), 3);

    gateway.advance(secs(HOUR)).await;
    asked_by_eve(&gateway).await;
    assert_eq!(told(&gateway).await.len(), 4);
    gateway.at_rest().await;
}

/// Over a restart.
#[tokio::test]
async fn an_owner_is_told_where_they_wrote_last() {
    let mut gateway = owned().await;
    let code = code_for(&gateway, &chat("grace")).await;
    comes_in(&gateway, says(&there("hopper"), &format!("/link {code}"))).await;
    confirms(&gateway, &chat("grace")).await;
    comes_in(&gateway, says(&there("hopper"), "hello")).await;
    gateway.restart().await;
    let eve = asked_by_eve(&gateway).await;
    assert_eq!(last(&gateway, &there("hopper")), notice(&eve));

    gateway.advance(secs(1)).await;
    comes_in(&gateway, says(&chat("grace"), "I am here")).await;
    gateway.restart().await;
    comes_in(&gateway, says(&there("dan"), "and me?")).await;

    assert!(last(&gateway, &chat("grace")).starts_with("DAN"), "{:?}", gateway.visible(&chat("grace")));
    assert_eq!(last(&gateway, &there("hopper")), notice(&eve));
    gateway.at_rest().await;
}

#[tokio::test]
async fn owners_are_told_nothing_if_the_operator_wants_so() {
    let mut setup = setup(Access::default());
    setup.notify_owners = false;
    let gateway = setup.start().await;
    comes_in(&gateway, says(&chat("grace"), "hello")).await;

    let eve = asked_by_eve(&gateway).await;
    assert!(told(&gateway).await.is_empty());
    gateway
        .engine()
        .operations()
        .approve(&eve.code, NewPerson::default(), operator("a friend"))
        .await
        .expect("it is approved");
    gateway.settle().await;
    gateway.at_rest().await;
}

/// On a new gateway somebody asks before its owner has written.
#[tokio::test]
async fn an_owner_who_writes_later_is_told_of_who_waits() {
    let gateway = guarded().await;
    let eve = asked_by_eve(&gateway).await;
    gateway.advance(secs(60)).await;

    comes_in(&gateway, says(&chat("grace"), "hello")).await;

    let mut seen = gateway.visible(&chat("grace"));
    seen.sort_unstable();
    assert_eq!(seen, [notice(&eve), "hello".to_owned()]);
    comes_in(&gateway, says(&chat("grace"), "hello again")).await;
    assert_eq!(told(&gateway).await.len(), 1);
    gateway.at_rest().await;
}

/// `kill -9` at every write while an owner is told, and while they decide.
#[tokio::test]
async fn a_crash_tells_and_decides_once() {
    for write in 1..=10 {
        let mut gateway = owned().await;
        let crash = async |gateway: &mut TestGateway, event: InboundEvent| {
            gateway.life.crash_at(write, Crash::After);
            let (intake, again) = (gateway.engine().intake(&event.conversation.channel), event.clone());
            tokio::spawn(async move { intake.accept(event).await });
            gateway.settle().await;
            gateway.restart().await;
            comes_in(gateway, again).await;
            gateway.advance(secs(60)).await;
        };
        crash(&mut gateway, says(&there("eve"), "let me in")).await;
        let eve = gateway.engine().people().waiting().pop().expect("a request");
        assert_eq!(gateway.visible(&chat("grace")), ["hello".to_owned(), notice(&eve)], "after write {write}");

        crash(&mut gateway, says(&chat("grace"), "Yes")).await;

        assert_eq!(gateway.visible(&chat("grace"))[2..], ["EVE is in."], "after write {write}");
        assert_eq!(gateway.visible(&there("eve"))[1..], ["Come in, says main."], "after write {write}");
        assert_eq!(audit(&gateway).await, by_grace("approve"), "after write {write}");
        gateway.at_rest().await;
    }
}
