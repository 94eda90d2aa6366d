//! The intake of a channel: it accepts events and shows the channel its own turns.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use rejoinder_guard::Attachment;
use tokio::sync::broadcast;

use super::{
    clock::SharedClock,
    hub::{Hub, Watch},
    keyring::Keyring,
    speech::Transcriber,
    store::{
        accept::{Beside, CursorMove, EarlierMessage, InboxStore},
        error::StoreError,
        files::FileStore,
        keyring::KeyringStore,
        nodes::{Fence, LeaseName},
        record::SentText,
        turns::ViewStore,
    },
};
use crate::model::{
    AgentName, ChannelId, ChatKind, CommandHelp, ConversationRef, EventKind, FileBudget, FileLinks, FileShare,
    InboundEvent, Reached, StoredFile, Target, TurnId, TurnView, Usage, Words, data_url,
};

/// The result of accepting an event. In every case the adapter may acknowledge it to the platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// It opened this turn.
    Turn(TurnId),
    /// It opened this turn: its words pick a choice of an open question.
    Answers {
        /// The turn that it opened.
        turn: TurnId,
        /// The turn that was answered with the question.
        question: TurnId,
        /// The choice.
        choice: String,
    },
    /// It changed this turn, which waits for its run.
    Amended(TurnId),
    /// It is stored and opens no turn.
    Kept,
    /// Its sender wrote more than the limits allow: it opens no turn. If the sender waits for this result
    /// ([`Directed::Asked`](crate::Directed::Asked), [`SenderKind::Unnamed`](crate::SenderKind::Unnamed)), nothing is
    /// stored, and the event may come again with the same key.
    Limited {
        /// When the sender may try again.
        retry_after: Duration,
    },
    /// The store rejects its content: at most its key and payload are stored, and it opens no turn. Or its key, its address or its
    /// sender's id contains U+0000: nothing is stored. The platform is acknowledged nevertheless, so that it does not send the event
    /// forever.
    Refused,
    /// It picks from a question that was answered before: it is stored and opens no turn.
    Picked {
        /// The choice that was picked first.
        choice: String,
    },
    /// It picks from a question that has expired: it is stored and opens no turn.
    Expired {
        /// What the person is told.
        notice: String,
    },
    /// An event with the same key was accepted before; nothing was changed.
    Duplicate {
        /// The turn that the earlier event opened or amended.
        turn: Option<TurnId>,
        /// What the earlier event said; `None` if it opened no turn, or its turn was removed since.
        message: Option<EarlierMessage>,
    },
}

impl Accepted {
    /// The turn that it opened, if it did.
    pub const fn opened(&self) -> Option<TurnId> {
        match self {
            Self::Turn(turn) | Self::Answers { turn, .. } => Some(*turn),
            _ => None,
        }
    }

    /// If `event` picks from a question: the turn that was answered with the question, and the line that is shown below it
    /// now. That is the choice that answers it, its own if it was the first and else the earlier one, or that it has expired.
    pub fn closing(&self, event: &InboundEvent) -> Option<(TurnId, String)> {
        let line = |choice: &str| if choice.is_empty() { String::new() } else { format!("✓ {choice}") };
        match (self, &event.kind) {
            (Self::Answers { question, choice, .. }, _) => Some((*question, line(choice))),
            (Self::Picked { choice }, EventKind::Choice { turn }) => Some((*turn, line(choice))),
            (Self::Turn(_), EventKind::Choice { turn }) => Some((*turn, line(&event.text))),
            (Self::Duplicate { turn: Some(_), message: Some(earlier) }, EventKind::Choice { turn }) => {
                Some((*turn, line(&earlier.text)))
            }
            (Self::Expired { notice }, EventKind::Choice { turn }) => Some((*turn, notice.clone())),
            _ => None,
        }
    }
}

/// Why an event was not accepted. The adapter must not acknowledge it to the platform.
#[derive(Clone, Debug, thiserror::Error)]
pub enum IntakeError {
    /// The store failed, or does not know whether it has stored the event: try again later. If another node has the channel now
    /// ([`StoreError::NotOwner`]), that one receives it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The gateway is shutting down: try again later.
    #[error("the gateway is shutting down")]
    ShuttingDown,
}

impl IntakeError {
    /// See [`StoreError::is_move`].
    pub const fn is_move(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_move())
    }
}

/// A report of a channel about something that happened elsewhere, for people.
#[derive(Clone, Debug)]
pub struct News {
    /// The recipient.
    pub to: Target,
    /// What happened. For a person it is Markdown; to an agent it is quoted as a stranger's words.
    pub text: String,
    /// The agent's task; `None`: the text is sent as it is.
    pub task: Option<Task>,
    /// A repeated report has the same key.
    pub key: String,
    /// The payload as it was received, for the operator.
    pub raw: String,
}

/// What an agent does with news.
#[derive(Clone, Debug)]
pub struct Task {
    /// What it is told to do.
    pub text: String,
    /// The agent, if not that of the conversation.
    pub agent: Option<AgentName>,
    /// Whether the agent owes no answer.
    pub quiet: bool,
    /// What becomes of its words.
    pub words: Words,
}

/// Why news was not taken. It may come again with the same key.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NewsError {
    /// Nothing was stored: try again later.
    #[error(transparent)]
    Intake(#[from] IntakeError),
    /// No recipient can be reached.
    #[error("{0}")]
    Unreachable(String),
    /// The channel has reported more than the limits allow.
    #[error("more than the limits allow")]
    Limited {
        /// When to try again.
        retry_after: Duration,
    },
}

/// Takes news: the core's side of [`Intake::report`].
#[async_trait]
pub(crate) trait NewsDesk: Send + Sync {
    async fn take(&self, channel: &ChannelId, news: News) -> Result<Reached, NewsError>;
}

/// Accepts events: the core's side of an [`Intake`].
#[async_trait]
pub(crate) trait Inlet: Send + Sync {
    /// Accepts events in order, with what is stored beside them. Each event has the id of the turn that it may open.
    /// An event that the store rejects costs the others nothing.
    async fn accept(
        &self,
        channel: &ChannelId,
        events: Vec<(TurnId, InboundEvent)>,
        beside: Option<Beside<Accepted>>,
    ) -> Result<Vec<Accepted>, IntakeError>;

    /// See [`Intake::may_be_heard`].
    async fn may_be_heard(&self, recording: &[u8], transcriber: &dyn Transcriber) -> Result<bool, StoreError>;

    fn commands(&self, channel: &ChannelId) -> Vec<CommandHelp>;

    fn agent(&self, channel: &ChannelId) -> AgentName;

    fn lets_in(&self, id: &str, username: Option<&str>, kind: ChatKind, address: &ConversationRef) -> bool;

    fn may_invite(&self, id: &str, channel: &ChannelId) -> bool;

    /// The platform of `channel` works again; see [`Intake::report_recovered`].
    fn report_recovered(&self, channel: &ChannelId);
}

/// The intake of one channel: it accepts events and shows the channel its own turns. Cheap to clone.
#[derive(Clone)]
pub struct Intake {
    pub(crate) channel: ChannelId,
    pub(crate) inlet: Arc<dyn Inlet>,
    pub(crate) news: Arc<dyn NewsDesk>,
    pub(crate) store: Arc<dyn InboxStore>,
    pub(crate) views: Arc<dyn ViewStore>,
    pub(crate) files: Arc<dyn FileStore>,
    pub(crate) file_budget: FileBudget,
    pub(crate) file_links: FileLinks,
    pub(crate) keyring: Arc<dyn KeyringStore>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) clock: SharedClock,
    /// The lease under which the channel runs and moves its cursors; `None` if each node runs it, or there can be no other node.
    pub(crate) fence: Option<(LeaseName, Fence)>,
}

impl Intake {
    /// Accepts one event. When this returns, the event is durable and the adapter may acknowledge it to the platform.
    ///
    /// # Errors
    /// When it was not accepted.
    pub async fn accept(&self, event: InboundEvent) -> Result<Accepted, IntakeError> {
        let id = TurnId::new(self.clock.now());
        self.accept_as(id, event).await
    }

    /// As [`accept`](Self::accept), with a watch on the turn that misses no change.
    ///
    /// # Errors
    /// When it was not accepted.
    pub async fn accept_and_watch(&self, event: InboundEvent) -> Result<(Accepted, Option<Watch>), IntakeError> {
        let id = TurnId::new(self.clock.now());
        let watch = self.watch(id);
        let accepted = self.accept_as(id, event).await?;
        let watch = match &accepted {
            Accepted::Turn(_) | Accepted::Answers { .. } => Some(watch),
            Accepted::Duplicate { turn: Some(turn), .. } | Accepted::Amended(turn) => Some(self.watch(*turn)),
            Accepted::Duplicate { turn: None, .. }
            | Accepted::Kept
            | Accepted::Limited { .. }
            | Accepted::Picked { .. }
            | Accepted::Expired { .. }
            | Accepted::Refused => None,
        };
        Ok((accepted, watch))
    }

    async fn accept_as(&self, id: TurnId, event: InboundEvent) -> Result<Accepted, IntakeError> {
        let mut accepted = self.inlet.accept(&self.channel, vec![(id, event)], None).await?;
        accepted.pop().ok_or_else(|| StoreError::Failed("the store gave no answer".to_owned()).into())
    }

    /// Accepts events in order, together with the new position of the channel's cursor `name`. An event that the store
    /// rejects does not affect the others; see [`Accepted::Refused`]. A cursor that contains U+0000 is not stored.
    ///
    /// # Errors
    /// When they cannot be accepted now. Events accepted before the error are duplicates at the next try.
    pub async fn accept_all(
        &self,
        events: Vec<InboundEvent>,
        cursor: Option<(&str, String)>,
    ) -> Result<Vec<Accepted>, IntakeError> {
        let now = self.clock.now();
        let events = events.into_iter().map(|event| (TurnId::new(now), event)).collect();
        let cursor = cursor.map(|(name, position)| {
            let (channel, fence) = (self.channel.clone(), self.fence.clone());
            Beside::Cursor(CursorMove { channel, name: name.to_owned(), position, fence })
        });
        self.inlet.accept(&self.channel, events, cursor).await
    }

    /// Passes on something that happened elsewhere: to people on any channel, or to an agent, whose answer they get. Returns the
    /// turns, of which this channel sees nothing more.
    ///
    /// # Errors
    /// When it was taken for nobody. Recipients over their limit are skipped while others get it.
    pub async fn report(&self, news: News) -> Result<Reached, NewsError> {
        self.news.take(&self.channel, news).await
    }

    /// Counts a recording, of which nobody says how long it is, among those that are written down today. `false` if it is longer than
    /// recordings may be, or they would be too many: then it is not to be given to `transcriber`.
    ///
    /// # Errors
    /// When it cannot be counted.
    pub async fn may_be_heard(&self, recording: &[u8], transcriber: &dyn Transcriber) -> Result<bool, StoreError> {
        self.inlet.may_be_heard(recording, transcriber).await
    }

    /// The commands in the order in which a platform's menu lists them.
    pub fn commands(&self) -> Vec<CommandHelp> {
        self.inlet.commands(&self.channel)
    }

    /// The name of the agent that answers on this channel, unless the ladder hands a turn to another one.
    pub fn agent(&self) -> AgentName {
        self.inlet.agent(&self.channel)
    }

    /// Whether the writer with this id and unique name may talk to the agent in a chat. Adapters ask before they spend much on
    /// an event that will not be heard.
    pub fn lets_in(&self, id: &str, username: Option<&str>, kind: ChatKind, address: &ConversationRef) -> bool {
        self.inlet.lets_in(id, username, kind, address)
    }

    /// Whether the person with this id may bring the agent into a chat.
    pub fn may_invite(&self, id: &str) -> bool {
        self.inlet.may_invite(id, &self.channel)
    }

    /// Reports that the platform works again, or for the first time since the start: deliveries that wait for a retry
    /// are sent now. Adapters call it when a poll, a connection or a sync succeeds after a failure.
    pub fn report_recovered(&self) {
        self.inlet.report_recovered(&self.channel);
    }

    /// The position of the channel's cursor `name`; `None` before the first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn cursor(&self, name: &str) -> Result<Option<String>, StoreError> {
        self.store.cursor(&self.channel, name).await
    }

    /// A message that the channel has sent, as long as the store can find it; see
    /// [`ChannelStore::sent_text`](crate::store::ChannelStore::sent_text).
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn sent_text(&self, chat: &str, message: &str) -> Result<Option<SentText>, StoreError> {
        self.store.sent_text(&self.channel, chat, message).await
    }

    /// Watches a turn for changes from now on.
    pub fn watch(&self, turn: TurnId) -> Watch {
        self.hub.watch(turn)
    }

    /// Subscribes to the changes of all turns of this channel, from now on. A receiver that lags, or gets `None`, must read the store
    /// again.
    pub fn follow(&self) -> broadcast::Receiver<Option<Arc<TurnView>>> {
        self.hub.follow(&self.channel)
    }

    /// A turn of this channel, as clients see it; `None` if it is unknown or belongs to another channel.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn view(&self, turn: TurnId) -> Result<Option<TurnView>, StoreError> {
        let view = self.views.view(turn).await?;
        Ok(view.filter(|view| view.conversation.channel == self.channel))
    }

    /// The last `limit` turns of a conversation of this channel that are older than `before`, oldest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn views(
        &self,
        conversation: &ConversationRef,
        before: Option<TurnId>,
        limit: u32,
    ) -> Result<Vec<TurnView>, StoreError> {
        if conversation.channel != self.channel {
            return Ok(Vec::new());
        }
        self.views.views(conversation, before, limit).await
    }

    /// Puts the bytes of the stored files that `is_wanted` into the URLs of `files`, as far as they have at most `most` bytes in total:
    /// for a client that reads an answer. Returns how many bytes these are. The others keep their reference.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn load_files(
        &self,
        files: &mut [Attachment],
        most: usize,
        is_wanted: impl Fn(&Attachment) -> bool + Send,
    ) -> Result<usize, StoreError> {
        let mut loaded = 0;
        for file in files {
            let Some(StoredFile { digest, size }) = StoredFile::in_url(&file.url) else { continue };
            if size <= most - loaded
                && is_wanted(file)
                && let Some(bytes) = self.files.file(digest).await?
            {
                file.url = data_url(&file.media_type, &bytes);
                loaded += size;
            }
        }
        Ok(loaded)
    }

    /// The path of a link that opens a file of a turn for a time; it is to stand behind the URL of the gateway. `None` if the gateway does
    /// not store the file.
    pub fn file_link(&self, turn: TurnId, file: &Attachment) -> Option<String> {
        self.file_links.path_to(turn, &file.url, self.clock.now())
    }

    /// The memory that the files of a request may have: none yet. It is kept until the event is accepted.
    pub fn file_share(&self) -> FileShare {
        self.file_budget.share()
    }

    /// The tokens that the runs of a turn used, as far as their agents told. `None` if none of them did.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn usage(&self, turn: TurnId) -> Result<Option<Usage>, StoreError> {
        let used = self.views.runs(turn).await?.into_iter().filter_map(|run| run.usage);
        Ok(used.reduce(|a, b| Usage {
            input_tokens: a.input_tokens.saturating_add(b.input_tokens),
            output_tokens: a.output_tokens.saturating_add(b.output_tokens),
        }))
    }

    /// Records that a turn's row was written to its reader. Not waited for.
    pub fn fetched(&self, turn: TurnId) {
        self.store.mark_fetched(turn, self.clock.now());
    }

    /// The keyring of the channel. `None` if no other node can have the channel: then its adapter has in files what its account needs.
    pub fn keyring(&self) -> Option<Keyring> {
        let lease = self.fence.clone()?;
        Some(Keyring::new(Arc::clone(&self.keyring), self.channel.clone(), lease))
    }

    /// The gateway's clock.
    pub fn clock(&self) -> &SharedClock {
        &self.clock
    }
}
