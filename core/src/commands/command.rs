//! The parts of a command: its texts, its action and its answer.

use std::borrow::Cow;

use futures_util::future::BoxFuture;
use rejoinder_guard::{CancelledBy, Event, Reply, Timestamp};

use crate::{
    ledger::trigger::{DecidedPerson, TurnEvents},
    model::{
        command::CommandHelp,
        event::Amends,
        log::{AuditEntry, Subject},
        people::{Pairing, PeopleChange},
        settings::Settings,
        turn::{Handler, TurnRecord},
    },
    people::People,
    ports::store::{
        Store, StoreError,
        transition::{NewSession, Operation},
    },
};

/// A command that the gateway executes itself, or a notice that it sends on its own.
pub(crate) struct Command {
    /// Stored as the handler of its turns.
    pub(super) name: &'static str,
    /// The texts that invoke it, each with its slash. Empty for a notice.
    pub(super) texts: &'static [&'static str],
    /// Whether one argument may follow.
    pub(super) takes_argument: bool,
    pub(super) description: &'static str,
    pub(super) act: Act,
}

/// Computes a command's effects and answer. It may read the store and must not write to it.
pub(super) type Act = for<'a> fn(&'a Call<'a>) -> BoxFuture<'a, Result<Answer, StoreError>>;

/// One invocation of a command: the turn that carries it, and what it may read.
pub(super) struct Call<'a> {
    pub(super) turn: &'a TurnRecord,
    pub(super) store: &'a dyn Store,
    pub(super) people: &'a People,
    pub(super) settings: &'a Settings,
    pub(super) now: Timestamp,
}

/// What a command replies with.
pub(super) enum Words {
    /// Templates, each on a line of its own.
    Templates(Vec<Filled>),
    /// Words of its own.
    Own(Reply),
}

/// A template, with its own placeholders filled in.
pub(super) struct Filled {
    pub(super) template: &'static str,
    pub(super) values: Vec<(&'static str, String)>,
}

/// The effects of a command, stored in one transaction.
pub(super) struct Answer {
    pub(super) words: Words,
    /// Events for other turns.
    pub(super) turn_events: Vec<TurnEvents>,
    /// The new current session of the conversation.
    pub(super) session: Option<NewSession>,
    /// The decision on a request to be let in.
    pub(super) decision: Option<Decision>,
}

/// An owner's decision on a request to be let in.
pub(super) struct Decision {
    /// What the audit calls it.
    pub(super) action: &'static str,
    /// The name of the owner.
    pub(super) by: String,
    pub(super) change: PeopleChange,
    pub(super) pairing: Pairing,
}

impl Decision {
    /// Whether the person is let in, and so is told.
    pub(super) const fn lets_in(&self) -> bool {
        matches!(self.change, PeopleChange::Known(_))
    }

    /// The changes to store.
    pub(super) fn to_change(&self, at: Timestamp) -> DecidedPerson {
        let entry = AuditEntry {
            by: self.by.clone(),
            action: self.action.to_owned(),
            target: self.pairing.identity.to_string(),
            reason: None,
        };
        let subject = Subject::channel(&self.pairing.identity.channel);
        DecidedPerson { change: self.change.clone(), operation: Operation { at, entry, subject, answer: None } }
    }
}

impl Answer {
    /// A reply from `template`, with no other effect.
    pub(super) fn of(template: &'static str) -> Self {
        Self {
            words: Words::Templates(vec![Filled { template, values: Vec::new() }]),
            turn_events: Vec::new(),
            session: None,
            decision: None,
        }
    }
}

impl Command {
    pub(super) const fn help(&self) -> CommandHelp {
        CommandHelp { name: Cow::Borrowed(self.name), description: Cow::Borrowed(self.description), takes_text: false }
    }

    pub(crate) fn handler(&self) -> Handler {
        Handler::Gateway(self.name.into())
    }

    /// Whether a text consists of this command alone, with its argument if it takes one.
    pub(super) fn matches(&self, text: &str) -> bool {
        let mut words = text.split_whitespace();
        let is_named = words.next().is_some_and(|first| self.texts.contains(&first));
        is_named && words.count() <= usize::from(self.takes_argument)
    }
}

impl Call<'_> {
    /// The agent that the channel's messages go to.
    pub(super) fn agent(&self) -> &str {
        self.settings.agent(&self.turn.event.conversation.channel)
    }

    /// Cancels a turn because of this command.
    pub(super) fn cancelled(&self) -> Event {
        Event::Cancelled { by: CancelledBy::Turn(self.turn.id.to_string()) }
    }

    /// The open turns of the command's conversation that are older than the command and that an agent handles. Not that of
    /// the message which an edit made this command.
    pub(super) async fn open_before(&self) -> Result<Vec<TurnRecord>, StoreError> {
        let open = self.open_and_replaced().await?.into_iter();
        Ok(open.filter(|turn| !self.replaces(turn)).collect())
    }

    /// The open turn of the message which an edit made this command.
    pub(super) async fn replaced(&self) -> Result<Option<TurnRecord>, StoreError> {
        if self.turn.event.amends != Some(Amends::Replaces) {
            return Ok(None);
        }
        Ok(self.open_and_replaced().await?.into_iter().find(|turn| self.replaces(turn)))
    }

    fn replaces(&self, turn: &TurnRecord) -> bool {
        let (event, earlier) = (&self.turn.event, &turn.event);
        event.amends == Some(Amends::Replaces) && event.external_id == earlier.external_id
    }

    async fn open_and_replaced(&self) -> Result<Vec<TurnRecord>, StoreError> {
        let mut open = Vec::new();
        for id in self.store.open_turns(self.turn.conversation).await? {
            match self.store.turn(id).await {
                Ok(Some(turn)) if turn.seq < self.turn.seq && !turn.handler.is_gateway() => open.push(turn),
                // One that cannot be read is set aside when it is next.
                Ok(_) | Err(StoreError::CorruptTurn { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(open)
    }
}
