//! Messages as people see them.

use base64::{Engine, prelude::BASE64_STANDARD};
use rejoinder_core::{
    Action, Attachment, ChannelAdapter, Content, ConversationRef, FetchError,
    conformance::channel::{answer_file, delivery},
};
use rejoinder_telegram::{Streaming, TelegramSection};
use rejoinder_telegram_double::{ApiError, Fault, TelegramDouble, VisibleMessage};
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

    let cat = b"\x89PNG\r\n\x1a\na whole cat";
    let data = BASE64_STANDARD.encode(cat);
    ada.says(&format!("send image/png data:image/png;base64,{data}"));

    let photo = ada.hears("Here it is.").await;
    assert_eq!(photo.media.as_deref(), Some("photo"));
    assert_eq!(telegram.inspect(|view| view.file(ada.id(), photo.id)).as_deref(), Some(&cat[..]));
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

    let link = ada.hears("Here it is.\n\n📎 cat.png (example.org)").await;
    assert!(link.entities.iter().any(|entity| entity.kind == "text_link"), "{link:?}");
    gateway.stop().await;
}

/// Two pictures to send, which begin as a picture does and end with `one` and `two`.
const PICTURES: &str =
    "send image/png data:image/png;base64,iVBORw0KGgpvbmU= image/png data:image/png;base64,iVBORw0KGgp0d28=";

/// The kind, the text and the album of each message of the bot; albums are numbered in their order.
fn shown(telegram: &TelegramDouble, chat: i64) -> Vec<(String, String, Option<usize>)> {
    let mut albums = Vec::new();
    let ours = telegram.visible(chat).into_iter().filter(|message| message.ours);
    let message = |message: VisibleMessage| {
        let album = message.album.map(|album| {
            let known = albums.iter().position(|one| *one == album);
            known.unwrap_or_else(|| {
                albums.push(album);
                albums.len() - 1
            })
        });
        (message.media.unwrap_or_default(), message.text, album)
    };
    ours.map(message).collect()
}

fn message(media: &str, text: &str, album: Option<usize>) -> (String, String, Option<usize>) {
    (media.to_owned(), text.to_owned(), album)
}

/// K3. Photos are one album with the text, and documents another one.
#[tokio::test]
async fn files_are_albums_of_their_kind() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    let gateway = Gateway::start(&telegram).await;

    let text = "text/plain data:text/plain;base64,";
    ada.says(&format!("{PICTURES} {text}dGhyZWU= {text}Zm91cg=="));

    gateway.until_agent_has(1).await;
    gateway.until_settled().await;
    let (photo, document) = (message("photo", "", Some(0)), message("document", "", Some(1)));
    let expected = [message("photo", "Here it is.", Some(0)), photo, document.clone(), document];
    assert_eq!(shown(&telegram, ada.id()), expected);
    assert_eq!(telegram.calls("sendMediaGroup").len(), 2);
    let files: Vec<_> = telegram.visible(ada.id()).iter().filter(|message| message.ours).map(|it| it.id).collect();
    let bytes = files.into_iter().map(|id| telegram.inspect(|view| view.file(ada.id(), id)).expect("a file"));
    let picture = |name: &[u8]| [&b"\x89PNG\r\n\x1a\n"[..], name].concat();
    assert_eq!(bytes.collect::<Vec<_>>(), [picture(b"one"), picture(b"two"), b"three".to_vec(), b"four".to_vec()]);
    gateway.stop().await;
}

/// K2. Telegram rejects a photo, and with it the album; what it rejects as documents, too, is named below the text.
#[tokio::test]
async fn an_album_that_is_rejected_is_documents_and_then_a_text() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    let gateway = Gateway::start(&telegram).await;
    let rejects = |times| {
        let why = "failed to send message #2 with the error message \"PHOTO_INVALID_DIMENSIONS\"";
        telegram.fault(Fault::refuse(ApiError::bad_request(why)).on("sendMediaGroup").times(times));
    };

    rejects(1);
    ada.says(PICTURES);
    ada.hears("Here it is.").await;
    gateway.until_settled().await;
    let documents = [message("document", "Here it is.", Some(0)), message("document", "", Some(0))];
    assert_eq!(shown(&telegram, ada.id()), documents);
    rejects(2);
    ada.says(PICTURES);

    ada.hears("Here it is.\n\n(cat.png is not sent.)\n(cat.png is not sent.)").await;
    gateway.until_settled().await;
    assert_eq!(telegram.visible(ada.id()).iter().filter(|message| message.ours).count(), 3);
    gateway.stop().await;
}

/// K2. Pictures on the web do not take those along that are uploaded.
#[tokio::test]
async fn an_album_that_telegram_cannot_fetch_is_links() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    let gateway = Gateway::start(&telegram).await;

    ada.says(
        "send image/png https://example.org/a.png image/png data:image/png;base64,iVBORw0KGgpvbmU= \
         image/png https://example.org/b.png",
    );

    ada.hears("Here it is.\n\n📎 cat.png (example.org)\n📎 cat.png (example.org)").await;
    ada.finds("the photo", |message| message.media.as_deref() == Some("photo")).await;
    gateway.stop().await;
}

/// D7.
#[tokio::test]
async fn an_album_that_may_have_arrived_is_sent_again_with_a_label() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    let gateway = Gateway::start(&telegram).await;
    telegram.fault(Fault::lost_answer().on("sendMediaGroup"));

    ada.says(PICTURES);

    ada.hears(&format!("{LABEL}\n\nHere it is.")).await;
    gateway.until_settled().await;
    let album = |number, text: &str| [message("photo", text, Some(number)), message("photo", "", Some(number))];
    let copy = album(1, &format!("{LABEL}\n\nHere it is."));
    assert_eq!(shown(&telegram, ada.id()), [album(0, "Here it is."), copy].concat());
    gateway.stop().await;
}

#[tokio::test]
async fn a_caption_is_formatted_and_sent_as_plain_text_if_it_is_not_understood() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    let bot = bot(options(&telegram));
    let conversation = ConversationRef::new(bot.channel().clone(), &ada.id().to_string());
    let url = "data:text/plain;base64,bWVvdw==".to_owned();
    let file = Attachment { name: "cat.txt".to_owned(), media_type: "text/plain".to_owned(), url };
    let content = Content { text: "**look**".to_owned(), attachments: vec![file], ..Content::default() };
    let send = || delivery(&conversation, Action::Send { content: content.clone(), reply_to: None }).build();

    bot.deliver(&send()).await.expect("it is sent");
    telegram.fault(Fault::refuse(ApiError::bad_request("can't parse entities: no")).on("sendDocument"));
    bot.deliver(&send()).await.expect("it is sent");

    let captions: Vec<_> = telegram.visible(ada.id()).into_iter().filter(|message| message.ours).collect();
    assert_eq!(captions.iter().map(|message| &*message.text).collect::<Vec<_>>(), ["look", "look"]);
    assert_eq!(captions.iter().map(|message| message.entities.len()).collect::<Vec<_>>(), [1, 0]);
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
