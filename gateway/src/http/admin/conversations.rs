//! The conversations: their list, and what was said in one.

use std::collections::HashSet;

use rejoinder_core::{
    Action, ConversationId, Handler, Sender, SenderKind,
    store::{
        ConversationFilter, ConversationSummary, DeliveryFilter, DeliveryRecord, DeliveryState, SessionSummary,
        TurnFilter, TurnSummary,
    },
};

use super::{deliveries::DeliveryItem, prelude::*};
use crate::{
    console::output::excerpt,
    view::{AddressItem, content_of, spoken_in},
};

const UNKNOWN: &str = "there is no conversation with this id";

/// How many turns a page of the transcript has.
const TURNS: u32 = 25;

/// How many of the latest deliveries, and of the latest sessions, are shown.
const LATEST: u32 = 20;

page! {
    /// A page of conversations, those with the latest turn first.
    ConversationList of ConversationItem #[schema(format = "uuid")]
}

item! {
    /// A conversation in the list.
    pub(crate) ConversationItem of (summary: ConversationSummary) {
        #[serde(flatten)] address: AddressItem = AddressItem::of(&summary.conversation, summary.id),
        /// The name of who wrote last.
        name: Option<String> = summary.sender.map(name),
        /// The beginning of what they wrote, at most 200 characters.
        last_text: String = excerpt(&summary.text, 200),
        /// When that was accepted.
        #[schema(format = DateTime)] last_at: String = rfc3339(summary.last_at),
        /// How many turns are stored.
        turns: u64 = summary.turns,
        /// How many of them are owed an answer.
        open: u64 = summary.open,
    }
}

fn name(sender: Sender) -> String {
    sender.name.or(sender.username).unwrap_or(sender.id)
}

query! {
    /// The filter of the list.
    Filter {
        /// Only conversations of this channel, for example `telegram.main`.
        #[param(max_length = 256)] channel: Option<String>,
        /// Only conversations with this text in the platform's id of the chat or thread, or of the `person` of this name.
        #[param(max_length = 256)] text: Option<String>,
        /// Only conversations in which this person wrote lately, or is reached: by `CHANNEL/ID`, by the id, or by a part of a
        /// name. Not together with `text`.
        #[param(max_length = 256)] person: Option<String>,
        /// Only conversations after the one with this id: the `next` of the previous page.
        #[param(format = "uuid")] before: Option<String>,
        /// The largest number of conversations; 50 by default.
        #[param(minimum = 1, maximum = 200)] limit: Option<u32>,
    }
}

/// Lists the conversations, those with the latest turn first.
#[utoipa::path(get, path = "/conversations", operation_id = "list_conversations", params(Filter),
    responses((status = 200, description = "A page of conversations", body = ConversationList)))]
pub(super) async fn list(State(app): Shared, caller: Caller, Query(filter): Query<Filter>) -> Answer<ConversationList> {
    let limit = paging::limit(filter.limit)?;
    if filter.text.is_some() && filter.person.is_some() {
        return Err(ApiError::BadRequest("give either `text` or `person`".to_owned()));
    }
    let person = filter.person.as_ref().or(filter.text.as_ref()).map(|text| app.engine.people().filter(text));
    let filter = ConversationFilter {
        id: None,
        channels: caller.channels(filter.channel.as_deref()),
        text: filter.text,
        person,
        before: paging::id("before", "a conversation id", filter.before)?,
        limit: limit + 1,
    };
    let mut found = app.records.lists.conversations(&filter).await?;
    let next = paging::cut(&mut found, limit, |conversation| conversation.id.to_string());
    Ok(Json(ConversationList { items: found.into_iter().map(ConversationItem::of).collect(), next }))
}

/// A conversation.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ConversationDetail {
    #[serde(flatten)]
    item: ConversationItem,
    /// The latest sessions, newest first.
    sessions: Vec<SessionItem>,
    /// What was said, oldest first: the lines of up to 25 turns.
    transcript: Vec<Line>,
    /// The value of `before` for what was said earlier; null if there is nothing.
    #[schema(format = "uuid")]
    next: Option<String>,
    /// The latest deliveries, newest first.
    deliveries: Vec<DeliveryItem>,
}

item! {
    /// A session: what its agent remembers together.
    SessionItem of (session: SessionSummary) {
        #[schema(format = "uuid")] session_id: String = session.id.to_string(),
        #[schema(format = DateTime)] started_at: String = rfc3339(session.created_at),
        /// Whether new turns belong to it.
        current: bool = session.is_current,
    }
}

/// A line of the transcript, as the person saw it.
#[derive(Debug, Serialize, ToSchema)]
struct Line {
    #[schema(format = DateTime)]
    at: String,
    /// `person`, `agent`, `gateway` (a command's answer, or the ladder's) or `operator`.
    from: &'static str,
    /// The person's name, or the operator's.
    name: Option<String>,
    /// The text, or the emoji of a reaction.
    text: String,
    /// Whether it was spoken, or an answer that is.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    spoken: bool,
    #[schema(format = "uuid")]
    turn_id: String,
    /// The delivery, of what was sent.
    #[schema(format = "uuid")]
    delivery_id: Option<String>,
    /// `seen`, `waiting` (it was not acknowledged yet) or `failed`.
    state: &'static str,
}

query! {
    /// Where a page of a transcript begins.
    Before {
        /// Only what was said before the turn with this id: the `next` of the previous page.
        #[param(format = "uuid")] before: Option<String>,
    }
}

/// Shows a conversation: its transcript as the person saw it, its sessions and its latest deliveries.
#[utoipa::path(get, path = "/conversations/{id}", operation_id = "show_conversation",
    params(("id" = String, Path, description = "The conversation's id", format = "uuid"), Before),
    responses((status = 200, description = "The conversation", body = ConversationDetail)))]
pub(super) async fn show(
    State(app): Shared,
    caller: Caller,
    Query(Before { before }): Query<Before>,
    id: Segment,
) -> Answer<ConversationDetail> {
    let before = paging::id("before", "a turn id", before)?;
    let id: ConversationId = parsed(id, UNKNOWN)?;
    let channels = caller.channels(None);
    let one =
        ConversationFilter { id: Some(id), channels: channels.clone(), limit: 1, ..ConversationFilter::default() };
    let summary = app.records.lists.conversations(&one).await?.pop().ok_or(ApiError::NotFound(UNKNOWN))?;
    let filter = TurnFilter { conversation: Some(id), before, limit: TURNS + 1, ..TurnFilter::default() };
    let mut turns = app.records.lists.list_turns(&filter).await?;
    let next = paging::cut(&mut turns, TURNS, |turn| turn.turn_id.to_string());
    let latest = DeliveryFilter { conversation: Some(id), channels, limit: LATEST, ..DeliveryFilter::default() };
    let deliveries = app.records.lists.list_deliveries(&latest).await?;
    Ok(Json(ConversationDetail {
        item: ConversationItem::of(summary),
        sessions: app.records.lists.sessions(id, LATEST).await?.into_iter().map(SessionItem::of).collect(),
        transcript: transcript(&app, turns).await?,
        next,
        deliveries: deliveries.into_iter().map(DeliveryItem::of).collect(),
    }))
}

async fn transcript(app: &App, turns: Vec<TurnSummary>) -> Result<Vec<Line>, ApiError> {
    let mut lines = Vec::new();
    for turn in turns.into_iter().rev() {
        let deliveries = app.records.outbox.deliveries(turn.turn_id).await?;
        let is_operators = turn.sender.as_ref().is_some_and(|sender| sender.kind == SenderKind::Operator);
        if !is_operators {
            lines.push(Line {
                at: rfc3339(turn.accepted_at),
                from: "person",
                name: turn.sender.clone().map(name),
                text: turn.text.clone(),
                spoken: turn.is_spoken,
                turn_id: turn.turn_id.to_string(),
                delivery_id: None,
                state: "seen",
            });
        }
        lines.extend(shown(&deliveries).map(|delivery| line(&turn, delivery, is_operators)));
    }
    Ok(lines)
}

/// The deliveries that are messages or reactions of their own: none that a later one edited, and no copies.
fn shown(deliveries: &[DeliveryRecord]) -> impl Iterator<Item = &DeliveryRecord> {
    let edited: HashSet<&str> = deliveries
        .iter()
        .filter(|delivery| delivery.state == DeliveryState::Delivered)
        .filter_map(|delivery| match &delivery.action {
            Action::Edit { message, .. } | Action::Delete { message } => Some(&**message),
            _ => None,
        })
        .collect();
    deliveries.iter().filter(move |delivery| {
        let is_message = matches!(delivery.action, Action::Send { .. } | Action::Edit { .. } | Action::React { .. });
        let is_replaced = matches!(delivery.action, Action::Send { .. })
            && delivery.message_ids.iter().any(|message| edited.contains(&**message));
        let is_draft_in_flight = delivery.is_draft() && delivery.state != DeliveryState::Delivered;
        is_message
            && !is_replaced
            && !is_draft_in_flight
            && !delivery.is_copy
            && delivery.state != DeliveryState::Withdrawn
    })
}

fn line(turn: &TurnSummary, delivery: &DeliveryRecord, is_operators: bool) -> Line {
    let from = match &turn.handler {
        _ if is_operators => "operator",
        Handler::Gateway(_) => "gateway",
        Handler::Agent(_) if delivery.via.is_gateways() => "gateway",
        Handler::Agent(_) => "agent",
    };
    let spoken = spoken_in(&delivery.action);
    Line {
        at: rfc3339(delivery.delivered_at.unwrap_or(delivery.created_at)),
        from,
        name: turn.sender.clone().filter(|_| is_operators).map(name),
        spoken: spoken.is_some(),
        text: spoken.unwrap_or_else(|| content_of(&delivery.action).0),
        turn_id: turn.turn_id.to_string(),
        delivery_id: Some(delivery.id.to_string()),
        state: match delivery.state {
            DeliveryState::Delivered => "seen",
            DeliveryState::Pending | DeliveryState::Held | DeliveryState::Sending => "waiting",
            DeliveryState::Withdrawn | DeliveryState::Refused | DeliveryState::Dead => "failed",
        },
    }
}
