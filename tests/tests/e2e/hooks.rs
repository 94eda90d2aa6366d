//! Turns over HTTP.

use rejoinder_tests::{Gate, Gateway, Reply, Script, ScriptedAgent, ToolModel};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{TOKEN, hook};

async fn gateway(agent: &ScriptedAgent) -> Gateway {
    Gateway::builder().config(&hook("")).config(&agent.section()).start().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_question_is_answered_in_the_response() {
    let agent = ScriptedAgent::replying("Riga, 7 degrees.").await;
    let gateway = gateway(&agent).await;

    let reply = gateway.hook("test", TOKEN).ask("what is the weather?").await;

    assert_eq!(reply.status, StatusCode::OK);
    assert_eq!(
        reply.body,
        json!({
            "turn_id": reply.turn(), "status": "answered", "signal": "reply", "reply": "Riga, 7 degrees.",
        })
    );
}

/// B14. The agent's question has choices, and the next message of the conversation picks one by its number.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_question_of_the_agents_is_answered_by_a_number() {
    let agent = ScriptedAgent::start(|call, _| match call.said().as_str() {
        "hello" => Script::asks("Which?", &["tea", "coffee"]),
        said => Script::replies(&format!("You want {said}.")),
    })
    .await;
    let gateway = gateway(&agent).await;
    let hook = gateway.hook("test", TOKEN);
    let says = async |words: &str| {
        let message = hook.message_in("ada", words).header("Idempotency-Key", format!("key-of-{words}"));
        Reply::of(message).await
    };

    let question = says("hello").await;
    assert_eq!((question.text(), &question.body["choices"]), ("Which?", &json!(["tea", "coffee"])));
    let answer = says("2").await;

    assert_eq!(answer.text(), "You want coffee.");
    let quoted: Value = serde_json::from_str(&agent.calls()[1].last_message()).expect("a frame");
    assert_eq!(quoted["quoted"], json!({"from": "you", "text": "Which?"}));
    assert_eq!(says("2").await.turn(), answer.turn(), "the same request has the same answer");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn plain_text_and_forms_are_turns_too() {
    let agent = ScriptedAgent::start(|call, _| {
        let said = call.body["messages"].as_array().and_then(|messages| messages.last()).cloned();
        Script::replies(&format!("heard {}", said.expect("a message")["content"]))
    })
    .await;
    let gateway = gateway(&agent).await;
    let hook = gateway.hook("test", TOKEN);

    let text = Reply::of(hook.call().header("Content-Type", "text/plain").body("from text")).await;
    let form = hook.call().header("Content-Type", "application/x-www-form-urlencoded").body("message=from+a+form");
    let form = Reply::of(form).await;

    assert!(text.text().contains("from text"), "{text:?}");
    assert!(form.text().contains("from a form"), "{form:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn whoever_accepts_text_gets_the_words_alone() {
    let agent = ScriptedAgent::replying("Just words.").await;
    let gateway = gateway(&agent).await;

    let reply = Reply::of(gateway.hook("test", TOKEN).message("hello").header("Accept", "text/plain")).await;

    assert_eq!(reply.status, StatusCode::OK);
    assert!(reply.headers["content-type"].to_str().unwrap().starts_with("text/plain"));
    assert_eq!(reply.body, json!("Just words."));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn who_accepts_text_hears_what_is_wrong() {
    let agent = ScriptedAgent::replying("Unused.").await;
    let gateway = Gateway::builder().config(&hook("body_limit = \"1 KiB\"")).config(&agent.section()).start().await;
    let hook = gateway.hook("test", TOKEN);
    let hear = async |request: reqwest::RequestBuilder| {
        let reply = Reply::of(request.header("Accept", "text/plain")).await;
        assert_eq!(reply.headers["content-type"], "text/plain; charset=utf-8");
        (reply.status.as_u16(), reply.body)
    };

    let said = [
        hear(hook.bare().body("hello")).await,
        hear(hook.call().header("Content-Type", "text/plain").body("")).await,
        hear(hook.call().body("x".repeat(2048))).await,
        hear(gateway.hook("nowhere", TOKEN).call().body("hello")).await,
    ];

    let expected = [
        (401, json!("Send the hook's bearer token, or a signature of a kind that this hook is configured for.")),
        (422, json!("Message must not be empty.")),
        (413, json!("The body must have at most 1024 bytes.")),
        (404, json!("No hook has this name.")),
    ];
    assert_eq!(said, expected);
}

/// M5.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn whoever_does_not_wait_finds_the_answer_at_the_result_url() {
    let agent = ScriptedAgent::replying("Here it is.").await;
    let gateway = gateway(&agent).await;
    let hook = gateway.hook("test", TOKEN);

    let accepted = hook.send("hello").await;
    let result = hook.until_settled(&accepted.turn()).await;

    assert_eq!((accepted.status, accepted.state()), (StatusCode::ACCEPTED, "accepted"));
    assert_eq!((result.state(), result.text()), ("answered", "Here it is."));
}

/// A10, G2, M2.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_slow_answer_is_deferred_within_the_wait_and_then_paid() {
    let release = Gate::default();
    let agent = {
        let release = release.clone();
        ScriptedAgent::start(move |_, _| Script::replies("It took a while.").waiting(&release)).await
    };
    let gateway = gateway(&agent).await;
    let hook = gateway.hook("test", TOKEN);

    let deferred = Reply::of(hook.message("hard question").header("Prefer", "wait=1")).await;
    release.release_one();
    let location = deferred.headers["location"].to_str().unwrap().to_owned();
    let result = hook.until_settled(&deferred.turn()).await;

    assert_eq!((deferred.status, deferred.state()), (StatusCode::ACCEPTED, "deferred"));
    assert_eq!(deferred.text(), "I am still working on it. The answer will follow.");
    assert!(location.ends_with(&format!("/hooks/test/turns/{}", deferred.turn())), "{location}");
    assert_eq!((result.state(), result.text()), ("answered", "It took a while."));
}

/// E6, E8.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_repeated_key_gives_the_first_answer_again() {
    let agent = ScriptedAgent::start(|_, number| Script::replies(&format!("answer {number}"))).await;
    let gateway = gateway(&agent).await;
    let hook = gateway.hook("test", TOKEN);
    let ask = |message: &str| Reply::of(hook.message(message).header("Idempotency-Key", "once"));

    let first = ask("hello").await;
    let again = ask("hello").await;
    let other = ask("something else").await;

    assert_eq!(again.body, first.body);
    assert_eq!(again.headers["idempotency-replayed"], "true");
    assert!(!first.headers.contains_key("idempotency-replayed"));
    assert_eq!(other.status, StatusCode::CONFLICT);
    assert_eq!(agent.calls().len(), 1);
}

/// E6.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn calls_with_one_key_at_once_are_one_turn() {
    let agent = ScriptedAgent::start(|_, number| Script::replies(&format!("answer {number}"))).await;
    let gateway = gateway(&agent).await;
    let hook = gateway.hook("test", TOKEN);
    let calls = (0..16).map(|_| Reply::of(hook.message("hello").header("Idempotency-Key", "at once")));

    let replies = futures_util::future::join_all(calls).await;

    assert!(replies.iter().all(|reply| reply.body == replies[0].body), "{replies:#?}");
    assert_eq!(agent.calls().len(), 1);
}

/// K3: a text file in a form or in a `data:` URL is read to the agent; a URL that the caller names is not fetched.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_text_files_of_a_call_are_read_to_the_agent() {
    let agent = ScriptedAgent::echoing().await;
    let gateway = gateway(&agent).await;
    let hook = gateway.hook("test", TOKEN);
    let form = "--b\r\nContent-Disposition: form-data; name=message\r\n\r\nread this\r\n\
                --b\r\nContent-Disposition: form-data; name=f; filename=shopping.txt\r\n\
                Content-Type: text/plain\r\n\r\nmilk and bread\r\n--b--\r\n";
    let named = format!("{}/healthz", gateway.url());
    let json = json!({ "message": "and this", "attachments": [
        { "name": "list.csv", "url": "data:text/csv;base64,Y29mZmVl" },
        { "name": "inside.txt", "media_type": "text/plain", "url": named },
    ] });

    let sent = Reply::of(hook.call().header("Content-Type", "multipart/form-data; boundary=b").body(form)).await;
    let linked = Reply::of(hook.call().json(&json)).await;

    assert_eq!((sent.text(), linked.text()), ("echo read this", "echo and this"));
    let files_of = |call: rejoinder_tests::Call| {
        let frame: serde_json::Value = serde_json::from_str(&call.last_message()).expect("a message with files");
        frame["files"].clone()
    };
    let files: Vec<_> = agent.calls().into_iter().map(files_of).collect();
    let shopping = json!([{ "name": "shopping.txt", "type": "text/plain", "text": "milk and bread" }]);
    let list = json!({ "name": "list.csv", "type": "text/csv", "text": "coffee" });
    let not_fetched = json!({ "name": "inside.txt", "type": "text/plain" });
    assert_eq!(files, [shopping, json!([list, not_fetched])]);
}

/// M2: a turn that is cancelled by another call ends with words for its own caller, whichever format it reads.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_caller_whose_turn_is_cancelled_is_told_so() {
    let (agent, _held) = ScriptedAgent::holding("never").await;
    let gateway = gateway(&agent).await;
    let hook = gateway.hook("test", TOKEN);

    let waiting = Reply::of(hook.message_in("kitchen", "think").header("Accept", "text/plain"));
    let stop = async {
        agent.until_called(1).await;
        Reply::of(hook.message_in("kitchen", "/stop")).await
    };
    let (cancelled, _) = tokio::join!(waiting, stop);

    assert_eq!((cancelled.status, &cancelled.body), (StatusCode::OK, &json!("Cancelled.")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_sender_and_a_conversation_of_one_name_are_two_conversations() {
    let agent = ScriptedAgent::start(|call, _| {
        let messages = call.body["messages"].as_array().map_or(0, Vec::len);
        Script::replies(&format!("{messages} messages"))
    })
    .await;
    let gateway = gateway(&agent).await;
    let hook = gateway.hook("test", TOKEN);
    let from = |sender: &str| Reply::of(hook.call().json(&json!({ "message": "hello", "sender": sender })));

    let first = from("alice").await;
    let other = Reply::of(hook.message_in("alice", "hello")).await;
    let again = from("alice").await;

    assert_eq!((first.text(), other.text(), again.text()), ("2 messages", "2 messages", "4 messages"));
}

/// A caller may close its sending side after the request (`nc -N`) and still gets the response.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_caller_that_has_said_everything_gets_its_answer() {
    let (agent, release) = ScriptedAgent::holding("Here it is.").await;
    let gateway = gateway(&agent).await;
    let address = gateway.url().replace("http://", "");
    let body = r#"{"message":"hello"}"#;
    let request = format!(
        "POST /hooks/test HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );

    let mut connection = TcpStream::connect(&address).await.unwrap();
    connection.write_all(request.as_bytes()).await.unwrap();
    connection.shutdown().await.unwrap();
    agent.until_called(1).await;
    release.release_one();
    let mut response = String::new();
    connection.read_to_string(&mut response).await.unwrap();

    assert!(response.starts_with("HTTP/1.1 200 OK") && response.contains("Here it is."), "{response}");
}

/// I3.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn health_and_metrics_tell_how_it_is() {
    let agent = ScriptedAgent::replying("fine").await;
    let gateway = gateway(&agent).await;
    gateway.hook("test", TOKEN).ask("how are you?").await;
    let get = async |path: &str| {
        let response = gateway.http().get(format!("{}{path}", gateway.url())).send().await.unwrap();
        (response.status(), response.text().await.unwrap())
    };

    let (healthy, _) = get("/healthz").await;
    let (ready, _) = get("/readyz").await;
    let (_, metrics) = get("/metrics").await;

    assert_eq!((healthy, ready), (StatusCode::OK, StatusCode::OK));
    assert!(metrics.contains("rejoinder_settled_turns_total"), "{metrics}");
}

/// A call over the limits may be repeated with its key, and is answered when the minute is over.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_call_over_the_limits_is_answered_when_it_is_repeated_later() {
    let agent = ScriptedAgent::replying("here").await;
    let gateway = Gateway::builder()
        .own_calendar()
        .config(&hook(""))
        .config(&agent.section())
        .config("[limits]\nturns_per_minute = 1\n")
        .start()
        .await;
    let hook = gateway.hook("test", TOKEN);
    let call = async |key: &str| {
        let body = json!({ "message": format!("hello {key}"), "sender": "ada" });
        Reply::of(hook.call().header("Idempotency-Key", key).json(&body)).await
    };

    assert_eq!(call("one").await.text(), "here");
    for _ in 0..2 {
        assert_eq!(call("two").await.status, StatusCode::TOO_MANY_REQUESTS);
    }
    let again = call("one").await;
    gateway.set_calendar_offset(61);
    let answered = call("two").await;

    assert_eq!((again.text(), &again.headers["idempotency-replayed"]), ("here", &"true".parse().unwrap()));
    assert_eq!((answered.status, answered.text()), (StatusCode::OK, "here"));
    assert!(!answered.headers.contains_key("idempotency-replayed"), "{answered:?}");
}

/// A sender who is over the limits gets 429, and others are answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_sender_over_the_limits_is_asked_to_wait() {
    let agent = ScriptedAgent::replying("here").await;
    let gateway = Gateway::builder()
        .config(&hook(""))
        .config(&agent.section())
        .config("[limits]\nturns_per_minute = 1\n")
        .start()
        .await;
    let hook = gateway.hook("test", TOKEN);
    let from = |sender: Option<&str>, key: &str| {
        hook.call().header("Idempotency-Key", key).json(&json!({ "message": "hello", "sender": sender }))
    };
    // The minute may end between two calls: the third of the same minute is over the limit in any case.
    let mut replies = Vec::new();
    for number in 0..3 {
        replies.push(Reply::of(from(Some("ada"), &format!("key-{number}"))).await);
    }

    let limited = replies.iter().position(|reply| reply.status != StatusCode::OK).expect("one is over the limit");
    let reply = &replies[limited];
    assert_eq!(reply.status, StatusCode::TOO_MANY_REQUESTS, "{reply:?}");
    assert_eq!(reply.headers["content-type"], "application/problem+json");
    let wait: u64 = reply.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    assert!(reply.body["type"].as_str().unwrap().ends_with("over-limit"), "{reply:?}");
    assert_eq!(Reply::of(from(Some("ada"), "key-0")).await.text(), "here", "a replay gives the original answer");
    assert_eq!(Reply::of(from(Some("bob"), "key-b")).await.text(), "here");
    for number in 0..3 {
        let reply = Reply::of(from(None, &format!("key-n{number}"))).await;
        assert_eq!(reply.text(), "here", "calls without a sender are not one person");
    }
}

/// What a link to a file opens, without a token.
async fn opened(gateway: &Gateway, file: &Value) -> String {
    let url = file["url"].as_str().unwrap_or_else(|| panic!("no link: {file}"));
    let response = gateway.http().get(url).send().await.expect("it is open");
    assert_eq!(response.status(), StatusCode::OK, "{url}");
    response.text().await.expect("a text")
}

/// K3.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_file_of_an_answer_is_at_its_link() {
    let model = ToolModel::start().await;
    let gateway = Gateway::builder().config(&hook("")).config(&model.section()).start().await;
    let call = r#"call send_file {"name": "a.txt", "media_type": "text/plain", "data": "aGVsbG8="}"#;

    let reply = gateway.hook("test", TOKEN).ask(call).await;

    let [file] = &reply.body["files"].as_array().expect("files")[..] else { panic!("{reply:?}") };
    assert_eq!((&file["name"], &file["type"]), (&json!("a.txt"), &json!("text/plain")));
    assert_eq!(opened(&gateway, file).await, "hello");
}

/// A reader of text gets the content of the file.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_conversation_is_exported_to_a_hook() {
    let agent = ScriptedAgent::replying("Riga, *7* degrees.").await;
    let gateway = gateway(&agent).await;
    let hook = gateway.hook("test", TOKEN);
    let says = |words: &str| hook.message_in("ada", words);
    Reply::of(says("what is the weather?")).await;

    let file = Reply::of(says("/export")).await;
    let text = Reply::of(says("/export").header("Accept", "text/plain")).await;

    let held = "**caller**: what is the weather?\n\n**main**: Riga, *7* degrees.\n";
    let exported = &file.body["files"][0];
    assert_eq!((&exported["name"], &exported["type"]), (&json!("conversation.md"), &json!("text/markdown")));
    assert_eq!(opened(&gateway, exported).await, held);
    assert_eq!(text.body, json!(format!("{}\n\n{held}", file.text())));
}
