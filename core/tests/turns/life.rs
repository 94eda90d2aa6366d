//! One life of the gateway: what it touches stops answering when it is killed, at any step.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
};

use async_trait::async_trait;
use rejoinder_core::{
    AgentError, AgentRuntime, AgentTurn, Capabilities, ChannelAdapter, ChannelError, ChannelHealth, ChannelId,
    ConversationRef, Delivery, DeliveryError, Intake, Outcome, Receipt, RunEvents, StoreError,
    conformance::layered::Layer,
};
use tokio_util::sync::CancellationToken;

/// Whether a write is the last thing that a gateway does, or is never done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Crash {
    Before,
    After,
}

/// Counts what goes on, and ends it.
#[derive(Debug, Default)]
pub(crate) struct Life {
    dead: CancellationToken,
    in_flight: AtomicI64,
    done: AtomicU64,
    writes: AtomicU64,
    crash_at: Mutex<Option<(u64, Crash)>>,
    store_is_down: AtomicBool,
}

/// Something that is being waited for.
struct InFlight(Arc<Life>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::SeqCst);
        self.0.done.fetch_add(1, Ordering::SeqCst);
    }
}

impl Life {
    /// Ends it: nothing that it touches answers any more.
    pub(crate) fn kill(&self) {
        self.dead.cancel();
    }

    /// Waits until nothing of it is being written any more.
    pub(crate) async fn is_buried(&self) {
        while self.in_flight() > 0 {
            tokio::task::yield_now().await;
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.dead.is_cancelled()
    }

    /// Ends it at its `number`-th write from now, counted from 1.
    pub(crate) fn crash_at(&self, number: u64, crash: Crash) {
        let at = self.writes.load(Ordering::SeqCst) + number;
        *self.crash_at.lock().unwrap_or_else(PoisonError::into_inner) = Some((at, crash));
    }

    /// The store can no longer write, or can again.
    pub(crate) fn set_store_down(&self, is_down: bool) {
        self.store_is_down.store(is_down, Ordering::SeqCst);
    }

    /// What is being waited for that time does not bring.
    pub(crate) fn in_flight(&self) -> i64 {
        self.in_flight.load(Ordering::SeqCst)
    }

    /// How much was done so far.
    pub(crate) fn done(&self) -> u64 {
        self.done.load(Ordering::SeqCst)
    }

    async fn go_on(&self) {
        if self.is_over() {
            std::future::pending::<()>().await;
        }
    }

    fn begin(self: &Arc<Self>) -> InFlight {
        self.in_flight.fetch_add(1, Ordering::SeqCst);
        InFlight(Arc::clone(self))
    }
}

/// Stands between a life and its store.
pub(crate) struct Reached(pub(crate) Arc<Life>);

/// A call of the store that is under way.
pub(crate) struct Pass {
    _in_flight: InFlight,
    /// The life ends once the call has returned.
    is_last: bool,
}

#[async_trait]
impl Layer for Reached {
    type Pass = Pass;

    async fn reads(&self) -> Pass {
        self.0.go_on().await;
        Pass { _in_flight: self.0.begin(), is_last: false }
    }

    async fn writes(&self) -> Result<Pass, StoreError> {
        self.0.go_on().await;
        if self.0.store_is_down.load(Ordering::SeqCst) {
            let _begun = self.0.begin();
            return Err(StoreError::Unavailable("the disk is full".to_owned()));
        }
        let number = self.0.writes.fetch_add(1, Ordering::SeqCst) + 1;
        let crash = *self.0.crash_at.lock().unwrap_or_else(PoisonError::into_inner);
        let crash = crash.filter(|(at, _)| *at == number).map(|(_, crash)| crash);
        if crash == Some(Crash::Before) {
            self.0.kill();
            self.0.go_on().await;
        }
        Ok(Pass { _in_flight: self.0.begin(), is_last: crash == Some(Crash::After) })
    }

    async fn leave<T: Send>(&self, pass: Pass, call: impl Future<Output = T> + Send) -> T {
        let result = call.await;
        if pass.is_last {
            self.0.kill();
        }
        drop(pass);
        self.0.go_on().await;
        result
    }
}

/// A channel that a life reaches.
pub(crate) struct Channelled {
    pub(crate) life: Arc<Life>,
    pub(crate) channel: Arc<dyn ChannelAdapter>,
}

#[async_trait]
impl ChannelAdapter for Channelled {
    fn channel(&self) -> &ChannelId {
        self.channel.channel()
    }
    fn capabilities(&self, conversation: &ConversationRef) -> Capabilities {
        self.channel.capabilities(conversation)
    }
    fn health(&self) -> ChannelHealth {
        self.channel.health()
    }
    fn parts(&self, text: &str) -> Vec<String> {
        self.channel.parts(text)
    }
    fn shows_anything(&self, text: &str) -> bool {
        self.channel.shows_anything(text)
    }
    async fn run(&self, intake: Intake, shutdown: CancellationToken) -> Result<(), ChannelError> {
        self.channel.run(intake, shutdown).await
    }
    async fn deliver(&self, delivery: &Delivery) -> Result<Receipt, DeliveryError> {
        self.life.go_on().await;
        let result = tokio::select! {
            result = self.channel.deliver(delivery) => result,
            () = self.life.dead.cancelled() => std::future::pending().await,
        };
        self.life.done.fetch_add(1, Ordering::SeqCst);
        self.life.go_on().await;
        result
    }
}

/// An agent that a life reaches.
pub(crate) struct Employed {
    pub(crate) life: Arc<Life>,
    pub(crate) agent: Arc<dyn AgentRuntime>,
}

#[async_trait]
impl AgentRuntime for Employed {
    fn describe(&self) -> String {
        self.agent.describe()
    }
    fn history(&self) -> usize {
        self.agent.history()
    }
    async fn run(&self, turn: AgentTurn, events: RunEvents, cancel: CancellationToken) -> Result<Outcome, AgentError> {
        self.life.go_on().await;
        let result = self.agent.run(turn, events, cancel).await;
        self.life.done.fetch_add(1, Ordering::SeqCst);
        self.life.go_on().await;
        result
    }
}
