//! Sent messages and failures to send.

use std::time::Duration;

use rejoinder_core::{
    Action, Attachment, ChannelAdapter, Content, ConversationRef,
    conformance::channel::{answer_file, delivery},
};
use rejoinder_discord::DiscordSection;
use rejoinder_discord_server::{DiscordServer, Fault, Scope};
use rstest::rstest;

use crate::support::{Gateway, SILENT, http, options};

/// The counterpart of D7: the nonce makes a resend safe.
#[rstest]
#[case(Fault::on("POST", "/channels/*/messages").executed_then_dropped())]
#[case(Fault::on("POST", "/channels/*/messages").failed_after_executing(502))]
#[case(Fault::on("POST", "/channels/*/messages").reset())]
#[case(Fault::on("POST", "/channels/*/messages").failed(500))]
#[tokio::test]
async fn an_unknown_send_is_sent_again_and_shown_once(#[case] fault: Fault) {
    let server = DiscordServer::start().await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;
    server.fault(fault).await;

    ada.dm("say once").await;

    server.until_bot_texts(&ada.direct().await, 1).await;
    gateway.until_settled().await;
    assert_eq!(server.bot_texts(&ada.direct().await).await, ["once"]);
    gateway.stop().await;
}

/// Once the nonce has expired after two minutes, the channel is read back.
#[tokio::test]
async fn an_unknown_send_is_looked_for_once_its_nonce_is_forgotten() {
    let server = DiscordServer::start().await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;
    server.fault(Fault::on("POST", "/channels/*/messages").executed_then_dropped()).await;
    server.fault(Fault::on("POST", "/channels/*/messages").reset().always()).await;

    ada.dm("say once").await;
    server.until_bot_texts(&ada.direct().await, 1).await;
    gateway.clock.advance(Duration::from_mins(5));
    let looks = async || (!server.calls_to("GET", "/messages").await.is_empty()).then_some(());
    server.until("the channel is read back", looks).await;
    server.advance(Duration::from_mins(5)).await;
    server.clear_faults().await;

    gateway.until_settled().await;
    assert_eq!(server.bot_texts(&ada.direct().await).await, ["once"]);
    gateway.stop().await;
}

/// H4.
#[tokio::test]
async fn a_limited_channel_waits_and_others_do_not() {
    let server = DiscordServer::start().await;
    let (ada, bob) = (server.person("Ada").await, server.person("Bob").await);
    let gateway = Gateway::connected(&server).await;
    let chat = ada.direct().await;
    let route = format!("/channels/{}/messages", chat.id());
    server.fault(Fault::on("POST", &route).rate_limited(Duration::from_secs(1), Scope::User)).await;

    ada.dm("say later").await;
    bob.dm("say now").await;

    server.until_bot_texts(&bob.direct().await, 1).await;
    assert_eq!(server.until_bot_texts(&chat, 1).await, ["later"]);
    gateway.stop().await;
}

#[tokio::test]
async fn what_the_headers_announce_is_kept_to() {
    let server = DiscordServer::start().await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;
    server.limits("POST", "/channels/*/messages", 2, Duration::from_millis(500)).await;

    for number in 0..8 {
        ada.dm(&format!("say {number}")).await;
    }

    let said = server.until_bot_texts(&ada.direct().await, 8).await;
    assert_eq!(said, ["0", "1", "2", "3", "4", "5", "6", "7"]);
    assert_eq!(server.invalid_requests().await, 0, "no call was refused");
    gateway.stop().await;
}

/// A18.
#[tokio::test]
async fn a_permission_that_is_lost_ends_visibly() {
    let server = DiscordServer::start().await;
    let general = server.guild("Friends").await.channel("general").await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;
    ada.mentions(&general, "say one").await;
    server.until_bot_texts(&general, 1).await;

    general.denies(&["send_messages"]).await;
    ada.mentions(&general, "say two").await;
    gateway.until_agent_has(2).await;
    gateway.until_settled().await;

    assert_eq!(gateway.undeliverable().await, 1);
    general.denies(&[]).await;
    ada.mentions(&general, "say three").await;
    assert_eq!(server.until_bot_texts(&general, 2).await, ["one", "three"]);
}

#[tokio::test]
async fn a_message_that_is_deleted_is_answered_all_the_same() {
    let server = DiscordServer::start().await;
    let general = server.guild("Friends").await.channel("general").await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;
    let asked = ada.mentions(&general, "wait for it").await;
    gateway.until_agent_has(1).await;

    ada.deletes(&asked).await;
    gateway.release_agent();

    assert_eq!(server.until_bot_texts(&general, 1).await, ["for it and that is all."]);
    gateway.stop().await;
}

/// L3. A server that does not know `fail_if_not_exists`, such as Spacebar.
#[rstest]
#[case(404, 10008, "Unknown Message")]
#[case(404, 404, "Message could not be found")]
#[tokio::test]
async fn an_answer_to_a_deleted_message_is_sent_without_the_reply(
    #[case] status: u16,
    #[case] code: u32,
    #[case] message: &str,
) {
    let server = DiscordServer::start().await;
    let general = server.guild("Friends").await.channel("general").await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;
    let fault = Fault::on("POST", "/channels/*/messages").refused(status, code, message);
    server.fault(fault.saying("fail_if_not_exists").always()).await;

    ada.mentions(&general, "say it").await;

    assert_eq!(server.until_bot_texts(&general, 1).await, ["it"]);
    assert_eq!(server.visible(&general).await.pop().expect("an answer").reply_to, None);
    gateway.stop().await;
}

#[tokio::test]
async fn nobody_is_called_by_an_answer() {
    let server = DiscordServer::start().await;
    let general = server.guild("Friends").await.channel("general").await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;

    ada.mentions(&general, &format!("say @everyone and <@{}> come", ada.id())).await;

    server.until_bot_texts(&general, 1).await;
    let answer = server.visible(&general).await.pop().expect("an answer");
    assert!(!answer.pings_everyone && answer.pings.is_empty(), "{answer:?}");
    gateway.stop().await;
}

#[tokio::test]
async fn a_reaction_can_be_the_answer() {
    let server = DiscordServer::start().await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;

    let asked = ada.dm("react 👍").await;
    gateway.until_settled().await;

    let visible = server.until("a reaction", async || {
        let visible = server.visible(&ada.direct().await).await;
        visible.into_iter().find(|message| message.id == asked.id && !message.reactions.is_empty())
    });
    let message = visible.await;
    assert_eq!((message.reactions[0].emoji.as_str(), message.reactions[0].ours), ("👍", true));
    gateway.stop().await;
}

/// A1, A8.
#[tokio::test]
async fn silence_becomes_words_in_direct_and_choices_in_a_server() {
    let server = DiscordServer::start().await;
    let general = server.guild("Friends").await.channel("general").await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;

    ada.dm("stay silent").await;
    ada.mentions(&general, "stay silent").await;

    assert_eq!(server.until_bot_texts(&ada.direct().await, 1).await, [SILENT]);
    server.until_bot_texts(&general, 1).await;
    let question = server.visible(&general).await.pop().expect("a question");
    assert_eq!(question.buttons.iter().map(|it| it.label.as_str()).collect::<Vec<_>>(), ["say more", "say less"]);
    let pressed = ada.clicks(&question, "say less").await;

    assert_eq!(server.until_bot_texts(&general, 2).await[1], "less");
    let pressed = server.interaction(&pressed).await;
    assert!(pressed.acknowledged && !pressed.failed, "{pressed:?}");
    gateway.stop().await;
}

/// The first pick by the person who was asked closes a question: it shows the choice and loses its buttons.
#[tokio::test]
async fn a_question_is_closed_by_its_first_pick() {
    let server = DiscordServer::start().await;
    let general = server.guild("Friends").await.channel("general").await;
    let (ada, bob) = (server.person("Ada").await, server.person("Bob").await);
    let gateway = Gateway::connected(&server).await;
    ada.mentions(&general, "stay silent").await;
    server.until_bot_texts(&general, 1).await;
    let question = server.visible(&general).await.pop().expect("a question");

    // The buttons stay until all have pressed.
    server.fault(Fault::on("POST", "/interactions/*/*/callback").failed(503).always()).await;
    let others = bob.clicks(&question, "say more").await;
    let presses = [others, ada.clicks(&question, "say less").await, ada.clicks(&question, "say more").await];
    server.clear_faults().await;

    assert_eq!(server.until_bot_texts(&general, 2).await[1], "less");
    let closed = server.until("the buttons are gone", async || {
        server
            .visible(&general)
            .await
            .into_iter()
            .find(|message| message.id == question.id && message.buttons.is_empty())
    });
    assert_eq!(closed.await.content, "Which of these?\n\n✓ say less");
    gateway.until_settled().await;
    assert_eq!(server.visible(&general).await.len(), 3, "a request, a question, an answer");
    for press in presses {
        let acknowledged = async || Some(server.interaction(&press).await).filter(|press| press.acknowledged);
        let press = server.until("the press is acknowledged", acknowledged).await;
        assert!(!press.failed, "{press:?}");
    }
    gateway.stop().await;
}

/// A4, B13: the draft grows in one message, which becomes the answer.
#[tokio::test]
async fn an_answer_grows_in_place() {
    let server = DiscordServer::start().await;
    let ada = server.person("Ada").await;
    let chat = ada.direct().await;
    let gateway = Gateway::connected(&server).await;

    ada.dm("begin at the beginning").await;
    assert_eq!(server.until_bot_texts(&chat, 1).await, ["at the beginning"]);
    gateway.release_agent();
    gateway.until_settled().await;

    let message = server.visible(&chat).await.pop().expect("an answer");
    assert_eq!(message.versions, ["at the beginning", "at the beginning and that is all."]);
    gateway.stop().await;
}

/// K2.
#[tokio::test]
async fn a_file_is_sent_and_one_that_is_not_ours_is_a_link() {
    let server = DiscordServer::start().await;
    let ada = server.person("Ada").await;
    let chat = ada.direct().await;
    let gateway = Gateway::connected(&server).await;

    ada.dm("send text/plain data:text/plain;base64,bWVvdw==").await;
    server.until_bot_texts(&chat, 1).await;
    ada.dm("send text/plain https://example.org/cat.txt").await;
    server.until_bot_texts(&chat, 2).await;

    let visible = server.visible(&chat).await;
    let ours: Vec<_> = visible.iter().filter(|message| message.ours).collect();
    assert_eq!(ours[0].content, "Here it is.");
    assert_eq!(ours[0].attachments.iter().map(|it| (it.name.as_str(), it.size)).collect::<Vec<_>>(), [("cat.txt", 4)]);
    assert_eq!(ours[1].content, "Here it is.\n📎 [cat.txt](https://example.org/cat.txt) (example.org)");
    gateway.stop().await;
}

/// K3. Ten files of any kind are one message with the text; the others follow.
#[tokio::test]
async fn files_are_in_one_message_with_the_text() {
    let server = DiscordServer::start().await;
    let ada = server.person("Ada").await;
    let chat = ada.direct().await;
    let gateway = Gateway::connected(&server).await;
    let pair = "image/png data:image/png;base64,b25l text/plain data:text/plain;base64,dHdv ";

    ada.dm(&format!("send {}", pair.repeat(6))).await;

    server.until_bot_texts(&chat, 2).await;
    gateway.until_settled().await;
    let ours: Vec<_> = server.visible(&chat).await.into_iter().filter(|message| message.ours).collect();
    let shown: Vec<_> = ours.iter().map(|message| (&*message.content, message.attachments.len())).collect();
    assert_eq!(shown, [("Here it is.", 10), ("", 2)]);
    gateway.stop().await;
}

/// The counterpart of D7: the nonce of a message is that of its files.
#[tokio::test]
async fn files_of_unknown_fate_are_shown_once() {
    let server = DiscordServer::start().await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;
    server.fault(Fault::on("POST", "/channels/*/messages").executed_then_dropped()).await;

    ada.dm("send image/png data:image/png;base64,b25l image/png data:image/png;base64,dHdv").await;

    server.until_bot_texts(&ada.direct().await, 1).await;
    gateway.until_settled().await;
    let visible = server.visible(&ada.direct().await).await;
    let files: Vec<_> = visible.iter().filter(|message| message.ours).map(|it| it.attachments.len()).collect();
    assert_eq!(files, [2]);
    gateway.stop().await;
}

/// K7. An answer that is too long follows as a file, with a word about it.
#[tokio::test]
async fn a_file_of_the_gateways_own_has_its_words() {
    let server = DiscordServer::start().await;
    let general = server.guild("Friends").await.channel("general").await;
    let gateway = Gateway::connected(&server).await;
    let conversation = ConversationRef::new(gateway.adapter.channel().clone(), general.id());

    let sent = gateway.adapter.deliver(&answer_file(&conversation, "# All of it").build()).await;

    sent.expect("it is sent");
    let message = server.visible(&general).await.pop().expect("a message");
    let files: Vec<_> = message.attachments.iter().map(|file| (file.name.as_str(), file.size)).collect();
    assert_eq!((message.content.as_str(), files), ("It is in this file.", vec![("answer.md", 11)]));
    gateway.stop().await;
}

#[tokio::test]
async fn a_file_that_is_too_large_costs_nobody_the_text() {
    let server = DiscordServer::start().await;
    server.set(serde_json::json!({"upload_limit": 2})).await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;

    ada.dm("send text/plain data:text/plain;base64,bWVvdw==").await;

    assert_eq!(server.until_bot_texts(&ada.direct().await, 1).await, ["Here it is.\n\n(cat.txt is not sent.)"]);
    gateway.stop().await;
}

/// K7: lines that are added to a text may make it too long for a message: choices that have no button, and links to files.
#[tokio::test]
async fn a_text_that_its_lines_make_too_long_loses_nothing() {
    let server = DiscordServer::start().await;
    let general = server.guild("Friends").await.channel("general").await;
    let gateway = Gateway::connected(&server).await;
    let conversation = ConversationRef::new(gateway.adapter.channel().clone(), general.id());
    let text = "word ".repeat(399) + "last";
    let choices: Vec<_> = (1..=30).map(|number| format!("choice {number}")).collect();
    let url = "https://example.org/cat.txt".to_owned();
    let file = Attachment { name: "cat.txt".to_owned(), media_type: "text/plain".to_owned(), url };
    let question = Content { text: text.clone(), choices, ..Content::default() };
    let with_file = Content { text: text.clone(), attachments: vec![file], ..Content::default() };

    for (content, lines) in [(question, 5), (with_file, 1)] {
        let action = Action::Send { content, reply_to: None };
        gateway.adapter.deliver(&delivery(&conversation, action).build()).await.expect("it is sent");

        let message = server.visible(&general).await.pop().expect("a message");
        assert!(message.content.starts_with("word word"), "{}", message.content);
        let [whole] = &message.attachments[..] else { panic!("{:?}", message.attachments) };
        let whole = http().get(&whole.url).send().await.expect("a response").text().await.expect("a text");
        assert!(whole.starts_with(&text) && whole.lines().count() == 1 + lines, "{whole}");
    }
    gateway.stop().await;
}

#[tokio::test]
async fn a_link_has_a_preview_only_if_the_operator_wants_it() {
    let server = DiscordServer::start().await;
    let ada = server.person("Ada").await;
    for (options, answers) in
        [(options(&server), 1), (DiscordSection { suppress_embeds: false, ..options(&server) }, 2)]
    {
        let suppress_embeds = options.suppress_embeds;
        let gateway = Gateway::with(options).await;
        gateway.until_health("it is connected", |health| health.inbound_at.is_some()).await;

        ada.dm("say https://example.org").await;

        server.until_bot_texts(&ada.direct().await, answers).await;
        let answer = server.visible(&ada.direct().await).await.pop().expect("an answer");
        assert_eq!(answer.embeds_suppressed, suppress_embeds);
        gateway.stop().await;
    }
}

/// G1.
#[tokio::test]
async fn it_types_while_it_thinks() {
    let server = DiscordServer::start().await;
    let ada = server.person("Ada").await;
    let chat = ada.direct().await;
    let gateway = Gateway::connected(&server).await;

    ada.dm("wait a while").await;
    server.until("it types", async || (server.typing(&chat).await > 0).then_some(())).await;
    gateway.release_agent();

    server.until_bot_texts(&chat, 1).await;
    assert!(gateway.adapter.health().problem.is_none());
    gateway.stop().await;
}
