//! The shared promise scenarios on Matrix: a message that may have arrived is sent again with the same transaction id, and
//! shown once.

use std::sync::atomic::{AtomicBool, Ordering};

use rejoinder_matrix_server::{Account, Fault, Homeserver, Message, Proxy};
use rejoinder_tests::{
    Gateway, GatewayBuilder, eventually,
    promise::{Calls, Failure, FileMessage, Platform, SentMessage, SharesFiles},
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
    proxy: Proxy,
    rooms: Rooms,
    has_one_encrypted: AtomicBool,
}

fn sent_messages(messages: &[Message]) -> Vec<SentMessage> {
    messages.iter().map(|message| SentMessage { id: message.id.clone(), text: message.text.clone() }).collect()
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
        self.proxy.calls().iter().filter(|call| call.path.contains("/sync") && call.status == 200).count()
    }
}

impl Platform for Matrix {
    type Person = Chat;
    type Place = Rooms;

    const PARAGRAPH: usize = 10_000;
    const SHOWS_ONCE: bool = true;

    async fn at(rooms: Rooms) -> Self {
        let homeserver = Homeserver::shared().await;
        let (account, proxy) = (homeserver.account("agent").await, homeserver.proxy().await);
        Self { homeserver, account, proxy, rooms, has_one_encrypted: AtomicBool::new(false) }
    }

    fn gateway(&self, keys: &str) -> GatewayBuilder {
        let keys = format!("{keys}\nsync_timeout = \"1s\"");
        Gateway::builder().config(&crate::matrix(self.proxy.url(), &self.account, &keys))
    }

    async fn person(&self) -> Chat {
        let chat = Chat::new(self.homeserver, self.place(), &self.account.user).await;
        chat.until_joined(&self.account.user).await;
        chat
    }

    async fn says(&self, chat: &Chat, text: &str) {
        chat.says(text).await;
    }

    async fn picks(&self, chat: &Chat, question: &SentMessage, choice: &str) {
        let (Chat::Direct(ada, room) | Chat::Group(ada, room, _)) = chat else { panic!("a room without encryption") };
        let line = question.text.lines().find(|line| line.ends_with(choice)).expect("the choice is listed");
        let number = line.split('.').next().expect("the line has a number");
        ada.reacts(room, &question.id, &format!("{number}\u{fe0f}\u{20e3}")).await;
    }

    async fn messages_of(&self, chat: &Chat) -> Vec<SentMessage> {
        let user = &self.account.user;
        // An encrypting client sees messages some time after they were sent; `hears` waits for that.
        chat.hears(user).await;
        chat.until_finds(user, "anything", |messages| Some(sent_messages(messages))).await
    }

    async fn until<T>(&self, chat: &Chat, about: &str, mut find: impl FnMut(&[SentMessage]) -> Option<T>) -> T {
        chat.until_finds(&self.account.user, about, |messages| find(&sent_messages(messages))).await
    }

    async fn fail_calls(&self, calls: Calls, failure: Failure, times: Option<u32>) {
        let (method, path, text) = match calls {
            Calls::All => ("", "", ""),
            // A proxy cannot read encrypted messages.
            Calls::Sending(_) if matches!(self.rooms, Rooms::Encrypted) => ("PUT", "/send/m.room.encrypted/", ""),
            Calls::Sending(text) => ("PUT", crate::SEND, text),
        };
        let fault = match failure {
            Failure::BadGateway | Failure::Page => Fault::Answer { status: 502, body: Value::from("Bad Gateway") },
            Failure::DoneAndBadGateway => Fault::AnswerAfter { status: 502, body: Value::from("Bad Gateway") },
            Failure::Reset => Fault::Reset,
            Failure::Lost => Fault::LoseAnswer,
            Failure::Silence => Fault::KeepAnswer,
            Failure::Refused => error(413, "M_TOO_LARGE"),
            Failure::Slow => Fault::SlowAnswer(Failure::SLOW_DELAY),
        };
        let times = times.map_or(usize::MAX, |times| usize::try_from(times).expect("a number of calls"));
        self.proxy.fail_on(text, method, path, times, fault);
    }

    async fn clear_faults(&self) {
        self.proxy.clear_faults();
    }

    async fn disconnect(&self) {
        self.proxy.close();
    }

    async fn reconnect(&self) {
        let before = self.syncs();
        self.proxy.reopen();
        eventually("a successful sync", async || (self.syncs() > before).then_some(())).await;
    }

    async fn revoke_token(&self) {
        self.proxy.fail("", "", usize::MAX, error(401, "M_UNKNOWN_TOKEN"));
    }

    async fn restore_token(&self) {
        self.proxy.clear_faults();
    }
}

/// A file has a name, which is its text if it has no other.
fn file_message(message: &Message) -> FileMessage {
    let (content, text) = (&message.content, &message.text);
    let is_named = content["filename"].as_str().is_some_and(|name| name == text);
    FileMessage {
        text: if is_named { String::new() } else { text.clone() },
        sizes: content["info"]["size"].as_u64().into_iter().collect(),
    }
}

impl SharesFiles for Matrix {
    const DELIVERIES: usize = 3;

    async fn shows(&self, chat: &Chat, picture: &[u8], caption: &str) {
        let Chat::Direct(ada, room) = chat else { panic!("no direct chat without encryption") };
        ada.shows(room, "a.png", picture, caption).await;
    }

    async fn file_messages_of(&self, chat: &Chat) -> Vec<FileMessage> {
        let all = |messages: &[Message]| Some(messages.iter().map(file_message).collect());
        chat.until_finds(&self.account.user, "anything", all).await
    }
}

rejoinder_tests::promise_tests!(Matrix, places: [Rooms::Direct, Rooms::Encrypted]);
