//! Messages as people see them.

use base64::{Engine, prelude::BASE64_STANDARD};
use rejoinder_core::{Attachment, ChannelAdapter, ConversationRef, FetchError, conformance::channel::answer_file};
use rejoinder_telegram::{Streaming, TelegramSection};
use rejoinder_telegram_double::{ApiError, Fault, TelegramDouble};
use rstest::rstest;

use crate::support::{Gateway, LABEL, SILENT, bot, options};

#[tokio::test]
async fn markdown_is_shown_as_what_it_means() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    let gateway = Gateway::start(&telegram).await;

    ada.says("say **so** https://example.org");

    let answer = ada.hears("so https://example.org").await;
    assert!(answer.entities.iter().any(|entity| entity.kind == "bold"), "{answer:?}");
    assert!(!answer.link_preview);
    assert_eq!(answer.reply_to, None, "a private chat needs no links");
    gateway.stop().await;
}

#[tokio::test]
async fn what_is_not_understood_is_sent_once_more_as_plain_text() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    let gateway = Gateway::start(&telegram).await;
    telegram.fault(Fault::refuse(ApiError::bad_request("can't parse entities: no")).on("sendMessage"));

    ada.says("say **so**");

    let answer = ada.hears("so").await;
    assert!(answer.entities.is_empty());
    gateway.stop().await;
}

/// A13, A20: silence in a private chat produces a message.
#[tokio::test]
async fn a_silent_agent_is_spoken_for() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    let gateway = Gateway::start(&telegram).await;

    ada.says("stay silent");

    ada.hears(SILENT).await;
    gateway.stop().await;
}

#[tokio::test]
async fn a_reaction_is_one_that_telegram_has() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    let gateway = Gateway::start(&telegram).await;

    let asked = ada.says("react ✅");

    ada.finds("the reaction", |message| message.id == asked && message.our_reactions == ["👍"]).await;
    gateway.stop().await;
}

/// K7.
#[tokio::test]
async fn a_long_answer_comes_in_parts() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    let gateway = Gateway::start(&telegram).await;
    let words: Vec<String> = (0..600).map(|number| format!("🎉{number}")).collect();

    ada.says(&format!("say {}", words.join(" ")));

    gateway.until_agent_has(1).await;
    gateway.until_settled().await;
    assert_eq!(telegram.bot_texts(ada.id()).join(" "), words.join(" "));
    gateway.stop().await;
}

/// L3. A server of one's own may not know `allow_sending_without_reply`.
#[tokio::test]
async fn an_answer_to_a_deleted_message_is_sent_without_the_reply() {
    let telegram = TelegramDouble::start().await;
    let friends = telegram.supergroup("Friends");
    let ada = telegram.person("Ada").at(&friends);
    let gateway = Gateway::start(&telegram).await;
    telegram.fault(Fault::refuse(ApiError::bad_request("message to be replied not found")).on("sendMessage"));

    ada.says(&format!("@{} say it", telegram.bot().username));

    assert_eq!(ada.hears("it").await.reply_to, None);
    gateway.stop().await;
}

/// The topic was closed or deleted while the agent worked.
#[rstest]
#[case("TOPIC_CLOSED", "say it", "sendMessage")]
#[case("message thread not found", "say it", "sendMessage")]
#[case("TOPIC_CLOSED", "send text/plain data:text/plain;base64,bWVvdw==", "sendDocument")]
#[tokio::test]
async fn an_answer_in_a_closed_topic_goes_to_the_chat(
    #[case] refusal: &str,
    #[case] request: &str,
    #[case] method: &str,
) {
    let telegram = TelegramDouble::start().await;
    let forum = telegram.forum("Family");
    let ada = telegram.person("Ada").at(&forum).topic(forum.topic("Trips"));
    let gateway = Gateway::start(&telegram).await;
    telegram.fault(Fault::refuse(ApiError::bad_request(refusal)).on(method));

    ada.says(&format!("@{} {request}", telegram.bot().username));

    telegram
        .until("the answer", |view| {
            let visible = view.visible(forum.id());
            visible.into_iter().find(|message| message.ours && message.thread.is_none() && message.reply_to.is_none())
        })
        .await;
    gateway.stop().await;
}

/// D7.
#[tokio::test]
async fn what_may_have_arrived_is_sent_again_with_a_label() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    let gateway = Gateway::start(&telegram).await;
    telegram.fault(Fault::lost_answer().on("sendMessage"));

    ada.says("say once");

    ada.hears(&format!("{LABEL}\n\nonce")).await;
    gateway.until_settled().await;
    assert_eq!(telegram.bot_texts(ada.id()).len(), 2);
    gateway.stop().await;
}

/// H4: waiting for a limit to end duplicates no message.
#[tokio::test]
async fn a_limit_is_waited_out() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    let gateway = Gateway::start(&telegram).await;
    telegram.fault(Fault::too_many(1).on("sendMessage"));

    ada.says("say later");

    ada.hears("later").await;
    gateway.until_settled().await;
    assert_eq!(telegram.bot_texts(ada.id()), ["later"]);
    gateway.stop().await;
}

/// A18: a message to a person who blocked the bot is a dead letter and not retried.
#[tokio::test]
async fn whoever_blocked_us_is_left_alone() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    let gateway = Gateway::start(&telegram).await;
    ada.says("begin it");
    gateway.until_agent_has(1).await;

    ada.blocks();
    gateway.release_agent();

    gateway.until_settled().await;
    let refused = telegram.calls("sendMessage").into_iter().filter(|call| call.error().is_some()).count();
    assert!((1..=3).contains(&refused), "{refused} tries");
}

#[tokio::test]
async fn typing_is_shown_while_the_agent_is_at_work() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    // Only a new message ends a typing notice; a draft's last edit does not.
    let bot = bot(TelegramSection { streaming: Streaming::Off, ..options(&telegram) });
    let gateway = Gateway::with(bot).await;

    ada.says("begin it");

    telegram.until_called("sendChatAction", 1).await;
    gateway.release_agent();
    ada.finds("the answer", |message| message.ours && message.text.contains("that is all")).await;
    gateway.until_settled().await;
    assert!(telegram.inspect(|view| view.typing(ada.id())).iter().all(|notice| !notice.shown));
    gateway.stop().await;
}

/// K3.
#[tokio::test]
async fn a_file_of_the_answers_own_is_uploaded() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    let gateway = Gateway::start(&telegram).await;

    let data = BASE64_STANDARD.encode(b"a whole cat");
    ada.says(&format!("send image/png data:image/png;base64,{data}"));

    let photo = ada.finds("the photo", |message| message.media.as_deref() == Some("photo")).await;
    ada.hears("Here it is.").await;
    assert_eq!(telegram.inspect(|view| view.file(ada.id(), photo.id)).as_deref(), Some(&b"a whole cat"[..]));
    gateway.stop().await;
}

/// K7. An answer that is too long follows as a file, with a word about it.
#[tokio::test]
async fn a_file_of_the_gateways_own_has_its_words() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    let bot = bot(options(&telegram));
    let conversation = ConversationRef::new(bot.channel().clone(), &ada.id().to_string());

    bot.deliver(&answer_file(&conversation, "# All of it").build()).await.expect("it is sent");

    let file = ada.finds("the file", |message| message.media.as_deref() == Some("document")).await;
    assert_eq!(file.text, "It is in this file.");
    assert_eq!(telegram.inspect(|view| view.file(ada.id(), file.id)).as_deref(), Some(&b"# All of it"[..]));
}

#[tokio::test]
async fn a_file_that_came_in_is_sent_back_by_its_id() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    let gateway = Gateway::start(&telegram).await;
    ada.sends_document("a.txt", "text/plain", b"words", "say thanks");
    ada.hears("thanks").await;
    let url = gateway.until_agent_has(1).await.message.attachments[0].attachment.url.clone();

    ada.says(&format!("send text/plain {url}"));

    let sent = ada.finds("the file", |message| message.ours && message.media.as_deref() == Some("document")).await;
    assert_eq!(telegram.inspect(|view| view.file(ada.id(), sent.id)).as_deref(), Some(&b"words"[..]));
    gateway.stop().await;
}

/// K2: a rejected file is named, and the text arrives in any case.
#[tokio::test]
async fn a_file_that_telegram_cannot_fetch_is_linked() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    let gateway = Gateway::start(&telegram).await;
    let refuse = || Fault::refuse(ApiError::bad_request("failed to get HTTP URL content"));
    telegram.fault(refuse().on("sendPhoto"));
    telegram.fault(refuse().on("sendDocument"));

    ada.says("send image/png https://example.org/cat.png");

    let link = ada.hears("📎 cat.png (example.org)").await;
    assert!(link.entities.iter().any(|entity| entity.kind == "text_link"), "{link:?}");
    ada.hears("Here it is.").await;
    gateway.stop().await;
}

#[tokio::test]
async fn files_are_fetched_within_bounds() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    let gateway = Gateway::start(&telegram).await;
    ada.sends_document("a.txt", "text/plain", b"words", "one");
    ada.sends_large_document("b.bin", 21 << 20);
    gateway.until_agent_has(2).await;
    let files: Vec<Attachment> =
        gateway.turns().into_iter().flat_map(|turn| turn.message.attachments).map(|file| file.attachment).collect();
    let bot = bot(options(&telegram));

    assert_eq!(bot.fetch(&files[0], 100).await.expect("a file"), b"words");
    assert!(matches!(bot.fetch(&files[0], 4).await, Err(FetchError::TooLarge { limit: 4 })));
    assert!(matches!(bot.fetch(&files[1], usize::MAX).await, Err(FetchError::TooLarge { .. })));
    let elsewhere = Attachment { url: "http://127.0.0.1/".to_owned(), ..files[0].clone() };
    assert!(matches!(bot.fetch(&elsewhere, 100).await, Err(FetchError::NotOurs(_))));
    gateway.stop().await;
}
