//! The turns: their list, one in detail, and its explanation.

use clap::ValueEnum;
use rejoinder_core::{
    Farewell, PersonFilter, TurnId,
    explain::explain as explain_turn,
    is_blank,
    store::{Dossier, TurnFilter, TurnListState},
};

use super::prelude::*;
use crate::{
    time,
    view::{TurnDetail, TurnExplanation, TurnItem, TurnList},
};

query! {
    /// The filter of the list.
    Filter {
        /// Only turns in this state: `open` (owed an answer and not settled), `settled`, `undeliverable`, `overdue`, `absent`
        /// (its channel is not configured), or `asked` (answered within a week with a question that
        /// nobody has answered).
        #[param(inline)] state: Option<StateFilter>,
        /// Only turns of this channel, for example `webhook.siri`.
        #[param(max_length = 256)] channel: Option<String>,
        /// Only turns of the conversation with this id.
        #[param(format = "uuid")] conversation: Option<String>,
        /// Only turns that were routed to this agent.
        #[param(max_length = 256)] agent: Option<String>,
        /// Only turns of this person, and what others sent them: by `CHANNEL/ID`, by the id, or by a part of a name, that of
        /// `people` or one that a platform gave, in any case.
        #[param(max_length = 256)] person: Option<String>,
        /// Only turns with this text in their message.
        #[param(max_length = 256)] text: Option<String>,
        /// Only turns that the ladder answered.
        #[serde(default)] #[param(required = false)] fallback: bool,
        /// Only turns accepted at this time or later.
        #[param(format = DateTime, max_length = 64)] since: Option<String>,
        /// Only turns accepted before this time.
        #[param(format = DateTime, max_length = 64)] until: Option<String>,
        /// Only turns older than the one with this id: the `next` of the previous page.
        #[param(format = "uuid")] before: Option<String>,
        /// Only turns whose ids are from the first to the last of these two: `FIRST..LAST`.
        ids: Option<String>,
        /// The largest number of turns; 50 by default.
        #[param(minimum = 1, maximum = 200)] limit: Option<u32>,
    }
}

names! {
    #[derive(ValueEnum)]
    StateFilter of TurnListState {
        #[value(help = "Owed an answer and not settled")]
        Open,
        #[value(help = "Settled")]
        Settled,
        #[value(help = "Every way of answering failed")]
        Undeliverable,
        #[value(help = "Late: the person should have seen a signal by now")]
        Overdue,
        #[value(help = "Not ended, and its channel is no longer configured")]
        Absent,
        #[value(help = "Answered within a week with a question that nobody has answered yet")]
        Asked,
    }
}

impl Filter {
    async fn read(self, records: &Records, caller: &Caller) -> Result<TurnFilter, ApiError> {
        let limit = paging::limit(self.limit)?;
        let time = |name: &str, text: Option<String>| {
            let read = |text: String| time::parse(&text).ok_or_else(|| paging::bad(name, "an RFC 3339 time"));
            text.map(read).transpose()
        };
        let range = |ids: String| {
            let ends = ids.split_once("..").and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
            ends.ok_or_else(|| paging::bad("ids", "two turn ids: FIRST..LAST"))
        };
        let person = match self.person {
            Some(person) => {
                let (people, chats) = (records.people.people().await?, records.people.direct_chats().await?);
                Some(PersonFilter::new(&person, &people, &chats))
            }
            None => None,
        };
        Ok(TurnFilter {
            state: self.state.map(Into::into),
            channels: caller.channels(self.channel.as_deref()),
            conversation: paging::id("conversation", "a conversation id", self.conversation)?,
            agent: self.agent.map(Into::into),
            person,
            text: self.text,
            fallback: self.fallback,
            since: time("since", self.since)?,
            until: time("until", self.until)?,
            ids: self.ids.map(range).transpose()?,
            before: paging::id("before", "a turn id", self.before)?,
            limit,
            now: Some(records.clock.now()),
        })
    }
}

/// Lists turns, newest first.
#[utoipa::path(get, path = "/turns", operation_id = "list_turns", params(Filter),
    responses((status = 200, description = "A page of turns", body = TurnList)))]
pub(super) async fn list(
    State(records): State<Records>,
    caller: Caller,
    Query(filter): Query<Filter>,
) -> Answer<TurnList> {
    let filter = filter.read(&records, &caller).await?;
    let limit = filter.limit;
    let mut turns = records.lists.list_turns(&TurnFilter { limit: limit + 1, ..filter }).await?;
    let next = paging::cut(&mut turns, limit, |turn| turn.turn_id.to_string());
    Ok(Json(TurnList { items: turns.into_iter().map(TurnItem::of).collect(), next }))
}

/// Shows everything about a turn.
#[utoipa::path(get, path = "/turns/{id}", operation_id = "show_turn",
    params(("id" = String, Path, description = "The turn's id", format = "uuid")),
    responses((status = 200, description = "The turn", body = TurnDetail)))]
pub(super) async fn show(State(records): State<Records>, caller: Caller, id: Segment) -> Answer<TurnDetail> {
    let dossier = dossier(&records, &caller, id).await?;
    Ok(Json(TurnDetail::of(&dossier)))
}

/// Explains a turn in plain words: what was owed, what was tried, how the platform responded and what happens next.
#[utoipa::path(get, path = "/turns/{id}/explain", operation_id = "explain_turn",
    params(("id" = String, Path, description = "The turn's id", format = "uuid")),
    responses((status = 200, description = "The explanation", body = TurnExplanation)))]
pub(super) async fn explain(State(records): State<Records>, caller: Caller, id: Segment) -> Answer<TurnExplanation> {
    let dossier = dossier(&records, &caller, id).await?;
    Ok(Json(TurnExplanation::of(explain_turn(&dossier, records.clock.now()))))
}

async fn dossier(records: &Records, caller: &Caller, id: Segment) -> Result<Dossier, ApiError> {
    let dossier = records.lists.dossier(turn_id(id)?).await?;
    dossier
        .filter(|dossier| caller.may_see(&dossier.turn.event.conversation.channel))
        .ok_or(ApiError::NotFound(UNKNOWN))
}

const UNKNOWN: &str = "there is no turn with this id";

fn turn_id(id: Segment) -> Result<TurnId, ApiError> {
    parsed(id, UNKNOWN)
}

/// The longest text that a person is told of a turn that is given up, in characters.
const MAX_SAY: usize = 4000;

body! {
    /// Gives a turn up.
    #[derive(Default)]
    GiveUp {
        /// What the person is told, as Markdown; the template `given_up` if it is missing.
        #[schema(min_length = 1, max_length = 4000)] say: Option<String>,
        /// Whether the person is told nothing, and the message of a deferral is removed.
        #[serde(default)] silently: bool,
        /// Why, for the audit.
        #[schema(max_length = 1000)] reason: Option<String>,
    }
}

impl GiveUp {
    fn farewell(&self) -> Result<Farewell, ApiError> {
        let bad = |why: String| Err(ApiError::BadRequest(why));
        match self.say.as_deref() {
            Some(_) if self.silently => bad("`say` and `silently` exclude each other".to_owned()),
            Some(say) if is_blank(say) || say.chars().count() > MAX_SAY => {
                bad(format!("`say` must have 1 to {MAX_SAY} characters"))
            }
            Some(say) => Ok(Farewell::Words(say.to_owned())),
            None if self.silently => Ok(Farewell::Silence),
            None => Ok(Farewell::Template),
        }
    }
}

/// Gives a turn up that has not ended: its run is stopped, and what waits to be sent is withdrawn. If an answer is owed, the person
/// is told, in place of the deferral if there is one. A dead letter is refused with 409: retry, redirect or discard it.
#[utoipa::path(post, path = "/turns/{id}/cancel", operation_id = "cancel_turn",
    params(("id" = String, Path, description = "The turn's id", format = "uuid"), IdempotencyKey),
    request_body(content = Option<GiveUp>), responses((status = 202, description = "It is given up", body = Accepted)))]
pub(super) async fn cancel(State(app): Shared, id: Segment, operation: Operation<GiveUp>) -> Done {
    let farewell = operation.body.farewell()?;
    let (id, actor, accepted) = operation.begin(turn_id(id)?, operation.body.reason.as_deref())?;
    app.engine.operations().cancel(id, farewell, actor).await?;
    Ok(accepted)
}

/// Has what waits to be sent of a turn tried now. A turn that is a dead letter is sent again, as the same delivery; or run again, if
/// there was nothing to send.
#[utoipa::path(post, path = "/turns/{id}/retry", operation_id = "retry_turn",
    params(("id" = String, Path, description = "The turn's id", format = "uuid"), IdempotencyKey),
    request_body(content = Option<Reason>),
    responses((status = 202, description = "It is sent or run again", body = Accepted)))]
pub(super) async fn retry(State(app): Shared, id: Segment, operation: Operation<Reason>) -> Done {
    act(turn_id(id), operation, |id, actor| app.engine.operations().retry(id.as_uuid(), actor)).await
}

/// Holds a turn: no run and no attempt begins until it is resumed.
#[utoipa::path(post, path = "/turns/{id}/hold", operation_id = "hold_turn",
    params(("id" = String, Path, description = "The turn's id", format = "uuid"), IdempotencyKey),
    request_body(content = Option<Reason>), responses((status = 202, description = "It is held", body = Accepted)))]
pub(super) async fn hold(State(app): Shared, id: Segment, operation: Operation<Reason>) -> Done {
    act(turn_id(id), operation, |id, actor| app.engine.operations().hold(id, actor)).await
}

/// Resumes a turn that is held.
#[utoipa::path(post, path = "/turns/{id}/resume", operation_id = "resume_turn",
    params(("id" = String, Path, description = "The turn's id", format = "uuid"), IdempotencyKey),
    request_body(content = Option<Reason>), responses((status = 202, description = "It goes on", body = Accepted)))]
pub(super) async fn resume(State(app): Shared, id: Segment, operation: Operation<Reason>) -> Done {
    act(turn_id(id), operation, |id, actor| app.engine.operations().resume(id, actor)).await
}
