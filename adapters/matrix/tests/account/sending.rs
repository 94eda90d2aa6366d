//! Messages of the account.

use rejoinder_core::{
    Action, Attachment, ChannelAdapter, Content, ConversationRef,
    conformance::channel::{answer_file, delivery},
};
use rejoinder_matrix_server::{Call, Homeserver};
use serde_json::json;

use crate::support::{Gateway, options};

#[tokio::test]
async fn markdown_is_shown_as_html() {
    let (gateway, homeserver) = Gateway::new().await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;

    ada.says(&room, "say **hello** <b>you</b>").await;

    ada.until_hears(&room, gateway.user(), 1).await;
    let said = ada.sees(&room).await.pop().expect("an answer");
    assert_eq!(said.text, "**hello** <b>you</b>");
    assert_eq!(said.html.as_deref(), Some("<strong>hello</strong> &lt;b&gt;you&lt;/b&gt;"));
    assert_eq!(said.content["m.mentions"], json!({}));
    gateway.stop().await;
}

/// B13. The draft becomes the answer.
#[tokio::test]
async fn an_answer_is_seen_as_it_grows() {
    let (gateway, homeserver) = Gateway::new().await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;

    ada.says(&room, "begin half a sentence").await;
    assert_eq!(ada.until_hears(&room, gateway.user(), 1).await, ["half a sentence"]);
    gateway.release_agent();

    let whole = "half a sentence and that is all.";
    ada.until("the whole answer", async || (ada.hears(&room, gateway.user()).await == [whole]).then_some(())).await;
    gateway.stop().await;
}

/// G1.
#[tokio::test]
async fn typing_is_shown_until_the_answer_is_there() {
    let (gateway, homeserver) = Gateway::new().await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;

    ada.says(&room, "wait one").await;
    ada.until("typing", async || ada.typing(&room).await.contains(&gateway.user().to_owned()).then_some(())).await;
    gateway.release_agent();

    ada.until_hears(&room, gateway.user(), 1).await;
    ada.until("no typing", async || ada.typing(&room).await.is_empty().then_some(())).await;
    gateway.stop().await;
}

#[tokio::test]
async fn a_reaction_is_an_emoji_on_what_was_said() {
    let (gateway, homeserver) = Gateway::new().await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;

    let said = ada.says(&room, "react 🎉").await;

    let reactions = async || {
        let messages = ada.sees(&room).await;
        let message = messages.into_iter().find(|message| message.id == said)?;
        (!message.reactions.is_empty()).then_some(message.reactions)
    };
    assert_eq!(ada.until("a reaction", reactions).await, [("🎉".to_owned(), gateway.user().to_owned())]);
    gateway.stop().await;
}

/// B10. The reaction exists already: no text is sent instead.
#[tokio::test]
async fn a_reaction_that_is_there_already_is_one() {
    let homeserver = Homeserver::shared().await;
    let proxy = homeserver.proxy().await;
    let account = homeserver.account("agent").await;
    let gateway = Gateway::synced(options(proxy.url(), &account)).await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.until_joined(&room, gateway.user()).await;
    let down = gateway.shut_down().await;

    let said = ada.says(&room, "react 🎉").await;
    let ourselves = homeserver.log_in(&account).await;
    ourselves.reacts(&room, &said, "🎉").await;
    let gateway = down.restart().await;
    gateway.until_agent_has(1).await;
    gateway.until_settled().await;

    let is_refused = |call: &Call| call.answer["errcode"] == "M_DUPLICATE_ANNOTATION";
    proxy.until("a duplicate is rejected", is_refused).await;
    let messages = ada.sees(&room).await;
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert_eq!(messages[0].reactions, [("🎉".to_owned(), gateway.user().to_owned())]);
    gateway.stop().await;
}

#[tokio::test]
async fn a_choice_is_pressed() {
    let (gateway, homeserver) = Gateway::new().await;
    let (ada, bob) = (homeserver.person("ada").await, homeserver.person("bob").await);
    let room = ada.room("Friends", &[gateway.user(), bob.user()]).await;
    bob.join(&room).await;
    ada.until_joined(&room, gateway.user()).await;

    ada.mentions(&room, gateway.user(), "stay silent").await;
    let question = async || {
        let messages = ada.sees(&room).await;
        messages.into_iter().find(|message| message.reactions.len() == 2)
    };
    let question = ada.until("a question with its buttons", question).await;
    assert_eq!(question.text, "Which of these?\n\n1. say more\n2. say less");
    ada.reacts(&room, &question.id, "2\u{fe0f}\u{20e3}").await;

    assert_eq!(ada.until_hears(&room, gateway.user(), 2).await[1], "less");
    gateway.stop().await;
}

/// The first pick by the asked person closes a question: it shows the pick, and our reactions are removed.
#[tokio::test]
async fn a_question_is_closed_by_its_first_pick() {
    let (gateway, homeserver) = Gateway::new().await;
    let (ada, bob) = (homeserver.person("ada").await, homeserver.person("bob").await);
    let room = ada.room("Friends", &[gateway.user(), bob.user()]).await;
    bob.join(&room).await;
    ada.until_joined(&room, gateway.user()).await;
    ada.mentions(&room, gateway.user(), "stay silent").await;
    let question = async || ada.sees(&room).await.into_iter().find(|message| message.reactions.len() == 2);
    let question = ada.until("a question with its buttons", question).await;

    bob.reacts(&room, &question.id, "1\u{fe0f}\u{20e3}").await;
    ada.reacts(&room, &question.id, "2\u{fe0f}\u{20e3}").await;
    ada.reacts(&room, &question.id, "1\u{fe0f}\u{20e3}").await;
    // Bob was not asked: a number from him is an ordinary message.
    bob.says(&room, "2").await;

    let closed = async || {
        let question = ada.sees(&room).await.into_iter().find(|message| message.id == question.id)?;
        question.reactions.iter().all(|(_, who)| who != gateway.user()).then_some(question)
    };
    let closed = ada.until("the buttons are gone", closed).await;
    assert_eq!(closed.text, "Which of these?\n\n1. say more\n2. say less\n\n✓ say less");
    assert_eq!(closed.reactions.len(), 3, "people's reactions stay");
    ada.until_hears(&room, gateway.user(), 3).await;
    gateway.until_settled().await;
    let mut heard = ada.hears(&room, gateway.user()).await.split_off(1);
    heard.sort();
    assert_eq!(heard, ["You said: 2", "less"]);
    gateway.stop().await;
}

#[tokio::test]
async fn a_choice_is_written() {
    let (gateway, homeserver) = Gateway::new().await;
    let (ada, bob) = (homeserver.person("ada").await, homeserver.person("bob").await);
    let room = ada.room("Friends", &[gateway.user(), bob.user()]).await;
    bob.join(&room).await;
    ada.until_joined(&room, gateway.user()).await;

    ada.mentions(&room, gateway.user(), "stay silent").await;
    ada.until_hears(&room, gateway.user(), 1).await;
    ada.mentions(&room, gateway.user(), "1").await;

    assert_eq!(ada.until_hears(&room, gateway.user(), 2).await[1], "more");
    gateway.stop().await;
}

/// B10, K6.
#[tokio::test]
async fn a_long_answer_comes_in_parts() {
    let (gateway, homeserver) = Gateway::new().await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;
    let words: Vec<String> = (0..3000).map(|number| format!("wörd{number}")).collect();

    ada.says(&room, &format!("say {}", words.join(" "))).await;

    let parts = ada.until_hears(&room, gateway.user(), 2).await;
    assert!(parts.len() >= 2);
    let heard: Vec<String> = parts.iter().flat_map(|part| part.split_whitespace()).map(str::to_owned).collect();
    assert_eq!(heard, words);
    gateway.stop().await;
}

#[tokio::test]
async fn a_file_is_sent() {
    let (gateway, homeserver) = Gateway::new().await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;

    ada.says(&room, "send text/plain data:text/plain;base64,cHVycg==").await;

    assert_eq!(ada.until_hears(&room, gateway.user(), 1).await, ["Here it is."]);
    let file = ada.sees(&room).await.pop().expect("a file");
    assert_eq!((&file.content["msgtype"], &file.content["filename"]), (&"m.file".into(), &"cat.txt".into()));
    let url = file.content["url"].as_str().expect("an address").to_owned();
    assert_eq!(ada.opens(&url).await, b"purr");
    gateway.stop().await;
}

/// K3. A message has one file; the text is with the first.
#[tokio::test]
async fn each_file_is_a_message_and_the_caption_is_formatted() {
    let (gateway, homeserver) = Gateway::new().await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;
    let cat = "text/plain data:text/plain;base64,cHVycg==";

    ada.says(&room, &format!("send {cat} {cat}")).await;
    assert_eq!(ada.until_hears(&room, gateway.user(), 2).await, ["Here it is.", "cat.txt"]);
    let conversation = ConversationRef::new(gateway.adapter.channel().clone(), &room);
    let file = Attachment {
        name: "cat.txt".to_owned(),
        media_type: "text/plain".to_owned(),
        url: "data:text/plain;base64,cHVycg==".to_owned(),
    };
    let content = Content { text: "**look**".to_owned(), attachments: vec![file], ..Content::default() };
    let action = Action::Send { content, reply_to: None };
    gateway.adapter.deliver(&delivery(&conversation, action).build()).await.expect("it is sent");

    let file = ada.sees(&room).await.pop().expect("a file");
    assert_eq!(file.content["body"], "**look**");
    assert_eq!(file.content["formatted_body"], "<strong>look</strong>");
    assert_eq!(file.content["filename"], "cat.txt");
    gateway.stop().await;
}

/// K7. An answer that is too long follows as a file, with a word about it.
#[tokio::test]
async fn a_file_of_the_gateways_own_has_its_words() {
    let (gateway, homeserver) = Gateway::new().await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;
    // The account itself knows that it has joined.
    ada.says(&room, "hello").await;
    ada.until_hears(&room, gateway.user(), 1).await;
    let conversation = ConversationRef::new(gateway.adapter.channel().clone(), &room);

    let sent = gateway.adapter.deliver(&answer_file(&conversation, "# All of it").build()).await;

    sent.expect("it is sent");
    let file = ada.sees(&room).await.pop().expect("a file");
    assert_eq!(
        (&file.content["body"], &file.content["filename"]),
        (&"It is in this file.".into(), &"answer.md".into())
    );
    assert_eq!(ada.opens(file.content["url"].as_str().expect("an address")).await, b"# All of it");
    gateway.stop().await;
}

/// L4. An answer is a reply if another message came in between.
#[tokio::test]
async fn an_answer_says_what_it_answers_when_that_is_not_plain() {
    let (gateway, homeserver) = Gateway::new().await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;
    let first = ada.says(&room, "wait one").await;
    gateway.until_agent_has(1).await;
    let second = ada.says(&room, "say two").await;
    ada.until("a read receipt", async || ada.read_by(&room, gateway.user()).await.filter(|read| *read == second)).await;
    gateway.release_agent();

    ada.until_hears(&room, gateway.user(), 2).await;

    let ours = ada.sees(&room).await.into_iter().filter(|message| message.sender == gateway.user());
    let replies: Vec<Option<String>> = ours.map(|message| message.replies_to).collect();
    assert_eq!(replies, [Some(first), None]);
    gateway.stop().await;
}
