//! Notices when channels, agents and the store go down and come back, and adds that to the log.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rejoinder_guard::Timestamp;
use tracing::{info, warn};

use crate::{
    channels::Channels,
    model::{
        conversation::ChannelId,
        log::{LogEvent, NewLogEntry, Subject},
    },
    outbox::health::Health,
    ports::{
        clock::SharedClock,
        store::{Store, transition::Transition},
    },
    worker::agents::Agents,
};

/// What can go down.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// A channel.
    Channel(ChannelId),
    /// An agent, by its name.
    Agent(String),
}

/// Looks at the channels, the agents and the store.
pub(crate) struct Watch {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) channels: Arc<Channels>,
    pub(crate) health: Arc<Health>,
    pub(crate) agents: Arc<Agents>,
    pub(crate) clock: SharedClock,
    /// When the engine started.
    pub(crate) started: Timestamp,
    pub(crate) known: Mutex<Known>,
}

/// What was seen at the last look.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// What is down and in the log, with its problem.
    down: HashMap<Part, String>,
    /// Since when the store cannot write, and why. It is logged when it can again.
    unwritable: Option<(Timestamp, String)>,
}

impl Watch {
    /// Looks at them all, and logs what has changed since the last look.
    pub(crate) async fn look(&self) {
        let at = self.clock.now();
        let mut known = self.known();
        if let Some(error) = self.store.trouble() {
            // Nothing can be logged now. What else changes meanwhile is seen at a later look.
            known.unwritable.get_or_insert_with(|| (at, error.to_string()));
            return *self.known.lock().unwrap_or_else(PoisonError::into_inner) = known;
        }
        if let Err(error) = self.health.forget_failures().await {
            return warn!(%error, "cannot look at what is to be sent");
        }
        let mut log = Vec::new();
        let down = self.down();
        for (part, problem) in down.iter().filter(|(part, _)| !known.down.contains_key(*part)) {
            log.push(entry(part, Some(problem), at));
        }
        for part in known.down.keys().filter(|part| !down.contains_key(*part)) {
            log.push(entry(part, None, at));
        }
        for entry in &log {
            let (topic, subject) = (entry.event.topic(), &entry.subject);
            let channel = subject.channel.as_ref().map(tracing::field::display);
            if topic.ends_with("down") {
                warn!(%topic, channel, what = ?entry.event, "something went down");
            } else {
                info!(%topic, channel, what = ?entry.event, "it is back");
            }
        }
        // The store itself has reported this.
        if let Some((since, problem)) = known.unwritable.take() {
            log.push(NewLogEntry { at: since, subject: Subject::default(), event: LogEvent::StoreDown { problem } });
            log.push(NewLogEntry { at, subject: Subject::default(), event: LogEvent::StoreUp });
        }
        if !log.is_empty()
            && let Err(error) = self.store.commit(Transition { log, ..Transition::default() }).await
        {
            // It is noticed again at the next look.
            return warn!(%error, "cannot log what went down or came back");
        }
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Known { down, unwritable: None };
    }

    fn known(&self) -> Known {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What is down now, with its problem.
    pub(crate) fn down(&self) -> HashMap<Part, String> {
        let now = self.clock.now();
        let is_starting = now.since(self.started) < TIME_TO_CONNECT;
        let channels = self.channels.health().into_iter().filter_map(|(channel, health)| {
            let is_connecting = is_starting && health.problem.is_none() && health.inbound_at.is_none();
            let is_down = !is_connecting && !health.is_live(now);
            let inbound = is_down.then(|| health.problem.clone().unwrap_or_else(|| SILENT.to_owned()));
            let problem = inbound.or_else(|| {
                let outbound = self.health.outbound(&channel);
                outbound.failing_since.map(|_| format!("sending fails: {}", outbound.error.unwrap_or_default()))
            });
            problem.map(|problem| (Part::Channel(channel), problem))
        });
        let agents = self.agents.all().into_iter().filter(|(_, health)| health.is_down());
        let agents = agents.map(|(agent, health)| (Part::Agent(agent.to_string()), health.error.unwrap_or_default()));
        channels.chain(agents).collect()
    }
}

/// For how long after the start a channel that reports no problem is not down.
const TIME_TO_CONNECT: Duration = Duration::from_secs(30);

/// The problem of a channel that does not know one itself.
const SILENT: &str = "it has received nothing for too long";

fn entry(part: &Part, problem: Option<&String>, at: Timestamp) -> NewLogEntry {
    let (subject, event) = match (part, problem) {
        (Part::Channel(channel), Some(problem)) => {
            (Subject::channel(channel), LogEvent::ChannelDown { problem: problem.clone() })
        }
        (Part::Channel(channel), None) => (Subject::channel(channel), LogEvent::ChannelUp),
        (Part::Agent(agent), Some(error)) => {
            (Subject::default(), LogEvent::AgentDown { agent: agent.clone(), error: error.clone() })
        }
        (Part::Agent(agent), None) => (Subject::default(), LogEvent::AgentUp { agent: agent.clone() }),
    };
    NewLogEntry { at, subject, event }
}
