//! Only the outbox inserts deliveries: nobody else can make one for a transition.

use rejoinder_core::store::{DeliveryRecord, NewDelivery};

fn forge(record: DeliveryRecord) -> NewDelivery {
    NewDelivery { record }
}

fn main() {}
