//! What a caller sent: payload → message → event. Pure.
//!
//! To take another media type: a variant of [`Media`], its line in [`Media::of`], and its reader.

use std::{borrow::Cow, sync::Arc, time::Duration};

use axum::http::StatusCode;
use rejoinder_core::{
    Attachment, ChannelId, ChatKind, ConversationRef, Directed, EventId, InboundEvent, Sender, SenderKind, Timestamp,
};
use rejoinder_kit::Problem;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use url::Url;

use crate::quoted::parameter;

mod form;
mod json;
mod multipart;

/// The longest name of a sender or a conversation, in characters.
pub(crate) const MAX_NAME: usize = 256;

/// The most attachments of one message.
pub(crate) const MAX_ATTACHMENTS: usize = 32;

/// The most fields of one form, those that are let pass included.
const MAX_FIELDS: usize = 64;

/// The longest address of an attachment, in bytes.
pub(crate) const MAX_URL: usize = 4096;

/// The sender of callers that name none.
const CALLER: &str = "caller";

/// What a body says, whatever form it came in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(expecting = "an object")]
pub(crate) struct Message {
    /// What is asked. May be empty only when there are attachments.
    #[serde(rename = "message")]
    pub(crate) text: Option<String>,
    /// Who asks, in the caller's own terms: the conversation, too, when none is named.
    pub(crate) sender: Option<String>,
    /// What it belongs to: messages of one conversation are answered in order, and the agent remembers.
    pub(crate) conversation: Option<String>,
    /// Files, by their addresses.
    #[serde(default)]
    pub(crate) attachments: Option<Vec<File>>,
    /// How many fields of a form were taken so far.
    #[serde(skip)]
    fields: usize,
}

/// A file, by its address.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(expecting = "an object with a `url`")]
pub(crate) struct File {
    /// Its name; the end of its address when there is none.
    name: Option<String>,
    /// Its IANA media type.
    media_type: Option<String>,
    /// Where it is. The gateway does not fetch it.
    url: String,
    /// What is unknown is let pass; and a struct with this in it is never read from a bare list.
    #[serde(flatten)]
    _rest: Rest,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
struct Rest {}

/// A message that may become an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    text: String,
    sender: Option<String>,
    conversation: Option<String>,
    attachments: Vec<Attachment>,
    raw: String,
}

/// What identifies a request, so that the same one, sent again, is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key<'a> {
    /// The caller's `Idempotency-Key`.
    Idempotency(&'a str),
    /// The `webhook-id` that was signed along with the body.
    WebhookId(&'a str),
}

/// What an event needs to know besides what the caller said.
pub(crate) struct Context<'a> {
    /// The hook's channel.
    pub(crate) channel: &'a ChannelId,
    /// The hook's conversation for callers that name none.
    pub(crate) conversation: Option<&'a str>,
    /// What identifies the request.
    pub(crate) key: Option<Key<'a>>,
    /// How long the caller waits; zero: not at all.
    pub(crate) wait: Duration,
    /// When it was received.
    pub(crate) now: Timestamp,
}

/// Reads a body, as its `Content-Type` says; without one, a body that opens with `{` is JSON and any
/// other is text.
///
/// # Errors
/// What is wrong with it, and where.
pub(crate) fn read(content_type: Option<&str>, body: &[u8]) -> Result<Asked, Problem> {
    let media = Media::of(content_type)?;
    let body = std::str::from_utf8(body).map_err(|error| {
        let hint = match media {
            Some(Media::Multipart { .. }) => "; files are named by their address, in `attachments`",
            _ => "",
        };
        not_utf8(format!("the body is not UTF-8 at byte {}{hint}", error.valid_up_to() + 1))
    })?;
    // Windows tools like to write one.
    let content = body.strip_prefix('\u{feff}').unwrap_or(body);
    let message = match media {
        Some(Media::Json) => json::read(content)?,
        Some(Media::Form) => form::read(content)?,
        Some(Media::Multipart { boundary }) => multipart::read(content, &boundary)?,
        None if content.trim_start().starts_with('{') => json::read(content)?,
        Some(Media::Text) | None => text(content),
    };
    message.checked(body)
}

/// The media types that are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Media {
    Json,
    Text,
    Form,
    Multipart { boundary: String },
}

impl Media {
    /// What `Content-Type` says; `None` when it says nothing.
    fn of(content_type: Option<&str>) -> Result<Option<Self>, Problem> {
        let Some(value) = content_type.map(str::trim).filter(|value| !value.is_empty()) else { return Ok(None) };
        let essence = value.split_once(';').map_or(value, |(essence, _)| essence).trim();
        if let Some(charset) = parameter(value, "charset")
            && !["utf-8", "utf8", "us-ascii"].iter().any(|known| charset.eq_ignore_ascii_case(known))
        {
            return Err(unsupported("the charset must be utf-8"));
        }
        if essence.eq_ignore_ascii_case("application/json") || ends_with_ignore_case(essence, "+json") {
            Ok(Some(Self::Json))
        } else if essence.eq_ignore_ascii_case("text/plain") {
            Ok(Some(Self::Text))
        } else if essence.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            Ok(Some(Self::Form))
        } else if essence.eq_ignore_ascii_case("multipart/form-data") {
            let boundary = parameter(value, "boundary").filter(|boundary| !boundary.is_empty() && boundary.len() <= 70);
            let boundary = boundary.ok_or_else(|| unsupported("multipart/form-data must name its boundary"))?;
            Ok(Some(Self::Multipart { boundary: boundary.to_owned() }))
        } else {
            Err(unsupported(
                "the body must be application/json, text/plain, application/x-www-form-urlencoded or multipart/form-data",
            ))
        }
    }
}

fn ends_with_ignore_case(text: &str, end: &str) -> bool {
    text.len().checked_sub(end.len()).and_then(|at| text.get(at..)).is_some_and(|tail| tail.eq_ignore_ascii_case(end))
}

/// A plain text, without the line end that a shell puts after it.
fn text(content: &str) -> Message {
    let text = content.strip_suffix('\n').map_or(content, |line| line.strip_suffix('\r').unwrap_or(line));
    Message { text: Some(text.to_owned()), ..Message::default() }
}

impl Message {
    /// Takes one field of a form.
    fn take(&mut self, name: &str, value: String) -> Result<(), Problem> {
        self.fields += 1;
        if self.fields > MAX_FIELDS {
            return Err(Problem::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "too-many-fields",
                "The form has too many fields",
                format!("a form may have at most {MAX_FIELDS} fields"),
            ));
        }
        let slot = match name {
            "message" => &mut self.text,
            "sender" => &mut self.sender,
            "conversation" => &mut self.conversation,
            // An empty field of a form is one that was not filled in.
            "attachments" if value.is_empty() => return Ok(()),
            "attachments" => {
                self.attachments.get_or_insert_default().push(File::at(value));
                return Ok(());
            }
            _ => return Ok(()),
        };
        if slot.replace(value).is_some() {
            return Err(invalid("stands in the form twice", name));
        }
        Ok(())
    }

    fn checked(self, raw: &str) -> Result<Asked, Problem> {
        let text = self.text.unwrap_or_default();
        if text.contains('\0') {
            return Err(invalid("must not contain the character U+0000", "message"));
        }
        let files = self.attachments.unwrap_or_default();
        if files.len() > MAX_ATTACHMENTS {
            return Err(invalid(format!("must be at most {MAX_ATTACHMENTS}"), "attachments"));
        }
        let attachments =
            files.into_iter().enumerate().map(|(at, file)| file.checked(at)).collect::<Result<Vec<_>, _>>()?;
        if text.trim().is_empty() && attachments.is_empty() {
            return Err(Problem::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "empty-message",
                "The message is empty",
                "`message` must hold what is asked",
            )
            .about("message"));
        }
        Ok(Asked {
            text,
            sender: name(self.sender, "sender")?,
            conversation: name(self.conversation, "conversation")?,
            attachments,
            raw: raw.to_owned(),
        })
    }
}

impl File {
    fn at(url: String) -> Self {
        Self { name: None, media_type: None, url, _rest: Rest {} }
    }

    fn checked(self, at: usize) -> Result<Attachment, Problem> {
        let field = |name: &str| format!("attachments[{at}].{name}");
        if self.url.len() > MAX_URL {
            return Err(invalid(format!("must have at most {MAX_URL} bytes"), field("url")));
        }
        let url = Url::parse(&self.url).map_err(|_| invalid("must be a whole address, as https://…", field("url")))?;
        let media_type = name(self.media_type, &field("media_type"))?;
        let given_name = name(self.name, &field("name"))?;
        Ok(Attachment {
            name: given_name.unwrap_or_else(|| {
                let last = url.path_segments().and_then(|mut segments| segments.next_back());
                last.filter(|last| !last.is_empty()).unwrap_or("attachment").chars().take(MAX_NAME).collect()
            }),
            media_type: media_type.unwrap_or_else(|| "application/octet-stream".to_owned()),
            url: self.url,
        })
    }
}

/// A name that may be absent; an empty one is absent.
fn name(value: Option<String>, field: &str) -> Result<Option<String>, Problem> {
    let Some(value) = value else { return Ok(None) };
    if value.chars().count() > MAX_NAME {
        return Err(invalid(format!("must have at most {MAX_NAME} characters"), field));
    }
    if value.chars().any(char::is_control) {
        return Err(invalid("must not contain control characters", field));
    }
    Ok(Some(value).filter(|value| !value.trim().is_empty()))
}

impl Asked {
    /// The event that this is.
    ///
    /// Its conversation is the one that was named, else its sender, else the hook's own, else one that
    /// it shares with nothing.
    pub(crate) fn into_event(self, context: &Context<'_>) -> InboundEvent {
        let external_id = match context.key {
            Some(key) => key.external_id(context.channel),
            None => EventId::new(context.now).to_string(),
        };
        let named = self.conversation.as_deref().or(self.sender.as_deref()).or(context.conversation);
        let chat: Arc<str> = named.map_or_else(|| format!("once-{external_id}").into(), Arc::from);
        InboundEvent {
            directed: Directed::Asked,
            text: self.text,
            attachments: self.attachments,
            patience: Some(context.wait).filter(|wait| !wait.is_zero()),
            raw: self.raw,
            ..InboundEvent::new(
                ConversationRef { channel: context.channel.clone(), chat, thread: None },
                ChatKind::Direct,
                external_id,
                Sender {
                    id: self.sender.unwrap_or_else(|| CALLER.to_owned()),
                    name: None,
                    username: None,
                    kind: SenderKind::Person,
                },
                context.now,
            )
        }
    }
}

impl Key<'_> {
    /// What the request is deduplicated by: the same length whatever the caller's key is, and nothing
    /// that a caller could choose to meet somebody else's.
    fn external_id(self, channel: &ChannelId) -> String {
        let (kind, key) = match self {
            Self::Idempotency(key) => ("idempotency-key", key),
            Self::WebhookId(id) => ("webhook-id", id),
        };
        let digest = Sha256::new()
            .chain_update(channel.as_str())
            .chain_update("\0")
            .chain_update(kind)
            .chain_update("\0")
            .chain_update(key);
        hex::encode(digest.finalize())
    }
}

fn invalid(detail: impl Into<String>, field: impl Into<String>) -> Problem {
    let (detail, field) = (detail.into(), field.into());
    let detail = format!("`{field}` {detail}");
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid-field", "A field cannot be used", detail).about(field)
}

fn not_utf8(detail: impl Into<Cow<'static, str>>) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "not-utf-8", "The body is not UTF-8", detail)
}

fn unsupported(detail: &'static str) -> Problem {
    Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported-media-type", "The body's type is not taken", detail)
}

#[cfg(test)]
mod tests;
