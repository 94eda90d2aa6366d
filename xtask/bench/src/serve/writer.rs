//! An agent that writes its answers word by word, and tells when. It is compatible with OpenAI, and serves in the process that
//! measures, so that both have the same clock.

use std::{
    convert::Infallible,
    io, iter,
    net::Ipv4Addr,
    time::{Duration, Instant},
};

use anyhow::Result;
use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::header::CONTENT_TYPE,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use futures_util::stream;
use serde_json::json;
use tokio::{
    net::TcpListener,
    sync::mpsc::{self, UnboundedReceiver, UnboundedSender},
    task::JoinSet,
    time::sleep,
};

use super::{agent, tcp_nodelay};

/// The text of every answer: 31 words.
pub(crate) const ANSWER: &str = "The harbour was quiet that morning, and the boats that had come in overnight lay side by \
     side along the wall with their nets drying in the first light of day.";

/// The running agent; stopped on drop.
pub(crate) struct Writer {
    /// Its base URL.
    pub(crate) url: String,
    instants: UnboundedReceiver<Instant>,
    _server: JoinSet<io::Result<()>>,
}

impl Writer {
    /// Starts it on a free port. Between two words it makes this pause.
    ///
    /// # Errors
    ///
    /// When no port is free.
    pub(crate) async fn start(pause: Duration) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let url = format!("http://{}/v1", listener.local_addr()?);
        let (sender, instants) = mpsc::unbounded_channel();
        let router = Router::new()
            .route("/v1/chat/completions", post(async |State(answer): State<Answer>, _: Bytes| streamed(answer)))
            .route("/v1/models", get(async || agent::models()))
            .with_state(Answer { written: 0, pause, instants: sender });
        let mut server = JoinSet::new();
        server.spawn(async move { axum::serve(tcp_nodelay(listener), router).await });
        Ok(Self { url, instants, _server: server })
    }

    /// When it wrote the first and the last word of each answer since the last call.
    pub(crate) fn written(&mut self) -> Vec<Instant> {
        iter::from_fn(|| self.instants.try_recv().ok()).collect()
    }
}

/// An answer that is being written.
#[derive(Clone)]
struct Answer {
    /// How many bytes of [`ANSWER`] are written.
    written: usize,
    pause: Duration,
    /// Gets the time of the first and of the last word.
    instants: UnboundedSender<Instant>,
}

impl Answer {
    /// Writes the next word; the end of the answer comes with the last one.
    async fn next(mut self) -> Option<(Result<String, Infallible>, Self)> {
        let rest = &ANSWER[self.written..];
        let word = rest.split_inclusive(' ').next()?;
        let (is_first, is_last) = (self.written == 0, word.len() == rest.len());
        if !is_first {
            sleep(self.pause).await;
        }
        let mut events = agent::piece(&json!({ "content": word }));
        if is_last {
            events.push_str(&agent::end());
        }
        if is_first || is_last {
            // Fails only if the measurement has ended.
            let _ = self.instants.send(Instant::now());
        }
        self.written += word.len();
        Some((Ok(events), self))
    }
}

fn streamed(answer: Answer) -> Response {
    ([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(stream::unfold(answer, Answer::next))).into_response()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[tokio::test]
    async fn an_answer_is_written_word_by_word() {
        let pause = Duration::from_millis(2);
        let mut writer = Writer::start(pause).await.expect("a free port");
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");

        let answer = client.post(format!("{}/chat/completions", writer.url)).send().await.expect("an answer");
        let body = answer.text().await.expect("the whole answer");

        let events = body.lines().filter_map(|line| line.strip_prefix("data: "));
        let chunks = events.filter_map(|event| serde_json::from_str::<Value>(event).ok());
        let words = chunks.filter_map(|chunk| Some(chunk["choices"][0]["delta"]["content"].as_str()?.to_owned()));
        let words: Vec<_> = words.collect();
        assert_eq!((words.len(), words.concat().as_str()), (31, ANSWER));
        assert!(body.ends_with("data: [DONE]\n\n"), "{body}");
        let written = writer.written();
        assert!(matches!(written[..], [first, last] if last - first >= pause * 30), "{written:?}");
        assert!(writer.written().is_empty(), "each time is returned once");
    }
}
