//! Hooks over HTTP, with a real core, a real database and a scripted agent.

mod support;

use std::time::Duration;

use futures_util::{StreamExt, future::join_all, stream::FuturesUnordered};
use reqwest::{Method, RequestBuilder, StatusCode, header};
use rstest::rstest;
use serde_json::{Value, json};
use support::{
    Answered, BODY_LIMIT, CALLBACK_SECRET, FILE_LIMIT, Hook, RECORDING, Receiver, SIGNING_SECRET, TOKEN, hub_signature,
};

fn json_of(answered: &Answered) -> Value {
    serde_json::from_str(&answered.body).unwrap_or_else(|_| panic!("not JSON: {}", answered.body))
}

#[tokio::test]
async fn a_question_is_answered() {
    let hook = Hook::start().await;

    let answered = hook.ask(json!({"message": "say hello"})).await;

    assert_eq!(answered.status, 200);
    let body = json_of(&answered);
    assert_eq!(body, json!({"turn_id": body["turn_id"], "status": "answered", "signal": "reply", "reply": "hello"}));
    hook.stop().await;
}

#[rstest]
#[case("application/json", r#"{"message":"say hello"}"#)]
#[case("text/plain", "say hello")]
#[case("application/x-www-form-urlencoded", "message=say+hello")]
#[case(
    "multipart/form-data; boundary=b",
    "--b\r\nContent-Disposition: form-data; name=\"message\"\r\n\r\nsay hello\r\n--b--\r\n"
)]
#[tokio::test]
async fn text_alone_is_given_to_who_wants_it(#[case] content_type: &str, #[case] body: &'static str) {
    let hook = Hook::start().await;

    let request = hook.post().header(header::ACCEPT, "text/plain").header(header::CONTENT_TYPE, content_type);
    let answered = hook.send(request.body(body)).await;

    assert_eq!((answered.status, answered.body.as_str()), (StatusCode::OK, "hello"));
    hook.stop().await;
}

#[tokio::test]
async fn the_agent_is_told_whether_its_answer_is_read_aloud() {
    for (hook, surface) in
        [(Hook::start().await, "Voice"), (Hook::silent().await, r#"Chat("a program that shows text")"#)]
    {
        let answered = hook.ask(json!({"message": "where"})).await;

        assert_eq!(json_of(&answered)["reply"], surface);
        hook.stop().await;
    }
}

/// A1, A3: the ladder's text, and the cause.
#[tokio::test]
async fn a_silent_agent_is_spoken_for() {
    let hook = Hook::start().await;

    let answered = hook.ask(json!({"message": "stay silent"})).await;

    assert_eq!(answered.status, 200);
    let body = json_of(&answered);
    assert_eq!(body["reply"], "Sorry, there is nothing to say.");
    assert_eq!(body["fallback"], json!({"cause": "silent", "rung": "say:silent"}));
    hook.stop().await;
}

#[tokio::test]
async fn a_reaction_is_an_answer() {
    let hook = Hook::start().await;

    let body = json_of(&hook.ask(json!({"message": "react 👍"})).await);

    assert_eq!((&body["signal"], &body["reply"]), (&json!("reaction"), &json!("👍")));
    hook.stop().await;
}

/// M2: a deferral before the caller's wait ends, and the answer at a URL.
#[tokio::test]
async fn a_slow_agent_defers_and_the_answer_is_fetched() {
    let hook = Hook::start().await;

    let deferred = hook.send(hook.post().header("prefer", "wait=1").json(&json!({"message": "wait for me"}))).await;

    assert_eq!(deferred.status, 202);
    let body = json_of(&deferred);
    assert_eq!((&body["status"], &body["reply"]), (&json!("deferred"), &json!("Still working on this.")));
    assert_eq!(deferred.header("preference-applied"), "wait=1");
    assert_eq!(deferred.header("location"), body["result_url"]);
    assert_eq!(deferred.header("retry-after"), body["retry_after"].to_string());
    let url = body["result_url"].as_str().unwrap().to_owned();
    let now = hook.send(hook.get(&url)).await;
    assert_eq!((now.status, &json_of(&now)["status"]), (StatusCode::ACCEPTED, &json!("deferred")));

    let fetching = tokio::spawn(hook.get(&url).header("prefer", "wait=5").send());
    hook.release_agent();

    let fetched = Answered::of(fetching.await.unwrap().unwrap()).await;
    assert_eq!((fetched.status, &json_of(&fetched)["reply"]), (StatusCode::OK, &json!("at last")));
    let again = hook.send(hook.get(&url).header(header::ACCEPT, "text/plain")).await;
    assert_eq!((again.status, again.body.as_str()), (StatusCode::OK, "at last"));
    hook.stop().await;
}

/// M5.
#[tokio::test]
async fn a_caller_that_does_not_wait_gets_an_address() {
    let hook = Hook::start().await;

    let accepted = hook.send(hook.post().header("prefer", "wait=0").json(&json!({"message": "wait for me"}))).await;

    assert_eq!(accepted.status, 202);
    let body = json_of(&accepted);
    assert_eq!(body["status"], "accepted");
    assert_eq!(accepted.header("preference-applied"), "wait=0");
    let url = format!("http://{}/hooks/siri/turns/{}", hook.address, body["turn_id"].as_str().unwrap());
    assert_eq!(body["result_url"], url);
    let spoken = hook.send(hook.get(&url).header(header::ACCEPT, "text/plain")).await;
    assert_eq!((spoken.status.as_u16(), spoken.body.as_str()), (202, &*format!("The answer will be at {url}")));
    hook.release_agent();
    let fetched = hook.send(hook.get(&url).header("prefer", "wait=5")).await;
    assert_eq!(json_of(&fetched)["reply"], "at last");
    hook.stop().await;
}

/// E6: one turn, one run, one answer.
#[tokio::test]
async fn the_same_key_gives_the_original_answer() {
    let hook = Hook::start().await;
    let request = || hook.post().header("idempotency-key", "k1").json(&json!({"message": "count", "sender": "ann"}));

    let first = hook.send(request()).await;
    let again = hook.send(request()).await;

    assert_eq!(json_of(&first)["reply"], "run 1");
    assert_eq!(first.headers.get("idempotency-replayed"), None);
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!((again.status, again.body), (first.status, first.body));
    hook.stop().await;
}

/// E6.
#[tokio::test]
async fn the_same_key_waits_for_the_answer_that_is_on_its_way() {
    let hook = Hook::start().await;
    let request = || hook.post().header("idempotency-key", "k1").json(&json!({"message": "wait for me"}));
    let first = tokio::spawn(request().send());
    hook.until_agent_waits().await;

    let again = tokio::spawn(request().send());
    hook.release_agent();

    let (first, again) =
        (Answered::of(first.await.unwrap().unwrap()).await, Answered::of(again.await.unwrap().unwrap()).await);
    assert_eq!(json_of(&again)["reply"], "at last");
    assert_eq!(again.body, first.body);
    hook.stop().await;
}

/// The core cleans the names of files before it stores them.
#[tokio::test]
async fn the_same_key_gives_the_original_answer_whatever_its_files_are_called() {
    let hook = Hook::start().await;
    let file = json!({"url": "https://a.example/1", "name": "my  scan.pdf", "media_type": "application/pdf"});
    let body = json!({"message": "count", "sender": "ann", "attachments": [file]});
    let request = || hook.post().header("idempotency-key", "k1").json(&body);

    let (first, again) = (hook.send(request()).await, hook.send(request()).await);

    assert_eq!((again.status, again.body), (StatusCode::OK, first.body));
    hook.stop().await;
}

#[rstest]
#[case(json!({"message": "say goodbye", "sender": "ann"}))]
#[case(json!({"message": "say hello", "sender": "bob"}))]
#[case(json!({"message": "say hello", "conversation": "trip"}))]
#[case(json!({"message": "say hello", "sender": "ann", "attachments": [{"url": "https://a.example"}]}))]
#[case(json!({"message": "say hello", "sender": "ann", "seal_to": "age1p6ms2nufw50pyxygsnkx3gd643juxglwhkj22ht2m6a2pqyhx9xsm5lxrm"}))]
#[tokio::test]
async fn the_same_key_with_another_body_is_a_conflict(#[case] other: Value) {
    let hook = Hook::start().await;
    let request = |body: &Value| hook.post().header("idempotency-key", "k1").json(body);
    hook.send(request(&json!({"message": "say hello", "sender": "ann"}))).await;

    let answered = hook.send(request(&other)).await;

    assert_eq!(answered.status, 409);
    assert_eq!(answered.header("content-type"), "application/problem+json");
    assert_eq!(json_of(&answered)["type"], "urn:rejoinder:problem:key-reused");
    hook.stop().await;
}

/// A sender never gets the answer to another sender's question, even with the same text in the same conversation.
#[tokio::test]
async fn the_same_key_of_another_sender_is_a_conflict() {
    let hook = Hook::start().await;
    let request = |sender: &str| {
        let body = json!({"message": "say hello", "sender": sender, "conversation": "trip"});
        hook.post().header("idempotency-key", "k1").json(&body)
    };
    hook.send(request("ann")).await;

    let answered = hook.send(request("bob")).await;

    assert_eq!(answered.status, 409);
    hook.stop().await;
}

/// M6.
#[tokio::test]
async fn a_signed_request_is_answered_once_and_its_result_has_an_address_that_opens_it() {
    let hook = Hook::start().await;
    let body = r#"{"message":"count"}"#;
    let request = || hook.signed(SIGNING_SECRET, "msg_1", body).header("prefer", "wait=0").body(body);

    let accepted = hook.send(request()).await;

    let url = json_of(&accepted)["result_url"].as_str().unwrap().to_owned();
    let fetch = |url: &str| reqwest::Client::builder().build().unwrap().get(url).header("prefer", "wait=5");
    assert_eq!(json_of(&hook.send(fetch(&url)).await)["reply"], "run 1");
    assert_eq!(hook.send(fetch(url.split('?').next().unwrap())).await.status, 401);
    let again = hook.send(request().header("idempotency-key", "another")).await;
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(json_of(&again)["reply"], "run 1");
    hook.stop().await;
}

/// E3: the caller of a message that the store refuses gets 422, also when it repeats its key. The next message is answered.
#[tokio::test]
async fn a_message_that_the_store_refuses_costs_itself_only() {
    let hook = Hook::rejecting().await;
    let poison = || hook.post().header("idempotency-key", "k1").body("say poison");

    for _ in 0..2 {
        let refused = hook.send(poison()).await;
        assert_eq!(refused.status, 422, "{refused:?}");
        assert!(json_of(&refused)["type"].as_str().unwrap().ends_with("cannot-be-stored"), "{refused:?}");
    }

    assert_eq!(json_of(&hook.send(hook.post().body("say hello")).await)["reply"], "hello");
    hook.stop().await;
}

/// M6: the URL of a result stays valid when its hook is no longer configured, before and after the answer. The hook
/// serves nothing else.
#[tokio::test]
async fn the_result_of_a_removed_hook_is_read_with_its_key() {
    let mut hook = Hook::start().await;
    let ask = |id: &'static str, body: &'static str| hook.signed(SIGNING_SECRET, id, body).body(body);
    let answered = ask("msg_1", r#"{"message":"count"}"#).header("prefer", "wait=0");
    let answered = json_of(&hook.send(answered).await)["result_url"].as_str().unwrap().to_owned();
    hook.until_settled(&answered).await;
    let owed = ask("msg_2", r#"{"message":"wait"}"#).header("prefer", "wait=0");
    let owed = json_of(&hook.send(owed).await)["result_url"].as_str().unwrap().to_owned();
    let token_only = json_of(&hook.send(hook.post().header("prefer", "wait=0").body("count")).await);
    let token_only = token_only["result_url"].as_str().unwrap().to_owned();

    hook.remove_hook().await;

    let fetch = async |url: &str| {
        let client = reqwest::Client::builder().build().unwrap();
        hook.send(client.get(hook.current_url(url)).header("prefer", "wait=5")).await
    };
    let result = fetch(&answered).await;
    assert_eq!((result.status.as_u16(), json_of(&result)["reply"].as_str()), (200, Some("run 1")));
    let result = fetch(&owed).await;
    assert_eq!((result.status.as_u16(), json_of(&result)["status"].as_str()), (202, Some("accepted")));
    assert_eq!(json_of(&result)["result_url"].as_str(), Some(&*hook.current_url(&owed)));
    for wrong in [
        answered.split('?').next().unwrap().to_owned(),
        answered.replace("/siri/", "/other/"),
        format!("{}{}", &answered[..answered.len() - 1], if answered.ends_with('0') { '1' } else { '0' }),
        token_only,
    ] {
        assert_eq!(fetch(&wrong).await.status, 404, "{wrong}");
    }
    assert_eq!(hook.send(hook.post().body("count")).await.status, 404, "it accepts nothing");
    hook.stop_engine().await;
}

/// M6.
#[tokio::test]
async fn a_signature_over_another_body_is_refused() {
    let hook = Hook::start().await;

    let by_standard = hook.signed(SIGNING_SECRET, "msg_1", "say hello").body("say goodbye");
    let by_hub = hook.bare_post().header("x-hub-signature-256", hub_signature("say hello")).body("say goodbye");
    let right = hook.bare_post().header("x-hub-signature-256", hub_signature("say hello")).body("say hello");

    assert_eq!(hook.send(by_standard).await.status, 401);
    assert_eq!(hook.send(by_hub).await.status, 401);
    assert_eq!(hook.send(right).await.status, 200);
    hook.stop().await;
}

/// A hub signs equal bodies equally: the delivery's id says whether it is the same request.
#[tokio::test]
async fn an_equal_body_that_is_signed_again_is_another_request_unless_its_delivery_is_the_same() {
    let hook = Hook::start().await;
    let post = async |name: &'static str, id: &str| {
        let request = hook.bare_post().header("x-hub-signature-256", hub_signature("count")).body("count");
        hook.send(request.header(name, id.to_owned())).await
    };

    for name in ["x-github-delivery", "idempotency-key"] {
        let (first, again, other) = (post(name, "one").await, post(name, "one").await, post(name, "two").await);

        assert_eq!((first.status, again.status, other.status), (StatusCode::OK, StatusCode::OK, StatusCode::OK));
        assert_eq!(json_of(&again)["turn_id"], json_of(&first)["turn_id"], "{name}");
        assert_eq!(again.header("idempotency-replayed"), "true", "{name}");
        assert_ne!(json_of(&other)["turn_id"], json_of(&first)["turn_id"], "{name}");
    }
    hook.stop().await;
}

fn by_token(hook: &Hook, secret: &str) -> RequestBuilder {
    hook.bare_post().bearer_auth(secret).body("count")
}

fn by_signature(hook: &Hook, secret: &str) -> RequestBuilder {
    hook.signed(secret, "msg_1", "count").body("count")
}

/// Whatever secret is guessed. Nothing says whether the last one is right.
#[rstest]
#[case::a_token(by_token, TOKEN)]
#[case::a_signature(by_signature, SIGNING_SECRET)]
#[tokio::test]
async fn who_guesses_secrets_is_slowed_down(#[case] post: fn(&Hook, &str) -> RequestBuilder, #[case] right: &str) {
    let hook = Hook::start().await;
    for _ in 0..6 {
        assert_eq!(hook.send(post(&hook, CALLBACK_SECRET)).await.status, 401);
    }

    let guesses = join_all((0..12).map(|_| hook.send(post(&hook, CALLBACK_SECRET)))).await;
    let right = hook.send(post(&hook, right)).await;

    assert!(guesses.iter().any(|refused| refused.status == 429 && refused.header("retry-after") == "5"), "{guesses:?}");
    assert!(guesses.iter().any(|refused| refused.status == 401), "{guesses:?}");
    assert_eq!(right.status, 200);
    hook.stop().await;
}

/// A12. Somebody else at the address guesses.
#[rstest]
#[case::a_token(by_token, TOKEN)]
#[case::a_signature(by_signature, SIGNING_SECRET)]
#[tokio::test]
async fn who_was_right_before_is_not_slowed_down(#[case] post: fn(&Hook, &str) -> RequestBuilder, #[case] right: &str) {
    let hook = Hook::start().await;
    assert_eq!(hook.send(post(&hook, right)).await.status, 200);
    for _ in 0..6 {
        assert_eq!(hook.send(post(&hook, CALLBACK_SECRET)).await.status, 401);
    }

    let guesses = join_all((0..40).map(|_| hook.send(post(&hook, CALLBACK_SECRET))));
    let caller = async {
        let mut statuses = Vec::new();
        for _ in 0..10 {
            statuses.push(hook.send(post(&hook, right)).await.status);
        }
        statuses
    };
    let (guesses, statuses) = tokio::join!(guesses, caller);

    assert!(guesses.iter().any(|refused| refused.status == 429), "{guesses:?}");
    assert_eq!(statuses, [200; 10]);
    hook.stop().await;
}

/// A signature that could hold is checked after the body, and so is what stands beside it.
#[tokio::test]
async fn who_guesses_tokens_and_holds_the_bodies_back_is_slowed_down() {
    let hook = Hook::start().await;
    let mut guesses = Vec::new();
    for _ in 0..20 {
        guesses.push(hook.ask_without_body("a-guess", 5).await);
    }
    let right = hook.ask_without_body(TOKEN, 5).await;

    let mut guesses = guesses.into_iter().map(|connection| Hook::answer_to(connection, "count"));
    for guess in guesses.by_ref().take(6) {
        assert!(guess.await.contains(" 401 "));
    }
    let mut in_line: FuturesUnordered<_> = guesses.collect();
    while !in_line.next().await.expect("the line is too long for some").contains(" 429 ") {}
    let begun = std::time::Instant::now();
    let right = Hook::answer_to(right, "count").await;

    let is_slow = right.contains(" 200 ") && begun.elapsed() > Duration::from_secs(2);
    assert!(right.contains(" 429 ") || is_slow, "after {:?}: {right}", begun.elapsed());
    hook.stop().await;
}

#[rstest]
#[case(Method::POST, "/hooks/nobody", Some(TOKEN), "say hello", 404, "unknown-hook")]
#[case(Method::POST, "/hooks/siri", Some("wrong"), "say hello", 401, "unauthorized")]
#[case(Method::POST, "/hooks/siri", None, "say hello", 401, "unauthorized")]
#[case(Method::GET, "/hooks/siri", Some(TOKEN), "", 405, "wrong-method")]
#[case(Method::DELETE, "/hooks/siri/turns/0192f0c1-2d3e-7f40-8a5b-6c7d8e9fa0b1", Some(TOKEN), "", 405, "wrong-method")]
#[case(Method::GET, "/hooks/siri/turns/0192f0c1-2d3e-7f40-8a5b-6c7d8e9fa0b1", Some(TOKEN), "", 404, "unknown-turn")]
#[case(Method::GET, "/hooks/siri/turns/0192f0c1-2d3e-7f40-8a5b-6c7d8e9fa0b1", None, "", 401, "unauthorized")]
#[case(Method::GET, "/hooks/siri/turns/17", Some(TOKEN), "", 404, "unknown-turn")]
#[case(Method::GET, "/hooks/nobody/turns/17", Some(TOKEN), "", 404, "unknown-hook")]
#[case(Method::POST, "/hooks/siri", Some(TOKEN), "{\"message\": }", 400, "not-json")]
#[case(Method::POST, "/hooks/siri", Some(TOKEN), "{\"message\": 5}", 422, "invalid-field")]
#[case(Method::POST, "/hooks/siri", Some(TOKEN), "", 422, "empty-message")]
#[tokio::test]
async fn what_cannot_be_served_is_a_problem_that_says_why(
    #[case] method: Method,
    #[case] path: &str,
    #[case] token: Option<&str>,
    #[case] body: &'static str,
    #[case] status: u16,
    #[case] name: &str,
) {
    let hook = Hook::start().await;

    let request = hook.client.request(method, format!("http://{}{path}", hook.address)).body(body);
    let request = token.into_iter().fold(request, reqwest::RequestBuilder::bearer_auth);
    let answered = hook.send(request).await;

    assert_eq!(answered.status, status);
    assert_eq!(answered.header("content-type"), "application/problem+json");
    let problem = json_of(&answered);
    assert_eq!(problem["type"], format!("urn:rejoinder:problem:{name}"));
    assert_eq!(problem["status"], status);
    if status == 405 {
        assert!(answered.headers.contains_key("allow"));
    }
    hook.stop().await;
}

#[tokio::test]
async fn another_media_type_and_a_body_over_the_limit_are_refused() {
    let hook = Hook::start().await;

    let xml = hook.send(hook.post().header("content-type", "application/xml").body("<message/>")).await;
    let large = hook.send(hook.post().body("x".repeat(BODY_LIMIT + 1))).await;
    let fitting = hook.send(hook.post().body(format!("say {}", "x".repeat(BODY_LIMIT - 4)))).await;

    assert_eq!((xml.status.as_u16(), large.status.as_u16(), fitting.status.as_u16()), (415, 413, 200));
    hook.stop().await;
}

/// A form with a message, and a file of so many bytes.
fn form_with_file(size: usize) -> String {
    let part =
        |about: &str, content: &str| format!("--b\r\nContent-Disposition: form-data; {about}\r\n\r\n{content}\r\n");
    part("name=message", "say yes") + &part("name=f; filename=a.txt", &"x".repeat(size)) + "--b--"
}

#[tokio::test]
async fn a_form_may_have_files_beyond_the_limit_of_bodies() {
    let hook = Hook::start().await;
    let form = |size| {
        let post = hook.post().header("content-type", "multipart/form-data; boundary=b");
        post.body(form_with_file(size))
    };
    let endless = futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>("--b\r\n".repeat(100)));
    let endless = form(0).body(reqwest::Body::wrap_stream(endless));

    let fitting = hook.send(form(FILE_LIMIT)).await;
    let file = hook.send(form(FILE_LIMIT + 1)).await;
    let body = hook.send(form(FILE_LIMIT + BODY_LIMIT)).await;
    let endless = endless.send().await.map(|response| response.status().as_u16());

    assert_eq!((fitting.status.as_u16(), &json_of(&fitting)["reply"]), (200, &json!("yes")));
    let name = |answered: &Answered| (answered.status.as_u16(), json_of(answered)["type"].clone());
    assert_eq!(name(&file), (413, json!("urn:rejoinder:problem:files-too-large")));
    assert_eq!(name(&body), (413, json!("urn:rejoinder:problem:body-too-large")));
    // The response may come while the client still writes.
    assert!(endless.is_err() || endless.is_ok_and(|status| status == 413));
    hook.stop().await;
}

#[tokio::test]
async fn a_form_whose_files_have_no_room_is_to_come_again() {
    let hook = Hook::with_room_for_files(BODY_LIMIT).await;
    let form = |size| {
        let post = hook.post().header("content-type", "multipart/form-data; boundary=b");
        post.body(form_with_file(size))
    };

    let large = hook.send(form(2 * BODY_LIMIT)).await;
    let small = hook.send(form(BODY_LIMIT)).await;

    assert_eq!((large.status.as_u16(), large.header("retry-after")), (503, "5"));
    assert_eq!(json_of(&large)["type"], "urn:rejoinder:problem:busy");
    assert_eq!(small.status, 200);
    hook.stop().await;
}

/// D18: the caller learns that its turn was cancelled.
#[tokio::test]
async fn a_turn_that_was_called_off_says_so() {
    let hook = Hook::start().await;
    let body = |message: &str| json!({"message": message, "sender": "ann"});
    let asking = tokio::spawn(hook.post().json(&body("wait for me")).send());
    hook.until_agent_waits().await;

    let stopped = hook.ask(body("/stop")).await;

    assert_eq!(json_of(&stopped)["status"], "answered");
    let asked = Answered::of(asking.await.unwrap().unwrap()).await;
    assert_eq!((asked.status, &json_of(&asked)["status"]), (StatusCode::OK, &json!("cancelled")));
    hook.stop().await;
}

#[tokio::test]
async fn a_hook_that_takes_nothing_in_says_when_to_come_back() {
    let hook = Hook::start().await;
    hook.stop_engine().await;

    let refused = hook.ask(json!({"message": "say hello"})).await;

    assert_eq!(refused.status, 503);
    assert_eq!(refused.header("retry-after"), "5");
    assert_eq!(json_of(&refused)["type"], "urn:rejoinder:problem:unavailable");
}

#[tokio::test]
async fn a_caller_that_still_waits_at_the_end_gets_an_address() {
    let hook = Hook::start().await;
    let asking = tokio::spawn(hook.post().json(&json!({"message": "wait for me"})).send());
    hook.until_agent_waits().await;

    hook.stop_waiting.cancel();

    let answered = Answered::of(asking.await.unwrap().unwrap()).await;
    assert_eq!((answered.status, &json_of(&answered)["status"]), (StatusCode::ACCEPTED, &json!("accepted")));
    hook.release_agent();
    let url = json_of(&answered)["result_url"].as_str().unwrap().to_owned();
    hook.until_settled(&url).await;
    hook.stop().await;
}

/// H2: a copy is signed, and a repeated post is identical.
#[tokio::test]
async fn an_answer_is_posted_to_the_callback_until_it_is_taken() {
    let mut receiver = Receiver::answering(&[500, 200]).await;
    let hook = Hook::with_callback(receiver.url()).await;

    let answered = hook.ask(json!({"message": "say hello"})).await;

    let (first, again) = (receiver.next().await, receiver.next().await);
    assert_eq!(first.header("webhook-id"), again.header("webhook-id"));
    for posted in [&first, &again] {
        posted.assert_signed(CALLBACK_SECRET);
        assert_eq!(json_of(posted), json_of(&answered));
    }
    hook.stop().await;
}

/// The words of a recording are the message; without them the answer says so.
#[rstest]
#[case(Some("say hello"), "hello")]
#[case(Some(" "), "I heard nothing.")]
#[case(None, "I heard nothing.")]
#[tokio::test]
async fn what_is_spoken_is_heard(#[case] words: Option<&'static str>, #[case] reply: &str) {
    let hook = Hook::hearing(words).await;

    for content_type in ["audio/ogg", "Audio/OGG; codecs=opus"] {
        let answered = hook.send(hook.post().header("content-type", content_type).body(RECORDING)).await;

        assert_eq!((answered.status, &json_of(&answered)["reply"]), (StatusCode::OK, &json!(reply)));
    }
    hook.stop().await;
}

/// What a server costs is bounded, whoever speaks.
#[tokio::test]
async fn what_callers_speak_counts_among_what_is_written_down_on_a_day() {
    let hook = Hook::hearing_at_most(Some("say hello"), Some(Duration::from_secs(2))).await;

    for reply in ["hello", "hello", "I heard nothing."] {
        let answered = hook.send(hook.post().header("content-type", "audio/ogg").body(RECORDING)).await;

        assert_eq!(json_of(&answered)["reply"], json!(reply));
    }
    hook.stop().await;
}

/// It is not heard again as something else.
#[tokio::test]
async fn a_recording_that_is_sent_again_has_its_answer() {
    let hook = Hook::hearing(Some("count")).await;
    let speak = || {
        let post = hook.post().header("content-type", "audio/ogg").header("idempotency-key", "k1");
        hook.send(post.body(RECORDING))
    };

    let (first, again) = (speak().await, speak().await);

    assert_eq!((&json_of(&first)["reply"], again.header("idempotency-replayed")), (&json!("run 1"), "true"));
    assert_eq!(first.body, again.body);
    hook.stop().await;
}

/// M2. A deferral is spoken, too.
#[tokio::test]
async fn an_answer_is_spoken_to_who_wants_sound() {
    let hook = Hook::speaking(true).await;
    let aloud = |request: RequestBuilder| request.header("accept", "audio/mpeg, */*;q=0.1");

    let answered = hook.send(aloud(hook.post()).body("say **hello** to 2")).await;
    let deferred = hook.send(aloud(hook.post()).header("prefer", "wait=1").body("wait for me")).await;
    hook.release_agent();
    let url = deferred.header("location").to_owned();
    let late = hook.send(aloud(hook.get(&url)).header("prefer", "wait=20")).await;

    let heard = |answered: &Answered| (answered.header("content-type").to_owned(), answered.body.clone());
    let sound = |text: &str| ("audio/mpeg".to_owned(), format!("Mp3: {text}"));
    assert_eq!((answered.status, heard(&answered)), (StatusCode::OK, sound("hello to two")));
    assert_eq!((deferred.status, heard(&deferred)), (StatusCode::ACCEPTED, sound("Still working on this.")));
    assert_eq!((late.status, heard(&late)), (StatusCode::OK, sound("at last")));
    hook.stop().await;
}

/// With no server there is nothing to say about it.
#[tokio::test]
async fn what_cannot_be_spoken_is_text() {
    for (hook, text) in [(Hook::speaking(false).await, "hello\n\nThat was not spoken."), (Hook::start().await, "hello")]
    {
        let answered = hook.send(hook.post().header("accept", "audio/ogg").body("say *hello*")).await;

        assert_eq!((answered.header("content-type"), &*answered.body), ("text/plain; charset=utf-8", text));
        hook.stop().await;
    }
}

#[rstest]
#[case("image/png", b"\x89PNG\r\n\x1a\n", "It is a picture.")]
#[case("audio/ogg", RECORDING, "It is a recording.")]
#[tokio::test]
async fn a_body_may_be_a_file(#[case] content_type: &str, #[case] body: &'static [u8], #[case] reply: &str) {
    let hook = Hook::start().await;
    let post = || hook.post().header("content-type", content_type);

    let answered = hook.send(post().body(body)).await;
    let empty = hook.send(post().body("")).await;
    let large = hook.send(post().body(vec![0; FILE_LIMIT + 1])).await;

    assert_eq!((answered.status, &json_of(&answered)["reply"]), (StatusCode::OK, &json!(reply)));
    assert_eq!((empty.status.as_u16(), large.status.as_u16()), (422, 413));
    hook.stop().await;
}

/// K3: a link if everybody can open it, and else the bytes.
#[tokio::test]
async fn a_file_is_posted_to_the_callback() {
    let mut receiver = Receiver::answering(&[200, 200]).await;
    let in_public = Hook::in_public_with_callback("https://gateway.example", receiver.url()).await;
    let alone = Hook::with_callback(receiver.url()).await;

    for (hook, begin) in [(in_public, "https://gateway.example/files/"), (alone, "data:text/plain;base64,aGVsbG8=")] {
        hook.ask(json!({"message": "send a file"})).await;

        let file = json_of(&receiver.next().await)["files"][0].take();
        assert_eq!((&file["name"], &file["type"]), (&json!("a.txt"), &json!("text/plain")));
        assert!(file["url"].as_str().is_some_and(|url| url.starts_with(begin)), "{file}");
        hook.stop().await;
    }
}

/// E6, D1: an accepted turn is answered even if the caller has gone.
#[tokio::test]
async fn a_caller_that_hangs_up_leaves_no_turn_behind() {
    let hook = Hook::start().await;
    for at in 0..50 {
        let key = format!("k{at}");
        hook.ask_and_hang_up(&key, "say hello").await;

        let answered = hook.send(hook.post().header("idempotency-key", key).body("say hello")).await;

        assert_eq!(json_of(&answered)["reply"], "hello");
    }
    hook.stop().await;
}

/// The first language of the header; the message's own comes before it.
#[tokio::test]
async fn what_is_said_for_a_silent_agent_is_in_the_callers_language() {
    let hook = Hook::start().await;
    let ask = async |language: &str, body: Value| {
        let answered = hook.send(hook.post().header(header::ACCEPT_LANGUAGE, language).json(&body)).await;
        json_of(&answered)["reply"].as_str().expect("a reply").to_owned()
    };
    let (english, german) = ("Sorry, there is nothing to say.", "Dazu gibt es nichts zu sagen.");

    assert_eq!(ask("de-AT,de;q=0.9,en;q=0.8", json!({"message": "stay silent"})).await, german);
    assert_eq!(ask("en", json!({"message": "stay silent", "language": "de"})).await, german);
    assert_eq!(ask("*", json!({"message": "stay silent"})).await, english);
    assert_eq!(ask("fr, de;q=0.5", json!({"message": "stay silent"})).await, english);
    hook.stop().await;
}
