//! A small platform in memory.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::{Notify, watch};

use crate::{
    Action, Capabilities, ConversationRef, Delivery, DeliveryError, DeliveryId, InboundEvent, Receipt, Resend, Scope,
    SignalKind, TurnId, Via,
};

/// What goes wrong with one delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is done, and the answer is lost.
    LoseResponse,
    /// It never arrives, and nobody can tell.
    LoseRequest,
    /// It is refused for good.
    Refuse,
    /// It certainly was not accepted.
    NotSent,
    /// The platform limits us.
    Limit {
        /// For how long.
        retry_after: Duration,
        /// What is blocked.
        scope: Scope,
    },
    /// The credentials are not accepted.
    Unauthorized,
    /// The adapter panics before it sends.
    Panic,
    /// The adapter never comes back.
    Hang,
}

/// A message, as a person sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Post {
    /// The platform's id.
    pub id: String,
    /// Where it is.
    pub conversation: ConversationRef,
    /// What it says now; the emoji of a reaction.
    pub text: String,
    /// What it replies to, or reacts to.
    pub to: Option<String>,
    /// Whether it says that it may be a second copy.
    pub labelled: bool,
}

/// Something that a person could notice, in the order it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Where.
    pub conversation: ConversationRef,
    /// The turn it belongs to.
    pub turn: Option<TurnId>,
    /// The delivery.
    pub delivery: DeliveryId,
    /// Which part of how many.
    pub part: (u32, u32),
    /// The signal it carries; `None` for drafts and typing.
    pub signal: Option<SignalKind>,
    /// How the signal came to be.
    pub via: Option<Via>,
    /// Whether it says that it may be a second copy.
    pub labelled: bool,
    /// What was done.
    pub action: Action,
}

/// Decides what goes wrong with a delivery.
type Trouble = Box<dyn FnMut(&Delivery) -> Option<Fault> + Send>;

/// The platform: what people see, and what goes wrong next. Shared by every gateway that a test starts.
pub struct Platform {
    state: Mutex<State>,
    held: watch::Sender<bool>,
    mail: Notify,
}

#[derive(Default)]
struct State {
    posts: Vec<Post>,
    seen: Vec<Seen>,
    keys: HashMap<DeliveryId, String>,
    faults: VecDeque<Fault>,
    trouble: Option<Trouble>,
    calling: HashMap<ConversationRef, u32>,
    calls: u64,
    is_down: bool,
    wrongs: Vec<String>,
    moved: HashMap<ConversationRef, String>,
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
        Self { state: Mutex::default(), held: watch::Sender::new(false), mail: Notify::new() }
    }
}

/// One call of an adapter, counted while it lasts.
struct Calling<'a>(&'a Platform, ConversationRef);

impl Drop for Calling<'_> {
    fn drop(&mut self) {
        if let Some(calling) = self.0.state().calling.get_mut(&self.1) {
            *calling -= 1;
        }
    }
}

impl Platform {
    /// An empty platform.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// The next signal meets `fault`; after earlier ones, each of its own.
    pub fn next(&self, fault: Fault) {
        self.state().faults.push_back(fault);
    }

    /// `trouble` decides what goes wrong with each signal, when no fault is waiting.
    pub fn trouble(&self, trouble: impl FnMut(&Delivery) -> Option<Fault> + Send + 'static) {
        self.state().trouble = Some(Box::new(trouble));
    }

    /// Nothing goes wrong any more.
    pub fn calm_down(&self) {
        let mut state = self.state();
        state.trouble = None;
        state.faults.clear();
        state.is_down = false;
    }

    /// The platform cannot be reached, or can again.
    pub fn set_down(&self, is_down: bool) {
        self.state().is_down = is_down;
    }

    /// Calls wait on their way, or go on.
    pub fn hold(&self, held: bool) {
        self.held.send_replace(held);
    }

    /// What stands in a conversation now, in order.
    #[must_use]
    pub fn posts(&self, conversation: &ConversationRef) -> Vec<Post> {
        self.state().posts.iter().filter(|post| post.conversation == *conversation).cloned().collect()
    }

    /// Everything that anybody could notice, in order.
    #[must_use]
    pub fn seen(&self) -> Vec<Seen> {
        self.state().seen.clone()
    }

    /// How often it was called.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    /// Rules that were broken: two calls at once in one conversation, a draft after a final signal.
    #[must_use]
    pub fn wrongs(&self) -> Vec<String> {
        self.state().wrongs.clone()
    }

    /// A person deletes a message of ours.
    pub fn removes(&self, message: &str) {
        self.state().posts.retain(|post| post.id != message);
    }

    /// A chat gets another id: from now on its old one is only answered with the new one. What stands there
    /// stays behind.
    pub fn moves(&self, from: &ConversationRef, to: &str) {
        self.state().moved.insert(from.clone(), to.to_owned());
    }

    /// A person says something: the next channel that runs takes it in.
    pub fn says(&self, event: InboundEvent) {
        self.state().inbox.push_back(event);
        self.mail.notify_one();
    }

    /// Whether an event was acknowledged.
    #[must_use]
    pub fn is_acknowledged(&self, external_id: &str) -> bool {
        self.state().acknowledged.contains(external_id)
    }

    /// The first event that is not acknowledged.
    pub(super) async fn mail(&self) -> InboundEvent {
        loop {
            let event = self.state().inbox.front().cloned();
            match event {
                Some(event) => return event,
                None => self.mail.notified().await,
            }
        }
    }

    pub(super) fn acknowledge(&self) {
        let mut state = self.state();
        if let Some(event) = state.inbox.pop_front() {
            state.acknowledged.insert(event.external_id);
        }
    }

    /// Performs a delivery.
    ///
    /// # Errors
    /// As the next fault says.
    ///
    /// # Panics
    /// When the next fault says so.
    pub async fn deliver(&self, delivery: &Delivery, capabilities: &Capabilities) -> Result<Receipt, DeliveryError> {
        let _calling = self.called(delivery);
        let mut held = self.held.subscribe();
        // The sender is ours: it is not dropped meanwhile.
        let _ = held.wait_for(|held| !*held).await;
        match self.fault(delivery) {
            None => self.perform(delivery, capabilities),
            Some(Fault::LoseResponse) => {
                self.perform(delivery, capabilities)?;
                Err(DeliveryError::Unknown("the connection was reset".to_owned()))
            }
            Some(Fault::LoseRequest) => Err(DeliveryError::Unknown("the connection was reset".to_owned())),
            Some(Fault::Refuse) => Err(DeliveryError::Refused("chat not found".to_owned())),
            Some(Fault::NotSent) => {
                Err(DeliveryError::NotSent { retry_after: None, detail: "connection refused".to_owned() })
            }
            Some(Fault::Limit { retry_after, scope }) => {
                Err(DeliveryError::Limited { retry_after, scope, detail: "too many requests".to_owned() })
            }
            Some(Fault::Unauthorized) => Err(DeliveryError::Unauthorized("token revoked".to_owned())),
            Some(Fault::Panic) => panic!("a bug of the adapter's"),
            Some(Fault::Hang) => std::future::pending().await,
        }
    }

    fn called(&self, delivery: &Delivery) -> Calling<'_> {
        let conversation = delivery.conversation().clone();
        let mut state = self.state();
        state.calls += 1;
        let calling = state.calling.entry(conversation.clone()).or_default();
        *calling += 1;
        if *calling > 1 {
            state.wrongs.push(format!("two calls at once in {conversation}"));
        }
        Calling(self, conversation)
    }

    fn fault(&self, delivery: &Delivery) -> Option<Fault> {
        let mut state = self.state();
        if state.is_down {
            return Some(Fault::NotSent);
        }
        if delivery.signal().is_none() && !delivery.is_draft() {
            return None;
        }
        let next = state.faults.pop_front();
        next.or_else(|| state.trouble.as_mut().and_then(|trouble| trouble(delivery)))
    }

    fn perform(&self, delivery: &Delivery, capabilities: &Capabilities) -> Result<Receipt, DeliveryError> {
        let mut state = self.state();
        if capabilities.resend == Resend::Idempotent
            && let Some(id) = state.keys.get(&delivery.id())
        {
            return Ok(Receipt::of(id.clone()));
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
        let is_final = |seen: &Seen| {
            seen.turn == delivery.turn() && matches!(seen.signal, Some(SignalKind::Reply | SignalKind::Reaction))
        };
        let is_draft = delivery.is_draft() || matches!(delivery.action(), Action::Draft { .. });
        if is_draft && state.seen.iter().any(is_final) {
            state.wrongs.push(format!("a draft of turn {:?} came after its final signal", delivery.turn()));
        }
        state.seen.push(Seen {
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
            labelled: delivery.label().is_some(),
        };
        let id = match delivery.action() {
            Action::Send { content, reply_to } => {
                state.posts.push(post(&content.text, reply_to.clone()));
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
                    post.labelled |= delivery.label().is_some();
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
            Action::Draft { .. } | Action::Typing { .. } => id,
        };
        state.keys.insert(delivery.id(), id.clone());
        Ok(Receipt::of(id))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
