//! The channel conformance suite, against a Synapse.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use matrix_sdk::config::SyncSettings;
use rejoinder_config::People;
use rejoinder_core::{
    Amends, ChannelAdapter, ChannelId, ChatKind, ConversationRef, Directed, InboundEvent, Scope, Sender, SenderKind,
    SystemClock, Timestamp,
    conformance::channel::{Expected, Fixture, PlatformDouble, PlatformFailure},
};
use rejoinder_matrix_server::{Call, Fault, Homeserver, Person, Proxy};
use serde_json::{Value, json};
use tempfile::TempDir;
use url::Url;

use crate::{
    AutoJoin, Matrix, MatrixSection, Session,
    inbound::{EventContext, normalise},
    memory::RememberedEvent,
    section::Pace,
    session,
};

struct Double {
    proxy: Proxy,
    adapter: Arc<Matrix>,
    ada: Person,
    room: String,
    asked: String,
    numbers: AtomicU64,
    _folder: TempDir,
}

async fn double() -> Double {
    let homeserver = Homeserver::shared().await;
    let (proxy, account) = (homeserver.proxy().await, homeserver.account("agent").await);
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("matrix");
    let options = MatrixSection {
        homeserver: Url::parse(proxy.url()).expect("an address"),
        user: account.user.clone(),
        password: Some(account.password.as_str().into()),
        auto_join: AutoJoin::Always,
        people: People { dm_policy: rejoinder_core::DirectPolicy::Open, ..People::default() },
        sync_timeout: Duration::from_secs(1),
        // Drafts are checked after more messages than leave room for one.
        pace: Pace::Server,
        ..MatrixSection::default()
    };
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    let device = session::Device::Folder(place.clone());
    let client =
        session::open(&options, &device, &http, None).await.map_err(|error| error.to_string()).expect("a session");
    let channel = ChannelId::new("matrix", "main");
    let adapter = Arc::new(Matrix::new(channel, options, place, Arc::new(SystemClock), http));
    let ada = homeserver.person("ada").await;
    let room = ada.direct(&account.user).await;
    let sync = || client.sync_once(SyncSettings::new().timeout(Duration::ZERO));
    sync().await.expect("a sync");
    client.invited_rooms().first().expect("an invitation").join().await.expect("the account may join");
    let asked = ada.says(&room, "hello").await;
    sync().await.expect("a sync");
    adapter.set_session(Some(Arc::new(Session { client, device, user: account.user, name: None })));
    Double { proxy, adapter, ada, room, asked, numbers: AtomicU64::new(0), _folder: folder }
}

fn text(body: &str) -> Value {
    json!({ "msgtype": "m.text", "body": body })
}

fn message_json(id: &str, sender: &str, content: &Value) -> String {
    json!({
        "type": "m.room.message", "event_id": id, "sender": sender, "origin_server_ts": 1_700_000_000_000_i64,
        "content": content,
    })
    .to_string()
}

impl Double {
    fn me(&self) -> String {
        self.adapter.session().expect("a session").me().to_owned()
    }

    fn event(&self, id: &str, text: &str) -> InboundEvent {
        let sender = Sender {
            id: self.ada.user().to_owned(),
            name: Some("Ada".to_owned()),
            username: None,
            kind: SenderKind::Person,
        };
        let (conversation, chat) = (self.conversation(), ChatKind::Direct);
        InboundEvent {
            message_id: Some(id.to_owned()),
            directed: Directed::DirectChat,
            sent_at: Some(Timestamp::from_millis(1_700_000_000_000)),
            text: text.to_owned(),
            ..InboundEvent::new(conversation, chat, id.to_owned(), sender, Timestamp::from_millis(0))
        }
    }
}

#[async_trait]
impl PlatformDouble for Double {
    fn adapter(&self) -> Arc<dyn ChannelAdapter> {
        Arc::clone(&self.adapter) as Arc<dyn ChannelAdapter>
    }

    fn conversation(&self) -> ConversationRef {
        ConversationRef::new(self.adapter.channel().clone(), &self.room)
    }

    fn fixtures(&self) -> Vec<Fixture> {
        let fixture = |name, payload: String, expected| Fixture { name, payload, expected };
        let ada = self.ada.user();
        let edit = json!({
            "msgtype": "m.text", "body": "* hello!", "m.new_content": text("hello!"),
            "m.relates_to": { "rel_type": "m.replace", "event_id": "$1" },
        });
        let edited =
            InboundEvent { revision: 1_700_000_000_000, amends: Some(Amends::Replaces), ..self.event("$1", "hello!") };
        let notice = self.event("$4", "the build is done");
        let notice = InboundEvent { sender: Sender { kind: SenderKind::OtherAgent, ..notice.sender }, ..notice };
        let state = json!({
            "type": "m.room.topic", "event_id": "$5", "sender": ada, "state_key": "", "content": { "topic": "cats" },
        });
        vec![
            fixture(
                "a message",
                message_json("$1", ada, &text("hello")),
                Expected::Event(Box::new(self.event("$1", "hello"))),
            ),
            fixture("our own", message_json("$2", &self.me(), &text("hello")), Expected::OurOwn),
            fixture("an edit", message_json("$3", ada, &edit), Expected::Event(Box::new(edited))),
            fixture(
                "a notice",
                message_json("$4", ada, &json!({ "msgtype": "m.notice", "body": "the build is done" })),
                Expected::Event(Box::new(notice)),
            ),
            fixture("a new topic", state.to_string(), Expected::Nothing),
        ]
    }

    fn normalise(&self, payload: &str) -> Option<InboundEvent> {
        let me = self.me();
        let related = RememberedEvent {
            sender: self.ada.user().to_owned(),
            text: "hello".to_owned(),
            thread: None,
            question: None,
            directed: None,
            is_redacted: false,
        };
        let context = EventContext {
            channel: self.adapter.channel(),
            me: &me,
            names: &[],
            room: &self.room,
            chat: ChatKind::Direct,
            sender_name: Some("Ada".to_owned()),
            related: Some(&related),
            related_name: None,
            now: Timestamp::from_millis(0),
            raw: payload,
        };
        normalise(&serde_json::from_str(payload).ok()?, &context)
    }

    fn fresh_payload(&self) -> String {
        format!("hello again {}", self.numbers.fetch_add(1, Ordering::SeqCst))
    }

    fn incoming_message_id(&self) -> String {
        self.asked.clone()
    }

    async fn fail_next(&self, failure: PlatformFailure) -> bool {
        let says = |status: u16, body: Value| Fault::Answer { status, body };
        let fault = match failure {
            // Synapse limits the sender in all rooms.
            PlatformFailure::Limit { scope: Scope::Conversation, .. } => return false,
            PlatformFailure::Limit { retry_after, scope: Scope::Account } => {
                let wait = u64::try_from(retry_after.as_millis()).expect("a short pause");
                says(429, json!({ "errcode": "M_LIMIT_EXCEEDED", "error": "Too many", "retry_after_ms": wait }))
            }
            PlatformFailure::LoseResponse => Fault::LoseAnswer,
            PlatformFailure::Refuse => {
                says(403, json!({ "errcode": "M_FORBIDDEN", "error": "You are not in the room" }))
            }
            PlatformFailure::Unauthorized => {
                says(401, json!({ "errcode": "M_UNKNOWN_TOKEN", "error": "Who are you?" }))
            }
            PlatformFailure::Fail => {
                let admin = "mailto:ada@example.org";
                says(403, json!({ "errcode": "M_RESOURCE_LIMIT_EXCEEDED", "error": "full", "admin_contact": admin }))
            }
        };
        self.proxy.fail("PUT", "/send/m.room.message/", 1, fault);
        true
    }

    async fn shown(&self) -> Vec<String> {
        self.ada.hears(&self.room, &self.me()).await
    }

    /// After the adapter has looked, at its first start, where the room ends: what was sent before that is not accepted.
    async fn inject(&self, payload: String) {
        let is_look = |call: &Call| call.path.contains("/messages") && call.status == 200;
        self.proxy.until("the adapter looks where the room ends", is_look).await;
        self.ada.says(&self.room, &payload).await;
    }

    /// The next sync request, which continues after the response with the event, acknowledges it.
    async fn is_acknowledged(&self, payload: &str) -> bool {
        let calls = self.proxy.calls();
        let syncs: Vec<_> = calls.iter().filter(|call| call.path.contains("/sync?")).collect();
        let brought = syncs.iter().position(|call| call.answer.to_string().contains(payload));
        let Some((index, batch)) = brought.and_then(|at| Some((at, syncs[at].answer["next_batch"].as_str()?))) else {
            return false;
        };
        syncs[index + 1..].iter().any(|call| call.path.contains(&format!("since={batch}")))
    }

    async fn fall_silent(&self) {
        for method in ["GET", "POST", "PUT"] {
            self.proxy.fail(method, "/", usize::MAX, Fault::Stall);
        }
    }

    async fn has_hanging_call(&self) -> bool {
        self.proxy.calls().iter().any(|call| call.status == 0)
    }
}

rejoinder_core::channel_conformance!(double());
