//! A server that writes down recordings, as a test says.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::{
    Json, Router,
    body::Bytes,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::post,
};
use serde_json::json;
use tokio::{net::TcpListener, task::JoinHandle};

/// A server with `POST /v1/audio/transcriptions`.
#[derive(Debug)]
pub struct TranscriptionServer {
    port: u16,
    script: Script,
    serving: JoinHandle<()>,
}

type Script = Arc<Mutex<Said>>;

/// What people say.
#[derive(Debug, Default)]
struct Said {
    /// In the next recordings. The last words repeat; without any the server fails.
    words: VecDeque<String>,
    /// The forms that came, as they are.
    forms: Vec<Bytes>,
}

impl TranscriptionServer {
    /// Starts it: these words are said in the recordings, one after the other, and the last ones in all that follow. Without words it
    /// answers 503.
    ///
    /// # Panics
    /// If there is no free port.
    pub async fn hearing(words: &[&str]) -> Self {
        let words = words.iter().map(|words| (*words).to_owned()).collect();
        let script = Arc::new(Mutex::new(Said { words, ..Said::default() }));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let router = Router::new().route("/v1/audio/transcriptions", post(write_down)).with_state(Arc::clone(&script));
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.expect("it serves") });
        Self { port, script, serving }
    }

    /// The sections of a configuration that use it.
    #[must_use]
    pub fn section(&self) -> String {
        let base_url = format!("http://127.0.0.1:{}/v1", self.port);
        format!("[voice.transcriptions]\nbase_url = \"{base_url}\"\nmodel = \"test-whisper\"\n")
    }

    /// How many recordings it was given.
    #[must_use]
    pub fn recordings(&self) -> usize {
        said(&self.script).forms.len()
    }

    /// Whether the latest form has these bytes.
    #[must_use]
    pub fn was_given(&self, bytes: &[u8]) -> bool {
        let said = said(&self.script);
        said.forms.last().is_some_and(|form| form.windows(bytes.len()).any(|window| window == bytes))
    }
}

impl Drop for TranscriptionServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn said(script: &Script) -> MutexGuard<'_, Said> {
    script.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn write_down(State(script): State<Script>, form: Bytes) -> Response {
    let mut said = said(&script);
    said.forms.push(form);
    let words = if said.words.len() > 1 { said.words.pop_front() } else { said.words.front().cloned() };
    match words {
        Some(text) => Json(json!({ "text": text })).into_response(),
        None => (StatusCode::SERVICE_UNAVAILABLE, "no model is loaded").into_response(),
    }
}
