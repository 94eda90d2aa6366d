//! Nor through the constructor that the outbox uses.

use rejoinder_core::store::{DeliveryRecord, NewDelivery};

fn forge(record: DeliveryRecord) -> NewDelivery {
    NewDelivery::new(record)
}

fn main() {}
