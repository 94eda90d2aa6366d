//! A chat server that speaks the protocol, in memory: for tests, and for trying the channel out
//! (`cargo run -p rejoinder-example --features testing --example chat-server`).

use std::{
    collections::{HashMap, HashSet, VecDeque},
    hash::{BuildHasher, RandomState},
    io,
    net::SocketAddr,
    sync::Arc,
};

use futures_util::{SinkExt, StreamExt};
use parking_lot::Mutex;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Notify, broadcast, watch},
};
use tokio_util::{
    codec::Framed,
    sync::{CancellationToken, DropGuard},
};

use crate::{
    format::MAX_CHARS,
    lines::Lines,
    payload::{escaped, unescaped},
};

/// The agent's name on the server.
pub const NAME: &str = "agent";

/// The token that the server accepts.
pub const TOKEN: &str = "open-sesame";

/// How the next request fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// `failed wait SECONDS`.
    Wait(u32),
    /// `failed busy`.
    Busy,
    /// `failed refused`.
    Refuse,
    /// The server shows the text and closes the connection without an answer.
    LoseAnswer,
    /// The server shows the text, keeps the connection and never answers.
    Silence,
    /// The server rejects the token.
    Deny,
}

/// A running server. It stops when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct ChatServer {
    address: SocketAddr,
    state: Arc<Mutex<ChatState>>,
    arrived: Arc<Notify>,
    shown: broadcast::Sender<(String, String)>,
    is_down: watch::Sender<bool>,
    _running: Arc<DropGuard>,
}

#[derive(Debug, Default)]
struct ChatState {
    /// The number of the latest message.
    latest: u64,
    /// Random for each server and part of every id, so that a restarted server does not repeat ids.
    start: u64,
    acknowledged: HashSet<String>,
    /// Messages without an acknowledgement: id and line.
    unacknowledged: VecDeque<(String, String)>,
    /// The answer to each successful `say`, by its KEY.
    answers: HashMap<String, String>,
    /// The agent's messages: chat and text.
    shown: Vec<(String, String)>,
    fault: Option<Fault>,
    is_silent: bool,
    /// Whether a connection waits in vain.
    has_hanging_call: bool,
}

impl ChatServer {
    /// Listens at `address`. Port 0 picks a free port.
    ///
    /// # Errors
    /// If the address is not free.
    pub async fn start(address: &str) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let running = CancellationToken::new();
        let server = Self {
            address: listener.local_addr()?,
            state: Arc::new(Mutex::new(ChatState { start: RandomState::new().hash_one(()), ..ChatState::default() })),
            arrived: Arc::default(),
            shown: broadcast::Sender::new(64),
            is_down: watch::Sender::new(false),
            _running: Arc::new(running.clone().drop_guard()),
        };
        let accepting = Accepting {
            state: Arc::clone(&server.state),
            arrived: Arc::clone(&server.arrived),
            shown: server.shown.clone(),
            is_down: server.is_down.subscribe(),
        };
        tokio::spawn(running.run_until_cancelled_owned(accepting.run(listener)));
        Ok(server)
    }

    #[must_use]
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// A person writes in a chat. Returns the id of the message.
    #[expect(clippy::must_use_candidate, reason = "most callers do not need the id")]
    pub fn writes(&self, person: &str, chat: &str, text: &str) -> String {
        let mut state = self.state.lock();
        let id = state.next_id();
        let line = format!("message {id} {chat} {person} {}", escaped(text));
        state.unacknowledged.push_back((id.clone(), line));
        drop(state);
        self.arrived.notify_waiters();
        id
    }

    /// Sends a `message` line as it is.
    pub fn inject(&self, line: &str) {
        let id = line.split(' ').nth(1).unwrap_or_default().to_owned();
        self.state.lock().unacknowledged.push_back((id, line.to_owned()));
        self.arrived.notify_waiters();
    }

    /// Whether the gateway has acknowledged a message.
    #[must_use]
    pub fn is_acknowledged(&self, id: &str) -> bool {
        self.state.lock().acknowledged.contains(id)
    }

    /// The agent's messages in a chat, in order.
    #[must_use]
    pub fn shown(&self, chat: &str) -> Vec<String> {
        self.state.lock().shown.iter().filter(|(place, _)| place == chat).map(|(_, text)| text.clone()).collect()
    }

    /// The agent's future messages: chat and text.
    #[must_use]
    pub fn watch(&self) -> broadcast::Receiver<(String, String)> {
        self.shown.subscribe()
    }

    /// Closes every connection, and each new one at once.
    pub fn disconnect(&self) {
        self.is_down.send_replace(true);
    }

    pub fn reconnect(&self) {
        self.is_down.send_replace(false);
    }

    /// Accepts new connections and says nothing on them.
    pub fn fall_silent(&self) {
        self.state.lock().is_silent = true;
    }

    /// Whether somebody waits in vain since [`fall_silent`](Self::fall_silent).
    #[must_use]
    pub fn has_hanging_call(&self) -> bool {
        self.state.lock().has_hanging_call
    }

    /// Makes the next `say`, or with [`Fault::Deny`] the next `hello`, fail.
    pub fn fail_next(&self, fault: Fault) {
        self.state.lock().fault = Some(fault);
    }
}

impl ChatState {
    fn next_id(&mut self) -> String {
        self.latest += 1;
        format!("{:x}-{}", self.start, self.latest)
    }
}

/// What the server does about a line.
enum Reaction {
    Answer(String),
    /// Nothing: the line needs no answer.
    None,
    /// Closes the connection.
    Close,
    /// Says nothing more on the connection.
    Silence,
}

#[derive(Clone)]
struct Accepting {
    state: Arc<Mutex<ChatState>>,
    arrived: Arc<Notify>,
    shown: broadcast::Sender<(String, String)>,
    is_down: watch::Receiver<bool>,
}

impl Accepting {
    async fn run(self, listener: TcpListener) {
        let mut connections = tokio::task::JoinSet::new();
        while let Ok((socket, _)) = listener.accept().await {
            while connections.try_join_next().is_some() {}
            let connection = self.clone();
            connections.spawn(async move {
                let mut is_down = connection.is_down.clone();
                tokio::select! {
                    biased;
                    _ = is_down.wait_for(|is_down| *is_down) => {}
                    // The gateway connects again after an error.
                    _ = connection.serve(socket) => {}
                }
            });
        }
    }

    async fn serve(&self, socket: TcpStream) -> Result<(), io::Error> {
        let mut lines = Framed::new(socket, Lines::default());
        let greeting = lines.next().await.transpose()?;
        if self.is_silent() {
            return std::future::pending().await;
        }
        if self.denies() || greeting.as_deref() != Some(&format!("hello {TOKEN}")) {
            return lines.send("denied the token is unknown").await;
        }
        lines.send(&format!("welcome {NAME}")).await?;
        let (mut listens, mut brought) = (false, HashSet::new());
        loop {
            let arrived = self.arrived.notified();
            let waiting: Vec<_> = self.state.lock().unacknowledged.iter().cloned().collect();
            for (id, line) in waiting.into_iter().filter(|_| listens) {
                if brought.insert(id) {
                    lines.send(&line).await?;
                }
            }
            tokio::select! {
                () = arrived => {}
                line = lines.next() => match line.transpose()? {
                    Some(line) if line == "listen" => listens = true,
                    Some(line) => match self.react(&line) {
                        Reaction::Answer(answer) => lines.send(&answer).await?,
                        Reaction::None => {}
                        Reaction::Close => return Ok(()),
                        Reaction::Silence => std::future::pending().await,
                    },
                    None => return Ok(()),
                },
            }
        }
    }

    fn is_silent(&self) -> bool {
        let mut state = self.state.lock();
        state.has_hanging_call |= state.is_silent;
        state.is_silent
    }

    fn denies(&self) -> bool {
        let mut state = self.state.lock();
        state.fault.take_if(|fault| *fault == Fault::Deny).is_some()
    }

    fn react(&self, line: &str) -> Reaction {
        let words: Vec<_> = line.splitn(4, ' ').collect();
        match words[..] {
            ["ping"] => Reaction::Answer("pong".to_owned()),
            ["ack", id] => {
                let mut state = self.state.lock();
                state.unacknowledged.retain(|(waiting, _)| waiting != id);
                state.acknowledged.insert(id.to_owned());
                Reaction::None
            }
            ["say", key, chat, text] => self.say(key, chat, &unescaped(text)),
            _ => Reaction::None,
        }
    }

    fn say(&self, key: &str, chat: &str, text: &str) -> Reaction {
        let mut state = self.state.lock();
        if let Some(answer) = state.answers.get(key) {
            return Reaction::Answer(answer.clone());
        }
        let fault = state.fault.take();
        let failed = |why: &str| Reaction::Answer(format!("failed {why}"));
        match fault {
            Some(Fault::Wait(seconds)) => return failed(&format!("wait {seconds}")),
            Some(Fault::Busy) => return failed("busy"),
            Some(Fault::Refuse) => return failed("refused the chat is gone"),
            Some(Fault::LoseAnswer | Fault::Silence | Fault::Deny) | None => {}
        }
        if text.chars().count() > MAX_CHARS {
            return failed("refused the text is too long");
        }
        let answer = format!("sent {}", state.next_id());
        state.answers.insert(key.to_owned(), answer.clone());
        state.shown.push((chat.to_owned(), text.to_owned()));
        // Fails only if nobody watches.
        let _ = self.shown.send((chat.to_owned(), text.to_owned()));
        match fault {
            None => Reaction::Answer(answer),
            Some(Fault::Silence) => Reaction::Silence,
            Some(_) => Reaction::Close,
        }
    }
}
