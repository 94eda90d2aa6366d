//! How operators see turns: the same over HTTP and on the command line.

use std::{collections::BTreeSet, fmt};

use rejoinder_core::{
    Action, Attachment, Author, ConversationId, ConversationRef, Cost, Expectation, FallbackView, FileDigest, Handler,
    Heard, InboundEvent, ModelInput, ObligationState, Quote, Rung, StoredFile, ToolUse, TurnStatus, Unheard, Via,
    Voice,
    explain::{Entry, Explanation, Initiator},
    store::{
        AttemptRecord, DeadLetter, DeliveryRecord, DeliveryState, Dossier, LeaseName, Origin, Remark, RunContent,
        RunRecord, TurnSummary,
    },
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::{
    console::output::excerpt,
    shapes::{item, page},
    time::rfc3339,
};

page! {
    /// A page of turns, newest first.
    TurnList of TurnItem #[schema(format = "uuid")]
}

/// A lease: the id of its channel, or `housekeeper`.
pub(crate) fn said_lease(name: &LeaseName) -> String {
    match name {
        LeaseName::Channel(channel) => channel.to_string(),
        LeaseName::Housekeeper => "housekeeper".to_owned(),
    }
}

item! {
    /// A conversation, and its address on the platform.
    #[derive(Deserialize)]
    pub(crate) AddressItem of (address: &ConversationRef, id: ConversationId) {
        /// The channel, for example `telegram.main`.
        channel: String = address.channel.to_string(),
        /// The platform's id of the chat.
        chat: String = address.chat.to_string(),
        /// The platform's id of the thread or topic.
        #[serde(skip_serializing_if = "Option::is_none")]
        thread: Option<String> = address.thread.as_deref().map(ToOwned::to_owned),
        #[schema(format = "uuid")] conversation_id: String = id.to_string(),
    }
}

item! {
    /// A turn in the list.
    #[derive(Deserialize)]
    pub(crate) TurnItem of (turn: TurnSummary) {
        #[schema(format = "uuid")] turn_id: String = turn.turn_id.to_string(),
        #[serde(flatten)] address: AddressItem = AddressItem::of(&turn.conversation, turn.conversation_id),
        #[serde(flatten)] handler: HandlerItem = HandlerItem::of(&turn.handler),
        /// The platform's id of the person who sent it.
        sender_id: Option<String> = turn.sender.as_ref().map(|sender| sender.id.clone()),
        sender_name: Option<String> = turn.sender.and_then(|sender| sender.name),
        /// The beginning of the message, at most 200 characters.
        text: String = excerpt(&turn.text, 200),
        /// Why it is not answered: what it waits for, or why it was given up.
        why: Option<String> = turn.why,
        #[schema(format = DateTime)] accepted_at: String = rfc3339(turn.accepted_at),
        /// Whether an answer is owed.
        owed: bool = turn.owed,
        /// The state of the obligation: `open`, `claimed`, `deferred`, `settled`, `merged` or `undeliverable`.
        state: String = turn.state,
        /// The turn's status for the person who asked: `accepted`, `deferred`, `answered`, `silent`, `cancelled` or
        /// `undeliverable`.
        #[schema(value_type = String)] status: TurnStatus = turn.status,
        /// True if the stored obligation cannot be read, for example because a newer version wrote it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")] unreadable: bool = turn.is_unreadable,
        /// The signal that settled it: `reply` or `reaction`.
        signal: Option<String> = turn.signal.map(|signal| signal.as_str().to_owned()),
        /// The rung of the ladder that was used, and why, if one was.
        #[serde(skip_serializing_if = "Option::is_none")]
        fallback: Option<FallbackItem> = turn.fallback.map(FallbackItem::of),
        /// When the next action is due.
        #[schema(format = DateTime)] wake_at: Option<String> = turn.wake_at.map(rfc3339),
        /// When the turn was settled or given up.
        #[schema(format = DateTime)] ended_at: Option<String> = turn.ended_at.map(rfc3339),
    }
}

item! {
    /// Who handles the turn.
    #[derive(Deserialize)]
    pub(crate) HandlerItem of (handler: &Handler) {
        /// The agent's name; null when the gateway answers by itself.
        agent: Option<String> = handler.agent().map(ToString::to_string),
        /// The gateway's command (`stop`) or notice (`stranger`), when it answers by itself.
        #[serde(skip_serializing_if = "Option::is_none")]
        command: Option<String> = handler.is_gateway().then(|| handler.to_string()),
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

item! {
    /// The rung of the ladder that was used, and why.
    #[derive(Deserialize)]
    pub(crate) FallbackItem of (fallback: FallbackView) {
        /// Why there was no answer: `silent`, `error`, `unreachable`, `timeout`, `refused`, `unreadable`, `unheard` or `budget`.
        cause: String = fallback.cause.as_str().to_owned(),
        /// The rung, for example `say:silent` or `handoff:orchestrator`.
        rung: String = fallback.rung,
    }
}

page! {
    /// A page of dead letters, newest first.
    DeadLetterList of DeadLetterItem #[schema(format = "uuid")]
}

item! {
    /// A turn that could not be answered, or a callback that was given up.
    #[derive(Deserialize)]
    pub(crate) DeadLetterItem of (letter: &DeadLetter) {
        let delivery = letter.delivery.as_ref();
        let kind = match delivery.map(|delivery| &delivery.via) {
            _ if letter.is_copy => "callback",
            None => "nothing",
            Some(Via::Fallback { rung, .. }) if !matches!(rung, Rung::Handoff(_)) => "fallback",
            Some(_) => "answer",
        };
    } with {
        /// The id of the delivery that a retry sends first, or of the turn if there is nothing to send.
        #[schema(format = "uuid")] id: String = letter.id.to_string(),
        /// `answer`, `fallback` (what the ladder said), `callback` (a copy for a hook), or `nothing`: the agent gave no answer.
        kind: String = kind.to_owned(),
        #[schema(format = "uuid")] turn_id: String = letter.turn.to_string(),
        #[serde(flatten)] address: AddressItem = AddressItem::of(&letter.conversation, letter.conversation_id),
        /// The platform's id of the person who waits.
        sender_id: Option<String> = letter.sender.as_ref().map(|sender| sender.id.clone()),
        sender_name: Option<String> = letter.sender.as_ref().and_then(|sender| sender.name.clone()),
        /// What the person wrote.
        question: String = letter.question.clone(),
        /// What could not be delivered; null if there is nothing to send.
        text: Option<String> = delivery.map(|delivery| content_of(&delivery.action).0),
        /// Why it was given up.
        reason: String = letter.reason.clone(),
        /// The last error of the platform.
        error: Option<String> = delivery.and_then(|delivery| delivery.error.clone()),
        /// How many times it was tried since it was created or last sent again.
        attempts: u32 = delivery.map_or(0, |delivery| delivery.attempts),
        /// When the turn was accepted.
        #[schema(format = DateTime)] accepted_at: String = rfc3339(letter.accepted_at),
        /// When the turn ended.
        #[schema(format = DateTime)] ended_at: Option<String> = letter.ended_at.map(rfc3339),
    }
}

/// A file of a message. Those of a stored one are read at `/files`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FileDetail {
    pub(crate) name: String,
    pub(crate) media_type: String,
    /// Where the bytes are, if the gateway does not store them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
    /// Of a stored file, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) size: Option<usize>,
    /// Of a stored file: `sha256:` and 64 hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) digest: Option<String>,
    /// Whether it was stored, and its time is over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) removed: bool,
}

impl FileDetail {
    /// `kept`: the files that are stored for its turn, if that is known.
    fn of(file: &Attachment, kept: Option<&BTreeSet<FileDigest>>) -> Self {
        let in_url = StoredFile::in_url(&file.url);
        let stored = in_url.filter(|stored| kept.is_none_or(|kept| kept.contains(&stored.digest)));
        // A row of an earlier version has the bytes in the URL.
        let url = Some(&file.url).filter(|url| in_url.is_none() && !url.starts_with("data:"));
        Self {
            name: file.name.clone(),
            media_type: file.media_type.clone(),
            url: url.cloned(),
            size: stored.map(|stored| stored.size),
            digest: stored.map(|stored| stored.digest.to_string()),
            removed: in_url.is_some() && stored.is_none(),
        }
    }
}

/// The text of an action, or its emoji; its choices.
pub(crate) fn content_of(action: &Action) -> (String, Vec<String>) {
    match action {
        Action::Send { content, .. } | Action::Edit { content, .. } => (content.text.clone(), content.choices.clone()),
        Action::React { emoji, .. } => (emoji.clone(), Vec::new()),
        Action::Draft { text, .. } => (text.clone(), Vec::new()),
        Action::Typing { .. } | Action::Mark { .. } | Action::Delete { .. } => Default::default(),
    }
}

/// The words of an answer that is spoken.
pub(crate) fn spoken_in(action: &Action) -> Option<String> {
    match action {
        Action::Send { content, .. } => content.spoken.clone(),
        _ => None,
    }
}

item! {
    /// Everything about a turn.
    #[derive(Deserialize)]
    pub(crate) TurnDetail of (dossier: &Dossier) {
        let turn = &dossier.turn;
        let (event, obligation) = (&turn.event, &turn.obligation);
        let runs = dossier.runs.iter().map(|run| RunDetail::of(run, dossier.contents.get(&run.number)));
        let kept = Some(&dossier.files);
        let deliveries = dossier.deliveries.iter().map(|delivery| DeliveryDetail::of(delivery, &dossier.attempts, kept));
    } with {
        #[schema(format = "uuid")] turn_id: String = turn.id.to_string(),
        #[serde(flatten)] address: AddressItem = AddressItem::of(&event.conversation, turn.conversation),
        /// The agent's memory key.
        #[schema(format = "uuid")] session_id: String = turn.session.to_string(),
        #[serde(flatten)] handler: HandlerItem = HandlerItem::of(&turn.handler),
        /// The rule of routing that held for it.
        #[serde(skip_serializing_if = "Option::is_none")]
        rule: Option<String> = turn.rule.as_deref().map(ToOwned::to_owned),
        #[schema(format = DateTime)] accepted_at: String = rfc3339(dossier.accepted_at),
        /// When the turn was settled or given up.
        #[schema(format = DateTime)] ended_at: Option<String> = dossier.ended_at.map(rfc3339),
        /// Whether an answer is owed.
        owed: bool = obligation.expectation() == Expectation::Answer,
        /// The state of the obligation: `open`, `claimed`, `deferred`, `settled`, `merged` or `undeliverable`.
        state: String = obligation.state().as_str().to_owned(),
        /// The turn's status for the person who asked.
        #[schema(value_type = String)] status: TurnStatus = TurnStatus::of(obligation),
        /// Why it is a dead letter.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String> = match obligation.state() {
            ObligationState::Undeliverable { reason } => Some(reason.clone()),
            _ => None,
        },
        /// When the next action is due.
        #[schema(format = DateTime)] wake_at: Option<String> = obligation.wake_at().map(rfc3339),
        event: EventDetail = EventDetail::of(event, kept),
        runs: Vec<RunDetail> = runs.collect(),
        deliveries: Vec<DeliveryDetail> = deliveries.collect(),
        /// Notes about the turn, for example signals that were suppressed, or a recovery.
        remarks: Vec<RemarkDetail> = dossier.remarks.iter().map(RemarkDetail::of).collect(),
    }
}

item! {
    /// The inbound event.
    #[derive(Deserialize)]
    pub(crate) EventDetail of (event: &InboundEvent, kept: Option<&BTreeSet<FileDigest>>) {
        /// The platform's id of the event.
        external_id: String = event.external_id.clone(),
        /// The platform's id of the sender.
        sender_id: String = event.sender.id.clone(),
        #[serde(skip_serializing_if = "Option::is_none")] sender_name: Option<String> = event.sender.name.clone(),
        /// Who began it: `person`, `operator`, `schedule`, `trigger`, `event` (one that came in on a channel) or `gateway`.
        begun_by: String = Initiator::of(event).as_str().to_owned(),
        #[schema(format = DateTime)] received_at: String = rfc3339(event.received_at),
        text: String = event.text.clone(),
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[schema(value_type = Vec<Object>, required = false)]
        attachments: Vec<FileDetail> = event.attachments.iter().map(|file| FileDetail::of(file, kept)).collect(),
        /// Set if it was spoken.
        #[serde(skip_serializing_if = "Option::is_none")]
        voice: Option<VoiceDetail> = event.voice.map(|voice| VoiceDetail::of(voice, event.heard_by.as_deref())),
        /// The message that it replies or reacts to.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Object, required = false)]
        quoted: Option<Quote> = event.quoted.clone(),
        /// Who first wrote the text, if it was forwarded.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Object, required = false)]
        forwarded: Option<Author> = event.forwarded.clone(),
    }
}

item! {
    /// That a message was spoken.
    #[derive(Deserialize)]
    pub(crate) VoiceDetail of (voice: Voice, heard_by: Option<&str>) {
        /// How many seconds the recording has, as far as that is known.
        #[serde(skip_serializing_if = "Option::is_none")] seconds: Option<u64> = voice.seconds,
        /// `words`: they are in the text, below what was written beside the recording; `awaited`, `failed`, or `not_tried`.
        #[schema(value_type = String)] heard: Heard = voice.heard,
        /// Why there are no words: `too_long`, `over_budget`, `no_file`, `no_server`, `failed` or `no_words`.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(value_type = String, required = false)]
        why: Option<Unheard> = voice.why,
        /// The model that has written the words down.
        #[serde(skip_serializing_if = "Option::is_none")] model: Option<String> = heard_by.map(ToOwned::to_owned),
    }
}

item! {
    /// One run of an agent.
    #[derive(Deserialize)]
    pub(crate) RunDetail of (run: &RunRecord, content: Option<&RunContent>) {
        /// Counted from 1 over all agents.
        number: u32 = run.number,
        #[serde(flatten)] handler: HandlerItem = HandlerItem::of(&run.handler),
        /// The member that answered in the agent's place, or was the last to fail.
        #[serde(skip_serializing_if = "Option::is_none")] member: Option<String> = run.member.as_deref().map(ToOwned::to_owned),
        #[schema(format = DateTime)] started_at: String = rfc3339(run.started_at),
        #[schema(format = DateTime)] ended_at: Option<String> = run.ended_at.map(rfc3339),
        /// `reply`, `reaction`, `deferral`, `silent`, `failed`, `budget`, `stopped`, `interrupted` or `crashed`.
        end: Option<String> = run.end.clone(),
        #[serde(skip_serializing_if = "Option::is_none")] detail: Option<String> = run.detail.clone(),
        #[serde(skip_serializing_if = "Option::is_none")]
        input_tokens: Option<u64> = run.usage.map(|usage| usage.input_tokens),
        #[serde(skip_serializing_if = "Option::is_none")]
        output_tokens: Option<u64> = run.usage.map(|usage| usage.output_tokens),
        /// What the agent says that it cost, or what the tokens cost at its price when the run ended; missing if neither is known.
        #[serde(skip_serializing_if = "Option::is_none")] cost: Option<CostDetail> = run.cost.map(CostDetail::of),
        /// What the model was shown last, which contains what it was shown before in this run. Missing if the agent has no
        /// model, if the run ended with a crash, and after the time that `retention.payloads` sets.
        #[serde(skip_serializing_if = "Option::is_none")]
        shown: Option<ShownDetail> = content.and_then(|content| content.input.as_ref()).map(ShownDetail::of),
        /// The tool calls, in order. Kept as long as `shown`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[schema(required = false)]
        tools: Vec<ToolDetail> = content.iter().flat_map(|content| &content.tools).map(ToolDetail::of).collect(),
        /// How many more tool calls there were.
        #[serde(default, skip_serializing_if = "is_zero")]
        #[schema(required = false)]
        tools_left_out: u32 = content.map_or(0, |content| content.tools_left_out),
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference to the field")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

item! {
    /// What a run cost.
    #[derive(Deserialize)]
    pub(crate) CostDetail of (cost: Cost) {
        /// In units of the currency, exact to a millionth.
        amount: f64 = cost.amount(),
        /// Three letters, for example `USD`.
        currency: String = cost.currency.as_str().to_owned(),
    }
}

/// For people, with at least two decimals.
impl fmt::Display for CostDetail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let amount = format!("{:.6}", self.amount);
        let kept = amount.trim_end_matches('0').len().max(amount.len() - 4);
        write!(f, "{} {}", &amount[..kept], self.currency)
    }
}

item! {
    /// What a model was shown. The operator's secrets are replaced by `••••`, and the bytes of pictures by a note.
    #[derive(Deserialize)]
    pub(crate) ShownDetail of (input: &ModelInput) {
        let ModelInput { settings, messages, left_out } = input;
        let json = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
    } with {
        /// The model, its options, the instructions (`system`), and the tools that it may call.
        #[schema(value_type = Object)] settings: Value = json(settings),
        /// The messages, oldest first. Long ones may be cut.
        #[schema(value_type = Vec<Object>)] messages: Value = json(messages),
        /// How many of the oldest messages are missing here, because the record would have become too large.
        messages_left_out: u32 = *left_out,
    }
}

item! {
    /// A tool call.
    #[derive(Deserialize)]
    pub(crate) ToolDetail of (call: &ToolUse) {
        name: String = call.name.clone(),
        /// The arguments as the model wrote them, usually JSON; cut if they are long.
        arguments: String = call.arguments.clone(),
        /// What the model was told; cut if it is long.
        result: String = call.result.clone(),
        /// How long it took, without the wait for an approval; null if that is not known.
        duration_ms: Option<u64> = call.duration_ms,
    }
}

item! {
    /// One message or reaction to send.
    #[derive(Deserialize)]
    pub(crate) DeliveryDetail of (delivery: &DeliveryRecord, attempts: &[AttemptRecord], kept: Option<&BTreeSet<FileDigest>>) {
        let (text, choices) = content_of(&delivery.action);
        let own = attempts.iter().filter(|attempt| attempt.delivery == delivery.id);
        let is_pending = delivery.state == DeliveryState::Pending;
    } with {
        #[schema(format = "uuid")] delivery_id: String = delivery.id.to_string(),
        /// The claim that it belongs to, counted from 1; 0 for a draft.
        claim: u32 = delivery.claim,
        part: u32 = delivery.part,
        parts: u32 = delivery.parts,
        /// `reply`, `reaction` or `deferral`; `draft` for a message that shows what the agent has written so far, which is
        /// not a signal.
        signal: String = if delivery.is_draft() { "draft" } else { delivery.signal.as_str() }.to_owned(),
        /// Its origin: `draft`, `answer` (also of the agent's deferral), `agent_send`, `late_answer`, `deferral` (the gateway's
        /// own), or the ladder's rung.
        via: String = match &delivery.via {
            Via::Draft => "draft".to_owned(),
            Via::Answer => "answer".to_owned(),
            Via::AgentSend => "agent_send".to_owned(),
            Via::LateAnswer => "late_answer".to_owned(),
            Via::Deferral => "deferral".to_owned(),
            Via::GivenUp { .. } => "given_up".to_owned(),
            Via::Fallback { rung, .. } => rung.to_string(),
        },
        /// Whether it is a copy for another address, such as a hook's callback.
        is_copy: bool = delivery.is_copy,
        /// `pending`, `parked` (it gets nowhere; later messages do not wait for it), `sending`, `delivered`, `withdrawn`,
        /// `refused` or `dead`.
        state: String = delivery.state_name().to_owned(),
        /// Its text, or its emoji.
        text: String = text,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[schema(required = false)]
        choices: Vec<String> = choices,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[schema(value_type = Vec<Object>, required = false)]
        attachments: Vec<FileDetail> = delivery.action.all_files().map(|file| FileDetail::of(file, kept)).collect(),
        /// The words of its sound, if it is an answer that is spoken.
        #[serde(skip_serializing_if = "Option::is_none")] spoken: Option<String> = spoken_in(&delivery.action),
        #[schema(format = DateTime)] created_at: String = rfc3339(delivery.created_at),
        /// When the next attempt is due, while it is pending.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(format = DateTime)]
        next_attempt_at: Option<String> = is_pending.then(|| rfc3339(delivery.next_attempt_at)),
        #[schema(format = DateTime)] delivered_at: Option<String> = delivery.delivered_at.map(rfc3339),
        /// When it was first written to the client that reads it.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(format = DateTime)]
        fetched_at: Option<String> = delivery.fetched_at.map(rfc3339),
        /// The platform's ids of the sent messages.
        message_ids: Vec<String> = delivery.message_ids.clone(),
        /// The last error, or why it was withdrawn.
        #[serde(skip_serializing_if = "Option::is_none")] error: Option<String> = delivery.error.clone(),
        attempts: Vec<AttemptDetail> = AttemptDetail::list(own),
    }
}

item! {
    /// One attempt of a delivery.
    #[derive(Deserialize)]
    pub(crate) AttemptDetail of (attempt: &AttemptRecord, alike: u32) {
        number: u32 = attempt.number,
        /// How many attempts just before it had the same result, as the one before it in the list, and are not listed.
        alike: u32 = alike,
        #[schema(format = DateTime)] started_at: String = rfc3339(attempt.started_at),
        #[schema(format = DateTime)] ended_at: Option<String> = attempt.ended_at.map(rfc3339),
        /// `delivered`, or the error's name.
        result: Option<String> = attempt.result.clone(),
        /// The platform's message about it.
        #[serde(skip_serializing_if = "Option::is_none")] detail: Option<String> = attempt.detail.clone(),
    }
}

impl AttemptDetail {
    /// All that is stored of the attempts of a delivery.
    fn list<'a>(attempts: impl Iterator<Item = &'a AttemptRecord>) -> Vec<Self> {
        let mut before = 0;
        let detail = |attempt: &AttemptRecord| {
            let alike = attempt.number.saturating_sub(before + 1);
            before = attempt.number;
            Self::of(attempt, alike)
        };
        attempts.map(detail).collect()
    }
}

item! {
    /// A note about a turn.
    #[derive(Deserialize)]
    pub(crate) RemarkDetail of (remark: &Remark) {
        #[schema(format = DateTime)] at: String = rfc3339(remark.at),
        /// `suppressed`, `recovered`, `dead_letter`, `refused`, …
        kind: String = remark.kind.clone(),
        detail: String = remark.detail.clone(),
    }
}

item! {
    /// A turn, explained in plain words.
    #[derive(Deserialize)]
    pub(crate) TurnExplanation of (explanation: Explanation) {
        #[schema(format = "uuid")] turn_id: String = explanation.turn.to_string(),
        /// The turn's state, in one sentence.
        headline: String = explanation.headline,
        /// What is owed for the turn, and why.
        owed: String = explanation.owed,
        /// What happened, oldest first.
        timeline: Vec<TimelineEntry> = explanation.timeline.into_iter().map(TimelineEntry::of).collect(),
        /// What happens next, and what the operator can do.
        next: String = explanation.next,
    }
}

item! {
    /// An entry of the timeline.
    #[derive(Deserialize)]
    pub(crate) TimelineEntry of (entry: Entry) {
        #[schema(format = DateTime)] at: String = rfc3339(entry.at),
        text: String = entry.text,
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
