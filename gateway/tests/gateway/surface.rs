//! The rest of the HTTP surface: known and unknown paths, and malformed requests.

use reqwest::{Method, StatusCode, header};
use rstest::rstest;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::support::{ADMIN_TOKEN, PATIENCE, TestGateway, json_of, problem};

#[tokio::test]
async fn the_root_leads_to_the_chat() {
    let gateway = TestGateway::start().await;

    let response = gateway.get("/").send().await.unwrap();

    assert_eq!(response.status(), StatusCode::SEE_OTHER);
    assert_eq!(response.headers()[header::LOCATION], "/chat");
    assert_eq!(gateway.get("/chat").send().await.unwrap().status(), StatusCode::OK);
}

#[rstest]
#[case("/nothing")]
#[case("/chats")]
#[case("/chat/nobody")]
#[case("/hooks/nobody/turns/01890000-0000-7000-8000-000000000000")]
#[tokio::test]
async fn what_is_not_there_is_a_problem_document(#[case] path: &str) {
    let gateway = TestGateway::start().await;

    problem_without_type(gateway.get(path).send().await.unwrap(), StatusCode::NOT_FOUND).await;
}

#[rstest]
#[case(Method::POST, "/readyz")]
#[case(Method::DELETE, "/admin/api/turns")]
#[case(Method::POST, "/chat")]
#[case(Method::GET, "/hooks/test")]
#[tokio::test]
async fn a_method_that_is_not_taken_is_a_problem_document(#[case] method: Method, #[case] path: &str) {
    let gateway = TestGateway::start().await;

    let request = gateway.http.request(method, gateway.url(path)).bearer_auth(ADMIN_TOKEN);

    problem(request.send().await.unwrap(), StatusCode::METHOD_NOT_ALLOWED).await;
}

/// What a browser sends when it opens a page.
const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

#[rstest]
#[case("/nothing", "localhost", 404, "Not found")]
#[case("/chat/<b>", "localhost", 404, "Not found")]
#[case("/chat", "gateway.lan", 403, "this chat is open on this machine only")]
#[case("/", "gateway.lan", 403, "Forbidden")]
#[case("/admin/api/turns", "localhost", 401, "Unauthorized")]
#[case("/hooks/test", "localhost", 405, "Method not allowed")]
#[tokio::test]
async fn a_browser_gets_a_page_where_programs_get_a_problem_document(
    #[case] path: &str,
    #[case] host: &str,
    #[case] status: u16,
    #[case] words: &str,
) {
    let gateway = TestGateway::start().await;

    let response = gateway.get(path).header(header::HOST, host).header(header::ACCEPT, BROWSER).send().await.unwrap();
    let for_programs = gateway.get(path).header(header::HOST, host).send().await.unwrap();

    assert_eq!(response.status(), status);
    assert_eq!(response.headers()[header::CONTENT_TYPE], "text/html; charset=utf-8");
    assert_eq!(response.headers()[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
    let policy = response.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none';") && policy.contains("frame-ancestors 'none'"), "{policy}");
    let page = response.text().await.unwrap().to_lowercase();
    assert!(page.starts_with("<!doctype html>") && page.contains(&words.to_lowercase()), "{page}");
    problem(for_programs, StatusCode::from_u16(status).unwrap()).await;
}

async fn problem_without_type(response: reqwest::Response, status: StatusCode) {
    assert_eq!(response.status(), status);
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    assert_eq!(json_of(response).await["status"], status.as_u16());
}

#[tokio::test]
async fn everything_that_is_served_is_described() {
    let gateway = TestGateway::start().await;

    let description = json_of(gateway.get("/openapi.json").send().await.unwrap()).await;

    let paths = description["paths"].as_object().unwrap();
    for path in ["/hooks/{name}", "/chat/ws", "/admin/api/turns", "/admin/api/channels", "/metrics", "/openapi.json"] {
        assert!(paths.contains_key(path), "{path} is not described");
    }
}

/// A panic of an agent counts as a failure, and the gateway continues.
#[tokio::test]
async fn a_panic_is_survived() {
    let gateway = TestGateway::start().await;

    let answer = json_of(gateway.ask("test", "panic").send().await.unwrap()).await;

    assert_eq!(answer["fallback"]["cause"], "error");
    gateway.ask_for_answer("test", "still there?").await;
}

#[rstest]
#[case(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")]
#[case(b"GET / HTTP/9.9\r\n\r\n")]
#[case(b"GET /\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n")]
#[case(b"POST /hooks/test HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n")]
#[case(
    b"POST /hooks/test HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
)]
#[tokio::test]
async fn rubbish_is_refused_and_the_gateway_goes_on(#[case] rubbish: &[u8]) {
    let gateway = TestGateway::start().await;

    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    stream.write_all(rubbish).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = Vec::new();
    // The connection may be reset, which is fine too.
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("the connection ends");

    assert!(!answer.starts_with(b"HTTP/1.1 2"), "{}", String::from_utf8_lossy(&answer));
    gateway.ask_for_answer("test", "still there?").await;
}

#[tokio::test]
async fn a_head_without_end_is_refused() {
    let gateway = TestGateway::start().await;

    let request = gateway.get("/healthz").header("x-long", "x".repeat(100 * 1024));

    // The gateway answers with a status, or closes the connection while the request is still being sent.
    assert!(
        request.send().await.map_or(true, |response| response.status() == StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)
    );
    gateway.ask_for_answer("test", "still there?").await;
}
