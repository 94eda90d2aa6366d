//! Invalid input gets a clear error.

use rejoinder_tests::{Gateway, Reply, ScriptedAgent};
use reqwest::StatusCode;
use rstest::rstest;
use serde_json::json;

use crate::{TOKEN, hook};

async fn gateway() -> Gateway {
    Gateway::builder().config(&hook("body_limit = \"4 KiB\"")).start().await
}

fn is_problem(reply: &Reply, status: StatusCode, says: &str) {
    assert_eq!(reply.status, status, "{reply:?}");
    assert_eq!(reply.headers["content-type"], "application/problem+json");
    assert_eq!(reply.body["status"], status.as_u16());
    let detail = reply.body["detail"].as_str().unwrap_or_else(|| panic!("no detail in {reply:?}"));
    assert!(detail.contains(says), "`{says}` is not in `{detail}`");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_a_hook_cannot_take_is_named() {
    let gateway = gateway().await;
    let hook = gateway.hook("test", TOKEN);

    is_problem(&Reply::of(gateway.hook("nobody", TOKEN).message("hi")).await, StatusCode::NOT_FOUND, "no hook");
    is_problem(&Reply::of(hook.bare().json(&json!({"message": "hi"}))).await, StatusCode::UNAUTHORIZED, "");
    is_problem(&Reply::of(gateway.hook("test", "wrong").message("hi")).await, StatusCode::UNAUTHORIZED, "");
    is_problem(&Reply::of(hook.message(&"x".repeat(5000))).await, StatusCode::PAYLOAD_TOO_LARGE, "4");
    is_problem(&Reply::of(hook.message("  \n ")).await, StatusCode::UNPROCESSABLE_ENTITY, "message");
    let broken = hook.call().header("Content-Type", "application/json").body("{\"message\": \"hi\",\n oops}");
    is_problem(&Reply::of(broken).await, StatusCode::BAD_REQUEST, "line 2");
}

/// The sender of a photo reads why it was refused, also after writing all of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_form_that_is_too_large_is_refused_with_a_sentence() {
    let gateway = gateway().await;
    let form = |size| {
        let part = |about: &str| format!("--b\r\nContent-Disposition: form-data; {about}\r\n\r\n");
        let body = format!("{}hi\r\n{}{}\r\n--b--", part("name=message"), part("name=f; filename=a"), "x".repeat(size));
        let call = gateway.hook("test", TOKEN).call();
        Reply::of(call.header("Content-Type", "multipart/form-data; boundary=b").body(body))
    };

    is_problem(&form(26 << 20).await, StatusCode::PAYLOAD_TOO_LARGE, "must have at most 26218496 bytes");
    is_problem(&form((25 << 20) + 1).await, StatusCode::PAYLOAD_TOO_LARGE, "at most 26214400 bytes together");
    assert_eq!(form(25 << 20).await.status, StatusCode::OK);
}

/// M6: a signature covers the exact body and the current time.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_signature_of_another_body_or_time_is_refused() {
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let gateway =
        Gateway::builder().config(&format!("[channels.webhook.signed]\nsigning_secret = \"{secret}\"\n")).start().await;
    let signer = standardwebhooks::Webhook::new(secret).unwrap();
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let call = async |id: &str, at: u64, signed: &str, sent: &str| {
        let signature = signer.sign(id, i64::try_from(at).unwrap(), signed.as_bytes()).unwrap();
        let call = gateway.hook("signed", "").bare().header("Content-Type", "application/json");
        let call = call.header("webhook-id", id).header("webhook-timestamp", at.to_string());
        Reply::of(call.header("webhook-signature", signature).body(sent.to_owned())).await.status
    };
    let body = r#"{"message":"ping"}"#;

    assert_eq!(call("msg_1", now, body, body).await, StatusCode::OK);
    assert_eq!(call("msg_2", now, body, r#"{"message":"pong"}"#).await, StatusCode::UNAUTHORIZED);
    assert_eq!(call("msg_3", now - 3600, body, body).await, StatusCode::UNAUTHORIZED);
}

/// K3: attachments are fields, never a marker in the text.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn attachments_are_structured() {
    let agent = ScriptedAgent::replying("seen").await;
    let gateway = Gateway::builder().config(&hook("")).config(&agent.section()).start().await;
    let body = json!({ "message": "look", "attachments": [
        { "name": "plan.pdf", "media_type": "application/pdf", "url": "https://files.example.org/plan.pdf" },
    ]});

    let reply = Reply::of(gateway.hook("test", TOKEN).call().json(&body)).await;

    assert_eq!(reply.text(), "seen");
    let sent = agent.calls()[0].body["messages"].to_string();
    assert!(sent.contains("plan.pdf"), "{sent}");
}

#[rstest]
#[case::an_unknown_key("[guard]\nhard_deadlin = \"1s\"\n", &["guard.hard_deadlin", "rejoinder.toml:"])]
#[case::a_bad_duration("[guard]\nhard_deadline = \"20 parsecs\"\n", &["guard.hard_deadline", "rejoinder.toml:"])]
#[case::two_agents_of_one_name(
    "[agents.a]\nkind = \"front-desk\"\n[agents.a]\nkind = \"front-desk\"\n", &["rejoinder.toml:"]
)]
#[case::a_default_agent_that_does_not_exist("[routing]\ndefault_agent = \"ghost\"\n", &["ghost", "rejoinder.toml:"])]
#[case::an_empty_token("[channels.webhook.x]\ntoken = \"\"\n", &["channels.webhook.x.token", "rejoinder.toml:"])]
#[case::a_platform_of_another_build("[channels.pager.x]\ntoken = \"t\"\n", &["pager"])]
fn a_broken_configuration_is_a_start_up_error(#[case] config: &str, #[case] says: &[&str]) {
    let gateway = Gateway::builder().config(config).prepare();

    let output = gateway.run(&["run"]);

    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(says.iter().all(|what| error.contains(what)), "{says:?} is not in:\n{error}");
}
