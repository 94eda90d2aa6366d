//! Files of turns over HTTP: who opens them, how they are sent, and when they end.

use std::time::Duration;

use rejoinder_core::{Clock as _, FileDigest, FileLinks, SystemClock, Timestamp, data_url};
use reqwest::{Response, StatusCode, header};
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{ADMIN_TOKEN, Echo, HOOK_TOKEN, PICTURE, TestGateway, eventually, json_of, problem};

/// Asks the hook, and returns the id of the turn.
async fn ask(gateway: &TestGateway, message: Value) -> String {
    let request = gateway.http.post(gateway.url("/hooks/test")).bearer_auth(HOOK_TOKEN).json(&message);
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    json_of(response).await["turn_id"].as_str().unwrap().to_owned()
}

/// Ada sends a file to the hook. Returns the turn.
async fn given(gateway: &TestGateway, media_type: &str, bytes: &[u8]) -> String {
    let file = json!({ "name": "shopping list", "media_type": media_type, "url": data_url(media_type, bytes) });
    ask(gateway, json!({ "message": "hello", "sender": "ada", "attachments": [file] })).await
}

/// The path of a file, for operators.
fn path(turn: &str, bytes: &[u8]) -> String {
    format!("/files/{}?turn={turn}", FileDigest::of(bytes).digits())
}

/// A link to a file, as the gateway makes it.
fn link(gateway: &TestGateway, turn: &str, bytes: &[u8], until: Timestamp) -> String {
    let secret = std::fs::read_to_string(gateway.data.path().join("file-link-key")).unwrap();
    FileLinks::new(secret.trim(), Duration::ZERO).path(turn.parse().unwrap(), FileDigest::of(bytes), until)
}

fn soon() -> Timestamp {
    SystemClock.now() + Duration::from_mins(5)
}

async fn get(gateway: &TestGateway, path: &str) -> Response {
    gateway.get(path).send().await.unwrap()
}

async fn get_as(gateway: &TestGateway, token: &str, path: &str) -> StatusCode {
    gateway.get(path).bearer_auth(token).send().await.unwrap().status()
}

async fn post(gateway: &TestGateway, path: &str, body: Value) -> Response {
    let request = gateway.http.post(gateway.url(&format!("/admin/api/{path}"))).bearer_auth(ADMIN_TOKEN);
    request.json(&body).send().await.unwrap()
}

#[tokio::test]
async fn a_link_opens_its_file_until_its_time() {
    let (gateway, list) = (TestGateway::start().await, b"bread, milk");
    let turn = given(&gateway, "text/plain", list).await;
    let right = link(&gateway, &turn, list, soon());

    let opened = get(&gateway, &right).await;
    let headers = opened.headers().clone();
    assert_eq!((opened.status(), opened.text().await.unwrap().as_bytes()), (StatusCode::OK, &list[..]));
    assert_eq!(headers[header::CONTENT_TYPE], "text/plain; charset=utf-8");
    assert_eq!(headers[header::CONTENT_LENGTH], "11");
    let disposition = "inline; filename=\"shopping list\"; filename*=UTF-8''shopping%20list";
    assert_eq!(headers[header::CONTENT_DISPOSITION], disposition);

    for wrong in [
        right.replace("until=", "until=1"),
        right.replace(&FileDigest::of(list).digits(), &FileDigest::of(b"another file").digits()),
        right[..right.len() - 1].to_owned(),
        right.split_once("&key=").unwrap().0.to_owned(),
        link(&gateway, "01890000-0000-7000-8000-000000000000", list, soon()),
        link(&gateway, &turn, b"another file", soon()),
    ] {
        let detail = problem(get(&gateway, &wrong).await, StatusCode::NOT_FOUND).await;
        assert!(detail.starts_with("there is no such file"), "{wrong}: {detail}");
    }
    let late = get(&gateway, &link(&gateway, &turn, list, Timestamp::from_millis(1))).await;
    assert!(problem(late, StatusCode::GONE).await.contains("is over"));
}

#[tokio::test]
async fn a_file_is_read_by_operators_who_may_see_its_channel() {
    let gateway = TestGateway::start().await;
    let path = path(&given(&gateway, "text/plain", b"bread").await, b"bread");
    let token = async |role: &str, channel: &str| {
        let made = post(&gateway, "tokens", json!({ "role": role, "channels": [channel] })).await;
        json_of(made).await["token"].as_str().unwrap().to_owned()
    };
    let (own, other) = (token("viewer", "webhook.test").await, token("viewer", "webhook.other").await);
    let talks = token("chat", "webhook.test").await;

    assert_eq!(get_as(&gateway, ADMIN_TOKEN, &path).await, StatusCode::OK);
    assert_eq!(get_as(&gateway, &own, &path).await, StatusCode::OK);
    assert_eq!(get_as(&gateway, &other, &path).await, StatusCode::NOT_FOUND);
    assert_eq!(get_as(&gateway, &talks, &path).await, StatusCode::FORBIDDEN);
    assert_eq!(get_as(&gateway, "a-guess", &path).await, StatusCode::UNAUTHORIZED);
    assert_eq!(get(&gateway, &path).await.status(), StatusCode::UNAUTHORIZED);
    let session = gateway.http.post(gateway.url("/admin/api/session")).bearer_auth(ADMIN_TOKEN).send().await.unwrap();
    let cookie = session.headers()[header::SET_COOKIE].to_str().unwrap().split(';').next().unwrap().to_owned();
    let with_cookie = gateway.get(&format!("/admin{path}")).header(header::COOKIE, cookie).send().await.unwrap();
    assert_eq!(with_cookie.status(), StatusCode::OK);
}

#[rstest]
#[case("REJOINDER__ADMIN__ENABLED", "false")]
#[case("REJOINDER__ADMIN__LISTEN", "127.0.0.1:0")]
#[tokio::test]
async fn where_no_operators_are_served_only_a_link_opens_a_file(#[case] variable: &str, #[case] value: &str) {
    let gateway = TestGateway::start_with_environment(&[(variable, value)]).await;
    let turn = given(&gateway, "text/plain", b"bread").await;

    assert_eq!(get_as(&gateway, ADMIN_TOKEN, &path(&turn, b"bread")).await, StatusCode::NOT_FOUND);
    assert_eq!(get(&gateway, &link(&gateway, &turn, b"bread", soon())).await.status(), StatusCode::OK);
}

#[rstest]
#[case("text/html", b"<!doctype html><script>alert(1)</script>")]
#[case("image/svg+xml", b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>")]
#[case("text/javascript", b"alert(1)")]
#[tokio::test]
async fn nothing_active_is_shown(#[case] media_type: &str, #[case] bytes: &[u8]) {
    let gateway = TestGateway::start().await;
    let turn = given(&gateway, media_type, bytes).await;

    let response = get(&gateway, &link(&gateway, &turn, bytes, soon())).await;

    let header = |name: header::HeaderName| response.headers()[name].to_str().unwrap();
    assert_eq!(header(header::CONTENT_TYPE), "application/octet-stream");
    assert!(header(header::CONTENT_DISPOSITION).starts_with("attachment; "));
    assert!(header(header::CONTENT_SECURITY_POLICY).ends_with("; sandbox"));
    assert_eq!((header(header::X_CONTENT_TYPE_OPTIONS), header(header::CACHE_CONTROL)), ("nosniff", "no-store"));
}

/// Larger than what is read at once.
#[tokio::test]
async fn a_large_file_comes_whole_or_as_a_range() {
    let bytes: Vec<u8> = (0..175_000_u32).flat_map(u32::to_le_bytes).collect();
    let gateway = TestGateway::start().await;
    let path = link(&gateway, &given(&gateway, "application/zip", &bytes).await, &bytes, soon());
    let ranged = async |range: &str| gateway.get(&path).header(header::RANGE, range).send().await.unwrap();

    let whole = get(&gateway, &path).await;
    assert!((whole.status(), whole.bytes().await.unwrap().as_ref()) == (StatusCode::OK, &bytes[..]));

    for (range, from, to) in [("bytes=300000-300009", 300_000, 300_009), ("bytes=100000-", 100_000, 699_999)] {
        let part = ranged(range).await;
        assert_eq!(part.status(), StatusCode::PARTIAL_CONTENT);
        assert_eq!(part.headers()[header::CONTENT_RANGE], format!("bytes {from}-{to}/700000"));
        assert!(part.bytes().await.unwrap().as_ref() == &bytes[from..=to], "{range}");
    }
    let none = ranged("bytes=700000-").await;
    assert_eq!(none.headers()[header::CONTENT_RANGE], "bytes */700000");
    problem(none, StatusCode::RANGE_NOT_SATISFIABLE).await;
}

#[tokio::test]
async fn a_file_ends_with_what_is_forgotten() {
    let gateway = TestGateway::start().await;
    let turn = given(&gateway, "text/plain", b"bread").await;
    let (link, path) = (link(&gateway, &turn, b"bread", soon()), path(&turn, b"bread"));
    assert_eq!(get(&gateway, &link).await.status(), StatusCode::OK);

    eventually("she is forgotten", async || {
        let done = json_of(post(&gateway, "people/forget", json!({ "person": "webhook.test/ada" })).await).await;
        (done["done"] == true).then_some(())
    })
    .await;

    problem(get(&gateway, &link).await, StatusCode::NOT_FOUND).await;
    assert_eq!(get_as(&gateway, ADMIN_TOKEN, &path).await, StatusCode::NOT_FOUND);
}

/// Also of one that was merged into another.
#[tokio::test]
async fn the_file_of_an_answer_is_that_of_each_turn_that_it_answers() {
    let collects = "[queue]\nmode = \"collect\"\nwindow = \"500ms\"\n";
    let gateway = TestGateway::start_with(Echo::at_once(), collects).await;
    let ask = async |message: &str| ask(&gateway, json!({ "message": message, "conversation": "one" })).await;

    let (one, other) = tokio::join!(ask("a picture, please"), ask("thanks"));

    for turn in [one, other] {
        let response = get(&gateway, &link(&gateway, &turn, PICTURE, soon())).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()[header::CONTENT_TYPE], "image/png");
        assert_eq!(response.bytes().await.unwrap().as_ref(), PICTURE);
    }
}
