//! The shortcut of `docs/siri.md`, step by step. The app Shortcuts gives a shortcut the body of a response, and neither its status nor its
//! headers.

use std::time::Duration;

use rejoinder_tests::{Gate, Gateway, Reply, Script, ScriptedAgent, SpeechServer, TranscriptionServer};
use reqwest::RequestBuilder;
use rstest::rstest;
use serde_json::{Value, json};

use crate::{TOKEN, hook};

const MANUAL: &str = include_str!("../../../docs/siri.md");

/// How often the shortcut asks for the answer.
const TIMES: usize = 6;

/// What a phone records (M4A).
const RECORDING: &[u8] = b"\0\0\0\x20ftypM4A what somebody says";

const DEFERRAL: &str = "I am still working on it. The answer will follow.";

/// What is done here is what the manual says.
#[test]
fn the_manual_describes_these_steps() {
    let manual = MANUAL.split_whitespace().collect::<Vec<_>>().join(" ");
    let steps = [
        "1. **Dictate Text**.",
        "method *POST*; headers `Authorization` = `Bearer …` and `Prefer` = `wait=0`; request body *JSON* with one text field `message`",
        "The response is a dictionary with a `result_url`.",
        &format!("3. **Repeat** {TIMES} times, and inside it **Get Contents of URL**: the `result_url`"),
        "method *GET*; headers `Authorization` as above, `Accept` = `text/plain` and `Prefer` = `wait=25`.",
        "4. **Get Item from List**: *Last Item* of *Repeat Results*. 5. **Speak Text**: *Item from List*.",
        "with the request body *File*: *Recorded Audio*.",
        "4. **Get Contents of URL**: the `result_url` as in step 3, with the header `Accept` = `audio/mpeg`. 5. **Play Sound**",
        "it posts with the `Accept` that it wants, and while the status is 202, it gets `Location` with `Prefer: wait=25`.",
    ];
    for step in steps {
        assert!(manual.contains(step), "the manual does not say `{step}`");
    }
}

/// A hook that holds calls for a second, so that an answer after two is slow.
async fn gateway(agent: &ScriptedAgent, sections: &str) -> Gateway {
    let guard = "[guard]\nsoft_deadline = \"500ms\"\n";
    let hook = hook("wait = \"1s\"\nconversation = \"siri\"");
    Gateway::builder().config(&hook).config(&agent.section()).config(guard).config(sections).start().await
}

/// **Get Contents of URL**.
async fn contents(request: RequestBuilder) -> Vec<u8> {
    let response = request.send().await.expect("a response");
    response.bytes().await.expect("the response is read").to_vec()
}

/// The second step. Returns the item `result_url` of its result.
async fn posts(gateway: &Gateway, body: impl FnOnce(RequestBuilder) -> RequestBuilder) -> String {
    let call = gateway.hook("test", TOKEN).call().header("Prefer", "wait=0");
    let dictionary: Value = serde_json::from_slice(&contents(body(call)).await).expect("a dictionary");
    dictionary["result_url"].as_str().unwrap_or_else(|| panic!("no result_url in {dictionary}")).to_owned()
}

/// What is at the result's URL.
async fn result(gateway: &Gateway, url: &str, accept: &str) -> Vec<u8> {
    let request = gateway.http().get(url).bearer_auth(TOKEN).header("Accept", accept);
    contents(request.header("Prefer", "wait=25")).await
}

/// The third step.
async fn repeats(gateway: &Gateway, url: &str) -> Vec<String> {
    let mut results = Vec::new();
    for _ in 0..TIMES {
        let text = result(gateway, url, "text/plain").await;
        results.push(String::from_utf8(text).expect("a text"));
    }
    results
}

/// A text to be spoken by Siri.
fn dictated(call: RequestBuilder) -> RequestBuilder {
    call.json(&json!({ "message": "What is for dinner?" }))
}

/// A file as the body: the app names its type.
fn recorded(call: RequestBuilder) -> RequestBuilder {
    call.header("Content-Type", "audio/x-m4a").body(RECORDING)
}

#[rstest]
#[case::at_once(Duration::ZERO)]
#[case::after_more_than_a_wait(Duration::from_millis(2500))]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn siri_speaks_the_answer(#[case] takes: Duration) {
    let agent = ScriptedAgent::start(move |_, _| Script::replies("**Soup**, at 7.").taking(takes)).await;
    let gateway = gateway(&agent, "").await;

    let url = posts(&gateway, dictated).await;
    let results = repeats(&gateway, &url).await;

    assert_eq!(results.last().map(String::as_str), Some("Soup, at 7."), "{results:?}");
    assert_eq!(results[0] == "Soup, at 7.", takes.is_zero(), "{results:?}");
    assert_eq!(agent.calls().len(), 1);
}

/// The answer is still owed, and comes to the same URL.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn siri_says_that_it_takes_longer() {
    let release = Gate::default();
    let held = release.clone();
    let agent = ScriptedAgent::start(move |_, _| Script::replies("Soup.").waiting(&held)).await;
    let gateway = gateway(&agent, "").await;

    let url = posts(&gateway, dictated).await;
    let results = repeats(&gateway, &url).await;
    release.open();
    gateway.until_settled().await;

    assert_eq!(results.last().map(String::as_str), Some(DEFERRAL), "{results:?}");
    assert_eq!(result(&gateway, &url, "text/plain").await, b"Soup.");
}

/// The recording is written down, and what answers it is spoken once, although it is asked for more often.
#[rstest]
#[case::with_its_server(false, "ID3 1 Soup, at seven.")]
#[case::without_its_server(true, "Soup, at 7.\n\n(I could not say this aloud.)")]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_recording_is_answered_in_the_gateways_voice(#[case] is_down: bool, #[case] heard: &str) {
    let agent =
        ScriptedAgent::start(|_, _| Script::replies("**Soup**, at 7.").taking(Duration::from_millis(1500))).await;
    let (hears, speaks) = (TranscriptionServer::hearing(&["What is for dinner?"]).await, SpeechServer::start().await);
    let gateway = gateway(&agent, &format!("{}\n{}", hears.section(), speaks.section())).await;
    speaks.set_down(is_down);

    let url = posts(&gateway, recorded).await;
    let results = repeats(&gateway, &url).await;
    let played = result(&gateway, &url, "audio/mpeg").await;

    assert_eq!(results.last().map(String::as_str), Some("Soup, at 7."), "{results:?}");
    assert_eq!(String::from_utf8(played).expect("the sounds of these tests are texts"), heard);
    assert_eq!(agent.calls()[0].last_message(), "What is for dinner?");
    assert_eq!((hears.recordings(), speaks.texts().len()), (1, 1));
}

/// A program sees the status and `Location`.
#[rstest]
#[case::in_words(dictated, "text/plain", "", "Soup, at 7.")]
#[case::in_a_voice(recorded, "audio/mpeg", "ID3 ", " Soup, at seven.")]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_program_asks_as_often_as_it_must(
    #[case] body: fn(RequestBuilder) -> RequestBuilder,
    #[case] accept: &str,
    #[case] begin: &str,
    #[case] end: &str,
) {
    let release = Gate::default();
    let held = release.clone();
    let agent = ScriptedAgent::start(move |_, _| Script::replies("**Soup**, at 7.").waiting(&held)).await;
    let (hears, speaks) = (TranscriptionServer::hearing(&["What is for dinner?"]).await, SpeechServer::start().await);
    let gateway = gateway(&agent, &format!("{}\n{}", hears.section(), speaks.section())).await;

    let mut reply = Reply::of(body(gateway.hook("test", TOKEN).call()).header("Accept", accept)).await;
    assert_eq!(reply.status, 202);
    let first = reply.body.as_str().unwrap_or_default();
    assert!(first.starts_with(begin) && first.ends_with(DEFERRAL), "{first}");
    release.open();
    while reply.status == 202 {
        let location = reply.headers["location"].to_str().expect("a URL");
        let request = gateway.http().get(location).bearer_auth(TOKEN).header("Accept", accept);
        reply = Reply::of(request.header("Prefer", "wait=25")).await;
    }

    assert_eq!(reply.status, 200);
    let last = reply.body.as_str().unwrap_or_default();
    assert!(last.starts_with(begin) && last.ends_with(end), "{last}");
}
