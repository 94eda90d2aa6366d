//! What a command is.

use futures_util::future::BoxFuture;
use rejoinder_guard::Timestamp;

use crate::{
    ledger::trigger::Step,
    model::turn::{Handler, TurnRecord},
    ports::store::{Store, StoreError, transition::NewSession},
};

/// A command, for a platform that lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandHelp {
    /// Its name, without the slash.
    pub name: &'static str,
    /// What it does, in a few words.
    pub description: &'static str,
}

/// A command of the gateway's own, or a notice that it gives by itself.
pub(crate) struct Command {
    /// What its turns are stored under.
    pub(super) name: &'static str,
    /// What people may write, each with its slash. Nothing for a notice.
    pub(super) texts: &'static [&'static str],
    /// Whether a word may follow.
    pub(super) takes_a_word: bool,
    /// What it does, in a few words.
    pub(super) description: &'static str,
    pub(super) act: Act,
}

/// What a command does.
pub(super) type Act = for<'a> fn(&'a Call<'a>) -> BoxFuture<'a, Result<Answer, StoreError>>;

/// A command that somebody gave.
pub(super) struct Call<'a> {
    pub(super) turn: &'a TurnRecord,
    pub(super) store: &'a dyn Store,
    pub(super) now: Timestamp,
}

/// What comes of a command, stored in one transaction.
pub(super) struct Answer {
    /// The name of the template that is its answer.
    pub(super) words: &'static str,
    /// What happens to other turns.
    pub(super) steps: Vec<Step>,
    /// The conversation's new session.
    pub(super) session: Option<NewSession>,
}

impl Answer {
    /// Words, and nothing else.
    pub(super) const fn of(words: &'static str) -> Self {
        Self { words, steps: Vec::new(), session: None }
    }
}

impl Command {
    pub(super) const fn help(&self) -> CommandHelp {
        CommandHelp { name: self.name, description: self.description }
    }

    pub(crate) fn handler(&self) -> Handler {
        Handler::Gateway(self.name.into())
    }

    /// Whether a text is this command, and nothing else.
    pub(super) fn is(&self, text: &str) -> bool {
        let mut words = text.split_whitespace();
        let is_named = words.next().is_some_and(|first| self.texts.contains(&first));
        is_named && words.count() <= usize::from(self.takes_a_word)
    }
}

impl Call<'_> {
    /// The turns of the command's conversation that are owed an answer, and came before it.
    pub(super) async fn open_before(&self) -> Result<Vec<TurnRecord>, StoreError> {
        let mut open = Vec::new();
        for id in self.store.open_turns(self.turn.conversation).await? {
            if id < self.turn.id
                && let Some(turn) = self.store.turn(id).await?
                && !turn.handler.is_gateway()
            {
                open.push(turn);
            }
        }
        Ok(open)
    }
}
