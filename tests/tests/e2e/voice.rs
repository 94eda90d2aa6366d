//! Hooks that hear and speak, with a server that has OpenAI's API for audio.

use std::time::Duration;

use axum::{Json, Router, body::Bytes, routing::post};
use rejoinder_tests::{Gateway, Reply, ScriptedAgent, SpeechEngines};
use reqwest::{RequestBuilder, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::{TOKEN, hook};

const RECORDING: &[u8] = b"OggS\0\x02";
const SOUND: &[u8] = b"ID3\x04\0";

/// The section for a server that hears the same in any recording, and makes the same sound of any text; or is broken.
async fn speech_server(is_up: bool) -> String {
    let checked = move || if is_up { Ok(()) } else { Err(StatusCode::INTERNAL_SERVER_ERROR) };
    let hears = move |body: Bytes| async move {
        assert!(body.windows(RECORDING.len()).any(|part| part == RECORDING), "the recording is not there");
        checked().map(|()| Json(json!({ "text": "What is on today?" })))
    };
    let speaks = move |Json(_): Json<Value>| async move { checked().map(|()| SOUND) };
    let router = Router::new().route("/v1/audio/transcriptions", post(hears)).route("/v1/audio/speech", post(speaks));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}/v1", listener.local_addr().expect("bound"));
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!(
        "[voice]\ntranscriptions = {{ base_url = \"{url}\", model = \"whisper\" }}\n\
         speech = {{ base_url = \"{url}\", model = \"kokoro\", voice = \"heart\" }}\n"
    )
}

async fn gateway(agent: &ScriptedAgent, is_up: bool) -> Gateway {
    let server = speech_server(is_up).await;
    Gateway::builder().config(&hook("")).config(&agent.section()).config(&server).start().await
}

/// Speaks to the hook.
fn speaks(gateway: &Gateway) -> RequestBuilder {
    gateway.hook("test", TOKEN).call().header("Content-Type", "audio/ogg").body(RECORDING)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_is_spoken_to_a_hook_is_heard_and_its_answer_is_spoken() {
    let agent = ScriptedAgent::echoing().await;
    let gateway = gateway(&agent, true).await;

    let told = Reply::of(speaks(&gateway)).await;
    let spoken = speaks(&gateway).header("Accept", "audio/mpeg").send().await.expect("an answer");

    assert_eq!((told.status, told.text()), (StatusCode::OK, "echo What is on today?"));
    assert_eq!(agent.calls()[0].last_message(), "What is on today?");
    assert_eq!(spoken.status(), StatusCode::OK);
    assert_eq!(spoken.headers()["content-type"], "audio/mpeg");
    assert_eq!(spoken.bytes().await.expect("a sound"), SOUND);
}

/// Words, and one sentence.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn nobody_hears_silence_while_the_server_is_down() {
    let agent = ScriptedAgent::echoing().await;
    let gateway = gateway(&agent, false).await;

    let unheard = Reply::of(speaks(&gateway)).await;
    let unspoken = gateway.hook("test", TOKEN).message("hello").header("Accept", "audio/mpeg").send().await;

    assert_eq!(unheard.text(), "Sorry, I could not hear what you said. Please try again, or write to me.");
    assert_eq!((unheard.status, unheard.body["fallback"]["cause"].as_str()), (StatusCode::OK, Some("unheard")));
    let unspoken = unspoken.expect("an answer");
    assert_eq!(unspoken.headers()["content-type"], "text/plain; charset=utf-8");
    assert_eq!(unspoken.text().await.expect("a text"), "echo hello\n\n(I could not say this aloud.)");
}

/// A recording that says that it lasts so long.
fn lasting(seconds: u64) -> Vec<u8> {
    let head = b"\x01\x13OpusHead\x01\x01\0\0\x80\xbb\0\0\0\0\0";
    let position = (seconds * 48_000).to_le_bytes();
    [RECORDING, &[0; 20], &head[..], b"OggS\0\x04", &position[..], &[0; 13]].concat()
}

/// What it costs is bounded, and shown.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_is_heard_and_spoken_on_a_day_is_bounded_and_shown() {
    let agent = ScriptedAgent::echoing().await;
    let bounds = "[voice]\nper_day = \"1m\"\nspoken_per_day = \"2m\"\n";
    let server = speech_server(true).await.replace("[voice]\n", bounds);
    let gateway = Gateway::builder().config(&hook("")).config(&agent.section()).config(&server).start().await;
    let says = async |seconds| {
        let call = gateway.hook("test", TOKEN).call().header("Content-Type", "audio/ogg").body(lasting(seconds));
        Reply::of(call).await.text().to_owned()
    };

    assert_eq!(says(50).await, "echo What is on today?");
    assert_eq!(says(11).await, "Sorry, I could not hear what you said. Please try again, or write to me.");
    let spoken = gateway.hook("test", TOKEN).message("hello").header("Accept", "audio/mpeg").send().await;
    assert_eq!(spoken.expect("an answer").headers()["content-type"], "audio/mpeg");

    let overview = gateway.admin("overview").await;
    assert_eq!(overview["heard"], json!({ "seconds": 50, "seconds_per_day": 60 }));
    assert_eq!(overview["spoken"], json!({ "seconds": 1, "seconds_per_day": 120 }));
    let status = String::from_utf8_lossy(&gateway.run(&["status"]).stdout).into_owned();
    assert!(status.contains("Today     heard 1 of 1 min, spoken 1 of 2 min"), "{status}");
}

/// With engines that really speak and hear. They know WAV alone: what comes is converted, and so is what goes.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn who_really_speaks_to_a_hook_hears_the_answer() {
    let text = "Many people live in London.";
    let (agent, engines) = (ScriptedAgent::replying(text).await, SpeechEngines::start().await);
    let sections = [hook(""), agent.section(), engines.section()].join("\n");
    let gateway = Gateway::builder().config(&sections).start().await;
    let recording = engines.voice_note("How many people live in London?").await;

    let call = gateway.hook("test", TOKEN).call().header("Content-Type", "audio/ogg").header("Accept", "audio/ogg");
    let answer = call.body(recording).send().await.expect("an answer");

    let told = agent.calls()[0].last_message();
    assert!(told.contains("how many people") && told.contains("london"), "{told}");
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.headers()["content-type"], "audio/ogg");
    let played = engines.play(&answer.bytes().await.expect("a sound")).await;
    let expected = engines.length(text).await;
    assert!(played.length.abs_diff(expected) < Duration::from_millis(20), "{expected:?}, {played:?}");
    assert!(played.words.contains("many people"), "{played:?}");
}
