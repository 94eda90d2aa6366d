//! The example channel: an account on a chat server that speaks lines over TCP (`payload.rs` has the protocol).
//!
//! It shows the parts of every adapter on a platform that is small enough to read in one sitting;
//! `docs/write-an-adapter.md` starts from it. The gateway contains it only with the feature `example`.
//!
//! It never acknowledges a message before it is stored, never reports a message as sent without the server's answer, and
//! does not render Markdown.

mod api;
mod capabilities;
mod errors;
mod format;
mod inbound;
mod lines;
mod outbound;
mod payload;
mod receive;
mod section;
#[cfg(feature = "testing")]
pub mod server;

#[cfg(test)]
mod conformance;

use async_trait::async_trait;
use rejoinder_core::{
    Capabilities, ChannelAdapter, ChannelError, ChannelHealth, ChannelId, ConversationRef, Delivery, DeliveryError,
    Intake, Receipt, SharedClock, Surface,
};
use rejoinder_kit::{Health, Receiver, RunEnd};
use tokio_util::sync::CancellationToken;

use self::api::Api;
pub use self::section::ExampleSection;

/// One account on an example chat server.
pub struct Example {
    channel: ChannelId,
    api: Api,
    clock: SharedClock,
    health: Health,
}

impl Example {
    #[must_use]
    pub fn new(channel: ChannelId, options: &ExampleSection, clock: SharedClock) -> Self {
        Self { channel, api: Api::new(options), clock, health: Health::stale_after(receive::STALE_AFTER) }
    }
}

#[async_trait]
impl ChannelAdapter for Example {
    fn channel(&self) -> &ChannelId {
        &self.channel
    }

    fn capabilities(&self, _conversation: &ConversationRef) -> Capabilities {
        capabilities::capabilities()
    }

    fn surface(&self) -> Surface {
        Surface::Chat("a chat that shows plain text".into())
    }

    fn health(&self) -> ChannelHealth {
        self.health.report()
    }

    fn parts(&self, text: &str) -> Vec<String> {
        format::parts(text)
    }

    async fn run(&self, intake: Intake, shutdown: CancellationToken) -> Result<(), ChannelError> {
        let (channel, intake, health, shutdown) = (&self.channel, &intake, &self.health, &shutdown);
        let receiver = Receiver { channel, intake, health, shutdown };
        self.receive(&receiver).await.or_else(RunEnd::into_result)
    }

    async fn deliver(&self, delivery: &Delivery) -> Result<Receipt, DeliveryError> {
        let result = self.perform(delivery).await;
        self.health.note_delivery(&result, "the server rejects the token");
        result
    }
}
