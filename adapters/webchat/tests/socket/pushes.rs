//! Browsers that are told of answers while no page shows their conversation.

use axum::{
    Router,
    body::Bytes,
    extract::{Path, State},
    http::{HeaderMap, StatusCode},
    routing::post,
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::mpsc, time::timeout};

use super::{
    ELSEWHERE, HERE,
    support::{Chat, PATIENCE, Page},
};

/// The keys of the browser in RFC 8291.
const KEY: &str = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4";
const AUTH: &str = "BTBZMqHH6r4Tts7J_aSIgg";

/// A push service, which knows no browser that is named `gone`.
struct PushService {
    url: String,
    sent: mpsc::UnboundedReceiver<Sent>,
}

#[derive(Debug)]
struct Sent {
    to: String,
    headers: HeaderMap,
    body: Bytes,
}

impl PushService {
    async fn start() -> Self {
        let (sender, sent) = mpsc::unbounded_channel();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/push/", listener.local_addr().expect("an address"));
        let router = Router::new().route("/push/{to}", post(take)).with_state(sender);
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, sent }
    }

    fn endpoint(&self, browser: &str) -> String {
        format!("{}{browser}", self.url)
    }

    async fn next(&mut self) -> Sent {
        timeout(PATIENCE, self.sent.recv()).await.expect("it is sent in time").expect("the service runs")
    }
}

async fn take(
    State(sender): State<mpsc::UnboundedSender<Sent>>,
    Path(to): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    let status = if to == "gone" { StatusCode::GONE } else { StatusCode::CREATED };
    // A test may have ended.
    let _ = sender.send(Sent { to, headers, body });
    status
}

async fn subscribe(page: &mut Page, endpoint: &str) -> Value {
    page.says(&json!({"type": "subscribe", "id": endpoint, "endpoint": endpoint, "key": KEY, "auth": AUTH})).await;
    loop {
        let frame = page.next().await.expect("the socket is open");
        if frame["id"] == endpoint {
            return frame;
        }
    }
}

/// Says something that is answered when the agent is released, and leaves.
async fn asks_and_leaves(chat: &Chat, mut page: Page, id: &str, conversation: &str) {
    page.says_text(id, "wait").await;
    page.hears("accepted").await;
    drop(page);
    chat.until_left(conversation).await;
}

#[tokio::test]
async fn a_browser_is_told_of_an_answer_that_its_page_does_not_show() {
    let mut service = PushService::start().await;
    let chat = Chat::pushing(&service.url).await;
    let (mut page, welcome) = chat.page(HERE).await;
    assert_eq!(welcome["push_key"].as_str().map(str::len), Some(87));
    page.says_text("message-1", "hello").await;
    page.sees("answered").await;
    assert_eq!(subscribe(&mut page, &service.endpoint("one")).await["type"], "accepted");

    // A page shows this one.
    page.says_text("message-2", "hello again").await;
    page.sees("answered").await;
    asks_and_leaves(&chat, page, "message-3", HERE).await;
    chat.release_agent();

    let sent = service.next().await;
    assert_eq!((&*sent.to, &sent.headers["content-encoding"]), ("one", &"aes128gcm".parse().expect("a value")));
    let authorization = sent.headers["authorization"].to_str().expect("text");
    assert!(
        authorization.starts_with("vapid t=") && authorization.ends_with(welcome["push_key"].as_str().expect("a key"))
    );
    assert_eq!(sent.headers["topic"].to_str().map(str::len).ok(), Some(32));
    let chat = chat.address_of(HERE).chat;
    let text = json!({"path": "/chat", "conversation": chat, "title": "Chat & <b>tests</b>", "text": "waited"});
    // Salt, size, the length of a key, the key, the text, what ends it, and a tag.
    assert_eq!(sent.body.len(), 16 + 4 + 1 + 65 + text.to_string().len() + 1 + 16);
}

#[tokio::test]
async fn a_browser_that_wants_nothing_any_more_is_not_told_again() {
    let mut service = PushService::start().await;
    let chat = Chat::pushing(&service.url).await;
    let (mut page, _) = chat.page(HERE).await;
    page.says_text("message-1", "hello").await;
    page.sees("answered").await;
    let [gone, left, stays] = ["gone", "left", "stays"].map(|name| service.endpoint(name));
    for endpoint in [&gone, &left, &stays] {
        subscribe(&mut page, endpoint).await;
    }
    page.says(&json!({"type": "unsubscribe", "id": "off", "endpoint": left})).await;
    page.hears("accepted").await;

    asks_and_leaves(&chat, page, "message-2", HERE).await;
    chat.release_agent();

    let mut told = [service.next().await.to, service.next().await.to];
    told.sort();
    assert_eq!(told, ["gone", "stays"]);
    chat.until_told(HERE, &[stays]).await;
}

/// Who deletes a conversation is not told of it any more, and an endpoint that a stranger may not choose is not asked.
#[tokio::test]
async fn what_is_not_wanted_is_not_stored() {
    let service = PushService::start().await;
    let chat = Chat::pushing(&service.url).await;
    let (mut page, _) = chat.page(HERE).await;
    page.says_text("message-1", "hello").await;
    page.sees("answered").await;
    let refused = subscribe(&mut page, "http://127.0.0.1:1/push/one").await;
    assert_eq!((&refused["type"], &refused["code"]), (&json!("error"), &json!("bad_subscription")));
    subscribe(&mut page, &service.endpoint("one")).await;

    let (mut other, _) = chat.page(ELSEWHERE).await;
    other.says(&json!({"type": "delete", "id": "delete-1", "conversation": HERE})).await;
    other.hears("accepted").await;

    chat.until_told(HERE, &[]).await;
}
