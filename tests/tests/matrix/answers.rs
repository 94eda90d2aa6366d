//! What a person sees of an answer.

use rejoinder_matrix_server::Homeserver;
use rejoinder_tests::{Gateway, ModelServer, Script, ScriptedAgent};
use rstest::rstest;
use serde_json::json;

use crate::{Chat, FAILED, Place, QUIET, SILENT, between, matrix};

/// B10, E8, I3, J1: one message, and the row says which one the platform acknowledged.
#[rstest]
#[tokio::test]
async fn a_person_is_answered_once(#[values(Place::Direct, Place::Group, Place::Encrypted)] place: Place) {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::replying("Hello, Ada.").await);
    let (builder, user) = between(homeserver, &agent, "").await;
    let gateway = builder.start().await;
    let chat = Chat::new(homeserver, place, &user).await;
    chat.is_joined(&user).await;

    chat.says("hello").await;
    chat.until_last(&user, "Hello, Ada.").await;
    gateway.settles().await;

    assert_eq!(chat.hears(&user).await, ["Hello, Ada."]);
    assert!(agent.calls()[0].told().ends_with("hello"), "{:?}", agent.calls()[0].told());
    let explained = gateway.explain(&gateway.only_turn());
    assert!(explained.contains('$') && explained.contains("reply"), "{explained}");
}

/// A1, A2, A3, A7, A13, A20, B6, B7, C1, C4, C5: whatever the agent does, one signal, and nothing of ours in it.
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
    chat.is_joined(&account.user).await;

    chat.says(asked).await;
    chat.until_last(&account.user, words).await;
    gateway.settles().await;

    assert_eq!(chat.hears(&account.user).await, [words]);
}

/// A8, A11, B14: words and silence are the operator's, in rooms and in direct chats.
#[tokio::test]
async fn silence_becomes_what_the_operator_says() {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::replying("").await);
    let ladder = "[guard.ladder.matrix.direct]\nsilent = [{ react = \"👌\" }]\n\
                  [guard.templates.matrix]\nsilent = \"Nothing at all.\"\n";
    let (builder, user) = between(homeserver, &agent, "").await;
    let gateway = builder.config(ladder).start().await;
    let (ada, group) = (homeserver.person("ada").await, Chat::new(homeserver, Place::Group, &user).await);
    let room = ada.direct(&user).await;
    group.is_joined(&user).await;

    let asked = ada.says(&room, "hm").await;
    group.says("hm").await;

    let reacted = async || {
        let asked = ada.sees(&room).await.into_iter().find(|message| message.id == asked)?;
        asked.reactions.contains(&("👌".to_owned(), user.clone())).then_some(())
    };
    ada.until("the reaction", reacted).await;
    assert_eq!(group.until_hears(&user, 1).await, ["Nothing at all."]);
    gateway.settles().await;
    assert!(ada.hears(&room, &user).await.is_empty());
}

/// A reaction is an answer.
#[tokio::test]
async fn a_reaction_is_the_answer() {
    let homeserver = Homeserver::shared().await;
    let agent = ScriptedAgent::start(|_, _| Script::Calls("react".to_owned(), json!({ "emoji": "✅" }))).await;
    let (builder, user) = between(homeserver, &agent, "").await;
    let gateway = builder.start().await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(&user).await;

    let asked = ada.says(&room, "done?").await;

    let reacted = async || {
        let asked = ada.sees(&room).await.into_iter().find(|message| message.id == asked)?;
        asked.reactions.contains(&("✅".to_owned(), user.clone())).then_some(())
    };
    ada.until("the reaction", reacted).await;
    gateway.settles().await;
    assert!(ada.hears(&room, &user).await.is_empty());
}

/// B11, L2, L4: rooms and threads are conversations of their own, and answers go where the question came from.
#[tokio::test]
async fn a_thread_is_a_conversation_of_its_own() {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::echoing().await);
    let (builder, user) = between(homeserver, &agent, QUIET).await;
    let gateway = builder.start().await;
    let (ada, bob) = (homeserver.person("ada").await, homeserver.person("bob").await);
    let room = ada.room("Friends", &[&user, bob.user()]).await;
    bob.join(&room).await;
    ada.until_joined(&room, &user).await;
    let root = bob.says(&room, "a thread").await;

    ada.says_in_thread(&room, &root, &user, "inside").await;
    ada.mentions(&room, &user, "outside").await;

    ada.until_hears(&room, &user, 2).await;
    gateway.settles().await;
    let mut said: Vec<_> = ada.sees(&room).await.into_iter().filter(|message| message.sender == user).collect();
    said.sort_by(|one, other| one.text.cmp(&other.text));
    let heard: Vec<_> = said
        .iter()
        .map(|message| (message.text.rsplit(' ').next().unwrap_or_default(), message.thread.as_deref()))
        .collect();
    assert_eq!(heard, [("inside", Some(&*root)), ("outside", None)]);
    // Neither was told what was said in the other.
    assert!(agent.calls().iter().all(|call| call.body["messages"].to_string().matches("side").count() == 1));
}

/// K6, K7: a long answer in parts that fit, with its words unbroken.
#[tokio::test]
async fn a_long_answer_comes_in_parts_that_fit() {
    let homeserver = Homeserver::shared().await;
    let paragraphs: Vec<_> = (0..60).map(|n| format!("Paragraph {n}. {}", "wörd ".repeat(120))).collect();
    let agent = ScriptedAgent::replying(&paragraphs.join("\n\n")).await;
    let (builder, user) = between(homeserver, &agent, "").await;
    let gateway = builder.start().await;
    let chat = Chat::new(homeserver, Place::Encrypted, &user).await;
    chat.is_joined(&user).await;

    chat.says("tell me all").await;
    chat.until_hears(&user, 2).await;
    gateway.settles().await;

    let said = chat.hears(&user).await;
    assert!(said.len() > 1, "{} parts", said.len());
    let said = said.join("\n");
    let places: Vec<_> = (0..60).map(|n| said.find(&format!("Paragraph {n}.")).expect("it is there")).collect();
    assert!(places.is_sorted(), "the parts are out of order");
}

/// A question is a numbered list with reactions to press; a press is a turn of its own.
#[tokio::test]
async fn a_question_has_reactions_to_press() {
    let homeserver = Homeserver::shared().await;
    let agent =
        ScriptedAgent::start(|_, number| Script::Replies(if number == 0 { "" } else { "More it is." }.to_owned()))
            .await;
    let (builder, user) = between(homeserver, &agent, "").await;
    let ladder = "[guard.ladder.matrix.direct]\nsilent = [{ clarify = \"what_next\" }]\n";
    let gateway = builder.config(ladder).start().await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(&user).await;

    ada.says(&room, "hm").await;
    let question = async || ada.sees(&room).await.into_iter().find(|message| message.reactions.len() == 3);
    let question = ada.until("the question", question).await;
    ada.reacts(&room, &question.id, "1\u{fe0f}\u{20e3}").await;

    assert_eq!(ada.until_hears(&room, &user, 2).await[1], "More it is.");
    gateway.settles().await;
    assert!(agent.calls()[1].told().ends_with("Tell me more"), "{:?}", agent.calls()[1].told());
}

/// A10, B10, B13: the answer grows in one message.
#[rstest]
#[tokio::test]
async fn an_answer_grows_in_one_message(#[values(Place::Direct, Place::Encrypted)] place: Place) {
    let (homeserver, model) = tokio::join!(Homeserver::shared(), ModelServer::start());
    let account = homeserver.account("agent").await;
    let section = matrix(homeserver.url(), &account, "");
    let gateway = Gateway::builder().config(&section).config(&model.section()).start().await;
    let chat = Chat::new(homeserver, place, &account.user).await;
    chat.is_joined(&account.user).await;

    chat.says("zebra-stream").await;
    chat.until_last(&account.user, "one two three four five six seven eight nine ten").await;

    gateway.settles().await;
    assert_eq!(chat.hears(&account.user).await.len(), 1);
}

/// The gateway's commands, also where a client keeps the slash to itself.
#[tokio::test]
async fn commands_are_answered_with_either_sign() {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::replying("never").await);
    let (builder, user) = between(homeserver, &agent, "").await;
    let gateway = builder.start().await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(&user).await;

    ada.says(&room, "/new").await;
    ada.says(&room, "!new").await;

    assert_eq!(ada.until_hears(&room, &user, 2).await, ["We start afresh."; 2]);
    gateway.settles().await;
    assert!(agent.calls().is_empty());
}
