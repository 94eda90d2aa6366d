//! Runs the channel conformance suite against the Bot API double.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use rejoinder_core::{
    ChannelAdapter, ConversationRef, Directed, EventKind, InboundEvent, Scope, Sender, SenderKind, Timestamp,
    conformance::channel::{Expected, Fixture, PlatformDouble, PlatformFailure, text},
};
use rejoinder_telegram_double::{ApiError, Fault, Outage, Person, TelegramDouble};
use serde_json::{Value, json};

use crate::{
    Telegram, TelegramSection,
    check::BotProfile,
    inbound::{OwnMessages, Reader},
    tests,
};

struct Double {
    telegram: TelegramDouble,
    adapter: Arc<Telegram>,
    ada: Person,
    asked: i64,
    numbers: AtomicI64,
}

async fn double() -> Double {
    let telegram = TelegramDouble::start().await;
    let options = TelegramSection { token: telegram.token().into(), ..TelegramSection::default() };
    let adapter = Arc::new(tests::bot_of(&telegram.url(), options));
    let ada = telegram.person_called("Ada", "ada_l");
    let asked = ada.says("hello");
    Double { telegram, adapter, ada, asked, numbers: AtomicI64::new(9_000) }
}

impl Double {
    fn me(&self) -> BotProfile {
        let bot = self.telegram.bot();
        BotProfile { id: bot.id, username: bot.username, ..BotProfile::default() }
    }

    fn from(&self) -> Value {
        json!({"id": self.ada.id(), "is_bot": false, "first_name": "Ada", "username": "ada_l"})
    }

    fn chat(&self) -> Value {
        json!({"id": self.ada.id(), "type": "private", "first_name": "Ada"})
    }

    fn message(&self, number: i64, fields: Value) -> String {
        let Value::Object(fields) = fields else { unreachable!("fields are an object") };
        let mut message =
            json!({"message_id": number, "date": 1_700_000_000, "from": self.from(), "chat": self.chat()});
        message.as_object_mut().expect("an object").extend(fields);
        json!({"update_id": number, "message": message}).to_string()
    }

    fn event(&self, number: i64, text: &str) -> InboundEvent {
        InboundEvent {
            message_id: Some(number.to_string()),
            directed: Directed::DirectChat,
            sent_at: Some(Timestamp::from_millis(1_700_000_000_000)),
            text: text.to_owned(),
            ..InboundEvent::new(
                self.conversation(),
                rejoinder_core::ChatKind::Direct,
                format!("{}:{number}", self.ada.id()),
                Sender {
                    id: self.ada.id().to_string(),
                    name: Some("Ada".to_owned()),
                    username: Some("ada_l".to_owned()),
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
        ConversationRef::new(self.adapter.channel().clone(), &self.ada.id().to_string())
    }

    fn fixtures(&self) -> Vec<Fixture> {
        let fixture = |name, payload: String, expected| Fixture { name, payload, expected };
        let us = json!({"id": self.telegram.bot().id, "is_bot": true, "first_name": "Rejoinder"});
        let edited = json!({"update_id": 4, "edited_message": {"message_id": 2, "date": 1, "edit_date": 5,
            "from": self.from(), "chat": self.chat(), "text": "hello!"}});
        let sent_at = Some(Timestamp::from_millis(1000));
        let edit = InboundEvent {
            sent_at,
            revision: 5,
            amends: Some(rejoinder_core::Amends::Replaces),
            ..self.event(2, "hello!")
        };
        let unknown = InboundEvent {
            external_id: "update:5".to_owned(),
            kind: EventKind::Other,
            chat: rejoinder_core::ChatKind::Group,
            message_id: None,
            sent_at: None,
            sender: Sender { id: "0".to_owned(), name: None, username: None, kind: SenderKind::OtherAgent },
            directed: Directed::Ambient,
            ..self.event(5, "")
        };
        vec![
            fixture(
                "a message",
                self.message(2, json!({"text": "hello"})),
                Expected::Event(Box::new(self.event(2, "hello"))),
            ),
            fixture("our own", self.message(3, json!({"text": "hello", "from": us})), Expected::OurOwn),
            fixture("an edit", edited.to_string(), Expected::Event(Box::new(edit))),
            fixture(
                "of another year",
                json!({"update_id": 5, "of_another_year": {"chat": self.chat()}}).to_string(),
                Expected::Event(Box::new(unknown)),
            ),
        ]
    }

    fn normalise(&self, payload: &str) -> Option<InboundEvent> {
        let (me, sent) = (self.me(), OwnMessages::default());
        let now = Timestamp::from_millis(0);
        Some(Reader { channel: self.adapter.channel(), me: &me, sent: &sent, now }.read(payload).event)
    }

    fn fresh_payload(&self) -> String {
        let number = self.numbers.fetch_add(1, Ordering::SeqCst);
        self.message(number, json!({"text": "hello again"}))
    }

    fn incoming_message_id(&self) -> String {
        self.asked.to_string()
    }

    async fn fail_next(&self, failure: PlatformFailure) -> bool {
        let on_send = |fault: Fault| self.telegram.fault(fault.on("sendMessage"));
        match failure {
            PlatformFailure::Limit { retry_after, scope } => {
                if scope == Scope::Account {
                    // The adapter infers it from several limited private chats.
                    for name in ["Bob", "Cyd"] {
                        let other = self.telegram.person(name).id().to_string();
                        let other = ConversationRef::new(self.adapter.channel().clone(), &other);
                        on_send(Fault::too_many(retry_after.as_secs()));
                        let limited = self.adapter.deliver(&text(&other, "hello").build()).await;
                        assert!(limited.is_err(), "{limited:?}");
                    }
                }
                on_send(Fault::too_many(retry_after.as_secs()));
            }
            PlatformFailure::LoseResponse => on_send(Fault::lost_answer()),
            PlatformFailure::Refuse => on_send(Fault::refuse(ApiError::forbidden("bot was blocked by the user"))),
            PlatformFailure::Unauthorized => on_send(Fault::refuse(ApiError::new(401, "Unauthorized"))),
            // Telegram never reports this. A refused connection has the same meaning.
            PlatformFailure::Fail => self.telegram.start_outage(Outage::Refuse),
        }
        true
    }

    async fn shown(&self) -> Vec<String> {
        self.telegram.bot_texts(self.ada.id())
    }

    async fn inject(&self, payload: String) {
        let update: Value = serde_json::from_str(&payload).expect("an update");
        assert!(self.telegram.update("message", &update["message"]), "the bot receives messages");
    }

    async fn is_acknowledged(&self, _payload: &str) -> bool {
        self.telegram.inspect(|view| view.pending_updates()) == 0
    }

    async fn fall_silent(&self) {
        self.telegram.fault(Fault::stall().forever());
    }

    async fn has_hanging_call(&self) -> bool {
        self.telegram.inspect(|view| view.all_calls().iter().any(|call| call.fault.is_some()))
    }
}

rejoinder_core::channel_conformance!(double());

/// A limit in one chat does not block the account.
#[tokio::test]
async fn a_limit_of_one_chat_is_its_own() {
    let double = double().await;
    double.fail_next(PlatformFailure::Limit { retry_after: Duration::from_secs(3), scope: Scope::Conversation }).await;

    let limited = double.adapter.deliver(&text(&double.conversation(), "hello").build()).await;

    assert!(
        matches!(limited, Err(rejoinder_core::DeliveryError::Limited { scope: Scope::Conversation, .. })),
        "{limited:?}"
    );
}
