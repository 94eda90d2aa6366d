//! What every implementation of a port must do, as checks that its crate runs.
//!
//! Feature `testing`; nothing here is part of the running gateway. To add a port: give it a module here.

pub mod channel;
pub mod clock;
pub mod layered;
pub mod markdown;
pub mod refusing;
pub mod scripted;
pub mod store;

use crate::{model::stored_delivery::DeliveryRecord, ports::store::transition::NewDelivery};

/// A delivery to insert, without the guard's leave: for checks of what stores deliveries.
#[must_use]
pub const fn new_delivery(record: DeliveryRecord) -> NewDelivery {
    NewDelivery::new(record)
}
