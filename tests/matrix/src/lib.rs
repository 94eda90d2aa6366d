//! A Matrix for tests: a real homeserver, people to talk to, and a proxy that fails on demand.
//!
//! The homeserver is [Synapse](https://pypi.org/project/matrix-synapse) with a database of its own, in a process that ends
//! with the test. A [`Person`] uses the client API without encryption; a [`Human`] is
//! [matrix-nio](https://pypi.org/project/matrix-nio), an independent implementation with encryption. The program under test
//! connects through a [`Proxy`], which loses responses, limits and rejects calls on demand.
//!
//! Nothing here depends on the product: a test asserts what a person [sees](Person::sees).
//!
//! To add an action of a person, write a method of [`Person`], which is one call of the client API. An action of an
//! encrypting person is a method in `server/human.py` and one of [`Human`].

mod homeserver;
mod human;
mod person;
mod proxy;
mod view;

use std::{
    ffi::OsString,
    net::{Ipv4Addr, TcpListener},
    process,
    sync::atomic::{AtomicU16, Ordering},
    time::Duration,
};

pub use homeserver::{Account, Homeserver, Settings};
pub use human::Human;
pub use person::Person;
pub use proxy::{Call, Fault, Proxy};
pub use view::Message;

/// How long a test waits for what must happen: far longer than it takes.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// The ports for servers in processes of their own. The system gives no port below 32,768 to a connection or to a listener
/// on port 0, so nothing takes one of these between the choice and the start, or between a stop and the next start.
const PORTS: std::ops::Range<u16> = 12_000..32_000;

/// A port for a server in a process of its own.
///
/// # Panics
/// If all are taken.
#[must_use]
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let ports = PORTS.end - PORTS.start;
    // Tests are processes: each begins elsewhere.
    let first = u16::try_from(process::id().wrapping_mul(61) % u32::from(ports)).unwrap_or_default();
    let port = |_| PORTS.start + (first + NEXT.fetch_add(1, Ordering::Relaxed)) % ports;
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    (0..ports).map(port).find(is_free).expect("there is a free port")
}

/// The Python with the packages of the tests.
fn python() -> OsString {
    std::env::var_os("REJOINDER_PYTHON")
        .expect("REJOINDER_PYTHON, the Python with the packages of the tests, is not set: run `cargo xtask test`")
}

fn client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().timeout(PATIENCE).build().expect("an HTTP client")
}
