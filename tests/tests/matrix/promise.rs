//! The shared promise scenarios on Matrix: a message that may have arrived is sent again with the same transaction id, and
//! shown once.

use std::sync::atomic::{AtomicBool, Ordering};

use rejoinder_matrix_server::{Account, Fault, Homeserver, Message, Proxy};
use rejoinder_tests::{
    Gateway, GatewayBuilder, eventually,
    promise::{Calls, Platform, Said, Trouble},
};
use serde_json::{Value, json};

use crate::{Chat, Place};

#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Rooms {
    #[default]
    Direct,
    Group,
    Encrypted,
    /// The first person in an encrypted direct chat, the others in plain ones.
    OneEncrypted,
}

/// A proxy to the homeserver, and rooms in which people talk with the account.
pub(crate) struct Matrix {
    homeserver: &'static Homeserver,
    account: Account,
    way: Proxy,
    rooms: Rooms,
    has_one_encrypted: AtomicBool,
}

fn said(messages: &[Message]) -> Vec<Said> {
    messages.iter().map(|message| Said { id: message.id.clone(), words: message.text.clone() }).collect()
}

fn error(status: u16, code: &str) -> Fault {
    Fault::Answer { status, body: json!({ "errcode": code, "error": "no" }) }
}

impl Matrix {
    /// The kind of room for the next person.
    fn place(&self) -> Place {
        match self.rooms {
            Rooms::Direct => Place::Direct,
            Rooms::Group => Place::Group,
            Rooms::OneEncrypted if self.has_one_encrypted.swap(true, Ordering::Relaxed) => Place::Direct,
            Rooms::Encrypted | Rooms::OneEncrypted => Place::Encrypted,
        }
    }

    fn syncs(&self) -> usize {
        self.way.calls().iter().filter(|call| call.path.contains("/sync") && call.status == 200).count()
    }
}

impl Platform for Matrix {
    type Person = Chat;
    type Place = Rooms;

    const PARAGRAPH: usize = 10_000;
    const SHOWS_ONCE: bool = true;

    async fn at(rooms: Rooms) -> Self {
        let homeserver = Homeserver::shared().await;
        let (account, way) = (homeserver.account("agent").await, homeserver.proxy().await);
        Self { homeserver, account, way, rooms, has_one_encrypted: AtomicBool::new(false) }
    }

    fn gateway(&self, keys: &str) -> GatewayBuilder {
        let keys = format!("{keys}\nsync_timeout = \"1s\"");
        Gateway::builder().config(&crate::matrix(self.way.url(), &self.account, &keys))
    }

    async fn person(&self) -> Chat {
        let chat = Chat::new(self.homeserver, self.place(), &self.account.user).await;
        chat.is_joined(&self.account.user).await;
        chat
    }

    async fn says(&self, chat: &Chat, words: &str) {
        chat.says(words).await;
    }

    async fn hears(&self, chat: &Chat) -> Vec<Said> {
        let user = &self.account.user;
        // An encrypting client sees messages some time after they were sent; `hears` waits for that.
        chat.hears(user).await;
        chat.until_finds(user, "anything", |messages| Some(said(messages))).await
    }

    async fn until<T>(&self, chat: &Chat, about: &str, mut find: impl FnMut(&[Said]) -> Option<T>) -> T {
        chat.until_finds(&self.account.user, about, |messages| find(&said(messages))).await
    }

    async fn fails(&self, calls: Calls, trouble: Trouble, times: Option<u32>) {
        let (method, path, words) = match calls {
            Calls::All => ("", "", ""),
            // A proxy cannot read encrypted messages.
            Calls::Sending(_) if matches!(self.rooms, Rooms::Encrypted) => ("PUT", "/send/m.room.encrypted/", ""),
            Calls::Sending(words) => ("PUT", crate::SEND, words),
        };
        let fault = match trouble {
            Trouble::BadGateway => Fault::Answer { status: 502, body: Value::from("Bad Gateway") },
            Trouble::DoneAndBadGateway => Fault::AnswerAfter { status: 502, body: Value::from("Bad Gateway") },
            Trouble::Reset => Fault::Reset,
            Trouble::Lost => Fault::LoseAnswer,
            Trouble::Silence => Fault::KeepAnswer,
            Trouble::Refused => error(413, "M_TOO_LARGE"),
            Trouble::Slow => Fault::SlowAnswer(Trouble::LATER),
        };
        let times = times.map_or(usize::MAX, |times| usize::try_from(times).expect("a number of calls"));
        self.way.fails_on(words, method, path, times, fault);
    }

    async fn heals(&self) {
        self.way.heals();
    }

    async fn goes_away(&self) {
        self.way.closes();
    }

    async fn comes_back(&self) {
        let before = self.syncs();
        self.way.opens();
        eventually("a successful sync", async || (self.syncs() > before).then_some(())).await;
    }

    async fn revokes_the_token(&self) {
        self.way.fails("", "", usize::MAX, error(401, "M_UNKNOWN_TOKEN"));
    }

    async fn mends_the_token(&self) {
        self.way.heals();
    }
}

rejoinder_tests::promise_tests!(Matrix, places: [Rooms::Direct, Rooms::Encrypted]);
