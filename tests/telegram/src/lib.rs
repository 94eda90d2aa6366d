//! A Telegram Bot API server for tests.
//!
//! It follows <https://core.telegram.org/bots/api> and the known behaviour of the server: long polls that wake, updates
//! that repeat until they are confirmed, 409s, entities, topics, reactions, files, rate limits, webhooks with retries. It
//! fails on demand ([`Fault`], [`Outage`]), shows what people see ([`VisibleMessage`]), and records every call ([`Call`]).
//!
//! It never contacts Telegram, and never repairs a call: what the real server rejects is rejected.
//!
//! A test controls people through their handles ([`Person`], [`Group`]); other programs do so over HTTP (`/__control`, see
//! the README of this crate). To add a method, see `methods.rs`. To add an action of people, extend `world/people.rs`, add
//! a method to [`Person`] and a path in `control.rs`. The judges in `judges/` check that it behaves like the real server.
//!
//! ```
//! # use rejoinder_telegram_double::{Fault, TelegramDouble};
//! # async fn example() {
//! let telegram = TelegramDouble::start().await;
//! let ada = telegram.person("Ada");
//! telegram.fault(Fault::lost_answer().on("sendMessage"));
//! // Start the program under test with `telegram.url()` and `telegram.token()`, then:
//! ada.says("ping");
//! ada.hears("pong").await;
//! # }
//! ```

mod calls;
mod clock;
mod control;
mod double;
mod error;
mod fault;
mod hook;
mod limits;
mod listener;
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
pub use world::{chat::ChatKind, chat::Membership, user::Bot};
