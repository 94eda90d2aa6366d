//! The channel suite, against the example server.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;
use rejoinder_core::{
    ChannelAdapter, ChannelId, ChatKind, ConversationRef, DeliveryError, Directed, EventKind, InboundEvent, Scope,
    Sender, SenderKind, SystemClock, Timestamp,
    conformance::channel::{Expected, Fixture, PlatformDouble, PlatformFailure, text},
};
use tokio::net::TcpListener;

use crate::{
    Example, ExampleSection, inbound,
    payload::Line,
    server::{ChatServer, Fault, NAME, TOKEN},
};

struct Double {
    server: ChatServer,
    adapter: Arc<Example>,
    numbers: AtomicU64,
}

async fn double() -> Double {
    let server = ChatServer::start("127.0.0.1:0").await.expect("a free port");
    let options = ExampleSection { address: server.address(), token: TOKEN.into(), ..ExampleSection::default() };
    let adapter = Arc::new(Example::new(ChannelId::new("example", "main"), &options, Arc::new(SystemClock)));
    Double { server, adapter, numbers: AtomicU64::new(9_000) }
}

fn person(name: &str) -> Sender {
    Sender { id: name.to_owned(), name: Some(name.to_owned()), username: None, kind: SenderKind::Person }
}

impl Double {
    fn in_room(&self, id: &str, text: &str) -> InboundEvent {
        let room = ConversationRef::new(self.adapter.channel().clone(), "#kitchen");
        let now = Timestamp::from_millis(0);
        InboundEvent {
            message_id: Some(id.to_owned()),
            text: text.to_owned(),
            ..InboundEvent::new(room, ChatKind::Group, id.to_owned(), person("ada"), now)
        }
    }
}

#[async_trait]
impl PlatformDouble for Double {
    fn adapter(&self) -> Arc<dyn ChannelAdapter> {
        Arc::clone(&self.adapter) as Arc<dyn ChannelAdapter>
    }

    fn conversation(&self) -> ConversationRef {
        ConversationRef::new(self.adapter.channel().clone(), "ada")
    }

    fn fixtures(&self) -> Vec<Fixture> {
        let fixture = |name, payload: &str, expected| Fixture { name, payload: payload.to_owned(), expected };
        let direct = InboundEvent {
            conversation: self.conversation(),
            chat: ChatKind::Direct,
            directed: Directed::DirectChat,
            ..self.in_room("1", "hello\nagain")
        };
        let mention = InboundEvent { directed: Directed::Mention, ..self.in_room("3", "@agent hello") };
        let unknown = InboundEvent { kind: EventKind::Other, ..self.in_room("5", "") };
        let event = |event| Expected::Event(Box::new(event));
        vec![
            fixture("a direct message", "message 1 ada ada hello\\nagain", event(direct)),
            fixture("in a room", "message 2 #kitchen ada hello", event(self.in_room("2", "hello"))),
            fixture("a mention", "message 3 #kitchen ada @agent hello", event(mention)),
            fixture("our own", "message 4 #kitchen agent hello", Expected::OurOwn),
            fixture("of another year", "poll 5 #kitchen ada tea or coffee?", event(unknown)),
            fixture("not a line of the protocol", "hello", Expected::Nothing),
        ]
    }

    fn normalise(&self, payload: &str) -> Option<InboundEvent> {
        let Line::Message(message) = Line::parse(payload) else { return None };
        Some(inbound::normalise(message, payload, self.adapter.channel(), NAME, Timestamp::from_millis(0)))
    }

    fn fresh_payload(&self) -> String {
        format!("message {} ada ada hello again", self.numbers.fetch_add(1, Ordering::SeqCst))
    }

    fn incoming_message_id(&self) -> String {
        "1".to_owned()
    }

    async fn fail_next(&self, failure: PlatformFailure) -> bool {
        let fault = match failure {
            PlatformFailure::Limit { retry_after, scope: Scope::Conversation } => {
                Fault::Wait(u32::try_from(retry_after.as_secs()).expect("some seconds"))
            }
            PlatformFailure::LoseResponse => Fault::LoseAnswer,
            PlatformFailure::Refuse => Fault::Refuse,
            PlatformFailure::Fail => Fault::Busy,
            PlatformFailure::Unauthorized => Fault::Deny,
            // The server limits only single chats.
            PlatformFailure::Limit { scope: Scope::Account, .. } => return false,
        };
        self.server.fail_next(fault);
        true
    }

    async fn shown(&self) -> Vec<String> {
        self.server.shown("ada")
    }

    async fn inject(&self, payload: String) {
        self.server.inject(&payload);
    }

    async fn is_acknowledged(&self, payload: &str) -> bool {
        self.server.is_acknowledged(payload.split(' ').nth(1).expect("an id"))
    }

    async fn fall_silent(&self) {
        self.server.fall_silent();
    }

    async fn has_hanging_call(&self) -> bool {
        self.server.has_hanging_call()
    }
}

rejoinder_core::channel_conformance!(double());

/// The server recognises the key of a second attempt.
#[tokio::test]
async fn a_second_attempt_is_shown_once() {
    let double = double().await;
    double.server.fail_next(Fault::LoseAnswer);
    let delivery = text(&double.conversation(), "hello").build();

    double.adapter.deliver(&delivery).await.expect_err("the answer is lost");
    let receipt = double.adapter.deliver(&delivery).await.expect("the server recognises the key");

    assert!(!receipt.message_id.is_empty());
    assert_eq!(double.server.shown("ada"), ["hello"]);
}

#[tokio::test]
async fn without_a_server_nothing_is_sent() {
    let nowhere = TcpListener::bind("127.0.0.1:0").await.expect("a free port").local_addr().expect("its address");
    let options = ExampleSection { address: nowhere.to_string(), token: TOKEN.into(), ..ExampleSection::default() };
    let adapter = Example::new(ChannelId::new("example", "main"), &options, Arc::new(SystemClock));
    let delivery = text(&ConversationRef::new(adapter.channel().clone(), "ada"), "hello").build();

    let error = adapter.deliver(&delivery).await.expect_err("nothing listens there");

    assert!(matches!(error, DeliveryError::NotSent { .. }), "{error:?}");
}

/// Time runs as soon as nothing else does.
#[tokio::test(start_paused = true)]
async fn a_server_that_never_welcomes_us_is_given_up() {
    let double = double().await;
    double.server.fall_silent();
    let delivery = text(&double.conversation(), "hello").build();

    let error = double.adapter.deliver(&delivery).await.expect_err("it does not welcome us");

    assert!(matches!(error, DeliveryError::NotSent { .. }), "{error:?}");
}

/// The text may be shown, so the result is unknown.
#[tokio::test]
async fn a_server_that_never_answers_is_given_up() {
    let double = double().await;
    let mut shown = double.server.watch();
    double.server.fail_next(Fault::Silence);
    let delivery = text(&double.conversation(), "hello").build();

    let hanging = async {
        shown.recv().await.expect("the server shows it");
        // From here on, time runs as soon as nothing else does.
        tokio::time::pause();
    };
    let (result, ()) = tokio::join!(double.adapter.deliver(&delivery), hanging);

    let error = result.expect_err("it does not answer");
    assert!(matches!(error, DeliveryError::Unknown(_)), "{error:?}");
}
