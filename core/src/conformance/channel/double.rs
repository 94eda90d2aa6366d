//! A platform that the suite can drive.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;

use crate::{
    model::{conversation::ConversationRef, delivery::Scope, event::InboundEvent},
    ports::channel::ChannelAdapter,
};

/// What goes wrong with the next call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlatformFailure {
    /// The platform limits us (429).
    Limit {
        /// The wait that the platform asks for.
        retry_after: Duration,
        /// What the platform blocks meanwhile.
        scope: Scope,
    },
    /// The platform performs the call, and its response is lost.
    LoseResponse,
    /// The platform rejects the call permanently: the chat is gone, or we are blocked.
    Refuse,
    /// The platform rejects our credentials.
    Unauthorized,
    /// The platform reports a failure without having done anything.
    Fail,
}

/// An inbound payload and its expected result.
#[derive(Clone, Debug)]
pub struct Fixture {
    /// Identifies the fixture in failure messages.
    pub name: &'static str,
    /// The payload, as the platform sends it.
    pub payload: String,
    /// The expected result. `raw` and `received_at` of the event are not compared.
    pub expected: Expected,
}

/// The expected result of normalising a payload.
#[derive(Clone, Debug)]
pub enum Expected {
    /// This event.
    Event(Box<InboundEvent>),
    /// An echo of our own message: either no event, or one whose sender is
    /// [`SenderKind::Ourselves`](crate::model::event::SenderKind::Ourselves).
    OurOwn,
    /// No event.
    Nothing,
}

/// A double of a platform, with an adapter that is connected to it.
#[async_trait]
pub trait PlatformDouble: Send + Sync {
    /// The adapter under test.
    fn adapter(&self) -> Arc<dyn ChannelAdapter>;

    /// A conversation that exists on the double.
    fn conversation(&self) -> ConversationRef;

    /// Payloads of every kind that the platform sends.
    fn fixtures(&self) -> Vec<Fixture>;

    /// The adapter's event for a payload, without side effects; `None` if it ignores the payload.
    fn normalise(&self, payload: &str) -> Option<InboundEvent>;

    /// A new payload of a person's message, different at each call.
    fn fresh_payload(&self) -> String;

    /// The id of a person's message in [`conversation`](Self::conversation), for reactions.
    fn incoming_message_id(&self) -> String;

    /// Makes the next call fail in this way. Returns `false` if the platform has no such failure.
    async fn fail_next(&self, failure: PlatformFailure) -> bool;

    /// The current texts of our messages in [`conversation`](Self::conversation), in order.
    async fn shown(&self) -> Vec<String>;

    /// Gives a payload to the running adapter as the platform does, repeatedly until it is acknowledged. Returns at
    /// once.
    async fn inject(&self, payload: String);

    /// Whether the adapter has acknowledged a payload given by [`inject`](Self::inject).
    async fn is_acknowledged(&self, payload: &str) -> bool;

    /// Makes the calls of a running adapter hang: from now on the platform accepts them and never responds.
    async fn fall_silent(&self);

    /// Whether a call hangs.
    async fn has_hanging_call(&self) -> bool;
}
