//! A run asks the person something and waits: the answer lets it go on.

use std::time::Duration;

use rejoinder_core::{
    Accepted, AgentTurn, Attachment, ChatKind, Choices, Clock, Directed, EventKind, InboundEvent, PersonRole, Reply,
    Resend, Sender, Support, TurnId,
    conformance::scripted::Script,
    store::{ApprovalFilter, QuestionFilter},
};

use crate::{
    approvals::person,
    gateway::{GatewaySetup, HARD_DEADLINE, TestGateway, chat, mention, operator, said, secs},
    life::{at_every_write, comes_in_dying, passes_dying},
};

const WEEK: u64 = 7 * 24 * 3600;

const ASKED: &str = "Which colour?";

/// Asks for a colour before it paints, and waits. After a restart it says what was answered.
fn painter(turn: &AgentTurn) -> Script {
    let script = match (&*turn.message.text, turn.past.answers.last()) {
        ("paint", Some(last)) => {
            return Script::replies(&format!("{} again", last.answer.as_deref().unwrap_or("nothing")));
        }
        ("paint", None) => Script::replies("painted").taking(secs(1)).asking_person(ASKED, &["Red", "Blue"], false),
        ("paint freely", None) => Script::replies("painted").asking_person(ASKED, &["Red", "Blue"], true),
        ("alike", None) => {
            let first = Script::replies("painted").asking_person("Sure?", &["Yes", "No"], false);
            first.asking_person("Really?", &["Yes", "No"], false)
        }
        ("name", None) => Script::replies("named").asking_person("What name?", &[], true),
        ("give up", None) => {
            let options = ["tea", "coffee"].map(str::to_owned).to_vec();
            let ends = Reply::question("Tea?", Choices { options, free_text: true, expires: None });
            return Script::answers(ends).asking_approval_for("pay", Duration::from_secs(5));
        }
        ("never mind", _) => {
            let script = Script::replies(&format!("painted, {} answers", turn.past.answers.len())).taking(secs(1));
            return script.taking_question_back(ASKED, &["Red", "Blue"], secs(60)).taking(secs(10));
        }
        ("twice", None) => {
            let first = Script::replies("painted").asking_person(ASKED, &["Red", "Blue"], false);
            first.asking_person("Sure?", &["Yes", "No"], false)
        }
        (text, _) => return Script::replies(text),
    };
    script.taking(secs(1))
}

fn setup() -> GatewaySetup {
    GatewaySetup::new().capable(|it| it.resend = Resend::Idempotent).agent("main", painter)
}

fn pressed(turn: TurnId, choice: &str) -> InboundEvent {
    InboundEvent { kind: EventKind::Choice { turn }, ..said(&chat("ada"), choice) }
}

/// Somebody writes, or presses a button, and the run has time to ask or to end.
async fn says(gateway: &TestGateway, event: InboundEvent) -> TurnId {
    let turn = gateway.accepts(event).await;
    gateway.advance(secs(2)).await;
    turn
}

/// What runs were told, with who answered.
fn told(gateway: &TestGateway) -> Vec<Option<String>> {
    let told = gateway.agent("main").runs().into_iter().flat_map(|run| run.told);
    told.map(|told| told.expect("it was asked").note).collect()
}

async fn is_too_late(gateway: &TestGateway, question: TurnId) {
    let accepted = gateway.intake().accept(pressed(question, "Red")).await.expect("it is accepted");
    assert!(matches!(accepted, Accepted::Expired { .. }), "{accepted:?}");
    gateway.settle().await;
}

/// G3, B14. Its deadline stands still meanwhile; the question stays in the chat, and the answer comes below it.
#[tokio::test]
async fn a_run_goes_on_with_the_answer() {
    let gateway = setup().start().await;
    let turn = says(&gateway, said(&chat("ada"), "paint")).await;
    assert_eq!(gateway.visible(&chat("ada")), [ASKED]);
    let asked = gateway.store.questions(QuestionFilter::Of(turn), 1).await.expect("readable");
    assert_eq!(asked[0].question.choices, ["Red", "Blue"]);
    gateway.advance(HARD_DEADLINE * 3).await;
    assert!(gateway.explained(turn).await.contains("The person is asked"));

    says(&gateway, pressed(turn, "Blue")).await;

    assert_eq!(told(&gateway), [Some("Blue".to_owned())]);
    assert_eq!(gateway.visible(&chat("ada")), [ASKED, "Noted: Blue.", "painted"]);
    assert_eq!(gateway.agent("main").runs().len(), 1, "the run went on");
    let explained = gateway.explained(turn).await;
    assert!(explained.contains("Answered"), "{explained}");
    gateway.at_rest().await;
}

/// Also where the channel has no buttons: by the number, and by the word.
#[tokio::test]
async fn words_pick_and_other_words_are_a_turn_of_their_own() {
    for words in ["2", "blue", "the second one"] {
        let gateway = setup().capable(|it| it.choices = Support::No).start().await;
        says(&gateway, said(&chat("ada"), "paint")).await;
        says(&gateway, said(&chat("ada"), words)).await;

        assert_eq!(told(&gateway), [Some("Blue".to_owned())], "{words}");
        gateway.at_rest().await;
    }
    let gateway = setup().start().await;
    let turn = says(&gateway, said(&chat("ada"), "paint")).await;
    gateway.receives(said(&chat("ada"), "what do you mean?")).await;
    says(&gateway, pressed(turn, "Red")).await;

    assert_eq!(gateway.visible(&chat("ada")), [ASKED, "what do you mean?", "Noted: Red.", "painted"]);
    gateway.at_rest().await;
}

#[tokio::test]
async fn words_of_ones_own_answer_where_they_may() {
    let long = "Alexandrina ".repeat(50);
    for (asks, answer) in [("name", "Ada"), ("paint freely", "Green, please"), ("name", long.trim())] {
        let gateway = setup().start().await;
        says(&gateway, said(&chat("ada"), asks)).await;

        says(&gateway, said(&chat("ada"), answer)).await;

        assert_eq!(told(&gateway), [Some(answer.to_owned())]);
        assert_eq!(gateway.agent("main").runs().len(), 1, "the answer is no turn for the agent");
        // What follows is an ordinary message again.
        gateway.receives(said(&chat("ada"), "thanks")).await;
        assert_eq!(gateway.agent("main").runs().len(), 2);
        gateway.at_rest().await;
    }
}

/// Both are read before either is stored.
#[tokio::test]
async fn of_two_messages_at_once_the_first_answers() {
    for (asks, answers) in [("name", ["Ada", "thanks"]), ("paint freely", ["2", "Blue"])] {
        let gateway = setup().start().await;
        says(&gateway, said(&chat("ada"), asks)).await;

        let both = answers.map(|text| said(&chat("ada"), text)).to_vec();
        gateway.intake().accept_all(both, None).await.expect("they are accepted");
        gateway.advance(secs(2)).await;

        let first = if answers[0] == "2" { "Blue" } else { answers[0] };
        assert_eq!(told(&gateway), [Some(first.to_owned())]);
        let runs: Vec<_> = gateway.agent("main").runs().into_iter().map(|run| run.turn.message.text).collect();
        assert_eq!(runs, [asks, answers[1]], "the second is a message like any other");
        gateway.at_rest().await;
    }
}

/// A press counts as an answer as well.
#[tokio::test]
async fn words_beside_a_press_are_a_message() {
    let gateway = setup().start().await;
    let turn = says(&gateway, said(&chat("ada"), "paint freely")).await;

    let both = vec![pressed(turn, "Red"), said(&chat("ada"), "thanks")];
    gateway.intake().accept_all(both, None).await.expect("they are accepted");
    gateway.advance(secs(2)).await;

    assert_eq!(told(&gateway), [Some("Red".to_owned())]);
    assert!(gateway.visible(&chat("ada")).contains(&"thanks".to_owned()));
    gateway.at_rest().await;
}

#[tokio::test]
async fn one_question_follows_another() {
    let gateway = setup().start().await;
    let turn = says(&gateway, said(&chat("ada"), "twice")).await;
    says(&gateway, pressed(turn, "Red")).await;
    says(&gateway, pressed(turn, "Yes")).await;

    assert_eq!(told(&gateway), ["Red", "Yes"].map(|it| Some(it.to_owned())));
    let seen = [ASKED, "Noted: Red.", "Sure?", "Noted: Yes.", "painted"];
    assert_eq!(gateway.visible(&chat("ada")), seen);
    gateway.at_rest().await;
}

/// A press on the first question's button comes again, or is a second one: it does not answer the next question, which has such a
/// button, too.
#[tokio::test]
async fn a_button_answers_only_its_own_question() {
    let gateway = setup().start().await;
    let turn = says(&gateway, said(&chat("ada"), "alike")).await;
    let shown = gateway.platform.posts(&chat("ada"))[0].id.clone();
    let on =
        |message: &str, choice: &str| InboundEvent { message_id: Some(message.to_owned()), ..pressed(turn, choice) };
    says(&gateway, on(&shown, "Yes")).await;

    for stale in [on(&shown, "Yes"), pressed(turn, "Perhaps")] {
        gateway.intake().accept(stale).await.expect("it is accepted");
        gateway.settle().await;
    }
    assert_eq!(told(&gateway), [Some("Yes".to_owned())]);
    let next = gateway.platform.posts(&chat("ada")).last().expect("it is asked").id.clone();
    // An old message comes without the words of its buttons.
    says(&gateway, on(&next, "2")).await;

    assert_eq!(told(&gateway), ["Yes", "No"].map(|it| Some(it.to_owned())));
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_press_in_another_conversation_answers_nothing() {
    let gateway = setup().start().await;
    let turn = says(&gateway, said(&chat("ada"), "paint")).await;

    let elsewhere = InboundEvent { kind: EventKind::Choice { turn }, ..said(&chat("bob"), "Red") };
    gateway.intake().accept(elsewhere).await.expect("it is accepted");
    gateway.advance(secs(2)).await;
    assert_eq!(told(&gateway), []);
    says(&gateway, pressed(turn, "Red")).await;

    assert_eq!(told(&gateway), [Some("Red".to_owned())]);
    gateway.at_rest().await;
}

/// A file is no answer, and what follows it is. So is a path, and a word days later.
#[tokio::test]
async fn words_still_answer_after_something_else() {
    let gateway = setup().start().await;
    says(&gateway, said(&chat("ada"), "name")).await;
    let note = Attachment { name: "a.txt".into(), media_type: "text/plain".into(), url: "data:,a".into() };
    gateway.receives(InboundEvent { attachments: vec![note], ..said(&chat("ada"), "see this") }).await;
    assert_eq!(told(&gateway), []);
    gateway.advance(secs(3 * 24 * 3600)).await;

    says(&gateway, said(&chat("ada"), "/srv/app")).await;

    assert_eq!(told(&gateway), [Some("/srv/app".to_owned())]);
    gateway.at_rest().await;
}

/// The question that ends a run is open, though what the run waited for is not waited for any more.
#[tokio::test]
async fn a_question_after_a_wait_can_be_answered() {
    let mut setup = setup();
    setup.people = vec![person("Grace", PersonRole::Owner)];
    let gateway = setup.start().await;
    let turn = gateway.accepts(said(&chat("ada"), "give up")).await;
    gateway.advance(secs(10)).await;

    gateway.receives(pressed(turn, "coffee")).await;

    assert_eq!(gateway.agent("main").runs().pop().expect("it ran").turn.message.text, "coffee");
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_run_hears_that_nobody_answered() {
    let gateway = setup().start().await;
    let turn = gateway.accepts(said(&chat("ada"), "paint")).await;
    gateway.advance(secs(WEEK + 60)).await;

    assert_eq!(told(&gateway), [None]);
    assert_eq!(gateway.visible(&chat("ada")), [ASKED, "painted"]);
    let open = gateway.store.questions(QuestionFilter::Of(turn), 1).await.expect("readable");
    assert_eq!(open.len(), 1);
    is_too_late(&gateway, turn).await;
    gateway.at_rest().await;
}

/// It is no approval: no approver sees or decides it, and a rule does not.
#[tokio::test]
async fn a_question_is_nobody_elses() {
    let gateway = setup().start().await;
    let turn = says(&gateway, said(&chat("ada"), "paint")).await;

    let listed = |filter| gateway.store.approvals(filter, 10);
    assert_eq!(listed(ApprovalFilter::Latest).await.expect("readable"), []);
    assert_eq!(listed(ApprovalFilter::Waiting).await.expect("readable"), []);
    let asked = listed(ApprovalFilter::Of(turn)).await.expect("readable");
    let decided = gateway.engine().operations().decide(asked[0].id, true, operator("yes")).await;
    assert!(decided.is_err(), "{decided:?}");
    says(&gateway, pressed(turn, "Red")).await;
    gateway.at_rest().await;
}

#[tokio::test]
async fn in_a_group_only_the_asker_answers() {
    let gateway = setup().start().await;
    let group = chat("group");
    let by = |who: &str, event: InboundEvent| {
        let sender = Sender { id: who.to_owned(), ..event.sender.clone() };
        InboundEvent { sender, chat: ChatKind::Group, ..event }
    };
    says(&gateway, by("ada", mention(&group, "name"))).await;

    gateway.receives(by("bob", mention(&group, "Bob"))).await;
    gateway.receives(by("ada", InboundEvent { directed: Directed::Ambient, ..said(&group, "hm") })).await;
    assert_eq!(told(&gateway), []);
    says(&gateway, by("ada", mention(&group, "Ada"))).await;

    assert_eq!(told(&gateway), [Some("Ada".to_owned())]);
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_cancel_ends_the_question() {
    let gateway = setup().start().await;
    let turn = says(&gateway, said(&chat("ada"), "paint")).await;

    gateway.receives(said(&chat("ada"), "/stop")).await;
    gateway.advance(secs(5)).await;

    is_too_late(&gateway, turn).await;
    assert_eq!(told(&gateway), []);
    assert_eq!(gateway.agent("main").runs().len(), 1);
    gateway.at_rest().await;
}

/// Nobody needs the answer any more: the run goes on without one, and words are a message again.
#[tokio::test]
async fn a_run_may_take_its_question_back() {
    let gateway = setup().start().await;
    let turn = gateway.accepts(said(&chat("ada"), "never mind")).await;
    gateway.advance(secs(62)).await;

    assert_eq!(told(&gateway), [None]);
    is_too_late(&gateway, turn).await;
    gateway.receives(said(&chat("ada"), "Red")).await;
    gateway.advance(secs(10)).await;

    // The run that goes on has no slot: the next turn's need not wait for it.
    assert_eq!(gateway.visible(&chat("ada")), [ASKED, "Red", "painted, 0 answers"]);
    assert_eq!(gateway.agent("main").runs().len(), 2);
    gateway.at_rest().await;
}

/// Another run of the turn may ask it again: that nobody answered is not known.
#[tokio::test]
async fn a_question_that_was_taken_back_is_asked_again() {
    let mut gateway = setup().start().await;
    gateway.accepts(said(&chat("ada"), "never mind")).await;
    gateway.advance(secs(62)).await;

    gateway.restart().await;
    gateway.advance(secs(90)).await;

    assert_eq!(gateway.visible(&chat("ada")), [ASKED, ASKED, "painted, 0 answers"]);
    gateway.at_rest().await;
}

/// D1.
#[tokio::test]
async fn a_crash_asks_and_answers_once() {
    at_every_write(3, async |crash, write| {
        let mut gateway = setup().start().await;
        let event = InboundEvent { received_at: gateway.clock.now(), ..said(&chat("ada"), "paint") };
        let turn = gateway.accepts(event).await;
        let has_died = passes_dying(&mut gateway, (crash, write), secs(15)).await;
        gateway.advance(secs(60)).await;
        assert_eq!(gateway.visible(&chat("ada")), [ASKED], "{crash:?} {write}");

        gateway.receives(pressed(turn, "Red")).await;
        gateway.advance(secs(60)).await;

        let seen = gateway.visible(&chat("ada"));
        assert!(seen[2..] == ["painted"] || seen[2..] == ["Red again"], "{crash:?} {write}: {seen:?}");
        gateway.at_rest().await;
        has_died
    })
    .await;
    at_every_write(3, async |crash, write| {
        let mut gateway = setup().start().await;
        let turn = gateway.accepts(said(&chat("ada"), "paint")).await;
        gateway.advance(secs(15)).await;
        let event = InboundEvent { received_at: gateway.clock.now(), ..pressed(turn, "Red") };
        let has_died = comes_in_dying(&mut gateway, (crash, write), event).await;
        gateway.advance(secs(60)).await;

        let seen = gateway.visible(&chat("ada"));
        assert!(seen[2..] == ["painted"] || seen[2..] == ["Red again"], "{crash:?} {write}: {seen:?}");
        gateway.at_rest().await;
        has_died
    })
    .await;
}
