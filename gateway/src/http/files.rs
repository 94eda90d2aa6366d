//! Files of turns: for the holder of a link, and for operators who may see the channel.
//!
//! A file is sent in parts, each of which is read when the caller has taken the one before. A browser shows and plays only files of types
//! in which it runs nothing, and saves all others.

use std::{ops::Range, sync::Arc};

use axum::{
    body::Body,
    extract::{Path, State},
    http::{HeaderMap, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use futures_util::{StreamExt, future::ready, stream};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rejoinder_core::{
    Attachment, ChannelId, FileDigest, StoreError, StoredFile, Timestamp, TurnId, TurnView,
    store::{FileStore, Role},
};
use rejoinder_kit::Problem;
use serde::Deserialize;
use utoipa::IntoParams;

use super::{
    admin::caller::caller_of,
    app::Shared,
    error::{ApiError, ProblemDocument},
    paging::{Query, Segment},
    records::Records,
};
use crate::shapes::query;

/// The largest part that is read at once, in bytes.
const PART: usize = 256 << 10;

/// The longest name that a browser is told, in characters.
const MAX_NAME: usize = 120;

/// A page that a browser makes of a file may show it, and do nothing else.
const POLICY: &str = "default-src 'none'; img-src 'self'; media-src 'self'; frame-ancestors 'none'; sandbox";

/// The same for a wrong link as for what was removed.
const UNKNOWN: &str = "there is no such file: the link is incomplete or wrong, or what the file belongs to was removed";

query! {
    /// Whose file is wanted, and what opens it.
    Wanted {
        /// The turn that has the file.
        #[param(format = "uuid")] turn: String,
        /// Until when the link opens it, in milliseconds since 1970.
        until: Option<i64>,
        /// The key of the link.
        #[param(max_length = 32)] key: Option<String>,
    }
}

/// Reads a file of a turn.
///
/// With `until` and `key` it is a link, as the gateway gives it to those who may see the message. Else an operator's token opens it,
/// if its channels have the turn. One range of bytes may be asked for.
#[utoipa::path(get, path = "/files/{digest}", tag = "files", operation_id = "read_file",
    params(
        ("digest" = String, Path, description = "The SHA-256 of the file: 64 hexadecimal digits"),
        Wanted,
        ("Range" = Option<String>, Header, description = "`bytes=FIRST-LAST`, counted from 0"),
    ),
    responses(
        (status = 200, description = "The file", body = String, content_type = "application/octet-stream",
            headers(("Accept-Ranges" = String), ("Content-Disposition" = String))),
        (status = 206, description = "The range", body = String, content_type = "application/octet-stream",
            headers(("Content-Range" = String))),
        (status = 400, description = "A parameter is invalid", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 401, description = "It is no link, and the token is missing or wrong", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, description = "The token's role does not allow this", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, description = "There is no such file, the link is wrong, or the token may not see it", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 410, description = "The time of the link is over", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 416, description = "The file has no byte in the range", body = ProblemDocument, content_type = "application/problem+json",
            headers(("Content-Range" = String, description = "The size of the file"))),
        (status = 429, description = "Too many wrong tokens came from this address", body = ProblemDocument, content_type = "application/problem+json",
            headers(("Retry-After" = u32, description = "Seconds"))),
        (status = 503, description = "The store cannot be read now", body = ProblemDocument, content_type = "application/problem+json",
            headers(("Retry-After" = u32, description = "Seconds"))),
    ),
    security((), ("admin_token" = [])))]
pub(super) async fn show(
    State(app): Shared,
    digest: Segment,
    Query(wanted): Query<Wanted>,
    request: Parts,
) -> Result<Response, ApiError> {
    if wanted.until.is_some() || wanted.key.is_some() {
        return show_by_link(State(app), digest, Query(wanted), request).await;
    }
    let caller = caller_of(&request, &app).await?;
    if caller.role < Role::Viewer {
        return Err(ApiError::Forbidden("this token only talks to agents, at /v1".to_owned()));
    }
    let may_see = |channel: &ChannelId| caller.may_see(channel);
    respond(&app.records, wanted.file(digest)?, may_see, &request.headers).await
}

/// As [`show`], for links only.
pub(super) async fn show_by_link(
    State(app): Shared,
    digest: Segment,
    Query(wanted): Query<Wanted>,
    request: Parts,
) -> Result<Response, ApiError> {
    let (turn, digest) = wanted.file(digest)?;
    let (Some(until), Some(key)) = (wanted.until.map(Timestamp::from_millis), &wanted.key) else {
        return Err(ApiError::NotFound(UNKNOWN));
    };
    if !app.file_links.verify(turn, digest, until, key) {
        return Err(ApiError::NotFound(UNKNOWN));
    }
    if until <= app.clock.now() {
        return Err(ApiError::Gone("the time of this link is over: ask for the file again"));
    }
    respond(&app.records, (turn, digest), |_: &ChannelId| true, &request.headers).await
}

impl Wanted {
    fn file(&self, digest: Segment) -> Result<(TurnId, FileDigest), ApiError> {
        let digest = digest.ok().and_then(|Path(digits)| FileDigest::read(&digits));
        self.turn.parse().ok().zip(digest).ok_or(ApiError::NotFound(UNKNOWN))
    }
}

async fn respond(
    records: &Records,
    (turn, digest): (TurnId, FileDigest),
    may_see: impl Fn(&ChannelId) -> bool,
    request_headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let found = find(records, turn, digest).await?.filter(|(channel, _, _)| may_see(channel));
    let (_, file, size) = found.ok_or(ApiError::NotFound(UNKNOWN))?;
    let Some((status, range)) = wanted_range(request_headers, size) else { return Ok(out_of_range(size)) };
    // Read before the response begins: the file may have been removed meanwhile.
    let first = records.files.file_part(digest, range.start, PART.min(range.len())).await?;
    let first = first.ok_or(ApiError::NotFound(UNKNOWN))?;
    let (kind, shown) = match shown_type(&file.media_type) {
        Some(kind) => (kind, "inline"),
        None => ("application/octet-stream".to_owned(), "attachment"),
    };
    let (start, end, length) = (range.start, range.end, range.len().to_string());
    let is_part = status == StatusCode::PARTIAL_CONTENT;
    let part_of = is_part.then(|| [(header::CONTENT_RANGE, format!("bytes {start}-{}/{size}", end - 1))]);
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_DISPOSITION, disposition(shown, &file.name)),
        (header::CONTENT_LENGTH, length),
        (header::ACCEPT_RANGES, "bytes".to_owned()),
        (header::CONTENT_SECURITY_POLICY, POLICY.to_owned()),
    ];
    Ok((status, part_of, headers, body(Arc::clone(&records.files), digest, range, first)).into_response())
}

/// A file as its turn names it, or the turn that answers for that one, with its channel and its size.
async fn find(
    records: &Records,
    turn: TurnId,
    digest: FileDigest,
) -> Result<Option<(ChannelId, Attachment, usize)>, StoreError> {
    let Some(turn) = records.turns.readable_turn(turn).await? else { return Ok(None) };
    let mut deliveries = records.outbox.deliveries(turn.id).await?;
    if let Some(answering) = TurnView::merged_into(&turn.obligation) {
        deliveries.extend(records.outbox.deliveries(answering).await?);
    }
    let sent = deliveries.iter().flat_map(|delivery| delivery.action.all_files());
    let found = turn.event.attachments.iter().chain(sent).find_map(|file| {
        let stored = StoredFile::in_url(&file.url).filter(|stored| stored.digest == digest)?;
        Some((turn.event.conversation.channel.clone(), file.clone(), stored.size))
    });
    Ok(found)
}

/// The bytes in `range`, of which the `first` are read. If the file is removed meanwhile, the body ends with an error.
fn body(files: Arc<dyn FileStore>, digest: FileDigest, Range { start, end }: Range<usize>, first: Vec<u8>) -> Body {
    let rest = stream::try_unfold(start + first.len(), move |from| {
        let files = Arc::clone(&files);
        async move {
            if from >= end {
                return Ok(None);
            }
            let part = files.file_part(digest, from, PART.min(end - from)).await?;
            let part = part.filter(|part| !part.is_empty());
            let part = part.ok_or_else(|| StoreError::Failed("a file was removed while it was read".to_owned()))?;
            let next = from + part.len();
            Ok::<_, StoreError>(Some((part, next)))
        }
    });
    Body::from_stream(stream::once(ready(Ok::<_, StoreError>(first))).chain(rest))
}

/// The bytes that a request wants, and the status of the response with them. `None`: the file has none of them.
fn wanted_range(headers: &HeaderMap, size: usize) -> Option<(StatusCode, Range<usize>)> {
    let all = Some((StatusCode::OK, 0..size));
    // The condition would name a validator, and a response has none.
    let range = headers.get(header::RANGE).filter(|_| !headers.contains_key(header::IF_RANGE));
    let range = range.and_then(|range| range.to_str().ok()?.strip_prefix("bytes=")?.split_once('-'));
    let Some((first, last)) = range.map(|(first, last)| (first.trim(), last.trim())) else { return all };
    let range = match (first.parse::<usize>().ok(), last.parse::<usize>().ok()) {
        (Some(first), Some(last)) if first <= last => first..size.min(last.saturating_add(1)),
        (Some(first), None) if last.is_empty() => first..size,
        (None, Some(last)) if first.is_empty() => size.saturating_sub(last)..size,
        // Of several ranges, or of what is none, nothing has to be made.
        _ => return all,
    };
    (!range.is_empty()).then_some((StatusCode::PARTIAL_CONTENT, range))
}

fn out_of_range(size: usize) -> Response {
    let detail = format!("the file has {size} bytes, and none of them is in the range");
    let problem =
        Problem::new(StatusCode::RANGE_NOT_SATISFIABLE, "out-of-range", "Range not satisfiable: out of range", detail);
    ([(header::CONTENT_RANGE, format!("bytes */{size}"))], problem).into_response()
}

/// The type of a file that a browser may show or play; `None` if it could run something in it, or is not known to show it.
fn shown_type(media_type: &str) -> Option<String> {
    let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_token = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-+.".contains(&byte));
    match essence.split_once('/')? {
        ("image", "png" | "jpeg" | "gif" | "webp") => Some(essence),
        ("audio" | "video", name) if is_token(name) => Some(essence),
        ("text", "plain") => Some("text/plain; charset=utf-8".to_owned()),
        _ => None,
    }
}

/// Whether a browser shows a file or saves it, and under which name: in ASCII for old ones, and as it is (RFC 6266).
fn disposition(shown: &str, name: &str) -> String {
    let name: String = name.chars().take(MAX_NAME).collect();
    let is_plain = |char: char| char.is_ascii_alphanumeric() || " -_.".contains(char);
    let plain: String = name.chars().map(|char| if is_plain(char) { char } else { '_' }).collect();
    format!("{shown}; filename=\"{plain}\"; filename*=UTF-8''{}", utf8_percent_encode(&name, NON_ALPHANUMERIC))
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::all(&[], Some((200, 0..10)))]
    #[case::from_the_first_to_the_last(&[("range", "bytes=0-3")], Some((206, 0..4)))]
    #[case::beyond_the_end(&[("range", "bytes=8-99999999999999999999")], Some((200, 0..10)))]
    #[case::up_to_more_than_there_is(&[("range", "bytes=8-20")], Some((206, 8..10)))]
    #[case::from_there_on(&[("range", "bytes=4-")], Some((206, 4..10)))]
    #[case::the_last_ones(&[("range", "bytes=-3")], Some((206, 7..10)))]
    #[case::more_than_there_are(&[("range", "bytes=-30")], Some((206, 0..10)))]
    #[case::none_of_them(&[("range", "bytes=10-")], None)]
    #[case::the_last_none(&[("range", "bytes=-0")], None)]
    #[case::backwards(&[("range", "bytes=3-2")], Some((200, 0..10)))]
    #[case::several(&[("range", "bytes=0-1,4-5")], Some((200, 0..10)))]
    #[case::other_units(&[("range", "lines=0-1")], Some((200, 0..10)))]
    #[case::on_a_condition(&[("range", "bytes=0-3"), ("if-range", "\"a\"")], Some((200, 0..10)))]
    fn one_range_is_read(
        #[case] headers: &[(&'static str, &'static str)],
        #[case] expected: Option<(u16, Range<usize>)>,
    ) {
        let entry = |&(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };

        let found = wanted_range(&headers.iter().map(entry).collect(), 10);

        assert_eq!(found.map(|(status, range)| (status.as_u16(), range)), expected);
    }

    #[rstest]
    #[case("image/png", Some("image/png"))]
    #[case("Audio/OGG; codecs=opus", Some("audio/ogg"))]
    #[case("video/mp4", Some("video/mp4"))]
    #[case("text/plain; charset=latin1", Some("text/plain; charset=utf-8"))]
    #[case("image/svg+xml", None)]
    #[case("text/html", None)]
    #[case("text/javascript", None)]
    #[case("application/pdf", None)]
    #[case("audio/x\r\nset-cookie: a", None)]
    #[case("", None)]
    fn what_a_browser_could_run_is_saved(#[case] media_type: &str, #[case] expected: Option<&str>) {
        assert_eq!(shown_type(media_type).as_deref(), expected);
    }

    #[test]
    fn a_name_cannot_leave_its_header() {
        let expected = "inline; filename=\"a_____.png\"; filename*=UTF-8''a%22%3B%0D%0A%C3%A9%2Epng";

        assert_eq!(disposition("inline", "a\";\r\né.png"), expected);
        assert!(HeaderValue::from_str(&disposition("attachment", &"é".repeat(5000))).is_ok_and(|it| it.len() < 1000));
    }
}
