//! The task that stays connected to the Gateway.

use std::{sync::Arc, time::Duration};

use rand::Rng;
use rejoinder_core::{Backoff, ChannelError};
use rejoinder_kit::{Receiver, RunEnd, ShuttingDown};
use serde::Deserialize;
use serenity::model::gateway::GatewayIntents;
use tokio::{
    sync::{mpsc::OwnedPermit, oneshot},
    time::{Instant, MissedTickBehavior},
};

use super::{
    connection::{Connection, ConnectionError},
    frame::{self, Frame, Op, ReadySession},
    queues::{Dispatch, Queues, Urgent},
    session::{Session, StoredSeq, stale_after},
};
use crate::{
    Discord, UNKNOWN_TOKEN,
    errors::{ApiError, Refusal},
};

const HELLO_TIMEOUT: Duration = Duration::from_secs(20);

/// The minimum time between the starts of two sessions
/// (<https://discord.com/developers/docs/events/gateway#session-start-limit-object>, `max_concurrency`).
const BETWEEN_SESSIONS: Duration = Duration::from_secs(5);

/// The problem that is reported when Discord denies the intent `MESSAGE_CONTENT`.
const NO_CONTENT: &str = "the MESSAGE CONTENT INTENT is not switched on for the application (developer portal, \"Bot\"): \
    messages in servers that do not mention the bot cannot be read; switch it on, or set message_content = false";

/// Stays connected and passes on the events.
pub(crate) struct Shard<'a> {
    pub(crate) discord: &'a Discord,
    pub(crate) receiver: Receiver<'a>,
    pub(crate) stored: Arc<StoredSeq>,
    pub(crate) queues: Queues,
    pub(crate) session: Option<Session>,
    /// Discord denied the intent `MESSAGE_CONTENT`, so it is not requested again.
    pub(crate) is_content_denied: bool,
}

enum ConnectionEnd {
    Shutdown,
    /// The connection failed. The session is resumed, if there is one.
    Broken(String),
    /// The session is over. A new one may start after this pause.
    SessionOver(Duration),
    ContentDenied,
    Fatal(ChannelError),
}

#[derive(Deserialize)]
struct GatewayBot {
    url: String,
    session_start_limit: Option<StartLimit>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct StartLimit {
    total: u64,
    remaining: u64,
    /// In milliseconds.
    reset_after: u64,
}

impl StartLimit {
    /// How long to wait before a session is started. The last tenth of the budget is spread over the remaining time: Discord
    /// counts across our restarts, and resets the token of a bot that exceeds the budget.
    fn pause(self) -> Duration {
        let left = Duration::from_millis(self.reset_after);
        match self.remaining {
            0 => left,
            remaining if remaining < self.total / 10 => left / u32::try_from(remaining).unwrap_or(u32::MAX),
            _ => Duration::ZERO,
        }
    }
}

impl Shard<'_> {
    pub(crate) async fn run(mut self) -> Result<(), RunEnd> {
        let mut backoff = Backoff::default();
        let mut may_begin_at = Instant::now();
        loop {
            let url = match self.next_url(&mut may_begin_at).await? {
                Ok(url) => url,
                Err(error) => {
                    if error.refusal().is_some_and(Refusal::is_about_token) {
                        return Err(self.unauthorized(error.to_string()).into());
                    }
                    self.report_failure(&format!("Discord does not tell its gateway's address: {error}"));
                    let pause = match error.refusal() {
                        Some(_) => backoff.pause(),
                        None => backoff.pause_unreachable(),
                    };
                    self.receiver.pause(pause.max(error.pause().unwrap_or_default())).await?;
                    continue;
                }
            };
            let (ended, proved) = self.connect(&url).await;
            if proved {
                backoff.reset();
            }
            let pause = match ended {
                ConnectionEnd::Shutdown => return Err(RunEnd::Shutdown),
                ConnectionEnd::Fatal(error) => return Err(error.into()),
                ConnectionEnd::Broken(why) => {
                    self.report_failure(&why);
                    backoff.pause()
                }
                ConnectionEnd::SessionOver(pause) => {
                    self.session = None;
                    may_begin_at = may_begin_at.max(Instant::now() + pause);
                    Duration::ZERO
                }
                ConnectionEnd::ContentDenied => {
                    self.is_content_denied = true;
                    if self.discord.health.setup_fails(NO_CONTENT) {
                        tracing::warn!(channel = %self.discord.channel, "{NO_CONTENT}");
                    }
                    self.session = None;
                    may_begin_at = Instant::now() + BETWEEN_SESSIONS;
                    Duration::ZERO
                }
            };
            self.receiver.pause(pause).await?;
        }
    }

    fn unauthorized(&self, detail: String) -> ChannelError {
        self.discord.health.inbound_fails(UNKNOWN_TOKEN);
        ChannelError::Unauthorized(detail)
    }

    fn report_failure(&self, problem: &str) {
        tracing::warn!(channel = %self.discord.channel, problem, "no connection to Discord's gateway, retrying");
        self.discord.health.inbound_fails(problem);
    }

    /// The URL to connect to. Without a session to resume, waits until a new one may be started.
    async fn next_url(&self, may_begin_at: &mut Instant) -> Result<Result<String, ApiError>, ShuttingDown> {
        let own = self.discord.options.gateway_url.as_ref();
        if let Some(session) = &self.session {
            return Ok(Ok(own.map_or_else(|| session.url.to_string(), ToString::to_string)));
        }
        let bot: GatewayBot = match self.receiver.until_shutdown(self.discord.api.get("gateway/bot")).await? {
            Ok(bot) => bot,
            Err(error) => return Ok(Err(error)),
        };
        let pause = bot.session_start_limit.map(StartLimit::pause).unwrap_or_default();
        if !pause.is_zero() {
            let minutes = pause.as_secs().div_ceil(60);
            self.report_failure(&format!(
                "too many sessions were started today; the next one starts in {minutes} minutes"
            ));
            self.receiver.pause(pause).await?;
        }
        let begins_at = self.discord.clock.now();
        let identified_at = *self.discord.identified_at.lock();
        let since_last = identified_at.map_or(BETWEEN_SESSIONS, |last| begins_at.since(last));
        let wait =
            BETWEEN_SESSIONS.saturating_sub(since_last).max(may_begin_at.saturating_duration_since(Instant::now()));
        self.receiver.until_shutdown(tokio::time::sleep(wait)).await?;
        Ok(Ok(own.map_or(bot.url, ToString::to_string)))
    }

    /// Connects and reads until the connection ends. Also returns whether an event arrived.
    async fn connect(&mut self, url: &str) -> (ConnectionEnd, bool) {
        let receiver = self.receiver;
        let opened = receiver.until_shutdown(Connection::open(&self.discord.plain_http, url)).await;
        let mut connection = match opened {
            Err(ShuttingDown) => return (ConnectionEnd::Shutdown, false),
            Ok(Ok(connection)) => connection,
            Ok(Err(error)) => return (ConnectionEnd::Broken(error.to_string()), false),
        };
        let mut proved = false;
        let ended = match receiver.until_shutdown(self.run_connection(&mut connection, url, &mut proved)).await {
            Err(ShuttingDown) => ConnectionEnd::Shutdown,
            Ok(Ok(ended)) => ended,
            Ok(Err(error)) => self.classify(&error),
        };
        match ended {
            ConnectionEnd::Shutdown | ConnectionEnd::Broken(_) => connection.close().await,
            ConnectionEnd::SessionOver(_) | ConnectionEnd::ContentDenied | ConnectionEnd::Fatal(_) => {}
        }
        (ended, proved)
    }

    async fn run_connection(
        &mut self,
        connection: &mut Connection,
        url: &str,
        proved: &mut bool,
    ) -> Result<ConnectionEnd, ConnectionError> {
        let Ok(hello) = tokio::time::timeout(HELLO_TIMEOUT, connection.next()).await else {
            return Ok(ConnectionEnd::Broken("Discord's gateway sent no HELLO".to_owned()));
        };
        let hello = hello?;
        let frame = serde_json::from_str::<Frame<'_>>(&hello);
        let Ok(Op::Hello(interval)) = frame.as_ref().map(Frame::op) else {
            return Ok(ConnectionEnd::Broken("Discord's gateway sent no HELLO".to_owned()));
        };
        self.discord.health.set_stale_after(stale_after(interval));
        self.identify_or_resume(connection).await?;
        // The first heartbeat is delayed by a random time, so that clients do not send theirs at the same time.
        let first = Instant::now() + interval.mul_f64(rand::rng().random_range(0.0..1.0));
        let mut beats = tokio::time::interval_at(first, interval);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut awaits_acknowledgement = false;
        let mut room: Option<OwnedPermit<Dispatch>> = None;
        loop {
            let text = tokio::select! {
                biased;
                _ = beats.tick() => {
                    // Without room, frames are not read, so a missing acknowledgement proves nothing.
                    if awaits_acknowledgement && room.is_some() {
                        return Ok(ConnectionEnd::Broken("a heartbeat was not acknowledged".to_owned()));
                    }
                    connection.send(frame::heartbeat(self.stored.get())).await?;
                    awaits_acknowledgement = true;
                    continue;
                }
                reserved = self.queues.all.clone().reserve_owned(), if room.is_none() => {
                    let Ok(reserved) = reserved else { return Ok(ConnectionEnd::Shutdown) };
                    room = Some(reserved);
                    // Gives Discord a full interval, since nothing was read without room.
                    if awaits_acknowledgement {
                        beats.reset();
                    }
                    continue;
                }
                text = connection.next(), if room.is_some() => text?,
            };
            let Ok(frame) = serde_json::from_str::<Frame<'_>>(&text) else {
                tracing::warn!(channel = %self.discord.channel, "a frame from Discord's gateway cannot be read, skipping it");
                continue;
            };
            match frame.op() {
                Op::Event { seq, kind, data } => {
                    self.discord.health.inbound_works(self.discord.clock.now());
                    if !std::mem::replace(proved, true) {
                        self.receiver.intake.report_recovered();
                    }
                    let Some(session) = self.session_of(seq, kind, data, url) else {
                        return Ok(ConnectionEnd::Broken("an event arrived outside a session".to_owned()));
                    };
                    if let Some(room) = room.take() {
                        let stored = self.queue_urgent(seq, kind, data);
                        room.send(Dispatch { session, seq, kind: kind.to_owned(), data: data.to_owned(), stored });
                    }
                }
                Op::Acknowledged => {
                    awaits_acknowledgement = false;
                    self.discord.health.inbound_works(self.discord.clock.now());
                }
                Op::HeartbeatRequest => connection.send(frame::heartbeat(self.stored.get())).await?,
                Op::Reconnect => return Ok(ConnectionEnd::Broken("Discord's gateway asks for a reconnect".to_owned())),
                Op::Invalid(true) => return Ok(ConnectionEnd::Broken("the session must be resumed".to_owned())),
                Op::Invalid(false) => {
                    // "Wait a random amount of time, between 1 and 5 seconds."
                    return Ok(ConnectionEnd::SessionOver(Duration::from_millis(
                        rand::rng().random_range(1_000..5_000),
                    )));
                }
                Op::Hello(_) | Op::Other => {}
            }
        }
    }

    fn queue_urgent(&self, seq: u64, kind: &str, data: &str) -> Option<oneshot::Receiver<()>> {
        if kind != "INTERACTION_CREATE" {
            return None;
        }
        let (stored, is_stored) = oneshot::channel();
        let urgent = Urgent { kind: kind.to_owned(), data: data.to_owned(), seq, stored };
        // If that queue is closed, the run is ending, and Discord sends the event again.
        let _ = self.queues.urgent.send(urgent);
        Some(is_stored)
    }

    async fn identify_or_resume(&self, connection: &mut Connection) -> Result<(), ConnectionError> {
        let token = self.discord.options.token.expose();
        let text = match &self.session {
            Some(session) => frame::resume(token, session),
            None => frame::identify(token, self.intents()),
        };
        connection.send(text).await
    }

    fn intents(&self) -> GatewayIntents {
        let intents = GatewayIntents::GUILDS
            | GatewayIntents::GUILD_MESSAGES
            | GatewayIntents::GUILD_MESSAGE_REACTIONS
            | GatewayIntents::DIRECT_MESSAGES
            | GatewayIntents::DIRECT_MESSAGE_REACTIONS;
        let reads_everything = self.discord.options.message_content && !self.is_content_denied;
        if reads_everything { intents | GatewayIntents::MESSAGE_CONTENT } else { intents }
    }

    /// The session that an event belongs to; `READY` starts one.
    fn session_of(&mut self, seq: u64, kind: &str, data: &str, url: &str) -> Option<(Arc<str>, Arc<str>)> {
        if kind == "READY" {
            let opened: ReadySession = serde_json::from_str(data).ok()?;
            let url = opened.resume_gateway_url.as_deref().unwrap_or(url).into();
            self.session = Some(Session { id: opened.session_id.into(), url, seq });
        }
        let session = self.session.as_mut()?;
        session.seq = session.seq.max(seq);
        Some((Arc::clone(&session.id), Arc::clone(&session.url)))
    }

    /// Decides what to do after a connection has ended
    /// (<https://discord.com/developers/docs/topics/opcodes-and-status-codes#gateway-gateway-close-event-codes>).
    fn classify(&self, error: &ConnectionError) -> ConnectionEnd {
        let code = if let ConnectionError::Closed(closed) = error { closed.code } else { None };
        let failed = |why: &str| {
            self.discord.health.inbound_fails(why);
            ConnectionEnd::Fatal(ChannelError::Failed(why.to_owned()))
        };
        match code {
            Some(4004) => ConnectionEnd::Fatal(self.unauthorized(error.to_string())),
            Some(4014) if self.intents().contains(GatewayIntents::MESSAGE_CONTENT) => ConnectionEnd::ContentDenied,
            Some(4011) => {
                failed("the bot is in too many servers for one connection, and sharding is not supported yet (4011)")
            }
            Some(4010 | 4012 | 4013 | 4014) => failed(&error.to_string()),
            // Discord does not know the sequence number or the session, or no longer does.
            Some(4003 | 4005 | 4007 | 4009) => ConnectionEnd::SessionOver(Duration::ZERO),
            _ => ConnectionEnd::Broken(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_sessions_of_a_day_are_spread_over_what_is_left_of_it() {
        let limit = |remaining| StartLimit { total: 1000, remaining, reset_after: 3_600_000 };

        assert_eq!(limit(999).pause(), Duration::ZERO);
        assert_eq!(limit(100).pause(), Duration::ZERO);
        assert_eq!(limit(60).pause(), Duration::from_mins(1));
        assert_eq!(limit(1).pause(), Duration::from_hours(1));
        assert_eq!(limit(0).pause(), Duration::from_hours(1));
    }
}
