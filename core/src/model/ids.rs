//! Identifiers. All of them are UUIDv7: they sort by the time they were made.

use std::{fmt, str::FromStr, sync::Mutex};

use rejoinder_guard::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::{ContextV7, Uuid};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// A new id that sorts by `at`.
            pub fn new(at: Timestamp) -> Self {
                Self(uuid_at(at))
            }

            /// The id as a UUID.
            pub const fn as_uuid(self) -> Uuid {
                self.0
            }
        }

        impl From<Uuid> for $name {
            fn from(uuid: Uuid) -> Self {
                Self(uuid)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }
    };
}

id!(
    /// A turn: one inbound event given to an agent, and its life.
    TurnId
);
id!(
    /// A schedule.
    ScheduleId
);
id!(
    /// An inbound event, as it is stored.
    EventId
);
id!(
    /// A conversation; it keeps its id when its chat moves to another address.
    ConversationId
);
id!(
    /// The agent's memory key for a conversation.
    SessionId
);
id!(
    /// A delivery: one durable outbound action.
    DeliveryId
);
id!(
    /// A process of the gateway, from its start to its end: where runs and attempts began.
    NodeId
);
id!(
    /// An approval that an agent asked for.
    ApprovalId
);
id!(
    /// A person, whom several channels may know.
    PersonId
);

/// The counter within a millisecond, so that ids of the same millisecond sort in the order they were made.
static CONTEXT: Mutex<ContextV7> = Mutex::new(ContextV7::new());

fn uuid_at(at: Timestamp) -> Uuid {
    let millis = u64::try_from(at.as_millis()).unwrap_or(0);
    let seconds = millis / 1000;
    let nanos = u32::try_from(millis % 1000).unwrap_or(0) * 1_000_000;
    Uuid::new_v7(uuid::Timestamp::from_unix(&CONTEXT, seconds, nanos))
}
