//! A person at the web chat, connected by its socket alone.

use std::net::IpAddr;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::{TcpSocket, TcpStream};
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream,
    tungstenite::{self, Message},
};

use crate::PATIENCE;

/// A socket of the chat `main`, open on one conversation.
#[derive(Debug)]
pub struct Chat {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    /// The turns in the `welcome` frame.
    pub turns: Vec<Value>,
    /// The names of the commands in it.
    pub commands: Vec<String>,
}

impl Chat {
    /// Opens `conversation` at the gateway at `url`.
    ///
    /// # Panics
    /// If there is no `welcome`.
    pub async fn open(url: &str, conversation: &str) -> Self {
        let url = format!("{}/chat/ws", url.replacen("http", "ws", 1));
        let (socket, _) = tokio_tungstenite::connect_async(url).await.expect("the socket opens");
        let mut chat = Self { socket, turns: Vec::new(), commands: Vec::new() };
        chat.send_frame(&json!({ "type": "hello", "conversation": conversation })).await;
        let welcome = chat.next_frame("welcome").await;
        chat.turns.clone_from(welcome["turns"].as_array().expect("the welcome has turns"));
        let commands = welcome["commands"].as_array().expect("the welcome has commands").iter();
        chat.commands = commands.map(|it| it["name"].as_str().expect("a command has a name").to_owned()).collect();
        chat
    }

    /// Sends a hello with `token` from an address of this machine; returns the type of the answer (`welcome`), or the code of
    /// the error.
    ///
    /// # Errors
    /// The status of a refused socket.
    ///
    /// # Panics
    /// If there is no answer.
    pub async fn hello(url: &str, from: IpAddr, token: &str) -> Result<String, u16> {
        let mut chat = Self { socket: Self::socket(url, from).await?, turns: Vec::new(), commands: Vec::new() };
        let conversation = "a-conversation-of-tests";
        chat.send_frame(&json!({ "type": "hello", "conversation": conversation, "token": token })).await;
        let message = tokio::time::timeout(PATIENCE, chat.socket.next()).await.expect("an answer in time");
        let text = message.expect("the socket is open").expect("a frame is read").into_text().expect("text");
        let frame: Value = serde_json::from_str(&text).expect("a frame is JSON");
        Ok(frame["code"].as_str().or(frame["type"].as_str()).expect("a frame has a type").to_owned())
    }

    /// How many turns somebody at an address of this machine is shown who says that this is their conversation.
    ///
    /// # Panics
    /// If there is no answer.
    pub async fn turns_of(url: &str, from: IpAddr, conversation: &str) -> usize {
        let socket = Self::socket(url, from).await.expect("the socket opens");
        let mut chat = Self { socket, turns: Vec::new(), commands: Vec::new() };
        chat.send_frame(&json!({ "type": "hello", "conversation": conversation })).await;
        let message = tokio::time::timeout(PATIENCE, chat.socket.next()).await.expect("an answer in time");
        let text = message.expect("the socket is open").expect("a frame is read").into_text().expect("text");
        let frame: Value = serde_json::from_str(&text).expect("a frame is JSON");
        frame["turns"].as_array().map_or(0, Vec::len)
    }

    /// Opens a socket from an address of this machine, without a hello.
    ///
    /// # Errors
    /// The status of a refused socket.
    ///
    /// # Panics
    /// If the gateway cannot be reached.
    pub async fn socket(url: &str, from: IpAddr) -> Result<WebSocketStream<MaybeTlsStream<TcpStream>>, u16> {
        let address = url.strip_prefix("http://").expect("an http URL");
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind((from, 0).into()).expect("an address of this machine");
        let stream = socket.connect(address.parse().expect("an address")).await.expect("the gateway listens");
        let stream = MaybeTlsStream::Plain(stream);
        match tokio_tungstenite::client_async(format!("ws://{address}/chat/ws"), stream).await {
            Ok((socket, _)) => Ok(socket),
            Err(tungstenite::Error::Http(response)) => Err(response.status().as_u16()),
            Err(error) => panic!("the socket does not open: {error}"),
        }
    }

    /// Sends a message and waits until it is accepted; returns the turn's id.
    ///
    /// # Panics
    /// If it is not accepted.
    pub async fn says(&mut self, id: &str, text: &str) -> String {
        self.send_frame(&json!({ "type": "message", "id": id, "text": text })).await;
        let accepted = self.next_frame("accepted").await;
        accepted["turn_id"].as_str().expect("a turn has an id").to_owned()
    }

    /// Deletes what was said in a conversation, and waits until that is accepted.
    ///
    /// # Panics
    /// If it is not accepted.
    pub async fn deletes(&mut self, id: &str, conversation: &str) {
        self.send_frame(&json!({ "type": "delete", "id": id, "conversation": conversation })).await;
        self.next_frame("accepted").await;
    }

    /// Sends a message to a gateway that may have ended.
    pub async fn sends(&mut self, id: &str, text: &str) {
        let frame = json!({ "type": "message", "id": id, "text": text });
        let _ended = self.socket.send(Message::text(frame.to_string())).await;
    }

    /// Waits until a turn has its final signal; returns its text.
    ///
    /// # Panics
    /// If it has none in time.
    pub async fn hears(&mut self, turn: &str) -> String {
        loop {
            let frame = self.next_frame("turn").await;
            let (id, status, shown) = (&frame["turn"]["turn_id"], &frame["turn"]["status"], &frame["turn"]["shown"]);
            if id == turn && status == "answered" {
                return shown["text"].as_str().expect("a signal has a text").to_owned();
            }
        }
    }

    /// Waits until a turn is answered that the gateway began by itself; returns it.
    ///
    /// # Panics
    /// If there is none in time.
    pub async fn hears_unasked(&mut self) -> Value {
        loop {
            let mut frame = self.next_frame("turn").await;
            if frame["turn"]["text"] == "" && frame["turn"]["status"] == "answered" {
                return frame["turn"].take();
            }
        }
    }

    async fn send_frame(&mut self, frame: &Value) {
        self.socket.send(Message::text(frame.to_string())).await.expect("the socket is open");
    }

    /// The next frame of a type.
    async fn next_frame(&mut self, kind: &str) -> Value {
        let reading = async {
            loop {
                let message = self.socket.next().await.expect("the socket is open").expect("a frame is read");
                let Message::Text(text) = message else { continue };
                let frame: Value = serde_json::from_str(&text).expect("a frame is JSON");
                if frame["type"] == kind {
                    return frame;
                }
            }
        };
        tokio::time::timeout(PATIENCE, reading)
            .await
            .unwrap_or_else(|_| panic!("no `{kind}` frame within {PATIENCE:?}"))
    }
}
