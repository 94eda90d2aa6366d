//! Checks which bot a token belongs to.

use rejoinder_telegram::{CheckError, WebhookStatus, check, check_webhook};
use rejoinder_telegram_double::{Outage, TelegramDouble};
use url::Url;

use crate::support::http;

fn url(telegram: &TelegramDouble) -> Url {
    Url::parse(&telegram.url()).expect("an address")
}

#[tokio::test]
async fn a_token_is_somebodys() {
    let telegram = TelegramDouble::start().await;

    let profile = check(&http(), &url(&telegram), &telegram.token().into()).await.expect("a bot");

    assert_eq!((profile.id, profile.username), (telegram.bot().id, telegram.bot().username));
}

#[tokio::test]
async fn a_token_is_nobodys() {
    let telegram = TelegramDouble::start().await;

    assert_eq!(check(&http(), &url(&telegram), &"1:wrong".into()).await, Err(CheckError::Unknown));
    assert_eq!(check(&http(), &url(&telegram), &"wrong".into()).await, Err(CheckError::Malformed));
}

#[tokio::test]
async fn without_telegram_nothing_is_known() {
    let telegram = TelegramDouble::start().await;
    telegram.start_outage(Outage::Refuse);

    let checked = check(&http(), &url(&telegram), &telegram.token().into()).await;

    let Err(CheckError::Unreachable(why)) = checked else { panic!("{checked:?}") };
    assert!(!why.contains(telegram.token()), "{why}");
}

#[tokio::test]
async fn where_updates_go_is_known_and_none_is_taken() {
    let telegram = TelegramDouble::start().await;
    let token = telegram.token().into();
    telegram.person("Ada").says("hello");

    let asked_for = check_webhook(&http(), &url(&telegram), &token).await.expect("a bot");
    let wrong = check_webhook(&http(), &url(&telegram), &"1:wrong".into()).await;

    assert_eq!(asked_for, WebhookStatus { url: None, pending: 1, last_error: None });
    assert_eq!(wrong, Err(CheckError::Unknown));
    assert_eq!(telegram.inspect(|view| view.pending_updates()), 1);
}
