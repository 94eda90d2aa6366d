//! The API over HTTP, with a real core, a real database and a scripted agent.

mod support;

use std::time::Duration;

use reqwest::{StatusCode, header};
use rstest::rstest;
use serde_json::{Value, json};
use support::{Api, BODY_LIMIT, FILE_LIMIT, TOKEN, deltas, events};

#[tokio::test]
async fn a_question_is_answered() {
    let api = Api::start().await;

    let (status, body) = api.ask(&json!({ "content": "say hello" })).await;

    assert_eq!(status, StatusCode::OK, "{body}");
    assert_eq!((&body["object"], &body["model"]), (&json!("chat.completion"), &json!("main")));
    assert_eq!(body["choices"][0]["message"], json!({ "role": "assistant", "content": "hello", "refusal": null }));
    assert_eq!(body["choices"][0]["finish_reason"], "stop");
    assert_eq!((&body["rejoinder"]["status"], &body["rejoinder"]["signal"]), (&json!("answered"), &json!("reply")));
    api.stop().await;
}

/// A1, A3.
#[tokio::test]
async fn a_silent_agent_is_spoken_for_and_a_reaction_is_an_answer() {
    let api = Api::start().await;

    let (_, silent) = api.ask(&json!({ "content": "stay silent" })).await;
    let (_, reacted) = api.ask(&json!({ "content": "react 👍" })).await;

    assert_eq!(silent["choices"][0]["message"]["content"], rejoinder_testkit::SILENT);
    assert_eq!(silent["rejoinder"]["fallback"], json!({ "cause": "silent", "rung": "say:silent" }));
    assert_eq!(reacted["choices"][0]["message"]["content"], "👍");
    assert_eq!(reacted["rejoinder"]["signal"], "reaction");
    api.stop().await;
}

#[tokio::test]
async fn a_question_has_its_choices_as_a_list() {
    let api = Api::start().await;

    let (_, body) = api.ask(&json!({ "content": "ask tea coffee" })).await;

    assert_eq!(body["choices"][0]["message"]["content"], "Which?\n\n1. tea\n2. coffee");
    api.stop().await;
}

#[tokio::test]
async fn what_was_said_before_is_what_the_caller_says() {
    let api = Api::start().await;

    api.messages(&json!([
        { "role": "system", "content": "Be brief." },
        { "role": "user", "content": "Hi" },
        { "role": "assistant", "content": "Yes?" },
        { "role": "user", "content": "say hello" },
    ]))
    .await;

    let turn = api.gateway.turns().pop().expect("a turn");
    let history: Vec<_> = turn.past.history.iter().map(|line| (line.speaker, &*line.text)).collect();
    assert_eq!(history, [(rejoinder_core::Speaker::Person, "Hi"), (rejoinder_core::Speaker::Agent, "Yes?")]);
    assert_eq!(turn.person.instructions.as_deref(), Some("Be brief."));
    api.stop().await;
}

#[tokio::test]
async fn with_a_user_the_gateway_remembers_what_was_said() {
    let api = Api::start().await;
    let request = |text: &str| json!({ "user": "ada", "content": text });

    api.ask(&request("say one")).await;
    api.ask(&request("say two")).await;
    api.ask(&json!({ "user": "bob", "content": "say three" })).await;

    let turns = api.gateway.turns();
    let history = |turn: usize| turns[turn].past.history.iter().map(|line| line.text.clone()).collect::<Vec<_>>();
    assert_eq!(history(1), ["say one", "one"]);
    assert_eq!(history(2), Vec::<String>::new());
    api.stop().await;
}

#[tokio::test]
async fn an_answer_is_streamed_while_it_grows() {
    let api = Api::start().await;
    let mut stream = api.stream(&json!({ "content": "begin one two" })).await;

    let begun = stream.until(|events| deltas(events) == "one two").await;
    api.gateway.release_agent();
    let all = stream.rest().await;

    assert_eq!(begun[0]["choices"][0]["delta"]["role"], "assistant");
    assert_eq!(begun[0]["object"], "chat.completion.chunk");
    assert_eq!(deltas(&all), "one two and that is all.");
    let last = all.last().expect("an event");
    assert_eq!(
        (&last["choices"][0]["finish_reason"], &last["rejoinder"]["status"]),
        (&json!("stop"), &json!("answered"))
    );
    assert!(stream.is_done());
    api.stop().await;
}

#[tokio::test]
async fn what_of_a_request_changed_nothing_is_named() {
    let api = Api::start().await;
    let asks = json!({ "content": "hello", "temperature": 0.2, "tools": [], "seed": null, "n": 1 });

    let (_, whole) = api.ask(&asks).await;
    let streamed = api.stream(&asks).await.rest().await;
    let (_, plain) = api.ask(&json!({ "content": "hello" })).await;

    assert_eq!(whole["rejoinder"]["ignored"], json!(["temperature", "tools"]));
    assert_eq!(streamed.last().expect("an event")["rejoinder"]["ignored"], json!(["temperature", "tools"]));
    assert_eq!(plain["rejoinder"]["ignored"], Value::Null);
    api.stop().await;
}

/// M2. The deferral is no content.
#[tokio::test]
async fn a_deferral_is_told_beside_the_answer() {
    let api = Api::deferring(Duration::from_millis(50)).await;
    let mut stream = api.stream(&json!({ "content": "wait done" })).await;

    let deferred = stream.until(|events| events.iter().any(|event| event["rejoinder"]["status"] == "deferred")).await;
    api.gateway.release_agent();
    let all = stream.rest().await;

    let told = deferred.last().expect("an event");
    assert_eq!((&told["rejoinder"]["deferral"], deltas(&deferred)), (&json!("Still working on this."), String::new()));
    assert_eq!(deltas(&all), "done and that is all.");
    api.stop().await;
}

/// M2. The caller's wait ends before the answer.
#[tokio::test]
async fn who_waits_no_longer_fetches_the_answer() {
    let api = Api::waiting(Duration::from_millis(100)).await;

    let (status, body) = api.ask(&json!({ "content": "wait done" })).await;

    assert_eq!(status, StatusCode::OK);
    assert_eq!(body["choices"][0]["message"]["content"], "Still working on this.");
    assert_eq!(body["rejoinder"]["status"], "deferred");
    let url = body["rejoinder"]["result_url"].as_str().expect("a URL").to_owned();
    let (_, now) = api.get(&url, TOKEN).await;
    assert_eq!((&now["id"], &now["rejoinder"]["status"]), (&body["id"], &json!("deferred")));
    api.gateway.release_agent();
    api.gateway.until_settled().await;
    let (_, later) = api.get(&url, TOKEN).await;
    assert_eq!(later["choices"][0]["message"]["content"], "done and that is all.");
    assert_eq!((&later["model"], &later["rejoinder"]["result_url"]), (&json!("main"), &Value::Null));
    let (status, error) = api.get(&url, "of-ada").await;
    assert_eq!((status, &error["error"]["code"]), (StatusCode::NOT_FOUND, &json!("not_found")));
    api.stop().await;
}

#[tokio::test]
async fn a_stream_whose_wait_is_over_says_so() {
    let api = Api::waiting(Duration::from_millis(100)).await;
    let mut stream = api.stream(&json!({ "content": "begin one two" })).await;

    let all = stream.rest().await;

    assert_eq!(deltas(&all), "one two\n\nStill working on this.");
    assert!(all.last().expect("an event")["rejoinder"]["result_url"].is_string());
    api.gateway.release_agent();
    api.stop().await;
}

/// M4.
#[tokio::test]
async fn a_repeated_request_gets_the_first_answer() {
    let api = Api::start().await;
    let keyed = |body: Value| api.request(&body, TOKEN).header("idempotency-key", "k");

    let first = keyed(json!({ "content": "count" })).send().await.expect("an answer");
    let second = keyed(json!({ "content": "count" })).send().await.expect("an answer");
    let streamed = keyed(json!({ "content": "count", "stream": true })).send().await.expect("an answer");
    let other = keyed(json!({ "content": "count again" })).send().await.expect("an answer");

    assert_eq!(second.headers()["idempotency-replayed"], "true");
    let (first, second): (Value, Value) = (first.json().await.expect("JSON"), second.json().await.expect("JSON"));
    assert_eq!((&first["id"], &first["choices"]), (&second["id"], &second["choices"]));
    let streamed = events(&streamed.text().await.expect("a body"));
    assert_eq!((&streamed[0]["id"], deltas(&streamed)), (&first["id"], "run 1".to_owned()));
    assert_eq!(other.status(), StatusCode::CONFLICT);
    assert_eq!(other.json::<Value>().await.expect("JSON")["error"]["code"], "idempotency_key_reused");
    api.stop().await;
}

/// M5. Who hangs up is answered all the same.
#[tokio::test]
async fn a_turn_goes_on_without_its_caller() {
    let api = Api::start().await;
    let stream = api.stream(&json!({ "content": "wait done" })).await;
    let url = format!("/v1/chat/completions/{}", stream.id());

    drop(stream);
    api.gateway.release_agent();
    api.gateway.until_settled().await;

    let (_, body) = api.get(&url, TOKEN).await;
    assert_eq!(body["choices"][0]["message"]["content"], "done and that is all.");
    api.stop().await;
}

#[tokio::test]
async fn the_tokens_of_a_turn_are_told_if_the_agent_tells() {
    let api = Api::start().await;

    let (_, known) = api.ask(&json!({ "content": "use 7" })).await;
    let (_, unknown) = api.ask(&json!({ "content": "say hello" })).await;
    let options = json!({ "content": "use 7", "stream": true, "stream_options": { "include_usage": true } });
    let streamed = events(&api.request(&options, TOKEN).send().await.expect("an answer").text().await.expect("a body"));

    assert_eq!(known["usage"], json!({ "prompt_tokens": 7, "completion_tokens": 1, "total_tokens": 8 }));
    // Clients expect it in every answer that is not streamed.
    assert_eq!(unknown["usage"], json!({ "prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0 }));
    let last = streamed.last().expect("an event");
    assert_eq!((&last["usage"]["total_tokens"], &last["choices"]), (&json!(8), &json!([])));
    api.stop().await;
}

#[tokio::test]
async fn the_models_are_the_agents_that_may_be_chosen() {
    let api = Api::start().await;

    let (_, list) = api.get("/v1/models", TOKEN).await;
    let (status, one) = api.get("/v1/models/main/fast", TOKEN).await;
    let (missing, error) = api.get("/v1/models/gpt-4o", TOKEN).await;
    api.ask(&json!({ "model": "main/fast", "content": "say hello" })).await;

    let ids: Vec<_> = list["data"].as_array().expect("a list").iter().map(|model| &model["id"]).collect();
    assert_eq!(ids, ["main", "main/fast"]);
    assert_eq!((status, &one["id"], &one["object"]), (StatusCode::OK, &json!("main/fast"), &json!("model")));
    assert_eq!((missing, &error["error"]["code"]), (StatusCode::NOT_FOUND, &json!("model_not_found")));
    assert_eq!(api.gateway.turns().pop().expect("a turn").place.model.as_deref(), Some("fast"));
    api.stop().await;
}

#[rstest]
#[case("", StatusCode::UNAUTHORIZED, "authentication_error")]
#[case("wrong", StatusCode::UNAUTHORIZED, "authentication_error")]
#[case("of-a-viewer", StatusCode::FORBIDDEN, "permission_error")]
#[case("of-another-node", StatusCode::SERVICE_UNAVAILABLE, "server_error")]
#[tokio::test]
async fn who_has_no_token_that_opens_it_is_refused(
    #[case] token: &str,
    #[case] status: StatusCode,
    #[case] kind: &str,
) {
    let api = Api::start().await;
    let question = json!({ "content": "say hello" });
    let requests = [
        api.request(&question, token),
        api.http.get(api.url("/v1/models")).bearer_auth(token),
        api.http.get(api.url("/v1/models/main")).bearer_auth(token),
        api.http.get(api.url("/v1/chat/completions/x")).bearer_auth(token),
    ];

    for request in requests {
        let answered = request.send().await.expect("an answer");
        assert_eq!(answered.status(), status);
        assert_eq!(answered.json::<Value>().await.expect("JSON")["error"]["type"], kind);
    }

    assert_eq!(api.gateway.turns().len(), 0);
    api.stop().await;
}

/// A peer that guesses is slowed: see `kit::Guesses`. Also while tokens cannot be read: the right one opens the API then, too.
#[rstest]
#[case("wrong")]
#[case("of-another-node")]
#[tokio::test]
async fn who_guesses_tokens_is_slowed(#[case] guess: &str) {
    let api = Api::start().await;
    for _ in 0..6 {
        api.get("/v1/models", guess).await;
    }

    let guesses = (0..13).map(|_| api.get("/v1/models", guess));
    let statuses: Vec<_> =
        futures_util::future::join_all(guesses).await.into_iter().map(|(status, _)| status).collect();

    assert!(statuses.contains(&StatusCode::TOO_MANY_REQUESTS), "{statuses:?}");
    api.stop().await;
}

#[tokio::test]
async fn every_error_has_the_shape_of_the_protocol() {
    let api = Api::start().await;
    let large = json!({ "content": "x".repeat(BODY_LIMIT) });
    let post = |path: &str| api.http.post(api.url(path)).bearer_auth(TOKEN);
    let requests = [
        (404, api.http.get(api.url("/v1/nothing"))),
        (404, post("/v1/embeddings")),
        (405, api.http.get(api.url("/v1/chat/completions")).bearer_auth(TOKEN)),
        (405, post("/v1/models")),
        (400, post("/v1/chat/completions").body("{")),
        (413, api.request(&large, TOKEN)),
        (415, post("/v1/chat/completions").header(header::CONTENT_ENCODING, "gzip").body("x")),
        (400, api.request(&json!({ "content": "hello", "n": 2 }), TOKEN)),
        (400, api.request(&json!({ "content": "hello" }), TOKEN).header("idempotency-key", "")),
    ];

    for (status, request) in requests {
        let answered = request.send().await.expect("an answer");
        assert_eq!(answered.status().as_u16(), status);
        assert_eq!(answered.headers().get("access-control-allow-origin"), None);
        let body: Value = answered.json().await.expect("JSON");
        let fields: Vec<_> = body["error"].as_object().expect("an object").keys().map(String::as_str).collect();
        assert_eq!(fields, ["code", "message", "param", "type"], "{body}");
    }
    api.stop().await;
}

#[tokio::test]
async fn files_may_be_larger_than_the_rest_of_a_body() {
    let api = Api::start().await;
    let ask = async |groups| {
        let file = json!({ "filename": "a.bin", "file_data": "AAAA".repeat(groups) });
        let content = json!([{ "type": "text", "text": "say hello" }, { "type": "file", "file": file }]);
        let (status, body) = api.ask(&json!({ "content": content })).await;
        (status.as_u16(), body["error"]["code"].clone())
    };

    assert_eq!(ask(FILE_LIMIT / 3).await, (200, Value::Null));
    assert_eq!(ask(FILE_LIMIT / 3 + 1).await, (413, json!("files-too-large")));
    assert_eq!(ask(FILE_LIMIT / 2).await, (413, json!("body-too-large")));
    api.stop().await;
}

#[tokio::test]
async fn while_the_gateway_stops_it_says_so() {
    let api = Api::start().await;
    api.gateway.stop_engine(Duration::ZERO).await;

    let (status, body) = api.ask(&json!({ "content": "say hello" })).await;

    assert_eq!((status, &body["error"]["type"]), (StatusCode::SERVICE_UNAVAILABLE, &json!("server_error")));
}

#[tokio::test]
async fn at_the_shutdown_who_waits_is_told() {
    let api = Api::start().await;
    let question = json!({ "content": "wait done" });
    let asking = api.ask(&question);
    let stopping = async {
        api.gateway.until_agent_has(1).await;
        api.stop_waiting.cancel();
    };

    let ((status, body), ()) = tokio::join!(asking, stopping);

    assert_eq!((status, &body["rejoinder"]["status"]), (StatusCode::OK, &json!("accepted")));
    assert_eq!(body["choices"][0]["message"]["content"], "Still working on this.");
    api.gateway.release_agent();
    api.stop().await;
}

/// The bytes of a file are read from the request, and never from elsewhere.
#[tokio::test]
async fn a_file_in_the_request_reaches_the_agent() {
    let api = Api::start().await;

    api.messages(&json!([{ "role": "user", "content": [
        { "type": "text", "text": "say hello" },
        { "type": "file", "file": { "filename": "a.txt", "file_data": "data:text/plain;base64,SGkh" } },
        { "type": "image_url", "image_url": { "url": "http://127.0.0.1:9/cat.png" } },
    ] }]))
    .await;

    let turn = api.gateway.turns().pop().expect("a turn");
    let files: Vec<_> =
        turn.message.attachments.iter().map(|file| (&*file.attachment.name, file.bytes.as_deref())).collect();
    assert_eq!(files, [("a.txt", Some(&b"Hi!"[..])), ("image", None)]);
    api.stop().await;
}
