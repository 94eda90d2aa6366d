//! The updates that the bot gets from what people do.

use rejoinder_telegram_double::Entity;
use serde_json::{Value, json};

use crate::client::started;

#[tokio::test]
async fn a_text_comes_with_what_is_found_in_it() {
    let (telegram, api) = started().await;
    telegram.person("Ada").says("/new@rejoinder_double_bot 😎 https://example.org");
    let message = api.one().await["message"].clone();
    assert_eq!(message["chat"]["type"], "private");
    assert_eq!(
        message["entities"],
        json!([
            { "type": "bot_command", "offset": 0, "length": 25 },
            { "type": "url", "offset": 29, "length": 19 },
        ])
    );
}

#[tokio::test]
async fn privacy_lets_through_what_is_meant_for_the_bot() {
    let (telegram, api) = started().await;
    let family = telegram.supergroup("Family");
    let ada = telegram.person("Ada").at(&family);
    let ours = api.send(family.id(), "I am here").await;
    ada.says("chatter");
    ada.says("/start@another_bot");
    ada.says("/start");
    ada.says("well, @Rejoinder_double_bot?");
    ada.says_marked(
        "you there",
        vec![Entity { user: Some(json!({ "id": telegram.bot().id })), ..Entity::new("text_mention", 0, 3) }],
    );
    ada.replies(ours, "good");
    let texts = |updates: Vec<Value>| -> Vec<String> {
        updates.iter().map(|update| update["message"]["text"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(texts(api.waiting().await), ["/start", "well, @Rejoinder_double_bot?", "you there", "good"]);
    family.promotes();
    api.updates(json!({ "offset": -1 })).await;
    ada.says("chatter");
    assert_eq!(texts(api.waiting().await[1..].to_vec()), ["chatter"]);
}

#[tokio::test]
async fn without_privacy_everything_in_a_group_comes() {
    let (telegram, api) = started().await;
    telegram.privacy(false);
    assert_eq!(api.call("getMe", json!({})).await["can_read_all_group_messages"], true);
    let family = telegram.group("Family");
    telegram.person("Ada").at(&family).says("chatter");
    telegram.other_bot("Helper", "helper_bot").at(&family).says("beep");
    let updates = api.waiting().await;
    assert_eq!(updates[1]["message"]["from"]["is_bot"], true);
    assert_eq!(updates.len(), 2);
}

#[tokio::test]
async fn a_topic_is_named_and_its_messages_answer_its_first() {
    let (telegram, api) = started().await;
    telegram.privacy(false);
    let family = telegram.forum("Family");
    let trips = family.topic("Trips");
    telegram.person("Ada").at(&family).topic(trips).says("where to?");
    let updates = api.waiting().await;
    let message = &updates[1]["message"];
    assert_eq!((&message["message_thread_id"], &message["is_topic_message"]), (&json!(trips), &json!(true)));
    assert_eq!(message["reply_to_message"]["message_id"], trips);
    assert_eq!(message["chat"]["is_forum"], true);
}

#[tokio::test]
async fn an_answer_in_a_supergroup_has_a_thread_that_is_no_topic() {
    let (telegram, api) = started().await;
    telegram.privacy(false);
    let family = telegram.supergroup("Family");
    let ada = telegram.person("Ada").at(&family);
    let first = ada.says("one");
    let second = ada.replies(first, "two");
    ada.replies(second, "three");
    let updates = api.waiting().await;
    let last = &updates[2]["message"];
    assert_eq!((&last["message_thread_id"], last.get("is_topic_message")), (&json!(first), None));
}

#[tokio::test]
async fn edits_albums_and_other_things_come() {
    let (telegram, api) = started().await;
    let ada = telegram.person("Ada");
    let said = ada.says("helo");
    ada.edits(said, "hello");
    ada.sends_album(&[b"one", b"two"], "two pictures");
    ada.sends_voice(b"ogg");
    ada.sends_sticker("😎");
    ada.sends_location(52.5, 13.4);
    ada.sends_contact("Ben", "+491234");
    ada.quotes(said, "hell", "what?");
    let updates = api.waiting().await;
    assert_eq!(updates[1]["edited_message"]["text"], "hello");
    assert!(updates[1]["edited_message"]["edit_date"].is_i64());
    assert_eq!(updates[2]["message"]["media_group_id"], updates[3]["message"]["media_group_id"]);
    assert_eq!(updates[2]["message"]["caption"], "two pictures");
    assert_eq!(updates[4]["message"]["voice"]["mime_type"], "audio/ogg");
    assert_eq!(updates[5]["message"]["sticker"]["emoji"], "😎");
    assert_eq!(updates[6]["message"]["location"]["latitude"], 52.5);
    assert_eq!(updates[7]["message"]["contact"]["phone_number"], "+491234");
    assert_eq!(updates[8]["message"]["quote"]["text"], "hell");
}

#[tokio::test]
async fn a_channel_posts_and_a_block_is_told() {
    let (telegram, api) = started().await;
    telegram.channel("News").posts("today");
    telegram.person("Ada").blocks();
    let updates = api.waiting().await;
    assert_eq!(updates[0]["channel_post"]["sender_chat"]["title"], "News");
    assert_eq!(updates[1]["my_chat_member"]["new_chat_member"]["status"], "kicked");
}

#[tokio::test]
async fn a_private_chat_can_have_topics() {
    let (telegram, api) = started().await;
    telegram.private_topics(true);
    assert_eq!(api.call("getMe", json!({})).await["has_topics_enabled"], true);
    let ada = telegram.person("Ada");
    let trip = ada.opens_topic("Trip");
    ada.topic(trip).says("where to?");
    assert_eq!(api.waiting().await[1]["message"]["message_thread_id"], trip);
}
