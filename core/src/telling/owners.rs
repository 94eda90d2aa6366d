//! Tells owners of requests to be let in, people of the use of their codes, and approvers of agents' requests.
//!
//! Each request is a row and each message has a key: nobody is told twice, and no message is lost by a crash.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rejoinder_guard::Timestamp;
use tracing::warn;

use crate::{
    base::{channels::Channels, lifecycle::Lifecycle, pauses},
    model::{ChannelId, InboundEvent, LiveSettings, Pairing, TurnId},
    nodes::leases::Leases,
    notices::{approval_asked, asks, link_asked, turned_away},
    people::People,
    ports::{Accepted, Inlet, IntakeError, SharedClock},
    questions::approvals::Approvals,
};

/// How many requests of a channel owners are told of within [`SPAN`].
const MOST: usize = 3;

const SPAN: Duration = Duration::from_hours(1);

pub(crate) struct Notifier {
    pub(crate) people: Arc<People>,
    pub(crate) approvals: Arc<Approvals>,
    pub(crate) channels: Arc<Channels>,
    pub(crate) inlet: Arc<dyn Inlet>,
    pub(crate) leases: Arc<Leases>,
    pub(crate) settings: LiveSettings,
    pub(crate) clock: SharedClock,
    /// The codes of the requests that owners were told of lately, with their channels, and when they were told.
    pub(crate) told: Mutex<HashMap<String, (ChannelId, Timestamp)>>,
}

impl Notifier {
    /// Tells people of all waiting requests, until it is stopped.
    pub(crate) async fn run(self: Arc<Self>, lifecycle: Lifecycle) {
        loop {
            let is_done =
                self.tell_all().await & self.tell_of_crowds().await & self.confirm_all().await & self.ask_all().await;
            if lifecycle.stopping.is_cancelled() {
                return;
            }
            if is_done {
                tokio::select! {
                    () = self.people.until_asked() => {}
                    () = self.people.until_reachable() => {}
                    () = self.approvals.until_asked() => {}
                    () = lifecycle.stopping.cancelled() => return,
                }
            } else if !lifecycle.pause(pauses::READ_AGAIN).await {
                return;
            }
        }
    }

    /// Whether owners are told of the channels on which strangers are turned away.
    async fn tell_of_crowds(&self) -> bool {
        let settings = self.settings.get();
        let crowds = if settings.notify_owners { self.people.turned_away() } else { Vec::new() };
        for (channel, at) in crowds {
            for (owner, chat) in self.people.reachable_owners(&self.channels) {
                let language = self.people.spoken_language(&chat);
                let message = turned_away(&channel, owner, &chat.conversation, language, &settings, at);
                if let Err(error) = self.say(&chat.identity.channel, message, at).await {
                    if !error.is_move() {
                        warn!(%channel, %error, "strangers are turned away, and owners are not told yet");
                    }
                    return false;
                }
            }
        }
        true
    }

    /// Whether all makers of used codes were asked about it.
    async fn confirm_all(&self) -> bool {
        for (link, turn) in self.people.links_used() {
            let (channel, now) = (&link.identity.channel, self.clock.now());
            let language = self.people.chosen_language(&link.identity).or(link.language);
            let message = link_asked(&link, turn, language, now);
            if let Err(error) = self.say(channel, message, now).await {
                if !error.is_move() {
                    warn!(identity = %link.identity, %error, "somebody's code was used, and they are not asked yet");
                }
                return false;
            }
        }
        true
    }

    /// Whether all who can be reached are told of the approvals that wait for them.
    async fn ask_all(&self) -> bool {
        match self.try_to_ask_all().await {
            Ok(()) => true,
            Err(error) => {
                if !error.is_move() {
                    warn!(%error, "an agent asks for approval, and its approvers are not told yet");
                }
                false
            }
        }
    }

    async fn try_to_ask_all(&self) -> Result<(), IntakeError> {
        let mut last = None;
        loop {
            let waiting = self.approvals.waiting_after(last).await?;
            let Some(approval) = waiting.last() else { return Ok(()) };
            last = Some(approval.id);
            let approvers = self.people.reachable_approvers(&self.settings.get().approvals, &self.channels);
            for approval in waiting.iter().filter(|approval| approval.is_open(self.clock.now())) {
                for (person, chat) in approvers.iter().filter(|(person, _)| !approval.told.contains(person)) {
                    let (language, now) = (self.people.spoken_language(chat), self.clock.now());
                    let message = approval_asked(approval.id, *person, &chat.conversation, language, now);
                    self.say(&chat.identity.channel, message, now).await?;
                }
            }
        }
    }

    /// Whether owners were told of all requests, as far as they should be.
    async fn tell_all(&self) -> bool {
        if !self.settings.get().notify_owners {
            return true;
        }
        for pairing in self.people.waiting() {
            if !self.may_tell(&pairing) {
                continue;
            }
            match self.tell(&pairing).await {
                Ok(true) => {}
                // They are told when the first of them can be reached.
                Ok(false) => continue,
                Err(error) => {
                    if !error.is_move() {
                        warn!(identity = %pairing.identity, %error, "somebody asks to be let in, and owners are not told yet");
                    }
                    return false;
                }
            }
            let told = (pairing.identity.channel.clone(), self.clock.now());
            self.told.lock().unwrap_or_else(PoisonError::into_inner).insert(pairing.code, told);
        }
        true
    }

    /// Tells all owners who can be reached of a request. `false` if none can.
    async fn tell(&self, pairing: &Pairing) -> Result<bool, IntakeError> {
        let now = self.clock.now();
        let owners = self.people.reachable_owners(&self.channels);
        let is_told = !owners.is_empty();
        for (owner, chat) in owners {
            let language = self.people.spoken_language(&chat);
            let message = asks(pairing, owner, &chat.conversation, language, now);
            self.say(&chat.identity.channel, message, now).await?;
        }
        Ok(is_told)
    }

    /// Begins a message, while this node has the lease for what happens once.
    async fn say(
        &self,
        channel: &ChannelId,
        message: InboundEvent,
        at: Timestamp,
    ) -> Result<Vec<Accepted>, IntakeError> {
        let beside = self.leases.housekeeping()?.beside();
        self.inlet.accept(channel, vec![(TurnId::new(at), message)], beside).await
    }

    /// Whether owners may be told of a request now: they were not yet, nor of too many others on its channel.
    fn may_tell(&self, pairing: &Pairing) -> bool {
        let now = self.clock.now();
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.retain(|_, (_, at)| *at + SPAN > now);
        let of_channel = told.values().filter(|(channel, _)| *channel == pairing.identity.channel).count();
        !told.contains_key(&pairing.code) && of_channel < MOST
    }
}
