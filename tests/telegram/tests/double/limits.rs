//! Rate limits.

use std::time::Duration;

use rejoinder_telegram_double::{Fault, Limits, Rate};
use serde_json::json;

use crate::client::started;

#[tokio::test]
async fn nothing_is_limited_unless_asked() {
    let (telegram, api) = started().await;
    let ada = telegram.person("Ada").id();
    for number in 0..40 {
        api.send(ada, &number.to_string()).await;
    }
}

#[tokio::test]
async fn a_chat_takes_one_a_second_and_an_edit_counts() {
    let (telegram, api) = started().await;
    telegram.limits(Limits::documented());
    let (ada, ben) = (telegram.person("Ada").id(), telegram.person("Ben").id());
    let sent = api.send(ada, "one").await;
    let edit = json!({ "chat_id": ada, "message_id": sent, "text": "two" });
    let refused = api.answer("editMessageText", edit).await.unwrap();
    assert_eq!(refused["description"], "Too Many Requests: retry after 1");
    assert_eq!(refused["parameters"]["retry_after"], 1);
    api.send(ben, "another chat is free").await;
}

#[tokio::test]
async fn a_group_and_the_bot_have_limits_of_their_own() {
    let (telegram, api) = started().await;
    telegram.limits(Limits {
        group: Some(Rate { count: 2, seconds: 60.0 }),
        bot: Some(Rate { count: 3, seconds: 600.0 }),
        ..Limits::default()
    });
    let (family, ada) = (telegram.group("Family").id(), telegram.person("Ada").id());
    api.send(family, "one").await;
    api.send(family, "two").await;
    let third = json!({ "chat_id": family, "text": "three" });
    assert_eq!(api.refused("sendMessage", third).await.1, "Too Many Requests: retry after 60");
    api.send(ada, "three").await;
    let fourth = json!({ "chat_id": ada, "text": "four" });
    assert_eq!(api.refused("sendMessage", fourth).await.1, "Too Many Requests: retry after 600");
}

#[tokio::test]
async fn a_chat_can_be_closed_for_a_while() {
    let (telegram, api) = started().await;
    let ada = telegram.person("Ada").id();
    telegram.close_chat(ada, Duration::from_secs(9));
    let message = json!({ "chat_id": ada, "text": "hello" });
    assert_eq!(api.refused("sendMessage", message.clone()).await.0, 429);
    telegram.close_chat(ada, Duration::ZERO);
    telegram.fault(Fault::too_many(5).on("sendMessage").in_chat(ada));
    assert_eq!(api.refused("sendMessage", message.clone()).await.1, "Too Many Requests: retry after 5");
    api.call("sendMessage", message).await;
}
