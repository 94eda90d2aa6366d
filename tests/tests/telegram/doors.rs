//! What opens something at the gateway, tried with any text.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::atomic::{AtomicU32, Ordering},
};

use futures_util::{StreamExt as _, stream};
use rejoinder_tests::{Chat, Gateway};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpSocket,
};

/// How many texts are tried at once.
const AT_ONCE: usize = 8;

/// Something that a secret opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    /// An operator's token.
    Token,
    /// The code of a link that signs in.
    SignInCode,
    /// The cookie of a session.
    Cookie,
    /// The token of the hook `test`.
    HookToken,
    /// The key of a result of the hook `test`.
    ResultKey,
    /// The secret id of a conversation on the chat page.
    Conversation,
}

impl Door {
    pub(crate) const ALL: [Self; 6] =
        [Self::Token, Self::SignInCode, Self::Cookie, Self::HookToken, Self::ResultKey, Self::Conversation];
}

/// The doors of a gateway.
pub(crate) struct Doors {
    url: String,
    address: SocketAddr,
    /// A turn of the hook `test`.
    turn: String,
}

impl Doors {
    pub(crate) fn of(gateway: &Gateway, turn: String) -> Self {
        let url = gateway.url();
        let address = url.strip_prefix("http://").and_then(|address| address.parse().ok()).expect("an address");
        Self { url, address, turn }
    }

    /// The doors that these texts open.
    pub(crate) async fn opened_by(&self, texts: impl IntoIterator<Item = String>) -> Vec<(String, Door)> {
        let tries = texts.into_iter().flat_map(|text| Door::ALL.map(|door| (text.clone(), door)));
        let opened = stream::iter(tries).map(async |(text, door)| {
            let is_opened = self.opens(door, &text).await;
            is_opened.then_some((text, door))
        });
        opened.buffer_unordered(AT_ONCE).filter_map(async |opened| opened).collect().await
    }

    /// Whether a text opens a door, tried from an address that has not guessed before.
    pub(crate) async fn opens(&self, door: Door, text: &str) -> bool {
        let bearer = format!("authorization: Bearer {text}\r\n");
        let request = match door {
            Door::Token => ("GET", "/admin/api/session".to_owned(), bearer, String::new()),
            Door::SignInCode => {
                ("POST", "/admin/api/session".to_owned(), String::new(), json!({ "code": text }).to_string())
            }
            Door::Cookie => {
                let cookie = format!("cookie: rejoinder_session={text}\r\n");
                ("GET", "/admin/api/session".to_owned(), cookie, String::new())
            }
            Door::HookToken => ("POST", "/hooks/test".to_owned(), bearer, json!({ "message": "hello" }).to_string()),
            Door::ResultKey => {
                ("GET", format!("/hooks/test/turns/{}?key={text}", self.turn), String::new(), String::new())
            }
            Door::Conversation => return Chat::turns_of(&self.url, newcomer(), text).await > 0,
        };
        matches!(self.status(request).await, 200..=299)
    }

    async fn status(&self, (method, path, headers, body): (&str, String, String, String)) -> u16 {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind((newcomer(), 0).into()).expect("an address of this machine");
        let mut stream = socket.connect(self.address).await.expect("the gateway listens");
        let (host, length) = (self.address, body.len());
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-type: application/json\r\n\
            content-length: {length}\r\n{headers}\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await.expect("it is sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
        status.unwrap_or_else(|| panic!("no status in {answer:?}"))
    }
}

/// An address of this machine that was not used before.
fn newcomer() -> IpAddr {
    static LAST: AtomicU32 = AtomicU32::new(0);
    let [_, b, c, d] = (LAST.fetch_add(1, Ordering::SeqCst) + 0x0001_0000).to_be_bytes();
    Ipv4Addr::new(127, b, c, d).into()
}
