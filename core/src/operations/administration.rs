//! What operators do with the gateway itself: tokens, sessions of their page, errors of its log.

use std::sync::Arc;

use crate::{
    base::conflicts::decide_anew,
    model::{ErrorFilter, ErrorMark, NodeId, Sender, SignInChange, Subject, TokenChange},
    nodes::{hints::Hints, leases::Leases},
    operator::{
        actor::{Actor, operation},
        error::OperationError,
    },
    ports::{Commit, Hint, LineStore, Noun, Seen, SharedClock, TokenStore, Transition},
};

/// Does what operators ask for with the gateway itself.
pub struct Administration {
    pub(crate) store: Arc<dyn TokenStore>,
    pub(crate) lines: Arc<dyn LineStore>,
    pub(crate) leases: Arc<Leases>,
    pub(crate) hints: Arc<Hints>,
    pub(crate) clock: SharedClock,
}

impl Administration {
    /// Makes or revokes a token. No two tokens ever have the same name: conversations, answers and entries of the audit belong to it.
    pub async fn change_token(&self, token: TokenChange, by: Actor) -> Result<(), OperationError> {
        decide_anew!({
            let seen = vec![Seen { noun: Noun::Tokens, version: self.store.version(Noun::Tokens).await? }];
            let (action, target) = match &token {
                TokenChange::Create(token) => {
                    if token.name == Sender::ALERTER {
                        let why = format!("the gateway's own alerts have the name {}: choose another one", token.name);
                        return Err(OperationError::Unfit(why));
                    }
                    if self.store.tokens().await?.iter().any(|other| other.name == token.name) {
                        let why = format!("there is a token with the name {} already, or there was one", token.name);
                        return Err(OperationError::Unfit(why));
                    }
                    ("create_token", token.id)
                }
                TokenChange::Revoke { id, .. } => ("revoke_token", *id),
            };
            let operation = operation(&by, action, target, Subject::default(), self.clock.now());
            let transition =
                Transition { seen, token: Some(token.clone()), operation: Some(operation), ..Transition::default() };
            self.store.commit(transition).await?.is_done()?.then_some(())
        })?;
        self.hints.tell(|| Hint::Noun(Noun::Tokens));
        Ok(())
    }

    /// Opens and ends sessions of the operator's page; `by` is in the audit with the action `end_session` if it is given. `false` if a
    /// link was used before: then nothing has changed.
    pub async fn change_sign_ins(&self, changes: Vec<SignInChange>, by: Option<Actor>) -> Result<bool, OperationError> {
        let ended = changes.iter().find_map(|change| match change {
            SignInChange::End(id) => Some(*id),
            SignInChange::Open(_) | SignInChange::MakeLink(_) | SignInChange::UseLink(_) | SignInChange::EndLink(_) => {
                None
            }
        });
        let operation =
            by.zip(ended).map(|(by, id)| operation(&by, "end_session", id, Subject::default(), self.clock.now()));
        let change = Transition { sign_ins: changes, operation, ..Transition::default() };
        let is_done = self.store.commit(change).await? == Commit::Done;
        if is_done {
            self.hints.tell(|| Hint::Noun(Noun::Tokens));
        }
        Ok(is_done)
    }

    /// Asks a node to give its leases back and to take none, so that others have them, or to take leases again.
    pub async fn drain_node(&self, node: NodeId, drains: bool, by: Actor) -> Result<(), OperationError> {
        if self.leases.are_for_good() {
            let why = "no other node can take over: the store admits one process";
            return Err(OperationError::Unfit(why.to_owned()));
        }
        let unknown = || OperationError::Unknown("there is no living node with this id");
        if by.channels.is_some() || !self.leases.nodes().await?.iter().any(|living| living.node == node) {
            return Err(unknown());
        }
        // First: nothing is done that is not in the audit.
        let action = if drains { "drain_node" } else { "resume_node" };
        let operation = operation(&by, action, node, Subject::default(), self.clock.now());
        self.store.commit(Transition { operation: Some(operation), ..Transition::default() }).await?;
        if self.leases.ask_to_drain(node, drains).await? { Ok(()) } else { Err(unknown()) }
    }

    /// Stores what an operator says of an error.
    pub async fn mark_error(&self, id: i64, mark: ErrorMark, by: &Actor) -> Result<(), OperationError> {
        let filter = ErrorFilter { id: Some(id), limit: 1, ..ErrorFilter::default() };
        let error = self.lines.errors(&filter).await?.pop();
        let may =
            |channel: &Option<_>| by.channels.is_none() || channel.as_ref().is_some_and(|channel| by.may(channel));
        let Some(error) = error.filter(|error| may(&error.channel)) else {
            return Err(OperationError::Unknown("there is no error with this id"));
        };
        let subject = error.channel.as_ref().map(Subject::channel).unwrap_or_default();
        let operation = operation(by, mark.audit_action(), id, subject, self.clock.now());
        let change = Transition { error: Some((id, mark)), operation: Some(operation), ..Transition::default() };
        self.store.commit(change).await?;
        Ok(())
    }
}
