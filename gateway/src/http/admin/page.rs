//! The operator's page, at `/admin`. It holds no data: what it shows it reads from the API.

use std::sync::Arc;

use axum::{
    Router,
    extract::Path,
    http::{HeaderMap, HeaderValue, header},
    response::{IntoResponse, Response},
    routing::get,
};
use rejoinder_kit::{App as InstalledApp, WORKER, embedded, worker};
use rust_embed::RustEmbed;

use crate::http::{app::App, error::ApiError};

/// The page may run only its own scripts, and call only us.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      media-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      manifest-src 'self'; require-trusted-types-for 'script'";

#[derive(RustEmbed)]
#[folder = "assets/admin/"]
struct Assets;

/// The routes, to be merged.
pub(in crate::http) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/admin", get(page))
        .route("/admin/", get(page))
        .route("/admin/manifest.webmanifest", get(manifest))
        .route("/admin/assets/{file}", get(asset))
        // The page reads its own path.
        .route("/admin/{*path}", get(page))
}

async fn page(headers: HeaderMap) -> Result<Response, ApiError> {
    let mut response = embedded::<Assets>("index.html", &headers).ok_or(ApiError::Internal)?;
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    Ok(response)
}

async fn manifest(headers: HeaderMap) -> Response {
    let (path, assets) = ("/admin", "/admin/assets");
    InstalledApp { path, name: "Rejoinder: operator", assets, takes_shares: false }.manifest(&headers)
}

async fn asset(Path(file): Path<String>, headers: HeaderMap) -> Response {
    if file == WORKER {
        return worker::<Assets>("/admin", true, &headers);
    }
    let file = Some(&*file).filter(|file| *file != "index.html");
    let found = file.and_then(|file| embedded::<Assets>(file, &headers));
    found.unwrap_or_else(|| ApiError::NotFound("there is no such file").into_response())
}

#[cfg(test)]
mod tests {
    /// What the log is about, from its source: no value lists it.
    const LOG: &str = include_str!("../../../../core/src/model/log.rs");

    #[test]
    fn every_topic_of_the_log_is_told_in_words() {
        let sentences = include_str!("../../../assets/admin/format.js");
        let documented = include_str!("../../../../docs/operations.md");
        let (_, topics) = LOG.split_once("pub fn topic").expect("topics have names");
        let (topics, _) = topics.split_once("\n    }\n").expect("a function ends");
        let named: Vec<&str> =
            topics.lines().filter_map(|line| line.split_once(" => \"")?.1.strip_suffix("\",")).collect();
        // What operators did is told by what they did.
        assert_eq!(named.len() + 1, topics.matches("Self::").count(), "{named:?}");

        let missing: Vec<&&str> = named
            .iter()
            .filter(|topic| {
                !sentences.contains(&format!("\n    \"{topic}\": () =>")) || !documented.contains(&format!("`{topic}`"))
            })
            .collect();

        assert!(missing.is_empty(), "{missing:?}");
    }
}
