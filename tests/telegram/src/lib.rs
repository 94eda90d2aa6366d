//! A Telegram Bot API server for tests.
//!
//! It keeps to what <https://core.telegram.org/bots/api> says and to what the server is known to do: long
//! polls that wake, updates that come again until they are confirmed, 409s, entities, topics, reactions,
//! files, limits, webhooks with retries. It fails on demand ([`Fault`], [`Outage`]), shows what people see
//! ([`VisibleMessage`]), and remembers every call ([`Call`]).
//!
//! It never talks to Telegram, and it never repairs a call: what the real server refuses is refused.
//!
//! A test leads people by their handles ([`Person`], [`Group`]); other programs do the same over HTTP
//! (`/__control`, see the README beside this crate). To add a method, see `methods.rs`; to add something that
//! people do, `world/people.rs`, then a verb of [`Person`] and a path in `control.rs`. The judges in `judges/`
//! say whether it is true to the real one.
//!
//! ```
//! # use rejoinder_telegram_double::{Fault, TelegramDouble};
//! # async fn example() {
//! let telegram = TelegramDouble::start().await;
//! let ada = telegram.person("Ada");
//! telegram.fault(Fault::lost_answer().on("sendMessage"));
//! // Start what is tested with `telegram.url()` and `telegram.token()`, then:
//! ada.says("ping");
//! ada.hears("pong").await;
//! # }
//! ```

mod calls;
mod clock;
mod control;
mod door;
mod double;
mod error;
mod fault;
mod hook;
mod limits;
mod methods;
mod params;
mod people;
mod server;
mod shared;
mod text;
mod view;
mod world;

pub use calls::{Call, Outcome};
pub use double::{TOKEN, TelegramDouble};
pub use error::ApiError;
pub use fault::{Effect, Fault};
pub use limits::{Limits, Rate};
pub use people::{Group, Person, Press};
pub use shared::{Outage, PATIENCE};
pub use text::Entity;
pub use view::{Button, Draft, TypingNotice, View, VisibleMessage};
pub use world::{chat::ChatKind, chat::Standing, user::Bot};
