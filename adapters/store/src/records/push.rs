//! Push subscriptions.

use rejoinder_core::store::PushSubscription;

use super::columns::records;

records! {
    pub(crate) fn subscription(row) -> PushSubscription { endpoint, key, auth }
}
