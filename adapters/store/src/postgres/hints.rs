//! Hints, as notifications of the database.
//!
//! They are sent on a connection of their own, never in a transaction that writes: the commit of one that notifies takes a lock of the
//! whole server. Several go together, at most every 20 ms. A notification has a line that names the store which sends it, and a line
//! for each hint.
//!
//! A store listens once somebody wants to hear hints. When it begins to, it tells the others that it is there.

use std::{
    collections::BTreeSet,
    mem,
    str::FromStr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rejoinder_core::{
    AgentName, ChannelId, NodeId, StoreError,
    store::{Hint, Noun},
};
use sqlx::{
    Executor as _,
    postgres::{PgListener, PgPoolOptions},
};
use tokio::{
    sync::{Notify, broadcast},
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    connections::Connections,
    error::{late, store_error},
    hosts::Connector,
    log_order::LogOrder,
    values::statement,
};
use crate::shared::transcripts::Transcripts;

/// The name of the database's channel.
const CHANNEL: &str = "rejoinder";

/// How long hints are gathered.
const COMPANY: Duration = Duration::from_millis(20);

/// How long a notification may be, in bytes. The database refuses one of 8,000.
const LONGEST: usize = 7900;

/// How many hints wait to be sent. More are one: look at everything.
const MOST_WAITING: usize = 2000;

/// How many hints a slow listener may lag behind.
const HEARD: usize = 4096;

/// How long a new connection to listen on may take, or a statement on it.
const CONNECT: Duration = Duration::from_secs(5);

/// How long nothing is heard before it is looked whether the connection is still there.
const SILENCE: Duration = Duration::from_secs(10);

/// The pause before the next try to listen, or to send.
const RECONNECT: Duration = Duration::from_secs(1);

/// Look at everything.
const ALL: &str = "all";

/// Sends the hints of this store, and hears those of others.
pub(super) struct Hints {
    shared: Arc<Shared>,
    tasks: TaskTracker,
}

struct Shared {
    /// The name of this store in notifications.
    node: String,
    connector: Connector,
    /// It sends notifications. Nothing else makes them wait.
    sender: Connections,
    log_order: Arc<LogOrder>,
    transcripts: Arc<Transcripts>,
    waiting: Mutex<BTreeSet<String>>,
    /// Told when something waits to be sent.
    woken: Notify,
    heard: broadcast::Sender<Hint>,
    /// Told when somebody wants to hear hints.
    wanted: Notify,
    closing: CancellationToken,
}

impl Hints {
    /// Connects when that is needed. `sender` is the connection that sends. The tasks end when this is closed or dropped.
    pub(super) fn start(
        node: NodeId,
        connector: Connector,
        sender: Connections,
        log_order: Arc<LogOrder>,
        transcripts: Arc<Transcripts>,
    ) -> Self {
        let shared = Arc::new(Shared {
            node: node.to_string(),
            connector,
            sender,
            log_order,
            transcripts,
            waiting: Mutex::default(),
            woken: Notify::new(),
            heard: broadcast::Sender::new(HEARD),
            wanted: Notify::new(),
            closing: CancellationToken::new(),
        });
        let tasks = TaskTracker::new();
        let closing = shared.closing.clone();
        tasks.spawn(closing.clone().run_until_cancelled_owned(send_all(Arc::clone(&shared))));
        tasks.spawn(closing.run_until_cancelled_owned(listen(Arc::clone(&shared))));
        Self { shared, tasks }
    }

    pub(super) fn subscribe(&self) -> broadcast::Receiver<Hint> {
        let heard = self.shared.heard.subscribe();
        self.shared.wanted.notify_one();
        heard
    }

    /// Sends a hint soon.
    pub(super) fn send(&self, hint: &Hint) {
        self.shared.queue(text(hint));
    }

    pub(super) async fn close(&self) {
        self.shared.closing.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.shared.send_waiting().await;
        self.shared.sender.close().await;
    }
}

impl Drop for Hints {
    fn drop(&mut self) {
        self.shared.closing.cancel();
    }
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn queue(&self, hint: String) {
        let mut waiting = self.waiting();
        if waiting.len() >= MOST_WAITING {
            waiting.clear();
            waiting.insert(ALL.to_owned());
        } else {
            waiting.insert(hint);
        }
        drop(waiting);
        self.woken.notify_one();
    }

    /// Returns whether what waited is sent.
    async fn send_waiting(&self) -> bool {
        let waiting = mem::take(&mut *self.waiting());
        for notification in notifications(&self.node, &waiting) {
            let notify = statement!("select pg_notify($1, $2)", CHANNEL, notification);
            if let Err(error) = self.sender.rows(notify).await {
                tracing::debug!(%error, "hints cannot be sent");
                return false;
            }
        }
        true
    }

    /// Passes on what another store tells.
    fn hear(&self, notification: &str) {
        let mut lines = notification.lines();
        if lines.next() == Some(&*self.node) {
            return;
        }
        self.transcripts.set_shared(true);
        self.log_order.look_soon();
        for line in lines {
            // A later version may have hints of which this one does not know.
            self.pass_on(hint(line).unwrap_or(Hint::All));
        }
    }

    fn pass_on(&self, hint: Hint) {
        // Fails if nobody listens.
        let _ = self.heard.send(hint);
    }

    /// Listens until the connection is lost.
    async fn listen(&self) -> Result<(), StoreError> {
        let listening = self.connector.open(|options| async move {
            // Of one connection: the listener takes it from there.
            let pool = PgPoolOptions::new()
                .max_connections(1)
                .acquire_timeout(CONNECT)
                .idle_timeout(None)
                .max_lifetime(None)
                .connect_lazy_with(options);
            let mut listener = PgListener::connect_with(&pool).await?;
            listener.eager_reconnect(false);
            listener.listen(CHANNEL).await?;
            Ok(listener)
        });
        let patience = CONNECT.max(self.connector.patience());
        let mut listener = timeout(patience, listening).await.map_err(|_| late())?.map_err(store_error)?;
        // A server that took over may lack the last changes, and give their counts to other changes.
        self.transcripts.forget_all();
        // What was sent before, nobody has heard here. And the others learn that this store is there.
        self.pass_on(Hint::All);
        self.queue(ALL.to_owned());
        loop {
            match timeout(SILENCE, listener.try_recv()).await {
                Ok(Ok(Some(notification))) => self.hear(notification.payload()),
                Ok(Ok(None)) => return Ok(()),
                Ok(Err(error)) => return Err(store_error(error)),
                // What is notified meanwhile comes next.
                Err(_) => {
                    in_time(listener.execute("select 1")).await?;
                }
            }
        }
    }
}

async fn in_time<T>(work: impl Future<Output = sqlx::Result<T>>) -> Result<T, StoreError> {
    timeout(CONNECT, work).await.map_err(|_| late())?.map_err(store_error)
}

/// Sends what waits, for a while gathered.
async fn send_all(shared: Arc<Shared>) {
    loop {
        shared.woken.notified().await;
        sleep(COMPANY).await;
        if !shared.send_waiting().await {
            // What is not sent is lost: the others look at everything, as soon as they can be told so.
            shared.queue(ALL.to_owned());
            sleep(RECONNECT).await;
        }
    }
}

/// Listens again whenever the connection was lost.
async fn listen(shared: Arc<Shared>) {
    shared.wanted.notified().await;
    loop {
        match shared.listen().await {
            Ok(()) => tracing::debug!("the connection for hints was lost"),
            Err(error) => tracing::debug!(%error, "hints cannot be heard"),
        }
        sleep(RECONNECT).await;
    }
}

/// The notifications with these hints.
fn notifications(node: &str, hints: &BTreeSet<String>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for hint in hints {
        match all.last_mut().filter(|last| last.len() + 1 + hint.len() <= LONGEST) {
            Some(last) => {
                last.push('\n');
                last.push_str(hint);
            }
            None => all.push(format!("{node}\n{hint}")),
        }
    }
    all
}

/// A hint as a line. What is named by people comes last. A name with a line break is told by having the others look at everything.
fn text(hint: &Hint) -> String {
    let line = match hint {
        Hint::Turn(channel, turn) => format!("turn {turn} {channel}"),
        Hint::Lane(channel, conversation) => format!("lane {conversation} {channel}"),
        Hint::Asked(channel, conversation, delivery) => format!("asked {conversation} {delivery} {channel}"),
        Hint::Tried(channel) => format!("tried {channel}"),
        Hint::Waiting(agent, conversation) => format!("waiting {conversation} {agent}"),
        Hint::Noun(Noun::People) => "people".to_owned(),
        Hint::Noun(Noun::Schedules) => "schedules".to_owned(),
        Hint::Noun(Noun::SessionsIn(conversation)) => format!("sessions-in {conversation}"),
        Hint::Noun(Noun::SessionsOf(person)) => format!("sessions-of {person}"),
        Hint::Noun(Noun::Tokens) => "tokens".to_owned(),
        Hint::Questions => "questions".to_owned(),
        Hint::Paused(channel) => format!("paused {channel}"),
        Hint::Said(turn) => format!("said {turn}"),
        Hint::Run(turn) => format!("run {turn}"),
        Hint::Draft(turn) => format!("draft {turn}"),
        Hint::Leftovers(channel, turn) => format!("leftovers {turn} {channel}"),
        Hint::Words(channel, turn) => format!("words {turn} {channel}"),
        Hint::DeadLetter(turn) => format!("dead {turn}"),
        Hint::Log => "log".to_owned(),
        Hint::All => ALL.to_owned(),
    };
    if line.contains(['\n', '\r']) || line.len() > LONGEST / 2 { ALL.to_owned() } else { line }
}

/// The hint of a line; `None` if it is of a kind that is not known.
fn hint(line: &str) -> Option<Hint> {
    let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
    Some(match kind {
        "turn" => {
            let (channel, turn) = on_channel(rest)?;
            Hint::Turn(channel, turn)
        }
        "lane" => {
            let (channel, conversation) = on_channel(rest)?;
            Hint::Lane(channel, conversation)
        }
        "asked" => {
            let (conversation, rest) = rest.split_once(' ')?;
            let (delivery, channel) = rest.split_once(' ')?;
            Hint::Asked(ChannelId::from_stored(channel), id(conversation)?, id(delivery)?)
        }
        "tried" => Hint::Tried(ChannelId::from_stored(rest)),
        "waiting" => {
            let (conversation, agent) = rest.split_once(' ')?;
            Hint::Waiting(AgentName::from(agent), id(conversation)?)
        }
        "people" => Hint::Noun(Noun::People),
        "schedules" => Hint::Noun(Noun::Schedules),
        "sessions-in" => Hint::Noun(Noun::SessionsIn(id(rest)?)),
        "sessions-of" => Hint::Noun(Noun::SessionsOf(id(rest)?)),
        "tokens" => Hint::Noun(Noun::Tokens),
        "questions" => Hint::Questions,
        "paused" => Hint::Paused(ChannelId::from_stored(rest)),
        "said" => Hint::Said(id(rest)?),
        "run" => Hint::Run(id(rest)?),
        "draft" => Hint::Draft(id(rest)?),
        "leftovers" => {
            let (channel, turn) = on_channel(rest)?;
            Hint::Leftovers(channel, turn)
        }
        "words" => {
            let (channel, turn) = on_channel(rest)?;
            Hint::Words(channel, turn)
        }
        "dead" => Hint::DeadLetter(id(rest)?),
        "log" => Hint::Log,
        ALL => Hint::All,
        _ => return None,
    })
}

/// A channel, and an id that is before it.
fn on_channel<T: FromStr>(text: &str) -> Option<(ChannelId, T)> {
    let (before, channel) = text.split_once(' ')?;
    Some((ChannelId::from_stored(channel), id(before)?))
}

fn id<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use rejoinder_core::{ConversationId, DeliveryId, PersonId, Timestamp, TurnId};

    use super::*;

    #[test]
    fn a_hint_is_read_as_it_was_written() {
        let at = Timestamp::from_millis(1);
        let (turn, conversation, delivery) = (TurnId::new(at), ConversationId::new(at), DeliveryId::new(at));
        let channel = || ChannelId::new("telegram", "main");
        let hints = [
            Hint::Turn(channel(), turn),
            Hint::Lane(channel(), conversation),
            Hint::Asked(channel(), conversation, delivery),
            Hint::Tried(channel()),
            Hint::Waiting("an agent".into(), conversation),
            Hint::Noun(Noun::People),
            Hint::Noun(Noun::Schedules),
            Hint::Noun(Noun::SessionsIn(conversation)),
            Hint::Noun(Noun::SessionsOf(PersonId::new(at))),
            Hint::Noun(Noun::Tokens),
            Hint::Questions,
            Hint::Paused(channel()),
            Hint::Said(turn),
            Hint::Run(turn),
            Hint::Draft(turn),
            Hint::Leftovers(channel(), turn),
            Hint::Words(channel(), turn),
            Hint::DeadLetter(turn),
            Hint::Log,
            Hint::All,
        ];
        for one in hints {
            assert_eq!(hint(&text(&one)), Some(one));
        }
        assert_eq!(hint("later 1"), None);
        assert_eq!(hint("turn 1"), None);
        assert_eq!(text(&Hint::Waiting("a\nb".into(), conversation)), ALL);
    }

    #[test]
    fn many_hints_are_several_notifications() {
        let hints: BTreeSet<String> = (0..500).map(|number| format!("waiting agent {number}")).collect();

        let sent = notifications("me", &hints);

        assert!(sent.len() > 1 && sent.iter().all(|one| one.len() <= LONGEST && one.starts_with("me\n")));
        let read: BTreeSet<String> = sent.iter().flat_map(|one| one.lines().skip(1)).map(str::to_owned).collect();
        assert_eq!(read, hints);
    }
}
