//! Pages of other origins that the operator names (CORS). Their scripts may send messages with files and read the answer; the socket
//! needs no more than a look at its `Origin`.

use axum::{
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};

use crate::{WebchatAdapter, access::Access};

/// The origin of a request, if it is one of the pages that the operator names.
pub(crate) fn named_page<'a>(chat: &WebchatAdapter, headers: &'a HeaderMap) -> Option<&'a HeaderValue> {
    let mut sent = headers.get_all(header::ORIGIN).iter();
    let (Some(origin), None) = (sent.next(), sent.next()) else { return None };
    chat.pages.iter().any(|page| page.as_bytes() == origin.as_bytes()).then_some(origin)
}

/// The response, which a named page may read.
pub(crate) fn allowing(chat: &WebchatAdapter, request: &HeaderMap, mut response: Response) -> Response {
    if chat.pages.is_empty() {
        return response;
    }
    let headers = response.headers_mut();
    headers.append(header::VARY, HeaderValue::from_static("origin"));
    if let Some(origin) = named_page(chat, request) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        if matches!(chat.access, Access::People(_)) {
            // So that it can send the cookie of who is signed in, if it is of the same site.
            headers.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
        }
    }
    response
}

/// The answer to what a browser asks before a page sends a message.
pub(crate) fn preflight(chat: &WebchatAdapter, request: &HeaderMap) -> Response {
    let allowed = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "POST"),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, "authorization, content-type"),
        (header::ACCESS_CONTROL_MAX_AGE, "600"),
    ];
    allowing(chat, request, (StatusCode::NO_CONTENT, allowed).into_response())
}
