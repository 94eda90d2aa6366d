//! What operators and pages ask of the running core: each call goes to the owner that does it.

use std::time::Duration;

use uuid::Uuid;

use super::Engine;
use crate::{
    commands::bang,
    conversations::sessions,
    initiative::NewMessage,
    model::{
        approval::{Approval, ApprovalFilter},
        conversation::{ChannelId, ConversationRef},
        event::InboundEvent,
        finding::PersonFilter,
        ids::{ApprovalId, DeliveryId, TurnId},
        line::ErrorMark,
        people::{Identity, Pairing, PersonRecord},
        schedule::{NewSchedule, Schedule, ScheduleRun},
        target::Reached,
        tokens::{SignInChange, TokenChange},
        turn::Handler,
    },
    operations::{Farewell, forget::Forgotten, people::NewPerson},
    operator::{actor::Actor, error::OperationError},
    ports::store::{StoreError, transition::IdempotentAnswer},
    router::{self, explain::RouteExplanation},
};

/// How many of the latest runs of a schedule are shown.
const SHOWN_RUNS: u32 = 100;

impl Engine {
    /// Stores that an operator did something that changes no row.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn note(&self, action: &str, target: String, by: &Actor) -> Result<(), OperationError> {
        self.operations.note(action, target, by).await
    }

    /// Has the dead letter with this id, that of a delivery or of a turn, sent again as the same delivery. A turn for which
    /// there was nothing to send is run again. What is no dead letter and waits to be sent is tried now.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn retry(&self, id: Uuid, by: Actor) -> Result<(), OperationError> {
        self.operations.retry(id, by).await
    }

    /// Has a delivery that waits tried now, without the rest of its pause. One that may have arrived has a label.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn try_delivery(&self, id: DeliveryId, by: Actor) -> Result<(), OperationError> {
        self.operations.try_delivery(id, by).await
    }

    /// Has what waits for a channel tried now.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn try_channel(&self, channel: ChannelId, by: Actor) -> Result<(), OperationError> {
        self.operations.try_channel(channel, by).await
    }

    /// Sends a dead letter to another conversation.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn redirect(&self, id: Uuid, to: ConversationRef, by: Actor) -> Result<(), OperationError> {
        self.operations.redirect(id, to, by).await
    }

    /// Gives a dead letter up.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn discard(&self, id: Uuid, by: Actor) -> Result<(), OperationError> {
        self.operations.discard(id, by).await
    }

    /// Gives a turn up that has not ended.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn cancel(&self, turn: TurnId, farewell: Farewell, by: Actor) -> Result<(), OperationError> {
        self.operations.cancel(turn, farewell, by).await
    }

    /// Holds a turn: no run and no attempt begins until it is resumed.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn hold(&self, turn: TurnId, by: Actor) -> Result<(), OperationError> {
        self.operations.hold(turn, by).await
    }

    /// Resumes a turn that is held.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn resume(&self, turn: TurnId, by: Actor) -> Result<(), OperationError> {
        self.operations.resume(turn, by).await
    }

    /// Has a message sent in the name of an operator: to each conversation as a turn of its own, whose deliveries are retried and
    /// become dead letters like answers. `key` is the same for a request that is repeated, which begins nothing new. What was
    /// done is stored with [`note_sent`](Self::note_sent).
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn send(&self, message: &NewMessage, key: &str, by: &Actor) -> Result<Reached, OperationError> {
        let key = format!("send:{}", by.key(key));
        self.initiative.send(message, &by.name, &key, |channel| by.may(channel)).await
    }

    /// Whether somebody has written, or something was sent, in a conversation.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn has_conversation(&self, place: &ConversationRef) -> Result<bool, StoreError> {
        Ok(self.store.conversation(place).await?.is_some())
    }

    /// Stores in the audit that an operator has had messages sent, with the answer to the request.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn note_sent(&self, sent: &Reached, by: &Actor) -> Result<(), OperationError> {
        self.operations.note_sent(sent, by).await
    }

    /// The name of the operator's time zone; `system` if it has none.
    #[must_use]
    pub fn time_zone(&self) -> String {
        self.settings.get().time_zone.iana_name().unwrap_or("system").to_owned()
    }

    /// The schedules that a caller with these channels may see (`None`: all channels), in the order of their names.
    #[must_use]
    pub fn schedules(&self, channels: Option<&[ChannelId]>) -> Vec<Schedule> {
        self.calendar.all().into_iter().filter(|schedule| schedule.is_seen_by(channels)).collect()
    }

    /// The schedule with this name or id, and its latest runs, newest first.
    ///
    /// # Errors
    /// When there is none for channels that the operator may see, or the store cannot be read.
    pub async fn schedule(&self, name: &str, by: &Actor) -> Result<(Schedule, Vec<ScheduleRun>), OperationError> {
        let schedule = self.calendar.find(name, by)?;
        let runs = self.store.schedule_runs(schedule.id, SHOWN_RUNS).await?;
        Ok((schedule, runs))
    }

    /// Makes a schedule. `answer` is the answer to the request, which is stored with it.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn add_schedule(
        &self,
        new: NewSchedule,
        by: &Actor,
        answer: impl FnOnce(&Schedule) -> Option<IdempotentAnswer> + Send,
    ) -> Result<Schedule, OperationError> {
        self.schedules.add(new, by, answer).await
    }

    /// Removes a schedule, with its history. What it has begun goes on.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn remove_schedule(&self, name: &str, by: &Actor) -> Result<(), OperationError> {
        self.calendar.remove(name, by).await
    }

    /// Pauses a schedule, or resumes it: times that have passed are not made up for.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn pause_schedule(&self, name: &str, pauses: bool, by: &Actor) -> Result<Schedule, OperationError> {
        self.calendar.pause(name, pauses, by).await
    }

    /// Begins what a schedule begins, now and beside its times. `key` is the same for a request that is repeated.
    /// `answer` is the answer to it, which is stored.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn run_schedule(
        &self,
        name: &str,
        key: &str,
        by: &Actor,
        answer: impl FnOnce(&Reached) -> Option<IdempotentAnswer> + Send,
    ) -> Result<Reached, OperationError> {
        self.schedules.run_now(name, key, by, answer).await
    }

    /// Makes or revokes a token of an operator.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn change_token(&self, token: TokenChange, by: Actor) -> Result<(), OperationError> {
        self.operations.change_token(token, by).await
    }

    /// Opens and ends sessions of the operator's page; `by` is in the audit with the action `end_session` if it is given.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn change_sign_ins(&self, changes: Vec<SignInChange>, by: Option<Actor>) -> Result<(), OperationError> {
        self.operations.change_sign_ins(changes, by).await
    }

    /// Everybody who is known, oldest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn people(&self) -> Result<Vec<PersonRecord>, StoreError> {
        self.store.people().await
    }

    /// The people whom a text means, as [`meant`](crate::meant).
    #[must_use]
    pub fn people_called(&self, text: &str) -> Vec<PersonRecord> {
        self.people.called(text)
    }

    /// The name of somebody who is known and among these that may have been meant.
    #[must_use]
    pub fn nearest_name(&self, text: &str, among: impl Fn(&PersonRecord) -> bool) -> Option<String> {
        self.people.nearest(text, among)
    }

    /// Whom a list is about, as [`PersonFilter::new`].
    #[must_use]
    pub fn person_filter(&self, text: &str) -> PersonFilter {
        self.people.filter(text)
    }

    /// Where somebody is reached first: what they chose, or else what the configuration says. `None`: where they wrote last.
    #[must_use]
    pub fn home_of(&self, person: &PersonRecord) -> Option<Identity> {
        self.people.home_of(&person.identities.first()?.identity)
    }

    /// How an event would be routed, and why. Nothing is stored.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn explain_route(&self, event: InboundEvent) -> Result<RouteExplanation, StoreError> {
        let settings = self.settings.get();
        let (place, owner) = (event.conversation.clone(), sessions::owner(&event, &self.people.known()));
        let event = bang::slashed(event, &settings, &self.channels);
        let mut explained = router::explain::explain(event, &settings, &self.people);
        if let Some((Handler::Agent(agent), _)) = &mut explained.handler
            && let Some(conversation) = self.store.conversation(&place).await?
        {
            let (choice, _) = self.sessions.chosen(conversation, owner, agent, &settings.sessions).await?;
            if let Some(chosen) = &choice.agent {
                agent.clone_from(chosen);
            }
            explained.chosen = choice;
        }
        Ok(explained)
    }

    /// The channels on which strangers are turned away, because as many requests to be let in wait as may.
    #[must_use]
    pub fn turning_away(&self) -> Vec<ChannelId> {
        let mut channels: Vec<_> = self.people.turned_away().into_iter().map(|(channel, _)| channel).collect();
        channels.sort_unstable();
        channels
    }

    /// The requests to be let in that wait, oldest first.
    #[must_use]
    pub fn pairings(&self) -> Vec<Pairing> {
        self.people.waiting()
    }

    /// Lets somebody in who was given this code, and tells them.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn approve(&self, code: &str, as_whom: NewPerson, by: Actor) -> Result<PersonRecord, OperationError> {
        self.operations.approve(code, as_whom, by).await
    }

    /// Does not let somebody in who was given this code.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn decline(&self, code: &str, by: Actor) -> Result<(), OperationError> {
        self.operations.decline(code, by).await
    }

    /// Lets somebody out: the channel knows them no more.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn revoke(&self, identity: &Identity, by: Actor) -> Result<(), OperationError> {
        self.operations.revoke(identity, by).await
    }

    /// Erases what is stored about a person. Gives up what is still owed to them. Returns after about `patience`, also if it is
    /// not done: the next call goes on.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn forget(&self, person: &Identity, patience: Duration, by: Actor) -> Result<Forgotten, OperationError> {
        self.operations.begin_forget(person, &by).await?;
        self.calendar.forget(person).await?;
        self.operations.forget(person, patience, by).await
    }

    /// Stores what an operator says of an error of the gateway's own log.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn mark_error(&self, id: i64, mark: ErrorMark, by: &Actor) -> Result<(), OperationError> {
        self.operations.mark_error(id, mark, by).await
    }

    /// What agents ask approval for.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn approvals(&self, filter: ApprovalFilter) -> Result<Vec<Approval>, OperationError> {
        self.operations.approvals(filter).await
    }

    /// The approvals that wait although nobody who is known may decide them.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn approvals_without_approver(&self) -> Result<Vec<Approval>, OperationError> {
        if self.people.has_approver(&self.settings.get().approvals) {
            return Ok(Vec::new());
        }
        let now = self.clock.now();
        let waiting = self.operations.approvals(ApprovalFilter::Waiting).await?;
        Ok(waiting.into_iter().filter(|approval| approval.is_open(now)).collect())
    }

    /// Decides what an agent asks approval for. It runs again, and is told the decision and the actor's reason.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn decide_approval(&self, id: ApprovalId, approves: bool, by: Actor) -> Result<(), OperationError> {
        self.operations.decide(id, approves, by).await
    }

    /// Pauses a channel: what comes in is stored and answered, and nothing is sent until it is resumed.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn pause_channel(&self, channel: ChannelId, by: Actor) -> Result<(), OperationError> {
        self.operations.pause(channel, true, by).await
    }

    /// Resumes a channel that is paused.
    ///
    /// # Errors
    /// When it was not done; see [`OperationError`].
    pub async fn resume_channel(&self, channel: ChannelId, by: Actor) -> Result<(), OperationError> {
        self.operations.pause(channel, false, by).await
    }
}
