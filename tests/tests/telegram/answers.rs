//! What a person sees in a private chat.

use rejoinder_telegram_double::{Entity, Fault, TelegramDouble};
use rejoinder_tests::{Gate, Gateway, ModelServer, Script, ScriptedAgent, eventually};
use rstest::rstest;
use serde_json::json;

use crate::{between, last_message, only_turn, telegram};

const SILENT: &str = "I have nothing to add to that.";
const FAILED: &str = "Sorry, I could not finish that. Please try again.";

async fn with_model(more: &str) -> (TelegramDouble, ModelServer, Gateway) {
    let (double, model) = (TelegramDouble::start().await, ModelServer::start().await);
    let gateway = Gateway::builder().config(&telegram(&double, "")).config(&model.section()).config(more).start().await;
    (double, model, gateway)
}

/// B10, E8, I3: one message, and its delivery stores the id that the platform acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_person_is_answered_once() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Hello, Ada.").await);
    let gateway = between(&double, &agent).start().await;
    let ada = double.person("Ada");

    ada.says("hello");
    let answer = ada.hears("Hello, Ada.").await;
    double.all_confirmed().await;

    assert_eq!(double.bot_texts(ada.chat()), ["Hello, Ada."]);
    assert_eq!(last_message(&agent.calls()[0]), "hello");
    assert!(!answer.link_preview);
    let explained = eventually("the turn is settled", async || {
        let explained = gateway.explain(&only_turn(&gateway));
        explained.contains(&answer.id.to_string()).then_some(explained)
    })
    .await;
    assert!(explained.contains("reply"), "{explained}");
}

/// A1, A3, A7, A13, A20, B6, B7, C1, C4, C5: whatever the agent does, there is one signal, without internal error text.
#[rstest]
#[case::empty("zebra-empty", SILENT)]
#[case::marker("zebra-marker", SILENT)]
#[case::chosen("zebra-silent", SILENT)]
#[case::error("zebra-boom", FAILED)]
#[case::cut("zebra-cut", FAILED)]
#[case::again("zebra-once", "after the retry")]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn whatever_the_agent_does_there_is_one_signal(#[case] asked: &str, #[case] words: &str) {
    let (double, _model, gateway) = with_model("").await;
    let ada = double.person("Ada");

    ada.says(asked);
    ada.hears(words).await;
    double.all_confirmed().await;

    eventually("the turn is settled", async || gateway.open_turns().is_empty().then_some(())).await;
    assert_eq!(double.bot_texts(ada.chat()), [words]);
}

/// A11, B14: the operator chooses the response to silence.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn silence_becomes_what_the_operator_says() {
    let ladder = "[guard.ladder.telegram.direct]\nsilent = [{ react = \"👌\" }]\n";
    let (double, _model, _gateway) = with_model(ladder).await;
    let ada = double.person("Ada");

    let asked = ada.says("zebra-silent");
    ada.finds("the reaction", |message| message.our_reactions == ["👌"]).await;

    assert_eq!(double.inspect(|view| view.message(ada.chat(), asked)).expect("the message").our_reactions, ["👌"]);
    assert!(double.bot_texts(ada.chat()).is_empty());
}

/// A reaction is an answer; an emoji that Telegram does not offer as a reaction becomes a similar one.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_reaction_is_the_answer() {
    let double = TelegramDouble::start().await;
    let agent = ScriptedAgent::start(|_, _| Script::reacts("✅")).await;
    let _gateway = between(&double, &agent).start().await;
    let ada = double.person("Ada");

    ada.says("done?");
    ada.finds("the reaction", |message| !message.our_reactions.is_empty()).await;

    assert!(double.calls("setMessageReaction").iter().all(rejoinder_telegram_double::Call::succeeded));
    assert!(double.bot_texts(ada.chat()).is_empty());
}

/// A message that waits is marked until the agent begins with it, also if the gateway is killed meanwhile.
#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_waits_is_marked(#[values(false, true)] is_killed: bool) {
    let (double, (agent, release)) = (TelegramDouble::start().await, ScriptedAgent::holding("first").await);
    let mut gateway = between(&double, &agent).start().await;
    let ada = double.person("Ada");

    ada.says("one");
    eventually("the first is run", async || (agent.calls().len() == 1).then_some(())).await;
    let waits = ada.says("two");
    ada.finds("the mark", |message| message.our_reactions == ["👀"]).await;
    if is_killed {
        gateway.kill();
        gateway.restart().await;
    }
    release.open();
    let is_unmarked =
        || double.inspect(|view| view.message(ada.chat(), waits)).expect("the message").our_reactions.is_empty();
    eventually("the mark is gone", async || is_unmarked().then_some(())).await;

    eventually("both are answered", async || gateway.open_turns().is_empty().then_some(())).await;
    assert_eq!(double.bot_texts(ada.chat()).len(), 2);
    assert!(double.calls("setMessageReaction").iter().all(rejoinder_telegram_double::Call::succeeded));
}

/// K6, K7: a long answer is split into parts that fit, without breaking code blocks or words.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_long_answer_comes_in_parts_that_fit() {
    let code = (0..400).map(|n| format!("let 🦀_{n} = {n};")).collect::<Vec<_>>().join("\n");
    let words = format!("Here it is:\n\n```rust\n{code}\n```\n\nThat was **all**.");
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying(&words).await);
    let _gateway = between(&double, &agent).start().await;
    let ada = double.person("Ada");

    ada.says("code, please");
    ada.finds("the end", |message| message.ours && message.text.ends_with("That was all.")).await;

    let parts: Vec<_> = ada.sees().into_iter().filter(|message| message.ours).collect();
    assert!(parts.len() > 1, "{parts:#?}");
    assert!(parts.iter().all(|part| part.text.encode_utf16().count() <= 4096));
    let read: String = parts.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join("\n");
    for n in 0..400 {
        assert!(read.contains(&format!("let 🦀_{n} = {n};")), "line {n} is broken");
    }
    let is_code = |entity: &Entity| json!(entity)["type"] == "pre";
    assert!(parts.iter().all(|part| part.entities.iter().any(is_code)), "{parts:#?}");
}

/// The choices of a question are buttons, and a press is a turn of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_question_has_buttons() {
    let double = TelegramDouble::start().await;
    let agent = ScriptedAgent::start(|_, number| Script::replies(if number == 0 { "" } else { "More it is." })).await;
    let ladder = "[guard.ladder.telegram.direct]\nsilent = [{ clarify = \"what_next\" }]\n";
    let _gateway = between(&double, &agent).config(ladder).start().await;
    let ada = double.person("Ada");

    ada.says("hm");
    let question = ada.finds("the buttons", |message| !message.buttons.is_empty()).await;
    let query = ada.presses(question.id, 0);
    ada.hears("More it is.").await;

    assert!(double.inspect(|view| view.callback_answer(&query)).is_some(), "the button press was not answered");
    assert_eq!(agent.calls()[1].said(), "Tell me more");
}

/// The first choice by the person who was asked answers a question and closes it, even across a restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_question_is_answered_once() {
    let double = TelegramDouble::start().await;
    let friends = double.supergroup("Friends");
    let (ada, bob) = (double.person("Ada").at(&friends), double.person("Bob").at(&friends));
    let agent = ScriptedAgent::start(|_, number| Script::replies(if number == 0 { "" } else { "More it is." })).await;
    let ladder = "[guard.ladder.telegram.group]\nsilent = [{ clarify = \"what_next\" }]\n";
    let mut gateway = between(&double, &agent).config(ladder).start().await;

    ada.says(&format!("@{} hm", double.bot().username));
    let question = ada.finds("the buttons", |message| !message.buttons.is_empty()).await;
    // Closing it fails until the restart.
    double.fault(Fault::error_before(502).on("editMessageText").times(2));
    for query in [bob.presses(question.id, 1), ada.presses(question.id, 0), ada.presses(question.id, 1)] {
        double.until("the button is answered", |view| view.callback_answer(&query)).await;
    }
    ada.hears("More it is.").await;
    gateway.until_settled().await;
    gateway.kill();
    gateway.restart().await;
    let query = ada.presses(question.id, 1);
    double.until("the button is answered", |view| view.callback_answer(&query)).await;

    let closed = ada.finds("no buttons", |message| message.id == question.id && message.buttons.is_empty()).await;
    assert!(closed.text.ends_with("\n\n✓ Tell me more"), "{closed:?}");
    gateway.until_settled().await;
    assert_eq!(agent.calls().len(), 2);
    assert_eq!(double.bot_texts(friends.id()), [&*closed.text, "More it is."]);
}

/// A7: an answer without visible text counts as silence, and no visible text is dropped.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn emptiness_is_judged_on_what_is_shown() {
    let double = TelegramDouble::start().await;
    let agent = ScriptedAgent::start(|call, _| Script::replies(&last_message(call).replace("say ", ""))).await;
    let _gateway = between(&double, &agent).start().await;

    for (said, shown) in [
        ("say &nbsp;", "I have nothing to add to that."),
        ("say Hm.\n</think>\n> ", "I have nothing to add to that."),
        ("say [Answer]: 42", "[Answer]: 42"),
        ("say Hm.\n</think>\n\nParis.\n\n[Source]: https://a.test", "Paris.\n\n[Source]: https://a.test"),
    ] {
        let person = double.person("Ada");
        person.says(said);
        person.hears(shown).await;
        assert_eq!(double.bot_texts(person.chat()), [shown], "{said}");
    }
}

/// B11, L4: several people at once, each in a chat of their own.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn answers_go_where_the_question_came_from() {
    let double = TelegramDouble::start().await;
    let agent = ScriptedAgent::start(|call, _| Script::replies(&format!("echo {}", last_message(call)))).await;
    let _gateway = between(&double, &agent).start().await;
    let people: Vec<_> = (0..8).map(|n| double.person(&format!("Person {n}"))).collect();

    for (n, person) in people.iter().enumerate() {
        person.says(&format!("question {n}"));
    }

    for (n, person) in people.iter().enumerate() {
        person.hears(&format!("echo question {n}")).await;
        assert_eq!(double.bot_texts(person.chat()).len(), 1);
    }
}

/// B1, L4: messages that arrive while the agent works wait for their turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_is_said_meanwhile_is_answered_in_order() {
    let release = Gate::default();
    let double = TelegramDouble::start().await;
    let agent = {
        let release = release.clone();
        ScriptedAgent::start(move |call, number| match number {
            0 => Script::replies("first").waiting(&release),
            _ => Script::replies(&format!("echo {}", last_message(call))),
        })
        .await
    };
    let _gateway = between(&double, &agent).start().await;
    let ada = double.person("Ada");

    ada.says("one");
    eventually("the agent runs", async || (agent.calls().len() == 1).then_some(())).await;
    ada.says("two");
    ada.says("three");
    double.all_confirmed().await;
    release.release_one();
    ada.hears("echo three").await;

    assert_eq!(double.bot_texts(ada.chat()), ["first", "echo two", "echo three"]);
}

/// An edit of a waiting message changes what the agent is asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_edit_amends_what_waits() {
    let release = Gate::default();
    let double = TelegramDouble::start().await;
    let agent = {
        let release = release.clone();
        ScriptedAgent::start(move |call, number| match number {
            0 => Script::replies("first").waiting(&release),
            _ => Script::replies(&format!("echo {}", last_message(call))),
        })
        .await
    };
    let _gateway = between(&double, &agent).start().await;
    let ada = double.person("Ada");

    ada.says("one");
    eventually("the agent runs", async || (agent.calls().len() == 1).then_some(())).await;
    let waiting = ada.says("tow");
    ada.edits(waiting, "two");
    double.all_confirmed().await;
    release.release_one();
    ada.hears("echo two").await;

    assert_eq!(double.bot_texts(ada.chat()), ["first", "echo two"]);
}

/// B3, D18: the gateway's own commands are registered with Telegram, and settled by their responses.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn commands_are_the_gateways_own() {
    let double = TelegramDouble::start().await;
    let agent = ScriptedAgent::start(|_, _| Script::replies("too late").waiting(&Gate::default())).await;
    let _gateway = between(&double, &agent).start().await;
    let ada = double.person("Ada");

    let registered = double
        .until("the commands are registered", |view| Some(view.commands()).filter(|commands| !commands.is_empty()))
        .await;
    ada.says("/start");
    ada.hears("Hello! Write to me, and I will answer. /help says what else there is.").await;
    ada.says("a long task");
    eventually("the agent runs", async || (agent.calls().len() == 1).then_some(())).await;
    ada.says("/status");
    ada.finds("the status", |message| message.text.contains("is working on what came")).await;
    ada.says("/stop");
    ada.hears("Cancelled.").await;
    ada.says("/new");
    ada.finds("a new session", |message| message.text.starts_with("We start afresh.")).await;

    let names: Vec<_> = registered.iter().map(|(name, _)| name.as_str()).collect();
    for name in ["start", "help", "new", "stop", "status"] {
        assert!(names.contains(&name), "/{name} is not in {names:?}");
    }
    assert_eq!(agent.calls().len(), 1);
}

/// G1: the bot types while the turn runs, and stops when it ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn typing_ends_with_the_turn() {
    let release = Gate::default();
    let double = TelegramDouble::start().await;
    let agent = {
        let release = release.clone();
        ScriptedAgent::start(move |_, _| Script::replies("done").waiting(&release)).await
    };
    let _gateway = between(&double, &agent).config("[guard]\nsoft_deadline = \"1m\"\n").start().await;
    let ada = double.person("Ada");

    ada.says("hello");
    double.until("two typing notices", |view| (view.typing(ada.chat()).len() == 2).then_some(())).await;
    release.release_one();
    ada.hears("done").await;

    let left = double.inspect(|view| view.typing(ada.chat()).into_iter().filter(|notice| notice.shown).count());
    assert_eq!(left, 0);
}
