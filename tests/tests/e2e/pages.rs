//! The operator's page in a browser, as a whole: many tabs.

use rejoinder_tests::{Browser, Gateway, ScriptedAgent};

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
