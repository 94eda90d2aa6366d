//! Reads a model's call of a tool. No I/O.

use std::{collections::HashSet, ops::RangeInclusive, time::Duration};

use rejoinder_core::{
    AgentTurn, ApprovalRequest, Attachment, Choices, ScheduleCall, Support, Timestamp, is_blank, store::SearchQuery,
};
use serde::Deserialize;

use super::{
    file::{self, SEND_FILE},
    number::Number,
    schedule,
};

/// The names of the tools.
pub(super) const REACT: &str = "react";
pub(crate) const ASK: &str = "ask";
pub(crate) const STAY_SILENT: &str = "stay_silent";
pub(super) const SEND: &str = "send";
pub(super) const DEFER: &str = "defer";
pub(super) const SCHEDULE: &str = "schedule";
pub(super) const SEARCH_HISTORY: &str = "search_history";
pub(crate) const REQUEST_APPROVAL: &str = "request_approval";

/// How the kinds of approvals begin that no agent names: of calls of tools of MCP servers, and of permissions of coding agents. Approvers
/// read of them what asks.
const FOREIGN_KINDS: [&str; 2] = ["mcp.", "acp."];

const MIN_DEFER: Duration = Duration::from_secs(1);

/// How many characters of a note or reason are kept.
const MAX_NOTE: usize = 1_000;

/// How many characters of a query are read.
const MAX_QUERY: usize = 500;

/// How many choices a question has.
const CHOICES: RangeInclusive<usize> = 2..=8;

/// How many characters a choice may have: as many as fit on a button of Discord.
pub(super) const MAX_CHOICE: usize = 80;

/// The same of a question that a run waits for: the core keeps as many.
pub(super) const MAX_WAITING_CHOICE: usize = 64;

/// How long a question can be open at least, and at most, if it expires; in seconds.
const EXPIRY: (f64, f64) = (60.0, 30.0 * 24.0 * 3600.0);

/// A tool call as the model wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ToolCall {
    pub(crate) id: String,
    pub(crate) name: String,
    /// Usually JSON, but the model may write anything.
    pub(crate) arguments: String,
}

impl ToolCall {
    /// The name to send back: servers refuse an empty one.
    pub(crate) fn given_name(&self) -> &str {
        if self.name.is_empty() { "unnamed" } else { &self.name }
    }

    /// The arguments to send back, as a JSON object; an empty one if they are none: servers parse them again, and some fail
    /// on invalid ones.
    pub(crate) fn object(&self) -> &str {
        let is_object = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&self.arguments).is_ok();
        if is_object { &self.arguments } else { "{}" }
    }
}

/// A valid tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Call {
    /// The emoji.
    React(String),
    /// The question.
    Ask { question: String, choices: Choices },
    /// What somebody must approve before it is done.
    Approval(ApprovalRequest),
    /// `note` is shown to the person now; the answer is owed at `due`.
    Defer { note: Option<String>, due: Timestamp },
    /// The reason.
    StaySilent(String),
    /// The answer's text.
    Send(String),
    /// A file of the answer.
    File(Attachment),
    /// What it wants of the schedules of this chat.
    Schedule(ScheduleCall),
    /// What it searches for in what was said here.
    Search(SearchQuery),
}

#[derive(Deserialize)]
struct React {
    emoji: String,
}

#[derive(Deserialize)]
struct Ask {
    question: String,
    choices: Vec<String>,
    free_text: Option<bool>,
    expires_in: Option<Number>,
    /// Whether the call waits for the answer, where it can.
    wait: Option<bool>,
}

#[derive(Deserialize)]
struct RequestApproval {
    action: String,
    details: Option<String>,
    kind: Option<String>,
}

#[derive(Deserialize)]
struct Defer {
    note: Option<String>,
    minutes: Option<Number>,
    seconds: Option<Number>,
    until: Option<String>,
}

#[derive(Deserialize)]
struct StaySilent {
    reason: Option<String>,
}

#[derive(Deserialize)]
struct Send {
    text: String,
}

#[derive(Deserialize)]
struct SearchHistory {
    query: String,
}

impl Call {
    /// Parses a tool call, made now. The error is the text to return to the model if the call is invalid.
    pub(super) fn parse(name: &str, arguments: &str, turn: &AgentTurn, now: Timestamp) -> Result<Self, String> {
        let capabilities = &turn.place.capabilities;
        let arguments = if arguments.trim().is_empty() { "{}" } else { arguments };
        match name {
            REACT if can_react(turn) => {
                let React { emoji } = read(arguments)?;
                let emoji = emoji.trim();
                match &capabilities.allowed_reactions {
                    _ if emoji.is_empty() => Err("error: `emoji` is empty".to_owned()),
                    Some(allowed) if !allowed.iter().any(|one| one == emoji) => {
                        Err(format!("error: this emoji is not allowed here; use one of {}", allowed.join(" ")))
                    }
                    None if !looks_like_emoji(emoji) => {
                        Err("error: `emoji` must be one emoji character, such as 👍".to_owned())
                    }
                    _ => Ok(Self::React(emoji.to_owned())),
                }
            }
            REQUEST_APPROVAL if turn.rights.may_ask_approval => {
                let RequestApproval { action, details, kind } = read(arguments)?;
                if is_blank(&action) {
                    return Err("error: `action` is empty".to_owned());
                }
                let is_foreign = |kind: &str| FOREIGN_KINDS.iter().any(|foreign| kind.trim().starts_with(foreign));
                if kind.as_deref().is_some_and(is_foreign) {
                    return Err(format!(
                        "error: kinds that begin with {} are not yours: call the tool itself, or leave `kind` out",
                        FOREIGN_KINDS.join(" or ")
                    ));
                }
                Ok(Self::Approval(ApprovalRequest { details, kind, ..ApprovalRequest::action(action.trim()) }))
            }
            SCHEDULE if turn.rights.may_schedule => {
                Ok(Self::Schedule(read::<schedule::Arguments>(arguments)?.call(now)?))
            }
            ASK => {
                let (question, choices) = read::<Ask>(arguments)?.question(now)?;
                Ok(Self::Ask { question, choices })
            }
            DEFER if turn.rights.may_defer.left == 0 => Err("error: you may not put this off; answer now".to_owned()),
            DEFER => {
                let defer: Defer = read(arguments)?;
                let due = defer.due(now, turn.rights.may_defer.longest)?;
                let note = defer.note.filter(|note| !note.trim().is_empty()).map(|note| shortened(&note));
                Ok(Self::Defer { note, due })
            }
            STAY_SILENT => {
                let StaySilent { reason } = read(arguments)?;
                let reason = reason.filter(|reason| !reason.trim().is_empty());
                Ok(Self::StaySilent(reason.map_or_else(|| "chosen, no reason given".to_owned(), |it| shortened(&it))))
            }
            SEND => match read(arguments)? {
                Send { text } if text.trim().is_empty() => Err("error: `text` is empty".to_owned()),
                Send { text } => Ok(Self::Send(text)),
            },
            SEND_FILE => Ok(Self::File(read::<file::Arguments>(arguments)?.file()?)),
            SEARCH_HISTORY => {
                let SearchHistory { query } = read(arguments)?;
                let query: String = query.chars().take(MAX_QUERY).collect();
                SearchQuery::parse(&query)
                    .map(Self::Search)
                    .ok_or_else(|| "error: `query` has no word in it".to_owned())
            }
            _ => Err("error: there is no such tool; answer the person in plain text".to_owned()),
        }
    }
}

/// The question for whose answer a call of [`ASK`] waits, made now; `None`: the call does not wait, and the question ends the run.
///
/// # Errors
/// Says for the model why it cannot wait.
pub(super) fn waiting_question(
    arguments: &str,
    turn: &AgentTurn,
    now: Timestamp,
) -> Result<Option<ApprovalRequest>, String> {
    let ask: Ask = read(arguments)?;
    if ask.wait != Some(true) {
        return Ok(None);
    }
    if !turn.rights.may_ask_person {
        return Err("error: you cannot wait for an answer in this turn: leave `wait` out, and end your turn".to_owned());
    }
    if ask.expires_in.is_some() {
        return Err("error: a question that you wait for has no `expires_in`: leave out one of them".to_owned());
    }
    let (question, choices) = ask.question(now)?;
    if choices.options.iter().any(|choice| choice.chars().count() > MAX_WAITING_CHOICE) {
        return Err(format!(
            "error: a choice of a question that you wait for has at most {MAX_WAITING_CHOICE} characters; say more in `question`"
        ));
    }
    Ok(Some(ApprovalRequest::question(question, choices)))
}

impl Ask {
    /// The question and its choices.
    fn question(self, now: Timestamp) -> Result<(String, Choices), String> {
        let Self { question, choices, free_text, expires_in, .. } = self;
        let (question, options) = (question.trim().to_owned(), self::choices(&choices)?);
        if question.is_empty() {
            return Err("error: `question` is empty".to_owned());
        }
        let expires = expires_in.map(|number| {
            let seconds = number.value().map(|seconds| seconds.clamp(EXPIRY.0, EXPIRY.1));
            let after = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            after.map(|after| now + after).ok_or_else(|| "error: `expires_in` is no number of seconds".to_owned())
        });
        let expires = expires.transpose()?;
        Ok((question, Choices { options, free_text: free_text.unwrap_or(true), expires }))
    }
}

/// The choices of a question, if they can be told apart and fit on buttons.
fn choices(choices: &[String]) -> Result<Vec<String>, String> {
    let choices: Vec<String> = choices.iter().map(|choice| choice.trim().to_owned()).collect();
    if !CHOICES.contains(&choices.len()) {
        return Err(format!("error: `choices` must have 2 to 8 entries, not {}", choices.len()));
    }
    let mut seen = HashSet::new();
    for choice in &choices {
        if choice.is_empty() {
            return Err("error: a choice is empty".to_owned());
        }
        if choice.chars().count() > MAX_CHOICE {
            return Err(format!("error: a choice has at most {MAX_CHOICE} characters; say more in `question`"));
        }
        if !seen.insert(choice.to_lowercase()) {
            return Err(format!("error: the choice `{choice}` is listed twice"));
        }
    }
    Ok(choices)
}

impl Defer {
    fn due(&self, now: Timestamp, longest: Duration) -> Result<Timestamp, String> {
        let minutes = self.minutes.as_ref().and_then(Number::value).unwrap_or(0.0);
        let seconds = self.seconds.as_ref().and_then(Number::value).unwrap_or(0.0);
        let after = match &self.until {
            _ if minutes > 0.0 || seconds > 0.0 => Duration::try_from_secs_f64(minutes.mul_add(60.0, seconds)).ok(),
            Some(until) if !until.trim().is_empty() => {
                let until: jiff::Timestamp = until
                    .trim()
                    .parse()
                    .map_err(|_| "error: `until` is not a time in RFC 3339, such as 2030-01-31T09:00:00Z".to_owned())?;
                Some(Timestamp::from_millis(until.as_millisecond()).since(now))
            }
            _ => return Err("error: say when: `minutes`, `seconds` or `until`".to_owned()),
        };
        match after {
            Some(after) if after >= MIN_DEFER && after <= longest => Ok(now + after),
            _ => Err(format!(
                "error: the time must be at least a second from now, and {} at the latest",
                rfc3339(now + longest)
            )),
        }
    }
}

/// A time, as the model reads it.
pub(crate) fn rfc3339(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.as_millis()).map_or_else(|_| "later".to_owned(), |at| at.to_string())
}

fn read<'a, T: Deserialize<'a>>(arguments: &'a str) -> Result<T, String> {
    serde_json::from_str(arguments).map_err(|error| format!("error: the arguments are not as described: {error}"))
}

/// Whether a message can have a reaction.
pub(crate) fn can_react(turn: &AgentTurn) -> bool {
    turn.place.capabilities.reactions != Support::No
}

/// Whether `text` may be an emoji: emoji contain no letters, and even the longest (a family, the flag of a region) have only
/// a few characters.
pub(crate) fn looks_like_emoji(text: &str) -> bool {
    text.chars().count() <= 16 && !text.contains(|c: char| c.is_ascii_alphabetic())
}

/// A note or a reason, of a length that is kept.
pub(crate) fn shortened(text: &str) -> String {
    text.trim().chars().take(MAX_NOTE).collect()
}
