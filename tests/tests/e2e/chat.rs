//! The chat page, in a real browser.

use std::time::Duration;

use axum::{Json, Router, body::Bytes, routing::post};
use rejoinder_core::data_url;
use rejoinder_tests::{Browser, Call, Gate, Gateway, ModelServer, Script, ScriptedAgent, eventually};
use reqwest::{StatusCode, header};
use rstest::rstest;
use serde_json::json;
use tokio::net::TcpListener;

/// A picture with one pixel, in Base64.
const DOT: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";

/// The last line of the last message: consecutive messages from the person are sent to the model as one.
fn last_text(call: &Call) -> String {
    let messages = call.body["messages"].as_array().expect("messages");
    let last = messages.last().expect("a message")["content"].as_str().expect("text");
    last.lines().next_back().expect("a line").to_owned()
}

async fn chat(agent: &ScriptedAgent, more: &str) -> Gateway {
    Gateway::builder().config(&agent.section()).config(more).start().await
}

/// The number of turns in any state.
fn turns(gateway: &Gateway) -> usize {
    let list: serde_json::Value =
        serde_json::from_str(&gateway.output_of(&["turns", "list", "--json"])).expect("the list is JSON");
    list["items"].as_array().expect("the list has items").len()
}

/// B11: streamed text, safe Markdown, history, and no messages of other people.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_conversation_is_seen_as_it_is_written_and_found_again() {
    let model = ModelServer::start().await;
    let gateway = Gateway::builder().config(&model.section()).start().await;

    Browser::start("conversation", &gateway.url()).succeeds().await;
}

async fn echo(more: &str) -> (ScriptedAgent, Gateway) {
    let agent = ScriptedAgent::start(|call, _| Script::replies(&format!("answer to: {}", last_text(call)))).await;
    let gateway = chat(&agent, more).await;
    (agent, gateway)
}

/// B11: the browser keeps a list of the conversations, each can be returned to, and no words go into another one.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_old_conversation_is_found_again_named_and_deleted() {
    let (_agent, gateway) = echo("").await;

    let mut browser = Browser::start("conversations", &gateway.url());

    for checkpoint in ["named", "deleted", "two hundred"] {
        browser.reaches(checkpoint).await;
        browser.resume().await;
    }

    browser.succeeds().await;
}

/// The file is in the page's own frames, and is only saved.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_conversation_is_saved_as_markdown() {
    let (_agent, gateway) = echo("").await;

    Browser::start("export", &gateway.url()).succeeds().await;
}

/// B11: what was said is found in all conversations of the browser. A menu saves and prints one, and chooses its agent; keys lead there.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_was_said_is_found_saved_printed_and_reached_with_keys() {
    let agent = ScriptedAgent::start(|call, _| Script::replies(&format!("answer to: {}", last_text(call)))).await;
    let coder = agent.section().replace("[agents.main]", "[agents.coder]");
    let routing = "[routing]\ndefault_agent = \"main\"\nchoosable = [\"coder\"]\n";
    let gateway = chat(&agent, &format!("{coder}\n{routing}")).await;
    let mut browser = Browser::start("found", &gateway.url());

    for checkpoint in ["said", "found", "printed"] {
        browser.reaches(checkpoint).await;
        browser.resume().await;
    }

    browser.succeeds().await;
}

/// E6: no search finds it and no agent is shown it; it is deleted once, also when the gateway was killed before it could say so.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_is_deleted_on_the_page_is_deleted_at_the_gateway() {
    let never = Gate::default();
    let agent = ScriptedAgent::start(move |call, _| {
        let said = last_text(call);
        let answer = Script::replies(&format!("answer to: {said}"));
        if said == "Wait with pears" { answer.waiting(&never) } else { answer }
    })
    .await;
    let mut gateway = chat(&agent, "").await;
    let found = async |gateway: &Gateway, words: &str| {
        gateway.admin(&format!("search?q={words}")).await["items"].as_array().expect("a list").len()
    };
    let mut browser = Browser::start("delete", &gateway.url());

    browser.reaches("running").await;
    eventually("it is indexed", async || (found(&gateway, "apples").await == 2).then_some(())).await;
    browser.resume().await;
    browser.reaches("deleted").await;
    eventually("it is deleted", async || (found(&gateway, "apples").await == 0).then_some(())).await;
    eventually("nothing is owed", async || gateway.open_turns().is_empty().then_some(())).await;
    browser.resume().await;
    browser.reaches("two").await;
    eventually("all is indexed", async || (found(&gateway, "about").await == 4).then_some(())).await;
    gateway.kill();
    browser.resume().await;
    browser.reaches("without the gateway").await;
    gateway.restart().await;
    browser.resume().await;
    browser.reaches("all deleted").await;
    eventually("all is deleted", async || (found(&gateway, "about").await == 0).then_some(())).await;
    browser.resume().await;

    browser.succeeds().await;
    let sessions = gateway.output_of(&["turns", "list", "--json"]);
    assert_eq!(sessions.matches("/session delete all").count(), 3, "each is deleted once: {sessions}");
    assert!(sessions.contains("A secret about apples"), "the operator has the turns: {sessions}");
}

/// Nothing is lost if both write, and what was deleted in one does not come back from the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn two_tabs_keep_one_list() {
    let (_agent, gateway) = echo("").await;

    Browser::start("tabs", &gateway.url()).succeeds().await;
}

/// A page in the back/forward cache holds no socket, and goes on when the person comes back.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_page_that_comes_back_goes_on() {
    let (_agent, gateway) = echo("").await;

    Browser::start("put-aside", &gateway.url()).succeeds().await;
}

/// D1, E6: a message that waits is sent in the conversation that it was written in, once.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_is_not_sent_stays_in_its_conversation() {
    let (agent, mut gateway) = echo("").await;
    let mut browser = Browser::start("unsent", &gateway.url());

    browser.reaches("answered").await;
    gateway.kill();
    browser.resume().await;
    browser.reaches("written").await;
    gateway.restart().await;
    browser.resume().await;
    browser.reaches("sent one").await;
    let said: Vec<_> = agent.calls().iter().map(last_text).collect();
    assert_eq!(said, ["The first", "The second"]);
    browser.resume().await;

    browser.succeeds().await;
    assert_eq!(turns(&gateway), 4);
}

/// B10, B13, G2: whose deferral it is, and how long it has been; the person sees one bubble per turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_deferral_becomes_the_answer_in_its_place() {
    let release = Gate::default();
    let agent = {
        let release = release.clone();
        ScriptedAgent::start(move |call, _| match &*last_text(call) {
            "When does the shop open?" => {
                Script::defers(Some("I will tell you when it does."), Duration::from_hours(1))
            }
            _ => Script::replies("There are 42 pages.").waiting(&release),
        })
        .await
    };
    let gateway = chat(&agent, "[guard]\nsoft_deadline = \"1s\"\n").await;
    let mut browser = Browser::start("deferral", &gateway.url());

    browser.reaches("deferred").await;
    release.release_one();
    browser.resume().await;

    browser.succeeds().await;
    assert_eq!(agent.calls().len(), 2);
}

/// D1, E6: missed answers are shown once; messages written meanwhile are sent once.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_page_outlives_a_killed_gateway_and_a_lost_network() {
    let (never, release) = (Gate::default(), Gate::default());
    let agent = {
        let release = release.clone();
        ScriptedAgent::start(move |call, number| {
            let answer = format!("answer to: {}", last_text(call));
            match number {
                0 => Script::replies("the first run").waiting(&never),
                3 => Script::replies(&answer).waiting(&release),
                _ => Script::replies(&answer),
            }
        })
        .await
    };
    let mut gateway = chat(&agent, "").await;
    let mut browser = Browser::start("reconnect", &gateway.url());

    browser.reaches("owed").await;
    eventually("the agent runs", async || (agent.calls().len() == 1).then_some(())).await;
    gateway.kill();
    browser.resume().await;
    browser.reaches("offline").await;
    gateway.restart().await;
    browser.resume().await;
    browser.reaches("owed again").await;
    eventually("the agent runs", async || (agent.calls().len() == 4).then_some(())).await;
    browser.resume().await;
    browser.reaches("without a network").await;
    release.release_one();
    eventually("nothing is owed", async || gateway.open_turns().is_empty().then_some(())).await;
    browser.resume().await;

    browser.succeeds().await;
    let said: Vec<_> = agent.calls().iter().map(last_text).collect();
    assert_eq!(said, ["Are you there?", "Are you there?", "And now?", "Take your time."]);
    assert_eq!(turns(&gateway), 3);
}

/// The page opens while the gateway is away, with what was not sent, and keeps nothing that was said. What is shared with it stands in
/// the input.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_page_is_an_app() {
    let agent = ScriptedAgent::replying("A secret.").await;
    let mut gateway = chat(&agent, "").await;
    let mut browser = Browser::start("app", &gateway.url());

    browser.reaches("installed").await;
    gateway.kill();
    browser.resume().await;
    browser.reaches("without a gateway").await;
    gateway.restart().await;
    browser.resume().await;

    browser.succeeds().await;
}

/// E6: the page gets no acknowledgement, so it sends the message again.
#[rstest]
#[case::lost_before_the_commit("received:1")]
#[case::lost_after_the_commit("accepted:1")]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_is_said_around_a_crash_is_said_once(#[case] point: &str) {
    let agent = ScriptedAgent::replying("Once.").await;
    let mut gateway = Gateway::builder().config(&agent.section()).prepare();

    gateway.spawn_crashing_at(point);
    gateway.until_ready().await;
    let mut browser = Browser::start("lost-acceptance", &gateway.url());
    browser.reaches("crashed").await;
    gateway.until_crashed().await;
    gateway.restart().await;
    browser.resume().await;

    browser.succeeds().await;
    assert_eq!((turns(&gateway), agent.calls().len()), (1, 1));
}

/// A message over the limit keeps its id, and is taken in when it is sent again.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_message_over_the_limit_can_be_sent_again() {
    let agent = ScriptedAgent::start(|call, _| Script::replies(&format!("answer to: {}", last_text(call)))).await;
    let limits = "[limits]\nturns_per_minute = 1\n";
    let gateway = Gateway::builder().own_calendar().config(&agent.section()).config(limits).start().await;
    let mut browser = Browser::start("limits", &gateway.url());

    browser.reaches("limited").await;
    gateway.set_calendar_offset(61);
    browser.resume().await;

    browser.succeeds().await;
    assert_eq!(turns(&gateway), 2);
}

/// The ids of later turns sort before those of earlier ones.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_page_shows_turns_in_the_order_in_which_they_were_accepted() {
    let agent = ScriptedAgent::start(|call, _| Script::replies(&format!("answer to: {}", last_text(call)))).await;
    let mut gateway = Gateway::builder().own_calendar().config(&agent.section()).start().await;
    let mut browser = Browser::start("order", &gateway.url());

    browser.reaches("before").await;
    gateway.kill();
    gateway.set_calendar_offset(-3600);
    gateway.restart().await;
    browser.resume().await;

    browser.succeeds().await;
}

/// A1, B14: silence becomes a question.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_empty_answer_becomes_a_question_with_buttons() {
    let agent = ScriptedAgent::start(|call, _| {
        Script::replies(if call.said() == "Tell me more" { "There is more to tell." } else { "" })
    })
    .await;
    let gateway = chat(&agent, "").await;

    Browser::start("choices", &gateway.url()).succeeds().await;

    assert_eq!(turns(&gateway), 2);
}

/// B14: a run asks twice with the same choices, and each question is picked from.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_run_asks_the_person_and_goes_on() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/acp/asks.mjs");
    let section = format!("[agents.main]\nkind = \"acp\"\ncommand = [\"node\", \"{script}\"]\n");
    let gateway = Gateway::builder().config(&section).start().await;

    Browser::start("asked", &gateway.url()).succeeds().await;
}

/// B11: live while it works, and after a reload; nothing of it is in the answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_an_agent_does_and_thinks_is_folded_above_its_answer() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/acp/works.mjs");
    let folder = tempfile::tempdir().expect("a folder");
    let gate = folder.path().join("gate");
    let command = format!("command = [\"node\", \"{script}\", \"{}\"]", gate.display());
    let section = format!("[agents.main]\nkind = \"acp\"\nshow_activity = true\n{command}\n");
    let gateway = Gateway::builder().config(&section).start().await;
    let mut browser = Browser::start("works", &gateway.url());

    browser.reaches("works").await;
    std::fs::write(&gate, "").expect("a file");
    browser.resume().await;

    browser.succeeds().await;
}

/// The gateway's commands and the operator's, with keys, a mouse and a finger.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn commands_are_picked_from_a_menu() {
    let agent = ScriptedAgent::replying("I was not meant.").await;
    let weather =
        "[commands.weather]\ndescription = \"The weather of today\"\nwords = \"In {text}? Look out of the window.\"\n";
    let gateway = chat(&agent, weather).await;

    Browser::start("menu", &gateway.url()).succeeds().await;

    assert!(agent.calls().is_empty());
}

/// The page in German, Spanish and English; the agent fails once, and its question is sent again later.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_page_speaks_the_language_of_the_browser() {
    let agent = ScriptedAgent::start(|call, number| match &*last_text(call) {
        "What is the status?" if number == 0 => Script::refuses(404),
        "What is the status?" => Script::replies("All is well."),
        _ => Script::replies("Hello, Ada."),
    })
    .await;
    let gateway = chat(&agent, "").await;

    Browser::start("languages", &gateway.url()).succeeds().await;
}

/// A11: what the gateway says does not look like an answer, and the same words can be sent again, or a copy of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_failure_does_not_look_like_an_answer_and_can_be_tried_again() {
    let agent = ScriptedAgent::start(|call, number| match &*last_text(call) {
        "Hello." => Script::replies("Hello, Ada."),
        "What is the status?" if number == 1 => Script::refuses(404),
        "What is the status?" => Script::replies("All is well."),
        _ => Script::replies("It runs."),
    })
    .await;
    let gateway = chat(&agent, "").await;

    Browser::start("voices", &gateway.url()).succeeds().await;

    assert_eq!(turns(&gateway), 4);
    let last = agent.calls().pop().expect("a call").body.to_string();
    assert!(
        last.contains("Hello, Ada.") && !last.contains("All is well."),
        "the agent goes on from the last version: {last}"
    );
}

/// A server that hears the same in any recording; its section.
async fn transcriptions() -> String {
    let hears = async |recording: Bytes| {
        assert!(!recording.is_empty());
        Json(json!({ "text": "What is on today?" }))
    };
    let router = Router::new().route("/v1/audio/transcriptions", post(hears));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("[voice]\ntranscriptions = {{ base_url = \"http://{address}/v1\", model = \"whisper\" }}\n")
}

/// Half a second of silence, with 8,000 samples of 8 bits in a second, in Base64.
fn sound() -> String {
    let head = b"RIFF\xc4\x0f\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x40\x1f\0\0\x01\0\x08\0data\xa0\x0f\0\0";
    let url = data_url("audio/wav", &[&head[..], &[128; 4000]].concat());
    url.split_once(',').expect("a data URL").1.to_owned()
}

/// Files are attached in each way, seen and heard, and a voice note is recorded.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn files_and_voice_notes_are_sent_and_shown() {
    let outcome = json!({ "reply": "Here it is.", "files": [
        { "name": "dot.png", "type": "image/png", "data": DOT },
        { "name": "note.wav", "type": "audio/wav", "data": sound() },
    ] });
    let command = json!(["sh", "-c", format!("cat > /dev/null; echo '{outcome}'")]);
    let agent = format!("[agents.main]\nkind = \"command\"\ncommand = {command}\n");
    let limits = "[files]\nmax = \"100 KiB\"\n";
    let gateway = Gateway::builder().config(&agent).config(&transcriptions().await).config(limits).start().await;

    Browser::start("files", &gateway.url()).succeeds().await;

    assert_eq!(turns(&gateway), 4);
}

/// A7: no bubble is empty, and no visible text is dropped.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn emptiness_is_judged_on_what_is_shown() {
    let agent = ScriptedAgent::start(|call, _| Script::replies(&last_text(call))).await;
    let gateway = chat(&agent, "").await;

    Browser::start("unseen", &gateway.url()).succeeds().await;
}

/// D18.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_stop_button_calls_off_what_runs() {
    let never = Gate::default();
    let agent = ScriptedAgent::start(move |_, number| match number {
        0 => Script::replies("too late").waiting(&never),
        _ => Script::replies("The end."),
    })
    .await;
    let gateway = chat(&agent, "").await;
    let mut browser = Browser::start("stop", &gateway.url());

    browser.reaches("running").await;
    eventually("the agent runs", async || (agent.calls().len() == 1).then_some(())).await;
    browser.resume().await;

    browser.succeeds().await;
}

/// N1.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_chat_with_a_token_opens_to_who_has_it() {
    let agent = ScriptedAgent::replying("Welcome home.").await;
    let token = "[channels.webchat.main]\naccess = \"token\"\ntoken = \"the-token-of-the-family\"\n";
    let gateway = chat(&agent, token).await;

    Browser::start("token", &gateway.url()).succeeds().await;

    assert!(!gateway.log().contains("the-token-of-the-family"), "{}", gateway.log());
}

/// The person before leaves neither conversation, token nor words on a device that others use.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_device_can_be_forgotten() {
    let agent = ScriptedAgent::replying("In the drawer.").await;
    let token = "[channels.webchat.main]\naccess = \"token\"\ntoken = \"the-token-of-the-family\"\n";
    let mut gateway = chat(&agent, token).await;
    let mut browser = Browser::start("forget", &gateway.url());

    browser.reaches("answered").await;
    gateway.kill();
    browser.resume().await;
    browser.reaches("to be forgotten").await;
    gateway.restart().await;
    browser.resume().await;

    browser.succeeds().await;
}

#[rstest]
#[case::the_page_under_another_name("/chat", &[("host", "evil.example")], StatusCode::FORBIDDEN)]
#[case::the_socket_under_another_name("/chat/ws", &[("host", "evil.example")], StatusCode::FORBIDDEN)]
#[case::the_page_through_a_proxy("/chat", &[("x-forwarded-for", "203.0.113.9")], StatusCode::FORBIDDEN)]
#[case::the_socket_from_a_page_elsewhere("/chat/ws", &[("origin", "http://evil.example")], StatusCode::FORBIDDEN)]
#[case::the_socket_from_a_page_without_an_origin("/chat/ws", &[("origin", "null")], StatusCode::FORBIDDEN)]
#[case::the_page("/chat", &[], StatusCode::OK)]
#[case::the_socket("/chat/ws", &[], StatusCode::SWITCHING_PROTOCOLS)]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_chat_on_loopback_opens_to_this_machine_only(
    #[case] path: &str,
    #[case] headers: &[(&str, &str)],
    #[case] status: StatusCode,
) {
    let gateway = Gateway::builder().start().await;
    let mut request = gateway.http().get(format!("{}{path}", gateway.url()));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    if path.ends_with("/ws") {
        request = request
            .header(header::CONNECTION, "upgrade")
            .header(header::UPGRADE, "websocket")
            .header(header::SEC_WEBSOCKET_VERSION, "13")
            .header(header::SEC_WEBSOCKET_KEY, "dGhlIHNhbXBsZSBub25jZQ==");
    }

    let response = request.send().await.unwrap();

    assert_eq!(response.status(), status);
}

const RISOTTO: &str = "How about a **mushroom risotto**? One pot, and nobody gets a different plate. For four:

- 320 g risotto rice
- 500 g mixed mushrooms
- 1 l vegetable stock
- a glass of dry white wine

Leave the parmesan on the side, and serve a green salad with it.";

const WHEN: &str = "Begin at **18:45**, and take your time:

| When | What |
| --- | --- |
| 18:45 | chop, and warm the stock |
| 19:00 | fry the mushrooms, toast the rice |
| 19:05 | add stock, a ladle at a time |
| 19:25 | butter, lid on, call everyone |";

const SET_UP: &str = "## Set it up

Each step is *one* command. Nothing leaves this machine; see <https://example.org/a-page-with-a-rather-long-address/that-does-not-want-to-be-broken>.

1. Build it, and start it.
2. Open the page:

```sh
cargo run --release -- --config /home/ada/kitchen/rejoinder.toml --data /home/ada/kitchen/data run --log-format json
# then
xdg-open http://127.0.0.1:7420/chat
```

> Whoever has the link can read along.

| What | Where it is kept | For how long | Who sees it | And after that |
| --- | --- | ---: | --- | --- |
| Conversations | `data/rejoinder.db` | for ever | you | still there |
| Tokens | `data/hook-default-token` | for ever | you | still there |

- [x] stored
- [ ] sent

Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaftsvorsitzender is one word.";

const IN_HEBREW: &str = "## הכנה

ככה, עם `rice 320 g`:

- אורז
- mushrooms

> בתיאבון

| מתי | מה |
| --- | --- |
| 18:45 | לקצוץ |

```sh
echo done
```";

const EXPLAINED: &str = "Energy is $E = mc^2$, and \\(x_1\\) costs $5, or $6 with tea.[^1]

$$a_1 + a_2 + a_3 + a_4 + a_5 + a_6 + a_7 + a_8 + a_9 + a_{10} + a_{11} + a_{12} + \\frac{1}{2}$$

\\[
\\begin{pmatrix} a & b \\\\
c & d \\end{pmatrix}
\\]

This stays: $\\nosuch{x}$.

```python
def area(r):
    return 3.14159 * r ** 2  # of a circle, and of nothing else in this world
```

```
+--------+      +---------+      +-----------+      +--------+
| person | ---> | gateway | ---> | the agent | ---> | answer |
+--------+      +---------+      +-----------+      +--------+
```

| What | Where it is kept | For how long | Who sees it | And after that |
| --- | --- | ---: | --- | --- |
| Conversations | `data/rejoinder.db` | for ever | you | still there |

[^1]: See *Einstein*, 1905.
";

/// B11: formulas, footnotes, code, tables and diagrams. Their scripts and styles are loaded once an answer has them.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn formulas_footnotes_and_code_are_shown_as_they_are_meant() {
    let agent = ScriptedAgent::start(|call, _| {
        Script::replies(if last_text(call) == "Explain it." { EXPLAINED } else { "Hello." })
    })
    .await;
    let gateway = chat(&agent, "").await;

    Browser::start("rich", &gateway.url()).succeeds().await;
}

/// All widths, twice the size, and both themes; the screenshots of the documentation are taken here.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_page_fits_and_can_be_read_on_every_device() {
    let release = Gate::default();
    let agent = {
        let release = release.clone();
        ScriptedAgent::start(move |call, _| match &*last_text(call) {
            said if said.starts_with("Four of us") => Script::replies(RISOTTO),
            said if said.contains("half past seven") => Script::replies(WHEN),
            said if said.starts_with("Perfect") => Script::reacts("❤️"),
            said if said.contains("set it up") => Script::replies(SET_UP),
            said if said.contains("Hebrew") => Script::replies(IN_HEBREW),
            said if said.contains("Sunday") => Script::replies("Sunday at one, by the window.").waiting(&release),
            _ => Script::replies(""),
        })
        .await
    };
    let kitchen = "[channels.webchat.main]\ntitle = \"Kitchen helper\"\n[guard]\nsoft_deadline = \"1s\"\n";
    let gateway = chat(&agent, kitchen).await;
    let mut browser = Browser::start("looks", &gateway.url());

    for width in [1280, 390, 320] {
        browser.reaches(&format!("looked at {width}")).await;
        browser.resume().await;
    }
    browser.reaches("looked at 640").await;
    release.release_one();
    browser.resume().await;

    browser.succeeds().await;
}

/// With passkeys. Conversations are those of the person, on each device.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_person_signs_in_on_two_devices() {
    let people = "[channels.webchat.main]\naccess = \"people\"\n[people.Ada]\nidentities = [\"webchat.main/ada\"]\n";
    let (_agent, gateway) = echo(people).await;
    let invited = gateway.output_of(&["people", "invite", "Ada", "--json"]);
    let invited: serde_json::Value = serde_json::from_str(&invited).expect("JSON");
    let code = invited["path"].as_str().and_then(|path| path.strip_prefix("/chat#invitation=")).expect("a link");
    // Passkeys belong to a name.
    let url = gateway.url().replace("127.0.0.1", "localhost");

    Browser::start_with("people", &url, &[("REJOINDER_INVITATION", code)]).succeeds().await;

    assert_eq!(invited["identity"], "webchat.main/ada");
    assert!(!gateway.log().contains(code), "{}", gateway.log());
    let _ = gateway.output_of(&["people", "sign-out", "Ada", "--passkeys"]);
    let again = gateway.run(&["people", "invite", "Bob"]);
    assert!(!again.status.success(), "nobody is Bob");
}

/// A proxy says who is signed in there. Nobody else does, and who is not known stays outside.
#[rstest]
#[case("127.0.0.1", "ada", StatusCode::OK)]
#[case("127.0.0.1", "eve", StatusCode::UNAUTHORIZED)]
#[case("192.0.2.7", "ada", StatusCode::UNAUTHORIZED)]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_proxy_says_who_is_signed_in(#[case] proxy: &str, #[case] who: &str, #[case] status: StatusCode) {
    let people = format!(
        "[channels.webchat.main]\naccess = \"people\"\nheader = {{ name = \"X-Remote-User\", from = [\"{proxy}\"] }}\n\
         [people.Ada]\nidentities = [\"webchat.main/ada\"]\n"
    );
    let (_agent, gateway) = echo(&people).await;
    let field = |(name, value): (&str, &str)| {
        format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    let fields = [("conversation", "a-conversation-of-tests"), ("id", "message-1"), ("text", "hello")];
    let form = format!("{}--b--\r\n", fields.map(field).concat());

    let request = gateway.http().post(format!("{}/chat/messages", gateway.url()));
    let request = request.header("x-remote-user", who).header("content-type", "multipart/form-data; boundary=b");
    let sent = request.body(form).send().await.expect("an answer");

    assert_eq!(sent.status(), status);
}

/// The pages that the operator names read the answer; others are refused.
#[rstest]
#[case("https://home.example.org", StatusCode::NO_CONTENT, true)]
#[case("https://evil.example.org", StatusCode::FORBIDDEN, false)]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_named_page_of_another_origin_may_send_messages(
    #[case] origin: &str,
    #[case] status: StatusCode,
    #[case] is_allowed: bool,
) {
    let named = "[channels.webchat.main]\norigins = [\"https://home.example.org\"]\n";
    let (_agent, gateway) = echo(named).await;
    let url = format!("{}/chat/messages", gateway.url());

    let asked = gateway.http().request(reqwest::Method::OPTIONS, &url).header(header::ORIGIN, origin);
    let asked = asked.header("access-control-request-method", "POST").send().await.expect("an answer");
    let sent = gateway.http().post(&url).header(header::ORIGIN, origin).body("no form").send().await;
    let sent = sent.expect("an answer");

    let allowed = |answer: &reqwest::Response| {
        answer.headers().get(header::ACCESS_CONTROL_ALLOW_ORIGIN).map(|allowed| allowed.as_bytes().to_vec())
    };
    let expected = is_allowed.then(|| origin.as_bytes().to_vec());
    assert_eq!((asked.status(), allowed(&asked)), (status, expected.clone()));
    assert_eq!(allowed(&sent), expected);
    assert!(asked.headers().get(header::ACCESS_CONTROL_ALLOW_CREDENTIALS).is_none());
}
