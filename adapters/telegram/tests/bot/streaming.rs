//! Drafts: the text of a run in progress.

use rejoinder_telegram::{Streaming, TelegramSection};
use rejoinder_telegram_double::{ApiError, Fault, Person, TelegramDouble};

use crate::support::{Gateway, REPLACES, bot, options};

async fn streaming(telegram: &TelegramDouble, streaming: Streaming) -> Gateway {
    Gateway::with(bot(TelegramSection { streaming, ..options(telegram) })).await
}

fn ours(ada: &Person) -> Vec<String> {
    ada.sees().into_iter().filter(|message| message.ours).map(|message| message.text).collect()
}

/// A4, B10, B13.
#[tokio::test]
async fn a_draft_is_a_message_that_becomes_the_answer() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    let gateway = streaming(&telegram, Streaming::Edit).await;
    ada.says("begin It is so");
    let draft = ada.hears("It is so").await;

    gateway.release_agent();

    let answer = ada.hears("It is so and that is all.").await;
    assert_eq!(answer.id, draft.id);
    gateway.until_settled().await;
    assert_eq!(ours(&ada), ["It is so and that is all."]);
    gateway.stop().await;
}

#[tokio::test]
async fn a_draft_in_a_group_is_linked_to_what_it_answers() {
    let telegram = TelegramDouble::start().await;
    let friends = telegram.supergroup("Friends");
    let ada = telegram.person("Ada").at(&friends);
    let gateway = streaming(&telegram, Streaming::Edit).await;

    let asked = ada.says(&format!("@{} begin It is so", telegram.bot().username));

    assert_eq!(ada.hears("It is so").await.reply_to, Some(asked));
    gateway.release_agent();
    gateway.stop().await;
}

/// D7. Telegram cannot say whether the draft arrived.
#[tokio::test]
async fn an_answer_after_a_draft_of_unknown_fate_says_what_it_replaces() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    let gateway = streaming(&telegram, Streaming::Edit).await;
    telegram.fault(Fault::lost_answer().on("sendMessage"));

    ada.says("begin it");
    ada.hears("it").await;
    gateway.release_agent();

    ada.hears(&format!("{REPLACES}\n\nit and that is all.")).await;
    gateway.until_settled().await;
    assert_eq!(telegram.bot_texts(ada.id()).len(), 2);
    gateway.stop().await;
}

/// Somebody deleted the draft: the answer is a new message.
#[tokio::test]
async fn a_draft_that_is_gone_leaves_the_answer() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    let gateway = streaming(&telegram, Streaming::Edit).await;
    ada.says("begin It is so");
    let draft = ada.hears("It is so").await;

    ada.deletes(draft.id);
    gateway.release_agent();

    ada.hears("It is so and that is all.").await;
    gateway.until_settled().await;
    assert_eq!(ours(&ada).len(), 1);
    gateway.stop().await;
}

/// A6: a draft settles nothing.
#[tokio::test]
async fn a_draft_may_be_no_message() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    let gateway = streaming(&telegram, Streaming::Draft).await;
    ada.says("begin It is so");
    let draft = telegram.until("the draft is shown", |view| view.draft(ada.id(), None)).await;
    assert_eq!((draft.text.as_str(), ours(&ada).len()), ("It is so", 0));

    gateway.release_agent();

    ada.hears("It is so and that is all.").await;
    gateway.until_settled().await;
    assert_eq!(ours(&ada).len(), 1);
    gateway.stop().await;
}

#[tokio::test]
async fn a_server_without_drafts_is_left_alone_with_them() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    telegram.fault(Fault::refuse(ApiError::new(404, "Not Found")).on("sendMessageDraft").forever());
    let gateway = streaming(&telegram, Streaming::Draft).await;
    for text in ["begin one", "begin two"] {
        ada.says(text);
        gateway.release_agent();
        gateway.until_settled().await;
    }

    ada.hears("two and that is all.").await;
    gateway.until_settled().await;
    assert!(telegram.calls("sendMessageDraft").len() <= 1);
    gateway.stop().await;
}

#[tokio::test]
async fn without_streaming_there_is_the_answer_alone() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    let gateway = streaming(&telegram, Streaming::Off).await;
    ada.says("begin It is so");
    gateway.until_agent_has(1).await;

    gateway.release_agent();

    let answer = ada.hears("It is so and that is all.").await;
    assert!(answer.edits.is_empty());
    gateway.stop().await;
}
