//! How a message would be routed, and why.

use std::{collections::BTreeMap, time::Duration};

use rejoinder_core::{
    Cause, ChannelId, ChatKind, ConversationRef, Directed, Expectation, Handler, InboundEvent, PersonRole, RouteAccess,
    RouteExplanation, RuleVerdict, Rung, Sender, SenderKind,
};

use super::{prelude::*, responses::ReadingOne};
use crate::time::parse;

body! {
    /// A message that somebody could send.
    PossibleMessage {
        /// The channel, for example `telegram.main`.
        channel: String,
        /// The platform's id of the chat; in a direct chat that of the person if it is missing.
        #[schema(max_length = 1000)] chat: Option<String>,
        /// The platform's id of the thread or topic.
        #[schema(max_length = 1000)] thread: Option<String>,
        /// The platform's id of the person, or the name of somebody who is known; the id of the chat if it is missing.
        #[schema(max_length = 1000)] person: Option<String>,
        /// Whether the chat is a group. The message then counts as one that mentions the agent.
        #[serde(default)] group: bool,
        /// What the person writes; empty if it is missing.
        #[schema(max_length = 20_000)] text: Option<String>,
        /// When it comes, in RFC 3339; now if it is missing.
        #[schema(format = DateTime)] at: Option<String>,
    }
}

item! {
    /// How a message would be routed.
    pub(crate) RouteItem of (route: RouteExplanation) {
        let RouteExplanation { rules, person, access, handler, chosen, language, queue, policy } = route;
        let (name, role) = person.unzip();
        let first = rules.iter().find(|rule| rule.verdict == RuleVerdict::Holds).map(|rule| rule.name.to_string());
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let items = rules.into_iter().map(|rule| RuleItem::of(rule.name.to_string(), rule.verdict));
        let (handler, expectation) = handler.unzip();
        let rungs = |cause: Cause| (cause.as_str(), policy.ladder.rungs(cause).iter().map(Rung::to_string).collect());
    } with {
        /// When it would come.
        #[schema(format = DateTime)] at: String = String::new(),
        /// The name of the person, if they are known.
        person: Option<String> = name,
        /// The role of the person, if they are known.
        role: Option<&'static str> = role.map(PersonRole::as_str),
        /// The rules in their order. Those of groups come first.
        rules: Vec<RuleItem> = items.collect(),
        /// The rule that holds; null if none does.
        rule: Option<String> = first,
        /// Whether the person may write: `granted`, `denied_with_notice` (they are told so), `denied_with_code` (they are given a
        /// code to be let in with) or `denied` (they are told nothing).
        access: &'static str = match access {
            RouteAccess::Granted => "granted",
            RouteAccess::DeniedWithNotice => "denied_with_notice",
            RouteAccess::DeniedWithCode => "denied_with_code",
            RouteAccess::Denied => "denied",
        },
        /// The agent that would answer; null if none would.
        agent: Option<String> = handler.as_ref().and_then(Handler::agent).map(ToString::to_string),
        /// The agent that was chosen for the session with `/agent`, and comes before that of a rule.
        chosen_agent: Option<String> = chosen.agent.map(|agent| agent.to_string()),
        /// The model that was chosen for the session with `/model`.
        chosen_model: Option<String> = chosen.model.map(|model| model.to_string()),
        /// The gateway's command that would answer.
        command: Option<String> = handler.filter(Handler::is_gateway).map(|command| command.to_string()),
        /// Whether an answer would be owed.
        owed: bool = expectation == Some(Expectation::Answer),
        /// The language of what the gateway would say.
        language: Option<String> = language.map(|language| language.to_string()),
        /// What would happen to the message while a turn runs, if nobody has chosen it for the conversation.
        queue: &'static str = queue.as_str(),
        /// The soft deadline in milliseconds; null: the gateway sends no deferrals on its own.
        soft_deadline_ms: Option<u64> = policy.soft_deadline.map(millis),
        /// The hard deadline in milliseconds.
        hard_deadline_ms: u64 = millis(policy.hard_deadline),
        /// What would be tried for each cause, in order.
        ladder: BTreeMap<&'static str, Vec<String>> = Cause::ALL.into_iter().map(rungs).collect(),
    }
}

/// A rule, and whether it holds.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RuleItem {
    name: String,
    /// `holds`, `fails`, or `not_reached`: an earlier rule holds.
    verdict: &'static str,
    /// The first condition that is not met, as in the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    condition: Option<String>,
    /// What is so instead: the rest of a sentence that begins with "it".
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<String>,
}

/// Explains how a message would be routed: which rule holds and why, who would answer, and what would be owed. Stores nothing.
#[utoipa::path(post, path = "/route/explain", operation_id = "explain_route", request_body(content = PossibleMessage),
    responses((status = 200, description = "How it would be routed", body = RouteItem), ReadingOne))]
pub(super) async fn explain(State(app): Shared, operation: Operation<PossibleMessage>) -> Answer<RouteItem> {
    let channel = ChannelId::from_stored(&operation.body.channel);
    let is_there = app.engine.channels().iter().any(|(known, _)| *known == channel);
    if !is_there || !operation.caller().may_see(&channel) {
        return Err(ApiError::NotFound("there is no channel with this name"));
    }
    let event = event(channel, &operation.body, &app)?;
    let at = rfc3339(event.received_at);
    Ok(Json(RouteItem { at, ..RouteItem::of(app.engine.explain_route(event).await?) }))
}

fn event(channel: ChannelId, message: &PossibleMessage, app: &App) -> Result<InboundEvent, ApiError> {
    let PossibleMessage { chat, thread, person, group, text, at, .. } = message;
    let person = &person.as_ref().map(|person| id_on(&channel, person, app));
    let chat_id = match (chat, person) {
        (Some(chat), _) => chat,
        (None, Some(person)) if !group => person,
        (None, Some(_)) => {
            return Err(ApiError::BadRequest("a group has an id of its own: give its `chat`".to_owned()));
        }
        (None, None) => return Err(ApiError::BadRequest("give `chat`, `person` or both".to_owned())),
    };
    let at = match at {
        Some(at) => parse(at)
            .ok_or_else(|| ApiError::BadRequest("`at` must be a time such as 2026-05-01T12:00:00Z".to_owned()))?,
        None => app.clock.now(),
    };
    let address = ConversationRef::new(channel, chat_id);
    let address = thread.iter().fold(address, |address, thread| address.in_thread(thread));
    let (kind, directed) =
        if *group { (ChatKind::Group, Directed::Mention) } else { (ChatKind::Direct, Directed::DirectChat) };
    let id = person.as_ref().unwrap_or(chat_id).clone();
    let sender = Sender { id, name: None, username: None, kind: SenderKind::Person };
    let text = text.clone().unwrap_or_default();
    Ok(InboundEvent { directed, text, ..InboundEvent::new(address, kind, String::new(), sender, at) })
}

/// The id on a channel of the known person with this name; an id stays as it is.
fn id_on(channel: &ChannelId, person: &str, app: &App) -> String {
    let called = app.engine.people().called(person);
    let mut identities = called.iter().flat_map(|person| &person.identities).map(|known| &known.identity);
    let known = identities.find(|identity| identity.channel == *channel);
    known.map_or_else(|| person.to_owned(), |identity| identity.id.clone())
}

impl RuleItem {
    fn of(name: String, verdict: RuleVerdict) -> Self {
        match verdict {
            RuleVerdict::Holds => Self { name, verdict: "holds", condition: None, found: None },
            RuleVerdict::NotReached => Self { name, verdict: "not_reached", condition: None, found: None },
            RuleVerdict::Fails { condition, found } => {
                Self { name, verdict: "fails", condition: Some(condition), found: Some(found) }
            }
        }
    }
}
