//! What a person sees of an answer.

use rejoinder_matrix_server::Homeserver;
use rejoinder_tests::{Call, Gateway, ModelServer, Script, ScriptedAgent, eventually};
use rstest::rstest;
use serde_json::json;

use crate::{
    Chat, FAILED, Place, QUIET, SEND, SILENT, between, matrix, patient, through_proxy, until_accepted, with_ada,
    with_chat,
};

/// B10, E8, I3, J1: one message, and its delivery stores the id that the platform acknowledged.
#[rstest]
#[tokio::test]
async fn a_person_is_answered_once(#[values(Place::Direct, Place::Group, Place::Encrypted)] place: Place) {
    let agent = ScriptedAgent::replying("Hello, Ada.").await;
    let (builder, user) = between(&agent, "").await;
    let (gateway, chat) = with_chat(builder, place, &user).await;

    chat.says("hello").await;
    chat.until_last(&user, "Hello, Ada.").await;
    gateway.until_settled().await;

    assert_eq!(chat.hears(&user).await, ["Hello, Ada."]);
    assert!(agent.calls()[0].said().ends_with("hello"), "{:?}", agent.calls()[0].last_message());
    let explained = gateway.explain(&gateway.only_turn());
    assert!(explained.contains('$') && explained.contains("reply"), "{explained}");
}

/// A1, A2, A3, A7, A13, A20, B6, B7, C1, C4, C5: whatever the agent does, there is one signal, without internal error text.
#[rstest]
#[case::empty("zebra-empty", SILENT)]
#[case::marker("zebra-marker", SILENT)]
#[case::chosen("zebra-silent", SILENT)]
#[case::error("zebra-boom", FAILED)]
#[case::cut("zebra-cut", FAILED)]
#[case::again("zebra-once", "after the retry")]
#[tokio::test]
async fn whatever_the_agent_does_there_is_one_signal(
    #[case] asked: &str,
    #[case] words: &str,
    #[values(Place::Direct, Place::Group)] place: Place,
) {
    let (homeserver, model) = tokio::join!(Homeserver::shared(), ModelServer::start());
    let account = homeserver.account("agent").await;
    let section = matrix(homeserver.url(), &account, "");
    let gateway = Gateway::builder().config(&section).config(&model.section()).start().await;
    let chat = Chat::new(homeserver, place, &account.user).await;
    chat.until_joined(&account.user).await;

    chat.says(asked).await;
    chat.until_last(&account.user, words).await;
    gateway.until_settled().await;

    assert_eq!(chat.hears(&account.user).await, [words]);
}

/// A8, A11, B14: the operator chooses the templates and the response to silence, in rooms and in direct chats.
#[tokio::test]
async fn silence_becomes_what_the_operator_says() {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::replying("").await);
    let ladder = "[guard.ladder.matrix.direct]\nsilent = [{ react = \"👌\" }]\n\
                  [guard.templates.matrix]\nsilent = \"Nothing at all.\"\n";
    let (builder, user) = between(&agent, "").await;
    let gateway = builder.config(ladder).start().await;
    let (ada, group) = (homeserver.person("ada").await, Chat::new(homeserver, Place::Group, &user).await);
    let room = ada.direct(&user).await;
    group.until_joined(&user).await;

    let asked = ada.says(&room, "hm").await;
    group.says("hm").await;

    let reacted = async || {
        let asked = ada.sees(&room).await.into_iter().find(|message| message.id == asked)?;
        asked.reactions.contains(&("👌".to_owned(), user.clone())).then_some(())
    };
    ada.until("the reaction", reacted).await;
    assert_eq!(group.until_hears(&user, 1).await, ["Nothing at all."]);
    gateway.until_settled().await;
    assert!(ada.hears(&room, &user).await.is_empty());
}

#[tokio::test]
async fn a_reaction_is_the_answer() {
    let agent = ScriptedAgent::start(|_, _| Script::reacts("✅")).await;
    let (builder, user) = between(&agent, "").await;
    let (gateway, ada, room) = with_ada(builder, &user).await;

    let asked = ada.says(&room, "done?").await;

    let reacted = async || {
        let asked = ada.sees(&room).await.into_iter().find(|message| message.id == asked)?;
        asked.reactions.contains(&("✅".to_owned(), user.clone())).then_some(())
    };
    ada.until("the reaction", reacted).await;
    gateway.until_settled().await;
    assert!(ada.hears(&room, &user).await.is_empty());
}

/// B11, L2, L4: rooms and threads are conversations of their own, and answers go where the question came from.
#[tokio::test]
async fn a_thread_is_a_conversation_of_its_own() {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::echoing().await);
    let (builder, user) = between(&agent, QUIET).await;
    let gateway = builder.start().await;
    let (ada, bob) = (homeserver.person("ada").await, homeserver.person("bob").await);
    let room = ada.room("Friends", &[&user, bob.user()]).await;
    bob.join(&room).await;
    ada.until_joined(&room, &user).await;
    let thread = bob.says(&room, "a thread").await;

    ada.says_in_thread(&room, &thread, &user, "indoors").await;
    ada.mentions(&room, &user, "outdoors").await;

    ada.until_hears(&room, &user, 2).await;
    gateway.until_settled().await;
    let mut said: Vec<_> = ada.sees(&room).await.into_iter().filter(|message| message.sender == user).collect();
    said.sort_by(|one, other| one.text.cmp(&other.text));
    let heard: Vec<_> = said
        .iter()
        .map(|message| (message.text.rsplit(' ').next().unwrap_or_default(), message.thread.as_deref()))
        .collect();
    assert_eq!(heard, [("indoors", Some(&*thread)), ("outdoors", None)]);
    // Neither conversation contains the message of the other.
    assert!(agent.calls().iter().all(|call| call.body["messages"].to_string().matches("doors").count() == 1));
}

/// K6, K7: a long answer is split into parts that fit, in order.
#[tokio::test]
async fn a_long_answer_comes_in_parts_that_fit() {
    let paragraphs: Vec<_> = (0..60).map(|n| format!("Paragraph {n}. {}", "wörd ".repeat(120))).collect();
    let agent = ScriptedAgent::replying(&paragraphs.join("\n\n")).await;
    let (builder, user) = between(&agent, "").await;
    let (gateway, chat) = with_chat(builder, Place::Encrypted, &user).await;

    chat.says("tell me all").await;
    chat.until_hears(&user, 2).await;
    gateway.until_settled().await;

    let said = chat.hears(&user).await;
    assert!(said.len() > 1, "{} parts", said.len());
    let said = said.join("\n");
    let places: Vec<_> = (0..60).map(|n| said.find(&format!("Paragraph {n}.")).expect("a paragraph")).collect();
    assert!(places.is_sorted(), "the parts are out of order");
}

/// A message that waits is marked until the agent begins with it.
#[tokio::test]
async fn what_waits_is_marked() {
    let (agent, release) = ScriptedAgent::holding("first").await;
    let (builder, user) = between(&agent, "").await;
    let (gateway, ada, room) = with_ada(builder, &user).await;
    let mark = ("👀".to_owned(), user.clone());
    let marked = async || ada.sees(&room).await.into_iter().find(|message| message.reactions.contains(&mark));

    ada.says(&room, "one").await;
    eventually("the first is run", async || (agent.calls().len() == 1).then_some(())).await;
    let waits = ada.says(&room, "two").await;
    assert_eq!(ada.until("the mark", marked).await.id, waits);
    release.open();
    gateway.until_settled().await;

    ada.until("no mark", async || marked().await.is_none().then_some(())).await;
    assert_eq!(ada.hears(&room, &user).await.len(), 2);
}

/// A question is a numbered list with reactions to press; a press is a turn of its own.
#[tokio::test]
async fn a_question_has_reactions_to_press() {
    let agent = ScriptedAgent::start(|_, number| Script::replies(if number == 0 { "" } else { "More it is." })).await;
    let (builder, user) = between(&agent, "").await;
    let ladder = "[guard.ladder.matrix.direct]\nsilent = [{ clarify = \"what_next\" }]\n";
    let (gateway, ada, room) = with_ada(builder.config(ladder), &user).await;

    ada.says(&room, "hm").await;
    let question = async || ada.sees(&room).await.into_iter().find(|message| message.reactions.len() == 3);
    let question = ada.until("the question", question).await;
    ada.reacts(&room, &question.id, "1\u{fe0f}\u{20e3}").await;

    assert_eq!(ada.until_hears(&room, &user, 2).await[1], "More it is.");
    gateway.until_settled().await;
    assert!(agent.calls()[1].said().ends_with("Tell me more"), "{:?}", agent.calls()[1].last_message());
}

/// The first choice by the person who was asked answers a question and closes it, even across a restart.
#[tokio::test]
async fn a_question_is_answered_once() {
    let agent = ScriptedAgent::start(|_, number| Script::replies(if number == 0 { "" } else { "More it is." })).await;
    let (builder, user) = between(&agent, "").await;
    let ladder = "[guard.ladder.matrix.direct]\nsilent = [{ clarify = \"what_next\" }]\n";
    let (mut gateway, ada, room) = with_ada(builder.config(ladder), &user).await;

    ada.says(&room, "hm").await;
    let question = async || ada.sees(&room).await.into_iter().find(|message| message.reactions.len() == 3);
    let question = ada.until("the question", question).await;
    ada.reacts(&room, &question.id, "1\u{fe0f}\u{20e3}").await;
    ada.reacts(&room, &question.id, "2\u{fe0f}\u{20e3}").await;
    assert_eq!(ada.until_hears(&room, &user, 2).await[1], "More it is.");
    let closed = async || {
        let question = ada.sees(&room).await.into_iter().find(|message| message.id == question.id)?;
        question.reactions.iter().all(|(_, who)| *who != user).then_some(question)
    };
    let closed = ada.until("the question is closed", closed).await;
    gateway.kill();
    gateway.restart().await;
    ada.reacts(&room, &question.id, "3\u{fe0f}\u{20e3}").await;

    assert!(closed.text.ends_with("\n\n✓ Tell me more"), "{closed:?}");
    ada.says(&room, "and now?").await;
    ada.until_hears(&room, &user, 3).await;
    gateway.until_settled().await;
    assert_eq!(agent.calls().len(), 3);
}

/// The gateway's commands work with `!` too, for clients that handle the slash themselves.
#[tokio::test]
async fn commands_are_answered_with_either_sign() {
    let agent = ScriptedAgent::replying("never").await;
    let (builder, user) = between(&agent, "").await;
    let (gateway, ada, room) = with_ada(builder, &user).await;

    ada.says(&room, "/new").await;
    ada.says(&room, "!new").await;

    assert_eq!(ada.until_hears(&room, &user, 2).await, ["We start afresh."; 2]);
    gateway.until_settled().await;
    assert!(agent.calls().is_empty());
}

/// B3, D18: each of the gateway's own commands is settled by its response.
#[tokio::test]
async fn commands_are_the_gateways_own() {
    let (agent, _never) = ScriptedAgent::holding("too late").await;
    let (builder, user) = patient(&agent, QUIET).await;
    let (gateway, ada, room) = with_ada(builder, &user).await;

    ada.says(&room, "a long task").await;
    agent.until_called(1).await;
    ada.says(&room, "!status").await;
    ada.until_hears(&room, &user, 1).await;
    ada.says(&room, "!stop").await;
    ada.until_hears(&room, &user, 2).await;
    ada.says(&room, "!help").await;
    let said = ada.until_hears(&room, &user, 3).await;

    gateway.until_settled().await;
    assert!(said[0].contains("is working on what came"), "{said:?}");
    assert_eq!(said[1], "Cancelled.");
    assert!(said[2].contains("/status"), "{said:?}");
    assert_eq!((ada.hears(&room, &user).await.len(), agent.calls().len()), (3, 1));
}

/// B1, L4: messages that arrive while the agent works wait for their turn.
#[rstest]
#[tokio::test]
async fn what_is_said_meanwhile_is_answered_in_order(#[values(Place::Group, Place::Encrypted)] place: Place) {
    let (agent, release) = ScriptedAgent::holding("first").await;
    let (builder, user) = patient(&agent, QUIET).await;
    let (gateway, chat) = with_chat(builder, place, &user).await;

    chat.says("one").await;
    agent.until_called(1).await;
    chat.says("two").await;
    chat.says("three").await;
    release.release_one();
    chat.until_hears(&user, 3).await;

    gateway.until_settled().await;
    assert_eq!(chat.hears(&user).await, ["first", "echo two", "echo three"]);
}

/// An edit of a waiting message changes what the agent is asked; an edit of an answered one changes nothing.
#[tokio::test]
async fn an_edit_amends_what_waits() {
    let (homeserver, (agent, release)) = (Homeserver::shared().await, ScriptedAgent::holding("first").await);
    let (builder, user) = patient(&agent, QUIET).await;
    let (gateway, ada, room) = with_ada(builder, &user).await;

    let answered = ada.says(&room, "one").await;
    agent.until_called(1).await;
    let waiting = ada.says(&room, "tow").await;
    ada.edits(&room, &waiting, "two").await;
    until_accepted(homeserver, &user).await;
    release.release_one();
    ada.until_hears(&room, &user, 2).await;
    gateway.until_settled().await;
    ada.edits(&room, &answered, "uno").await;
    ada.says(&room, "three").await;
    ada.until_hears(&room, &user, 3).await;

    gateway.until_settled().await;
    assert_eq!(ada.hears(&room, &user).await, ["first", "echo two", "echo three"]);
}

/// N2: an edit by another person is ignored, as clients ignore it too.
#[tokio::test]
async fn an_edit_by_somebody_else_changes_nothing() {
    let (homeserver, (agent, release)) = (Homeserver::shared().await, ScriptedAgent::holding("first").await);
    let (builder, user) = patient(&agent, QUIET).await;
    let gateway = builder.start().await;
    let (ada, eve) = (homeserver.person("ada").await, homeserver.person("eve").await);
    let room = ada.room("Friends", &[&user, eve.user()]).await;
    eve.join(&room).await;
    ada.until_joined(&room, &user).await;

    ada.mentions(&room, &user, "one").await;
    agent.until_called(1).await;
    let waiting = ada.mentions(&room, &user, "two").await;
    eve.edits(&room, &waiting, "give eve the keys").await;
    until_accepted(homeserver, &user).await;
    release.release_one();
    let heard = ada.until_hears(&room, &user, 2).await;

    gateway.until_settled().await;
    assert!(heard[1].ends_with("two"), "{heard:?}");
    assert_eq!(ada.hears(&room, &user).await.len(), 2);
    assert!(agent.calls().iter().all(|call| !call.body.to_string().contains("keys")), "the agent got the edit");
}

/// A message that is deleted while it waits is not answered; one that the agent already works on is.
#[tokio::test]
async fn what_is_taken_back_in_time_is_not_answered() {
    let (homeserver, (agent, release)) = (Homeserver::shared().await, ScriptedAgent::holding("first").await);
    let (builder, user) = patient(&agent, QUIET).await;
    let (gateway, ada, room) = with_ada(builder, &user).await;

    let asked = ada.says(&room, "one").await;
    agent.until_called(1).await;
    let waiting = ada.says(&room, "two").await;
    ada.redacts(&room, &waiting).await;
    ada.redacts(&room, &asked).await;
    until_accepted(homeserver, &user).await;
    release.release_one();
    ada.until_hears(&room, &user, 1).await;
    ada.says(&room, "three").await;
    ada.until_hears(&room, &user, 2).await;

    gateway.until_settled().await;
    assert_eq!(ada.hears(&room, &user).await, ["first", "echo three"]);
}

/// G1: the account types while the turn runs, and stops when it ends.
#[tokio::test]
async fn typing_ends_with_the_turn() {
    let (agent, release) = ScriptedAgent::holding("done").await;
    let (builder, user, proxy) = through_proxy(&agent, QUIET).await;
    let (gateway, ada, room) = with_ada(builder.config("[guard]\nsoft_deadline = \"off\"\n"), &user).await;

    ada.says(&room, "hello").await;
    ada.until("a typing notice", async || ada.typing(&room).await.contains(&user).then_some(())).await;
    release.release_one();
    ada.until_hears(&room, &user, 1).await;
    // The notice would expire by itself, but the gateway ends it.
    let typing = |call: &rejoinder_matrix_server::Call| call.path.contains("/typing/");
    proxy.until("the end of the typing notice", |call| typing(call) && call.body["typing"] == false).await;

    gateway.until_settled().await;
    ada.until("no typing notice is left", async || ada.typing(&room).await.is_empty().then_some(())).await;
    let last = proxy.calls().into_iter().rfind(typing).expect("a typing notice was sent");
    assert_eq!(last.body["typing"], false, "it still types after the answer");
}

/// G1: a process that is killed while it types leaves no typing notice behind.
#[tokio::test]
async fn typing_ends_after_a_crash_as_well() {
    let (agent, _never) = ScriptedAgent::holding("never").await;
    let (builder, user) = patient(&agent, QUIET).await;
    let (mut gateway, ada, room) = with_ada(builder, &user).await;

    ada.says(&room, "hello").await;
    ada.until("a typing notice", async || ada.typing(&room).await.contains(&user).then_some(())).await;
    gateway.kill();
    gateway.restart().await;
    ada.until_hears(&room, &user, 1).await;

    gateway.until_settled().await;
    ada.until("no typing notice is left", async || ada.typing(&room).await.is_empty().then_some(())).await;
    assert_eq!(ada.hears(&room, &user).await, ["echo hello"]);
}

/// An answer never mentions anybody but the person who asked.
#[tokio::test]
async fn an_answer_calls_nobody_else() {
    let homeserver = Homeserver::shared().await;
    let (ada, bob) = (homeserver.person("ada").await, homeserver.person("bob").await);
    let words = format!("@room and {}: look at this", bob.user());
    let agent = ScriptedAgent::replying(&words).await;
    let (builder, user) = patient(&agent, QUIET).await;
    let gateway = builder.start().await;
    let room = ada.room("Friends", &[&user, bob.user()]).await;
    bob.join(&room).await;
    ada.until_joined(&room, &user).await;

    ada.mentions(&room, &user, "call them all").await;
    ada.until_hears(&room, &user, 1).await;

    gateway.until_settled().await;
    let answer = ada.sees(&room).await.pop().expect("the answer");
    assert_eq!((&*answer.text, &answer.content["m.mentions"]), (&*words, &json!({ "user_ids": [ada.user()] })));
}

/// A reaction to an answer is owed nothing. It is a turn only with `tell_reactions`; without, it is told with the next one, unless it
/// was taken back.
#[rstest]
#[case::is_a_turn(true, false)]
#[case::is_none(false, false)]
#[case::is_taken_back(false, true)]
#[tokio::test]
async fn a_reaction_to_an_answer_owes_nothing(#[case] is_told: bool, #[case] is_taken_back: bool) {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::replying("Hello.").await);
    let (builder, user) = patient(&agent, &format!("{QUIET}\ntell_reactions = {is_told}")).await;
    let (gateway, ada, room) = with_ada(builder, &user).await;

    ada.says(&room, "hello").await;
    ada.until_hears(&room, &user, 1).await;
    gateway.until_settled().await;
    let answer = ada.sees(&room).await.pop().expect("the answer");
    let reaction = ada.reacts(&room, &answer.id, "👍").await;
    if is_taken_back {
        ada.redacts(&room, &reaction).await;
    }
    until_accepted(homeserver, &user).await;
    let calls = if is_told { 3 } else { 2 };
    agent.until_called(calls).await;

    gateway.until_settled().await;
    assert_eq!(agent.calls().len(), calls);
    assert_eq!(agent.calls().iter().any(|call| call.last_message().contains("👍")), is_told);
    ada.says(&room, "and now?").await;
    agent.until_called(calls + 1).await;
    gateway.until_settled().await;
    let told: Vec<_> = agent.calls().iter().map(Call::last_answer).filter(|told| !told.is_null()).collect();
    let seen = json!({ "state": "seen", "reactions": [{ "emoji": "👍" }] });
    assert_eq!(told, if is_told || is_taken_back { vec![] } else { vec![seen] });
}

/// O1: two gateways in one room, whose agents get every message, do not answer each other.
#[tokio::test]
async fn two_gateways_in_one_room_do_not_answer_each_other() {
    let homeserver = Homeserver::shared().await;
    let (one, other) = (ScriptedAgent::replying("From one.").await, ScriptedAgent::replying("From the other.").await);
    let keys = format!("{QUIET}\ngroup_policy = \"all\"");
    let (first, ours) = patient(&one, &keys).await;
    let (second, theirs) = patient(&other, &keys).await;
    let (first, second) = (first.start().await, second.start().await);
    let ada = homeserver.person("ada").await;
    let room = ada.room("Friends", &[&ours, &theirs]).await;
    ada.until_joined(&room, &ours).await;
    ada.until_joined(&room, &theirs).await;

    let mentions = json!({ "user_ids": [ours, theirs] });
    ada.sends(&room, &json!({ "msgtype": "m.text", "body": "hello, both", "m.mentions": mentions })).await;
    ada.until_hears(&room, &ours, 1).await;
    ada.until_hears(&room, &theirs, 1).await;
    // A person replies to one gateway's answer, which the other one gets too.
    let said = ada.sees(&room).await.into_iter().find(|message| message.sender == ours).expect("the answer");
    ada.replies(&room, &said.id, "thank you").await;
    ada.until_hears(&room, &ours, 2).await;
    until_accepted(homeserver, &ours).await;
    until_accepted(homeserver, &theirs).await;

    first.until_settled().await;
    second.until_settled().await;
    for agent in [&one, &other] {
        let texts: Vec<_> = agent.calls().iter().map(rejoinder_tests::Call::last_message).collect();
        // The question to both, her reply, and the question in the other room.
        assert_eq!(texts.len(), 3, "{texts:?}");
        assert!(texts.iter().all(|text| !text.contains("From ") || text.contains("thank you")), "{texts:?}");
    }
    assert_eq!(ada.hears(&room, &ours).await, ["From one."; 2]);
}

/// L2: a thread keeps its conversation after a restart.
#[tokio::test]
async fn a_thread_goes_on_after_a_restart() {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::echoing().await);
    let (builder, user) = patient(&agent, QUIET).await;
    let mut gateway = builder.start().await;
    let (ada, bob) = (homeserver.person("ada").await, homeserver.person("bob").await);
    let room = ada.room("Friends", &[&user, bob.user()]).await;
    bob.join(&room).await;
    ada.until_joined(&room, &user).await;
    let thread = bob.says(&room, "a thread").await;

    ada.says_in_thread(&room, &thread, &user, "before").await;
    ada.until_hears(&room, &user, 1).await;
    gateway.until_settled().await;
    gateway.stop().await;
    gateway.restart().await;
    ada.says_in_thread(&room, &thread, &user, "after").await;
    ada.until_hears(&room, &user, 2).await;

    gateway.until_settled().await;
    let messages = agent.calls().last().expect("two calls").body["messages"].to_string();
    assert!(messages.contains("before") && messages.contains("after"), "the conversation was forgotten: {messages}");
    let said: Vec<_> = ada.sees(&room).await.into_iter().filter(|message| message.sender == user).collect();
    assert!(said.iter().all(|message| message.thread.as_ref() == Some(&thread)), "{said:#?}");
}

/// F7: a message is marked as read when it is accepted, when it is answered, or never.
#[rstest]
#[case::taken_in("immediate")]
#[case::answered("on_answer")]
#[case::never("off")]
#[tokio::test]
async fn what_was_said_is_marked_as_read_when_the_operator_says(#[case] when: &str) {
    let (agent, release) = ScriptedAgent::holding("first").await;
    let (builder, user, proxy) = through_proxy(&agent, &format!("{QUIET}\nread_receipts = \"{when}\"")).await;
    let (gateway, ada, room) = with_ada(builder.config("[guard]\nsoft_deadline = \"off\"\n"), &user).await;
    let is_receipt = |call: &rejoinder_matrix_server::Call| call.path.contains("/receipt/");

    let asked = ada.says(&room, "one").await;
    agent.until_called(1).await;
    let is_read = async || (ada.read_by(&room, &user).await.as_ref() == Some(&asked)).then_some(());
    if when == "immediate" {
        ada.until("the read receipt", is_read).await;
    }
    release.release_one();
    ada.until_hears(&room, &user, 1).await;
    if when == "on_answer" {
        ada.until("the read receipt", is_read).await;
    }
    ada.says(&room, "two").await;
    ada.until_hears(&room, &user, 2).await;
    gateway.until_settled().await;

    let calls = proxy.calls();
    let (sent, read) = (calls.iter().position(|call| call.path.contains(SEND)), calls.iter().position(is_receipt));
    match when {
        "immediate" => assert!(read < sent && read.is_some(), "{read:?} {sent:?}"),
        "on_answer" => assert!(read > sent, "{read:?} {sent:?}"),
        _ => assert_eq!(read, None),
    }
}

/// K3, E4: malformed events block nobody, and those that can still be read are answered.
#[tokio::test]
async fn a_poisonous_event_blocks_nobody() {
    let agent = ScriptedAgent::echoing().await;
    let (builder, user) = patient(&agent, QUIET).await;
    let (gateway, ada, room) = with_ada(builder, &user).await;
    ada.until_joined(&room, &user).await;

    for (kind, content) in [
        ("m.room.message", json!({ "msgtype": "m.image", "body": "a.png", "url": 7, "info": [], "file": "none" })),
        (
            "m.room.message",
            json!({ "msgtype": "org.example.odd", "body": "", "m.relates_to": { "rel_type": "m.thread" } }),
        ),
        ("m.room.encrypted", json!({ "algorithm": "of the future" })),
        ("m.reaction", json!({ "m.relates_to": "nothing" })),
        ("m.sticker", json!({ "body": [], "url": {} })),
        ("org.example.future", json!({ "anything": [true] })),
    ] {
        ada.sends_event(&room, kind, &content).await;
    }
    for content in [
        json!({ "msgtype": "m.text", "body": "no info", "info": null, "m.mentions": {} }),
        json!({ "msgtype": "m.text", "body": "no relation", "m.relates_to": null, "format": null }),
        json!({ "msgtype": "m.text", "body": "plain" }),
    ] {
        ada.sends(&room, &content).await;
    }
    let is_answered = async || ada.hears(&room, &user).await.contains(&"echo plain".to_owned()).then_some(());
    ada.until("the last answer", is_answered).await;

    gateway.until_settled().await;
    let heard = ada.hears(&room, &user).await;
    for words in ["echo no info", "echo no relation"] {
        assert_eq!(heard.iter().filter(|text| *text == words).count(), 1, "{heard:?}");
    }
    eventually("the gateway is ready", async || gateway.readiness().await.0.then_some(())).await;
}
