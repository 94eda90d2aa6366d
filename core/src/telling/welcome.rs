//! Tells people that they were let in. Each person who must be told is a row, so a crash loses no message.

use std::sync::Arc;

use tracing::warn;

use crate::{
    base::{conflicts::decide_anew, lifecycle::Lifecycle, pauses},
    model::{Identity, LiveSettings, Pairing, PeopleChange},
    nodes::leases::Leases,
    notices::paired,
    people::People,
    ports::{Inlet, IntakeError, SharedClock, StoreError, Transition},
};

pub(crate) struct Welcomer {
    pub(crate) people: Arc<People>,
    pub(crate) inlet: Arc<dyn Inlet>,
    pub(crate) leases: Arc<Leases>,
    pub(crate) settings: LiveSettings,
    pub(crate) clock: SharedClock,
}

impl Welcomer {
    /// Tells everybody who was let in, until it is stopped.
    pub(crate) async fn run(self: Arc<Self>, lifecycle: Lifecycle) {
        loop {
            let is_done = self.tell_all().await;
            if lifecycle.stopping.is_cancelled() {
                return;
            }
            if is_done {
                tokio::select! {
                    () = self.people.until_let_in() => {}
                    () = lifecycle.stopping.cancelled() => return,
                }
            } else if !lifecycle.pause(pauses::READ_AGAIN).await {
                return;
            }
        }
    }

    async fn forget_request(&self, identity: &Identity) -> Result<(), StoreError> {
        decide_anew!({
            let people = vec![PeopleChange::PairingRemoved(identity.clone())];
            let transition = Transition { people, ..Transition::default() };
            self.people.change(self.people.seen(), transition).await?.then_some(())
        })
    }

    async fn tell(&self, pairing: &Pairing) -> Result<(), IntakeError> {
        let beside = self.leases.housekeeping()?.beside();
        let message = paired(pairing, &self.people, &self.settings.get(), self.clock.now());
        self.inlet.accept(&pairing.identity.channel, vec![message], beside).await?;
        Ok(self.forget_request(&pairing.identity).await?)
    }

    /// Whether everybody is told.
    async fn tell_all(&self) -> bool {
        for pairing in self.people.untold() {
            if let Err(error) = self.tell(&pairing).await {
                if !error.is_move() {
                    warn!(identity = %pairing.identity, %error, "somebody was let in and is not told yet");
                }
                return false;
            }
        }
        true
    }
}
