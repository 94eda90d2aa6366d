//! First attempts: what one needs is reserved before it is stored, with the claim of its delivery. So an answer that can go at
//! once costs a commit less.

use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::{caller::Caller, calls::Call};
use crate::{
    base::channels::Channels,
    handles::lanes::{Lanes, Reservation, Reservations, ReservedLane},
    model::{Action, Capabilities, Class, ConversationRef, DeliveryRecord},
    nodes::leases::Hold,
    ports::{Fence, LeaseName},
};

pub(crate) struct FirstAttempts {
    pub(crate) caller: Arc<Caller>,
    pub(crate) channels: Arc<Channels>,
    pub(crate) lanes: Arc<Lanes>,
}

/// The call of a conversation, one of its channel's calls, and a send of its budgets.
struct ReservedCall {
    caller: Arc<Caller>,
    hold: Hold,
    address: ConversationRef,
    capabilities: Capabilities,
    class: Class,
    is_used: bool,
    _call: Call,
    _permit: OwnedSemaphorePermit,
    /// Of its channel's lease.
    _use: TaskTrackerToken,
}

impl Reservations for FirstAttempts {
    fn reserve(&self, delivery: &DeliveryRecord) -> Option<ReservedLane> {
        let (caller, address) = (&self.caller, &delivery.conversation);
        let channel = self.channels.get(&address.channel)?;
        let hold = caller.leases.hold(&address.channel)?;
        let in_use = hold.begin_use()?;
        if caller.blocked_until(address).is_some() {
            return None;
        }
        // From here on no edit of the conversation is abandoned.
        let call = caller.calls.try_begin(delivery.conversation_id)?;
        if let Action::Edit { message, .. } = &delivery.action
            && caller.abandoned_edits.may_change(delivery.conversation_id, message)
        {
            return None;
        }
        let permit = Arc::clone(caller.in_flight.get(&address.channel)?).try_acquire_owned().ok()?;
        let (capabilities, class) = (channel.capabilities(address), delivery.class);
        let is_behind = capabilities.account_rate.is_some() && !caller.gate.line(&address.channel).is_empty();
        if is_behind || caller.gate.take(address, &capabilities, class).is_err() {
            return None;
        }
        let reserved = ReservedCall {
            caller: Arc::clone(caller),
            hold,
            address: address.clone(),
            capabilities,
            class,
            is_used: false,
            _call: call,
            _permit: permit,
            _use: in_use,
        };
        self.lanes.reserve(&address.channel, delivery.conversation_id, Box::new(reserved))
    }
}

impl Reservation for ReservedCall {
    fn used(&mut self) {
        self.is_used = true;
    }

    fn fence(&self) -> Option<(LeaseName, Fence)> {
        self.hold.fence()
    }
}

impl Drop for ReservedCall {
    fn drop(&mut self) {
        if !self.is_used {
            self.caller.gate.give_back(&self.address, &self.capabilities, self.class);
        }
    }
}
