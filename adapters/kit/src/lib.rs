//! What every channel needs, written once.
//!
//! * [`Receiver`]: one run of a channel. It waits, reads cursors and stores events, for as long as that takes.
//! * [`Health`]: when inbound was last proved, and what is wrong.
//! * [`Opening`]: what a channel has only while it runs, for requests that come from outside.
//! * [`SentMessages`]: the channel's own latest messages, for reactions to them.
//! * [`calls`]: how a call of a platform's API ends without an answer, and the bytes of one.
//! * [`files`]: the bytes of a file that an agent sends.
//! * [`Table`]: a table of Markdown as aligned columns of text.
//! * [`Problem`]: a refusal of an HTTP request, as an RFC 9457 document.
//!
//! What it never does: know a platform, keep anything on disk, or decide what an error of a platform means. Payloads,
//! the classification of errors and the Markdown of a platform belong to its adapter, however alike they look.
//!
//! To add something: when a second adapter writes it for the same reason as the first.

pub mod calls;
pub mod files;
mod health;
mod opening;
mod problem;
mod receiver;
mod sent;
mod table;

pub use self::{
    health::Health,
    opening::{Opened, Opening},
    problem::Problem,
    receiver::{Receiver, RunEnd, ShuttingDown},
    sent::{SentMessage, SentMessages},
    table::{Alignment, Table},
};
