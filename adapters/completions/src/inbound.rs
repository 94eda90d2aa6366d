//! Turns a request's body into an [`InboundEvent`]. No I/O.

use std::time::Duration;

use axum::http::StatusCode;
use rejoinder_core::{
    Attachment, Brief, CallerTrace, ChannelId, ChatKind, ConversationRef, Directed, EarlierLine, EventId, FileLimits,
    InboundEvent, Language, Sender, SenderKind, Timestamp,
};
use rejoinder_kit::{body_too_large, files_too_large};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::{access::TokenHolder, error::ApiError, models::Models};

mod content;

use content::Content;

/// The longest `user`, in characters.
const MAX_USER: usize = 256;

/// How many of the latest earlier lines are kept, and how many bytes.
const MAX_LINES: usize = 1000;
const MAX_SAID: usize = 256 << 10;

/// The longest instructions of a program, in bytes.
const MAX_INSTRUCTIONS: usize = 64 << 10;

/// How many bytes of the options are kept for the operator.
const MAX_OPTIONS: usize = 4 << 10;

/// How many options an answer names as ignored, and how long a name is at most, in characters.
const MAX_IGNORED: usize = 32;
const MAX_OPTION_NAME: usize = 64;

/// The fields of a body that are read. All others are ignored, apart from those that [`refuse_options`] refuses.
#[derive(Debug, Deserialize)]
#[serde(expecting = "an object")]
struct Body {
    model: String,
    messages: Vec<Message>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    user: Option<String>,
    #[serde(flatten)]
    options: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(expecting = "an object")]
struct StreamOptions {
    include_usage: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(expecting = "an object")]
struct Message {
    role: String,
    #[serde(default)]
    content: Value,
}

/// A request whose fields were checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    /// As it was asked for.
    pub(crate) model: String,
    pub(crate) streams: bool,
    /// Whether a stream ends with the tokens that were used.
    pub(crate) wants_usage: bool,
    /// The fields that change nothing.
    pub(crate) ignored: Vec<String>,
    text: String,
    attachments: Vec<Attachment>,
    brief: Brief,
    user: Option<String>,
    raw: String,
}

/// What an event needs besides the request.
pub(crate) struct Context<'a> {
    pub(crate) channel: &'a ChannelId,
    pub(crate) holder: &'a TokenHolder,
    /// The caller's `Idempotency-Key`.
    pub(crate) key: Option<&'a str>,
    pub(crate) wait: Duration,
    pub(crate) trace: Option<CallerTrace>,
    pub(crate) language: Option<Language>,
    pub(crate) now: Timestamp,
}

/// How large a body may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// All of it but its files, in bytes.
    pub(crate) body: usize,
    pub(crate) files: FileLimits,
}

/// Reads a body. The error names what is wrong, and where.
pub(crate) fn read(body: &[u8], models: &Models, limits: Limits) -> Result<Question, ApiError> {
    let length = body.len();
    // A value takes many times its own bytes in memory, and only the text of a file may be long.
    if length > limits.body && outside_texts(body) > limits.body {
        return Err(body_too_large(limits.body).into());
    }
    let mut reader = serde_json::Deserializer::from_slice(body);
    let body: Body = serde_path_to_error::deserialize(&mut reader).map_err(|error| not_readable(&error))?;
    reader.end().map_err(|error| not_json(&error))?;
    let Body { model, messages, stream, stream_options, user, options } = body;
    refuse_options(&options)?;
    let (agent, own_model) = models.find(&model).ok_or_else(|| ApiError::unknown_model(&model))?;
    let Said { instructions, before, question, written } = Said::of(messages)?;
    if length.saturating_sub(written) > limits.body {
        return Err(body_too_large(limits.body).into());
    }
    if question.attachments.len() > limits.files.per_message {
        let message = format!("the last message must have at most {} files", limits.files.per_message);
        return Err(ApiError::invalid("messages", message));
    }
    if question.in_files > limits.files.max {
        return Err(files_too_large(limits.files.max).into());
    }
    let user = user_name(user)?;
    // The gateway remembers the conversations of people that are named.
    let said_before = user.is_none().then(|| latest(before));
    let ignored = ignored(&options);
    let raw = raw(&model, user.as_deref(), options);
    Ok(Question {
        model,
        streams: stream.unwrap_or_default(),
        wants_usage: stream_options.and_then(|options| options.include_usage).unwrap_or_default(),
        ignored,
        text: question.text,
        attachments: question.attachments,
        brief: Brief { agent: Some(agent), model: own_model, instructions, said_before },
        user,
        raw,
    })
}

/// How many bytes of JSON are not inside a text: each value has one at least.
fn outside_texts(json: &[u8]) -> usize {
    let (mut is_inside, mut is_escaped) = (false, false);
    let is_outside = |byte: &&u8| {
        let is_quote = **byte == b'"' && !is_escaped;
        is_escaped = is_inside && **byte == b'\\' && !is_escaped;
        is_inside ^= is_quote;
        is_quote || !is_inside
    };
    json.iter().filter(is_outside).count()
}

fn not_readable(error: &serde_path_to_error::Error<serde_json::Error>) -> ApiError {
    let path = error.path().to_string();
    let error = error.inner();
    match error.classify() {
        serde_json::error::Category::Data => {
            let wrong =
                ApiError::new(StatusCode::BAD_REQUEST, "invalid_value", format!("the body cannot be read: {error}"));
            if path == "." { wrong } else { wrong.about(path) }
        }
        _ => not_json(error),
    }
}

fn not_json(error: &serde_json::Error) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, "not_json", format!("the body is not JSON: {error}"))
}

/// Refuses options that an agent cannot honour. Options that only shape an answer are ignored.
fn refuse_options(options: &Map<String, Value>) -> Result<(), ApiError> {
    let given = |name: &str| options.get(name).filter(|value| !value.is_null());
    if given("n").is_some_and(|n| *n != json!(1)) {
        return Err(ApiError::unsupported("n", "`n` must be 1: a turn has one answer"));
    }
    for name in ["tool_choice", "function_call"] {
        if given(name).is_some_and(|choice| !matches!(choice.as_str(), Some("auto" | "none"))) {
            let message =
                format!("`{name}` must be \"auto\" or \"none\": agents use their own tools, and call none of yours");
            return Err(ApiError::unsupported(name, message));
        }
    }
    if given("response_format").is_some_and(|format| format["type"] != "text") {
        let message = "`response_format` must be text: agents promise no other format";
        return Err(ApiError::unsupported("response_format", message));
    }
    let is_text = |modalities: &Value| modalities.as_array().is_some_and(|all| all.iter().all(|one| one == "text"));
    if given("modalities").is_some_and(|modalities| !is_text(modalities)) {
        return Err(ApiError::unsupported("modalities", "`modalities` must be [\"text\"]: agents answer in text"));
    }
    Ok(())
}

/// The names of the options that change nothing. What [`refuse_options`] has checked asks for what agents do anyway.
fn ignored(options: &Map<String, Value>) -> Vec<String> {
    let is_met = |name: &str| ["n", "response_format", "modalities"].contains(&name);
    let given = options.iter().filter(|(name, value)| !value.is_null() && !is_met(name));
    given.map(|(name, _)| name.chars().take(MAX_OPTION_NAME).collect()).take(MAX_IGNORED).collect()
}

/// What the messages of a request say.
struct Said {
    /// What the program wants of the agent.
    instructions: Option<String>,
    /// What was said before the last message of the user.
    before: Vec<EarlierLine>,
    /// The last message of the user.
    question: Content,
    /// How many bytes of the body are files, also those of earlier messages.
    written: usize,
}

impl Said {
    fn of(messages: Vec<Message>) -> Result<Self, ApiError> {
        let (mut instructions, mut before, mut question, mut written) = (Vec::new(), Vec::new(), None, 0);
        for (at, Message { role, content }) in messages.into_iter().enumerate() {
            let read = || {
                let content = Content::read(content, &format!("messages[{at}].content"))?;
                written += content.written;
                Ok::<_, ApiError>(content)
            };
            match &*role {
                "system" | "developer" => instructions.push(read()?.text),
                "user" => {
                    before.extend(question.replace(read()?).and_then(|earlier: Content| earlier.line(false)));
                }
                "assistant" => {
                    before.extend(question.take().and_then(|earlier| earlier.line(false)));
                    before.extend(read()?.line(true));
                }
                // The agent has tools of its own, and did not call these.
                "tool" | "function" => before.extend(question.take().and_then(|earlier| earlier.line(false))),
                _ => {
                    let message = format!("`{role}` is no role: use system, developer, user or assistant");
                    return Err(ApiError::invalid(format!("messages[{at}].role"), message));
                }
            }
        }
        let question = question.ok_or_else(|| {
            ApiError::invalid("messages", "the last message must be of the role user: it is answered")
        })?;
        if question.text.trim().is_empty() && question.attachments.is_empty() {
            return Err(ApiError::invalid("messages", "the last message is empty"));
        }
        instructions.retain(|text| !text.trim().is_empty());
        let instructions = Some(instructions.join("\n\n")).filter(|text| !text.is_empty());
        if instructions.as_ref().is_some_and(|text| text.len() > MAX_INSTRUCTIONS) {
            let message =
                format!("the messages of the roles system and developer have more than {MAX_INSTRUCTIONS} bytes");
            return Err(ApiError::invalid("messages", message));
        }
        Ok(Self { instructions, before, question, written })
    }
}

/// The latest lines that are kept.
fn latest(mut lines: Vec<EarlierLine>) -> Vec<EarlierLine> {
    let mut bytes = 0;
    let kept = lines.iter().rev().take(MAX_LINES).take_while(|line| {
        bytes += line.text.len();
        bytes <= MAX_SAID
    });
    let kept = kept.count();
    lines.split_off(lines.len() - kept)
}

/// The name of the person; a blank one counts as absent.
fn user_name(user: Option<String>) -> Result<Option<String>, ApiError> {
    let Some(user) = user.filter(|user| !user.trim().is_empty()) else { return Ok(None) };
    if user.chars().count() > MAX_USER {
        return Err(ApiError::invalid("user", format!("`user` must have at most {MAX_USER} characters")));
    }
    if user.chars().any(char::is_control) {
        return Err(ApiError::invalid("user", "`user` must not contain control characters"));
    }
    Ok(Some(user))
}

/// What the operator sees of the request: all but its messages, which are stored with the event.
fn raw(model: &str, user: Option<&str>, mut options: Map<String, Value>) -> String {
    options.insert("model".to_owned(), model.into());
    options.extend(user.map(|user| ("user".to_owned(), user.into())));
    let whole = Value::Object(options).to_string();
    if whole.len() > MAX_OPTIONS { json!({ "model": model, "user": user }).to_string() } else { whole }
}

impl Question {
    /// Makes the event. Its conversation is that of the person whom the caller names, else a new one for this call alone.
    pub(crate) fn into_event(self, context: &Context<'_>) -> InboundEvent {
        let Context { channel, holder, key, wait, .. } = *context;
        let external_id = key.map_or_else(|| EventId::new(context.now).to_string(), |key| hashed(channel, holder, key));
        let user = self.user.as_deref();
        let chat = user.map_or_else(|| holder.own_conversation(&external_id), |user| holder.conversation(user));
        let sender = Sender { id: holder.sender(user), name: self.user, username: None, kind: SenderKind::Person };
        InboundEvent {
            directed: Directed::Asked,
            text: self.text,
            attachments: self.attachments,
            patience: Some(wait),
            brief: Some(Box::new(self.brief)),
            language: context.language,
            trace: context.trace.clone(),
            raw: self.raw,
            ..InboundEvent::new(
                ConversationRef { channel: channel.clone(), chat: chat.into(), thread: None },
                ChatKind::Direct,
                external_id,
                sender,
                context.now,
            )
        }
    }
}

/// The id that a request with a key is recognised by. Hashing gives it a fixed length, and keeps the keys of different
/// channels and tokens apart.
fn hashed(channel: &ChannelId, holder: &TokenHolder, key: &str) -> String {
    hex::encode(Sha256::digest(format!("{channel}\0{holder}\0{key}")))
}

#[cfg(test)]
mod tests;
