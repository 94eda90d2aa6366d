//! The pages in a browser, as a whole: many tabs, narrow windows, a phone.

use rejoinder_tests::{Browser, Gateway, Reply, ScriptedAgent};

use crate::{TOKEN, hook};

/// A browser has six connections for a gateway: no tab, and no page that was left, holds one that another one needs.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn no_tab_waits_for_the_connection_of_another() {
    let agent = ScriptedAgent::replying("done").await;
    let gateway = Gateway::builder().config(&hook("")).config(&agent.section()).start().await;

    let mut browser = Browser::start("operator-tabs", &gateway.url());
    for (checkpoint, words) in [("ten tabs", "hello"), ("seven tabs", "still there?")] {
        browser.reaches(checkpoint).await;
        let _ = gateway.hook("test", TOKEN).ask(words).await.turn();
        browser.resume().await;
    }
    browser.succeeds().await;
}

/// At 320, 390, 768 and 1280 pixels, with digests of keys, the ids of chats and words without an end.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn no_page_is_wider_than_its_window() {
    let agent = ScriptedAgent::replying("done").await;
    let gateway =
        Gateway::builder().config(&hook("")).config("[channels.webchat.main]").config(&agent.section()).start().await;
    let (word, digest) = ("Unabhaengigkeitserklaerungen".repeat(5), "0123456789abcdef".repeat(4));

    let mut browser = Browser::start("widths", &gateway.url());
    browser.reaches("looks").await;
    let message = gateway.hook("test", TOKEN).message_in(&format!("once:{digest}"), &word);
    let _ = Reply::of(message.header("Prefer", "wait=10")).await.turn();
    browser.resume().await;
    browser.succeeds().await;
}

/// Three turns on its first screen, filters behind a button, attempts once, and labels that are not cut.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_phone_shows_what_matters_first() {
    let agent = ScriptedAgent::replying("done").await;
    let gateway = Gateway::builder().config(&hook("")).config(&agent.section()).start().await;
    for _ in 0..5 {
        let _ = gateway.hook("test", TOKEN).ask("Is the shop open on Saturday?").await.turn();
    }

    Browser::start("operator-phone", &gateway.url()).succeeds().await;
}

/// It is opened while the gateway is away, says so, and goes on by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_operators_page_is_an_app() {
    let mut gateway = Gateway::builder().start().await;
    let mut browser = Browser::start("operator-app", &gateway.url());

    browser.reaches("installed").await;
    gateway.kill();
    browser.resume().await;
    browser.reaches("without a gateway").await;
    gateway.restart().await;
    browser.resume().await;

    browser.succeeds().await;
}
