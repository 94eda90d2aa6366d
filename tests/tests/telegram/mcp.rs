//! A tool of an MCP server that must be approved.

use std::path::Path;

use rejoinder_telegram_double::TelegramDouble;
use rejoinder_tests::{Gateway, ToolModel};
use serde_json::json;

use crate::telegram;

const APPROVE: usize = 0;
const DECLINE: usize = 1;

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_call_waits_for_its_approval() {
    let (double, model) = (TelegramDouble::start().await, ToolModel::start().await);
    let grace = double.person("Grace");
    let owner = format!("[people.Grace]\nrole = \"owner\"\nidentities = [\"telegram.test/{}\"]\n", grace.id());
    let command = json!(["node", Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp/server.mjs")]);
    let counterparts = std::env::var("REJOINDER_COUNTERPARTS").expect("REJOINDER_COUNTERPARTS is not set");
    let server = format!(
        "[agents.main.mcp.files]\ncommand = {command}\nenv = {{ REJOINDER_COUNTERPARTS = \"{counterparts}\" }}\n"
    );
    let gateway = Gateway::builder()
        .config(&telegram(&double, ""))
        .config(&owner)
        .config(&model.section())
        .config(&server)
        .start()
        .await;
    grace.says("hello");
    grace.hears("Hello.").await;

    for (press, heard) in [(APPROVE, "The tool said: wrote zebra"), (DECLINE, "The tool said: error: not called")] {
        let text = if press == APPROVE { "zebra" } else { "yak" };
        grace.says(&format!("call files_write {{\"text\":\"{text}\"}}"));
        let is_question = |message: &rejoinder_telegram_double::VisibleMessage| {
            message.ours && !message.buttons.is_empty() && message.text.contains(text)
        };
        let question = grace.finds("the question", is_question).await;
        for part in ["main asks for approval: Call files_write (", "MCP server files", &format!("\"text\": \"{text}\"")]
        {
            assert!(question.text.contains(part), "{part}: {question:?}");
        }
        grace.presses(question.id, press);
        grace.finds("the answer", |message| message.ours && message.text.contains(heard)).await;
    }
    drop(gateway);
}
