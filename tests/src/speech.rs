//! A server that speaks, with OpenAI's API for audio.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::{
    Json, Router,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::post,
};
use serde_json::Value;
use tokio::{net::TcpListener, task::JoinHandle};

/// A server with `POST /v1/audio/speech`. The sound of a text has the text in it, and how many were spoken until then. It begins as MP3
/// if that is asked for, else as Ogg.
#[derive(Debug)]
pub struct SpeechServer {
    port: u16,
    script: Script,
    serving: JoinHandle<()>,
}

type Script = Arc<Mutex<Spoken>>;

#[derive(Debug, Default)]
struct Spoken {
    texts: Vec<String>,
    is_down: bool,
}

impl SpeechServer {
    /// Starts it.
    ///
    /// # Panics
    /// If there is no free port.
    pub async fn start() -> Self {
        let script = Script::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let router = Router::new().route("/v1/audio/speech", post(speak)).with_state(Arc::clone(&script));
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.expect("it serves") });
        Self { port, script, serving }
    }

    /// From now on it answers 503, or speaks again.
    pub fn set_down(&self, is_down: bool) {
        spoken(&self.script).is_down = is_down;
    }

    /// The sections of a configuration that use it.
    #[must_use]
    pub fn section(&self) -> String {
        let base_url = format!("http://127.0.0.1:{}/v1", self.port);
        format!("[voice.speech]\nbase_url = \"{base_url}\"\nmodel = \"test-voice\"\nvoice = \"heart\"\n")
    }

    /// The texts that it was given, in order.
    #[must_use]
    pub fn texts(&self) -> Vec<String> {
        spoken(&self.script).texts.clone()
    }
}

impl Drop for SpeechServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn spoken(script: &Script) -> MutexGuard<'_, Spoken> {
    script.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn speak(State(script): State<Script>, Json(asked): Json<Value>) -> Response {
    let mut spoken = spoken(&script);
    let text = asked["input"].as_str().unwrap_or_default().to_owned();
    spoken.texts.push(text.clone());
    if spoken.is_down {
        return (StatusCode::SERVICE_UNAVAILABLE, "no voice is loaded").into_response();
    }
    let begin = if asked["response_format"] == "mp3" { "ID3" } else { "OggS" };
    format!("{begin} {} {text}", spoken.texts.len()).into_bytes().into_response()
}
