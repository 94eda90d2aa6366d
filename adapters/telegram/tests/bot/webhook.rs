//! Updates that Telegram posts to a webhook.

use std::{sync::Arc, time::Duration};

use rejoinder_core::ChannelAdapter;
use rejoinder_telegram::{TelegramSection, TelegramWebhook, UpdateMode, webhook_routes};
use rejoinder_telegram_double::{Fault, TelegramDouble};
use reqwest::StatusCode;
use tokio::net::TcpListener;
use url::Url;

use crate::support::{Gateway, bot, http, options};

const SECRET: &str = "right_one";

/// A bot in webhook mode, its listener, and the listener's address.
async fn posted(telegram: &TelegramDouble) -> (Arc<rejoinder_telegram::Telegram>, Url) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let url = Url::parse(&format!("http://{address}/telegram/main")).expect("an address");
    let webhook = TelegramWebhook { secret: Some(SECRET.into()), ..TelegramWebhook::new(url.clone()) };
    telegram.webhook_pauses(Duration::from_millis(10), Duration::from_millis(50));
    let bot = bot(TelegramSection { mode: UpdateMode::Webhook, webhook: Some(webhook), ..options(telegram) });
    let routes = webhook_routes([Arc::clone(&bot)]);
    tokio::spawn(async move { axum::serve(listener, routes).await });
    (bot, url)
}

async fn status(url: &Url, secret: Option<&str>, body: &str) -> StatusCode {
    let mut request = http().post(url.clone()).body(body.to_owned());
    if let Some(secret) = secret {
        request = request.header("X-Telegram-Bot-Api-Secret-Token", secret);
    }
    request.send().await.expect("an answer").status()
}

#[tokio::test]
async fn what_is_posted_is_answered() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    let (bot, _) = posted(&telegram).await;
    let gateway = Gateway::with(bot).await;
    gateway.until_health("the webhook is set", |health| health.inbound_at.is_some()).await;

    for text in ["say one", "say two"] {
        ada.says(text);
    }

    ada.hears("two").await;
    telegram.all_confirmed().await;
    assert_eq!(telegram.bot_texts(ada.id()), ["one", "two"]);
    assert!(telegram.calls("getUpdates").is_empty());
    gateway.stop().await;
}

/// E3: an update that the store refuses is not posted over and over; later updates are answered.
#[tokio::test]
async fn an_update_that_the_store_refuses_costs_itself_only() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    let (bot, _) = posted(&telegram).await;
    let gateway = Gateway::rejecting(bot).await;
    gateway.until_health("the webhook is set", |health| health.inbound_at.is_some()).await;

    for text in ["say poison", "say one", "say two"] {
        ada.says(text);
    }

    ada.hears("two").await;
    telegram.all_confirmed().await;
    assert_eq!(telegram.bot_texts(ada.id()), ["one", "two"]);
    gateway.stop().await;
}

/// E3: an update that is posted again is a duplicate.
#[tokio::test]
async fn an_update_that_is_posted_twice_is_answered_once() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    let (bot, url) = posted(&telegram).await;
    let gateway = Gateway::with(bot).await;
    gateway.until_health("the webhook is set", |health| health.inbound_at.is_some()).await;
    let (id, chat) = (ada.says("say once"), ada.id());
    ada.hears("once").await;

    let update = format!(
        r#"{{"update_id": 77, "message": {{"message_id": {id}, "date": 1, "text": "say once",
        "chat": {{"id": {chat}, "type": "private"}}, "from": {{"id": {chat}, "is_bot": false}}}}}}"#
    );
    assert_eq!(status(&url, Some(SECRET), &update).await, StatusCode::OK);

    gateway.until_settled().await;
    assert_eq!(telegram.bot_texts(chat), ["once"]);
    gateway.stop().await;
}

#[tokio::test]
async fn only_telegram_is_let_in() {
    let telegram = TelegramDouble::start().await;
    let (bot, url) = posted(&telegram).await;
    let gateway = Gateway::with(bot).await;
    gateway.until_health("the webhook is set", |health| health.inbound_at.is_some()).await;
    let elsewhere = url.join("/telegram/another").expect("an address");

    assert_eq!(status(&url, None, "{}").await, StatusCode::UNAUTHORIZED);
    assert_eq!(status(&url, Some("wrong"), "{}").await, StatusCode::UNAUTHORIZED);
    assert_eq!(status(&elsewhere, Some(SECRET), "{}").await, StatusCode::NOT_FOUND);
    assert_eq!(status(&url, Some(SECRET), "no JSON").await, StatusCode::BAD_REQUEST);
    assert_eq!(status(&url, Some(SECRET), &"x".repeat(2 << 20)).await, StatusCode::PAYLOAD_TOO_LARGE);
    gateway.stop().await;
}

/// While the channel does not run, Telegram is asked to post again later.
#[tokio::test]
async fn nothing_is_taken_that_cannot_be_kept() {
    let telegram = TelegramDouble::start().await;
    let (_bot, url) = posted(&telegram).await;

    let response = http().post(url).header("X-Telegram-Bot-Api-Secret-Token", SECRET).body("{}").send().await;

    let response = response.expect("an answer");
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(response.headers().contains_key("retry-after"));
}

#[tokio::test]
async fn a_webhook_that_cannot_be_set_is_named_and_tried_again() {
    let telegram = TelegramDouble::start().await;
    let ada = telegram.person("Ada");
    telegram.fault(Fault::error_before(500).on("setWebhook"));
    let (bot, _) = posted(&telegram).await;
    let gateway = Gateway::with(bot).await;

    let named = gateway.until_health("the problem is reported", |health| health.problem.is_some()).await;
    assert!(named.problem.expect("a problem").contains("webhook"));
    ada.says("say after all");

    ada.hears("after all").await;
    assert!(gateway.adapter.health().problem.is_none());
    gateway.stop().await;
}
