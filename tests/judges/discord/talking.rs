//! serenity receives and sends messages.

use std::time::Duration;

use rejoinder_discord_server::{DiscordServer, Message};
use serde_json::json;
use serenity::all::{
    AutoArchiveDuration, ButtonStyle, CreateActionRow, CreateAllowedMentions, CreateAttachment, CreateButton,
    CreateMessage, CreateThread, EditMessage, Event, GetMessages, MessageType, Nonce, ReactionType,
};

use super::client::{Judge, http, number, refusal, send};

fn text(content: &str) -> CreateMessage {
    CreateMessage::new().content(content)
}

fn with_nonce(content: &str, nonce: &str) -> CreateMessage {
    text(content).nonce(Nonce::String(nonce.to_owned())).enforce_nonce(true)
}

#[tokio::test]
async fn messages_arrive_in_the_order_in_which_they_were_said() {
    let server = DiscordServer::start().await;
    let channel = server.guild("Home").await.channel("general").await;
    let crowd = server.crowd(3).await;
    let ada = server.person("Ada").await;
    let judge = Judge::connects(&server).await;

    for number in 0..5 {
        ada.says(&channel, &number.to_string()).await;
    }
    server.all_say(&crowd, 2, "direct {}").await;

    for number in 0..5 {
        let heard = judge.hears().await;
        assert_eq!((heard.content, heard.author.name.as_str()), (number.to_string(), "ada"));
        assert_eq!(heard.channel_id.get(), self::number(channel.id()));
    }
    for (person, direct) in &crowd {
        for number in 0..2 {
            let heard = judge.hears().await;
            assert_eq!((heard.content, heard.guild_id), (format!("direct {number}"), None));
            assert_eq!(heard.author.id.get(), self::number(person.id()));
            assert_eq!(heard.channel_id.get(), self::number(direct.id()));
        }
    }
}

/// E8.
#[tokio::test]
async fn a_nonce_gives_the_earlier_message_for_two_minutes() {
    let server = DiscordServer::start().await;
    let channel = server.guild("Home").await.channel("general").await;
    let http = http(&server);

    let first = send(&http, &channel, with_nonce("once", "a-nonce")).await.expect("the message is sent");
    let again = send(&http, &channel, with_nonce("once", "a-nonce")).await.expect("the earlier message is returned");
    assert_eq!(again.id, first.id);
    assert!(matches!(first.nonce, Some(Nonce::String(nonce)) if nonce == "a-nonce"));

    server.advance(Duration::from_secs(121)).await;
    let later = send(&http, &channel, with_nonce("once", "a-nonce")).await.expect("the message is sent");
    assert_ne!(later.id, first.id);

    let unenforced = text("twice").nonce(Nonce::String("a-nonce".to_owned()));
    send(&http, &channel, unenforced).await.expect("the message is sent");
    assert_eq!(server.bot_texts(&channel).await, ["once", "once", "twice"]);
}

#[tokio::test]
async fn a_nonce_of_26_characters_is_refused() {
    let server = DiscordServer::start().await;
    let channel = server.guild("Home").await.channel("general").await;

    let sent = send(&http(&server), &channel, with_nonce("once", "abcdefghijklmnopqrstuvwxyz")).await;

    assert_eq!(refusal(sent), (400, 50035));
}

#[tokio::test]
async fn the_history_goes_forward_from_a_message_and_backward() {
    let server = DiscordServer::start().await;
    let channel = server.guild("Home").await.channel("general").await;
    let ada = server.person("Ada").await;
    let mut said: Vec<Message> = Vec::new();
    for number in 0..7 {
        said.push(ada.says(&channel, &number.to_string()).await);
    }
    let http = http(&server);
    let read = async |request: GetMessages| -> String {
        let channel = serenity::all::ChannelId::new(number(channel.id()));
        let read = channel.messages(&http, request).await.expect("the history is read");
        read.iter().map(|message| message.content.as_str()).collect()
    };

    assert_eq!(read(GetMessages::new().limit(3)).await, "654");
    // The oldest messages after it, not the newest, so that a reader that continues from the last one misses none.
    assert_eq!(read(GetMessages::new().after(number(&said[1].id)).limit(3)).await, "432");
    assert_eq!(read(GetMessages::new().before(number(&said[5].id)).limit(3)).await, "432");
    let too_many: Result<Vec<serenity::all::Message>, _> =
        http.get_messages(number(channel.id()).into(), None, Some(101)).await;
    assert_eq!(refusal(too_many), (400, 50035));
}

#[tokio::test]
async fn a_message_is_edited_reacted_to_and_deleted() {
    let server = DiscordServer::start().await;
    let channel = server.guild("Home").await.channel("general").await;
    let ada = server.person("Ada").await;
    let theirs = ada.says(&channel, "hello").await;
    let http = http(&server);

    let mut ours = send(&http, &channel, text("one")).await.expect("the message is sent");
    ours.edit(&http, EditMessage::new().content("two")).await.expect("the message is edited");
    let thumb = ReactionType::Unicode("👍".to_owned());
    let (place, id) = (number(channel.id()).into(), number(&theirs.id).into());
    http.create_reaction(place, id, &thumb).await.expect("the reaction is added");
    http.create_reaction(place, id, &thumb).await.expect("a repeated reaction succeeds");

    let visible = server.visible(&channel).await;
    assert_eq!(visible[1].versions, ["one", "two"]);
    assert!(visible[1].edited);
    assert_eq!(visible[0].reactions.iter().map(|each| (&*each.emoji, each.ours)).collect::<Vec<_>>(), [("👍", true)]);

    ours.delete(&http).await.expect("the message is deleted");
    assert_eq!(server.visible(&channel).await.len(), 1);
    let gone = ours.edit(&http, EditMessage::new().content("three")).await;
    assert_eq!(refusal(gone), (404, 10008));
}

#[tokio::test]
async fn only_own_messages_can_be_edited() {
    let server = DiscordServer::start().await;
    let channel = server.guild("Home").await.channel("general").await;
    let theirs = server.person("Ada").await.says(&channel, "hello").await;

    let edited = http(&server)
        .edit_message(number(channel.id()).into(), number(&theirs.id).into(), &json!({ "content": "hi" }), vec![])
        .await;

    assert_eq!(refusal(edited), (403, 50005));
}

#[tokio::test]
async fn the_length_of_a_message_is_bounded_and_it_is_not_empty() {
    let server = DiscordServer::start().await;
    let channel = server.guild("Home").await.channel("general").await;
    let http = http(&server);
    let body = |length: usize| json!({ "content": "ä".repeat(length) });
    let send = async |length| http.send_message(number(channel.id()).into(), vec![], &body(length)).await;

    send(2000).await.expect("2000 characters are sent");
    assert_eq!(refusal(send(2001).await), (400, 50035));
    assert_eq!(refusal(send(0).await), (400, 50006));
}

#[tokio::test]
async fn a_reply_to_a_deleted_message_is_refused_or_sent_as_it_wishes() {
    let server = DiscordServer::start().await;
    let channel = server.guild("Home").await.channel("general").await;
    let ada = server.person("Ada").await;
    let theirs = ada.says(&channel, "hello").await;
    ada.deletes(&theirs).await;
    let http = http(&server);
    let body = |fail: bool| {
        let reference = json!({ "message_id": theirs.id, "fail_if_not_exists": fail });
        json!({ "content": "hi", "message_reference": reference })
    };
    let reply = async |fail| http.send_message(number(channel.id()).into(), vec![], &body(fail)).await;

    assert_eq!(refusal(reply(true).await), (400, 50035));
    assert_eq!(reply(false).await.expect("the message is sent").kind, MessageType::Regular);
}

#[tokio::test]
async fn mentions_notify_nobody_unless_they_may() {
    let server = DiscordServer::start().await;
    let channel = server.guild("Home").await.channel("general").await;
    let ada = server.person("Ada").await;
    ada.says(&channel, "hello").await;
    let http = http(&server);
    let content = format!("@everyone and <@{}>", ada.id());

    send(&http, &channel, text(&content)).await.expect("the message is sent");
    let quiet = text(&content).allowed_mentions(CreateAllowedMentions::new());
    send(&http, &channel, quiet).await.expect("the message is sent");

    let visible = server.visible(&channel).await;
    assert_eq!((visible[1].pings_everyone, visible[1].pings.as_slice()), (true, [ada.id().to_owned()].as_slice()));
    assert_eq!((visible[2].pings_everyone, visible[2].pings.len()), (false, 0));
}

#[tokio::test]
async fn threads_and_forum_posts_are_channels_of_their_own() {
    let server = DiscordServer::start().await;
    let guild = server.guild("Home").await;
    let (channel, forum) = (guild.channel("general").await, guild.forum("help").await);
    let ada = server.person("Ada").await;
    let judge = Judge::connects(&server).await;

    let asked = ada.mentions(&channel, "a thread, please").await;
    judge.hears().await;
    let place = serenity::all::ChannelId::new(number(channel.id()));
    let builder = || CreateThread::new("Yours").auto_archive_duration(AutoArchiveDuration::OneDay);
    let thread = place.create_thread_from_message(&judge.http, number(&asked.id), builder()).await.expect("a thread");
    let twice = place.create_thread_from_message(&judge.http, number(&asked.id), builder()).await;
    assert_eq!(refusal(twice), (400, 160_004));
    assert_eq!(thread.id.get(), number(&asked.id));
    let thread = server.channel(&thread.id.to_string());
    send(&judge.http, &thread, text("in it")).await.expect("the message is sent");
    ada.says(&thread, "thanks").await;

    let in_thread = judge
        .sees("the talk in the thread", |event| match event {
            Event::MessageCreate(event) if event.message.content == "thanks" => Some(event.message.channel_id.get()),
            _ => None,
        })
        .await;
    assert_eq!(in_thread, number(thread.id()));
    assert_eq!(server.bot_texts(&thread).await, ["in it"]);
    assert_eq!(server.visible(&channel).await[0].thread.as_deref(), Some(thread.id()));

    let post = ada.posts(&forum, "How?", "How does it work?").await;
    let heard = judge.hears().await;
    assert_eq!((heard.content.as_str(), heard.id.get()), ("How does it work?", number(post.id())));
}

#[tokio::test]
async fn people_reply_edit_react_type_and_delete() {
    let server = DiscordServer::start().await;
    let channel = server.guild("Home").await.channel("general").await;
    let ada = server.person("Ada").await;
    let judge = Judge::connects(&server).await;
    let ours = send(&judge.http, &channel, text("a question")).await.expect("the message is sent");
    let question = server.visible(&channel).await.remove(0);

    let reply = ada.replies(&question, "an answer").await;
    let heard = judge.hears().await;
    assert_eq!(heard.referenced_message.map(|message| message.id), Some(ours.id));
    assert_eq!(heard.kind, MessageType::InlineReply);

    ada.types(&channel).await;
    judge.sees("typing", |event| matches!(event, Event::TypingStart(_)).then_some(())).await;

    ada.edits(&reply, "another").await;
    let update = |event| match event {
        Event::MessageUpdate(event) => Some((event.content, event.edited_timestamp.is_some())),
        _ => None,
    };
    assert_eq!(judge.sees("the edit", update).await, (Some("another".to_owned()), true));

    let unseen = ada.says(&channel, "https://example.org").await;
    server.unfurls(&unseen).await;
    let (_, edited) = judge.sees("the preview", update).await;
    assert!(!edited, "a preview must not count as an edit");

    ada.reacts(&question, "🎉").await;
    let reacted = |event| match event {
        Event::ReactionAdd(event) => Some((event.reaction.message_id, event.reaction.emoji)),
        _ => None,
    };
    assert_eq!(judge.sees("the reaction", reacted).await, (ours.id, ReactionType::Unicode("🎉".to_owned())));
    ada.removes_reaction(&question, "🎉").await;
    judge.sees("the reaction's removal", |event| matches!(event, Event::ReactionRemove(_)).then_some(())).await;

    ada.deletes(&reply).await;
    let deleted = |event| match event {
        Event::MessageDelete(event) => Some(event.message_id.get()),
        _ => None,
    };
    assert_eq!(judge.sees("the deletion", deleted).await, number(&reply.id));
}

#[tokio::test]
async fn files_go_up_and_come_down() {
    let server = DiscordServer::start().await;
    let channel = server.guild("Home").await.channel("general").await;
    let ada = server.person("Ada").await;
    let judge = Judge::connects(&server).await;

    ada.sends_files(&channel, "", &[("notes.txt", b"their notes")]).await;
    let heard = judge.hears().await;
    let [file] = heard.attachments.as_slice() else { panic!("one file: {heard:?}") };
    assert_eq!(
        (file.filename.as_str(), file.size, file.content_type.as_deref()),
        ("notes.txt", 11, Some("text/plain"))
    );
    assert!(file.url.starts_with(server.api_url()));
    assert_eq!(file.download().await.expect("the file is downloaded"), b"their notes");

    let ours = CreateMessage::new().add_file(CreateAttachment::bytes(b"our notes".as_slice(), "ours.txt"));
    send(&judge.http, &channel, ours).await.expect("the message is sent");
    let [shown] = &server.visible(&channel).await[1].attachments[..] else { panic!("one file") };
    assert_eq!((shown.name.as_str(), shown.size), ("ours.txt", 9));

    let files = |count: usize| {
        let file = |number| CreateAttachment::bytes(b"our notes".as_slice(), format!("{number}.txt"));
        CreateMessage::new().content("all").add_files((0..count).map(file))
    };
    send(&judge.http, &channel, files(10)).await.expect("the message is sent");
    let shown = server.visible(&channel).await.pop().expect("a message");
    assert_eq!((&*shown.content, shown.attachments.len()), ("all", 10));
    assert_eq!(refusal(send(&judge.http, &channel, files(11)).await), (400, 30015));
    server.set(json!({ "request_limit": 17 })).await;
    assert_eq!(refusal(send(&judge.http, &channel, files(2)).await), (413, 40005));
    server.set(json!({ "upload_limit": 8 })).await;
    assert_eq!(refusal(send(&judge.http, &channel, files(1)).await), (413, 40005));

    ada.sends_sticker(&channel, "wave").await;
    assert_eq!(judge.hears().await.sticker_items[0].name, "wave");
}

#[tokio::test]
async fn buttons_previews_and_typing_are_seen() {
    let server = DiscordServer::start().await;
    let channel = server.guild("Home").await.channel("general").await;
    let http = http(&server);
    let row = CreateActionRow::Buttons(vec![
        CreateButton::new("pick:1").label("Yes").style(ButtonStyle::Primary),
        CreateButton::new("pick:2").label("No").disabled(true),
    ]);
    let message = text("https://example.org").components(vec![row]).flags(serenity::all::MessageFlags::SUPPRESS_EMBEDS);

    http.broadcast_typing(number(channel.id()).into()).await.expect("the typing notice is sent");
    send(&http, &channel, message).await.expect("the message is sent");

    assert_eq!(server.typing(&channel).await, 1);
    let shown = &server.visible(&channel).await[0];
    let buttons: Vec<_> = shown.buttons.iter().map(|each| (&*each.label, &*each.custom_id, each.disabled)).collect();
    assert_eq!(buttons, [("Yes", "pick:1", false), ("No", "pick:2", true)]);
    assert!(shown.embeds_suppressed);
}

#[tokio::test]
async fn other_bots_and_webhooks_are_told_apart_from_people() {
    let server = DiscordServer::start().await;
    let channel = server.guild("Home").await.channel("general").await;
    let (bot, ada) = (server.another_bot("Robot").await, server.person("Ada").await);
    let judge = Judge::connects(&server).await;
    let next = async || {
        judge
            .sees("a message", |event| match event {
                Event::MessageCreate(event) => Some((event.message.author.bot, event.message.webhook_id.is_some())),
                _ => None,
            })
            .await
    };

    bot.says(&channel, "beep").await;
    ada.posts_by_webhook(&channel, "news").await;

    assert_eq!(next().await, (true, false));
    assert_eq!(next().await, (false, true));
}
