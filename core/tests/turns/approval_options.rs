//! An agent names ways to decide of its own, and an approver chooses one of them.

use rejoinder_core::{
    AgentTurn, ApprovalDecision, ApprovalOption, ApprovalRequest, ApprovalState, EventKind, InboundEvent,
    OperationError, Outcome, PersonRole, Quote, Resend, Sender, TurnId,
    conformance::scripted::{Script, ScriptEnd},
    store::{Approval, ApprovalFilter, Handler, QuestionFilter},
};
use rstest::rstest;

use crate::{
    approvals::person,
    gateway::{GatewaySetup, TestGateway, chat, comes_in, operator, said, secs},
    life::Crash,
};

fn option(name: &str, allows: bool) -> ApprovalOption {
    ApprovalOption { name: name.to_owned(), allows }
}

/// An agent that offers more than yes and no before it pays, the no for ever, and says what was decided.
fn picky(turn: &AgentTurn) -> Script {
    match (&*turn.message.text, turn.past.approvals.last()) {
        ("pay", None) => {
            let options = vec![option("Always", true), option("for ever: Never", false)];
            let request = ApprovalRequest { options, ..ApprovalRequest::action("pay the rent") };
            Script { end: ScriptEnd::Outcome(Outcome::Approval(request)), ..Script::replies("") }
        }
        ("pay", Some(last)) => Script::replies(&format!("{} {:?}", last.state.as_str(), last.chosen)),
        (text, _) => Script::replies(text),
    }
}

/// Ada's payment waits, and Grace is asked.
async fn waiting() -> TestGateway {
    let mut setup = GatewaySetup::new().capable(|it| it.resend = Resend::Idempotent).agent("main", picky);
    setup.people = vec![person("Grace", PersonRole::Owner)];
    let gateway = setup.start().await;
    gateway.receives(says("grace", "hello")).await;
    gateway.receives(says("ada", "pay")).await;
    gateway
}

fn says(who: &str, text: &str) -> InboundEvent {
    let event = said(&chat(who), text);
    InboundEvent { sender: Sender { id: who.to_owned(), ..event.sender.clone() }, ..event }
}

/// The turn that asks Grace.
async fn question(gateway: &TestGateway) -> TurnId {
    let asks = Handler::Gateway("asks".into());
    let found = gateway.turns().await.into_iter().find(|turn| turn.handler == asks);
    found.expect("Grace is asked").turn_id
}

fn pressed(question: TurnId, choice: &str) -> InboundEvent {
    InboundEvent { kind: EventKind::Choice { turn: question }, ..says("grace", choice) }
}

async fn approval(gateway: &TestGateway) -> Approval {
    gateway.store.approvals(ApprovalFilter::Latest, 1).await.expect("readable").remove(0)
}

/// A reply of Grace to the message that asks her.
fn reply(gateway: &TestGateway, text: &str) -> InboundEvent {
    let posts = gateway.platform.posts(&chat("grace"));
    let post = posts.iter().find(|post| post.text.contains("pay the rent")).expect("she was asked");
    let quoted = Quote { message_id: Some(post.id.clone()), ..Quote::of_ours(&post.text) };
    InboundEvent { quoted: Some(quoted), ..says("grace", text) }
}

/// G3. A message that is old comes with the number of its button.
#[rstest]
#[case::yes("Do it", "approved None", "Yes to pay the rent.")]
#[case::no("Do not", "declined None", "No to pay the rent.")]
#[case::own_yes("Do it: Always", "approved Some(\"Always\")", "Yes to pay the rent (Always).")]
#[case::own_no("Do not: always Never", "declined Some(\"for ever: Never\")", "No to pay the rent (always Never).")]
#[case::number("1", "approved None", "Yes to pay the rent.")]
#[case::number_of_an_option("3", "approved Some(\"Always\")", "Yes to pay the rent (Always).")]
#[tokio::test]
async fn the_agent_is_told_what_was_chosen(#[case] button: &str, #[case] told: &str, #[case] said: &str) {
    let gateway = waiting().await;
    let question = question(&gateway).await;
    let asked = gateway.store.questions(QuestionFilter::Of(question), 1).await.expect("readable").remove(0);
    assert_eq!(asked.question.choices, ["Do it", "Do not", "Do it: Always", "Do not: always Never"]);

    comes_in(&gateway, pressed(question, button)).await;

    assert_eq!(gateway.visible(&chat("ada")), [told]);
    assert_eq!(gateway.visible(&chat("grace"))[2..], [said]);
    gateway.at_rest().await;
}

/// D1, G3. `kill -9` at every write while Grace chooses.
#[tokio::test]
async fn what_was_chosen_survives_a_crash() {
    for write in 1..=10 {
        let mut gateway = waiting().await;
        let press = pressed(question(&gateway).await, "Do it: Always");
        gateway.life.crash_at(write, Crash::After);
        let (intake, again) = (gateway.intake(), press.clone());
        tokio::spawn(async move { intake.accept(press).await });
        gateway.settle().await;
        gateway.restart().await;
        comes_in(&gateway, again).await;
        gateway.advance(secs(60)).await;

        assert_eq!(approval(&gateway).await.chosen.as_deref(), Some("Always"), "after write {write}");
        assert_eq!(gateway.visible(&chat("ada")), ["approved Some(\"Always\")"], "after write {write}");
        gateway.at_rest().await;
    }
}

/// N2. The question stays open, and the agent gets none of it.
#[tokio::test]
async fn what_is_no_choice_decides_nothing() {
    let gateway = waiting().await;
    let question = question(&gateway).await;

    let replies = ["5", "#9", "option 9", "ninth"].map(|text| reply(&gateway, text));
    let presses = ["5", "Do it: Everything"].map(|text| pressed(question, text));
    for forged in presses.into_iter().chain(replies) {
        comes_in(&gateway, forged).await;
        assert_eq!(gateway.visible(&chat("grace")).pop().as_deref(), Some("No choice."));
    }
    assert_eq!(approval(&gateway).await.state, ApprovalState::Waiting);
    assert_eq!(gateway.agent("main").runs().len(), 2, "a greeting, and the payment");

    comes_in(&gateway, reply(&gateway, "4")).await;

    assert_eq!(gateway.visible(&chat("ada")), ["declined Some(\"for ever: Never\")"]);
    gateway.at_rest().await;
}

#[tokio::test]
async fn an_operator_chooses_by_number() {
    let gateway = waiting().await;
    let id = approval(&gateway).await.id;
    let decide = async |approves, number| {
        let decision = ApprovalDecision { approves, option: Some(number) };
        gateway.engine().operations().decide(id, decision, operator("yes")).await
    };

    for (approves, number, why) in [
        (true, 0, "it has no option 0: it has 2"),
        (true, 3, "it has no option 3: it has 2"),
        (true, 2, "its option 2 does not allow it: decline it"),
        (false, 1, "its option 1 allows it: approve it"),
    ] {
        let refused = decide(approves, number).await;
        assert!(matches!(&refused, Err(OperationError::Unfit(said)) if said == why), "{refused:?}");
    }
    assert_eq!(approval(&gateway).await.state, ApprovalState::Waiting);

    decide(true, 1).await.expect("it is decided");
    gateway.settle().await;

    assert_eq!(gateway.visible(&chat("ada")), ["approved Some(\"Always\")"]);
    let explained = gateway.explained(approval(&gateway).await.turn).await;
    assert!(explained.contains(", with “Always”: yes"), "{explained}");
    gateway.at_rest().await;
}
