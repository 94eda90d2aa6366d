//! The admin interface.

use reqwest::{StatusCode, header};
use rstest::rstest;

use crate::support::{ADMIN_TOKEN, HOOK_TOKEN, TestGateway, problem};

#[rstest]
#[case("turns")]
#[case("turns/01890000-0000-7000-8000-000000000000")]
#[case("channels")]
#[case("pairings")]
#[case("people")]
#[case("nothing/here")]
#[tokio::test]
async fn nothing_is_shown_without_the_token(#[case] path: &str) {
    let gateway = TestGateway::start().await;
    let path = format!("/admin/api/{path}");

    let without = gateway.get(&path).send().await.unwrap();
    let with_another = gateway.get(&path).bearer_auth(HOOK_TOKEN).send().await.unwrap();

    assert_eq!(without.headers()[header::WWW_AUTHENTICATE], "Bearer realm=\"rejoinder admin\"");
    problem(without, StatusCode::UNAUTHORIZED).await;
    problem(with_another, StatusCode::UNAUTHORIZED).await;
}

#[tokio::test]
async fn a_page_that_rebinds_its_name_is_not_let_in() {
    let gateway = TestGateway::start().await;

    for path in ["/admin/api/turns", "/metrics", "/readyz", "/openapi.json", "/healthz", "/", "/nothing"] {
        let request = gateway.get(path).bearer_auth(ADMIN_TOKEN).header(header::HOST, "evil.example");
        problem(request.send().await.unwrap(), StatusCode::FORBIDDEN).await;
    }
}

#[tokio::test]
async fn turns_come_in_pages_newest_first() {
    let gateway = TestGateway::start().await;
    let mut asked = Vec::new();
    for number in 0..5 {
        asked.push(gateway.ask_for_answer("test", &format!("message {number}")).await);
    }
    asked.reverse();

    let mut shown = Vec::new();
    let mut path = "turns?limit=2".to_owned();
    let mut pages = 0;
    loop {
        let (status, page) = gateway.admin(&path).await;
        assert_eq!(status, StatusCode::OK);
        pages += 1;
        shown.extend(page["items"].as_array().unwrap().iter().map(|turn| turn["turn_id"].as_str().unwrap().to_owned()));
        match page["next"].as_str() {
            Some(next) => path = format!("turns?limit=2&before={next}"),
            None => break,
        }
    }

    assert_eq!((shown, pages), (asked, 3));
}

#[tokio::test]
async fn turns_are_filtered() {
    let gateway = TestGateway::start().await;
    let one = gateway.ask_for_answer("test", "one").await;
    let other = gateway.ask_for_answer("other", "two").await;
    let (_, of_other) = gateway.admin("turns?channel=webhook.other").await;
    let conversation = of_other["items"][0]["conversation_id"].as_str().unwrap();
    let at = of_other["items"][0]["accepted_at"].as_str().unwrap();

    let ids = async |filter: String| {
        let (status, list) = gateway.admin(&format!("turns?{filter}")).await;
        assert_eq!(status, StatusCode::OK, "{list}");
        let ids = list["items"].as_array().unwrap().iter().map(|turn| turn["turn_id"].as_str().unwrap().to_owned());
        ids.collect::<Vec<_>>()
    };

    assert_eq!(ids("channel=webhook.test".into()).await, [&*one]);
    assert_eq!(ids(format!("conversation={conversation}")).await, [&*other]);
    assert_eq!(ids("state=settled".into()).await, [&*other, &*one]);
    assert_eq!(ids("state=open".into()).await, Vec::<String>::new());
    assert_eq!(ids("state=undeliverable".into()).await, Vec::<String>::new());
    assert_eq!(ids("state=overdue".into()).await, Vec::<String>::new());
    assert_eq!(ids(format!("since={at}&channel=webhook.other")).await, [&*other]);
    assert_eq!(ids(format!("until={at}&channel=webhook.other")).await, Vec::<String>::new());
}

#[rstest]
#[case("state=lost", "state")]
#[case("limit=0", "limit")]
#[case("limit=201", "limit")]
#[case("limit=many", "limit")]
#[case("before=1", "before")]
#[case("conversation=kitchen", "conversation")]
#[case("since=yesterday", "since")]
#[case("until=2026-13-01T00:00:00Z", "until")]
#[case("colour=red", "colour")]
#[tokio::test]
async fn a_filter_that_cannot_be_understood_is_named(#[case] filter: &str, #[case] name: &str) {
    let gateway = TestGateway::start().await;

    let request = gateway.get(&format!("/admin/api/turns?{filter}")).bearer_auth(ADMIN_TOKEN);
    let detail = problem(request.send().await.unwrap(), StatusCode::BAD_REQUEST).await;

    assert!(detail.contains(name), "{detail}");
}

#[tokio::test]
async fn a_turn_is_shown_and_explained() {
    let gateway = TestGateway::start().await;
    let turn = gateway.ask_for_answer("test", "what is the plan?").await;

    let (_, shown) = gateway.admin(&format!("turns/{turn}")).await;
    let (_, explained) = gateway.admin(&format!("turns/{turn}/explain")).await;

    assert_eq!(shown["event"]["text"], "what is the plan?");
    assert_eq!(shown["runs"][0]["end"], "reply");
    assert_eq!(shown["deliveries"][0]["text"], "you said: what is the plan?");
    assert_eq!((&shown["state"], &shown["status"]), (&"settled".into(), &"answered".into()));
    assert!(explained["headline"].as_str().unwrap().starts_with("Answered with a reply"), "{explained}");
    assert!(explained["timeline"].as_array().unwrap().len() >= 4, "{explained}");
}

#[rstest]
#[case("turns/01890000-0000-7000-8000-000000000000")]
#[case("turns/nonsense")]
#[case("turns/%FF")]
#[case("turns/01890000-0000-7000-8000-000000000000/explain")]
#[case("nothing/here")]
#[tokio::test]
async fn what_is_not_there_is_404(#[case] path: &str) {
    let gateway = TestGateway::start().await;

    let request = gateway.get(&format!("/admin/api/{path}")).bearer_auth(ADMIN_TOKEN);

    problem(request.send().await.unwrap(), StatusCode::NOT_FOUND).await;
}

#[rstest]
#[case("01890000-0000-7000-8000-000000000000", StatusCode::NOT_FOUND)]
#[case("nonsense", StatusCode::NOT_FOUND)]
#[tokio::test]
async fn what_is_no_dead_letter_is_not_sent_again(#[case] id: &str, #[case] status: StatusCode) {
    let gateway = TestGateway::start().await;
    let retry = gateway.http.post(gateway.url(&format!("/admin/api/dead-letters/{id}/retry")));

    problem(retry.try_clone().unwrap().send().await.unwrap(), StatusCode::UNAUTHORIZED).await;
    problem(retry.bearer_auth(ADMIN_TOKEN).send().await.unwrap(), status).await;
}

#[tokio::test]
async fn an_answer_that_was_delivered_is_not_sent_again() {
    let gateway = TestGateway::start().await;
    let turn = gateway.ask_for_answer("test", "hello").await;
    let (_, shown) = gateway.admin(&format!("turns/{turn}")).await;
    let id = shown["deliveries"][0]["delivery_id"].as_str().unwrap();

    let retry = gateway.http.post(gateway.url(&format!("/admin/api/dead-letters/{id}/retry")));

    problem(retry.bearer_auth(ADMIN_TOKEN).send().await.unwrap(), StatusCode::CONFLICT).await;
}

#[tokio::test]
async fn channels_and_agents_are_listed() {
    let gateway = TestGateway::start().await;

    let (_, channels) = gateway.admin("channels").await;
    let (_, agents) = gateway.admin("agents").await;

    let names: Vec<_> = channels["items"].as_array().unwrap().iter().map(|item| &item["channel"]).collect();
    assert_eq!(names, ["webchat.main", "webhook.other", "webhook.test"]);
    assert!(channels["items"].as_array().unwrap().iter().all(|item| item["live"] == true), "{channels}");
    assert_eq!(agents["items"][0]["is_default"], true);
}
