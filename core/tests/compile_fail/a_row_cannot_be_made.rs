//! Only the outbox can make the row that inserts a delivery.

use rejoinder_core::store::{DeliveryRecord, NewDelivery};

fn forge(record: DeliveryRecord) -> NewDelivery {
    NewDelivery { record }
}

fn main() {}
