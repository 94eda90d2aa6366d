//! Only the outbox can call the constructor of a row.

use rejoinder_core::store::{DeliveryRecord, NewDelivery};

fn forge(record: DeliveryRecord) -> NewDelivery {
    NewDelivery::new(record)
}

fn main() {}
