//! Maps addresses to conversations, and caches the facts about a conversation that an event needs.
//!
//! Everything in the core is keyed by the conversation's id. An event comes with a platform's address; when something is
//! sent, the address is read from the conversation's row.
//!
//! One query reads these facts. They stay cached until this process changes them, so a message in an active conversation waits
//! for no read. While other nodes live, which also change them, only the queue mode of turns that wait or run comes from the cache, for
//! a second.

use std::{
    collections::{HashMap, HashSet},
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use quick_cache::sync::Cache;

use crate::{
    base::timer::Timer,
    handles::slots::Slots,
    model::{ConversationId, ConversationRef, QueueMode, SessionChange, TurnRecord},
    ports::{ChannelStore, KnownConversation, SharedClock, StoreError, Transition},
};

/// The number of conversations cached: more than are usually active at once, because each miss costs a read.
const REMEMBERED: usize = 4096;

/// How long a queue mode that was read while other nodes live is used: as long as a change may take to be found without a hint.
const LATELY: Duration = Duration::from_secs(1);

/// Whether other nodes live, and so change what is cached.
pub(crate) type Others = Box<dyn Fn() -> bool + Send + Sync>;

/// Finds the conversations of events.
pub(crate) struct Addresses {
    store: Arc<dyn ChannelStore>,
    slots: Arc<Slots>,
    timer: Arc<Timer>,
    others: Others,
    clock: SharedClock,
    known: Cache<ConversationRef, KnownConversation>,
    /// Queue modes that were read while other nodes live, and when.
    modes: Cache<ConversationId, (Duration, Option<QueueMode>)>,
    /// The ids for conversations that no event has opened yet.
    new: Cache<ConversationRef, ConversationId>,
    /// The number of removals from the cache: a read that overlaps one is not cached, and an event that was looked up before one is looked
    /// up again. Locked during a removal or an insertion.
    forgotten: Mutex<u64>,
    /// The number of turns at an address that are about to be stored as postponed.
    postponing: Mutex<HashMap<ConversationRef, usize>>,
}

/// A turn that is about to be stored as postponed. While this exists, later messages at its address are postponed, too.
pub(crate) struct Postponing {
    addresses: Arc<Addresses>,
    address: ConversationRef,
}

impl Drop for Postponing {
    fn drop(&mut self) {
        // The turn may be stored by now.
        self.addresses.forget(&self.address);
        let mut postponing = self.addresses.postponing();
        let left = postponing.remove(&self.address).unwrap_or_default().saturating_sub(1);
        if left > 0 {
            postponing.insert(self.address.clone(), left);
        }
    }
}

/// The conversations whose cached facts a commit changes.
#[derive(Default)]
pub(crate) struct ChangedConversations {
    ids: HashSet<ConversationId>,
    /// An agent or a model is chosen for a session, which several conversations may share.
    are_all: bool,
}

impl ChangedConversations {
    /// The conversations that a transition changes, apart from its turns.
    pub(crate) fn by(transition: &Transition) -> Self {
        let queued = transition.queue.iter().map(|(conversation, _)| *conversation);
        let voiced = transition.voice.iter().map(|(conversation, _)| *conversation);
        let asked = transition.questions.iter().map(|question| question.conversation);
        let continued = transition.sessions.iter().filter_map(|change| match change {
            SessionChange::New { conversation, .. } | SessionChange::Use { conversation, .. } => Some(*conversation),
            _ => None,
        });
        let ids = queued.chain(voiced).chain(asked).chain(continued).collect();
        let are_all = transition.sessions.iter().any(|change| matches!(change, SessionChange::Choose { .. }));
        Self { ids, are_all }
    }

    /// Adds the conversations of turns that become postponed, or cease to be. Each turn is given before and after.
    pub(crate) fn postponed<'a>(&mut self, turns: impl Iterator<Item = (&'a TurnRecord, &'a TurnRecord)>) {
        let changes =
            turns.filter(|(before, after)| before.obligation.is_postponed() != after.obligation.is_postponed());
        self.ids.extend(changes.map(|(_, after)| after.conversation));
    }
}

impl Addresses {
    pub(crate) fn new(
        store: Arc<dyn ChannelStore>,
        slots: Arc<Slots>,
        timer: Arc<Timer>,
        others: Others,
        clock: SharedClock,
    ) -> Self {
        let (known, modes, new) = (Cache::new(REMEMBERED), Cache::new(REMEMBERED), Cache::new(REMEMBERED));
        let (forgotten, postponing) = (Mutex::default(), Mutex::default());
        Self { store, slots, timer, others, clock, known, modes, new, forgotten, postponing }
    }

    /// The conversation at an address; for a new address, one with the id that it will get. Concurrent calls for one
    /// address get the same id.
    pub(crate) async fn resolve(&self, address: &ConversationRef) -> Result<KnownConversation, StoreError> {
        // Before the cache: a postponed turn is noted until the cache has forgotten its conversation.
        let is_postponing = self.postponing().contains_key(address);
        let known = match self.known.get_value_or_guard_async(address).await {
            Ok(known) if !(self.others)() => known,
            Ok(_) => self.read(address).await?,
            Err(vacant) => {
                let changes = self.changes();
                let known = self.read(address).await?;
                // Otherwise the next caller reads again, also one who waits for this read.
                let is_forgotten = self.forgotten();
                if *is_forgotten == changes && !(self.others)() {
                    let _ = vacant.insert(known);
                }
                known
            }
        };
        Ok(KnownConversation { has_postponed: known.has_postponed || is_postponing, ..known })
    }

    async fn read(&self, address: &ConversationRef) -> Result<KnownConversation, StoreError> {
        let (asked_at, changes) = (self.clock.uptime(), self.changes());
        let Some(read) = self.store.arrival(address).await? else {
            return Ok(KnownConversation::new(self.new_id(address)));
        };
        if (self.others)() {
            let forgotten = self.forgotten();
            if *forgotten == changes {
                self.modes.insert(read.id, (asked_at, read.queue));
            }
        }
        Ok(read)
    }

    /// The queue mode that somebody has chosen for a turn's conversation. While other nodes live, it may be up to a second old.
    pub(crate) async fn queue_mode(&self, turn: &TurnRecord) -> Result<Option<QueueMode>, StoreError> {
        match self.modes.get(&turn.conversation) {
            Some((asked_at, mode)) if self.clock.uptime().saturating_sub(asked_at) < LATELY => Ok(mode),
            _ => Ok(self.of_turn(turn).await?.queue),
        }
    }

    /// A count of the changes of conversations that this node knows of. If it has changed, an earlier lookup may be out of date.
    pub(crate) fn changes(&self) -> u64 {
        *self.forgotten()
    }

    /// Removes everything from the cache that may be read again.
    pub(crate) fn forget_all(&self) {
        self.forget_those(|_, _| true);
    }

    /// The conversation of a turn, whose chat may have got a new id since the turn was read.
    pub(crate) async fn of_turn(&self, turn: &TurnRecord) -> Result<KnownConversation, StoreError> {
        let here = self.resolve(&turn.event.conversation).await?;
        if here.id == turn.conversation {
            return Ok(here);
        }
        match self.store.address(turn.conversation).await? {
            Some(address) => self.resolve(&address).await,
            None => Ok(here),
        }
    }

    fn new_id(&self, address: &ConversationRef) -> ConversationId {
        let create = || Ok(ConversationId::new(self.clock.now()));
        self.new.get_or_insert_with(address, create).unwrap_or_else(|never: Infallible| match never {})
    }

    /// Removes an address from the cache, so that the store is read again.
    pub(crate) fn forget(&self, address: &ConversationRef) {
        let mut forgotten = self.forgotten();
        *forgotten += 1;
        self.known.remove(address);
        self.modes.clear();
    }

    /// The same for the conversations that a commit changed.
    pub(crate) fn forget_changed(&self, changed: &ChangedConversations) {
        if changed.are_all || !changed.ids.is_empty() {
            self.forget_those(|_, known| changed.are_all || changed.ids.contains(&known.id));
        }
    }

    /// Removes a chat that got a new id from the cache. Its waiting rows may belong to another conversation now, so the
    /// scheduler and the sweep look for them.
    pub(crate) fn moved(&self, from: &ConversationRef, chat: &str) {
        let has_moved = |address: &ConversationRef| {
            address.channel == from.channel && (address.chat == from.chat || *address.chat == *chat)
        };
        // Their conversations have other addresses now.
        self.new.retain(|address, _| !has_moved(address));
        self.forget_those(|address, _| has_moved(address));
        self.slots.fall_behind();
        self.timer.wake_at(self.clock.now());
    }

    /// Notes that a turn at an address is about to be stored as postponed.
    pub(crate) fn postpone(self: &Arc<Self>, address: &ConversationRef) -> Postponing {
        *self.postponing().entry(address.clone()).or_default() += 1;
        // An event that has looked its conversation up looks again.
        self.forget(address);
        Postponing { addresses: Arc::clone(self), address: address.clone() }
    }

    fn forgotten(&self) -> MutexGuard<'_, u64> {
        self.forgotten.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn postponing(&self) -> MutexGuard<'_, HashMap<ConversationRef, usize>> {
        self.postponing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget_those(&self, are_meant: impl Fn(&ConversationRef, &KnownConversation) -> bool) {
        let mut forgotten = self.forgotten();
        *forgotten += 1;
        self.modes.clear();
        self.known.retain(|address, known| !are_meant(address, known));
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        sync::atomic::{AtomicBool, Ordering},
    };

    use async_trait::async_trait;
    use futures_util::poll;
    use rejoinder_guard::{Expectation, Obligation, Policy, Timestamp};
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::{
        conformance::{clock::TestClock, scripted::Gate},
        model::{
            conversation::{ChannelId, ChatKind},
            event::{InboundEvent, Sender, SenderKind},
            ids::{SessionId, TurnId},
            turn::Handler,
        },
        ports::store::record::{AbsentChannel, SentText},
    };

    /// A store in which every address leads to one row, if there is one. It is read before the gate opens.
    #[derive(Default)]
    struct OneRow {
        row: Mutex<Option<KnownConversation>>,
        gate: Gate,
    }

    #[async_trait]
    impl ChannelStore for OneRow {
        async fn arrival(&self, _: &ConversationRef) -> Result<Option<KnownConversation>, StoreError> {
            let row = *self.row.lock().expect("no panic");
            self.gate.wait().await;
            Ok(row)
        }
        async fn set_channels(&self, _: &[ChannelId]) -> Result<Vec<AbsentChannel>, StoreError> {
            unreachable!()
        }
        async fn cursor(&self, _: &ChannelId, _: &str) -> Result<Option<String>, StoreError> {
            unreachable!()
        }
        async fn conversation(&self, _: &ConversationRef) -> Result<Option<ConversationId>, StoreError> {
            unreachable!()
        }
        async fn conversations_at(&self, _: &[ConversationRef]) -> Result<Vec<ConversationId>, StoreError> {
            unreachable!()
        }
        async fn address(&self, _: ConversationId) -> Result<Option<ConversationRef>, StoreError> {
            unreachable!()
        }
        async fn sent_text(&self, _: &ChannelId, _: &str, _: &str) -> Result<Option<SentText>, StoreError> {
            unreachable!()
        }
    }

    fn addresses(store: &Arc<OneRow>) -> Arc<Addresses> {
        addresses_beside(store, Box::new(|| false))
    }

    fn addresses_beside(store: &Arc<OneRow>, others: Others) -> Arc<Addresses> {
        let slots = Slots::new(1, [], CancellationToken::new(), TestClock::new());
        let (slots, timer) = (Arc::new(slots), Arc::new(Timer::new()));
        Arc::new(Addresses::new(Arc::<OneRow>::clone(store), slots, timer, others, TestClock::new()))
    }

    fn turn_in(conversation: ConversationId) -> TurnRecord {
        let now = Timestamp::from_millis(0);
        let sender = Sender { id: "7".to_owned(), name: None, username: None, kind: SenderKind::Person };
        TurnRecord {
            seq: 1,
            id: TurnId::new(now),
            version: 1,
            obligation: Obligation::open(Expectation::Answer, &Policy::default(), None, now),
            conversation,
            session: SessionId::new(now),
            model: None,
            handler: Handler::Agent("main".into()),
            rule: None,
            runs: 0,
            has_history: false,
            event: Arc::new(InboundEvent::new(chat(), ChatKind::Direct, "1".to_owned(), sender, now)),
        }
    }

    fn chat() -> ConversationRef {
        ConversationRef::new(ChannelId::new("test", "main"), "a")
    }

    #[tokio::test]
    async fn a_new_conversation_keeps_its_id_until_it_is_stored() {
        let store = Arc::<OneRow>::default();
        store.gate.open();
        let addresses = addresses(&store);
        let id = async || addresses.resolve(&chat()).await.expect("it is read").id;

        let first = id().await;
        addresses.forget_changed(&ChangedConversations { ids: HashSet::new(), are_all: true });
        assert_eq!(id().await, first);
        addresses.moved(&chat(), "b");
        assert_ne!(id().await, first, "its row has another address now");
    }

    #[tokio::test]
    async fn a_read_that_is_out_of_date_is_used_by_nobody_who_came_later() {
        let store = Arc::<OneRow>::default();
        let (addresses, chat) = (addresses(&store), chat());
        let before = KnownConversation::new(ConversationId::new(Timestamp::from_millis(0)));
        *store.row.lock().expect("no panic") = Some(before);
        let mut first = pin!(addresses.resolve(&chat));
        assert!(poll!(&mut first).is_pending());

        let after = KnownConversation { has_open_question: true, ..before };
        *store.row.lock().expect("no panic") = Some(after);
        let ids = HashSet::from([before.id]);
        addresses.forget_changed(&ChangedConversations { ids, are_all: false });
        let mut second = pin!(addresses.resolve(&chat));
        assert!(poll!(&mut second).is_pending());
        store.gate.open();

        assert_eq!(first.await.expect("it is read"), before);
        assert_eq!(second.await.expect("it is read"), after);
    }

    #[tokio::test]
    async fn while_other_nodes_live_a_queue_mode_is_used_for_a_second() {
        let (store, clock) = (Arc::<OneRow>::default(), TestClock::new());
        store.gate.open();
        let slots = Arc::new(Slots::new(1, [], CancellationToken::new(), clock.clone()));
        let (timer, rows) = (Arc::new(Timer::new()), Arc::<OneRow>::clone(&store));
        let addresses = Addresses::new(rows, slots, timer, Box::new(|| true), clock.clone());
        let id = ConversationId::new(Timestamp::from_millis(0));
        let choose = |queue| {
            *store.row.lock().expect("no panic") = Some(KnownConversation { queue, ..KnownConversation::new(id) });
        };
        let turn = turn_in(id);
        let mode = async || addresses.queue_mode(&turn).await.expect("it is read");
        choose(Some(QueueMode::Collect));
        assert_eq!(mode().await, Some(QueueMode::Collect));

        choose(None);
        assert_eq!(mode().await, Some(QueueMode::Collect), "it was read lately");
        clock.advance(LATELY);
        assert_eq!(mode().await, None);

        choose(Some(QueueMode::Steer));
        addresses.forget_changed(&ChangedConversations { ids: HashSet::from([id]), are_all: false });
        assert_eq!(mode().await, Some(QueueMode::Steer), "this node has changed it");
    }

    #[tokio::test]
    async fn while_other_nodes_live_each_event_is_about_what_is_stored() {
        let (store, is_shared) = (Arc::<OneRow>::default(), Arc::new(AtomicBool::new(false)));
        store.gate.open();
        let others = {
            let is_shared = Arc::clone(&is_shared);
            Box::new(move || is_shared.load(Ordering::Relaxed))
        };
        let (addresses, chat) = (addresses_beside(&store, others), chat());
        let stored = |has_open_question| {
            let id = ConversationId::new(Timestamp::from_millis(0));
            *store.row.lock().expect("no panic") =
                Some(KnownConversation { has_open_question, ..KnownConversation::new(id) });
        };
        let is_asked = async || addresses.resolve(&chat).await.expect("it is read").has_open_question;
        stored(false);
        assert!(!is_asked().await);

        is_shared.store(true, Ordering::Relaxed);
        stored(true);
        assert!(is_asked().await, "it was cached before");
        addresses.forget_all();
        assert!(is_asked().await);
        stored(false);
        assert!(!is_asked().await, "it is not cached");
    }

    #[tokio::test]
    async fn what_comes_after_a_postponed_message_knows_it_before_it_is_stored() {
        let store = Arc::<OneRow>::default();
        store.gate.open();
        let addresses = addresses(&store);
        let has_postponed = async || addresses.resolve(&chat()).await.expect("it is read").has_postponed;

        let before = addresses.changes();
        let postponing = [addresses.postpone(&chat()), addresses.postpone(&chat())];
        assert_ne!(addresses.changes(), before, "who has looked it up looks again");
        addresses.forget(&chat());
        assert!(has_postponed().await);
        let [first, second] = postponing;
        drop(first);
        assert!(has_postponed().await, "the second one is not stored yet");
        drop(second);
        assert!(!has_postponed().await, "none was stored");
    }
}
