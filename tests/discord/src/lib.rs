//! A Discord for tests: REST API v10 and Gateway on a port of its own, people to talk to, and
//! everything that can go wrong, on demand.
//!
//! The Discord inside is [SimCord](https://pypi.org/project/simcord), a Python package; `server/`
//! gives it an HTTP and a WebSocket front and adds what it leaves out. [`DiscordServer::start`] runs
//! that as a process, which ends with the test. `README.md` beside this crate tells what the server
//! keeps to and where it differs from Discord.
//!
//! Nothing here is part of the product, and nothing here knows it: what is tested gets
//! [`DiscordServer::api_url`] and [`DiscordServer::token`], and a test asserts what a person
//! [sees](Person::sees).
//!
//! To add something that a person does: a function in `server/people.py`, its name in
//! `server/control.py`, and a method of [`Person`]. To add a route: `server/routes.py`.

mod control;
mod fault;
mod gateway;
mod person;
mod place;
mod server;
mod view;

pub use fault::{Fault, Scope};
pub use gateway::{Gateway, Sessions};
pub use person::Person;
pub use place::{Channel, Guild};
pub use server::{DiscordServer, PATIENCE, python};
pub use view::{Attachment, Button, Call, File, Interaction, Message, Reaction};
