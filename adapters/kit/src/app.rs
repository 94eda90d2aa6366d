//! Pages that can be installed as apps: their manifest, and the worker that shows them without a connection.

use axum::{
    http::{HeaderMap, HeaderName, HeaderValue, header},
    response::Response,
};
use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use rust_embed::RustEmbed;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::embedded::{Shared, cached};

/// The name of the worker's file. It is served by [`worker`].
pub const WORKER: &str = "worker.js";

/// What the worker may do: ask this gateway.
const WORKER_POLICY: &str = "default-src 'none'; connect-src 'self'";

const WORKER_ALLOWED: HeaderName = HeaderName::from_static("service-worker-allowed");

/// A page that can be installed.
#[derive(Clone, Copy, Debug)]
pub struct App<'a> {
    /// Its path, without a slash at the end.
    pub path: &'a str,
    /// What people read below its icon.
    pub name: &'a str,
    /// The path of its files, without a slash at the end.
    pub assets: &'a str,
    /// Whether texts and files can be shared with it: they are posted to `{path}/share`, where the worker takes them.
    pub takes_shares: bool,
}

impl App<'_> {
    /// The response with its manifest (<https://www.w3.org/TR/appmanifest/>, <https://w3c.github.io/web-share-target/>).
    #[must_use]
    pub fn manifest(&self, request_headers: &HeaderMap) -> Response {
        let Self { path, name, assets, takes_shares } = self;
        let icon = |file: &str, kind: &str, sizes: &str, purpose: &str| json!({ "src": format!("{assets}/{file}"), "type": kind, "sizes": sizes, "purpose": purpose });
        let mut manifest = json!({
            "id": path, "start_url": path, "scope": path, "name": name, "short_name": name,
            "display": "standalone", "background_color": "#faf9f6", "theme_color": "#faf9f6",
            "icons": [
                icon("icon.svg", "image/svg+xml", "any", "any"),
                icon("icon-192.png", "image/png", "192x192", "any"),
                icon("icon-512.png", "image/png", "512x512", "any"),
                icon("icon-mask.png", "image/png", "512x512", "maskable"),
            ],
        });
        if *takes_shares {
            manifest["share_target"] = json!({
                "action": format!("{path}/share"), "method": "POST", "enctype": "multipart/form-data",
                "params": { "title": "title", "text": "text", "url": "url", "files": [{ "name": "file", "accept": ["*/*"] }] },
            });
        }
        cached(request_headers, "application/manifest+json", manifest.to_string().into_bytes())
    }
}

/// The response with the worker of pages at `path` and below. They have the files of `Files`, at `{path}/assets`. It is another worker
/// when any of these changes. `is_one` says whether all pages there are the same one.
///
/// # Panics
/// If the path is not printable ASCII.
#[must_use]
pub fn worker<Files: RustEmbed>(path: &str, is_one: bool, request_headers: &HeaderMap) -> Response {
    let mut digest = Sha256::new();
    let mut files: Vec<_> = Files::iter().chain(Shared::iter()).collect();
    files.sort();
    for name in &files {
        let file = Files::get(name).or_else(|| Shared::get(name)).expect("the file is listed");
        digest.update(name.as_bytes());
        digest.update(file.metadata.sha256_hash());
    }
    // The page is kept at its own path, and a licence is nothing that it loads.
    files.retain(|name| name.contains('.') && !name.ends_with(".html") && name != WORKER);
    let files: Vec<String> = files.iter().map(|name| format!("{path}/assets/{name}")).collect();
    let version = BASE64_URL_SAFE_NO_PAD.encode(&digest.finalize()[..12]);
    let values = json!({ "path": path, "isOne": is_one, "version": version, "files": files });
    let script = Shared::get(WORKER).expect("the worker is embedded").data;
    let script = format!("const PAGE = {values};\n{}", String::from_utf8_lossy(&script));
    let mut response = cached(request_headers, "text/javascript; charset=utf-8", script.into_bytes());
    let allowed = HeaderValue::from_str(path).expect("a path is printable ASCII");
    response.headers_mut().insert(WORKER_ALLOWED, allowed);
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(WORKER_POLICY));
    response
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use rust_embed::RustEmbed;
    use serde_json::Value;

    use super::*;

    /// As the files of a page.
    #[derive(RustEmbed)]
    #[folder = "src/signed_post/"]
    struct Page;

    async fn text(response: Response) -> String {
        let body = to_bytes(response.into_body(), usize::MAX).await.expect("a body");
        String::from_utf8(body.into()).expect("text")
    }

    #[tokio::test]
    async fn a_worker_knows_the_files_of_its_pages() {
        let response = worker::<Page>("/page", false, &HeaderMap::new());

        assert_eq!(response.headers()["service-worker-allowed"], "/page");
        let script = text(response).await;
        let values = script.lines().next().and_then(|line| line.strip_prefix("const PAGE = ")?.strip_suffix(';'));
        let values: Value = serde_json::from_str(values.expect("the values come first")).expect("JSON");
        let files: Vec<&str> = values["files"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
        assert!(files.contains(&"/page/assets/tests.rs") && files.contains(&"/page/assets/common.css"), "{files:?}");
        assert!(!files.contains(&"/page/assets/worker.js"), "{files:?}");
        assert_eq!(values["version"].as_str().map(str::len), Some(16));
    }

    #[tokio::test]
    async fn the_icons_of_a_manifest_are_there() {
        let app = App { path: "/page", name: "A \"page\"", assets: "/page/assets", takes_shares: true };

        let manifest: Value = serde_json::from_str(&text(app.manifest(&HeaderMap::new())).await).expect("JSON");

        assert_eq!(manifest["name"], "A \"page\"");
        assert_eq!(manifest["share_target"]["action"], "/page/share");
        for icon in manifest["icons"].as_array().expect("a list") {
            let file = icon["src"].as_str().and_then(|path| path.strip_prefix("/page/assets/")).expect("a path");
            assert!(Shared::get(file).is_some(), "{file}");
        }
    }
}
