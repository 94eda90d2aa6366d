//! Checks for implementations of the ports, run by the implementation's own crate, and doubles for tests.
//!
//! Behind the feature `testing`: nothing here is part of the running gateway. To add a port, add a module here.

pub mod channel;
pub mod clock;
pub mod layered;
pub mod markdown;
pub mod rejecting;
pub mod scripted;
pub mod store;

use crate::{model::stored_delivery::DeliveryRecord, ports::store::transition::NewDelivery};

/// Makes a delivery that a store can insert, without a decision of the guard. For checks of stores.
#[must_use]
pub const fn new_delivery(record: DeliveryRecord) -> NewDelivery {
    NewDelivery::new(record)
}
