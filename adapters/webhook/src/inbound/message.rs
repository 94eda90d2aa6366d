//! A message of the body, how it is checked, and the event that it becomes.

use std::{borrow::Cow, sync::Arc, time::Duration};

use axum::http::StatusCode;
use bech32::{Bech32, primitives::decode::CheckedHrpstring};
use rejoinder_core::{
    Attachment, CallerTrace, ChannelId, ChatKind, CommandHelp, ConversationRef, Directed, EventId, FileLimits,
    InboundEvent, Language, Sender, SenderKind, Timestamp, Transcript, Unheard, Voice, is_command,
};
use rejoinder_kit::{Problem, data_url, files_too_large};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use url::Url;

/// The longest name or media type, in characters.
pub(crate) const MAX_NAME: usize = 256;

/// The most fields of one form, ignored ones included.
const MAX_FIELDS: usize = 64;

/// The longest URL of an attachment, in bytes.
pub(crate) const MAX_URL: usize = 4096;

/// The name of a file without one.
const UNNAMED: &str = "attachment";

/// The media type of a file whose type is unknown.
const OCTETS: &str = "application/octet-stream";

/// The sender id of callers that name no sender.
const CALLER: &str = "caller";

/// The content of a body, whatever its media type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(expecting = "an object")]
pub(crate) struct HookMessage {
    /// May be empty only when there are attachments.
    #[serde(rename = "message")]
    pub(crate) text: Option<String>,
    /// The caller's name for the sender. Also selects the conversation when none is named.
    pub(crate) sender: Option<String>,
    /// The name of a command, with or without its slash. `text` is then what follows the name.
    pub(crate) command: Option<String>,
    /// Messages of one conversation are answered in order, and the agent remembers them.
    pub(crate) conversation: Option<String>,
    /// The language of the person, as a tag such as `de` or `de-AT`. Anything else is ignored.
    pub(crate) language: Option<String>,
    /// The age recipient to whose key the answer is to be sealed.
    pub(crate) seal_to: Option<String>,
    pub(crate) attachments: Option<Vec<File>>,
    /// How many form fields were read so far, for [`MAX_FIELDS`].
    #[serde(skip)]
    pub(super) fields: usize,
    #[serde(skip)]
    pub(super) has_files: bool,
}

/// A file, given by its URL or by a `data:` URL with its content.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(expecting = "an object with a `url`")]
pub(crate) struct File {
    /// If missing, the last segment of the URL is used.
    pub(super) name: Option<String>,
    /// An IANA media type. If missing, that of a `data:` URL is used.
    pub(super) media_type: Option<String>,
    /// The gateway does not fetch it. A `data:` URL contains the file.
    pub(super) url: String,
    /// Ignores unknown fields, and keeps serde from reading a `File` from a list.
    #[serde(flatten)]
    _rest: Rest,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
struct Rest {}

/// A message whose fields were checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CheckedMessage {
    pub(super) text: String,
    /// The command that `text` begins with, if the body names one.
    pub(super) command: Option<String>,
    pub(super) sender: Option<String>,
    pub(super) conversation: Option<String>,
    pub(super) language: Option<Language>,
    pub(super) seal_to: Option<Arc<str>>,
    pub(super) attachments: Vec<Attachment>,
    /// Set if it is nothing but a recording.
    pub(super) voice: Option<Voice>,
    /// What has written it down.
    pub(super) heard_by: Option<Arc<str>>,
    pub(super) raw: String,
}

/// Identifies a request, so that a repeated one is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key<'a> {
    /// The caller's `Idempotency-Key`.
    Idempotency(&'a str),
    /// The `webhook-id`, which is signed with the body.
    WebhookId(&'a str),
    /// The id that a hub gives each delivery.
    Delivery(&'a str),
}

/// What an event needs besides the message.
pub(crate) struct Context<'a> {
    pub(crate) channel: &'a ChannelId,
    /// The hook's own conversation, for messages that name neither a conversation nor a sender.
    pub(crate) conversation: Option<&'a str>,
    pub(crate) key: Option<Key<'a>>,
    /// How long the caller waits; zero means not at all.
    pub(crate) wait: Duration,
    /// The trace that the caller is in.
    pub(crate) trace: Option<CallerTrace>,
    /// The language that the request asks for, if the message names none.
    pub(crate) language: Option<Language>,
    pub(crate) now: Timestamp,
}

impl HookMessage {
    pub(super) fn add_file(&mut self, name: &str, media_type: &str, content: &[u8]) -> Result<(), Problem> {
        self.count_field()?;
        self.has_files = true;
        self.attachments.get_or_insert_default().push(File {
            name: Some(name.to_owned()),
            media_type: Some(media_type.to_owned()),
            ..File::at(data_url::of(media_type, content))
        });
        Ok(())
    }

    fn count_field(&mut self) -> Result<(), Problem> {
        self.fields += 1;
        if self.fields > MAX_FIELDS {
            let detail = format!("a form may have at most {MAX_FIELDS} fields");
            return Err(unprocessable("too-many-fields", "Unprocessable entity: the form has too many fields", detail));
        }
        Ok(())
    }

    pub(super) fn add_field(&mut self, name: &str, value: String) -> Result<(), Problem> {
        self.count_field()?;
        let slot = match name {
            "message" => &mut self.text,
            "command" => &mut self.command,
            "sender" => &mut self.sender,
            "conversation" => &mut self.conversation,
            "language" => &mut self.language,
            "seal_to" => &mut self.seal_to,
            // An empty form field was not filled in.
            "attachments" if value.is_empty() => return Ok(()),
            "attachments" => {
                self.attachments.get_or_insert_default().push(File::at(value));
                return Ok(());
            }
            _ => return Ok(()),
        };
        if slot.replace(value).is_some() {
            return Err(invalid("appears in the form twice", name));
        }
        Ok(())
    }

    pub(crate) fn checked(self, raw: &str, limits: FileLimits) -> Result<CheckedMessage, Problem> {
        let command = command(self.command)?;
        let seal_to = recipient(self.seal_to)?;
        if command.is_some() && seal_to.is_some() {
            return Err(invalid("cannot be used with a command: the gateway answers it, and seals nothing", "seal_to"));
        }
        let text = match (&command, self.text.unwrap_or_default()) {
            (Some(command), text) => format!("/{command} {text}").trim_end().to_owned(),
            (None, text) => text,
        };
        if text.contains('\0') {
            return Err(invalid("must not contain the character U+0000", "message"));
        }
        let files = self.attachments.unwrap_or_default();
        if files.len() > limits.per_message {
            return Err(invalid(format!("must be at most {}", limits.per_message), "attachments"));
        }
        let files = files.into_iter().enumerate().map(|(at, file)| file.checked(at));
        let (attachments, sizes): (Vec<_>, Vec<_>) = files.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        if sizes.into_iter().sum::<usize>() > limits.max {
            return Err(files_too_large(limits.max));
        }
        if text.trim().is_empty() && attachments.is_empty() {
            return Err(empty("`message` must not be empty"));
        }
        let is_recording =
            |file: &Attachment| is_of(&file.media_type, "audio") && data_url::media_type(&file.url).is_some();
        let is_spoken = text.trim().is_empty() && matches!(&attachments[..], [file] if is_recording(file));
        Ok(CheckedMessage {
            text,
            command,
            sender: name(self.sender, "sender")?,
            conversation: name(self.conversation, "conversation")?,
            language: self.language.as_deref().and_then(Language::of),
            seal_to,
            attachments,
            voice: is_spoken.then(|| Voice::lasting(None)),
            heard_by: None,
            raw: raw.to_owned(),
        })
    }
}

impl File {
    pub(super) fn at(url: String) -> Self {
        Self { name: None, media_type: None, url, _rest: Rest {} }
    }

    /// The attachment, and how many bytes its URL holds.
    pub(crate) fn checked(self, at: usize) -> Result<(Attachment, usize), Problem> {
        let field = |name: &str| format!("attachments[{at}].{name}");
        let media_type = name(self.media_type, &field("media_type"))?;
        let given_name = name(self.name, &field("name"))?;
        if let Some(content) = data_url::content(&self.url) {
            let content = content.map_err(|data_url::Malformed| invalid("is a malformed data: URL", field("url")))?;
            let own = || name(data_url::media_type(&self.url).map(ToOwned::to_owned), &field("url"));
            let attachment = Attachment {
                name: given_name.unwrap_or_else(|| UNNAMED.to_owned()),
                media_type: media_type.map_or_else(own, |given| Ok(Some(given)))?.unwrap_or_else(|| OCTETS.to_owned()),
                url: self.url,
            };
            return Ok((attachment, content.len()));
        }
        if self.url.len() > MAX_URL {
            return Err(invalid(format!("must have at most {MAX_URL} bytes"), field("url")));
        }
        let url = Url::parse(&self.url).map_err(|_| invalid("must be a full URL, such as https://…", field("url")))?;
        let attachment = Attachment {
            name: given_name.unwrap_or_else(|| {
                let last = url.path_segments().and_then(|mut segments| segments.next_back());
                last.filter(|last| !last.is_empty()).unwrap_or(UNNAMED).chars().take(MAX_NAME).collect()
            }),
            media_type: media_type.unwrap_or_else(|| OCTETS.to_owned()),
            url: self.url,
        };
        Ok((attachment, 0))
    }
}

impl CheckedMessage {
    /// What was spoken, if the message is nothing but a recording.
    pub(crate) fn recording(&self) -> Option<Vec<u8>> {
        let file = self.attachments.get(self.voice?.file)?;
        data_url::content(&file.url)?.ok()
    }

    /// The message with the words of the recording, or why they could not be written down.
    pub(crate) fn heard(self, heard: Result<Transcript, Unheard>) -> Self {
        match heard {
            Ok(Transcript { words, model, seconds }) => {
                let voice = self.voice.map(|voice| voice.written_down(seconds));
                Self { text: words, voice, heard_by: model, ..self }
            }
            Err(why) => Self { text: String::new(), voice: self.voice.map(|voice| voice.failed(why)), ..self },
        }
    }

    /// Checks that there is the command that the body names. `listed` are those that menus list.
    /// The error names those that there are.
    pub(crate) fn check_command(&self, listed: impl FnOnce() -> Vec<CommandHelp>) -> Result<(), Problem> {
        let Some(command) = self.command.as_deref().filter(|command| !is_command(command)) else { return Ok(()) };
        let listed = listed();
        if listed.iter().any(|known| known.name == command) {
            return Ok(());
        }
        let names: Vec<_> = listed.iter().map(|known| &*known.name).collect();
        Err(invalid(format!("must be one of {}, not {command}", names.join(", ")), "command"))
    }

    /// Makes the event. Its conversation is the named one, else the sender's, else the hook's own, else a new one
    /// for this event alone.
    pub(crate) fn into_event(self, context: &Context<'_>) -> InboundEvent {
        let external_id = match context.key {
            Some(key) => key.external_id(context.channel),
            None => EventId::new(context.now).to_string(),
        };
        let kind = if self.sender.is_some() { SenderKind::Person } else { SenderKind::Unnamed };
        // The prefixes keep a conversation apart from a sender of the same name.
        let chat = match (&self.conversation, &self.sender, context.conversation) {
            (Some(named), _, _) => format!("conversation:{named}"),
            (None, Some(sender), _) => format!("sender:{sender}"),
            (None, None, Some(own)) => format!("conversation:{own}"),
            (None, None, None) => format!("once:{external_id}"),
        };
        InboundEvent {
            directed: Directed::Asked,
            text: self.text,
            attachments: self.attachments,
            voice: self.voice,
            heard_by: self.heard_by,
            patience: Some(context.wait).filter(|wait| !wait.is_zero()),
            language: self.language.or(context.language),
            seal_to: self.seal_to,
            trace: context.trace.clone(),
            raw: self.raw,
            ..InboundEvent::new(
                ConversationRef { channel: context.channel.clone(), chat: chat.into(), thread: None },
                ChatKind::Direct,
                external_id,
                Sender { id: self.sender.unwrap_or_else(|| CALLER.to_owned()), name: None, username: None, kind },
                context.now,
            )
        }
    }
}

impl Key<'_> {
    /// The id that the request is deduplicated by. Hashing gives it a fixed length and keeps the keys of different
    /// hooks and kinds apart.
    pub(crate) fn external_id(self, channel: &ChannelId) -> String {
        let (kind, key) = match &self {
            Self::Idempotency(key) => ("idempotency-key", key.as_bytes()),
            Self::WebhookId(id) => ("webhook-id", id.as_bytes()),
            Self::Delivery(id) => ("hub-delivery", id.as_bytes()),
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

/// Whether a form's field means something to [`HookMessage::add_field`].
pub(super) fn is_field(name: &str) -> bool {
    ["message", "command", "sender", "conversation", "language", "seal_to", "attachments"].contains(&name)
}

/// A recording or a picture.
pub(super) fn file(name: &str, media_type: &str, content: &[u8]) -> Result<HookMessage, Problem> {
    if content.is_empty() {
        return Err(empty("the body must not be empty"));
    }
    let mut message = HookMessage::default();
    message.add_file(name, media_type, content)?;
    Ok(message)
}

/// Whether a media type is of this kind: `audio`, `image`.
pub(super) fn is_of(media_type: &str, kind: &str) -> bool {
    media_type.split_once('/').is_some_and(|(found, _)| found.eq_ignore_ascii_case(kind))
}

/// Plain text, without the final line break that a shell adds.
pub(crate) fn text(content: &str) -> HookMessage {
    let text = content.strip_suffix('\n').map_or(content, |line| line.strip_suffix('\r').unwrap_or(line));
    HookMessage { text: Some(text.to_owned()), ..HookMessage::default() }
}

/// The name of a command, without its slash; a blank one counts as absent.
pub(super) fn command(value: Option<String>) -> Result<Option<String>, Problem> {
    let Some(value) = name(value, "command")? else { return Ok(None) };
    let command = value.trim().trim_start_matches('/').to_ascii_lowercase();
    let is_char = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if command.is_empty() || !command.bytes().all(is_char) {
        return Err(invalid("must be the name of a command, such as stop: letters, digits and _", "command"));
    }
    Ok(Some(command))
}

/// Checks the age recipient. A blank one is wrong: the answer would be in the clear.
fn recipient(value: Option<String>) -> Result<Option<Arc<str>>, Problem> {
    let Some(value) = value.map(|value| value.trim().to_owned()) else { return Ok(None) };
    if !is_age_recipient(&value) {
        let detail = "must be an age recipient with an X25519 key, age1 and 58 more characters, as `age-keygen` prints it: a character \
                      is wrong or missing";
        return Err(invalid(detail, "seal_to"));
    }
    Ok(Some(value.into()))
}

/// Whether it is a recipient with an X25519 key (<https://age-encryption.org/v1>): 32 bytes in Bech32, in small letters.
fn is_age_recipient(text: &str) -> bool {
    let key = CheckedHrpstring::new::<Bech32>(text);
    key.is_ok_and(|key| key.hrp().as_bytes() == b"age" && key.byte_iter().len() == 32)
}

/// Checks an optional name; a blank one counts as absent.
pub(super) fn name(value: Option<String>, field: &str) -> Result<Option<String>, Problem> {
    let Some(value) = value else { return Ok(None) };
    if value.chars().count() > MAX_NAME {
        return Err(invalid(format!("must have at most {MAX_NAME} characters"), field));
    }
    if value.chars().any(char::is_control) {
        return Err(invalid("must not contain control characters", field));
    }
    Ok(Some(value).filter(|value| !value.trim().is_empty()))
}

pub(super) fn invalid(detail: impl Into<String>, field: impl Into<String>) -> Problem {
    let (detail, field) = (detail.into(), field.into());
    unusable(format!("`{field}` {detail}")).about(field)
}

/// A body that cannot be used, or one field of it.
pub(super) fn unusable(detail: impl Into<Cow<'static, str>>) -> Problem {
    unprocessable("invalid-field", "Unprocessable entity: a field cannot be used", detail)
}

pub(super) fn empty(detail: &'static str) -> Problem {
    unprocessable("empty-message", "Unprocessable entity: the message is empty", detail).about("message")
}

pub(crate) fn unprocessable(name: &'static str, title: &'static str, detail: impl Into<Cow<'static, str>>) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, name, title, detail)
}

pub(crate) fn not_utf8(detail: impl Into<Cow<'static, str>>) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "not-utf-8", "Bad request: the body is not UTF-8", detail)
}
