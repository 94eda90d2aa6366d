//! The deliveries of all turns.

use rejoinder_core::{
    DeliveryId,
    store::{DeliveryFilter, DeliveryListState, DeliveryState, ListedDelivery, Origin},
};

use super::prelude::*;
use crate::view::{AddressItem, DeliveryDetail};

page! {
    /// A page of deliveries, newest first.
    DeliveryList of DeliveryItem #[schema(format = "uuid")]
}

item! {
    /// A delivery in the list. Its attempts are in the turn.
    pub(crate) DeliveryItem of (listed: ListedDelivery) {
        let ListedDelivery { delivery, origin } = listed;
    } with {
        /// `turn`: it answers somebody; `operator`: an operator had it sent.
        origin: &'static str = origin.as_str(),
        #[schema(format = "uuid")] turn_id: String = delivery.turn.to_string(),
        #[serde(flatten)] address: AddressItem = AddressItem::of(&delivery.conversation, delivery.conversation_id),
        /// How many attempts counted: those that a rate limit ended do not.
        tries: u32 = delivery.attempts,
        #[serde(flatten)] delivery: DeliveryDetail = DeliveryDetail::of(&delivery, &[], None),
    }
}

query! {
    /// The filter of the list.
    Filter {
        /// Only deliveries in this state.
        #[param(inline)] state: Option<StateFilter>,
        /// Only deliveries to this channel, for example `telegram.main`.
        #[param(max_length = 256)] channel: Option<String>,
        /// Only deliveries of the latest 1,000 turns of the conversation with this id.
        #[param(format = "uuid")] conversation: Option<String>,
        /// Only deliveries of the turn with this id.
        #[param(format = "uuid")] turn: Option<String>,
        /// Only deliveries for this person, and what others sent them: by `CHANNEL/ID`, by the id, or by a part of a name.
        #[param(max_length = 256)] person: Option<String>,
        /// Only deliveries with this origin.
        #[param(inline)] origin: Option<OriginFilter>,
        /// Only deliveries older than the one with this id: the `next` of the previous page.
        #[param(format = "uuid")] before: Option<String>,
        /// The largest number of deliveries; 50 by default.
        #[param(minimum = 1, maximum = 200)] limit: Option<u32>,
    }
}

#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum StateFilter {
    Pending,
    Parked,
    Held,
    Sending,
    Delivered,
    Withdrawn,
    Refused,
    Dead,
}

impl From<StateFilter> for DeliveryListState {
    fn from(state: StateFilter) -> Self {
        Self::In(match state {
            StateFilter::Pending => return Self::Pending,
            StateFilter::Parked => return Self::Parked,
            StateFilter::Held => DeliveryState::Held,
            StateFilter::Sending => DeliveryState::Sending,
            StateFilter::Delivered => DeliveryState::Delivered,
            StateFilter::Withdrawn => DeliveryState::Withdrawn,
            StateFilter::Refused => DeliveryState::Refused,
            StateFilter::Dead => DeliveryState::Dead,
        })
    }
}

names! {
    OriginFilter of Origin { Turn, Operator }
}

impl Filter {
    fn read(self, app: &App, caller: &Caller) -> Result<DeliveryFilter, ApiError> {
        Ok(DeliveryFilter {
            state: self.state.map(Into::into),
            channels: caller.channels(self.channel.as_deref()),
            conversation: paging::id("conversation", "a conversation id", self.conversation)?,
            turn: paging::id("turn", "a turn id", self.turn)?,
            person: self.person.map(|person| app.engine.people().filter(&person)),
            origin: self.origin.map(Into::into),
            before: paging::id("before", "a delivery id", self.before)?,
            limit: paging::limit(self.limit)?,
        })
    }
}

/// Lists deliveries, newest first. Typing notices are left out.
#[utoipa::path(get, path = "/deliveries", operation_id = "list_deliveries", params(Filter),
    responses((status = 200, description = "A page of deliveries", body = DeliveryList)))]
pub(super) async fn list(State(app): Shared, caller: Caller, Query(filter): Query<Filter>) -> Answer<DeliveryList> {
    let filter = filter.read(&app, &caller)?;
    let limit = filter.limit;
    let mut found = app.records.lists.list_deliveries(&DeliveryFilter { limit: limit + 1, ..filter }).await?;
    let next = paging::cut(&mut found, limit, |listed| listed.delivery.id.to_string());
    Ok(Json(DeliveryList { items: found.into_iter().map(DeliveryItem::of).collect(), next }))
}

/// Has a delivery that waits tried now. One that may have arrived is sent again at once, with a label: it may be seen twice.
#[utoipa::path(post, path = "/deliveries/{id}/try", operation_id = "try_delivery",
    params(("id" = String, Path, description = "The delivery's id", format = "uuid"), IdempotencyKey),
    request_body(content = Option<Reason>), responses((status = 202, description = "It is tried", body = Accepted)))]
pub(super) async fn try_now(State(app): Shared, id: Segment, operation: Operation<Reason>) -> Done {
    let id = parsed(id, "there is no delivery with this id");
    act(id, operation, |id: DeliveryId, actor| app.engine.operations().try_delivery(id, actor)).await
}
