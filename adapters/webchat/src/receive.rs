//! The HTTP routes of the page, its assets and its socket.

use std::sync::Arc;

use axum::{
    Router,
    extract::{FromRequestParts, Path, Request, State, ws::WebSocketUpgrade},
    http::{HeaderName, HeaderValue, StatusCode, header, request::Parts, uri::Authority},
    middleware::{self, Next},
    response::{IntoResponse, Redirect, Response},
    routing::{get, post},
};
use rejoinder_kit::{App, Peer, Problem, WORKER, cached, embedded, escaped, worker};
use rust_embed::RustEmbed;
use utoipa::{OpenApi, ToSchema};

use crate::{
    WebchatAdapter,
    access::{self, Access, AccessError},
    chats::Chats,
    cors,
    protocol::MAX_FRAME_BYTES,
    sign_in, socket,
    upload::{self, MessageForm, StoredMessage},
    visitor::visitor,
};

const PERMISSIONS_POLICY: HeaderName = HeaderName::from_static("permissions-policy");

#[derive(RustEmbed)]
#[folder = "assets/"]
struct Assets;

/// The routes of all web chats: `/chat` for the one named `main` (or the only one), `/chat/{name}` for each.
pub fn router(chats: Vec<Arc<WebchatAdapter>>) -> Router {
    let chats = Chats::new(chats);
    Router::new()
        .route("/chat", get(main_page))
        .route("/chat/", get(async || Redirect::permanent("/chat")))
        .route("/chat/ws", get(main_socket))
        .route("/chat/messages", post(main_message).options(main_preflight))
        .route("/chat/manifest.webmanifest", get(main_manifest))
        .route("/chat/share", post(async || Redirect::to("/chat")))
        .route("/chat/assets/{file}", get(asset))
        .route("/chat/{name}", get(page))
        .route("/chat/{name}/ws", get(named_socket))
        .route("/chat/{name}/messages", post(named_message).options(named_preflight))
        .route("/chat/{name}/manifest.webmanifest", get(named_manifest))
        .route("/chat/{name}/share", post(shared))
        .merge(sign_in::routes())
        .layer(middleware::from_fn(with_common_headers))
        .with_state(Arc::new(chats))
}

/// The path of the page of the chat `name`, or of the main one.
fn path_of(name: Option<&str>) -> String {
    name.map_or_else(|| "/chat".to_owned(), |name| format!("/chat/{name}"))
}

/// The OpenAPI description of the web chats' routes, for `/openapi.json`.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    #[derive(OpenApi)]
    #[openapi(
        paths(main_page, page, main_socket, named_socket, main_message, named_message),
        components(schemas(ProblemDocument, MessageForm, StoredMessage))
    )]
    struct Description;
    Description::openapi()
}

/// An RFC 9457 problem document.
#[derive(ToSchema)]
#[expect(dead_code, reason = "for the OpenAPI description only")]
struct ProblemDocument {
    /// The kind of problem: `urn:rejoinder:problem:` and a name.
    r#type: String,
    /// A short description of the problem.
    title: &'static str,
    /// The HTTP status code.
    status: u16,
    /// Details, and what to do about it.
    detail: String,
}

/// The page of the main chat.
#[utoipa::path(
    get, path = "/chat", tag = "chat",
    responses(
        (status = 200, description = "The page", content_type = "text/html", body = String),
        (status = 403, description = "Not from this machine, or not under a loopback name", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, description = "No web chat is configured as the main one", body = ProblemDocument, content_type = "application/problem+json"),
    )
)]
async fn main_page(State(chats): State<Arc<Chats>>, request: Request) -> Result<Response, Problem> {
    page_of(&chats, None, request)
}

/// The page of a chat.
#[utoipa::path(
    get, path = "/chat/{name}", tag = "chat",
    params(("name" = String, Path, description = "The chat's name in the configuration")),
    responses(
        (status = 200, description = "The page", content_type = "text/html", body = String),
        (status = 403, description = "Not from this machine, or not under a loopback name", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, description = "No such chat", body = ProblemDocument, content_type = "application/problem+json"),
    )
)]
async fn page(
    State(chats): State<Arc<Chats>>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    page_of(&chats, Some(&name), request)
}

fn page_of(chats: &Chats, name: Option<&str>, request: Request) -> Result<Response, Problem> {
    let (parts, _) = request.into_parts();
    let (chat, host) = chats.find(name, &parts)?;
    let page = Assets::get("index.html").expect("the page is embedded");
    let page = String::from_utf8_lossy(&page.data);
    let page = page.replace("{{title}}", &escaped(&chat.title)).replace("{{path}}", &escaped(&path_of(name)));
    let mut response = cached(&parts.headers, "text/html; charset=utf-8", page.into_bytes());
    let policy = HeaderValue::from_str(&content_security_policy(&host)).expect("an authority is printable ASCII");
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    // For voice notes.
    let microphone = HeaderValue::from_static("camera=(), geolocation=(), microphone=(self)");
    response.headers_mut().insert(PERMISSIONS_POLICY, microphone);
    Ok(response)
}

/// The page may run only its own scripts and connect only to its own socket. The socket is listed because `'self'`
/// does not include `ws:` in every browser (WebKit before 15.4).
fn content_security_policy(host: &Authority) -> String {
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self' ws://{host} wss://{host}; \
         img-src 'self' data: blob:; media-src 'self' blob:; base-uri 'none'; frame-ancestors 'none'; form-action 'none'; \
         manifest-src 'self'; require-trusted-types-for 'script'; trusted-types rejoinder rejoinder-worker"
    )
}

/// The socket of the main chat; its protocol is in `docs/webchat-protocol.md`.
#[utoipa::path(
    get, path = "/chat/ws", tag = "chat",
    responses(
        (status = 101, description = "The socket is open"),
        (status = 403, description = "Opened by a page of another origin, or not from this machine", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, description = "No web chat is configured as the main one", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 503, description = "Too many sockets are open", body = ProblemDocument, content_type = "application/problem+json"),
    )
)]
async fn main_socket(State(chats): State<Arc<Chats>>, request: Request) -> Result<Response, Problem> {
    socket_of(&chats, None, request).await
}

/// The socket of a chat; its protocol is in `docs/webchat-protocol.md`.
#[utoipa::path(
    get, path = "/chat/{name}/ws", tag = "chat",
    params(("name" = String, Path, description = "The chat's name in the configuration")),
    responses(
        (status = 101, description = "The socket is open"),
        (status = 403, description = "Opened by a page of another origin, or not from this machine", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, description = "No such chat", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 503, description = "Too many sockets are open", body = ProblemDocument, content_type = "application/problem+json"),
    )
)]
async fn named_socket(
    State(chats): State<Arc<Chats>>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    socket_of(&chats, Some(&name), request).await
}

async fn socket_of(chats: &Chats, name: Option<&str>, request: Request) -> Result<Response, Problem> {
    let (mut parts, _) = request.into_parts();
    let (chat, host) = chats.find(name, &parts)?;
    check_origin(&chat, &parts, &host)?;
    let upgrade = match WebSocketUpgrade::from_request_parts(&mut parts, &()).await {
        Ok(upgrade) => upgrade,
        Err(rejection) => {
            let title = rejection.status().canonical_reason().unwrap_or("Bad request");
            let detail = format!("this is not a WebSocket: {}", rejection.body_text());
            return Err(Problem::new(rejection.status(), "not-a-websocket", title, detail));
        }
    };
    let peer = Peer::of(&parts.extensions);
    let Some(permit) = chat.permits.take(peer) else {
        let (title, detail) = ("Service unavailable: too many sockets", "too many sockets are open: try again later");
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too-many-sockets", title, detail));
    };
    let visitor = match chat.socket_context.get() {
        Some(context) => visitor(&chat, &context, &parts).await.map_err(|_| not_known_now())?,
        None => None,
    };
    let upgrade = upgrade.max_message_size(MAX_FRAME_BYTES).max_frame_size(MAX_FRAME_BYTES);
    Ok(upgrade.on_upgrade(move |socket| socket::serve(chat, socket, peer, permit, visitor)))
}

fn not_known_now() -> Problem {
    let (title, detail) =
        ("Service unavailable", "it cannot be read right now who is signed in: try again in a moment");
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", title, detail)
}

/// Rejects what pages send that are neither the chat's own nor named by the operator.
fn check_origin(chat: &WebchatAdapter, parts: &Parts, host: &Authority) -> Result<(), AccessError> {
    match cors::named_page(chat, &parts.headers) {
        Some(_) => Ok(()),
        None => access::check_origin(&parts.headers, host, &chat.origins),
    }
}

/// Send a message with files.
///
/// In the main chat. `Authorization: Bearer` has the token of the chat, if it needs one. The turn is shown in the sockets that have the
/// conversation open.
#[utoipa::path(
    post, path = "/chat/messages", tag = "chat",
    request_body(content = MessageForm, content_type = "multipart/form-data"),
    responses(
        (status = 200, description = "The message is stored, and will be answered", body = StoredMessage),
        (status = 400, description = "The body is no form", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 401, description = "The token is missing or wrong", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, description = "Sent by a page of another origin, or not from this machine", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, description = "No web chat is configured as the main one", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, description = "The id was used for another text", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 413, description = "The files are too large", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 422, description = "The message is empty or too long, has too many files, or an id is not valid", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 429, description = "Too many messages, or too many wrong tokens", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 503, description = "It cannot be stored now: send it again with the same id", body = ProblemDocument, content_type = "application/problem+json"),
    )
)]
async fn main_message(State(chats): State<Arc<Chats>>, request: Request) -> Result<Response, Problem> {
    message_of(&chats, None, request).await
}

/// Send a message with files to a chat.
///
/// As `POST /chat/messages`.
#[utoipa::path(
    post, path = "/chat/{name}/messages", tag = "chat",
    params(("name" = String, Path, description = "The chat's name in the configuration")),
    request_body(content = MessageForm, content_type = "multipart/form-data"),
    responses(
        (status = 200, description = "The message is stored, and will be answered", body = StoredMessage),
        (status = 400, description = "The body is no form", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 401, description = "The token is missing or wrong", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, description = "Sent by a page of another origin, or not from this machine", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, description = "No such chat", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, description = "The id was used for another text", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 413, description = "The files are too large", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 422, description = "The message is empty or too long, has too many files, or an id is not valid", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 429, description = "Too many messages, or too many wrong tokens", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 503, description = "It cannot be stored now: send it again with the same id", body = ProblemDocument, content_type = "application/problem+json"),
    )
)]
async fn named_message(
    State(chats): State<Arc<Chats>>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    message_of(&chats, Some(&name), request).await
}

async fn message_of(chats: &Chats, name: Option<&str>, request: Request) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let (chat, host) = chats.find(name, &parts)?;
    check_origin(&chat, &parts, &host)?;
    let taken = upload::take(&chat, &parts, body).await;
    Ok(cors::allowing(&chat, &parts.headers, taken.into_response()))
}

/// What the pages of other origins ask before they send a message with files.
async fn main_preflight(State(chats): State<Arc<Chats>>, request: Request) -> Result<Response, Problem> {
    preflight_of(&chats, None, request)
}

async fn named_preflight(
    State(chats): State<Arc<Chats>>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    preflight_of(&chats, Some(&name), request)
}

fn preflight_of(chats: &Chats, name: Option<&str>, request: Request) -> Result<Response, Problem> {
    let (parts, _) = request.into_parts();
    let (chat, host) = chats.find(name, &parts)?;
    check_origin(&chat, &parts, &host)?;
    Ok(cors::preflight(&chat, &parts.headers))
}

async fn main_manifest(State(chats): State<Arc<Chats>>, request: Request) -> Result<Response, Problem> {
    manifest_of(&chats, None, request)
}

async fn named_manifest(
    State(chats): State<Arc<Chats>>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    manifest_of(&chats, Some(&name), request)
}

fn manifest_of(chats: &Chats, name: Option<&str>, request: Request) -> Result<Response, Problem> {
    let (parts, _) = request.into_parts();
    let (chat, _) = chats.find(name, &parts)?;
    let app = App { path: &path_of(name), name: &chat.title, assets: "/chat/assets", takes_shares: true };
    Ok(app.manifest(&parts.headers))
}

/// Where there is a worker, it takes what is shared and opens the page.
async fn shared(Path(name): Path<String>) -> Redirect {
    Redirect::to(&path_of(Some(&name)))
}

async fn asset(
    State(chats): State<Arc<Chats>>,
    Path(file): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, _) = request.into_parts();
    // All chats share the assets: anybody who may open one of the chats may read them.
    if !chats.have_open() {
        access::admit(&Access::Loopback, &parts)?;
    }
    if file == WORKER {
        return Ok(worker::<Assets>("/chat", false, &parts.headers));
    }
    let not_found =
        || Problem::new(StatusCode::NOT_FOUND, "no-such-file", "Not found: there is no such file", file.clone());
    let file = Some(&*file).filter(|file| *file != "index.html");
    file.and_then(|file| embedded::<Assets>(file, &parts.headers)).ok_or_else(not_found)
}

async fn with_common_headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    let common = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in common {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // The page sets its own policies; the other responses are not documents.
    headers.entry(PERMISSIONS_POLICY).or_insert(HeaderValue::from_static("camera=(), geolocation=(), microphone=()"));
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"));
    response
}

#[cfg(test)]
mod tests {
    use axum::{
        body::{Body, to_bytes},
        http::HeaderMap,
    };
    use rejoinder_core::{FileLimits, SystemClock};
    use rstest::rstest;
    use tower::ServiceExt as _;

    use super::*;
    use crate::{WebchatSection, WebchatSettings};

    fn chat(name: &str, access: Access) -> Arc<WebchatAdapter> {
        Arc::new(WebchatAdapter::new(WebchatSettings {
            name: name.to_owned(),
            section: WebchatSection { title: "Chat <script>".to_owned(), ..WebchatSection::default() },
            access,
            origins: vec![],
            guesses: Arc::default(),
            files: FileLimits::default(),
            push: None,
            clock: Arc::new(SystemClock),
        }))
    }

    async fn get(
        chats: Vec<Arc<WebchatAdapter>>,
        path: &str,
        headers: &[(&str, &str)],
    ) -> (StatusCode, HeaderMap, String) {
        let mut request = Request::builder().uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).expect("a request");
        let (parts, body) = router(chats).oneshot(request).await.expect("a response").into_parts();
        let body = to_bytes(body, usize::MAX).await.expect("a body");
        (parts.status, parts.headers, String::from_utf8_lossy(&body).into_owned())
    }

    const LOCAL: (&str, &str) = ("host", "localhost:7420");

    #[rstest]
    #[case(&["main", "other"], "/chat", 200)]
    #[case(&["main", "other"], "/chat/main", 200)]
    #[case(&["main", "other"], "/chat/other", 200)]
    #[case(&["other"], "/chat", 200)]
    #[case(&["one", "other"], "/chat", 404)]
    #[case(&["main"], "/chat/other", 404)]
    #[case(&[], "/chat", 404)]
    #[case(&["main"], "/chat/", 308)]
    #[case(&["main"], "/chat/assets/chat.js", 200)]
    #[case(&["main"], "/chat/assets/index.html", 404)]
    #[case(&["main"], "/chat/assets/worker.js", 200)]
    #[case(&["main"], "/chat/manifest.webmanifest", 200)]
    #[case(&["main", "other"], "/chat/other/manifest.webmanifest", 200)]
    #[case(&["main"], "/chat/other/manifest.webmanifest", 404)]
    #[case(&["main"], "/chat/share", 405)]
    #[case(&["main"], "/chat/assets/..%2Fsrc%2Flib.rs", 404)]
    #[case(&["main"], "/chat/ws", 400)]
    #[tokio::test]
    async fn each_chat_has_its_page(#[case] names: &[&str], #[case] path: &str, #[case] status: u16) {
        let chats = names.iter().map(|name| chat(name, Access::Loopback)).collect();

        assert_eq!(get(chats, path, &[LOCAL]).await.0, status);
    }

    #[rstest]
    #[case("/chat")]
    #[case("/chat/ws")]
    #[case("/chat/assets/chat.js")]
    #[case("/chat/assets/worker.js")]
    #[case("/chat/manifest.webmanifest")]
    #[tokio::test]
    async fn another_name_of_this_machine_opens_nothing(#[case] path: &str) {
        let (status, headers, body) =
            get(vec![chat("main", Access::Loopback)], path, &[("host", "evil.example")]).await;

        assert_eq!(
            (status, &headers[header::CONTENT_TYPE]),
            (StatusCode::FORBIDDEN, &HeaderValue::from_static("application/problem+json"))
        );
        assert!(body.contains("this machine only"), "{body}");
    }

    #[tokio::test]
    async fn the_page_runs_nothing_but_its_own_scripts() {
        let (_, headers, body) = get(vec![chat("main", Access::Loopback)], "/chat", &[LOCAL]).await;

        let policy = headers[header::CONTENT_SECURITY_POLICY].to_str().expect("text");
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'; "), "{policy}");
        assert!(policy.contains("connect-src 'self' ws://localhost:7420 wss://localhost:7420;"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
        assert_eq!(headers[header::REFERRER_POLICY], "no-referrer");
        assert!(body.contains("<title>Chat &lt;script&gt;</title>"), "{body}");
        assert!(!body.contains("{{"), "{body}");
        // The policy would block inline scripts, handlers and styles.
        let is_inline = |word: &str| {
            word.starts_with("<script>") || word.starts_with("style=") || (word.starts_with("on") && word.contains('='))
        };
        assert!(!body.split_whitespace().any(is_inline), "{body}");
    }

    #[rstest]
    #[case("/chat", &["main", "other"])]
    #[case("/chat/other", &["main", "other"])]
    #[tokio::test]
    async fn a_page_is_an_app_of_its_own(#[case] path: &str, #[case] names: &[&str]) {
        let chats = || names.iter().map(|name| chat(name, Access::Loopback)).collect::<Vec<_>>();
        let (_, _, page) = get(chats(), path, &[LOCAL]).await;
        let link = format!("<link rel=\"manifest\" href=\"{path}/manifest.webmanifest\">");
        assert!(page.contains(&link), "{page}");

        let (_, headers, manifest) = get(chats(), &format!("{path}/manifest.webmanifest"), &[LOCAL]).await;

        assert_eq!(headers[header::CONTENT_TYPE], "application/manifest+json");
        let manifest: serde_json::Value = serde_json::from_str(&manifest).expect("JSON");
        assert_eq!((&manifest["start_url"], &manifest["name"]), (&path.into(), &"Chat <script>".into()));
    }

    #[tokio::test]
    async fn the_worker_is_that_of_all_pages_and_asks_nobody_else() {
        let (_, headers, _) = get(vec![chat("main", Access::Loopback)], "/chat/assets/worker.js", &[LOCAL]).await;

        assert_eq!(headers["service-worker-allowed"], "/chat");
        assert_eq!(headers[header::CONTENT_SECURITY_POLICY], "default-src 'none'; connect-src 'self'");
    }

    /// Without the worker, which takes what is shared.
    #[tokio::test]
    async fn what_is_shared_too_early_opens_the_page() {
        let request = Request::post("/chat/other/share").body(Body::empty()).expect("a request");

        let response = router(vec![chat("other", Access::Loopback)]).oneshot(request).await.expect("a response");

        assert_eq!(response.status(), StatusCode::SEE_OTHER);
        assert_eq!(response.headers()[header::LOCATION], "/chat/other");
    }

    #[test]
    fn the_page_finds_all_that_it_asks_for() {
        let page = Assets::get("index.html").expect("the page").data;
        let page = String::from_utf8_lossy(&page);

        let asked: Vec<&str> = page
            .split("/chat/assets/")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap_or_default())
            .chain([
                "actions.js",
                "app.js",
                "attached.js",
                "code.js",
                "connection.js",
                "conversation.js",
                "conversations.js",
                "copy.js",
                "deletions.js",
                "dialogs.js",
                "files.css",
                "files.js",
                "found.js",
                "help.js",
                "install.js",
                "kept-files.js",
                "keys.js",
                "list.js",
                "menu.css",
                "menu.js",
                "more.css",
                "more.js",
                "outbox.js",
                "print.css",
                "recorder.js",
                "rich.css",
                "rich.js",
                "sign-in.js",
                "storage.js",
                "theme-button.js",
                "turns.js",
                "upload.js",
                "words-de.js",
                "words-es.js",
                "work.css",
                "work.js",
            ])
            .collect();
        assert!(asked.len() > 5);
        let is_found = |file: &&str| embedded::<Assets>(file, &HeaderMap::new()).is_some();
        assert!(asked.iter().all(is_found), "{asked:?}");
    }

    /// A file as a browser reads it.
    async fn text_of(file: &str) -> String {
        let response = embedded::<Assets>(file, &HeaderMap::new()).expect("the file is there");
        let bytes = to_bytes(response.into_body(), usize::MAX).await.expect("a body");
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// With the words of its language, and until it is connected. What is used later is loaded later.
    #[tokio::test]
    async fn a_page_begins_with_at_most_150_kibibytes() {
        let page = Assets::get("index.html").expect("the page").data;
        let page = String::from_utf8_lossy(&page);
        let named = page.split("/chat/assets/").skip(1).filter_map(|rest| rest.split('"').next());
        let mut files: Vec<String> = Vec::new();
        // The system asks for the picture once the page is an app.
        for file in named.filter(|file| !file.ends_with("png")) {
            if !files.iter().any(|known| known == file) {
                files.push(file.to_owned());
            }
        }
        let mut bytes = page.len() + text_of("words-de.js").await.len().max(text_of("words-es.js").await.len());

        let mut read = 0;
        while read < files.len() {
            let text = text_of(&files[read]).await;
            bytes += text.len();
            read += 1;
            let imports = text.lines().filter(|line| line.starts_with("import "));
            for file in imports.filter_map(|line| line.split("\"./").nth(1)?.split('"').next()) {
                if !files.iter().any(|known| known == file) {
                    files.push(file.to_owned());
                }
            }
        }

        assert!(files.iter().any(|file| file == "words.js"), "{files:?}");
        assert!(bytes <= 150 * 1024, "{bytes} bytes: {files:?}");
    }

    #[tokio::test]
    async fn what_the_browser_has_is_not_sent_again() {
        let asset = "/chat/assets/chat.css";
        let chats = || vec![chat("main", Access::Loopback)];
        let (_, headers, body) = get(chats(), asset, &[LOCAL]).await;
        let tag = headers[header::ETAG].to_str().expect("text");

        let again = get(chats(), asset, &[LOCAL, ("if-none-match", tag)]).await;
        let other = get(chats(), asset, &[LOCAL, ("if-none-match", "\"other\"")]).await;

        assert_eq!((again.0, again.2.as_str()), (StatusCode::NOT_MODIFIED, ""));
        assert_eq!((other.0, other.2), (StatusCode::OK, body));
        assert_eq!(headers[header::CONTENT_TYPE], "text/css; charset=utf-8");
    }

    #[test]
    fn the_description_names_every_path() {
        let paths: Vec<String> = openapi().paths.paths.keys().cloned().collect();

        assert_eq!(
            paths,
            ["/chat", "/chat/messages", "/chat/ws", "/chat/{name}", "/chat/{name}/messages", "/chat/{name}/ws"]
        );
    }
}
