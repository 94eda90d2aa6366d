//! What strangers get from the operator's routes.

use futures_util::{StreamExt, future::join_all, stream::FuturesUnordered};
use reqwest::{Response, StatusCode};
use rstest::rstest;

use crate::support::{ADMIN_TOKEN, Echo, TestGateway, json_of, problem};

const FORWARDED: &str = "x-forwarded-for";
const TRUSTED: &str = "[server]\ntrusted_proxies = [\"127.0.0.1\"]\n";

async fn start(config: &str) -> TestGateway {
    TestGateway::start_with(Echo::at_once(), config).await
}

async fn admin(gateway: &TestGateway, token: &str, from: &str) -> Response {
    gateway.get("/admin/api/turns").bearer_auth(token).header(FORWARDED, from).send().await.unwrap()
}

/// Sends six wrong tokens, and then so many at once.
async fn guess(gateway: &TestGateway, from: &str, at_once: usize) -> Vec<StatusCode> {
    for _ in 0..6 {
        assert_eq!(admin(gateway, "a-guess", from).await.status(), StatusCode::UNAUTHORIZED);
    }
    join_all((0..at_once).map(|_| admin(gateway, "a-guess", from))).await.iter().map(Response::status).collect()
}

#[tokio::test]
async fn who_guesses_the_admin_token_is_slowed_down() {
    let gateway = start("").await;

    let statuses = guess(&gateway, "203.0.113.9", 14).await;
    let metrics = gateway.get("/metrics").send().await.unwrap().text().await.unwrap();

    assert!(statuses.contains(&StatusCode::TOO_MANY_REQUESTS), "{statuses:?}");
    assert!(statuses.iter().filter(|status| **status == StatusCode::UNAUTHORIZED).count() <= 11, "{statuses:?}");
    let counted = "rejoinder_refused_requests_total{surface=\"admin\",reason=\"too_many\"} ";
    let refused = metrics.lines().find_map(|line| line.strip_prefix(counted));
    assert!(refused.is_some_and(|count| count != "0"), "{metrics}");
}

#[rstest]
#[case::what_a_trusted_proxy_says_counts(TRUSTED, false)]
#[case::what_others_say_changes_nothing("", true)]
#[tokio::test]
async fn guesses_count_for_the_caller(#[case] config: &str, #[case] is_slowed: bool) {
    let gateway = start(config).await;
    guess(&gateway, "203.0.113.9", 0).await;
    let mut guesses: FuturesUnordered<_> = (0..40).map(|_| admin(&gateway, "a-guess", "203.0.113.9")).collect();
    while guesses.next().await.expect("a guess is refused unchecked").status() != StatusCode::TOO_MANY_REQUESTS {}

    let others = join_all((0..4).map(|_| admin(&gateway, ADMIN_TOKEN, "198.51.100.7"))).await;

    let refused = others.iter().filter(|response| response.status() == StatusCode::TOO_MANY_REQUESTS).count();
    assert_eq!(refused > 0, is_slowed, "{others:?}");
}

#[rstest]
#[case("/metrics")]
#[case("/openapi.json")]
#[tokio::test]
async fn through_a_proxy_the_operators_pages_need_a_token(#[case] path: &str) {
    let gateway = start("[metrics]\ntoken = \"metrics-token-of-the-tests\"\n").await;
    let ask = async |token: Option<&str>| {
        let request = gateway.get(path).header(FORWARDED, "203.0.113.9");
        let request = if let Some(token) = token { request.bearer_auth(token) } else { request };
        request.send().await.unwrap()
    };

    problem(ask(None).await, StatusCode::UNAUTHORIZED).await;
    problem(ask(Some("a-guess")).await, StatusCode::UNAUTHORIZED).await;
    for token in [ADMIN_TOKEN, "metrics-token-of-the-tests"] {
        assert_eq!(ask(Some(token)).await.status(), StatusCode::OK, "{token}");
    }
    assert_eq!(admin(&gateway, "metrics-token-of-the-tests", "").await.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn through_a_proxy_readiness_is_a_status_without_reasons() {
    let gateway = start("").await;
    let ask = || gateway.get("/readyz").header("via", "1.1 proxy");

    let bare = ask().send().await.unwrap();
    let detailed = ask().bearer_auth(ADMIN_TOKEN).send().await.unwrap();

    assert_eq!((bare.status(), json_of(bare).await), (StatusCode::OK, serde_json::json!({ "status": "ready" })));
    assert_eq!(json_of(detailed).await["channels"].as_array().map(Vec::len), Some(3));
}

#[tokio::test]
async fn a_former_token_opens_as_long_as_it_is_configured() {
    let data = tempfile::tempdir().unwrap();
    let hook = "[channels.webhook.rotated]\ntoken = [{ generate = true }, \"the-token-of-last-year\"]\n";
    let gateway = TestGateway::start_in(data, Echo::at_once(), hook).await;
    let new = std::fs::read_to_string(gateway.data.path().join("hook-rotated-token")).unwrap();

    let ask = async |token: &str| {
        let request = gateway.http.post(gateway.url("/hooks/rotated")).bearer_auth(token.trim()).body("hello");
        request.send().await.unwrap().status()
    };

    assert_eq!((ask(&new).await, ask("the-token-of-last-year").await), (StatusCode::OK, StatusCode::OK));
    assert_eq!(ask("the-token-of-next-year").await, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn admin_can_be_switched_off() {
    let gateway = start("").await;
    let off = TestGateway::start_with_environment(&[("REJOINDER__ADMIN__ENABLED", "false")]).await;

    assert_eq!(admin(&gateway, ADMIN_TOKEN, "").await.status(), StatusCode::OK);
    problem(admin(&off, ADMIN_TOKEN, "").await, StatusCode::NOT_FOUND).await;
    assert_eq!(off.get("/metrics").send().await.unwrap().status(), StatusCode::OK);
}

#[rstest]
#[case("/admin/api/turns")]
#[case("/healthz")]
#[case("/chat")]
#[case("/")]
#[case("/nothing")]
#[tokio::test]
async fn no_other_page_may_embed_what_is_served(#[case] path: &str) {
    let gateway = start("").await;

    let response = gateway.get(path).send().await.unwrap();

    assert_eq!(response.headers()["cross-origin-resource-policy"], "same-origin");
    assert!(response.headers()["permissions-policy"].to_str().unwrap().contains("camera=()"));
}
