//! One life of the gateway, from start to crash. When it is killed, at any step, its store, channels and agents stop
//! answering.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use rejoinder_core::{
    AgentError, AgentRuntime, AgentTurn, Attachment, Capabilities, ChannelAdapter, ChannelError, ChannelHealth,
    ChannelId, ConversationRef, Delivery, DeliveryError, FetchError, InboundEvent, Intake, MemberHealth, Outcome,
    Receipt, RunEvents, SessionNotice, StoreError, TurnId,
    conformance::{
        layered::{Layer, NullStore},
        leases::LeaseTable,
        scripted::Gate,
    },
    store::{Fence, Hint, LeaseName, NodeStore},
};
use tokio::sync::{
    broadcast,
    oneshot::{self, error::TryRecvError},
    watch,
};
use tokio_util::sync::CancellationToken;

use crate::gateway::TestGateway;

/// Whether the gateway dies before or after a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Crash {
    Before,
    After,
}

/// Has a test end the gateway before and after each of its writes, until there are no more: there must be more than `least`. The
/// test returns whether the gateway has died.
pub(crate) async fn at_every_write(least: u64, test: impl AsyncFn(Crash, u64) -> bool) {
    for crash in [Crash::Before, Crash::After] {
        for write in 1..20 {
            if !test(crash, write).await {
                assert!(write > least, "it takes more than {write} writes");
                break;
            }
            assert!(write < 19, "no end of writes");
        }
    }
}

/// Lets time pass while the gateway dies at a write, and starts it again. Returns whether it has died.
pub(crate) async fn passes_dying(gateway: &mut TestGateway, (crash, write): (Crash, u64), time: Duration) -> bool {
    let life = Arc::clone(&gateway.life);
    life.crash_at(write, crash);
    gateway.advance(time).await;
    let has_died = life.is_over();
    gateway.restart().await;
    has_died
}

/// The same while an event comes, which comes again after the start.
pub(crate) async fn comes_in_dying(
    gateway: &mut TestGateway,
    (crash, write): (Crash, u64),
    event: InboundEvent,
) -> bool {
    let life = Arc::clone(&gateway.life);
    life.crash_at(write, crash);
    let (intake, again) = (gateway.intake(), event.clone());
    tokio::spawn(async move { intake.accept(event).await });
    gateway.settle().await;
    let has_died = life.is_over();
    gateway.restart().await;
    gateway.intake().accept(again).await.expect("it is accepted");
    gateway.settle().await;
    has_died
}

/// Counts the calls of one life of the gateway, and can end it.
#[derive(Debug, Default)]
pub(crate) struct Life {
    dead: CancellationToken,
    in_flight: watch::Sender<u64>,
    done: AtomicU64,
    /// How many were done when [`had_calls`](Self::had_calls) was called last.
    known: AtomicU64,
    writes: AtomicU64,
    /// The number of reads of each method.
    reads: Mutex<HashMap<&'static str, u64>>,
    indexings: AtomicU64,
    crash_at: Mutex<Option<(u64, Crash)>>,
    /// The number of events and decisions that were written so far.
    decisions: AtomicU64,
    lost_at: Mutex<Option<(u64, Crash)>>,
    store_is_down: AtomicBool,
    reads_are_held: AtomicBool,
    held: Mutex<Option<&'static str>>,
    away: Mutex<Option<&'static str>>,
    rejects_writes: AtomicBool,
    /// Its leases, if they end.
    pub(crate) leases: OnceLock<Arc<LeaseTable>>,
    /// The hints of other nodes, and for them.
    pub(crate) hints: Hinting,
    /// Whether clients are connected that see what is shown [everywhere].
    pub(crate) is_watched: AtomicBool,
    /// Open when the platform gives its files.
    pub(crate) files: Gate,
    /// What tells agents outside of the process that the ends of their runs are stored.
    ends: Mutex<Vec<oneshot::Receiver<bool>>>,
}

/// The hints that a test sends, and those that the gateway has sent.
#[derive(Debug)]
pub(crate) struct Hinting {
    pub(crate) heard: broadcast::Sender<Hint>,
    told: Mutex<Vec<Hint>>,
}

impl Default for Hinting {
    fn default() -> Self {
        Self { heard: broadcast::Sender::new(64), told: Mutex::default() }
    }
}

impl Hinting {
    /// What the gateway has told other nodes since this was called last.
    pub(crate) fn told(&self) -> Vec<Hint> {
        std::mem::take(&mut *self.told.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A store call in progress.
struct InFlight(Arc<Life>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.done.fetch_add(1, Ordering::SeqCst);
        self.0.in_flight.send_modify(|calls| *calls -= 1);
    }
}

impl Life {
    /// Ends the life: no call of it returns any more.
    pub(crate) fn kill(&self) {
        self.dead.cancel();
    }

    /// Waits until its store calls have ended.
    pub(crate) async fn wait_until_idle(&self) {
        self.in_flight.subscribe().wait_for(|calls| *calls == 0).await.expect("the life holds the sender");
    }

    /// Waits while a store call is in progress, until another one begins, one ends or the life ends. Returns whether it has waited.
    pub(crate) async fn wait_for_call(&self) -> bool {
        let mut in_flight = self.in_flight.subscribe();
        if *in_flight.borrow_and_update() == 0 || self.is_over() {
            return false;
        }
        tokio::select! {
            changed = in_flight.changed() => changed.expect("the life holds the sender"),
            () = self.dead.cancelled() => {}
        }
        true
    }

    pub(crate) fn is_over(&self) -> bool {
        self.dead.is_cancelled()
    }

    /// Ends the life at its `number`-th write from now, counted from 1.
    pub(crate) fn crash_at(&self, number: u64, crash: Crash) {
        let at = self.writes.load(Ordering::SeqCst) + number;
        *self.crash_at.lock().unwrap_or_else(PoisonError::into_inner) = Some((at, crash));
    }

    /// Loses the store when it writes the `number`-th events or decision from now, counted from 1: before it has written them, or after
    /// that. The gateway hears that this is not known.
    pub(crate) fn lose_at(&self, number: u64, crash: Crash) {
        let at = self.decisions.load(Ordering::SeqCst) + number;
        *self.lost_at.lock().unwrap_or_else(PoisonError::into_inner) = Some((at, crash));
    }

    /// Makes all writes fail, or succeed again.
    pub(crate) fn set_store_down(&self, is_down: bool) {
        self.store_is_down.store(is_down, Ordering::SeqCst);
    }

    /// Makes the store reject all writes, although it can write, or accept them again.
    pub(crate) fn reject_writes(&self, rejects: bool) {
        self.rejects_writes.store(rejects, Ordering::SeqCst);
    }

    /// Lets reads wait, or go on.
    pub(crate) fn hold_reads(&self, are_held: bool) {
        self.reads_are_held.store(are_held, Ordering::SeqCst);
    }

    /// Holds the calls of this method of the store only; those of any other go on.
    pub(crate) fn hold(&self, method: Option<&'static str>) {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = method;
    }

    fn holds(&self, method: &str) -> bool {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) == Some(method)
    }

    /// Makes this method of the store fail, which reads, as while the database restarts; or none.
    pub(crate) fn set_away(&self, method: Option<&'static str>) {
        *self.away.lock().unwrap_or_else(PoisonError::into_inner) = method;
    }

    /// What the last agent outside of the process that ended a run hears of its end now.
    pub(crate) fn end_heard(&self) -> Result<bool, TryRecvError> {
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        ends.last_mut().expect("a run has ended").try_recv()
    }

    /// The number of store calls in progress: these end without the clock advancing.
    pub(crate) fn in_flight(&self) -> u64 {
        *self.in_flight.borrow()
    }

    /// The number of writes so far, without those for the search.
    pub(crate) fn writes(&self) -> u64 {
        self.writes.load(Ordering::SeqCst) - self.indexings()
    }

    /// How often this method of the store has read so far.
    pub(crate) fn reads(&self, method: &str) -> u64 {
        self.reads.lock().unwrap_or_else(PoisonError::into_inner).get(method).copied().unwrap_or_default()
    }

    /// The number of writes for the search so far.
    pub(crate) fn indexings(&self) -> u64 {
        self.indexings.load(Ordering::SeqCst)
    }

    /// The number of calls that have ended so far.
    pub(crate) fn done(&self) -> u64 {
        self.done.load(Ordering::SeqCst)
    }

    /// Whether calls have ended since this was called last.
    pub(crate) fn had_calls(&self) -> bool {
        let done = self.done();
        self.known.swap(done, Ordering::SeqCst) != done
    }

    async fn wait_if_over(&self) {
        if self.is_over() {
            std::future::pending::<()>().await;
        }
    }

    fn begin(self: &Arc<Self>) -> InFlight {
        self.in_flight.send_modify(|calls| *calls += 1);
        InFlight(Arc::clone(self))
    }
}

/// The store layer of a life: it counts, delays and ends the calls.
pub(crate) struct LifeStore(pub(crate) Arc<Life>);

/// A store call in progress.
pub(crate) struct Pass {
    _in_flight: InFlight,
    /// Whether the life ends when the call has returned.
    is_last: bool,
    /// Whether its result is lost.
    is_lost: bool,
    /// Whether the store is away for it.
    is_away: bool,
}

fn lost() -> StoreError {
    StoreError::Unknown("the database did not answer".to_owned())
}

#[async_trait]
impl Layer for LifeStore {
    type Pass = Pass;

    async fn before_read(&self, method: &'static str) -> Pass {
        while self.0.reads_are_held.load(Ordering::SeqCst) || self.0.holds(method) {
            tokio::task::yield_now().await;
        }
        self.0.wait_if_over().await;
        *self.0.reads.lock().unwrap_or_else(PoisonError::into_inner).entry(method).or_default() += 1;
        let is_away = *self.0.away.lock().unwrap_or_else(PoisonError::into_inner) == Some(method);
        Pass { _in_flight: self.0.begin(), is_last: false, is_lost: false, is_away }
    }

    async fn before_write(&self, method: &'static str) -> Result<Pass, StoreError> {
        while self.0.holds(method) {
            tokio::task::yield_now().await;
        }
        self.0.wait_if_over().await;
        if self.0.store_is_down.load(Ordering::SeqCst) {
            let _begun = self.0.begin();
            return Err(StoreError::Unavailable("the disk is full".to_owned()));
        }
        if self.0.rejects_writes.load(Ordering::SeqCst) {
            let _begun = self.0.begin();
            return Err(StoreError::Corrupt("a row is damaged".to_owned()));
        }
        let number = self.0.writes.fetch_add(1, Ordering::SeqCst) + 1;
        let crash = *self.0.crash_at.lock().unwrap_or_else(PoisonError::into_inner);
        let crash = crash.filter(|(at, _)| *at == number).map(|(_, crash)| crash);
        if crash == Some(Crash::Before) {
            self.0.kill();
            self.0.wait_if_over().await;
        }
        if method == "index" {
            self.0.indexings.fetch_add(1, Ordering::SeqCst);
        }
        let mut loss = None;
        if matches!(method, "accept" | "commit") {
            let number = self.0.decisions.fetch_add(1, Ordering::SeqCst) + 1;
            let lost_at = *self.0.lost_at.lock().unwrap_or_else(PoisonError::into_inner);
            loss = lost_at.filter(|(at, _)| *at == number).map(|(_, loss)| loss);
        }
        if loss == Some(Crash::Before) {
            let _begun = self.0.begin();
            return Err(lost());
        }
        let is_after = |of: Option<Crash>| of == Some(Crash::After);
        let _in_flight = self.0.begin();
        Ok(Pass { _in_flight, is_last: is_after(crash), is_lost: is_after(loss), is_away: false })
    }

    /// Leases are granted for good, unless the test has a table of them: those of PostgreSQL end by its own clock, which knows nothing of
    /// the weeks that pass on the clock of a test.
    fn nodes(&self) -> Option<&dyn NodeStore> {
        Some(self.0.leases.get().map_or(&NullStore as &dyn NodeStore, |leases| &**leases))
    }

    /// The leases of a table are not those of the store.
    fn is_held(&self, fence: &(LeaseName, Fence)) -> Option<bool> {
        self.0.leases.get().map(|leases| leases.is_held(fence))
    }

    fn hints(&self) -> Option<&broadcast::Sender<Hint>> {
        Some(&self.0.hints.heard)
    }

    fn hinted(&self, hint: &Hint) {
        self.0.hints.told.lock().unwrap_or_else(PoisonError::into_inner).push(hint.clone());
    }

    async fn finish<T: Send>(
        &self,
        pass: Pass,
        call: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        let mut result =
            if pass.is_away { Err(StoreError::Unavailable("the database restarts".to_owned())) } else { call.await };
        if pass.is_last {
            self.0.kill();
        }
        if pass.is_lost {
            result = result.and(Err(lost()));
        }
        drop(pass);
        self.0.wait_if_over().await;
        result
    }
}

/// A channel that each node runs.
pub(crate) fn everywhere() -> ChannelId {
    ChannelId::new("test", "everywhere")
}

/// A channel whose calls stop when the life ends.
pub(crate) struct LifeChannel {
    pub(crate) life: Arc<Life>,
    pub(crate) channel: Arc<dyn ChannelAdapter>,
}

#[async_trait]
impl ChannelAdapter for LifeChannel {
    fn channel(&self) -> &ChannelId {
        self.channel.channel()
    }
    fn capabilities(&self, conversation: &ConversationRef) -> Capabilities {
        self.channel.capabilities(conversation)
    }
    fn is_group(&self, conversation: &ConversationRef) -> bool {
        self.channel.is_group(conversation)
    }
    fn health(&self) -> ChannelHealth {
        self.channel.health()
    }
    fn parts(&self, text: &str) -> Vec<String> {
        self.channel.parts(text)
    }
    fn album_of(&self, file: &Attachment) -> Option<&'static str> {
        self.channel.album_of(file)
    }
    fn fits_caption(&self, text: &str) -> bool {
        self.channel.fits_caption(text)
    }
    fn shows_anything(&self, text: &str) -> bool {
        self.channel.shows_anything(text)
    }
    fn runs_at_each_node(&self) -> bool {
        *self.channel() == everywhere()
    }
    fn is_watched(&self, _conversation: &ConversationRef, _turn: TurnId) -> bool {
        self.life.is_watched.load(Ordering::SeqCst)
    }
    async fn run(&self, intake: Intake, shutdown: CancellationToken) -> Result<(), ChannelError> {
        self.channel.run(intake, shutdown).await
    }
    async fn fetch(&self, _attachment: &Attachment, _limit: usize) -> Result<Vec<u8>, FetchError> {
        self.life.files.wait().await;
        Ok(b"a file".to_vec())
    }
    async fn deliver(&self, delivery: &Delivery) -> Result<Receipt, DeliveryError> {
        self.life.wait_if_over().await;
        let result = tokio::select! {
            result = self.channel.deliver(delivery) => result,
            () = self.life.dead.cancelled() => std::future::pending().await,
        };
        self.life.done.fetch_add(1, Ordering::SeqCst);
        self.life.wait_if_over().await;
        result
    }
}

/// An agent whose runs stop when the life ends.
pub(crate) struct LifeAgent {
    pub(crate) life: Arc<Life>,
    pub(crate) agent: Arc<dyn AgentRuntime>,
}

#[async_trait]
impl AgentRuntime for LifeAgent {
    fn describe(&self) -> String {
        self.agent.describe()
    }
    fn history(&self) -> usize {
        self.agent.history()
    }
    fn reads(&self, media_type: &str) -> Option<usize> {
        self.agent.reads(media_type)
    }
    fn hears(&self, media_type: &str) -> bool {
        self.agent.hears(media_type)
    }
    fn keeps_sessions(&self) -> bool {
        self.agent.keeps_sessions()
    }
    fn forgets_turns(&self) -> bool {
        self.agent.forgets_turns()
    }
    fn hands_out(&self) -> bool {
        self.agent.hands_out()
    }
    fn has_worker(&self) -> bool {
        self.agent.has_worker()
    }
    fn withdraw(&self, turn: TurnId, attempt: u32) -> bool {
        self.agent.withdraw(turn, attempt)
    }
    fn seals(&self) -> bool {
        self.agent.seals()
    }
    fn members(&self) -> Vec<MemberHealth> {
        self.agent.members()
    }
    async fn session_changed(&self, notice: SessionNotice) -> Result<(), AgentError> {
        self.life.wait_if_over().await;
        let result = self.agent.session_changed(notice).await;
        self.life.done.fetch_add(1, Ordering::SeqCst);
        self.life.wait_if_over().await;
        result
    }
    async fn run(&self, turn: AgentTurn, events: RunEvents, cancel: CancellationToken) -> Result<Outcome, AgentError> {
        self.life.wait_if_over().await;
        let result = self.agent.run(turn, events.clone(), cancel).await;
        if self.hands_out() {
            let ends = events.ends().await;
            self.life.ends.lock().unwrap_or_else(PoisonError::into_inner).push(ends);
        }
        self.life.done.fetch_add(1, Ordering::SeqCst);
        self.life.wait_if_over().await;
        result
    }
}
