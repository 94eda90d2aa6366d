//! The channel suite, against the real routes. The receipt of an API is our own row: there are no messages that could fail.

use std::{
    collections::HashSet,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use axum::http::StatusCode;
use rejoinder_core::{
    Brief, ChannelAdapter, ChatKind, ConversationRef, Directed, EarlierLine, FileLimits, InboundEvent, Sender,
    SenderKind, SystemClock, Timestamp,
    conformance::channel::{Expected, Fixture, PlatformDouble, PlatformFailure},
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::{
    ApiTexts, CompletionsAdapter, CompletionsSection, CompletionsSettings, Models, OfferedAgent,
    access::TokenHolder,
    inbound::{self, Context},
};

struct Double {
    adapter: Arc<CompletionsAdapter>,
    address: SocketAddr,
    numbers: AtomicU64,
    acknowledged: Arc<Mutex<HashSet<String>>>,
}

async fn double() -> Double {
    let adapter = CompletionsAdapter::new(CompletionsSettings {
        name: "main".to_owned(),
        section: CompletionsSection::default(),
        token: Some("right".into()),
        models: Models::new([OfferedAgent { name: "main".into(), models: Vec::new() }]),
        guesses: Arc::default(),
        body_limit: 4096,
        files: FileLimits::default(),
        body_timeout: Duration::from_secs(1),
        public_url: None,
        texts: ApiTexts { deferral: String::new(), cancelled: String::new(), undeliverable: String::new() },
        clock: Arc::new(SystemClock),
        stop_waiting: tokio_util::sync::CancellationToken::new(),
    });
    let adapter = Arc::new(adapter);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("its address");
    let router = crate::router(Arc::clone(&adapter), Arc::new(|_| Box::pin(async { Ok(None) })));
    tokio::spawn(async move { axum::serve(listener, router).await });
    Double { adapter, address, numbers: AtomicU64::new(0), acknowledged: Arc::default() }
}

fn payload(key: &str, text: &str) -> String {
    let messages = [json!({ "role": "user", "content": text })];
    json!({ "key": key, "body": { "model": "main", "user": "ada", "stream": true, "messages": messages } }).to_string()
}

#[async_trait]
impl PlatformDouble for Double {
    fn adapter(&self) -> Arc<dyn ChannelAdapter> {
        Arc::clone(&self.adapter) as Arc<dyn ChannelAdapter>
    }

    fn conversation(&self) -> ConversationRef {
        ConversationRef::new(self.adapter.channel().clone(), "user:own/ada")
    }

    fn fixtures(&self) -> Vec<Fixture> {
        let event = |payload: &str, sender: &str, chat: &str, brief: Brief| {
            let external_id = self.normalise(payload).expect("an event").external_id;
            let name = sender.strip_prefix("own/").map(str::to_owned);
            let sender = Sender { id: sender.to_owned(), name, username: None, kind: SenderKind::Person };
            let address = ConversationRef::new(self.adapter.channel().clone(), &chat.replace("ID", &external_id));
            let agent = Some("main".into());
            Expected::Event(Box::new(InboundEvent {
                directed: Directed::Asked,
                text: "Hi".to_owned(),
                patience: Some(Duration::from_mins(9)),
                brief: Some(Box::new(Brief { agent, ..brief })),
                ..InboundEvent::new(address, ChatKind::Direct, external_id, sender, Timestamp::from_millis(0))
            }))
        };
        let of_ada = payload("1", "Hi");
        let told = json!({ "key": "2", "body": { "model": "main", "messages": [
            { "role": "system", "content": "Be brief." },
            { "role": "assistant", "content": "Yes?" },
            { "role": "user", "content": "Hi" },
        ] } });
        let told = told.to_string();
        let said_before = Some(vec![EarlierLine { is_agents: true, text: "Yes?".to_owned() }]);
        let brief = Brief { instructions: Some("Be brief.".to_owned()), said_before, ..Brief::default() };
        vec![
            Fixture {
                name: "of a user",
                expected: event(&of_ada, "own/ada", "user:own/ada", Brief::default()),
                payload: of_ada,
            },
            Fixture { name: "with a history", expected: event(&told, "own", "once:own/ID", brief), payload: told },
            Fixture { name: "not a request", payload: "{}".to_owned(), expected: Expected::Nothing },
        ]
    }

    fn normalise(&self, payload: &str) -> Option<InboundEvent> {
        let payload: Value = serde_json::from_str(payload).expect("JSON");
        let question =
            inbound::read(payload["body"].to_string().as_bytes(), &self.adapter.models, self.adapter.limits).ok()?;
        Some(question.into_event(&Context {
            channel: self.adapter.channel(),
            holder: &TokenHolder::channel(),
            key: payload["key"].as_str(),
            wait: self.adapter.wait,
            trace: None,
            language: None,
            now: Timestamp::from_millis(0),
        }))
    }

    fn fresh_payload(&self) -> String {
        payload(&format!("fresh {}", self.numbers.fetch_add(1, Ordering::SeqCst)), "Hello")
    }

    fn incoming_message_id(&self) -> String {
        "1".to_owned()
    }

    async fn fail_next(&self, _: PlatformFailure) -> bool {
        false
    }

    async fn shown(&self) -> Vec<String> {
        Vec::new()
    }

    async fn inject(&self, payload: String) {
        let request: Value = serde_json::from_str(&payload).expect("JSON");
        let (url, acknowledged) =
            (format!("http://{}/v1/chat/completions", self.address), Arc::clone(&self.acknowledged));
        tokio::spawn(async move {
            let http = reqwest::Client::builder().no_proxy().build().expect("an HTTP client");
            loop {
                let sent = http.post(&url).bearer_auth("right").json(&request["body"]);
                let sent = sent.header("idempotency-key", request["key"].as_str().expect("a key")).send().await;
                if sent.is_ok_and(|response| response.status() != StatusCode::SERVICE_UNAVAILABLE) {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            acknowledged.lock().expect("nobody panicked").insert(payload);
        });
    }

    async fn is_acknowledged(&self, payload: &str) -> bool {
        self.acknowledged.lock().expect("nobody panicked").contains(payload)
    }

    async fn fall_silent(&self) {}

    /// There is nothing to wait for.
    async fn has_hanging_call(&self) -> bool {
        true
    }
}

rejoinder_core::channel_conformance!(double());
