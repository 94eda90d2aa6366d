//! How operators see turns: the same over HTTP and on the command line.

use std::fmt;

use rejoinder_core::{
    Action, Attachment, Author, Cost, Expectation, Handler, ModelInput, ObligationState, Quote, Rung, ToolUse,
    TurnStatus, Via,
    explain::{Entry, Explanation, Initiator},
    store::{AttemptRecord, DeadLetter, DeliveryRecord, Dossier, Origin, Remark, RunContent, RunRecord, TurnSummary},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::{console::output::excerpt, shapes::page, time::rfc3339};

page! {
    /// A page of turns, newest first.
    TurnList of TurnItem #[schema(format = "uuid")]
}

/// A turn in the list.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub(crate) struct TurnItem {
    #[schema(format = "uuid")]
    pub(crate) turn_id: String,
    /// The channel, for example `webhook.siri`.
    pub(crate) channel: String,
    /// The platform's id of the chat.
    pub(crate) chat: String,
    /// The platform's id of the thread or topic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) thread: Option<String>,
    #[schema(format = "uuid")]
    pub(crate) conversation_id: String,
    #[serde(flatten)]
    pub(crate) handler: HandlerItem,
    /// The platform's id of the person who sent it.
    pub(crate) sender_id: Option<String>,
    pub(crate) sender_name: Option<String>,
    /// The beginning of the message, at most 200 characters.
    pub(crate) text: String,
    /// Why it is not answered: what it waits for, or why it was given up.
    pub(crate) why: Option<String>,
    #[schema(format = DateTime)]
    pub(crate) accepted_at: String,
    /// Whether an answer is owed.
    pub(crate) owed: bool,
    /// The state of the obligation: `open`, `claimed`, `deferred`, `settled`, `merged` or `undeliverable`.
    pub(crate) state: String,
    /// The turn's status for the person who asked: `accepted`, `deferred`, `answered`, `silent`, `cancelled` or
    /// `undeliverable`.
    #[schema(value_type = String)]
    pub(crate) status: TurnStatus,
    /// True if the stored obligation cannot be read, for example because a newer version wrote it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) unreadable: bool,
    /// The signal that settled it: `reply` or `reaction`.
    pub(crate) signal: Option<String>,
    /// The rung of the ladder that was used, and why, if one was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fallback: Option<FallbackItem>,
    /// When the next action is due.
    #[schema(format = DateTime)]
    pub(crate) wake_at: Option<String>,
    /// When the turn was settled or given up.
    #[schema(format = DateTime)]
    pub(crate) ended_at: Option<String>,
}

/// Who handles the turn.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub(crate) struct HandlerItem {
    /// The agent's name; null when the gateway answers by itself.
    pub(crate) agent: Option<String>,
    /// The gateway's command (`stop`) or notice (`stranger`), when it answers by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) command: Option<String>,
}

impl From<&Handler> for HandlerItem {
    fn from(handler: &Handler) -> Self {
        match handler {
            Handler::Agent(name) => Self { agent: Some(name.to_string()), command: None },
            Handler::Gateway(name) => Self { agent: None, command: Some(name.to_string()) },
        }
    }
}

/// An agent's name, a command with a slash as people write it, or who else it is.
impl fmt::Display for HandlerItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.agent, self.command.as_deref()) {
            (Some(agent), _) => f.write_str(agent),
            // One that the operator has made.
            (None, Some(command)) if command.starts_with('/') => f.write_str(command),
            (None, Some(command)) if rejoinder_core::is_command(command) => write!(f, "/{command}"),
            (None, Some(Origin::MESSAGE)) => f.write_str("(operator)"),
            (None, _) => f.write_str("(gateway)"),
        }
    }
}

/// The rung of the ladder that was used, and why.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub(crate) struct FallbackItem {
    /// Why there was no answer: `silent`, `error`, `timeout`, `refused` or `unreadable`.
    pub(crate) cause: String,
    /// The rung, for example `say:silent` or `handoff:orchestrator`.
    pub(crate) rung: String,
}

impl From<TurnSummary> for TurnItem {
    fn from(turn: TurnSummary) -> Self {
        Self {
            turn_id: turn.turn_id.to_string(),
            channel: turn.conversation.channel.to_string(),
            chat: turn.conversation.chat.to_string(),
            thread: turn.conversation.thread.as_deref().map(ToOwned::to_owned),
            conversation_id: turn.conversation_id.to_string(),
            handler: HandlerItem::from(&turn.handler),
            sender_id: turn.sender.as_ref().map(|sender| sender.id.clone()),
            sender_name: turn.sender.and_then(|sender| sender.name),
            text: excerpt(&turn.text, 200),
            why: turn.why,
            accepted_at: rfc3339(turn.accepted_at),
            owed: turn.owed,
            state: turn.state,
            status: turn.status,
            unreadable: turn.is_unreadable,
            signal: turn.signal.map(|signal| signal.as_str().to_owned()),
            fallback: turn
                .fallback
                .map(|fallback| FallbackItem { cause: fallback.cause.as_str().to_owned(), rung: fallback.rung }),
            wake_at: turn.wake_at.map(rfc3339),
            ended_at: turn.ended_at.map(rfc3339),
        }
    }
}

page! {
    /// A page of dead letters, newest first.
    DeadLetterList of DeadLetterItem #[schema(format = "uuid")]
}

/// A turn that could not be answered, or a callback that was given up.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub(crate) struct DeadLetterItem {
    /// The id of the delivery that a retry sends first, or of the turn if there is nothing to send.
    #[schema(format = "uuid")]
    pub(crate) id: String,
    /// `answer`, `fallback` (what the ladder said), `callback` (a copy for a hook), or `nothing`: the agent gave no answer.
    pub(crate) kind: String,
    #[schema(format = "uuid")]
    pub(crate) turn_id: String,
    /// The channel, for example `telegram.main`.
    pub(crate) channel: String,
    /// The platform's id of the chat.
    pub(crate) chat: String,
    /// The platform's id of the thread or topic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) thread: Option<String>,
    #[schema(format = "uuid")]
    pub(crate) conversation_id: String,
    /// The platform's id of the person who waits.
    pub(crate) sender_id: Option<String>,
    pub(crate) sender_name: Option<String>,
    /// What the person wrote.
    pub(crate) question: String,
    /// What could not be delivered; null if there is nothing to send.
    pub(crate) text: Option<String>,
    /// Why it was given up.
    pub(crate) reason: String,
    /// The last error of the platform.
    pub(crate) error: Option<String>,
    /// How many times it was tried since it was created or last sent again.
    pub(crate) attempts: u32,
    /// When the turn was accepted.
    #[schema(format = DateTime)]
    pub(crate) accepted_at: String,
    /// When the turn ended.
    #[schema(format = DateTime)]
    pub(crate) ended_at: Option<String>,
}

impl From<&DeadLetter> for DeadLetterItem {
    fn from(letter: &DeadLetter) -> Self {
        let delivery = letter.delivery.as_ref();
        let kind = match delivery.map(|delivery| &delivery.via) {
            _ if letter.is_copy => "callback",
            None => "nothing",
            Some(Via::Fallback { rung, .. }) if !matches!(rung, Rung::Handoff(_)) => "fallback",
            Some(_) => "answer",
        };
        Self {
            id: letter.id.to_string(),
            kind: kind.to_owned(),
            turn_id: letter.turn.to_string(),
            channel: letter.conversation.channel.to_string(),
            chat: letter.conversation.chat.to_string(),
            thread: letter.conversation.thread.as_deref().map(ToOwned::to_owned),
            conversation_id: letter.conversation_id.to_string(),
            sender_id: letter.sender.as_ref().map(|sender| sender.id.clone()),
            sender_name: letter.sender.as_ref().and_then(|sender| sender.name.clone()),
            question: letter.question.clone(),
            text: delivery.map(|delivery| content_of(&delivery.action).0),
            reason: letter.reason.clone(),
            error: delivery.and_then(|delivery| delivery.error.clone()),
            attempts: delivery.map_or(0, |delivery| delivery.attempts),
            accepted_at: rfc3339(letter.accepted_at),
            ended_at: letter.ended_at.map(rfc3339),
        }
    }
}

/// The text of an action, or its emoji; its choices; its files.
pub(crate) fn content_of(action: &Action) -> (String, Vec<String>, Vec<Attachment>) {
    match action {
        Action::Send { content, .. } | Action::Edit { content, .. } => {
            (content.text.clone(), content.choices.clone(), content.attachments.clone())
        }
        Action::React { emoji, .. } => (emoji.clone(), Vec::new(), Vec::new()),
        Action::Draft { text, .. } => (text.clone(), Vec::new(), Vec::new()),
        Action::Typing { .. } | Action::Mark { .. } | Action::Delete { .. } => Default::default(),
    }
}

/// Everything about a turn.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub(crate) struct TurnDetail {
    #[schema(format = "uuid")]
    pub(crate) turn_id: String,
    /// The channel, for example `webhook.siri`.
    pub(crate) channel: String,
    /// The platform's id of the chat.
    pub(crate) chat: String,
    /// The platform's id of the thread or topic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) thread: Option<String>,
    #[schema(format = "uuid")]
    pub(crate) conversation_id: String,
    /// The agent's memory key.
    #[schema(format = "uuid")]
    pub(crate) session_id: String,
    #[serde(flatten)]
    pub(crate) handler: HandlerItem,
    /// The rule of routing that held for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rule: Option<String>,
    #[schema(format = DateTime)]
    pub(crate) accepted_at: String,
    /// When the turn was settled or given up.
    #[schema(format = DateTime)]
    pub(crate) ended_at: Option<String>,
    /// Whether an answer is owed.
    pub(crate) owed: bool,
    /// The state of the obligation: `open`, `claimed`, `deferred`, `settled`, `merged` or `undeliverable`.
    pub(crate) state: String,
    /// The turn's status for the person who asked.
    #[schema(value_type = String)]
    pub(crate) status: TurnStatus,
    /// Why it is a dead letter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// When the next action is due.
    #[schema(format = DateTime)]
    pub(crate) wake_at: Option<String>,
    pub(crate) event: EventDetail,
    pub(crate) runs: Vec<RunDetail>,
    pub(crate) deliveries: Vec<DeliveryDetail>,
    /// Notes about the turn, for example signals that were suppressed, or a recovery.
    pub(crate) remarks: Vec<RemarkDetail>,
}

/// The inbound event.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub(crate) struct EventDetail {
    /// The platform's id of the event.
    pub(crate) external_id: String,
    /// The platform's id of the sender.
    pub(crate) sender_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sender_name: Option<String>,
    /// Who began it: `person`, `operator`, `schedule`, `trigger`, `event` (one that came in on a channel) or `gateway`.
    pub(crate) begun_by: String,
    #[schema(format = DateTime)]
    pub(crate) received_at: String,
    pub(crate) text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Object>, required = false)]
    pub(crate) attachments: Vec<Attachment>,
    /// The message that it replies or reacts to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object, required = false)]
    pub(crate) quoted: Option<Quote>,
    /// Who first wrote the text, if it was forwarded.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object, required = false)]
    pub(crate) forwarded: Option<Author>,
}

/// One run of an agent.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub(crate) struct RunDetail {
    /// Counted from 1 over all agents.
    pub(crate) number: u32,
    #[serde(flatten)]
    pub(crate) handler: HandlerItem,
    #[schema(format = DateTime)]
    pub(crate) started_at: String,
    #[schema(format = DateTime)]
    pub(crate) ended_at: Option<String>,
    /// `reply`, `reaction`, `deferral`, `silent`, `failed`, `stopped` or `crashed`.
    pub(crate) end: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output_tokens: Option<u64>,
    /// What the tokens cost, at the agent's price when the run ended; missing if it had none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cost: Option<CostDetail>,
    /// What the model was shown last, which contains what it was shown before in this run. Missing if the agent has no
    /// model, if the run ended with a crash, and after the time that `retention.payloads` sets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) shown: Option<ShownDetail>,
    /// The tool calls, in order. Kept as long as `shown`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub(crate) tools: Vec<ToolDetail>,
    /// How many more tool calls there were.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schema(required = false)]
    pub(crate) tools_left_out: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference to the field")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// What the tokens of a run cost.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub(crate) struct CostDetail {
    /// In units of the currency, exact to a millionth.
    pub(crate) amount: f64,
    /// Three letters, for example `USD`.
    pub(crate) currency: String,
}

/// For people, with at least two decimals.
impl fmt::Display for CostDetail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let amount = format!("{:.6}", self.amount);
        let kept = amount.trim_end_matches('0').len().max(amount.len() - 4);
        write!(f, "{} {}", &amount[..kept], self.currency)
    }
}

impl From<Cost> for CostDetail {
    fn from(cost: Cost) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "far from the limit")]
        let amount = cost.micros as f64 / 1e6;
        Self { amount, currency: cost.currency.as_str().to_owned() }
    }
}

/// What a model was shown. The operator's secrets are replaced by `••••`, and the bytes of pictures by a note.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub(crate) struct ShownDetail {
    /// The model, its options, the instructions (`system`), and the tools that it may call.
    #[schema(value_type = Object)]
    pub(crate) settings: Value,
    /// The messages, oldest first. Long ones may be cut.
    #[schema(value_type = Vec<Object>)]
    pub(crate) messages: Value,
    /// How many of the oldest messages are missing here, because the record would have become too large.
    pub(crate) messages_left_out: u32,
}

impl From<&ModelInput> for ShownDetail {
    fn from(input: &ModelInput) -> Self {
        let ModelInput { settings, messages, left_out } = input;
        let json = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
        Self { settings: json(settings), messages: json(messages), messages_left_out: *left_out }
    }
}

/// A tool call.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub(crate) struct ToolDetail {
    pub(crate) name: String,
    /// The arguments as the model wrote them, usually JSON; cut if they are long.
    pub(crate) arguments: String,
    /// What the model was told; cut if it is long.
    pub(crate) result: String,
}

impl From<&ToolUse> for ToolDetail {
    fn from(call: &ToolUse) -> Self {
        let ToolUse { name, arguments, result } = call.clone();
        Self { name, arguments, result }
    }
}

impl RunDetail {
    fn of(run: &RunRecord, content: Option<&RunContent>) -> Self {
        Self {
            number: run.number,
            handler: HandlerItem::from(&run.handler),
            started_at: rfc3339(run.started_at),
            ended_at: run.ended_at.map(rfc3339),
            end: run.end.clone(),
            detail: run.detail.clone(),
            input_tokens: run.usage.map(|usage| usage.input_tokens),
            output_tokens: run.usage.map(|usage| usage.output_tokens),
            cost: run.cost.map(Into::into),
            shown: content.and_then(|content| content.input.as_ref()).map(Into::into),
            tools: content.iter().flat_map(|content| &content.tools).map(Into::into).collect(),
            tools_left_out: content.map_or(0, |content| content.tools_left_out),
        }
    }
}

/// One message or reaction to send.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub(crate) struct DeliveryDetail {
    #[schema(format = "uuid")]
    pub(crate) delivery_id: String,
    /// The claim that it belongs to, counted from 1; 0 for a draft.
    pub(crate) claim: u32,
    pub(crate) part: u32,
    pub(crate) parts: u32,
    /// `reply`, `reaction` or `deferral`; `draft` for a message that shows what the agent has written so far, which is
    /// not a signal.
    pub(crate) signal: String,
    /// Its origin: `draft`, `answer` (also of the agent's deferral), `agent_send`, `late_answer`, `deferral` (the gateway's
    /// own), or the ladder's rung.
    pub(crate) via: String,
    /// Whether it is a copy for another address, such as a hook's callback.
    pub(crate) is_copy: bool,
    /// `pending`, `parked` (it gets nowhere; later messages do not wait for it), `sending`, `delivered`, `withdrawn`,
    /// `refused` or `dead`.
    pub(crate) state: String,
    /// Its text, or its emoji.
    pub(crate) text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub(crate) choices: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Object>, required = false)]
    pub(crate) attachments: Vec<Attachment>,
    #[schema(format = DateTime)]
    pub(crate) created_at: String,
    /// When the next attempt is due, while it is pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub(crate) next_attempt_at: Option<String>,
    #[schema(format = DateTime)]
    pub(crate) delivered_at: Option<String>,
    /// When it was first written to the client that reads it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub(crate) fetched_at: Option<String>,
    /// The platform's ids of the sent messages.
    pub(crate) message_ids: Vec<String>,
    /// The last error, or why it was withdrawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    pub(crate) attempts: Vec<AttemptDetail>,
}

/// One attempt of a delivery.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub(crate) struct AttemptDetail {
    pub(crate) number: u32,
    /// How many attempts just before it had the same result, as the one before it in the list, and are not listed.
    pub(crate) alike: u32,
    #[schema(format = DateTime)]
    pub(crate) started_at: String,
    #[schema(format = DateTime)]
    pub(crate) ended_at: Option<String>,
    /// `delivered`, or the error's name.
    pub(crate) result: Option<String>,
    /// The platform's message about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<String>,
}

impl AttemptDetail {
    /// All that is stored of the attempts of a delivery.
    fn list<'a>(attempts: impl Iterator<Item = &'a AttemptRecord>) -> Vec<Self> {
        let mut before = 0;
        let detail = |attempt: &AttemptRecord| {
            let alike = attempt.number.saturating_sub(before + 1);
            before = attempt.number;
            Self {
                number: attempt.number,
                alike,
                started_at: rfc3339(attempt.started_at),
                ended_at: attempt.ended_at.map(rfc3339),
                result: attempt.result.clone(),
                detail: attempt.detail.clone(),
            }
        };
        attempts.map(detail).collect()
    }
}

impl DeliveryDetail {
    pub(crate) fn of(delivery: &DeliveryRecord, attempts: &[AttemptRecord]) -> Self {
        let (text, choices, attachments) = content_of(&delivery.action);
        let is_pending = delivery.state == rejoinder_core::store::DeliveryState::Pending;
        Self {
            delivery_id: delivery.id.to_string(),
            claim: delivery.claim,
            part: delivery.part,
            parts: delivery.parts,
            signal: if delivery.is_draft() { "draft" } else { delivery.signal.as_str() }.to_owned(),
            via: match &delivery.via {
                Via::Draft => "draft".to_owned(),
                Via::Answer => "answer".to_owned(),
                Via::AgentSend => "agent_send".to_owned(),
                Via::LateAnswer => "late_answer".to_owned(),
                Via::Deferral => "deferral".to_owned(),
                Via::GivenUp { .. } => "given_up".to_owned(),
                Via::Fallback { rung, .. } => rung.to_string(),
            },
            is_copy: delivery.is_copy,
            state: delivery.state_name().to_owned(),
            text,
            choices,
            attachments,
            created_at: rfc3339(delivery.created_at),
            next_attempt_at: is_pending.then(|| rfc3339(delivery.next_attempt_at)),
            delivered_at: delivery.delivered_at.map(rfc3339),
            fetched_at: delivery.fetched_at.map(rfc3339),
            message_ids: delivery.message_ids.clone(),
            error: delivery.error.clone(),
            attempts: AttemptDetail::list(attempts.iter().filter(|attempt| attempt.delivery == delivery.id)),
        }
    }
}

/// A note about a turn.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub(crate) struct RemarkDetail {
    #[schema(format = DateTime)]
    pub(crate) at: String,
    /// `suppressed`, `recovered`, `dead_letter`, …
    pub(crate) kind: String,
    pub(crate) detail: String,
}

impl From<&Remark> for RemarkDetail {
    fn from(remark: &Remark) -> Self {
        Self { at: rfc3339(remark.at), kind: remark.kind.clone(), detail: remark.detail.clone() }
    }
}

impl From<&Dossier> for TurnDetail {
    fn from(dossier: &Dossier) -> Self {
        let turn = &dossier.turn;
        let (event, obligation) = (&turn.event, &turn.obligation);
        Self {
            turn_id: turn.id.to_string(),
            channel: event.conversation.channel.to_string(),
            chat: event.conversation.chat.to_string(),
            thread: event.conversation.thread.as_deref().map(ToOwned::to_owned),
            conversation_id: turn.conversation.to_string(),
            session_id: turn.session.to_string(),
            handler: HandlerItem::from(&turn.handler),
            rule: turn.rule.as_deref().map(ToOwned::to_owned),
            accepted_at: rfc3339(dossier.accepted_at),
            ended_at: dossier.ended_at.map(rfc3339),
            owed: obligation.expectation() == Expectation::Answer,
            state: obligation.state().as_str().to_owned(),
            status: TurnStatus::of(obligation),
            reason: match obligation.state() {
                ObligationState::Undeliverable { reason } => Some(reason.clone()),
                _ => None,
            },
            wake_at: obligation.wake_at().map(rfc3339),
            event: EventDetail {
                external_id: event.external_id.clone(),
                sender_id: event.sender.id.clone(),
                sender_name: event.sender.name.clone(),
                begun_by: Initiator::of(event).as_str().to_owned(),
                received_at: rfc3339(event.received_at),
                text: event.text.clone(),
                attachments: event.attachments.clone(),
                quoted: event.quoted.clone(),
                forwarded: event.forwarded.clone(),
            },
            runs: dossier.runs.iter().map(|run| RunDetail::of(run, dossier.contents.get(&run.number))).collect(),
            deliveries: dossier
                .deliveries
                .iter()
                .map(|delivery| DeliveryDetail::of(delivery, &dossier.attempts))
                .collect(),
            remarks: dossier.remarks.iter().map(Into::into).collect(),
        }
    }
}

/// A turn, explained in plain words.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub(crate) struct TurnExplanation {
    #[schema(format = "uuid")]
    pub(crate) turn_id: String,
    /// The turn's state, in one sentence.
    pub(crate) headline: String,
    /// What is owed for the turn, and why.
    pub(crate) owed: String,
    /// What happened, oldest first.
    pub(crate) timeline: Vec<TimelineEntry>,
    /// What happens next, and what the operator can do.
    pub(crate) next: String,
}

/// An entry of the timeline.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub(crate) struct TimelineEntry {
    #[schema(format = DateTime)]
    pub(crate) at: String,
    pub(crate) text: String,
}

impl From<Explanation> for TurnExplanation {
    fn from(explanation: Explanation) -> Self {
        let Explanation { turn, headline, owed, timeline, next } = explanation;
        let entry = |Entry { at, text }| TimelineEntry { at: rfc3339(at), text };
        Self { turn_id: turn.to_string(), headline, owed, timeline: timeline.into_iter().map(entry).collect(), next }
    }
}

#[cfg(test)]
mod tests {
    use rejoinder_core::{DeliveryId, Timestamp};

    use super::*;

    /// The store keeps the first and the last of many that fail alike.
    #[test]
    fn attempts_that_are_not_listed_are_counted() {
        let at = Timestamp::from_millis(0);
        let delivery = DeliveryId::new(at);
        let attempts = [1, 2, 7000].map(|number| AttemptRecord {
            delivery,
            number,
            started_at: at,
            ended_at: Some(at),
            result: Some("not_sent".to_owned()),
            detail: None,
        });

        let listed = AttemptDetail::list(attempts.iter());

        assert_eq!(listed.iter().map(|it| (it.number, it.alike)).collect::<Vec<_>>(), [(1, 0), (2, 0), (7000, 6997)]);
    }
}
