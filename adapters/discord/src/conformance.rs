//! Runs the channel conformance suite against the Discord server of `tests/discord`.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use rejoinder_core::{
    Amends, ChannelAdapter, ChannelId, ChatKind, Clock, ConversationRef, Directed, InboundEvent, Scope, Sender,
    SenderKind, SystemClock, Timestamp,
    conformance::channel::{Expected, Fixture, PlatformDouble, PlatformFailure},
};
use rejoinder_discord_server::{Channel, DiscordServer, Fault, Interaction, Person, Scope as Limited};
use rejoinder_kit::SentMessages;
use serde_json::{Value, json};
use url::Url;

use crate::{
    Discord, DiscordSection, Pace, check::Identity, directory::Directory, inbound::Reader, snowflake::Snowflake,
};

/// The system clock plus an offset.
#[derive(Debug, Default)]
struct LeadingClock(AtomicI64);

#[async_trait]
impl Clock for LeadingClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(SystemClock.now().as_millis() + self.0.load(Ordering::SeqCst))
    }

    fn uptime(&self) -> Duration {
        SystemClock.uptime()
    }

    fn boottime(&self) -> Duration {
        SystemClock.boottime()
    }

    async fn sleep(&self, duration: Duration) {
        SystemClock.sleep(duration).await;
    }
}

struct Double {
    server: DiscordServer,
    clock: Arc<LeadingClock>,
    adapter: Arc<Discord>,
    ada: Person,
    chat: Channel,
    asked: String,
    brought: Mutex<Option<Interaction>>,
}

async fn double() -> Double {
    let server = DiscordServer::start().await;
    let clock = Arc::<LeadingClock>::default();
    let options = DiscordSection {
        token: server.token().into(),
        api_url: Url::parse(server.api_url()).expect("an address"),
        pace: Pace::Server,
        ..DiscordSection::default()
    };
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    let channel = ChannelId::new("discord", "main");
    let adapter = Discord::new(channel, options, Arc::clone(&clock) as _, http);
    let ada = server.person("Ada").await;
    let chat = ada.direct().await;
    let asked = ada.dm("hello").await.id;
    Double { server, clock, adapter: Arc::new(adapter), ada, chat, asked, brought: Mutex::default() }
}

impl Double {
    fn frame(kind: &str, data: &Value) -> String {
        json!({"op": 0, "t": kind, "s": 5, "d": data}).to_string()
    }

    fn message(&self, number: u64, fields: Value) -> Value {
        let Value::Object(fields) = fields else { unreachable!("fields are an object") };
        let author = json!({"id": self.ada.id(), "username": self.ada.username()});
        let mut message = json!({"id": number.to_string(), "channel_id": self.chat.id(), "author": author, "type": 0});
        message.as_object_mut().expect("an object").extend(fields);
        message
    }

    fn event(&self, number: u64, text: &str) -> InboundEvent {
        InboundEvent {
            message_id: Some(number.to_string()),
            directed: Directed::DirectChat,
            sent_at: Snowflake::parse(&number.to_string()).map(Snowflake::created_at),
            text: text.to_owned(),
            ..InboundEvent::new(
                self.conversation(),
                ChatKind::Direct,
                format!("{}:{number}", self.chat.id()),
                Sender {
                    id: self.ada.id().to_owned(),
                    name: Some(self.ada.username().to_owned()),
                    username: Some(self.ada.username().to_owned()),
                    kind: SenderKind::Person,
                },
                Timestamp::from_millis(0),
            )
        }
    }
}

#[async_trait]
impl PlatformDouble for Double {
    fn adapter(&self) -> Arc<dyn ChannelAdapter> {
        Arc::clone(&self.adapter) as Arc<dyn ChannelAdapter>
    }

    fn conversation(&self) -> ConversationRef {
        ConversationRef::new(self.adapter.channel().clone(), self.chat.id())
    }

    fn fixtures(&self) -> Vec<Fixture> {
        let fixture = |name, kind, data: &Value, expected| Fixture { name, payload: Self::frame(kind, data), expected };
        let us = json!({"id": self.server.bot_id(), "username": "us", "bot": true});
        let edited = json!({"content": "hello!", "edited_timestamp": "2026-01-01T00:00:01+00:00"});
        let edit =
            InboundEvent { revision: 1_767_225_601_000, amends: Some(Amends::Replaces), ..self.event(2, "hello!") };
        let command = json!({
            "id": "4", "application_id": self.server.application_id(), "type": 2, "token": "secret",
            "channel_id": self.chat.id(), "user": {"id": self.ada.id(), "username": self.ada.username()},
            "data": {"name": "ask", "options": [{"name": "question", "type": 3, "value": "why?"}]},
        });
        let asked = InboundEvent {
            external_id: "interaction:4".to_owned(),
            message_id: Some("interaction:4".to_owned()),
            directed: Directed::Command,
            sent_at: None,
            ..self.event(4, "why?")
        };
        vec![
            fixture(
                "a message",
                "MESSAGE_CREATE",
                &self.message(2, json!({"content": "hello"})),
                Expected::Event(Box::new(self.event(2, "hello"))),
            ),
            fixture(
                "our own",
                "MESSAGE_CREATE",
                &self.message(3, json!({"content": "hello", "author": us})),
                Expected::OurOwn,
            ),
            fixture("an edit", "MESSAGE_UPDATE", &self.message(2, edited), Expected::Event(Box::new(edit))),
            fixture("a command", "INTERACTION_CREATE", &command, Expected::Event(Box::new(asked))),
            fixture(
                "a preview",
                "MESSAGE_UPDATE",
                &self.message(2, json!({"embeds": [{}], "edited_timestamp": null})),
                Expected::Nothing,
            ),
            fixture("of another year", "SOMETHING_ELSE", &json!({"id": "6"}), Expected::Nothing),
        ]
    }

    fn normalise(&self, payload: &str) -> Option<InboundEvent> {
        let frame: Value = serde_json::from_str(payload).expect("a frame");
        let id = |text: &str| Snowflake::parse(text).expect("an id");
        let me = Identity { user: id(self.server.bot_id()), application: id(self.server.application_id()) };
        let (directory, sent, options) = (Directory::default(), SentMessages::default(), DiscordSection::default());
        let reader = Reader {
            channel: self.adapter.channel(),
            me,
            options: &options,
            directory: &directory,
            sent: &sent,
            now: Timestamp::from_millis(0),
        };
        let read = reader.read(frame["t"].as_str()?, &frame["d"].to_string(), frame["s"].as_u64()?)?;
        Some(read.event)
    }

    fn fresh_payload(&self) -> String {
        json!({"question": "stay"}).to_string()
    }

    fn incoming_message_id(&self) -> String {
        self.asked.clone()
    }

    async fn fail_next(&self, failure: PlatformFailure) -> bool {
        // Lets limits from earlier failures end.
        self.clock.0.fetch_add(60_000, Ordering::SeqCst);
        let send = || Fault::on("POST", "/channels/*/messages");
        let fault = match failure {
            PlatformFailure::Limit { retry_after, scope } => {
                send().rate_limited(retry_after, if scope == Scope::Account { Limited::Global } else { Limited::User })
            }
            PlatformFailure::LoseResponse => send().executed_then_dropped(),
            PlatformFailure::Refuse => send().refused(403, 50007, "Cannot send messages to this user"),
            PlatformFailure::Unauthorized => send().refused(401, 0, "401: Unauthorized"),
            // Discord never reports this. The tests of `api` cover requests that are not written.
            PlatformFailure::Fail => return false,
        };
        self.server.fault(fault).await;
        true
    }

    async fn shown(&self) -> Vec<String> {
        self.server.bot_texts(&self.chat).await
    }

    async fn inject(&self, payload: String) {
        // Messages are not acknowledged on Discord; a command is, within three seconds.
        while self.server.sessions().await.connected == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let options = serde_json::from_str(&payload).expect("options");
        let interaction = self.ada.slash(&self.chat, "ask", options).await;
        *self.brought.lock().expect("never poisoned") = Some(interaction);
    }

    async fn is_acknowledged(&self, _payload: &str) -> bool {
        let brought = self.brought.lock().expect("never poisoned").clone();
        self.server.interaction(&brought.expect("something was brought")).await.acknowledged
    }

    async fn fall_silent(&self) {
        self.server.fault(Fault::on_everything().silent().always()).await;
    }

    async fn has_hanging_call(&self) -> bool {
        self.server.calls().await.iter().any(|call| call.fault.is_some())
    }
}

rejoinder_core::channel_conformance!(double());
