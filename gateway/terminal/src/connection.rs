//! The socket of one conversation, kept open: it connects again, and sends messages again that were not accepted.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use rejoinder_core::Backoff;
use secrecy::{ExposeSecret, SecretString};
use tokio::{
    net::TcpStream,
    sync::mpsc,
    time::{Instant, sleep, sleep_until, timeout},
};
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async,
    tungstenite::{self, Message, http},
};

use super::{
    door::{self, Door},
    frames::{ClientFrame, ServerFrame, Turn, Welcome, with_activity},
    outbox::{Outbox, Say},
};

/// How long the gateway may take to open the socket, and to answer the hello.
const OPEN_TIMEOUT: Duration = Duration::from_secs(15);
/// How long the gateway may say nothing: it pings every 25 s.
const SILENCE_TIMEOUT: Duration = Duration::from_mins(1);
/// How long writing a frame may take.
const WRITE_TIMEOUT: Duration = Duration::from_secs(20);

/// What the gateway says, and what becomes of the connection.
#[derive(Debug)]
pub(crate) enum Event {
    /// The conversation is open: at first, and after each lost connection.
    Welcome(Box<Welcome>),
    /// The connection is lost. It is opened again.
    Lost,
    /// What was said under this id is stored. `None`: a choice that came too late.
    Accepted {
        id: String,
        turn: Option<String>,
    },
    /// A frame was refused.
    Refused {
        id: Option<String>,
        why: String,
    },
    Turn(Box<Turn>),
    /// The Markdown so far of an answer.
    Draft {
        turn: String,
        text: String,
    },
    Typing {
        turn: String,
        on: bool,
    },
    /// The connection cannot be opened (again). Nothing follows.
    Ended(String),
}

/// What the person wants.
#[derive(Debug)]
enum Wish {
    Say(String, Say),
    Stop,
}

/// The way in and out of a conversation. The socket closes on drop.
#[derive(Debug)]
pub(crate) struct Connection {
    wishes: mpsc::UnboundedSender<Wish>,
    events: mpsc::UnboundedReceiver<Event>,
}

impl Connection {
    /// Opens a conversation.
    pub(crate) fn open(door: Box<dyn Door>, conversation: SecretString) -> Self {
        let (wishes, wanted) = mpsc::unbounded_channel();
        let (sender, events) = mpsc::unbounded_channel();
        let keeper = Keeper {
            door,
            base: String::new(),
            conversation,
            wanted,
            events: sender,
            outbox: Outbox::default(),
            wants_stop: false,
            is_known: false,
        };
        tokio::spawn(keeper.run());
        Self { wishes, events }
    }

    /// Sends this, now or once the connection is open, and again until it is accepted or refused. Returns its id.
    pub(crate) fn say(&self, say: Say) -> String {
        let id = uuid::Uuid::new_v4().simple().to_string();
        // If the task has ended, its last event says so.
        let _ = self.wishes.send(Wish::Say(id.clone(), say));
        id
    }

    /// Stops the running turn.
    pub(crate) fn stop(&self) {
        let _ = self.wishes.send(Wish::Stop);
    }

    pub(crate) async fn next(&mut self) -> Event {
        let ended = || Event::Ended("the connection has ended".to_owned());
        self.events.recv().await.unwrap_or_else(ended)
    }
}

/// Why a socket ended.
enum End {
    /// The person has left.
    Left,
    /// It can be opened again.
    Lost(String),
    /// It makes no sense to try again.
    Refused(String),
}

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Keeps the socket open.
struct Keeper {
    door: Box<dyn Door>,
    /// The URL of the gateway, as it was when the socket was opened.
    base: String,
    conversation: SecretString,
    wanted: mpsc::UnboundedReceiver<Wish>,
    events: mpsc::UnboundedSender<Event>,
    outbox: Outbox,
    /// Whether a stop is wanted and was not sent yet.
    wants_stop: bool,
    /// Whether the conversation was open once.
    is_known: bool,
}

impl Keeper {
    async fn run(mut self) {
        let mut backoff = Backoff::default();
        loop {
            let end = match self.connect().await {
                Ok((socket, welcome)) => {
                    self.is_known = true;
                    backoff.reset();
                    self.tell(Event::Welcome(welcome));
                    let end = self.talk(socket).await;
                    if let End::Lost(_) = end {
                        self.tell(Event::Lost);
                    }
                    end
                }
                Err(end) => end,
            };
            match end {
                End::Left => return,
                End::Lost(_) if self.is_known => {}
                End::Lost(why) | End::Refused(why) => return self.tell(Event::Ended(why)),
            }
            if self.events.is_closed() {
                return;
            }
            sleep(backoff.pause_unreachable()).await;
        }
    }

    fn tell(&self, event: Event) {
        // Nobody listens any more once the person has left.
        let _ = self.events.send(event);
    }

    fn tell_turn(&self, mut turn: Box<Turn>) {
        turn.complete_links(&self.base);
        self.tell(Event::Turn(turn));
    }

    /// Opens the socket and the conversation.
    async fn connect(&mut self) -> Result<(Socket, Box<Welcome>), End> {
        let url = self.door.url().map_err(|why| End::Lost(why.to_string()))?;
        self.base = base_of(&url);
        let opened = timeout(OPEN_TIMEOUT, connect_async(&url)).await;
        let late = || End::Lost(format!("the gateway at {url} does not answer"));
        let mut socket = match opened.map_err(|_| late())? {
            Ok((socket, _)) => socket,
            Err(tungstenite::Error::Http(response)) => return Err(refusal(&response)),
            Err(error) => return Err(End::Lost(format!("no gateway answers at {url}: {error}"))),
        };
        let language = door::language();
        let hello = ClientFrame::Hello {
            conversation: self.conversation.expose_secret(),
            token: self.door.token().map(ExposeSecret::expose_secret),
            language: language.as_deref(),
        };
        write(&mut socket, hello.to_text()).await?;
        loop {
            match timeout(OPEN_TIMEOUT, read(&mut socket)).await.map_err(|_| late())?? {
                ServerFrame::Welcome(mut welcome) => {
                    welcome.turns.iter_mut().for_each(|turn| turn.complete_links(&self.base));
                    return Ok((socket, welcome));
                }
                ServerFrame::Error { message, retry: true, .. } => return Err(End::Lost(message)),
                ServerFrame::Error { code, message, .. } => return Err(End::Refused(advised(&code, message))),
                _ => {}
            }
        }
    }

    /// Talks until the socket ends.
    async fn talk(&mut self, mut socket: Socket) -> End {
        self.outbox.reconnected();
        loop {
            if let Err(end) = self.write_waiting(&mut socket).await {
                return end;
            }
            let wakes = self.outbox.wakes();
            let frame = tokio::select! {
                wish = self.wanted.recv() => match wish {
                    Some(Wish::Say(id, say)) => {
                        self.outbox.push(id, say);
                        continue;
                    }
                    Some(Wish::Stop) => {
                        self.wants_stop = true;
                        continue;
                    }
                    None => {
                        // The gateway may be gone.
                        let _ = timeout(WRITE_TIMEOUT, socket.close(None)).await;
                        return End::Left;
                    }
                },
                () = sleep_until(wakes.unwrap_or_else(Instant::now)), if wakes.is_some() => continue,
                frame = timeout(SILENCE_TIMEOUT, read(&mut socket)) => frame,
            };
            match frame {
                Ok(Ok(ServerFrame::Ping)) => {
                    if let Err(end) = write(&mut socket, ClientFrame::Pong.to_text()).await {
                        return end;
                    }
                }
                Ok(Ok(frame)) => self.take_in(frame),
                Ok(Err(end)) => return end,
                Err(_silent) => return End::Lost("the gateway says nothing".to_owned()),
            }
        }
    }

    async fn write_waiting(&mut self, socket: &mut Socket) -> Result<(), End> {
        if let Some(frame) = self.outbox.next(Instant::now()) {
            write(socket, frame).await?;
        }
        if self.wants_stop {
            write(socket, ClientFrame::Stop.to_text()).await?;
            self.wants_stop = false;
        }
        Ok(())
    }

    fn take_in(&mut self, frame: ServerFrame) {
        match frame {
            ServerFrame::Accepted { id, turn_id } => {
                self.outbox.remove(&id);
                self.tell(Event::Accepted { id, turn: turn_id });
            }
            ServerFrame::Error { id: Some(id), retry: true, .. } => self.outbox.retry(&id, Instant::now()),
            ServerFrame::Error { id, message, .. } => {
                if let Some(id) = &id {
                    self.outbox.remove(id);
                }
                self.tell(Event::Refused { id, why: message });
            }
            ServerFrame::Turn { turn } => self.tell_turn(turn),
            ServerFrame::Sync { turns } => turns.into_iter().for_each(|turn| self.tell_turn(Box::new(turn))),
            ServerFrame::Draft { turn_id, text: Some(text), steps } => {
                let text = with_activity(text, &steps);
                if !text.is_empty() {
                    self.tell(Event::Draft { turn: turn_id, text });
                }
            }
            ServerFrame::Typing { turn_id, on } => self.tell(Event::Typing { turn: turn_id, on }),
            ServerFrame::Draft { .. } | ServerFrame::Welcome(_) | ServerFrame::Ping | ServerFrame::Unknown => {}
        }
    }
}

/// The URL of the gateway whose socket has this one: `http://127.0.0.1:7420` of `ws://127.0.0.1:7420/chat/main/ws`.
fn base_of(socket: &str) -> String {
    let base = socket.split_once("/chat/").map_or(socket, |(base, _)| base);
    base.replacen("ws", "http", 1)
}

/// The next frame.
async fn read(socket: &mut Socket) -> Result<ServerFrame, End> {
    loop {
        match socket.next().await {
            Some(Ok(Message::Text(text))) => {
                return serde_json::from_str(&text).map_err(|error| End::Lost(format!("not a frame: {error}")));
            }
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            Some(Ok(_)) | None => return Err(End::Lost("the gateway closed the connection".to_owned())),
            Some(Err(error)) => return Err(End::Lost(error.to_string())),
        }
    }
}

async fn write(socket: &mut Socket, text: String) -> Result<(), End> {
    match timeout(WRITE_TIMEOUT, socket.send(Message::text(text))).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(End::Lost(error.to_string())),
        Err(_late) => Err(End::Lost("the gateway takes nothing".to_owned())),
    }
}

/// Why the gateway opens no socket. Its body is a problem document.
fn refusal(response: &http::Response<Option<Vec<u8>>>) -> End {
    let body = response.body().as_deref().unwrap_or_default();
    let problem: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let why = problem["detail"].as_str().map_or_else(|| response.status().to_string(), str::to_owned);
    if response.status().is_server_error() || response.status() == http::StatusCode::TOO_MANY_REQUESTS {
        End::Lost(why)
    } else {
        End::Refused(why)
    }
}

/// The gateway's error, and the advice to the operator.
fn advised(code: &str, message: String) -> String {
    match code {
        "token_wrong" | "token_required" => {
            format!(
                "{message} The running gateway has another configuration: restart it, or pass its --config and --data"
            )
        }
        _ => message,
    }
}
