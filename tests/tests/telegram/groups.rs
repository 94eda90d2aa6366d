//! Groups, topics, and other bots.

use rejoinder_telegram_double::TelegramDouble;
use rejoinder_tests::{Gateway, ModelServer, Script, ScriptedAgent, eventually};

use crate::{between, last_message, telegram};

async fn echo() -> ScriptedAgent {
    ScriptedAgent::start(|call, _| Script::replies(&format!("echo {}", last_message(call)))).await
}

/// B5, L4: messages directed at the bot are answered with a reply to each; others are ignored.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_group_is_answered_when_it_asks() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Here.").await);
    double.privacy(false);
    let gateway = between(&double, &agent).start().await;
    let family = double.supergroup("Family");
    let ada = double.person("Ada").at(&family);
    let bot = double.bot().username;

    ada.says("nice weather");
    let asked = ada.says(&format!("@{bot} are you there?"));
    let answer = ada.hears("Here.").await;
    let reply = ada.replies(answer.id, "thank you");
    double.until("both are answered", |view| (view.bot_texts(family.id()).len() == 2).then_some(())).await;
    double.all_confirmed().await;

    assert_eq!(answer.reply_to, Some(asked));
    let answers: Vec<_> = family.visible().into_iter().filter(|message| message.ours).collect();
    assert_eq!(answers[1].reply_to, Some(reply));
    assert_eq!(agent.calls().len(), 2);
    drop(gateway);
}

/// A2, A8: groups have a ladder of their own.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_empty_answer_to_a_mention_is_a_reaction_where_the_operator_wants_one() {
    let (double, model) = (TelegramDouble::start().await, ModelServer::start().await);
    let ladder = "[guard.ladder.telegram.group]\nsilent = [{ react = \"👀\" }]\n";
    let _gateway =
        Gateway::builder().config(&telegram(&double, "")).config(&model.section()).config(ladder).start().await;
    let family = double.supergroup("Family");
    let ada = double.person("Ada");
    let bot = double.bot().username;

    ada.at(&family).says(&format!("@{bot} zebra-empty"));
    ada.at(&family).finds("the reaction", |message| message.our_reactions == ["👀"]).await;
    ada.says("zebra-empty");
    ada.hears("I have nothing to add to that.").await;

    assert!(double.bot_texts(family.id()).is_empty());
}

/// L2: each topic is a conversation of its own, and its answers stay in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_topic_is_a_conversation_of_its_own() {
    let (double, agent) = (TelegramDouble::start().await, echo().await);
    double.privacy(false);
    let _gateway = between(&double, &agent).start().await;
    let family = double.forum("Family");
    let (trips, food) = (family.topic("Trips"), family.topic("Food"));
    let ada = double.person("Ada").at(&family);
    let bot = double.bot().username;

    ada.topic(trips).says(&format!("@{bot} where?"));
    ada.topic(food).says(&format!("@{bot} what?"));
    double.until("both are answered", |view| (view.bot_texts(family.id()).len() == 2).then_some(())).await;

    for answer in family.visible().into_iter().filter(|message| message.ours) {
        let about = if answer.text.contains("where?") { trips } else { food };
        assert_eq!(answer.thread, Some(about), "{answer:#?}");
    }
    for call in agent.calls() {
        let said = call.body["messages"].to_string();
        assert!(said.contains("where?") != said.contains("what?"), "the topics are mixed: {said}");
    }
}

/// O1: messages from other bots are owed nothing, and no agent runs for them.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn two_bots_do_not_answer_each_other_for_ever() {
    let (double, agent) = (TelegramDouble::start().await, echo().await);
    double.privacy(false);
    let _gateway = between(&double, &agent).start().await;
    let family = double.supergroup("Family");
    let bot = double.bot().username;

    double.other_bot("Chatterbox", "chatter_bot").at(&family).says(&format!("@{bot} hello, colleague"));
    let ada = double.person("Ada").at(&family);
    ada.says(&format!("@{bot} hello"));
    double.until("Ada is answered", |view| (view.bot_texts(family.id()).len() == 1).then_some(())).await;
    double.all_confirmed().await;

    assert_eq!(agent.calls().len(), 1);
}

/// B11: a group that became a supergroup keeps its conversation, and is answered in the supergroup.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_group_that_moves_is_the_same_conversation() {
    let (double, agent) = (TelegramDouble::start().await, echo().await);
    double.privacy(false);
    let _gateway = between(&double, &agent).start().await;
    let family = double.group("Family");
    let ada = double.person("Ada");
    let bot = double.bot().username;

    ada.at(&family).says(&format!("@{bot} before"));
    double.until("the answer in the group", |view| (view.bot_texts(family.id()).len() == 1).then_some(())).await;
    let moved = double.migrate(&family);
    ada.at(&moved).says(&format!("@{bot} after"));
    double
        .until("the answer in the supergroup", |view| {
            view.bot_texts(moved.id()).iter().any(|text| text.contains("after")).then_some(())
        })
        .await;

    let last = agent.calls().last().expect("two calls").body["messages"].to_string();
    assert!(last.contains("before"), "the conversation was forgotten: {last}");
}

/// B5: commands for other bots and channel posts are ignored.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_is_for_others_is_left_to_them() {
    let (double, agent) = (TelegramDouble::start().await, echo().await);
    double.privacy(false);
    let gateway = between(&double, &agent).start().await;
    let family = double.supergroup("Family");

    double.person("Ada").at(&family).says("/stop@somebody_else_bot");
    double.channel("News").posts("It happened.");
    double.all_confirmed().await;

    assert!(double.bot_texts(family.id()).is_empty());
    assert!(agent.calls().is_empty());
    rejoinder_tests::eventually("nothing is owed", async || gateway.open_turns().is_empty().then_some(())).await;
}

/// A reaction to an answer is owed nothing, and is no turn by default. The agent is told of it with the next one.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_reaction_to_an_answer_owes_nothing() {
    let (double, agent) = (TelegramDouble::start().await, echo().await);
    let gateway = between(&double, &agent).start().await;
    let ada = double.person("Ada");

    ada.says("hello");
    let answer = ada.hears("echo hello").await;
    eventually("it is settled", async || gateway.open_turns().is_empty().then_some(())).await;
    ada.reacts(answer.id, "👍");
    double.all_confirmed().await;

    eventually("nothing is owed", async || gateway.open_turns().is_empty().then_some(())).await;
    assert_eq!(agent.calls().len(), 1);
    assert_eq!(double.bot_texts(ada.chat()).len(), 1);
    ada.says("and now?");
    let calls = eventually("it is asked", async || Some(agent.calls()).filter(|calls| calls.len() == 2)).await;
    assert_eq!(calls[1].last_answer(), serde_json::json!({ "state": "seen", "reactions": [{ "emoji": "👍" }] }));
}
