//! A Discord for tests: REST API v10 and Gateway on a port of its own, with people to talk to and failures on demand.
//!
//! The Discord inside is [SimCord](https://pypi.org/project/simcord), a Python package; `server/` adds HTTP, a WebSocket,
//! and what SimCord leaves out. [`DiscordServer::start`] runs it as a process that ends with the test. The README of this
//! crate describes what the server implements and where it differs from Discord.
//!
//! Nothing here depends on the product: the program under test gets [`DiscordServer::api_url`] and
//! [`DiscordServer::token`], and a test asserts what a person [sees](Person::sees).
//!
//! To add an action of people, write a function in `server/people.py`, add its name to `server/control.py`, and add a
//! method to [`Person`]. Routes are in `server/routes.py`.

mod control;
mod fault;
mod gateway;
mod person;
mod place;
mod server;
mod view;

pub use fault::{Fault, Scope};
pub use gateway::{GatewayAction, Sessions};
pub use person::Person;
pub use place::{Channel, Guild};
pub use server::{DiscordServer, PATIENCE, python};
pub use view::{Attachment, Button, Call, File, Interaction, Message, Reaction};
