//! Files for browsers that are embedded in the binary.

use axum::{
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use rust_embed::RustEmbed;
use sha2::{Digest, Sha256};

/// The response with the embedded file `name`, as [`cached`]; `None` if there is no such file.
#[must_use]
pub fn embedded<Files: RustEmbed>(name: &str, request_headers: &HeaderMap) -> Option<Response> {
    let file = Files::get(name)?;
    let kind = match mime_guess::from_path(name).first_or_octet_stream() {
        kind if kind.type_() == "text" => format!("{kind}; charset=utf-8"),
        kind => kind.to_string(),
    };
    Some(cached(request_headers, &kind, file.data.into_owned()))
}

/// `body`, or 304 if the browser has the same version.
#[must_use]
pub fn cached(request_headers: &HeaderMap, kind: &str, body: Vec<u8>) -> Response {
    let tag = format!("\"{}\"", BASE64_URL_SAFE_NO_PAD.encode(&Sha256::digest(&body)[..16]));
    let is_known =
        request_headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|tags| tags.to_str().ok()).any(|tags| {
            tags.split(',').map(str::trim).any(|known| known == "*" || known.trim_start_matches("W/") == tag)
        });
    // The browser revalidates its copy each time, so that a new version shows at once.
    let headers = [(header::ETAG, tag), (header::CACHE_CONTROL, "no-cache".to_owned())];
    if is_known {
        (StatusCode::NOT_MODIFIED, headers).into_response()
    } else {
        (headers, [(header::CONTENT_TYPE, kind.to_owned())], body).into_response()
    }
}
