//! Runs the channel suite on the scripted platform: an adapter that keeps every rule passes.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;
use rejoinder_core::{
    Capabilities, ChannelAdapter, ChannelId, ChatKind, ConversationRef, Directed, InboundEvent, Resend, Sender,
    SenderKind, TextLimit, TextUnit,
    conformance::{
        channel::{Expected, Fixture, PlatformDouble, PlatformFailure},
        clock::START,
        scripted::{Fault, Platform, ScriptedChannel, capabilities},
    },
};

struct Double {
    platform: Arc<Platform>,
    adapter: Arc<ScriptedChannel>,
    payloads: AtomicU64,
}

#[expect(clippy::unused_async, reason = "the suite awaits the double")]
async fn double() -> Double {
    let platform = Platform::new();
    let capabilities = Capabilities {
        resend: Resend::Idempotent,
        files_per_message: 4,
        caption_limit: Some(TextLimit { max: 100, unit: TextUnit::Bytes }),
        ..capabilities()
    };
    let adapter = ScriptedChannel::new(ChannelId::new("test", "main"), Arc::clone(&platform), capabilities);
    Double { platform, adapter: Arc::new(adapter), payloads: AtomicU64::new(1) }
}

fn event(id: &str, sender: &str, text: &str) -> InboundEvent {
    InboundEvent {
        message_id: Some(id.to_owned()),
        directed: Directed::DirectChat,
        text: text.to_owned(),
        raw: format!("{id}|{sender}|{text}"),
        ..InboundEvent::new(
            ConversationRef::new(ChannelId::new("test", "main"), "ada"),
            ChatKind::Direct,
            id.to_owned(),
            Sender {
                id: sender.to_owned(),
                name: None,
                username: None,
                kind: if sender == "us" { SenderKind::Ourselves } else { SenderKind::Person },
            },
            START,
        )
    }
}

#[async_trait]
impl PlatformDouble for Double {
    fn adapter(&self) -> Arc<dyn ChannelAdapter> {
        Arc::clone(&self.adapter) as Arc<dyn ChannelAdapter>
    }
    fn conversation(&self) -> ConversationRef {
        ConversationRef::new(ChannelId::new("test", "main"), "ada")
    }
    fn fixtures(&self) -> Vec<Fixture> {
        let fixture = |name, payload: &str, expected| Fixture { name, payload: payload.to_owned(), expected };
        vec![
            fixture("a message", "1|ada|hello", Expected::Event(Box::new(event("1", "ada", "hello")))),
            fixture("our own", "2|us|hello", Expected::OurOwn),
            fixture("something else", "typing", Expected::Nothing),
        ]
    }
    fn normalise(&self, payload: &str) -> Option<InboundEvent> {
        let mut fields = payload.split('|');
        Some(event(fields.next()?, fields.next()?, fields.next()?))
    }
    fn fresh_payload(&self) -> String {
        format!("f{}|ada|hello", self.payloads.fetch_add(1, Ordering::SeqCst))
    }
    fn incoming_message_id(&self) -> String {
        "1".to_owned()
    }
    async fn fail_next(&self, failure: PlatformFailure) -> bool {
        self.platform.queue_fault(match failure {
            PlatformFailure::Limit { retry_after, scope } => Fault::Limit { retry_after, scope },
            PlatformFailure::LoseResponse => Fault::LoseResponse,
            PlatformFailure::Refuse => Fault::Refuse,
            PlatformFailure::Unauthorized => Fault::Unauthorized,
            PlatformFailure::Fail => Fault::NotSent,
        });
        true
    }
    async fn shown(&self) -> Vec<String> {
        self.platform.posts(&self.conversation()).into_iter().map(|post| post.text).collect()
    }
    async fn inject(&self, payload: String) {
        self.platform.queue_event(self.normalise(&payload).expect("a message"));
    }
    async fn is_acknowledged(&self, payload: &str) -> bool {
        self.platform.is_acknowledged(&self.normalise(payload).expect("a message").external_id)
    }
    async fn fall_silent(&self) {}
    // The run waits for the next event.
    async fn has_hanging_call(&self) -> bool {
        true
    }
}

rejoinder_core::channel_conformance!(double());
