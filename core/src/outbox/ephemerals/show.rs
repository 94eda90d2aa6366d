//! Shows one typing notice, mark or draft, now or not at all.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::{
    base::{channels::Channels, lifecycle::Lifecycle},
    handles::drafts::Drafts,
    ledger::Ledger,
    model::{Action, Class, ConversationRef, Delivery, DeliveryError, DeliveryId, Receipt, TurnRecord},
    nodes::hints::Hints,
    outbox::caller::{Caller, TIMEOUT},
    ports::{ChannelStore, HintStore, OutboxStore, SharedClock},
};

/// How long a draft in flight may delay a delivery of its conversation. Most end by then, and the delivery can edit the
/// draft's message. A typing notice delays nothing: whether it arrives does not matter.
const GRACE: Duration = Duration::from_secs(1);

/// The minimum pause before an ephemeral that could not be shown is retried.
pub(crate) const MIN_PAUSE: Duration = Duration::from_millis(100);

/// Shows actions that are not stored as deliveries.
pub(crate) struct Ephemerals {
    pub(crate) caller: Arc<Caller>,
    pub(crate) channels: Arc<Channels>,
    pub(crate) store: Arc<dyn OutboxStore>,
    pub(crate) conversations: Arc<dyn ChannelStore>,
    /// What runs say so far, for other nodes.
    pub(crate) texts: Arc<dyn HintStore>,
    pub(crate) hints: Arc<Hints>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) drafts: Arc<Drafts>,
    pub(crate) clock: SharedClock,
    pub(crate) lifecycle: Lifecycle,
}

impl Ephemerals {
    /// Performs an action in the conversation of `turn`, unless another call is in flight there, sending is blocked or
    /// rate limited, or `stop` was cancelled. Without a `stop` it waits for the other call. It is abandoned when `stop` is
    /// cancelled or a delivery waits for it. `None` if it was not tried.
    pub(super) async fn show(
        &self,
        turn: &TurnRecord,
        action: Action,
        class: Class,
        stop: Option<&CancellationToken>,
    ) -> Option<Result<Receipt, DeliveryError>> {
        let address = self.address(turn).await?;
        let channel = self.channels.get(&address.channel)?;
        let calls = &self.caller.calls;
        let call = match stop {
            Some(_) => calls.try_begin(turn.conversation)?,
            None => calls.begin_quietly(turn.conversation).await,
        };
        if stop.is_some_and(CancellationToken::is_cancelled)
            || self.caller.blocked_until(&address).is_some()
            || !self.caller.gate.line(&address.channel).is_empty()
            || self.caller.gate.take(&address, &channel.capabilities(&address), class).is_err()
        {
            return None;
        }
        let (ends, _in_use) = if channel.runs_at_each_node() {
            // Its clients are connected to this one.
            (self.lifecycle.ended.clone(), None)
        } else {
            let leases = &self.caller.leases;
            (leases.lost(&address.channel)?, Some(leases.begin_use(&address.channel)?))
        };
        let delivery = Delivery::ephemeral(DeliveryId::new(self.clock.now()), address, turn.id, action);
        let edited = match &delivery.action {
            Action::Draft { message, .. } => message.as_deref(),
            _ => None,
        };
        let edit = self.caller.abandoned_edits.begin(turn.conversation, edited);
        let abandoned = async {
            tokio::select! {
                () = call.is_waited_for() => {}
                Some(()) = async { stop?.cancelled().await; Some(()) } => {}
            }
            let grace = if class == Class::Typing { Duration::ZERO } else { GRACE };
            self.clock.sleep(grace).await;
        };
        let deliver = async {
            let result = channel.deliver(&delivery).await;
            edit.ended();
            result
        };
        let result = tokio::select! {
            biased;
            result = self.caller.call(ends, delivery.id(), deliver, TIMEOUT) => result?,
            () = abandoned => Err(DeliveryError::Unknown("a signal did not wait for it".to_owned())),
        };
        match &result {
            // A typing notice that gets through does not show that messages do.
            Ok(_) if class == Class::Typing => {}
            Ok(_) => self.caller.health.note(delivery.channel(), false, &result),
            Err(error) => debug!(turn = %turn.id, channel = %delivery.channel(), %error, "not shown"),
        }
        Some(result)
    }

    /// How long it takes until the platform's pace allows a send of `class` in the conversation of a turn; `None`: it does now.
    pub(super) async fn refill(&self, turn: &TurnRecord, class: Class) -> Option<Duration> {
        let address = self.address(turn).await?;
        let channel = self.channels.get(&address.channel)?;
        self.caller.gate.refill(&address, &channel.capabilities(&address), class)
    }

    /// Whether sending to the conversation of a turn is blocked now, or signals wait for the account's rate.
    pub(super) async fn is_blocked(&self, turn: &TurnRecord) -> bool {
        match self.address(turn).await {
            Some(address) => {
                self.caller.blocked_until(&address).is_some() || !self.caller.gate.line(&address.channel).is_empty()
            }
            None => true,
        }
    }

    async fn address(&self, turn: &TurnRecord) -> Option<ConversationRef> {
        self.conversations.address(turn.conversation).await.unwrap_or_else(|error| {
            debug!(turn = %turn.id, %error, "cannot read the address of a conversation");
            None
        })
    }
}
