//! Questions of agents: picks in words, and questions that expire.

use std::{sync::Arc, time::Duration};

use rejoinder_core::{
    Accepted, AgentTurn, Author, Choices, EventKind, InboundEvent, Quote, Reply, Resend, Sender, Support, TurnId,
    conformance::scripted::Script,
};

use crate::{
    gateway::{GatewaySetup, TestGateway, ambient, chat, mention, said},
    life::Crash,
};

const HOUR: Duration = Duration::from_hours(1);
const NOTICE: &str = "Nobody answered: expires?";

/// An agent that asks when it is told "ask" or "expires", within an hour for the latter, and repeats everything else. It takes
/// no other words for an answer to "expires strictly".
fn asking() -> GatewaySetup {
    GatewaySetup::new().capable(|it| it.resend = Resend::Idempotent).agent("main", |turn| {
        let text = &turn.message.text;
        if !text.starts_with("ask") && !text.starts_with("expires") {
            return Script::replies(&format!("You said {text}."));
        }
        let options = ["tea", "coffee", "water"].map(str::to_owned).to_vec();
        let expires = text.starts_with("expires").then(|| turn.now + HOUR);
        let free_text = !text.ends_with("strictly");
        Script::answers(Reply::question(format!("{text}?"), Choices { options, free_text, expires }))
    })
}

fn by(sender: &str, event: InboundEvent) -> InboundEvent {
    let sender = Sender { id: sender.to_owned(), ..event.sender.clone() };
    InboundEvent { sender, ..event }
}

/// A message that replies to the `index`-th post in the chat.
fn replying(gateway: &TestGateway, index: usize, event: InboundEvent) -> InboundEvent {
    let post = &gateway.platform.posts(&event.conversation)[index];
    let quoted = Quote { message_id: Some(post.id.clone()), ..Quote::of_ours(&post.text) };
    InboundEvent { quoted: Some(quoted), ..event }
}

/// A press of a button in Ada's chat.
fn pressed(question: TurnId, choice: &str) -> InboundEvent {
    InboundEvent { kind: EventKind::Choice { turn: question }, ..said(&chat("ada"), choice) }
}

fn last_turn(gateway: &TestGateway) -> AgentTurn {
    gateway.agent("main").runs().pop().expect("it ran").turn
}

/// What the agent was last told, and the question that it quotes.
fn told(gateway: &TestGateway) -> (String, Option<String>) {
    let turn = last_turn(gateway);
    (turn.message.text, turn.message.quoted.map(|quoted| quoted.text))
}

fn picked(choice: &str, question: &str) -> (String, Option<String>) {
    (choice.to_owned(), Some(question.to_owned()))
}

fn ordinary(text: &str) -> (String, Option<String>) {
    (text.to_owned(), None)
}

async fn pick_of(gateway: &TestGateway, question: TurnId) -> Option<String> {
    gateway.intake().view(question).await.expect("readable").expect("it is there").picked
}

/// B14. Also where the channel has no buttons.
#[tokio::test]
async fn a_question_is_answered_in_words() {
    for text in ["2", "the second one", "COFFEE", "Die zweite."] {
        for choices in [Support::Full, Support::No] {
            let gateway = asking().capable(|it| it.choices = choices).start().await;
            let question = gateway.receives(said(&chat("ada"), "ask")).await;

            gateway.receives(said(&chat("ada"), text)).await;

            assert_eq!(told(&gateway), picked("coffee", "ask?"), "{text}");
            assert_eq!(last_turn(&gateway).message.quoted.expect("a quote").author, Author::ourselves());
            assert_eq!(pick_of(&gateway, question).await.as_deref(), Some("coffee"));
            let list = if choices == Support::Full { "" } else { "\n\n1. tea\n2. coffee\n3. water" };
            assert_eq!(gateway.visible(&chat("ada")), [format!("ask?{list}"), "You said coffee.".to_owned()]);
            gateway.at_rest().await;
        }
    }
}

/// The adapter is told which question is answered, and a repeated message is known by its own words.
#[tokio::test]
async fn words_that_pick_are_accepted_as_such() {
    let gateway = asking().start().await;
    let question = gateway.receives(said(&chat("ada"), "ask")).await;
    let words = said(&chat("ada"), "2");

    let accepted = gateway.intake().accept(words.clone()).await.expect("it is accepted");
    gateway.settle().await;
    let again = gateway.intake().accept(words).await.expect("it is accepted");

    let Accepted::Answers { turn, question: answered, choice } = accepted else { panic!("{accepted:?}") };
    assert_eq!((answered, &*choice), (question, "coffee"));
    let Accepted::Duplicate { turn: known, message } = again else { panic!("{again:?}") };
    assert_eq!((known, message.map(|earlier| earlier.text).as_deref()), (Some(turn), Some("2")));
    gateway.at_rest().await;
}

/// A pressed button says which question it answers, too.
#[tokio::test]
async fn a_press_quotes_its_question() {
    let gateway = asking().start().await;
    let question = gateway.receives(said(&chat("ada"), "ask")).await;

    gateway.receives(pressed(question, "water")).await;

    assert_eq!(told(&gateway), picked("water", "ask?"));
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_press_in_another_conversation_is_not_told_what_was_asked() {
    let gateway = asking().start().await;
    let question = gateway.receives(said(&chat("ada"), "ask")).await;

    gateway.receives(InboundEvent { kind: EventKind::Choice { turn: question }, ..said(&chat("eve"), "tea") }).await;

    assert_eq!(told(&gateway), ordinary("tea"));
    gateway.at_rest().await;
}

/// Later, the agent sees what it asked and what there was to choose from.
#[tokio::test]
async fn a_question_is_remembered_with_its_choices() {
    let gateway = asking().start().await;
    gateway.receives(said(&chat("ada"), "ask")).await;

    gateway.receives(said(&chat("ada"), "2")).await;

    let history: Vec<String> = last_turn(&gateway).past.history.iter().map(|line| line.text.clone()).collect();
    assert_eq!(history, ["ask", "ask?\n\n1. tea\n2. coffee\n3. water"]);
    gateway.at_rest().await;
}

#[tokio::test]
async fn of_two_questions_a_number_answers_the_latest_and_a_reply_the_one_it_quotes() {
    let gateway = asking().start().await;
    let first = gateway.receives(said(&chat("ada"), "ask one")).await;
    let second = gateway.receives(said(&chat("ada"), "ask two")).await;

    gateway.receives(said(&chat("ada"), "1")).await;
    assert_eq!(told(&gateway), picked("tea", "ask two?"));
    gateway.receives(replying(&gateway, 0, said(&chat("ada"), "3"))).await;
    assert_eq!(told(&gateway), picked("water", "ask one?"));

    let picks = (pick_of(&gateway, first).await, pick_of(&gateway, second).await);
    assert_eq!(picks, (Some("water".to_owned()), Some("tea".to_owned())));
    gateway.receives(said(&chat("ada"), "1")).await;
    assert_eq!(told(&gateway), ordinary("1"), "nothing is open any more");
    gateway.at_rest().await;
}

/// However many are open.
#[tokio::test]
async fn a_reply_finds_its_question_among_many() {
    let gateway = asking().start().await;
    let first = gateway.receives(said(&chat("ada"), "ask 0")).await;
    for number in 1..40 {
        gateway.receives(said(&chat("ada"), &format!("ask {number}"))).await;
    }

    gateway.receives(replying(&gateway, 0, said(&chat("ada"), "3"))).await;

    assert_eq!(told(&gateway), picked("water", "ask 0?"));
    assert_eq!(pick_of(&gateway, first).await.as_deref(), Some("water"));
    gateway.at_rest().await;
}

/// What picks nothing is an ordinary turn, and leaves the question open.
#[tokio::test]
async fn other_words_are_an_ordinary_turn() {
    let gateway = asking().start().await;
    let question = gateway.receives(said(&chat("ada"), "ask strictly")).await;
    let forwarded = InboundEvent { forwarded: Some(Author::default()), ..said(&chat("ada"), "2") };

    for event in [said(&chat("ada"), "4"), said(&chat("ada"), "I take the second, thanks"), forwarded] {
        let text = event.text.clone();
        gateway.receives(event).await;
        assert_eq!(told(&gateway), ordinary(&text));
    }
    gateway.receives(replying(&gateway, 1, said(&chat("ada"), "2"))).await;
    assert_eq!(last_turn(&gateway).message.text, "2", "it replies to something else");

    assert_eq!(pick_of(&gateway, question).await, None);
    gateway.receives(said(&chat("ada"), "2")).await;
    assert_eq!(told(&gateway), ordinary("2"), "a number after other words means something else");
    gateway.receives(replying(&gateway, 0, said(&chat("ada"), "2"))).await;
    assert_eq!(pick_of(&gateway, question).await.as_deref(), Some("coffee"));
    gateway.at_rest().await;
}

#[tokio::test]
async fn in_a_group_only_who_was_asked_picks_and_only_what_they_say_to_the_agent() {
    let gateway = asking().start().await;
    let question = gateway.receives(by("ada", mention(&chat("team"), "ask"))).await;

    gateway.receives(by("bob", mention(&chat("team"), "2"))).await;
    gateway.receives(by("ada", ambient(&chat("team"), "2"))).await;
    assert_eq!(pick_of(&gateway, question).await, None);
    gateway.receives(by("ada", mention(&chat("team"), "2"))).await;

    assert_eq!(told(&gateway), picked("coffee", "ask?"));
    gateway.at_rest().await;
}

/// D1, E6.
#[tokio::test]
async fn a_question_stays_open_over_a_restart() {
    let mut gateway = asking().start().await;
    gateway.receives(said(&chat("ada"), "ask")).await;

    gateway.restart().await;

    gateway.receives(said(&chat("ada"), "2")).await;
    assert_eq!(told(&gateway), picked("coffee", "ask?"));
    gateway.at_rest().await;
}

/// A notice is sent when the time has passed, and later presses are refused with it.
#[tokio::test]
async fn a_question_that_nobody_answers_expires() {
    let gateway = asking().start().await;
    let question = gateway.receives(said(&chat("ada"), "expires")).await;
    gateway.advance(HOUR.saturating_sub(Duration::from_secs(1))).await;
    assert_eq!(gateway.visible(&chat("ada")), ["expires?"]);

    gateway.advance(Duration::from_secs(5)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["expires?", NOTICE]);
    assert!(gateway.topics(question).await.contains(&"question.expired".to_owned()));
    let press = gateway.intake().accept(pressed(question, "tea")).await.expect("it is accepted");
    assert_eq!(press, Accepted::Expired { notice: NOTICE.to_owned() });
    gateway.receives(said(&chat("ada"), "2")).await;
    assert_eq!(told(&gateway), ordinary("2"));
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_question_that_was_answered_does_not_expire() {
    for (question, answer) in [("expires", "2"), ("expires strictly", "2"), ("expires", "rather juice")] {
        let gateway = asking().start().await;
        gateway.receives(said(&chat("ada"), question)).await;
        gateway.receives(said(&chat("ada"), answer)).await;

        gateway.advance(2 * HOUR).await;

        assert_eq!(gateway.visible(&chat("ada")).len(), 2, "{question}, {answer}");
        gateway.at_rest().await;
    }
}

/// Where only a choice is an answer, other words are none.
#[tokio::test]
async fn a_question_that_takes_no_other_words_expires_after_them() {
    let gateway = asking().start().await;
    gateway.receives(said(&chat("ada"), "expires strictly")).await;
    gateway.receives(said(&chat("ada"), "rather juice")).await;

    gateway.advance(2 * HOUR).await;

    let notice = "Nobody answered: expires strictly?";
    assert_eq!(gateway.visible(&chat("ada")), ["expires strictly?", "You said rather juice.", notice]);
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_question_expires_once_over_restarts() {
    let mut gateway = asking().start().await;
    gateway.receives(said(&chat("ada"), "expires")).await;
    gateway.restart().await;
    gateway.advance(2 * HOUR).await;
    gateway.restart().await;
    gateway.advance(HOUR).await;

    assert_eq!(gateway.visible(&chat("ada")), ["expires?", NOTICE]);
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_question_that_expired_while_the_gateway_was_down_expires_at_the_start() {
    let mut gateway = asking().start().await;
    gateway.receives(said(&chat("ada"), "expires")).await;
    gateway.stop(Duration::ZERO).await;
    gateway.advance(2 * HOUR).await;
    assert_eq!(gateway.visible(&chat("ada")), ["expires?"]);

    gateway.begin_life().await;
    gateway.advance(Duration::from_secs(5)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["expires?", NOTICE]);
    gateway.at_rest().await;
}

/// D1.
#[tokio::test]
async fn a_crash_at_any_write_of_an_expiry_ends_in_one_notice() {
    for crash in [Crash::Before, Crash::After] {
        for number in 1..100 {
            let mut gateway = asking().start().await;
            gateway.receives(said(&chat("ada"), "expires")).await;
            let life = Arc::clone(&gateway.life);
            life.crash_at(number, crash);
            gateway.advance(2 * HOUR).await;
            let has_crashed = life.is_over();
            if has_crashed {
                gateway.restart().await;
                gateway.advance(2 * HOUR).await;
            }
            assert_eq!(gateway.visible(&chat("ada")), ["expires?", NOTICE], "{crash:?} write {number}");
            gateway.check_rest().await;
            if !has_crashed {
                assert!(number > 2, "an expiry takes more than {number} writes");
                break;
            }
            assert!(number < 99, "no end of writes");
        }
    }
}
