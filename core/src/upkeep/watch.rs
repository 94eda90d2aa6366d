//! Notices when channels and agents go down and come back, and adds that to the log.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rejoinder_guard::Timestamp;
use tracing::{info, warn};

use crate::{
    base::channels::Channels,
    model::{Down, LogEvent, NewLogEntry, Part, Subject},
    nodes::leases::Leases,
    outbox::health::Health,
    ports::{SharedClock, StoreState, Transition, Transitions},
    worker::agents::Agents,
};

/// Looks at the channels and the agents.
pub(crate) struct Watch {
    pub(crate) store: Arc<dyn StoreState>,
    pub(crate) transitions: Arc<dyn Transitions>,
    pub(crate) channels: Arc<Channels>,
    pub(crate) leases: Arc<Leases>,
    pub(crate) health: Arc<Health>,
    pub(crate) agents: Arc<Agents>,
    pub(crate) clock: SharedClock,
    pub(crate) started: Timestamp,
    /// What is down and in the log.
    pub(crate) down: Mutex<HashMap<Part, Down>>,
}

impl Watch {
    /// Looks at them all, and logs what has changed since the last look. While the store cannot write, nothing can be
    /// logged: what changes meanwhile is seen at a later look.
    pub(crate) async fn look(&self) {
        if self.store.trouble().is_some() {
            return;
        }
        let at = self.clock.now();
        let logged = self.down.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Err(error) = self.health.forget_failures().await {
            return warn!(%error, "cannot look at what is to be sent");
        }
        let mut log = Vec::new();
        let down = self.down();
        self.leases.set_downs(&down);
        for (part, down) in down.iter().filter(|(part, _)| !logged.contains_key(*part)) {
            log.push(entry(part, Some(down), at));
            match part {
                Part::Channel(channel) => warn!(%channel, problem = down.said(), "the channel is down"),
                Part::Agent(agent) => warn!(agent, error = down.problem, "the agent fails"),
            }
        }
        for part in logged.keys().filter(|part| !down.contains_key(*part)) {
            log.push(entry(part, None, at));
            match part {
                Part::Channel(channel) => info!(%channel, "the channel works again"),
                Part::Agent(agent) => info!(agent, "the agent answers again"),
            }
        }
        if !log.is_empty()
            && let Err(error) = self.transitions.commit(Transition { log, ..Transition::default() }).await
        {
            // It is noticed again at the next look.
            return warn!(%error, "cannot log what went down or came back");
        }
        *self.down.lock().unwrap_or_else(PoisonError::into_inner) = down;
    }

    pub(crate) fn down(&self) -> HashMap<Part, Down> {
        let now = self.clock.now();
        let channels = self.channels.health().into_iter().filter_map(|(channel, health)| {
            let runs_everywhere = || self.channels.get(&channel).is_some_and(|channel| channel.runs_at_each_node());
            // Others are for another node to look at.
            let runs_since = self.leases.since(&channel).or_else(|| runs_everywhere().then_some(self.started))?;
            let is_starting = now.since(runs_since) < TIME_TO_CONNECT;
            // What it received while it had the lease before tells nothing of now.
            let has_received = health.inbound_at.is_some_and(|at| at >= runs_since);
            let is_connecting = is_starting && health.problem.is_none() && !has_received;
            let is_deaf = !is_connecting && !health.is_live(now);
            let deaf = is_deaf.then(|| Down {
                is_mute: false,
                problem: health.problem.clone().unwrap_or_else(|| SILENT.to_owned()),
                since: health.inbound_at,
            });
            let down = deaf.or_else(|| {
                let outbound = self.health.outbound(&channel);
                let since = outbound.failing_since?;
                Some(Down { is_mute: true, problem: outbound.error.unwrap_or_default(), since: Some(since) })
            });
            down.map(|down| (Part::Channel(channel), down))
        });
        let agents = self.agents.all().into_iter().filter(|(_, health)| health.is_down()).map(|(agent, health)| {
            let problem = health.error.unwrap_or_default();
            (Part::Agent(agent.to_string()), Down { is_mute: false, problem, since: health.failing_since })
        });
        channels.chain(agents).collect()
    }
}

/// For how long after the start a channel that reports no problem is not down.
const TIME_TO_CONNECT: Duration = Duration::from_secs(30);

/// The problem of a channel that does not know one itself.
const SILENT: &str = "it has received nothing for too long";

fn entry(part: &Part, down: Option<&Down>, at: Timestamp) -> NewLogEntry {
    let (subject, event) = match (part, down) {
        (Part::Channel(channel), Some(down)) => {
            (Subject::channel(channel), LogEvent::ChannelDown { problem: down.said() })
        }
        (Part::Channel(channel), None) => (Subject::channel(channel), LogEvent::ChannelUp),
        (Part::Agent(agent), Some(down)) => {
            (Subject::default(), LogEvent::AgentDown { agent: agent.clone(), error: down.problem.clone() })
        }
        (Part::Agent(agent), None) => (Subject::default(), LogEvent::AgentUp { agent: agent.clone() }),
    };
    NewLogEntry { at, subject, event }
}
