//! One socket: the hello, then frames in both directions until either side closes.

use std::{collections::HashMap, sync::Arc, time::Duration};

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket};
use futures_util::{
    SinkExt, StreamExt,
    stream::{SplitSink, SplitStream},
};
use rejoinder_core::{
    ConversationRef, EventKind, InboundEvent, Intake, Language, Sender, StoreError, Timestamp, TurnId, TurnView,
    WorkStep, store::ThreadSummary,
};
use rejoinder_kit::{Peer, Tokens, TooManyGuesses};
use secrecy::ExposeSecret;
use tokio::{
    sync::mpsc,
    time::{MissedTickBehavior, interval, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    SocketContext, WebchatAdapter,
    accept::Acceptor,
    access::Access,
    inbound,
    protocol::{
        Account, ClientFrame, Command, DELETE, Listed, MAX_TEXT_BYTES, Problem, ServerFrame, Turn, VERSION, rfc3339,
    },
    reply::{Reply, refusal},
    rooms::SocketHandle,
    search::{Search, Searches},
    socket_permits::SocketPermit,
    visitor::Visitor,
};

// Network timeouts, not times of turns: they use the machine's clock, whatever clock the core has.

const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
/// How often we ping the page: less than the 30 s after which some proxies close an idle socket.
const PING_EVERY: Duration = Duration::from_secs(25);
/// How long a page may send no frame before it counts as gone: two pings and some more.
const IDLE_TIMEOUT: Duration = Duration::from_mins(1);
const WRITE_TIMEOUT: Duration = Duration::from_secs(20);

/// How many turns are sent at first, and for each `older`.
const PAGE_SIZE: u32 = 40;

/// How many conversations of a person are listed: as many as a page keeps.
const LISTED: u32 = 200;

/// How many replies to the page's frames may wait to be written.
const MAX_REPLIES: usize = 16;

/// RFC 6455, section 7.4.1: normal, and going away.
const CLOSED: u16 = 1000;
const GOING_AWAY: u16 = 1001;

type Sink = SplitSink<WebSocket, Message>;
type Stream = SplitStream<WebSocket>;

/// Serves a socket of `peer` until it ends. `visitor` is who has opened it, if people sign in.
pub(crate) async fn serve(
    chat: Arc<WebchatAdapter>,
    socket: WebSocket,
    peer: Peer,
    mut permit: SocketPermit,
    visitor: Option<Visitor>,
) {
    let (mut sink, mut stream) = socket.split();
    let Some(context) = chat.socket_context.get() else {
        return refuse(&mut sink, Problem::NOT_READY).await;
    };
    let _tracked = context.sockets.token();
    let hello = read_hello(&chat, &mut stream, peer, visitor.as_ref());
    let greeted = tokio::select! {
        greeted = timeout(HELLO_TIMEOUT, hello) => greeted.unwrap_or(Err(Problem::HELLO_TIMEOUT)),
        () = permit.evicted() => Err(Problem::TOO_MANY_SOCKETS),
        () = context.closing.cancelled() => return close(&mut sink, GOING_AWAY).await,
    };
    let (conversation, language) = match greeted {
        Ok(greeted) => greeted,
        Err(problem) => return refuse(&mut sink, problem).await,
    };
    if !permit.greet() {
        return refuse(&mut sink, Problem::TOO_MANY_SOCKETS).await;
    }
    // Registered before the store is read, so that no change is missed.
    let Some(handle) = chat.rooms.join(&inbound::room(&conversation)) else {
        return refuse(&mut sink, Problem::BUSY).await;
    };
    let handle = Arc::new(handle);
    let intake = context.intake.clone();
    let Ok((turns, steps, more)) = load_turns(&intake, &conversation, None).await else {
        return refuse(&mut sink, Problem::NOT_READY).await;
    };
    let threads = match &visitor {
        Some(visitor) => load_threads(&intake, visitor).await.map(Some),
        None => Ok(None),
    };
    let Ok(threads) = threads else { return refuse(&mut sink, Problem::NOT_READY).await };
    let agent = intake.agent();
    let welcome = ServerFrame::Welcome {
        protocol: VERSION,
        title: &chat.title,
        greeting: &chat.greeting,
        agent: &agent,
        commands: intake.commands().into_iter().map(|help| Command::of(help, language)).collect(),
        max_text_bytes: MAX_TEXT_BYTES,
        max_files: chat.files.per_message,
        max_file_bytes: chat.files.max,
        push_key: chat.pushes.as_ref().map(|pushes| pushes.key()),
        now: rfc3339(intake.clock().now()),
        turns: Turn::list(&turns, steps, &intake),
        more,
        account: visitor.as_ref().zip(threads).map(|(visitor, threads)| Account::of(visitor, threads)),
    };
    let (reply_sender, replies) = mpsc::channel(MAX_REPLIES);
    let Ok(()) = reply_sender.try_send(Reply::with_turns(&welcome, &turns)) else { return };

    let ended = CancellationToken::new();
    let writer = Writer {
        sink,
        handle,
        replies,
        intake: intake.clone(),
        conversation: conversation.clone(),
        visitor: visitor.clone(),
        context: Arc::clone(&context),
        ended: ended.clone(),
    };
    let writer = tokio::spawn(writer.run());
    let _ended = ended.clone().drop_guard();
    let searches = Searches::new(Arc::clone(&chat), intake.clone(), visitor.clone(), reply_sender.clone());
    let sender = inbound::sender(&conversation, visitor.as_ref());
    let token = ended.clone();
    let reader =
        Reader { chat, intake, conversation, visitor, context, sender, language, reply_sender, searches, ended: token };
    reader.run(&mut stream).await;
    ended.cancel();
    // If the writer panicked, it has closed the socket, and nothing is left to do.
    let _ = writer.await;
}

/// Reads the hello, and checks it. Returns the conversation and the page's language.
async fn read_hello(
    chat: &WebchatAdapter,
    stream: &mut Stream,
    peer: Peer,
    visitor: Option<&Visitor>,
) -> Result<(ConversationRef, Option<Language>), Problem> {
    let Some(text) = next_text(stream).await else { return Err(Problem::HELLO_FIRST) };
    let Ok(ClientFrame::Hello { protocol, conversation, token, language }) = serde_json::from_str(&text) else {
        return Err(Problem::HELLO_FIRST);
    };
    if protocol != VERSION {
        return Err(Problem::OTHER_PROTOCOL);
    }
    match &chat.access {
        Access::Token(tokens) => {
            let token = token.as_ref().map(|token| token.expose_secret().as_bytes());
            check_token(chat, tokens, token, peer).await?;
        }
        Access::People(_) if visitor.is_none() => return Err(Problem::SIGN_IN_REQUIRED),
        Access::People(_) | Access::Loopback => {}
    }
    let language = language.as_deref().and_then(Language::of);
    Ok((inbound::conversation(&chat.channel, &conversation, visitor)?, language))
}

/// Checks the token of a visitor, in the turn of its peer.
pub(crate) async fn check_token(
    chat: &WebchatAdapter,
    tokens: &Tokens,
    sent: Option<&[u8]>,
    peer: Peer,
) -> Result<(), Problem> {
    let surface = chat.channel.as_str();
    let Some(sent) = sent else {
        chat.guesses.missing(peer, surface);
        return Err(Problem::TOKEN_REQUIRED);
    };
    chat.guesses.turn_of(peer, surface, sent).await.map_err(|TooManyGuesses| Problem::TOO_MANY_GUESSES)?;
    if tokens.open_for(sent) {
        chat.guesses.right(peer, surface, sent);
        return Ok(());
    }
    chat.guesses.wrong(peer, surface);
    Err(Problem::TOKEN_WRONG)
}

/// The next text frame; `None` if the socket ended or sent a binary frame.
async fn next_text(stream: &mut Stream) -> Option<Utf8Bytes> {
    loop {
        match stream.next().await? {
            Ok(Message::Text(text)) => return Some(text),
            Ok(Message::Ping(_) | Message::Pong(_)) => {}
            // The protocol has no binary frames.
            Ok(Message::Binary(_) | Message::Close(_)) | Err(_) => return None,
        }
    }
}

async fn refuse(sink: &mut Sink, problem: Problem) {
    let frame = ServerFrame::Error { id: None, problem }.to_text();
    if write(sink, Message::Text(frame)).await {
        close(sink, problem.close.unwrap_or(CLOSED)).await;
    }
}

async fn close(sink: &mut Sink, code: u16) {
    write(sink, Message::Close(Some(CloseFrame { code, reason: Utf8Bytes::default() }))).await;
}

async fn write(sink: &mut Sink, message: Message) -> bool {
    matches!(timeout(WRITE_TIMEOUT, sink.send(message)).await, Ok(Ok(())))
}

/// The last turns (before `before`), oldest first, and whether there are earlier ones.
async fn load_turns(
    intake: &Intake,
    conversation: &ConversationRef,
    before: Option<TurnId>,
) -> Result<(Vec<TurnView>, HashMap<TurnId, Vec<WorkStep>>, bool), StoreError> {
    let mut turns = intake.views(conversation, before, PAGE_SIZE + 1).await?;
    let more = turns.len() > PAGE_SIZE as usize;
    if more {
        turns.remove(0);
    }
    let steps = intake.steps(&turns).await?;
    Ok((turns, steps, more))
}

/// The conversations of a person.
async fn load_threads(intake: &Intake, visitor: &Visitor) -> Result<Vec<ThreadSummary>, StoreError> {
    intake.visitors().threads(&visitor.account, LISTED).await
}

/// Whether the visit is over with which a socket was opened. What cannot be read is looked at again.
async fn is_signed_out(visitor: Option<&Visitor>, context: &SocketContext) -> bool {
    match visitor {
        Some(visitor) => visitor.is_there(context).await.is_ok_and(|is_there| !is_there),
        None => false,
    }
}

struct Writer {
    sink: Sink,
    handle: Arc<SocketHandle>,
    replies: mpsc::Receiver<Reply>,
    intake: Intake,
    conversation: ConversationRef,
    visitor: Option<Visitor>,
    context: Arc<SocketContext>,
    ended: CancellationToken,
}

impl Writer {
    async fn run(mut self) {
        let _ended = self.ended.clone().drop_guard();
        let mut pings = interval(PING_EVERY);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        pings.reset();
        loop {
            let is_open = tokio::select! {
                biased;
                () = self.context.closing.cancelled() => return close(&mut self.sink, GOING_AWAY).await,
                () = self.ended.cancelled() => return close(&mut self.sink, CLOSED).await,
                // Before what waits to be written: a page that always has something waiting is signed out as well.
                _ = pings.tick() => {
                    if is_signed_out(self.visitor.as_ref(), &self.context).await {
                        return refuse(&mut self.sink, Problem::SIGNED_OUT).await;
                    }
                    self.write(Reply::plain(&ServerFrame::Ping)).await
                }
                Some(reply) = self.replies.recv() => self.write(reply).await,
                () = self.handle.arrived() => self.write_pending().await,
            };
            if !is_open {
                return;
            }
        }
    }

    async fn write(&mut self, reply: Reply) -> bool {
        let is_written = write(&mut self.sink, Message::Text(reply.text)).await;
        if is_written {
            for turn in reply.shown_turns {
                self.intake.fetched(turn);
            }
        }
        is_written
    }

    async fn write_pending(&mut self) -> bool {
        let pending = self.handle.take();
        if pending.resync {
            metrics::counter!("rejoinder_webchat_resyncs_total").increment(1);
            let loaded = load_turns(&self.intake, &self.conversation, None).await;
            let Ok((turns, steps, more)) = loaded else { return false };
            let sync = ServerFrame::Sync { turns: Turn::list(&turns, steps, &self.intake), more };
            if !self.write(Reply::with_turns(&sync, &turns)).await {
                return false;
            }
        }
        let turns = pending.turns.into_iter().map(|(turn, progress, text)| Reply {
            text,
            shown_turns: if progress.is_final() { vec![turn] } else { vec![] },
        });
        let passing = pending.drafts.into_iter().map(|draft| draft.1).chain(pending.typing);
        for reply in turns.chain(passing.map(|text| Reply { text, shown_turns: vec![] })) {
            if !self.write(reply).await {
                return false;
            }
        }
        true
    }
}

struct Reader {
    chat: Arc<WebchatAdapter>,
    intake: Intake,
    conversation: ConversationRef,
    visitor: Option<Visitor>,
    context: Arc<SocketContext>,
    sender: Sender,
    language: Option<Language>,
    reply_sender: mpsc::Sender<Reply>,
    searches: Searches,
    ended: CancellationToken,
}

impl Reader {
    async fn run(&self, stream: &mut Stream) {
        loop {
            // Only reading is cancelled: a frame that was read is handled to the end.
            let text = tokio::select! {
                text = timeout(IDLE_TIMEOUT, next_text(stream)) => text,
                () = self.ended.cancelled() => return,
            };
            let Ok(Some(text)) = text else { return };
            let reply = self.handle_frame(&text).await;
            if let Some(reply) = reply
                && self.reply_sender.send(reply).await.is_err()
            {
                return;
            }
        }
    }

    async fn handle_frame(&self, raw: &str) -> Option<Reply> {
        let Ok(frame) = serde_json::from_str::<ClientFrame>(raw) else {
            return Some(refusal(None, Problem::NOT_A_FRAME));
        };
        let says_nothing = matches!(frame, ClientFrame::Ping | ClientFrame::Pong);
        if !says_nothing && is_signed_out(self.visitor.as_ref(), &self.context).await {
            return Some(refusal(None, Problem::SIGNED_OUT));
        }
        let now = self.intake.clock().now();
        match frame {
            ClientFrame::Hello { .. } => Some(refusal(None, Problem::HELLO_AGAIN)),
            ClientFrame::Message { id, text, instead_of } => {
                let event = inbound::message(&self.conversation, &self.sender, &id, &text, raw, now);
                Some(self.accept(&id, event.map(|event| InboundEvent { instead_of, ..event })).await)
            }
            ClientFrame::Choose { id, turn_id, choice, asked } => {
                let event = match self.choice_text(turn_id, choice, asked.as_deref()).await {
                    Ok(text) => {
                        let kind = EventKind::Choice { turn: turn_id };
                        inbound::event(&self.conversation, &self.sender, &id, kind, text, raw, now)
                    }
                    Err(problem) => Err(problem),
                };
                Some(self.accept(&id, event).await)
            }
            ClientFrame::Stop => {
                let (id, stop) = (TurnId::new(now).to_string(), inbound::STOP.to_owned());
                let event = inbound::event(&self.conversation, &self.sender, &id, EventKind::Message, stop, raw, now);
                Some(self.accept(&id, event).await)
            }
            ClientFrame::Delete { id, conversation } => Some(self.delete(&id, &conversation, now).await),
            ClientFrame::Search { id, text, conversations } => self.searches.begin(Search { id, text, conversations }),
            ClientFrame::Older { before } => {
                Some(match load_turns(&self.intake, &self.conversation, Some(before)).await {
                    Ok((turns, steps, more)) => {
                        let history = ServerFrame::History { turns: Turn::list(&turns, steps, &self.intake), more };
                        Reply::with_turns(&history, &turns)
                    }
                    Err(_) => refusal(None, Problem::UNAVAILABLE),
                })
            }
            ClientFrame::List => {
                let visitor = self.visitor.as_ref()?;
                Some(match load_threads(&self.intake, visitor).await {
                    Ok(threads) => Reply::plain(&ServerFrame::Conversations { conversations: Listed::all(threads) }),
                    Err(_) => refusal(None, Problem::UNAVAILABLE),
                })
            }
            ClientFrame::Subscribe { id, endpoint, key, auth } => {
                let keys = (key.expose_secret(), auth.expose_secret());
                Some(stored(&id, self.subscribe(endpoint, keys).await))
            }
            ClientFrame::Unsubscribe { id, endpoint } => {
                let removed = self.intake.unsubscribe(&endpoint).await;
                Some(stored(&id, removed.map_err(|_| Problem::UNAVAILABLE)))
            }
            ClientFrame::Ping => Some(Reply::plain(&ServerFrame::Pong)),
            ClientFrame::Pong => None,
        }
    }

    /// The words of a pick. A run may ask more than once, so a pick from what was asked before has come too late.
    async fn choice_text(
        &self,
        turn: TurnId,
        pick: crate::protocol::Pick,
        asked: Option<&str>,
    ) -> Result<String, Problem> {
        let view = self.intake.view(turn).await.map_err(|_| Problem::UNAVAILABLE)?;
        let view = view.filter(|view| view.conversation == self.conversation).ok_or(Problem::UNKNOWN_TURN)?;
        if let (Some(shown), Some(asked)) = (&view.shown, asked)
            && rfc3339(shown.at) != asked
        {
            return Err(Problem::EXPIRED);
        }
        let choices = view.shown.map(|shown| shown.choices).unwrap_or_default();
        pick.of(&choices).cloned().ok_or(Problem::UNKNOWN_CHOICE)
    }

    async fn accept(&self, id: &str, event: Result<InboundEvent, Problem>) -> Reply {
        let Self { chat, intake, conversation, language, .. } = self;
        let acceptor = Acceptor { chat, intake, conversation, language: *language };
        let accepted = match event {
            Ok(event) => acceptor.accept(event).await,
            Err(problem) => Err(problem),
        };
        match accepted {
            Ok(turn_id) => Reply::plain(&ServerFrame::Accepted { id, turn_id }),
            Err(problem) => refusal(Some(id), problem),
        }
    }

    /// Has the browser told of what is shown in the conversation from now on.
    async fn subscribe(&self, endpoint: String, (key, auth): (&str, &str)) -> Result<(), Problem> {
        let subscription = self.chat.pushes.as_ref().and_then(|pushes| pushes.subscription(endpoint, key, auth));
        let subscription = subscription.ok_or(Problem::NOT_A_SUBSCRIPTION)?;
        let endpoint = subscription.endpoint.clone();
        self.intake.subscribe(&self.conversation, subscription).await.map_err(|_| Problem::UNAVAILABLE)?;
        // What ended the visit meanwhile did not find this subscription.
        if is_signed_out(self.visitor.as_ref(), &self.context).await {
            self.intake.unsubscribe(&endpoint).await.map_err(|_| Problem::UNAVAILABLE)?;
            return Err(Problem::SIGNED_OUT);
        }
        Ok(())
    }

    /// Deletes what was said in a conversation, in which anything may be said again.
    async fn delete(&self, id: &str, conversation: &str, now: Timestamp) -> Reply {
        let visitor = self.visitor.as_ref();
        let event = inbound::conversation(&self.chat.channel, conversation, visitor).and_then(|conversation| {
            let sender = inbound::sender(&conversation, visitor);
            inbound::event(&conversation, &sender, id, EventKind::Message, DELETE.to_owned(), "", now)
        });
        match event {
            Ok(event) => match self.intake.views(&event.conversation, None, 1).await {
                Ok(turns) if turns.is_empty() => Reply::plain(&ServerFrame::Accepted { id, turn_id: None }),
                Ok(_) => match self.intake.unsubscribe_all(&event.conversation).await {
                    Ok(()) => self.accept(id, Ok(event)).await,
                    Err(_) => refusal(Some(id), Problem::UNAVAILABLE),
                },
                Err(_) => refusal(Some(id), Problem::UNAVAILABLE),
            },
            Err(problem) => refusal(Some(id), problem),
        }
    }
}

fn stored(id: &str, stored: Result<(), Problem>) -> Reply {
    match stored {
        Ok(()) => Reply::plain(&ServerFrame::Accepted { id, turn_id: None }),
        Err(problem) => refusal(Some(id), problem),
    }
}
