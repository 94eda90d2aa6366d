//! A Matrix for tests: a real homeserver, people to talk to, and a way to it on which everything can go wrong.
//!
//! The homeserver is [Synapse](https://pypi.org/project/matrix-synapse) with a database of its own, run as a
//! process that ends with the test. A [`Person`] speaks the client API in the open; a [`Human`] is
//! [matrix-nio](https://pypi.org/project/matrix-nio), which encrypts with an implementation of its own. What is
//! tested is led through a [`Proxy`], which loses answers, limits and refuses on demand.
//!
//! Nothing here is part of the product, and nothing here knows it: a test asserts what a person
//! [sees](Person::sees).
//!
//! To add something that a person does: a method of [`Person`], which is one call of the client API. To add
//! something that an encrypting person does: a method in `server/human.py`, and one of [`Human`].

mod homeserver;
mod human;
mod person;
mod proxy;
mod view;

use std::{ffi::OsString, time::Duration};

pub use homeserver::{Account, Homeserver, Settings};
pub use human::Human;
pub use person::Person;
pub use proxy::{Call, Fault, Proxy};
pub use view::Message;

/// How long a test waits for what must happen: far above what it takes.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// The Python with the packages of the tests.
fn python() -> OsString {
    std::env::var_os("REJOINDER_PYTHON")
        .expect("REJOINDER_PYTHON, the Python with the packages of the tests, is not set: run `cargo xtask test`")
}

fn client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().timeout(PATIENCE).build().expect("a client without options can be made")
}
