//! The chat page, in a real browser.

use rejoinder_tests::{Browser, Gateway, ModelServer};

/// B11: streaming text, safe Markdown, history, and nobody else's words.
#[tokio::test]
async fn a_conversation_is_seen_as_it_is_written_and_found_again() {
    let model = ModelServer::start().await;
    let gateway = Gateway::builder().config(&model.section()).start().await;

    Browser::follows("conversation", &gateway.url()).is_content().await;
}
