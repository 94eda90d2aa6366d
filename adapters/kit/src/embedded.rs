//! Files for browsers that are embedded in the binary.

use std::io::{self, Write};

use axum::{
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use flate2::{Compression, write::GzEncoder};
use rust_embed::RustEmbed;
use sha2::{Digest, Sha256};

/// What all pages have in common: colours, controls, icons, the switch of the theme and the worker.
#[derive(RustEmbed)]
#[folder = "assets/"]
pub(crate) struct Shared;

/// The response with the file `name`, embedded with a page or with all pages, as [`cached`]; `None` if there is no such file.
#[must_use]
pub fn embedded<Files: RustEmbed>(name: &str, request_headers: &HeaderMap) -> Option<Response> {
    let file = Files::get(name).or_else(|| Shared::get(name))?;
    let kind = match mime_guess::from_path(name).first_or_octet_stream() {
        kind if kind.type_() == "text" => format!("{kind}; charset=utf-8"),
        kind => kind.to_string(),
    };
    Some(cached(request_headers, &kind, file.data.into_owned()))
}

/// `body`, compressed if the browser takes that, or 304 if it has the same version.
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
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    let kind = [(header::CONTENT_TYPE, kind.to_owned()), (header::VARY, "accept-encoding".to_owned())];
    let accepted = request_headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|codings| codings.to_str().ok());
    // A browser names it without a weight.
    let takes_gzip = accepted.flat_map(|codings| codings.split(',')).any(|coding| coding.trim() == "gzip");
    match takes_gzip.then(|| gzip(&body)) {
        Some(Ok(smaller)) if smaller.len() < body.len() => {
            (headers, kind, [(header::CONTENT_ENCODING, "gzip")], smaller).into_response()
        }
        _ => (headers, kind, body).into_response(),
    }
}

fn gzip(body: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(body)?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(codings: &'static str) -> Response {
        let headers = HeaderMap::from_iter([(header::ACCEPT_ENCODING, codings.parse().expect("a value"))]);
        cached(&headers, "text/plain", b"a page ".repeat(100))
    }

    #[test]
    fn a_browser_gets_it_compressed_and_others_as_it_is() {
        let coding = |response: &Response| response.headers().get(header::CONTENT_ENCODING).cloned();

        assert_eq!(coding(&asked("gzip, deflate, br")), Some("gzip".parse().expect("a value")));
        assert_eq!(coding(&asked("br")), None);
        assert_eq!(asked("br").headers()[header::VARY], "accept-encoding");
    }
}
