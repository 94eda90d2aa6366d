//! Notices when channels and agents go down and come back, and adds that to the log.

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
pub(crate) enum Part {
    Channel(ChannelId),
    Agent(String),
}

/// Looks at the channels and agents.
pub(crate) struct Watch {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) channels: Arc<Channels>,
    pub(crate) health: Arc<Health>,
    pub(crate) agents: Arc<Agents>,
    pub(crate) clock: SharedClock,
    /// When the engine started.
    pub(crate) started: Timestamp,
    /// What is down, with its problem.
    pub(crate) known: Mutex<HashMap<Part, String>>,
}

impl Watch {
    /// Looks at them all, and logs what has changed since the last look.
    pub(crate) async fn look(&self) {
        let down = self.down();
        let before = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let at = self.clock.now();
        let mut log = Vec::new();
        for (part, problem) in down.iter().filter(|(part, _)| !before.contains_key(*part)) {
            log.push(entry(part, Some(problem), at));
        }
        for part in before.keys().filter(|part| !down.contains_key(*part)) {
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
        if !log.is_empty()
            && let Err(error) = self.store.commit(Transition { log, ..Transition::default() }).await
        {
            // It is noticed again at the next look.
            return warn!(%error, "cannot log what went down or came back");
        }
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = down;
    }

    /// What is down now, with its problem.
    fn down(&self) -> HashMap<Part, String> {
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
