//! Messages that operators have the gateway send.

use axum::http::{HeaderName, header};
use base64::{Engine, prelude::BASE64_STANDARD};
use rejoinder_core::{
    Addressees, Attachment, BegunTurn, ConversationRef, Done, FileLimits, NewMessage, NotReached, Reached, Target,
};

use super::prelude::*;

/// The longest message, in characters.
const MAX_TEXT: usize = 20_000;

/// The longest name of a file and of its media type, in characters.
const MAX_NAME: usize = 200;

body! {
    /// A message to send.
    Message {
        /// For whom: a conversation (`CHANNEL/CHAT` or `CHANNEL/CHAT/THREAD`), somebody who is known by their name, or everybody with a
        /// role (`role:owner`). People get it in the direct chat in which they are reached.
        #[schema(max_length = 1000, example = "telegram.main/42")] to: Option<String>,
        /// The conversation's id, instead of `to`.
        #[schema(format = "uuid")] conversation_id: Option<String>,
        /// The text, as Markdown. May be empty if there are files.
        #[serde(default)] #[schema(max_length = 20_000)] text: String,
        /// Files that are sent with it.
        #[serde(default)] #[schema(max_items = 50)] attachments: Vec<File>,
        /// Whether it is sent in the person's quiet hours as well.
        #[serde(default)] urgent: bool,
        /// Why, for the audit.
        #[schema(max_length = 1000)] reason: Option<String>,
    }
}

body! {
    /// A file.
    File {
        #[schema(min_length = 1, max_length = 200)] name: String,
        /// `application/octet-stream` if it is missing.
        #[schema(max_length = 200, example = "application/pdf")] media_type: Option<String>,
        /// The bytes, in Base64.
        data: Option<String>,
        /// Where the platform finds them, instead of `data`: an `https://` URL. The gateway does not fetch it.
        #[schema(max_length = 2000)] url: Option<String>,
    }
}

/// What will be sent.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SentMessages {
    /// The turn of the first one.
    #[schema(format = "uuid")]
    id: String,
    /// Where it stands what became of that.
    url: String,
    /// All of them: one, unless it is for a role.
    messages: Vec<SentMessage>,
    /// The recipients without a message.
    not_reached: Vec<NotReachedItem>,
}

item! {
    /// Recipients without a message.
    pub(crate) NotReachedItem of (missed: &NotReached, name: impl Fn(Addressees) -> String) {
        let person = if let Addressees::Person(person) = missed.who { Some(person.to_string()) } else { None };
    } with {
        /// A person's name, or a number: of people whom the token may not see, and in a repeated answer.
        who: String = name(missed.who),
        /// The person's id, as the list of people has it.
        #[schema(format = "uuid")] #[serde(skip_serializing_if = "Option::is_none")] person: Option<String> = person,
        /// How many they are.
        count: usize = missed.who.count(),
        /// Why they get none.
        why: String = missed.why.clone(),
    }
}

impl NotReachedItem {
    pub(super) fn list(missed: &[NotReached], name: impl Fn(Addressees) -> String) -> Vec<Self> {
        missed.iter().map(|missed| Self::of(missed, &name)).collect()
    }
}

item! {
    /// A message to one conversation.
    pub(crate) SentMessage of (begun: &BegunTurn) {
        /// Its turn.
        #[schema(format = "uuid")] id: String = begun.turn.to_string(),
        /// The conversation.
        to: String = begun.to.to_string(),
        /// Where it stands what became of it.
        url: String = format!("/admin/api/turns/{}", begun.turn),
    }
}

impl SentMessages {
    /// As it is stored for a request that is repeated: JSON without names.
    pub(super) fn stored(done: Done<'_>) -> Option<String> {
        let Done::Begun(sent) = done else { return None };
        let unnamed = Self::of(sent, |missed| missed.to_string()).ok()?;
        serde_json::to_string(&unnamed).ok()
    }

    /// # Errors
    /// When nothing was sent: it was before, and is not kept any more.
    pub(super) fn of(sent: &Reached, name: impl Fn(Addressees) -> String) -> Result<Self, ApiError> {
        let messages: Vec<_> = sent.begun.iter().map(SentMessage::of).collect();
        let not_reached = NotReachedItem::list(&sent.missed, name);
        let removed = || ApiError::Conflict("it was done before, and its turns have been removed since".to_owned());
        let first = messages.first().ok_or_else(removed)?;
        Ok(Self { id: first.id.clone(), url: first.url.clone(), messages, not_reached })
    }
}

/// Has the gateway send a message. Its deliveries belong to a turn of its own, whose id is in the answer: they are retried, and
/// become dead letters, like answers. Whether the conversation exists, its platform says: the turn tells. On the chat page somebody
/// must have written in it; it may be named as lists of people name the writer.
#[utoipa::path(post, path = "/messages", operation_id = "send_message", params(IdempotencyKey),
    request_body(content = Message),
    responses((status = 202, description = "It is stored and will be sent", body = SentMessages,
        headers(("Location" = String, description = "Where it stands what became of the first one")))))]
pub(super) async fn send(
    State(app): Shared,
    operation: Operation<Message, true>,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<SentMessages>), ApiError> {
    let body = &operation.body;
    let message = NewMessage {
        to: target(&app, body).await?,
        text: text(body)?,
        attachments: files(body, app.files)?,
        is_urgent: body.urgent,
    };
    let by = operation.actor_answering(body.reason.as_deref(), StatusCode::ACCEPTED, SentMessages::stored)?;
    let sent = app.engine.initiative().send(&message, &operation.name(app.clock.now()), &by).await?;
    let answer = SentMessages::of(&sent, app.names(by.channels.as_deref()))?;
    Ok((StatusCode::ACCEPTED, [(header::LOCATION, answer.url.clone())], Json(answer)))
}

fn text(message: &Message) -> Result<String, ApiError> {
    let text = message.text.trim();
    let is_missing = text.is_empty() && message.attachments.is_empty();
    if is_missing || text.chars().count() > MAX_TEXT {
        return Err(ApiError::BadRequest(format!("`text` must have 1 to {MAX_TEXT} characters")));
    }
    Ok(text.to_owned())
}

fn files(message: &Message, limits: FileLimits) -> Result<Vec<Attachment>, ApiError> {
    if message.attachments.len() > limits.per_message {
        return Err(ApiError::BadRequest(format!("`attachments` may have {} files", limits.per_message)));
    }
    let files = message.attachments.iter().map(file).collect::<Result<Vec<_>, _>>()?;
    let (files, sizes): (Vec<_>, Vec<_>) = files.into_iter().unzip();
    if sizes.into_iter().sum::<usize>() > limits.max {
        return Err(ApiError::BadRequest(format!("the files may have {} bytes together", limits.max)));
    }
    Ok(files)
}

/// The file, and how many bytes are sent with it.
fn file(file: &File) -> Result<(Attachment, usize), ApiError> {
    let bad = |what: &str| ApiError::BadRequest(format!("the file `{}` {what}", file.name));
    let is_short = |text: &str| (1..=MAX_NAME).contains(&text.chars().count());
    let media_type = file.media_type.as_deref().unwrap_or("application/octet-stream");
    if !is_short(&file.name) || !is_short(media_type) || media_type.contains([',', ' ']) {
        return Err(bad(&format!("needs a name, and a media type without blanks, of 1 to {MAX_NAME} characters")));
    }
    let (url, size) = match (&file.data, &file.url) {
        (Some(data), None) => match BASE64_STANDARD.decode(data) {
            Ok(bytes) if !bytes.is_empty() => (format!("data:{media_type};base64,{data}"), bytes.len()),
            _ => return Err(bad("has no bytes in Base64")),
        },
        (None, Some(url)) if url.starts_with("https://") && url.len() <= 2000 => (url.clone(), 0),
        _ => return Err(bad("needs either `data` or an https:// `url`")),
    };
    Ok((Attachment { name: file.name.clone(), media_type: media_type.to_owned(), url }, size))
}

async fn target(app: &App, message: &Message) -> Result<Target, ApiError> {
    match (&message.to, &message.conversation_id) {
        (Some(to), None) => to.parse().map_err(|wrong| ApiError::BadRequest(format!("`to` {wrong}"))),
        (None, Some(id)) => {
            let unknown = || ApiError::NotFound("there is no conversation with this id");
            let id = id.parse().map_err(|_| unknown())?;
            let address: ConversationRef = app.store.address(id).await?.ok_or_else(unknown)?;
            Ok(Target::Conversation(address))
        }
        _ => Err(ApiError::BadRequest("give either `to` or `conversation_id`".to_owned())),
    }
}
