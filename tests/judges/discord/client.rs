//! A serenity client that records its events.

use std::{future::Future, sync::Arc};

use rejoinder_discord_server::{DiscordServer, PATIENCE};
use serenity::{
    Client, Error,
    all::{ChannelId, CreateMessage, Event, GatewayIntents, Http, HttpBuilder, Message, RawEventHandler, ShardManager},
    client::{ClientBuilder, Context},
    http::HttpError,
};
use tokio::sync::{Mutex, mpsc};

/// A connected client.
pub(crate) struct Judge {
    pub(crate) http: Arc<Http>,
    events: Mutex<mpsc::UnboundedReceiver<Event>>,
    shards: Arc<ShardManager>,
    running: tokio::task::JoinHandle<()>,
}

struct Recorder(mpsc::UnboundedSender<Event>);

#[serenity::async_trait]
impl RawEventHandler for Recorder {
    async fn raw_event(&self, _: Context, event: Event) {
        // The receiver is gone once the test is over.
        let _ = self.0.send(event);
    }
}

impl Judge {
    /// Connects with all intents, and waits for READY.
    pub(crate) async fn connects(server: &DiscordServer) -> Self {
        let judge = Self::connects_with(server, GatewayIntents::all()).await;
        judge.sees("READY", |event| matches!(event, Event::Ready(_)).then_some(())).await;
        judge
    }

    /// Connects without waiting.
    pub(crate) async fn connects_with(server: &DiscordServer, intents: GatewayIntents) -> Self {
        let (sender, events) = mpsc::unbounded_channel();
        let builder = ClientBuilder::new_with_http(http(server), intents).raw_event_handler(Recorder(sender));
        let mut client: Client = builder.await.expect("the client is built");
        let (http, shards) = (Arc::clone(&client.http), Arc::clone(&client.shard_manager));
        let running = tokio::spawn(async move {
            // Returns an error if a test ends its session.
            let _ = client.start().await;
        });
        Self { http, events: Mutex::new(events), shards, running }
    }

    /// Waits for an event for which `what` returns `Some`.
    pub(crate) async fn sees<T>(&self, about: &str, mut what: impl FnMut(Event) -> Option<T>) -> T {
        let mut events = self.events.lock().await;
        let found = async {
            loop {
                let event = events.recv().await.expect("the client runs");
                if let Some(found) = what(event) {
                    return found;
                }
            }
        };
        tokio::time::timeout(PATIENCE, found).await.unwrap_or_else(|_| panic!("waited in vain: {about}"))
    }

    /// Waits for the next message from a person.
    pub(crate) async fn hears(&self) -> Message {
        self.sees("a message", |event| match event {
            Event::MessageCreate(event) if !event.message.author.bot => Some(event.message),
            _ => None,
        })
        .await
    }

    /// Disconnects.
    pub(crate) async fn leaves(self) {
        self.shards.shutdown_all().await;
        self.running.abort();
    }
}

/// A client for the REST API.
pub(crate) fn http(server: &DiscordServer) -> Http {
    HttpBuilder::new(server.token()).proxy(server.api_url()).ratelimiter_disabled(true).build()
}

pub(crate) fn send<'a>(
    http: &'a Http,
    channel: &rejoinder_discord_server::Channel,
    message: CreateMessage,
) -> impl Future<Output = Result<Message, Error>> + use<'a> {
    let channel = ChannelId::new(number(channel.id()));
    async move { channel.send_message(http, message).await }
}

/// An id as a number, which serenity needs.
pub(crate) fn number(id: &str) -> u64 {
    id.parse().expect("an id is a number")
}

/// The status and code of a rejected call.
pub(crate) fn refusal<T>(result: Result<T, Error>) -> (u16, isize) {
    match result {
        Err(Error::Http(HttpError::UnsuccessfulRequest(response))) => {
            (response.status_code.as_u16(), response.error.code)
        }
        Err(other) => panic!("another error: {other:?}"),
        Ok(_) => panic!("the call was not rejected"),
    }
}
