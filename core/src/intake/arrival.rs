//! An event on its way to be stored, and what a stage decides about it.

use std::{sync::Arc, time::Duration};

use rejoinder_guard::Expectation;

use super::{
    limits::{Counted, OverLimit},
    pairs::Heard,
};
use crate::{
    conversations::addresses::Addresses,
    handles::slots::Slot,
    model::{ConversationId, Directed, Handler, InboundEvent, KnownPeople, Language, QueueMode, Settings, TurnId},
    ports::{KnownConversation, Repeated, StoreError},
    questions::open_questions::Asks,
};

/// What a stage decides: the event goes on to the next stage, or opens no turn.
pub(super) type Verdict = Result<(), End>;

/// Why an event opens no turn.
pub(super) enum End {
    Decided(Ending),
    Failed(StoreError),
}

impl From<StoreError> for End {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

/// What follows for an event that opens no turn.
#[derive(Default)]
pub(super) struct Ending {
    /// The notice that its sender gets.
    pub(super) notice: Option<Notice>,
    /// Its sender is over a limit, for this long at least.
    pub(super) limited: Option<Duration>,
    /// It is stored only if its key is known.
    pub(super) only_if_known: bool,
}

/// A notice of the gateway to the sender of an event.
#[derive(Clone, Copy)]
pub(super) enum Notice {
    /// They may not talk to the agent.
    Stranger,
    /// The same, with a code to be let in with.
    Pairing,
    /// They are over a limit in this minute.
    Limited { minute: i64 },
    /// They have reached their limit of this day.
    LimitedToday { day: i64 },
    /// Agents have used most of what they may use for them on this day.
    LimitedSoon { day: i64 },
    /// Their message is too old to be answered, and those that wait are too.
    BacklogExpired,
    /// The chat is asked whether its late messages, the first of which is this, are to be answered.
    AsksAboutBacklog { first: TurnId },
    /// Of the messages that wait in their conversation the oldest are dropped in this minute. Nothing is said of mere talk.
    Dropped { minute: i64 },
}

/// An event, with what the stages have decided so far.
pub(super) struct Arrival {
    /// The id of its turn, if it opens one.
    pub(super) id: TurnId,
    pub(super) event: InboundEvent,
    /// Whether its turn may begin at once: the same request has no earlier turn of its conversation.
    pub(super) may_begin: bool,
    /// The questions that its sender answers with earlier events of the same request.
    pub(super) answered: Vec<TurnId>,
    /// The subject of the question that it picks from, if that is one of the gateway's own.
    pub(super) asks: Option<Asks>,
    /// The settings and people as they were when it came.
    pub(super) settings: Arc<Settings>,
    pub(super) known: Arc<KnownPeople>,
    pub(super) handling: Handling,
    pub(super) expectation: Expectation,
    /// The language that the platform tells.
    pub(super) told: Option<Language>,
    /// The message among those of another agent, if it is one's.
    pub(super) heard: Option<Heard>,
    /// The turn among those of its sender, if these are limited.
    pub(super) counted: Option<Counted>,
    /// It is late, and its sender is asked whether it is still to be answered.
    pub(super) is_asked_about: bool,
    /// Its turn waits until somebody says whether late messages are still to be answered.
    pub(super) is_postponed: bool,
    /// What happens to it if a turn of its conversation runs.
    pub(super) mode: QueueMode,
    /// The slot of its conversation, if it was free.
    pub(super) slot: Option<Slot>,
    /// The notice that its sender gets beside the turn.
    pub(super) notice: Option<Notice>,
    /// Its conversation when it was last looked up, with the [count of changes](Addresses::changes) before that.
    conversation: Option<(KnownConversation, u64)>,
}

/// Who handles a turn, and how.
pub(super) struct Handling {
    pub(super) handler: Handler,
    /// The name of the rule of routing that holds for it.
    pub(super) rule: Option<Arc<str>>,
    pub(super) model: Option<Arc<str>>,
    /// Why what was chosen for the session does not hold.
    pub(super) remark: Option<String>,
    /// The question that it puts before the agent again.
    pub(super) repeats: Option<Repeated>,
    /// The conversation whose history the agent gets, if not its own.
    pub(super) about: Option<ConversationId>,
}

impl Arrival {
    /// An event that no stage has seen. It is for the agent of its channel, and owed an answer, unless a stage decides
    /// otherwise.
    pub(super) fn new(
        id: TurnId,
        event: InboundEvent,
        may_begin: bool,
        settings: Arc<Settings>,
        known: Arc<KnownPeople>,
    ) -> Self {
        let handler = Handler::Agent(settings.agent(&event.conversation.channel).clone());
        Self {
            id,
            event,
            may_begin,
            answered: Vec::new(),
            asks: None,
            settings,
            known,
            handling: Handling { handler, rule: None, model: None, remark: None, repeats: None, about: None },
            expectation: Expectation::Answer,
            told: None,
            heard: None,
            counted: None,
            is_asked_about: false,
            is_postponed: false,
            mode: QueueMode::default(),
            slot: None,
            notice: None,
            conversation: None,
        }
    }

    /// The conversation of its event, which is looked up once.
    pub(super) async fn conversation(&mut self, addresses: &Addresses) -> Result<KnownConversation, StoreError> {
        match self.conversation {
            Some((conversation, _)) => Ok(conversation),
            None => self.look_up(addresses).await,
        }
    }

    /// The same, looked up again if this node knows of a change of a conversation since. A change by another node meanwhile counts as later
    /// than the event; the statement that stores the event decides which conversation it is in.
    pub(super) async fn conversation_now(&mut self, addresses: &Addresses) -> Result<KnownConversation, StoreError> {
        match self.conversation {
            Some((conversation, changes)) if changes == addresses.changes() => Ok(conversation),
            _ => self.look_up(addresses).await,
        }
    }

    async fn look_up(&mut self, addresses: &Addresses) -> Result<KnownConversation, StoreError> {
        // Before the read: after a change during it, the next call looks up again.
        let changes = addresses.changes();
        let conversation = addresses.resolve(&self.event.conversation).await?;
        self.conversation = Some((conversation, changes));
        Ok(conversation)
    }

    /// Whether one of the gateway's own commands handles it.
    pub(super) const fn is_command(&self) -> bool {
        self.handling.handler.is_gateway()
    }

    pub(super) fn is_owed(&self) -> bool {
        self.expectation == Expectation::Answer
    }

    /// It opens no turn, and amends none: its sender may not.
    pub(super) fn end_unamended(&mut self, notice: Option<Notice>) -> Verdict {
        self.event.amends = None;
        end(notice)
    }

    /// It opens no turn: its sender is over a limit. A caller who waits for the result is told by that, and may send it
    /// again. Of the others, those who would be owed an answer get a notice.
    pub(super) fn end_over_limit(&self, over: OverLimit) -> Verdict {
        let is_told = self.is_of_caller();
        let notice = (self.is_owed() && !is_told).then_some(match over.day {
            Some(day) => Notice::LimitedToday { day },
            None => Notice::Limited { minute: over.minute },
        });
        Err(End::Decided(Ending { notice, limited: Some(over.retry_after), only_if_known: is_told }))
    }

    /// Tells its sender, once a day, that most of what they may use of it is used.
    pub(super) fn note_limit(&mut self, day: i64) {
        if self.is_owed() && !self.is_of_caller() {
            self.notice = Some(Notice::LimitedSoon { day });
        }
    }

    /// Whether it is a request, whose caller is told of limits with the response.
    fn is_of_caller(&self) -> bool {
        self.event.directed == Directed::Asked || self.event.sender.kind.is_anybody()
    }
}

/// The event opens no turn.
pub(super) fn end(notice: Option<Notice>) -> Verdict {
    Err(End::Decided(Ending { notice, ..Ending::default() }))
}
