//! A small in-memory platform.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rejoinder_guard::{SignalKind, Via};
use tokio::sync::{Notify, watch};

use crate::model::{
    capabilities::{Capabilities, Resend},
    conversation::ConversationRef,
    delivery::{Action, Delivery, DeliveryError, Receipt, Scope},
    event::InboundEvent,
    ids::{DeliveryId, TurnId},
};

/// What goes wrong with one delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The platform performs it, and the response is lost.
    LoseResponse,
    /// The request is lost, and the adapter cannot tell.
    LoseRequest,
    /// The platform rejects it permanently.
    Refuse,
    /// It certainly did not reach the platform.
    NotSent,
    /// The same, and the adapter learns it once the platform has performed another delivery.
    NotSentLate,
    /// The same, and the error repeats what was to be sent.
    Echo,
    /// The platform limits us.
    Limit {
        /// The wait that the platform asks for.
        retry_after: Duration,
        /// What the platform blocks meanwhile.
        scope: Scope,
    },
    /// The platform rejects our credentials.
    Unauthorized,
    /// The adapter panics before it sends.
    Panic,
    /// The adapter's call never returns.
    Hang,
}

/// A message or a reaction, as a person sees it now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Post {
    /// The platform's id of the message.
    pub id: String,
    /// The address it was sent to.
    pub conversation: ConversationRef,
    /// The current text; the emoji of a reaction.
    pub text: String,
    /// The id of the message that it replies or reacts to.
    pub to: Option<String>,
    /// The label before it.
    pub label: Option<String>,
}

/// One performed delivery, which a person could notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenDelivery {
    /// The address it was sent to.
    pub conversation: ConversationRef,
    /// The turn it belongs to.
    pub turn: TurnId,
    /// The id of the delivery; a resend has the same one.
    pub delivery: DeliveryId,
    /// The number of the part, counted from 1, and the number of parts.
    pub part: (u32, u32),
    /// The signal it carries; `None` for drafts and typing.
    pub signal: Option<SignalKind>,
    /// How the signal came to be.
    pub via: Option<Via>,
    /// Whether it has a label.
    pub labelled: bool,
    /// The action that was performed.
    pub action: Action,
}

/// Chooses the fault of a delivery, if any.
type FaultChooser = Box<dyn FnMut(&Delivery) -> Option<Fault> + Send>;

/// The platform's server: what people see, and the faults to come. All gateways that a test starts share it.
pub struct Platform {
    state: Mutex<PlatformState>,
    held: watch::Sender<bool>,
    inbox_changed: Notify,
    /// A delivery was performed.
    performed: Notify,
}

#[derive(Default)]
struct PlatformState {
    posts: Vec<Post>,
    seen: Vec<SeenDelivery>,
    keys: HashMap<DeliveryId, Receipt>,
    faults: VecDeque<Fault>,
    fault_chooser: Option<FaultChooser>,
    calling: HashMap<ConversationRef, u32>,
    calls: u64,
    is_down: bool,
    ephemerals_hang: bool,
    ephemerals_are_lost: bool,
    /// The ephemerals whose calls hang or have hung.
    late: Vec<Action>,
    violations: Vec<String>,
    moved: HashMap<ConversationRef, String>,
    deleted: HashSet<String>,
    /// The chats that several people read.
    joined: HashSet<ConversationRef>,
    inbox: VecDeque<InboundEvent>,
    acknowledged: HashSet<String>,
}

impl std::fmt::Debug for Platform {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Platform").finish_non_exhaustive()
    }
}

impl Default for Platform {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            held: watch::Sender::new(false),
            inbox_changed: Notify::new(),
            performed: Notify::new(),
        }
    }
}

/// A call in progress. It is counted for its conversation until dropped.
struct CallGuard<'a>(&'a Platform, ConversationRef);

impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        if let Some(calling) = self.0.state().calling.get_mut(&self.1) {
            *calling -= 1;
        }
    }
}

impl Platform {
    /// Makes a platform without messages and faults.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Queues `fault`: each signal or draft message takes the next one of the queue.
    pub fn queue_fault(&self, fault: Fault) {
        self.state().faults.push_back(fault);
    }

    /// Makes `chooser` choose the fault of each signal or draft message while the queue is empty.
    pub fn choose_faults(&self, chooser: impl FnMut(&Delivery) -> Option<Fault> + Send + 'static) {
        self.state().fault_chooser = Some(Box::new(chooser));
    }

    /// Removes all faults and makes the platform reachable.
    pub fn clear_faults(&self) {
        let mut state = self.state();
        state.fault_chooser = None;
        state.faults.clear();
        state.is_down = false;
    }

    /// Makes the platform unreachable, or reachable again.
    pub fn set_down(&self, is_down: bool) {
        self.state().is_down = is_down;
    }

    /// Makes the calls of ephemerals hang from now on, or no longer.
    pub fn hang_ephemerals(&self, hang: bool) {
        self.state().ephemerals_hang = hang;
    }

    /// Makes the calls of ephemerals have no answer from now on, or no longer.
    pub fn lose_ephemerals(&self, are_lost: bool) {
        self.state().ephemerals_are_lost = are_lost;
    }

    /// Applies the edits of the ephemerals that hang, as a slow platform does even if nobody waits for the response.
    pub fn apply_late_edits(&self) {
        let mut state = self.state();
        for action in std::mem::take(&mut state.late) {
            if let Action::Draft { text, message: Some(message), .. } = action
                && let Some(post) = state.posts.iter_mut().find(|post| post.id == message)
            {
                post.text = text;
            }
        }
    }

    /// Makes calls wait, or lets them continue.
    pub fn hold(&self, held: bool) {
        self.held.send_replace(held);
    }

    /// The current messages of a conversation, in order.
    #[must_use]
    pub fn posts(&self, conversation: &ConversationRef) -> Vec<Post> {
        self.state().posts.iter().filter(|post| post.conversation == *conversation).cloned().collect()
    }

    /// All performed deliveries, in order.
    #[must_use]
    pub fn seen(&self) -> Vec<SeenDelivery> {
        self.state().seen.clone()
    }

    /// The number of calls so far, failed ones included.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    /// Violations of the rules: two simultaneous calls in one conversation, a draft after its turn's final signal.
    #[must_use]
    pub fn violations(&self) -> Vec<String> {
        self.state().violations.clone()
    }

    /// Deletes a message, as a person does.
    pub fn delete_post(&self, message: &str) {
        self.state().posts.retain(|post| post.id != message);
    }

    /// Deletes a person's message: the platform rejects replies to it.
    pub fn delete_message(&self, message: &str) {
        self.state().deleted.insert(message.to_owned());
    }

    /// Gives a chat another id. From now on calls to the old id fail with the new one. Its messages stay under the old
    /// id.
    pub fn move_chat(&self, from: &ConversationRef, to: &str) {
        self.state().moved.insert(from.clone(), to.to_owned());
    }

    /// Others join a chat that was direct.
    pub fn join(&self, conversation: &ConversationRef) {
        self.state().joined.insert(conversation.clone());
    }

    pub(super) fn is_joined(&self, conversation: &ConversationRef) -> bool {
        self.state().joined.contains(conversation)
    }

    /// Queues an inbound event for the channel that runs, or the next one that does.
    pub fn queue_event(&self, event: InboundEvent) {
        self.state().inbox.push_back(event);
        self.inbox_changed.notify_one();
    }

    /// Whether the channel has acknowledged an event.
    #[must_use]
    pub fn is_acknowledged(&self, external_id: &str) -> bool {
        self.state().acknowledged.contains(external_id)
    }

    /// Waits for the first event that is not acknowledged.
    pub(super) async fn next_event(&self) -> InboundEvent {
        loop {
            let event = self.state().inbox.front().cloned();
            match event {
                Some(event) => return event,
                None => self.inbox_changed.notified().await,
            }
        }
    }

    pub(super) fn acknowledge(&self) {
        let mut state = self.state();
        if let Some(event) = state.inbox.pop_front() {
            state.acknowledged.insert(event.external_id);
        }
    }

    /// Performs a delivery, or fails with the next fault.
    ///
    /// # Errors
    /// If the next fault is an error, the chat has moved, or the message to edit or to reply to is gone.
    ///
    /// # Panics
    /// If the next fault is [`Fault::Panic`].
    pub async fn deliver(&self, delivery: &Delivery, capabilities: &Capabilities) -> Result<Receipt, DeliveryError> {
        let _calling = self.begin_call(delivery);
        let mut held = self.held.subscribe();
        // This never fails: `self` holds the sender.
        let _ = held.wait_for(|held| !*held).await;
        match self.fault(delivery) {
            None => {
                let receipt = self.perform(delivery, capabilities)?;
                self.performed.notify_waiters();
                Ok(receipt)
            }
            Some(Fault::LoseResponse) => {
                self.perform(delivery, capabilities)?;
                Err(DeliveryError::Unknown("the connection was reset".to_owned()))
            }
            Some(Fault::LoseRequest) => Err(DeliveryError::Unknown("the connection was reset".to_owned())),
            Some(Fault::Refuse) => Err(DeliveryError::Refused("chat not found".to_owned())),
            Some(fault @ (Fault::NotSent | Fault::NotSentLate)) => {
                if fault == Fault::NotSentLate {
                    self.performed.notified().await;
                }
                Err(DeliveryError::NotSent { retry_after: None, detail: "connection refused".to_owned() })
            }
            Some(Fault::Echo) => {
                Err(DeliveryError::NotSent { retry_after: None, detail: format!("{:?}", delivery.action()) })
            }
            Some(Fault::Limit { retry_after, scope }) => {
                Err(DeliveryError::Limited { retry_after, scope, detail: "too many requests".to_owned() })
            }
            Some(Fault::Unauthorized) => Err(DeliveryError::Unauthorized("token revoked".to_owned())),
            Some(Fault::Panic) => panic!("a bug in the adapter"),
            Some(Fault::Hang) => std::future::pending().await,
        }
    }

    fn begin_call(&self, delivery: &Delivery) -> CallGuard<'_> {
        let conversation = delivery.conversation().clone();
        let mut state = self.state();
        state.calls += 1;
        let calling = state.calling.entry(conversation.clone()).or_default();
        *calling += 1;
        if *calling > 1 {
            state.violations.push(format!("two simultaneous calls in {conversation}"));
        }
        CallGuard(self, conversation)
    }

    fn fault(&self, delivery: &Delivery) -> Option<Fault> {
        let mut state = self.state();
        if state.is_down {
            return Some(Fault::NotSent);
        }
        if delivery.signal().is_none() && !delivery.is_draft() {
            let is_ephemeral =
                matches!(delivery.action(), Action::Draft { .. } | Action::Typing { .. } | Action::Mark { .. });
            if state.ephemerals_hang && is_ephemeral {
                state.late.push(delivery.action().clone());
                return Some(Fault::Hang);
            }
            if state.ephemerals_are_lost && is_ephemeral {
                return Some(Fault::LoseRequest);
            }
            return None;
        }
        let next = state.faults.pop_front();
        next.or_else(|| state.fault_chooser.as_mut().and_then(|choose| choose(delivery)))
    }

    fn perform(&self, delivery: &Delivery, capabilities: &Capabilities) -> Result<Receipt, DeliveryError> {
        let mut state = self.state();
        if capabilities.resend == Resend::Idempotent
            && let Some(receipt) = state.keys.get(&delivery.id())
        {
            return Ok(receipt.clone());
        }
        if let Some(chat) = state.moved.get(delivery.conversation()) {
            return Err(DeliveryError::Moved { chat: chat.clone() });
        }
        let drafts_are_messages = capabilities.drafts_are_messages;
        let changed = match delivery.action() {
            Action::Edit { message, .. } => Some(message),
            Action::Draft { message: Some(message), .. } if drafts_are_messages => Some(message),
            _ => None,
        };
        let is_there = |post: &Post| Some(&post.id) == changed && post.conversation == *delivery.conversation();
        if changed.is_some() && !state.posts.iter().any(is_there) {
            return Err(DeliveryError::Gone("message to edit not found".to_owned()));
        }
        if let Action::Send { reply_to: Some(message), .. } = delivery.action()
            && state.deleted.contains(message)
        {
            return Err(DeliveryError::ReplyGone("message to be replied not found".to_owned()));
        }
        let is_final = |seen: &SeenDelivery| {
            seen.turn == delivery.turn() && matches!(seen.signal, Some(SignalKind::Reply | SignalKind::Reaction))
        };
        let is_draft = delivery.is_draft() || matches!(delivery.action(), Action::Draft { .. });
        if is_draft && state.seen.iter().any(is_final) {
            state.violations.push(format!("a draft of turn {:?} came after its final signal", delivery.turn()));
        }
        state.seen.push(SeenDelivery {
            conversation: delivery.conversation().clone(),
            turn: delivery.turn(),
            delivery: delivery.id(),
            part: delivery.part(),
            signal: delivery.signal(),
            via: delivery.via().cloned(),
            labelled: delivery.label().is_some(),
            action: delivery.action().clone(),
        });
        let id = format!("m{}", state.seen.len());
        let post = |text: &str, to: Option<String>| Post {
            id: id.clone(),
            conversation: delivery.conversation().clone(),
            text: text.to_owned(),
            to,
            label: delivery.label().map(str::to_owned),
        };
        let mut more = Vec::new();
        let message_id = match delivery.action() {
            Action::Send { content, reply_to } => {
                state.posts.push(post(&content.text, reply_to.clone()));
                if capabilities.files_per_message > 1 {
                    more.extend((1..content.attachments.len()).map(|number| format!("{id}.{number}")));
                }
                let other = |id: &String| Post { id: id.clone(), label: None, ..post("", reply_to.clone()) };
                state.posts.extend(more.iter().map(other));
                id
            }
            Action::React { message, emoji } => {
                if !state.posts.iter().any(|post| post.to == *message && post.text == *emoji) {
                    state.posts.push(post(emoji, message.clone()));
                }
                id
            }
            Action::Edit { message, content, .. } => {
                if let Some(post) = state.posts.iter_mut().find(|post| post.id == *message) {
                    post.text.clone_from(&content.text);
                    post.label = delivery.label().map(str::to_owned).or_else(|| post.label.take());
                }
                message.clone()
            }
            Action::Delete { message } => {
                state.posts.retain(|post| post.id != *message);
                message.clone()
            }
            Action::Draft { text, message: Some(message), .. } if drafts_are_messages => {
                if let Some(post) = state.posts.iter_mut().find(|post| post.id == *message) {
                    post.text.clone_from(text);
                }
                message.clone()
            }
            Action::Draft { .. } | Action::Typing { .. } | Action::Mark { .. } => id,
        };
        let receipt = Receipt { message_id, more };
        state.keys.insert(delivery.id(), receipt.clone());
        Ok(receipt)
    }

    fn state(&self) -> MutexGuard<'_, PlatformState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
