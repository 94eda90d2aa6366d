//! What operators do over the admin API: tokens with roles, operations, the events as they happen.

use futures_util::StreamExt;
use rejoinder_core::data_url;
use rejoinder_tests::{AgentKind, Browser, Gate, Gateway, Reply, Script, ScriptedAgent, eventually};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    TOKEN,
    callbacks::{self, Receiver},
    hook,
};

/// The events that a reader has received so far.
pub(crate) struct Events {
    stream: std::pin::Pin<Box<dyn futures_util::Stream<Item = reqwest::Result<axum::body::Bytes>> + Send>>,
    text: String,
}

/// One event: its id, its name and its data.
pub(crate) type Event = (i64, String, Value);

impl Events {
    pub(crate) async fn follow(gateway: &Gateway, query: &str, last: Option<i64>) -> Self {
        let request = gateway.admin_request(Method::GET, &format!("events{query}"), None);
        let request = match last {
            Some(last) => request.header("Last-Event-ID", last),
            None => request,
        };
        let response = request.send().await.expect("it answers");
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { stream: Box::pin(response.bytes_stream()), text: String::new() }
    }

    /// Reads until `count` events have come.
    pub(crate) async fn read(&mut self, count: usize) -> Vec<Event> {
        while self.events().len() < count {
            let next = tokio::time::timeout(std::time::Duration::from_secs(20), self.stream.next()).await;
            let chunk = next.expect("events come").expect("it goes on").expect("it can be read");
            self.text.push_str(std::str::from_utf8(&chunk).expect("it is text"));
        }
        self.events()
    }

    fn events(&self) -> Vec<Event> {
        let event = |block: &str| {
            let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
            let data = serde_json::from_str(field("data:")?).expect("the data is JSON");
            Some((field("id:")?.parse().expect("a number"), field("event:")?.to_owned(), data))
        };
        // The last block may be incomplete.
        let complete = self.text.rsplit_once("\n\n").map_or("", |(complete, _)| complete);
        complete.split("\n\n").filter_map(event).collect()
    }
}

async fn gateway() -> (Gateway, ScriptedAgent) {
    let agent = ScriptedAgent::replying("done").await;
    (Gateway::builder().config(&hook("")).config(&agent.section()).start().await, agent)
}

/// A gateway with a hook whose callbacks are all given up.
async fn gateway_without_callbacks() -> (Gateway, Receiver, ScriptedAgent) {
    let (receiver, agent) = (Receiver::start(&[(410, None); 3]).await, ScriptedAgent::replying("posted").await);
    let gateway = callbacks::gateway(&receiver, &agent).await;
    (gateway, receiver, agent)
}

async fn dead_letters(gateway: &Gateway) -> Vec<Value> {
    gateway.admin("dead-letters").await["items"].as_array().expect("a list").clone()
}

fn made(gateway: &Gateway, role: &str) -> String {
    let made = gateway.output_of(&["tokens", "create", "--role", role, "--json"]);
    let made: Value = serde_json::from_str(&made).expect("it is JSON");
    made["token"].as_str().expect("there is a token").to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_token_does_what_its_role_allows_until_it_is_revoked() {
    let (mut gateway, _agent) = gateway().await;
    let turn = gateway.hook("test", TOKEN).ask("hello").await.turn();
    let (viewer, operator) = (made(&gateway, "viewer"), made(&gateway, "operator"));
    let status = async |gateway: &Gateway, method: Method, path: &str, token: &str| {
        gateway.admin_request(method, path, Some(token)).send().await.expect("it answers").status()
    };

    assert_eq!(status(&gateway, Method::GET, "turns", &viewer).await, StatusCode::OK);
    let cancel = format!("turns/{turn}/cancel");
    assert_eq!(status(&gateway, Method::POST, &cancel, &viewer).await, StatusCode::FORBIDDEN);
    // The turn is settled.
    assert_eq!(status(&gateway, Method::POST, &cancel, &operator).await, StatusCode::CONFLICT);
    assert_eq!(status(&gateway, Method::GET, "tokens", &operator).await, StatusCode::FORBIDDEN);
    assert_eq!(status(&gateway, Method::GET, "audit", &viewer).await, StatusCode::FORBIDDEN);
    assert!(gateway.output_of(&["tokens", "list"]).contains("viewer-1"));

    gateway.kill();
    gateway.restart().await;
    assert_eq!(status(&gateway, Method::GET, "turns", &viewer).await, StatusCode::OK);
    assert!(gateway.output_of(&["tokens", "revoke", "viewer-1", "--reason", "lost"]).contains("revoked"));
    assert_eq!(status(&gateway, Method::GET, "turns", &viewer).await, StatusCode::UNAUTHORIZED);
    let audit = gateway.admin("audit").await;
    assert_eq!(audit["items"][0]["action"], "revoke_token");
    assert_eq!(audit["items"][0]["reason"], "lost");
    let database = std::fs::read(gateway.data().join("rejoinder.db")).expect("it can be read");
    assert!(!database.windows(viewer.len()).any(|bytes| bytes == viewer.as_bytes()), "a token is in the database");
}

/// What a token asked and did belongs to its name, so no other token ever gets it.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_name_of_a_token_is_given_once() {
    let (mut gateway, _agent) = gateway().await;
    let named = async |gateway: &Gateway, name: &str| {
        let make = gateway.admin_request(Method::POST, "tokens", None).json(&json!({ "name": name, "role": "chat" }));
        make.send().await.expect("it answers").status()
    };
    let revoke = |gateway: &Gateway, name: &str| gateway.output_of(&["tokens", "revoke", name]);

    let (one, other) = tokio::join!(named(&gateway, "phone"), named(&gateway, "phone"));
    let mut both = [one, other];
    both.sort_unstable();
    assert_eq!(both, [StatusCode::CREATED, StatusCode::CONFLICT], "of two at once");
    made(&gateway, "viewer");
    revoke(&gateway, "phone");
    revoke(&gateway, "viewer-1");
    assert_eq!(named(&gateway, "phone").await, StatusCode::CONFLICT);

    gateway.kill();
    gateway.restart().await;
    assert_eq!(named(&gateway, "phone").await, StatusCode::CONFLICT);
    assert_eq!(named(&gateway, "tablet").await, StatusCode::CREATED);
    made(&gateway, "viewer");
    let list = gateway.output_of(&["tokens", "list"]);
    assert!(list.contains("viewer-2") && list.contains("tablet") && !list.contains("phone"), "{list}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_token_for_other_channels_sees_nothing() {
    let agent = ScriptedAgent::replying("done").await;
    let other = format!("[channels.webhook.other]\ntoken = \"{TOKEN}-other\"\n");
    let gateway = Gateway::builder().config(&hook("")).config(&other).config(&agent.section()).start().await;
    let turn = gateway.hook("test", TOKEN).ask("hello").await.turn();
    let made = gateway.output_of(&["tokens", "create", "--role", "operator", "--channel", "webhook.other", "--json"]);
    let made: Value = serde_json::from_str(&made).expect("it is JSON");
    let token = made["token"].as_str().expect("there is a token");
    let get = async |path: &str| {
        let response = gateway.admin_request(Method::GET, path, Some(token)).send().await.expect("it answers");
        (response.status(), response.json::<Value>().await.expect("it is JSON"))
    };

    assert_eq!(get("turns").await.1["items"], json!([]));
    assert_eq!(get(&format!("turns/{turn}")).await.0, StatusCode::NOT_FOUND);
    assert_eq!(get("channels").await.1["items"].as_array().map(Vec::len), Some(1));
    let cancelled = gateway.admin_request(Method::POST, &format!("turns/{turn}/cancel"), Some(token)).send().await;
    assert_eq!(cancelled.expect("it answers").status(), StatusCode::NOT_FOUND);
}

/// Nobody is answered twice, and nothing is done twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_request_with_the_same_key_is_done_once() {
    let (gateway, _receiver, _agent) = gateway_without_callbacks().await;
    gateway.hook("test", TOKEN).ask("hello").await;
    let letter = eventually("it is a dead letter", async || dead_letters(&gateway).await.pop()).await;
    assert_eq!((letter["kind"].as_str(), letter["text"].as_str()), (Some("callback"), Some("posted")));
    let path = format!("dead-letters/{}/discard", letter["id"].as_str().expect("an id"));
    let discard = async |key: &str, reason: &str| {
        let request = gateway.admin_request(Method::POST, &path, None);
        let request = request.header("Idempotency-Key", key).json(&json!({ "reason": reason }));
        let response = request.send().await.expect("it answers");
        (response.status(), response.headers().contains_key("idempotency-replayed"))
    };
    let unreasoned = gateway.admin_request(Method::POST, &path, None).send().await;
    assert_eq!(unreasoned.expect("it answers").status(), StatusCode::BAD_REQUEST);

    assert_eq!(discard("k1", "she left").await, (StatusCode::ACCEPTED, false));
    assert_eq!(discard("k1", "she left").await, (StatusCode::ACCEPTED, true));
    assert_eq!(discard("k1", "another reason").await, (StatusCode::CONFLICT, false));
    assert_eq!(discard("k2", "she left").await, (StatusCode::CONFLICT, false));

    assert!(dead_letters(&gateway).await.is_empty());
    assert_eq!(gateway.admin("audit").await["items"].as_array().map(Vec::len), Some(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn all_dead_letters_that_match_are_given_up_at_once() {
    let (gateway, _receiver, _agent) = gateway_without_callbacks().await;
    for _ in 0..3 {
        gateway.hook("test", TOKEN).ask("hello").await;
    }
    let count = async || dead_letters(&gateway).await.len();
    eventually("there are three", async || (count().await == 3).then_some(())).await;

    let tried = gateway.output_of(&["dead-letters", "discard", "--all", "--dry-run", "--reason", "test"]);
    assert!(tried.contains("3 would be given up"), "{tried}");
    assert_eq!(count().await, 3);
    let none = gateway.output_of(&["dead-letters", "discard", "--error", "no such error", "--reason", "test"]);
    assert!(none.contains("0 are given up"), "{none}");
    let done = gateway.output_of(&["dead-letters", "discard", "--channel", "webhook.test", "--reason", "test"]);
    assert!(done.contains("3 are given up"), "{done}");

    assert_eq!(count().await, 0);
    assert!(gateway.output_of(&["dead-letters", "list"]).contains("No dead letters"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_events_of_a_turn_come_as_they_happen() {
    let (gateway, _agent) = gateway().await;
    let mut all = Events::follow(&gateway, "", None).await;
    let mut settled = Events::follow(&gateway, "?topic=turn.settled", None).await;

    let turn = gateway.hook("test", TOKEN).ask("hello").await.turn();

    let events = all.read(4).await;
    let topics: Vec<&str> = events.iter().map(|(_, topic, _)| topic.as_str()).collect();
    assert_eq!(topics, ["turn.accepted", "turn.started", "turn.claimed", "turn.settled"]);
    for (id, topic, data) in &events {
        assert_eq!((data["seq"].as_i64(), data["topic"].as_str()), (Some(*id), Some(topic.as_str())));
        assert_eq!((data["turn_id"].as_str(), data["channel"].as_str()), (Some(&*turn), Some("webhook.test")));
    }
    let only = settled.read(1).await;
    assert_eq!(only[0], events[3]);
    assert_eq!(only[0].2["data"]["signal"], "reply");
    let wrong = gateway.admin_request(Method::GET, "events?topic=turn.%22", None).send().await.expect("it answers");
    assert_eq!(wrong.status(), StatusCode::BAD_REQUEST);
}

/// The log is followed over five kills, and nothing is missing or there twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_events_are_followed_over_kills_with_no_gap() {
    let (mut gateway, _agent) = gateway().await;
    let mut seen: Vec<i64> = Vec::new();
    for round in 0..5_u32 {
        let mut events = Events::follow(&gateway, "", seen.last().copied().or(Some(0))).await;
        for number in 0..=round {
            gateway.hook("test", TOKEN).ask(&format!("hello {number}")).await;
        }
        // Some are read before the kill, the rest after it.
        let read = events.read(2).await;
        seen.extend(read.iter().map(|(id, ..)| id));
        gateway.kill();
        gateway.restart().await;
    }
    let turns: u32 = (1..=5).sum();
    let mut rest = Events::follow(&gateway, "", seen.last().copied()).await;
    let missing = turns as usize * 4 - seen.len();
    if missing > 0 {
        seen.extend(rest.read(missing).await.iter().map(|(id, ..)| id));
    }

    assert_eq!(seen, (1..=i64::from(turns) * 4).collect::<Vec<_>>());
}

/// Nobody is called at night, and cron sees it.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_status_says_whether_anything_is_late_or_down() {
    let (gateway, _agent) = gateway().await;
    for _ in 0..3 {
        gateway.hook("test", TOKEN).ask("hello").await;
    }

    let status = gateway.run(&["status"]);
    let text = String::from_utf8_lossy(&status.stdout).into_owned();
    assert_eq!(status.status.code(), Some(0), "{text}");
    assert!(text.starts_with("Everything is answered. 3 turns in 24 hours, 100.0 % within 5 s."), "{text}");
    assert!(text.contains("webhook.test up") && text.contains("main up"), "{text}");
    let overview = gateway.admin("overview").await;
    assert_eq!((overview["ok"].as_bool(), overview["day"]["signals"].as_u64()), (Some(true), Some(3)), "{overview:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_status_names_what_is_wrong_first() {
    let (gateway, _receiver, _agent) = gateway_without_callbacks().await;
    gateway.hook("test", TOKEN).ask("hello").await;
    let letter = eventually("it is a dead letter", async || dead_letters(&gateway).await.pop()).await;

    let status = gateway.run(&["status"]);

    assert_eq!(status.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&status.stdout).starts_with("One callback of a hook was given up."), "{status:?}");
    let id = letter["id"].as_str().expect("an id");
    let shown = gateway.output_of(&["dead-letters", "show", id]);
    assert!(shown.contains("410") && shown.contains("posted"), "{shown}");
    assert!(gateway.output_of(&["dead-letters", "discard", id, "--reason", "a test"]).contains("given up"));
    assert_eq!(gateway.run(&["status"]).status.code(), Some(0));
}

/// What a response sets as a cookie, without its attributes.
pub(crate) fn cookie_of(response: &reqwest::Response) -> String {
    let set = response.headers()["set-cookie"].to_str().expect("it is text");
    for attribute in ["HttpOnly", "SameSite=Strict", "Path=/admin", "Max-Age=43200"] {
        assert!(set.contains(attribute), "{set}");
    }
    set.split(';').next().expect("a value").to_owned()
}

/// The link opens a session once. Link and session survive `kill -9`, and a page of another origin cannot use it.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_link_opens_the_page_once() {
    let (mut gateway, _agent) = gateway().await;
    let link = gateway.output_of(&["dashboard"]);
    let (page, code) = link.trim().split_once("#code=").expect("a link with a code");
    let opened = gateway.http().get(page).send().await.expect("it answers");
    assert!(opened.headers()["content-security-policy"].to_str().expect("text").contains("script-src 'self'"));
    assert!(opened.text().await.expect("text").contains("<html"));

    let open = async |gateway: &Gateway, code: &str| {
        let request = gateway.http().post(format!("{}/admin/api/session", gateway.url()));
        request.json(&json!({ "code": code })).send().await.expect("it answers")
    };
    let first = open(&gateway, code).await;
    assert_eq!(first.status(), StatusCode::OK);
    let cookie = cookie_of(&first);
    assert_eq!(open(&gateway, code).await.status(), StatusCode::UNAUTHORIZED);
    let other = gateway.output_of(&["dashboard"]);
    let (_, other) = other.trim().split_once("#code=").expect("a link with a code");

    gateway.kill();
    gateway.restart().await;
    assert_eq!(open(&gateway, code).await.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(open(&gateway, other).await.status(), StatusCode::OK);
    assert_eq!(open(&gateway, other).await.status(), StatusCode::UNAUTHORIZED);
    let url = |path: &str| format!("{}/admin/api/{path}", gateway.url());
    let with = |request: reqwest::RequestBuilder| request.header("cookie", &cookie);
    let session = with(gateway.http().get(url("session"))).send().await.expect("it answers");
    assert_eq!(session.json::<Value>().await.expect("JSON")["role"], "admin");
    let token = json!({ "name": "ada", "role": "viewer" });
    let make = |origin: String| with(gateway.http().post(url("tokens"))).header("origin", origin).json(&token).send();
    let elsewhere = make("http://127.0.0.1:1".to_owned()).await.expect("it answers");
    assert_eq!(elsewhere.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(make(gateway.url()).await.expect("it answers").status(), StatusCode::CREATED);
    let changed = format!("{cookie}x");
    let refused = gateway.http().get(url("turns")).header("cookie", changed).send().await.expect("it answers");
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    let unknown = gateway.admin_request(Method::GET, "no-such-thing", None).send().await.expect("it answers");
    assert_eq!(unknown.status(), StatusCode::NOT_FOUND);
}

/// A10: signing out ends the session for who has a copy of its cookie as well, also after a restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_copied_cookie_is_dead_after_its_owner_signed_out() {
    let (mut gateway, _agent) = gateway().await;
    let made = gateway.output_of(&["tokens", "create", "--role", "viewer", "--name", "grafana", "--json"]);
    let token = serde_json::from_str::<Value>(&made).expect("JSON")["token"].as_str().expect("a token").to_owned();
    let sign_in = async |token: Option<&str>| {
        cookie_of(&gateway.admin_request(Method::POST, "session", token).send().await.expect("it answers"))
    };
    let (signed_out, ended, of_token) = (sign_in(None).await, sign_in(None).await, sign_in(Some(&token)).await);
    let with = async |gateway: &Gateway, method: Method, path: &str, cookie: &str| {
        let url = format!("{}/admin/api/{path}", gateway.url());
        let request = gateway.http().request(method, url).header("origin", gateway.url()).header("cookie", cookie);
        request.send().await.expect("it answers")
    };
    let sessions = gateway.admin("sessions").await;
    let names: Vec<_> = sessions["items"].as_array().expect("a list").iter().map(|session| &session["name"]).collect();
    assert_eq!(names, ["admin", "admin", "grafana"]);
    let second = sessions["items"][1]["id"].as_str().expect("an id").to_owned();
    assert!(gateway.output_of(&["tokens", "sessions"]).contains(&second));

    assert_eq!(with(&gateway, Method::DELETE, "session", &signed_out).await.status(), StatusCode::NO_CONTENT);
    let _ = gateway.output_of(&["tokens", "end-session", &second]);
    let _ = gateway.output_of(&["tokens", "revoke", "grafana"]);

    for _ in 0..2 {
        for cookie in [&signed_out, &ended, &of_token] {
            let read = with(&gateway, Method::GET, "turns", cookie).await.status();
            let linked = with(&gateway, Method::POST, "links", cookie).await.status();
            assert_eq!((read, linked), (StatusCode::UNAUTHORIZED, StatusCode::UNAUTHORIZED), "{cookie}");
        }
        gateway.kill();
        gateway.restart().await;
    }
    assert_eq!(gateway.admin("sessions").await["items"], json!([]));
    let audit = gateway.admin("audit").await;
    assert_eq!((&audit["items"][1]["action"], &audit["items"][1]["target"]), (&json!("end_session"), &json!(second)));
}

/// In a browser: every section, at the widths of a phone and of a desktop, dark and light. axe finds nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn everybody_can_use_every_section_of_the_page() {
    let agent = ScriptedAgent::replying("done").await.of_kind(AgentKind::Cascade);
    let gateway = Gateway::builder().config(&hook("")).config(&agent.section()).start().await;
    let _ = gateway.hook("test", TOKEN).ask("hello").await.turn();

    let mut browser = Browser::start("operator-sections", &gateway.url());
    browser.reaches("signed in and out").await;
    browser.resume().await;
    browser.reaches("looked at on a desktop").await;
    browser.resume().await;
    browser.succeeds().await;
}

/// In a browser: who waits for an answer reads the operator's words.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_turn_is_given_up_on_the_page_with_a_word_to_the_person() {
    let (agent, _never) = ScriptedAgent::holding("never").await;
    let gateway = Gateway::builder().config(&hook("")).config(&agent.section()).start().await;
    let hook = gateway.hook("test", TOKEN);
    let turn = hook.send("hello").await.turn();
    let path = format!("turns/{turn}/cancel");
    for body in [json!({ "say": "No.", "silently": true }), json!({ "say": " " })] {
        let refused = gateway.admin_request(Method::POST, &path, None).json(&body).send().await.expect("it answers");
        assert_eq!(refused.status(), StatusCode::BAD_REQUEST, "{body}");
    }

    let mut browser = Browser::start("operator-gives-up", &gateway.url());
    browser.reaches("given up").await;

    let told = hook.until_settled(&turn).await;
    assert_eq!((told.state(), told.text()), ("cancelled", "Ask Grace, please."));
    browser.resume().await;
    browser.succeeds().await;
}

/// A picture with one pixel.
const PICTURE: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";

/// Half a second of silence, with 8,000 samples of 8 bits in a second.
fn sound() -> Vec<u8> {
    let head = b"RIFF\xc4\x0f\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x40\x1f\0\0\x01\0\x08\0data\xa0\x0f\0\0";
    [&head[..], &[128; 4000]].concat()
}

/// In a browser: a picture is shown and a sound is played; what could be active is neither.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_files_of_a_turn_are_seen_and_heard_on_the_page() {
    let (gateway, _agent) = gateway().await;
    let files = [
        ("dot.png", PICTURE.to_owned()),
        ("note.wav", data_url("audio/wav", &sound())),
        ("page.html", data_url("text/html", b"<script>alert(1)</script>")),
    ];
    let files = files.map(|(name, url)| json!({ "name": name, "url": url }));
    let message = gateway.hook("test", TOKEN).call().json(&json!({ "message": "Look!", "attachments": files }));
    let _ = Reply::of(message).await.turn();

    Browser::start("operator-files", &gateway.url()).succeeds().await;
}

/// In a browser: who has only the page to go by sets a shortcut up, sees what it sends, and gets a slow answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_shortcut_is_set_up_with_what_the_page_says() {
    let (agent, release) = ScriptedAgent::holding("I can answer.").await;
    let gateway = Gateway::builder().config(&hook("")).config(&agent.section()).start().await;

    let mut browser = Browser::start("operator-siri", &gateway.url());
    browser.reaches("asked").await;
    release.open();
    browser.resume().await;
    browser.succeeds().await;

    let audit = gateway.admin("audit").await;
    let seen: Vec<_> = audit["items"].as_array().expect("a list").iter().map(|entry| &entry["action"]).collect();
    assert_eq!(seen, [&json!("create_token"), &json!("show_token")]);
}

/// What was said in a conversation, and what was sent to it.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_conversation_shows_what_was_said() {
    let (gateway, _agent) = gateway().await;
    let turn = gateway.hook("test", TOKEN).ask("hello").await.turn();

    let listed = gateway.admin("conversations").await;
    let id = listed["items"][0]["conversation_id"].as_str().expect("an id").to_owned();
    let shown = gateway.admin(&format!("conversations/{id}")).await;
    let said: Vec<_> =
        shown["transcript"].as_array().expect("lines").iter().map(|line| (&line["from"], &line["text"])).collect();
    assert_eq!(said, [(&json!("person"), &json!("hello")), (&json!("agent"), &json!("done"))]);
    assert_eq!(shown["sessions"][0]["current"], true);
    let deliveries = gateway.admin(&format!("deliveries?turn={turn}&state=delivered")).await;
    assert_eq!((&deliveries["items"][0]["text"], &deliveries["items"][0]["origin"]), (&json!("done"), &json!("turn")));
    let message = json!({ "conversation_id": id, "text": "hello?" });
    let refused =
        gateway.admin_request(Method::POST, "messages", None).json(&message).send().await.expect("it answers");
    assert_eq!(refused.status(), StatusCode::CONFLICT, "a hook's callers fetch their answers");
}

/// What is owed comes before what was asked, and who answers closes the loop.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_is_open_is_listed() {
    let release = Gate::default();
    let agent = {
        let release = release.clone();
        ScriptedAgent::start(move |call, _| match call.said().as_str() {
            "wait" => Script::replies("at last").waiting(&release),
            "unclear" => Script::is_silent("what does it mean?"),
            _ => Script::replies("fine"),
        })
        .await
    };
    let ladder = "[guard.ladder.webhook.direct]\nsilent = [{ clarify = \"which\" }]\n\
        [guard.clarify.which]\nquestion = \"Which one?\"\nchoices = [\"this\", \"that\"]\n";
    let gateway = Gateway::builder().config(&hook("")).config(&agent.section()).config(ladder).start().await;
    let says = async |place: &str, words: &str, wait: &str| {
        Reply::of(gateway.hook("test", TOKEN).message_in(place, words).header("Prefer", wait)).await
    };
    let open = async || {
        let found = gateway.admin("loops").await;
        let kinds = found["items"].as_array().expect("a list").iter().map(|item| item["kind"].to_string());
        (kinds.collect::<Vec<_>>().join(" "), found["total"].as_u64())
    };
    assert_eq!(open().await, (String::new(), Some(0)));

    let asked = says("ada", "unclear", "wait=10").await;
    assert_eq!(asked.text(), "Which one?");
    says("bob", "wait", "wait=0").await;
    eventually("both", async || (open().await.0 == "\"open\" \"asked\"").then_some(())).await;
    assert_eq!(gateway.turns("asked")[0]["turn_id"], asked.turn());

    says("ada", "this", "wait=10").await;
    release.open();
    eventually("nothing is open", async || (open().await.1 == Some(0)).then_some(())).await;
}
