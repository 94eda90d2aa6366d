//! Sending, editing, deleting, reacting.

use serde_json::{Value, json};

use crate::client::started;

fn bad(what: &str) -> (u64, String) {
    (400, format!("Bad Request: {what}"))
}

#[tokio::test]
async fn a_message_is_seen_by_whom_it_was_sent_to() {
    let (telegram, api) = started().await;
    let (ada, ben) = (telegram.person("Ada"), telegram.person("Ben"));
    let first = api.send(ada.id(), "  hello ").await;
    let second = api.send(ada.id(), "again").await;
    assert!(second > first);
    assert_eq!(telegram.bot_texts(ada.id()), ["hello", "again"]);
    assert_eq!(telegram.bot_texts(ben.id()), Vec::<String>::new());
    assert_eq!(ada.hears("again").await.id, second);
}

#[tokio::test]
async fn only_the_last_messages_are_kept_when_asked() {
    let (telegram, api) = started().await;
    let ada = telegram.person("Ada").id();
    telegram.keep_messages(2);
    for text in ["one", "two", "three"] {
        api.send(ada, text).await;
    }
    assert_eq!(telegram.bot_texts(ada), ["two", "three"]);
}

#[tokio::test]
async fn the_limit_counts_utf16_units_after_parsing() {
    let (telegram, api) = started().await;
    let ada = telegram.person("Ada").id();
    api.send(ada, &"😎".repeat(2048)).await;
    let long = json!({ "chat_id": ada, "text": "😎".repeat(2048) + "a" });
    assert_eq!(api.refused("sendMessage", long).await, bad("message is too long"));
    let marked = json!({ "chat_id": ada, "text": format!("<b>{}</b>", "a".repeat(4096)), "parse_mode": "HTML" });
    api.call("sendMessage", marked).await;
    assert_eq!(
        api.refused("sendMessage", json!({ "chat_id": ada, "text": " \n" })).await,
        bad("message text is empty")
    );
}

#[tokio::test]
async fn markup_becomes_entities_and_bad_markup_says_where() {
    let (telegram, api) = started().await;
    let ada = telegram.person("Ada").id();
    let text = json!({ "chat_id": ada, "text": "é <b>bold</b> @someone", "parse_mode": "html" });
    let sent = api.call("sendMessage", text).await;
    assert_eq!(sent["text"], "é bold @someone");
    assert_eq!(
        sent["entities"],
        json!([
            { "type": "bold", "offset": 2, "length": 4 },
            { "type": "mention", "offset": 7, "length": 8 },
        ])
    );
    for (mode, text, error) in [
        ("HTML", "a <x>", "Unsupported start tag \"x\" at byte offset 2"),
        ("Markdown", "a_b", "Can't find end of the entity starting at byte offset 1"),
        ("MarkdownV2", "a.", "Character '.' is reserved and must be escaped with the preceding '\\'"),
    ] {
        let refused = api.refused("sendMessage", json!({ "chat_id": ada, "text": text, "parse_mode": mode })).await;
        assert_eq!(refused, bad(&format!("can't parse entities: {error}")));
    }
}

#[tokio::test]
async fn entities_must_lie_inside_the_text() {
    let (telegram, api) = started().await;
    let ada = telegram.person("Ada").id();
    let with = |offset: i64, length: i64| json!({ "chat_id": ada, "text": "a😎b", "entities": [{ "type": "bold", "offset": offset, "length": length }] });
    assert_eq!(api.call("sendMessage", with(1, 2)).await["entities"][0]["length"], 2);
    assert!(api.refused("sendMessage", with(1, 1)).await.1.contains("in a middle of a UTF-16 symbol"));
    assert!(api.refused("sendMessage", with(3, 2)).await.1.contains("ends after the end of the text"));
    assert!(api.refused("sendMessage", with(0, 0)).await.1.contains("is empty"));
}

#[tokio::test]
async fn who_cannot_be_written_to_is_said() {
    let (telegram, api) = started().await;
    let to = |chat: i64| json!({ "chat_id": chat, "text": "hello" });
    assert_eq!(api.refused("sendMessage", to(1)).await, bad("chat not found"));
    let ada = telegram.person("Ada");
    ada.blocks();
    let blocked = (403, "Forbidden: bot was blocked by the user".to_owned());
    assert_eq!(api.refused("sendMessage", to(ada.id())).await, blocked);
    let family = telegram.supergroup("Family");
    family.kicks();
    let kicked = (403, "Forbidden: bot was kicked from the supergroup chat".to_owned());
    assert_eq!(api.refused("sendMessage", to(family.id())).await, kicked);
    let eve = telegram.stranger("Eve");
    let never = (403, "Forbidden: bot can't initiate conversation with a user".to_owned());
    assert_eq!(api.refused("sendMessage", to(eve.id())).await, never);
    eve.says("/start");
    api.call("sendMessage", to(eve.id())).await;
}

#[tokio::test]
async fn a_reply_needs_its_message_unless_told_otherwise() {
    let (telegram, api) = started().await;
    let ada = telegram.person("Ada");
    let asked = ada.says("question");
    let reply = |parameters: Value| json!({ "chat_id": ada.id(), "text": "answer", "reply_parameters": parameters });
    let sent = api.call("sendMessage", reply(json!({ "message_id": asked }))).await;
    assert_eq!(sent["reply_to_message"]["text"], "question");
    ada.deletes(asked);
    let refused = api.refused("sendMessage", reply(json!({ "message_id": asked }))).await;
    assert_eq!(refused, bad("message to be replied not found"));
    let lenient = json!({ "message_id": asked, "allow_sending_without_reply": true });
    assert_eq!(api.call("sendMessage", reply(lenient)).await.get("reply_to_message"), None);
}

#[tokio::test]
async fn topics_keep_apart() {
    let (telegram, api) = started().await;
    let family = telegram.forum("Family");
    let trips = family.topic("Trips");
    let to = |thread: i64| json!({ "chat_id": family.id(), "text": "hello", "message_thread_id": thread });
    let sent = api.call("sendMessage", to(trips)).await;
    assert_eq!((&sent["message_thread_id"], &sent["is_topic_message"]), (&json!(trips), &json!(true)));
    assert_eq!(sent["reply_to_message"]["forum_topic_created"]["name"], "Trips");
    assert_eq!(api.refused("sendMessage", to(99)).await, bad("message thread not found"));
}

#[tokio::test]
async fn buttons_carry_at_most_64_bytes() {
    let (telegram, api) = started().await;
    let ada = telegram.person("Ada");
    let with = |data: &str| {
        let keyboard = json!({ "inline_keyboard": [[{ "text": "Yes", "callback_data": data }]] });
        json!({ "chat_id": ada.id(), "text": "Well?", "reply_markup": keyboard })
    };
    assert_eq!(api.refused("sendMessage", with(&"é".repeat(33))).await, bad("BUTTON_DATA_INVALID"));
    let asked = api.call("sendMessage", with(&"é".repeat(32))).await["message_id"].as_i64().unwrap();
    let query = ada.presses(asked, 0);
    let update = api.one().await;
    assert_eq!(update["callback_query"]["data"], "é".repeat(32));
    api.call("answerCallbackQuery", json!({ "callback_query_id": query, "text": "noted" })).await;
    assert_eq!(telegram.inspect(|view| view.callback_answer(&query)).unwrap()["text"], "noted");
    telegram.expire_callbacks();
    let late = api.refused("answerCallbackQuery", json!({ "callback_query_id": query })).await;
    assert_eq!(late, bad("query is too old and response timeout expired or query ID is invalid"));
}

#[tokio::test]
async fn an_edit_must_change_something_of_our_own() {
    let (telegram, api) = started().await;
    let ada = telegram.person("Ada");
    let ours = api.send(ada.id(), "one").await;
    let edit = |message: i64, text: &str| json!({ "chat_id": ada.id(), "message_id": message, "text": text });
    assert_eq!(api.call("editMessageText", edit(ours, "two")).await["text"], "two");
    let seen = telegram.visible(ada.id());
    assert_eq!((&*seen[0].text, seen[0].edits.len()), ("two", 1));
    let same = api.refused("editMessageText", edit(ours, "two")).await.1;
    assert!(same.starts_with("Bad Request: message is not modified: specified new message content and reply"));
    assert_eq!(api.refused("editMessageText", edit(99, "x")).await, bad("message to edit not found"));
    let theirs = ada.says("mine");
    assert_eq!(api.refused("editMessageText", edit(theirs, "x")).await, bad("message can't be edited"));
}

#[tokio::test]
async fn what_is_deleted_is_gone() {
    let (telegram, api) = started().await;
    let ada = telegram.person("Ada");
    let id = api.send(ada.id(), "one").await;
    let delete = json!({ "chat_id": ada.id(), "message_id": id });
    api.call("deleteMessage", delete.clone()).await;
    assert_eq!(telegram.visible(ada.id()), []);
    assert_eq!(api.refused("deleteMessage", delete).await, bad("message to delete not found"));
}

#[tokio::test]
async fn only_some_reactions_are_valid_and_one_is_the_most() {
    let (telegram, api) = started().await;
    let family = telegram.supergroup("Family");
    let ada = telegram.person("Ada").at(&family);
    let said = ada.says("look");
    let react = |emoji: &[&str]| {
        let reaction: Vec<_> = emoji.iter().map(|it| json!({ "type": "emoji", "emoji": it })).collect();
        json!({ "chat_id": family.id(), "message_id": said, "reaction": reaction })
    };
    api.call("setMessageReaction", react(&["👀"])).await;
    api.call("setMessageReaction", react(&["👍"])).await;
    assert_eq!(telegram.visible(family.id())[0].our_reactions, ["👍"]);
    assert_eq!(api.refused("setMessageReaction", react(&["✅"])).await, bad("REACTION_INVALID"));
    assert_eq!(api.refused("setMessageReaction", react(&["👍", "🔥"])).await, bad("REACTIONS_TOO_MANY"));
    family.allows_reactions(&["🔥"]);
    assert_eq!(api.refused("setMessageReaction", react(&["👍"])).await, bad("REACTION_INVALID"));
    api.call("setMessageReaction", react(&[])).await;
    assert_eq!(telegram.visible(family.id())[0].our_reactions, Vec::<String>::new());
}

#[tokio::test]
async fn typing_is_shown_until_the_message_comes() {
    let (telegram, api) = started().await;
    let ada = telegram.person("Ada").id();
    api.call("sendChatAction", json!({ "chat_id": ada, "action": "typing" })).await;
    assert!(telegram.inspect(|view| view.typing(ada))[0].shown);
    api.send(ada, "done").await;
    assert!(!telegram.inspect(|view| view.typing(ada))[0].shown);
    let odd = api.refused("sendChatAction", json!({ "chat_id": ada, "action": "thinking" })).await;
    assert_eq!(odd, bad("wrong parameter action in request"));
}

#[tokio::test]
async fn a_draft_is_seen_and_is_no_message() {
    let (telegram, api) = started().await;
    let ada = telegram.person("Ada").id();
    let draft = |chat: i64, id: i64| json!({ "chat_id": chat, "draft_id": id, "text": "so far" });
    api.call("sendMessageDraft", draft(ada, 7)).await;
    assert_eq!(telegram.inspect(|view| view.draft(ada, None)).unwrap().text, "so far");
    assert_eq!(telegram.visible(ada), []);
    assert_eq!(api.refused("sendMessageDraft", draft(ada, 0)).await.0, 400);
    let family = telegram.group("Family").id();
    assert_eq!(api.refused("sendMessageDraft", draft(family, 7)).await.0, 400);
    api.send(ada, "so far and further").await;
    assert_eq!(telegram.inspect(|view| view.draft(ada, None)), None);
}

#[tokio::test]
async fn commands_are_kept_for_each_language() {
    let (telegram, api) = started().await;
    let commands = json!([{ "command": "start", "description": "Begin" }]);
    api.call("setMyCommands", json!({ "commands": commands })).await;
    assert_eq!(api.call("getMyCommands", json!({})).await, commands);
    assert_eq!(api.call("getMyCommands", json!({ "language_code": "de" })).await, json!([]));
    assert_eq!(telegram.inspect(|view| view.commands()), [("start".to_owned(), "Begin".to_owned())]);
    let odd = json!({ "commands": [{ "command": "New!", "description": "x" }] });
    assert_eq!(api.refused("setMyCommands", odd).await, bad("BOT_COMMAND_INVALID"));
    api.call("deleteMyCommands", json!({})).await;
    assert_eq!(api.call("getMyCommands", json!({})).await, json!([]));
}

#[tokio::test]
async fn a_group_that_moved_says_where() {
    let (telegram, api) = started().await;
    let family = telegram.group("Family");
    let ada = telegram.person("Ada");
    let moved = telegram.migrate(&family);
    let updates = api.waiting().await;
    assert_eq!(updates[0]["message"]["migrate_to_chat_id"], moved.id());
    assert_eq!(updates[1]["message"]["migrate_from_chat_id"], family.id());
    let answer = api.answer("sendMessage", json!({ "chat_id": family.id(), "text": "hello" })).await.unwrap();
    assert_eq!(answer["description"], "Bad Request: group chat was upgraded to a supergroup chat");
    assert_eq!(answer["parameters"]["migrate_to_chat_id"], moved.id());
    api.send(moved.id(), "hello").await;
    assert!(ada.at(&moved).sees().iter().any(|message| message.text == "hello"));
}
