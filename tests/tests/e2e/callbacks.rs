//! A hook's callback: deliveries to a receiver that misbehaves.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::post,
};
use rejoinder_tests::{Gateway, ScriptedAgent, eventually};
use serde_json::Value;
use tokio::net::TcpListener;

use crate::{
    TOKEN,
    example::{channel, server},
    hook,
};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A callback that the receiver got.
#[derive(Clone, Debug)]
struct Posted {
    id: String,
    body: Value,
    verified: bool,
}

/// A status and a `Retry-After` in seconds.
type Answer = (u16, Option<&'static str>);

#[derive(Clone, Default)]
pub(crate) struct Receiver {
    port: u16,
    posted: Arc<Mutex<Vec<Posted>>>,
    /// Its next responses, in order; then 204.
    answers: Arc<Mutex<VecDeque<Answer>>>,
}

impl Receiver {
    pub(crate) async fn start(answers: &[Answer]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let receiver = Self {
            port: listener.local_addr().unwrap().port(),
            answers: Arc::new(Mutex::new(answers.iter().copied().collect())),
            ..Self::default()
        };
        let router = Router::new().route("/", post(receive)).with_state(receiver.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        receiver
    }

    fn section(&self) -> String {
        hook(&format!("callback_url = \"http://127.0.0.1:{}/\"\ncallback_secret = \"{SECRET}\"", self.port))
    }

    /// A place for words that posts here.
    fn words(&self) -> String {
        format!("[channels.words.archive]\nurl = \"http://127.0.0.1:{}/\"\nsecret = \"{SECRET}\"\n", self.port)
    }

    fn posted(&self) -> Vec<Posted> {
        self.posted.lock().unwrap().clone()
    }

    async fn until_posted(&self, count: usize) -> Vec<Posted> {
        eventually("the callback is posted", async || Some(self.posted()).filter(|posted| posted.len() >= count)).await
    }
}

async fn receive(State(receiver): State<Receiver>, headers: HeaderMap, body: Bytes) -> Response {
    let verified = standardwebhooks::Webhook::new(SECRET).unwrap().verify(&body, &headers).is_ok();
    receiver.posted.lock().unwrap().push(Posted {
        id: headers["webhook-id"].to_str().unwrap().to_owned(),
        body: serde_json::from_slice(&body).unwrap(),
        verified,
    });
    let (status, retry_after) = receiver.answers.lock().unwrap().pop_front().unwrap_or((204, None));
    let mut response = StatusCode::from_u16(status).unwrap().into_response();
    if let Some(seconds) = retry_after {
        response.headers_mut().insert("retry-after", seconds.parse().unwrap());
    }
    response
}

pub(crate) async fn gateway(receiver: &Receiver, agent: &ScriptedAgent) -> Gateway {
    Gateway::builder().config(&receiver.section()).config(&agent.section()).start().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_answer_is_posted_and_signed() {
    let (receiver, agent) = (Receiver::start(&[]).await, ScriptedAgent::replying("posted").await);
    let gateway = gateway(&receiver, &agent).await;

    let reply = gateway.hook("test", TOKEN).ask("hello").await;
    let posted = receiver.until_posted(1).await;

    assert!(posted[0].verified);
    assert_eq!(
        (posted[0].body["turn_id"].as_str(), posted[0].body["reply"].as_str()),
        (Some(&*reply.turn()), Some("posted"))
    );
}

/// H2, I5: a receiver that is briefly unavailable gets the callback later with the same id; each attempt is a row.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_receiver_that_is_down_gets_it_later_once() {
    let receiver = Receiver::start(&[(500, None), (503, None)]).await;
    let agent = ScriptedAgent::replying("posted").await;
    let gateway = gateway(&receiver, &agent).await;

    let reply = gateway.hook("test", TOKEN).ask("hello").await;
    let posted = receiver.until_posted(3).await;

    assert!(posted.iter().all(|post| post.id == posted[0].id && post.verified));
    let explained = eventually("the receipt is stored", async || {
        Some(gateway.explain(&reply.turn())).filter(|explained| explained.contains("acknowledged"))
    })
    .await;
    assert!(explained.contains("500") && explained.contains("503"), "{explained}");
}

/// D6: a permanent error is not retried; the hook's answer stays available.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_receiver_that_refuses_is_not_asked_again() {
    let receiver = Receiver::start(&[(410, None)]).await;
    let agent = ScriptedAgent::replying("posted").await;
    let mut gateway = gateway(&receiver, &agent).await;
    let hook = gateway.hook("test", TOKEN);

    let reply = hook.ask("hello").await;
    receiver.until_posted(1).await;
    eventually("the error is stored", async || gateway.explain(&reply.turn()).contains("410").then_some(())).await;
    gateway.kill();
    gateway.restart().await;
    let again = hook.result(&reply.turn(), 0).await;

    assert_eq!(again.text(), "posted");
    assert_eq!(receiver.posted().len(), 1);
}

/// A callback that was given up is found, sent again by the operator, and leaves the list.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_callback_that_was_given_up_is_listed_and_sent_again() {
    let receiver = Receiver::start(&[(410, None)]).await;
    let agent = ScriptedAgent::replying("posted").await;
    let gateway = gateway(&receiver, &agent).await;
    let dead = async || gateway.admin("dead-letters").await["items"].as_array().expect("a list").clone();

    let reply = gateway.hook("test", TOKEN).ask("hello").await;
    let letter = eventually("it is given up", async || dead().await.pop()).await;
    let id = letter["id"].as_str().expect("an id");
    assert_eq!(letter["turn_id"], *reply.turn());
    assert!(gateway.output_of(&["dead-letters", "list"]).contains("410"));
    let metrics = eventually("the metrics count it", async || {
        let response = gateway.http().get(format!("{}/metrics", gateway.url())).send().await.ok()?;
        response.text().await.ok().filter(|metrics| metrics.contains("rejoinder_dead_callbacks 1\n"))
    })
    .await;
    assert!(metrics.contains("rejoinder_dead_callbacks_total{channel=\"webhook.test\"} 1\n"), "{metrics}");

    assert!(gateway.output_of(&["dead-letters", "retry", id]).contains("sent again"));

    let posted = receiver.until_posted(2).await;
    assert!(posted.iter().all(|post| post.id == id && post.verified), "{posted:?}");
    eventually("the list is empty", async || dead().await.is_empty().then_some(())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_callback_of_a_hook_that_is_gone_is_not_said_to_be_sent() {
    let receiver = Receiver::start(&[(410, None)]).await;
    let agent = ScriptedAgent::replying("posted").await;
    let mut gateway = gateway(&receiver, &agent).await;
    gateway.hook("test", TOKEN).ask("hello").await;
    let dead = async || gateway.admin("dead-letters").await["items"].as_array().expect("a list").clone();
    let letter = eventually("it is given up", async || dead().await.pop()).await;
    let id = letter["id"].as_str().expect("an id");
    gateway.kill();
    gateway.reconfigure(|toml| toml.replace("[channels.webhook.test]", "[channels.webhook.other]"));
    gateway.restart().await;

    let refused = gateway.run(&["dead-letters", "retry", id]);

    assert_eq!(refused.status.code(), Some(1));
    let why = String::from_utf8_lossy(&refused.stderr);
    assert!(why.contains("is not configured"), "{why}");
    let listed = gateway.admin("dead-letters").await;
    assert_eq!(listed["items"][0]["id"], id);
}

/// D1: an attempt without a result is repeated with the same id.
#[rstest::rstest]
#[case::before_the_bytes("attempt_started:1", 1)]
#[case::after_the_bytes("attempt_ended:1", 2)]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_crash_around_an_attempt_ends_in_one_delivery(#[case] point: &str, #[case] posts: usize) {
    let (receiver, agent) = (Receiver::start(&[]).await, ScriptedAgent::replying("posted").await);
    let mut gateway = Gateway::builder().config(&receiver.section()).config(&agent.section()).prepare();

    gateway.spawn_crashing_at(point);
    gateway.until_ready().await;
    // The hook's response may or may not be sent before the crash.
    let _answer = gateway.hook("test", TOKEN).message("hello").send().await;
    gateway.until_crashed().await;
    gateway.restart().await;
    let posted = receiver.until_posted(posts).await;

    assert!(posted.iter().all(|post| post.id == posted[0].id && post.verified), "{posted:?}");
}

/// H4, H5: the receiver's `Retry-After` is respected across a restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_limit_is_waited_out_also_over_a_restart() {
    let receiver = Receiver::start(&[(429, Some("2"))]).await;
    let agent = ScriptedAgent::replying("posted").await;
    let mut gateway = gateway(&receiver, &agent).await;

    let reply = gateway.hook("test", TOKEN).ask("hello").await;
    receiver.until_posted(1).await;
    let limited = std::time::Instant::now();
    eventually("the limit is stored", async || gateway.explain(&reply.turn()).contains("429").then_some(())).await;
    gateway.kill();
    gateway.restart().await;
    receiver.until_posted(2).await;

    assert!(limited.elapsed() >= std::time::Duration::from_millis(1500), "it did not wait: {:?}", limited.elapsed());
}

/// H2. An agent's words about an event are posted once, signed, and the recipient's chat hears nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_words_about_an_event_are_posted_to_a_url() {
    let receiver = Receiver::start(&[(500, None)]).await;
    let (server, agent) = (server().await, ScriptedAgent::replying("It matters.").await);
    let keys = "deliver_to = \"example.main/ada\"\nprompt = \"Judge it.\"\nwords_to = \"words.archive\"\n";
    let gateway = Gateway::builder()
        .config(&channel(&server))
        .config(&receiver.words())
        .config(&hook(keys))
        .config(&agent.section())
        .start()
        .await;

    let taken = gateway.hook("test", TOKEN).call().header("content-type", "text/plain").body("It burns.").send().await;
    assert_eq!(taken.expect("it answers").status(), StatusCode::ACCEPTED);
    let posted = receiver.until_posted(2).await;
    gateway.until_settled().await;

    assert!(posted.iter().all(|post| post.id == posted[0].id && post.verified));
    let Posted { body, .. } = &posted[1];
    assert_eq!((&body["reply"], &body["about"]), (&"It matters.".into(), &"example.main/ada".into()), "{body}");
    assert_eq!(server.shown("ada"), [""; 0]);
}
