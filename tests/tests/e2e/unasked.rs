//! The gateway writes first on the chat page: messages, and what agents answer to prompts.

use rejoinder_tests::{Browser, Chat, Gateway, ROW_STEPS, Script, ScriptedAgent, eventually};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{TOKEN, hook};

/// The id of the conversation, and the name of its key holder in lists of people.
const KEY: &str = "a-conversation-of-tests";
const HOLDER: &str = "webchat.main/10ac60a3c22e3783621b0f985c825c2f";

/// The steps of a message of the gateway's own: the row is its receipt.
const STEPS: [&str; 4] = ["received:1", "accepted:1", "before_commit:1", "after_commit:1"];

/// What the agent is told, and nobody else.
const PROMPT: &str = "Tell her what is new, and be brief.";

async fn agent() -> ScriptedAgent {
    ScriptedAgent::start(|call, _| match &*call.last_message() {
        text if text.contains("nothing is new") => Script::replies("NO_REPLY"),
        text if text.contains(PROMPT) => Script::replies("Two letters have come."),
        _ => Script::replies("Hello."),
    })
    .await
}

/// A request of an operator, whose answer is lost if the process ends.
async fn posts(gateway: &Gateway, path: &str, body: &Value, key: &str) -> Option<(StatusCode, Value)> {
    let request = gateway.admin_request(Method::POST, path, None).header("Idempotency-Key", key).json(body);
    let response = request.send().await.ok()?;
    Some((response.status(), response.json().await.unwrap_or_default()))
}

async fn is_done(gateway: &Gateway, path: &str, body: &Value, key: &str, status: StatusCode) -> Value {
    let (is, answer) = posts(gateway, path, body, key).await.expect("the gateway answers");
    assert_eq!(is, status, "{answer}");
    answer
}

/// The turns that a page shows when it is opened: what the person said, and what was answered.
async fn shown(gateway: &Gateway) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let turns = Chat::open(&gateway.url(), KEY).await.turns;
    turns.iter().map(|turn| (text(&turn["text"]), text(&turn["shown"]["text"]))).collect()
}

fn pair(said: &str, answer: &str) -> (String, String) {
    (said.to_owned(), answer.to_owned())
}

async fn met() -> (ScriptedAgent, Gateway) {
    let agent = agent().await;
    let gateway =
        Gateway::builder().config(&agent.section()).config(&hook("")).config("[channels.webchat.main]\n").start().await;
    let mut chat = Chat::open(&gateway.url(), KEY).await;
    let turn = chat.says("message-1", "hello").await;
    assert_eq!(chat.hears(&turn).await, "Hello.");
    (agent, gateway)
}

/// J4. A page that is open shows it at once, and one that is opened later as well. Where nobody would see it, it is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_operator_writes_to_a_page() {
    let (agent, mut gateway) = met().await;
    let mut chat = Chat::open(&gateway.url(), KEY).await;

    let body = json!({ "to": HOLDER, "text": "The report is *ready*." });
    let sent = is_done(&gateway, "messages", &body, "one", StatusCode::ACCEPTED).await;

    let told = chat.hears_unasked().await;
    assert_eq!((&told["turn_id"], &told["shown"]["text"]), (&sent["id"], &json!("The report is *ready*.")));
    assert_eq!((&told["shown"]["agent"], &told["shown"]["fallback"]), (&Value::Null, &Value::Null), "{told}");
    gateway.kill();
    gateway.restart().await;
    assert_eq!(shown(&gateway).await, [pair("hello", "Hello."), pair("", "The report is *ready*.")]);
    assert_eq!(agent.calls().len(), 1, "the agent is not asked");

    let (mut chat, to) = (Chat::open(&gateway.url(), KEY).await, HOLDER);
    let printed = gateway.output_of(&["send", to, "It is here, too."]);
    assert_eq!(chat.hears_unasked().await["shown"]["text"], "It is here, too.", "{printed}");
    let schedule = json!({ "name": "news", "every": "24h", "to": to, "message": "Good morning." });
    is_done(&gateway, "schedules", &schedule, "two", StatusCode::CREATED).await;
    is_done(&gateway, "schedules/news/run", &json!({}), "three", StatusCode::ACCEPTED).await;
    assert_eq!(chat.hears_unasked().await["shown"]["text"], "Good morning.");
    assert!(printed.contains(HOLDER), "{printed}");

    gateway.hook("test", TOKEN).ask("hello").await;
    for (to, why) in [("webchat.main/another-conversation", "nobody has written"), ("webhook.test/1", "callers fetch")]
    {
        let refused = json!({ "to": to, "text": "Is anybody there?" });
        let refused = is_done(&gateway, "messages", &refused, to, StatusCode::CONFLICT).await;
        assert!(refused.to_string().contains(why), "{refused}");
    }
    gateway.stop().await;
}

/// U10: what is stored nowhere is shown nowhere. Who reads the address of a conversation can do nothing with it on the page.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_secret_id_of_a_conversation_stays_in_its_browser() {
    let (_agent, mut gateway) = met().await;
    let mut chat = Chat::open(&gateway.url(), KEY).await;
    for (number, text) in ["/whoami", "/link", "/link AAAA-AAAA", "/export"].into_iter().enumerate() {
        let turn = chat.says(&format!("command-{number}"), text).await;
        chat.hears(&turn).await;
    }
    chat.deletes("deletion-1", KEY).await;
    let _ = gateway.output_of(&["send", HOLDER, "It is here, too."]);
    chat.hears_unasked().await;

    let turn = gateway.turns("settled")[0]["turn_id"].as_str().expect("an id").to_owned();
    let digest = HOLDER.split_once('/').expect("an address").1;
    for list in ["turns", "conversations", &format!("turns/{turn}"), &format!("turns/{turn}/explain"), "people"] {
        let listed = gateway.admin(list).await.to_string();
        assert!(
            !listed.contains(KEY) && (listed.contains(digest) || !["turns", "conversations"].contains(&list)),
            "{list}: {listed}"
        );
    }
    assert!(Chat::open(&gateway.url(), digest).await.turns.is_empty());
    gateway.stop().await;
    assert!(!gateway.log().contains(KEY));
    for file in std::fs::read_dir(gateway.data()).expect("the folder is read").flatten() {
        if file.path().is_dir() {
            continue;
        }
        let bytes = std::fs::read(file.path()).expect("it is read");
        assert!(!bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes()), "{file:?}");
    }
}

/// J4. The caller repeats the request, and the page shows it once.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_message_to_a_page_is_shown_once_whatever_step_the_process_ends_at() {
    let (_agent, mut gateway) = met().await;
    gateway.stop().await;

    for step in STEPS {
        gateway.spawn_crashing_at(step);
        gateway.until_ready().await;
        let body = json!({ "to": HOLDER, "text": format!("After {step}.") });
        posts(&gateway, "messages", &body, step).await;
        gateway.until_crashed().await;
        gateway.restart().await;
        is_done(&gateway, "messages", &body, step, StatusCode::ACCEPTED).await;
        let text = pair("", &format!("After {step}."));
        eventually("it is shown", async || shown(&gateway).await.contains(&text).then_some(())).await;
        gateway.stop().await;
    }
    gateway.restart().await;
    let expected: Vec<_> = STEPS.iter().map(|step| pair("", &format!("After {step}."))).collect();
    assert_eq!(shown(&gateway).await[1..], expected);
    gateway.stop().await;
}

/// D1. A page shows the answer once, and never what the agent is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_page_shows_the_answer_to_a_prompt_once_whatever_step_the_process_ends_at() {
    let (agent, mut gateway) = met().await;
    let body = json!({ "name": "news", "every": "24h", "to": HOLDER, "prompt": PROMPT });
    is_done(&gateway, "schedules", &body, "add", StatusCode::CREATED).await;
    gateway.stop().await;

    for (count, step) in ROW_STEPS.into_iter().enumerate() {
        gateway.spawn_crashing_at(step);
        gateway.until_ready().await;
        posts(&gateway, "schedules/news/run", &json!({}), step).await;
        gateway.until_crashed().await;
        gateway.restart().await;
        is_done(&gateway, "schedules/news/run", &json!({}), step, StatusCode::ACCEPTED).await;
        let answers = async || shown(&gateway).await.into_iter().filter(|(_, answer)| !answer.is_empty()).count();
        eventually("it is answered", async || (answers().await == count + 2).then_some(())).await;
        gateway.stop().await;
    }
    gateway.restart().await;
    assert_eq!(shown(&gateway).await[1..], vec![pair("", "Two letters have come."); ROW_STEPS.len()]);
    assert!(agent.calls().last().is_some_and(|call| call.last_message().contains(PROMPT)));
    gateway.stop().await;
}

/// B11. In a browser: no bubble of the person, in what is open, in what is opened later, and in what is saved. Of an agent that has
/// nothing to say there is nothing to see.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_page_shows_what_nobody_asked_for() {
    let agent = agent().await;
    let gateway = Gateway::builder().config(&agent.section()).start().await;
    let mut browser = Browser::start("unasked", &gateway.url());

    browser.reaches("answered").await;
    let conversations = gateway.admin("conversations").await;
    let chat = conversations["items"][0]["chat"].as_str().expect("a conversation").to_owned();
    let to = format!("webchat.main/{chat}");
    let body = json!({ "to": to, "text": "The **report** is ready:\n\n* four pages\n* two tables" });
    is_done(&gateway, "messages", &body, "one", StatusCode::ACCEPTED).await;
    browser.resume().await;
    browser.reaches("a message").await;
    let schedules = [("quiet", "Say something, unless nothing is new: nothing is new.", true), ("news", PROMPT, false)];
    for (name, prompt, quiet) in schedules {
        let body = json!({ "name": name, "every": "24h", "to": to, "prompt": prompt, "quiet": quiet });
        is_done(&gateway, "schedules", &body, name, StatusCode::CREATED).await;
        let run = format!("schedules/{name}/run");
        is_done(&gateway, &run, &json!({}), &format!("run {name}"), StatusCode::ACCEPTED).await;
    }
    browser.resume().await;
    browser.reaches("a prompt").await;
    browser.resume().await;

    browser.succeeds().await;
}
