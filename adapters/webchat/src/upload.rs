//! Messages with files. They come as forms over HTTP: a socket reads no large frames.

use std::time::Duration;

use axum::{
    Json,
    body::Body,
    http::{HeaderMap, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use rejoinder_core::{Attachment, FileLimits, InboundEvent, Language, TurnId, Voice};
use rejoinder_kit::{
    BodyRoom, Peer, Problem, bearer, data_url, files_too_large,
    multipart::{self, Part},
    read_body,
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    WebchatAdapter,
    accept::Acceptor,
    access::Access,
    inbound,
    protocol::{self, MAX_TEXT_BYTES},
    socket::check_token,
    visitor::visitor,
};

/// How long a message with its files may take to arrive: 25 MiB at 1 Mbit/s, and some more.
const PATIENCE: Duration = Duration::from_mins(5);

/// What a form has at most beside its text and the bytes of its files.
const MAX_OVERHEAD: usize = 64 * 1024;

/// A message and its files.
#[derive(ToSchema)]
#[expect(dead_code, reason = "for the OpenAPI description only")]
pub(crate) struct MessageForm {
    /// The secret id of the conversation.
    conversation: String,
    /// The id of the message, a new one for each. One that is sent again is not stored twice.
    id: String,
    /// May be empty if there is a file.
    text: Option<String>,
    /// Set if the first file is a voice note: how many seconds it has.
    voice: Option<f64>,
    /// The turn in whose place the message is, if that is the last question.
    instead_of: Option<String>,
    /// The language of the person, as a tag such as `de-AT`.
    language: Option<String>,
    /// Any number of files.
    #[schema(value_type = Vec<String>)]
    file: Vec<Vec<u8>>,
}

/// A message is stored.
#[derive(Serialize, ToSchema)]
pub(crate) struct StoredMessage {
    /// The id of the message.
    id: String,
    /// The turn that it opened.
    #[schema(value_type = Option<String>)]
    turn_id: Option<TurnId>,
}

/// Reads a message of a page, and accepts it.
pub(crate) async fn take(chat: &WebchatAdapter, parts: &Parts, body: Body) -> Result<Response, Problem> {
    let context = chat.socket_context.get().ok_or_else(|| refused(protocol::Problem::NOT_READY))?;
    let _tracked = context.sockets.token();
    let peer = Peer::of(&parts.extensions);
    if let Access::Token(tokens) = &chat.access {
        check_token(chat, tokens, bearer(&parts.headers), peer).await.map_err(refused)?;
    }
    let visitor = visitor(chat, &context, parts).await.map_err(|_| refused(protocol::Problem::UNAVAILABLE))?;
    if visitor.is_none() && matches!(chat.access, Access::People(_)) {
        return Err(refused(protocol::Problem::SIGN_IN_REQUIRED));
    }
    let boundary = boundary(&parts.headers)?;
    let mut room = BodyRoom::new(context.intake.file_share().of_peer(peer.network()), MAX_TEXT_BYTES);
    let limit = MAX_TEXT_BYTES + MAX_OVERHEAD + chat.files.max;
    let body = tokio::select! {
        body = read_body(&parts.headers, body, limit, PATIENCE, |part| room.add(part.len())) => body,
        () = context.closing.cancelled() => return Err(refused(protocol::Problem::NOT_READY)),
    };
    // The gateway's sentence says more of what is too large.
    let is_too_large = |problem: &Problem| problem.status() == StatusCode::PAYLOAD_TOO_LARGE;
    let body =
        body.map_err(|problem| if is_too_large(&problem) { files_too_large(chat.files.max) } else { problem })?;
    if let Some(visitor) = &visitor {
        // The body took its time.
        let is_there = visitor.is_there(&context).await.map_err(|_| refused(protocol::Problem::UNAVAILABLE))?;
        if !is_there {
            return Err(refused(protocol::Problem::SIGNED_OUT));
        }
    }
    let mut form = Form::default();
    multipart::read(&body, boundary, |part| form.add(&part, chat.files))?;
    drop(body);
    let Form { conversation, id, text, voice, instead_of, language, files, .. } = form;
    let conversation = inbound::conversation(&chat.channel, &conversation, visitor.as_ref()).map_err(refused)?;
    let sender = inbound::sender(&conversation, visitor.as_ref());
    let is_recording = files.first().is_some_and(|file| file.media_type.starts_with("audio/"));
    let voice = voice.filter(|_| is_recording);
    let now = context.intake.clock().now();
    let event = inbound::message_with(&conversation, &sender, &id, &text, files, voice, now).map_err(refused)?;
    let event = InboundEvent { instead_of, ..event };
    let acceptor = Acceptor { chat, intake: &context.intake, conversation: &conversation, language };
    let turn_id = acceptor.accept(event).await.map_err(refused)?;
    drop(room);
    if let Some(turn) = turn_id {
        // The page that sent the files has no links to them.
        acceptor.show(turn).await;
    }
    Ok(Json(StoredMessage { id, turn_id }).into_response())
}

fn boundary(headers: &HeaderMap) -> Result<&str, Problem> {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    let boundary = multipart::boundary(content_type);
    boundary.filter(|_| essence.eq_ignore_ascii_case("multipart/form-data")).ok_or_else(|| {
        let detail = "a message must be multipart/form-data, and name its boundary";
        Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported-media-type", "Unsupported media type", detail)
    })
}

/// What a form has.
#[derive(Debug, Default)]
struct Form {
    conversation: String,
    id: String,
    text: String,
    voice: Option<Voice>,
    instead_of: Option<TurnId>,
    language: Option<Language>,
    files: Vec<Attachment>,
    /// How many bytes the files have.
    bytes: usize,
}

impl Form {
    fn add(&mut self, part: &Part<'_>, limits: FileLimits) -> Result<(), Problem> {
        match (part.name, part.file_name) {
            // No file was chosen.
            ("file", Some("")) if part.content.is_empty() => {}
            ("file", Some(name)) => self.add_file(name, part, limits)?,
            ("conversation", None) => part.text()?.clone_into(&mut self.conversation),
            ("id", None) => part.text()?.clone_into(&mut self.id),
            ("text", None) => part.text()?.clone_into(&mut self.text),
            ("voice", None) => self.voice = Some(Voice::lasting(part.text()?.trim().parse().ok())),
            ("instead_of", None) => self.instead_of = part.text()?.trim().parse().ok(),
            ("language", None) => self.language = Language::of(part.text()?),
            _ => {}
        }
        Ok(())
    }

    fn add_file(&mut self, name: &str, part: &Part<'_>, limits: FileLimits) -> Result<(), Problem> {
        if self.files.len() == limits.per_message {
            let detail =
                format!("A message may have {} files. Please send the others in another one.", limits.per_message);
            return Err(unprocessable("too_many_files", detail));
        }
        self.bytes += part.content.len();
        if self.bytes > limits.max {
            return Err(files_too_large(limits.max));
        }
        let media_type = part.media_type();
        self.files.push(Attachment {
            name: name.to_owned(),
            media_type: media_type.to_owned(),
            url: data_url::of(media_type, part.content),
        });
        Ok(())
    }
}

/// Says over HTTP what an `error` frame would say. Its sentence is for the person.
fn refused(problem: protocol::Problem) -> Problem {
    let (status, title) = match problem.code {
        "token_required" | "token_wrong" | "sign_in_required" => (StatusCode::UNAUTHORIZED, "Unauthorized"),
        "too_many_guesses" | "limited" => (StatusCode::TOO_MANY_REQUESTS, "Too many requests"),
        "id_reused" => (StatusCode::CONFLICT, "Conflict"),
        _ if problem.retry => (StatusCode::SERVICE_UNAVAILABLE, "Service unavailable"),
        _ => return unprocessable(problem.code, problem.message),
    };
    Problem::new(status, problem.code, title, problem.message)
}

fn unprocessable(name: &'static str, detail: impl Into<std::borrow::Cow<'static, str>>) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, name, "Unprocessable entity", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: FileLimits = FileLimits { max: 4, per_message: 2, in_flight: 100 };

    fn file<'a>(name: &'a str, content: &'static [u8]) -> Part<'a> {
        Part { name: "file", file_name: Some(name), content_type: Some("image/png;x=1"), content }
    }

    #[test]
    fn a_form_has_as_many_files_as_a_message_may_have() {
        let mut form = Form::default();

        let taken = ["a", "b", "c"].map(|name| form.add(&file(name, b"1"), LIMITS).map_err(|problem| problem.status()));

        assert_eq!(taken, [Ok(()), Ok(()), Err(StatusCode::UNPROCESSABLE_ENTITY)]);
        assert_eq!(form.files[0].url, "data:image/png;base64,MQ==");
    }

    #[test]
    fn files_are_too_large_together() {
        let mut form = Form::default();

        let taken = ["a", "b"].map(|name| form.add(&file(name, b"123"), LIMITS).map_err(|problem| problem.status()));

        assert_eq!(taken, [Ok(()), Err(StatusCode::PAYLOAD_TOO_LARGE)]);
    }
}
