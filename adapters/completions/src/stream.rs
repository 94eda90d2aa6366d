//! An answer as server-sent events, while it grows.

use std::{collections::VecDeque, convert::Infallible, pin::Pin, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    http::{HeaderName, header},
    response::{IntoResponse, Response},
};
use futures_util::stream;
use rejoinder_core::{TurnId, TurnStatus, TurnView, Watch};
use rejoinder_kit::with_links;

use crate::{
    answer::{About, Chunk, ChunkChoice, Delta, UsageObject, Written, completion_id},
    caller::Caller,
    drafts::DraftReader,
};

/// How often something is written, so that no proxy takes the connection for idle.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// A comment, which clients ignore.
const COMMENT: &[u8] = b": the agent is at work\n\n";

const DONE: &[u8] = b"data: [DONE]\n\n";

/// Asks nginx not to hold events back.
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// An answer that is written while it grows.
pub(crate) struct Stream {
    caller: Caller,
    turn: TurnId,
    id: String,
    /// In seconds since 1970.
    created: i64,
    watch: Watch,
    drafts: DraftReader,
    /// The latest state of the turn.
    view: Option<Arc<TurnView>>,
    /// The text of the deferral that was told.
    told: Option<String>,
    written: Written,
    /// What is to be sent next.
    events: VecDeque<Bytes>,
    /// When the caller has waited for long enough.
    alarm: Sleep,
    is_over: bool,
}

impl Stream {
    pub(crate) fn begin(caller: Caller, turn: TurnId, watch: Watch, view: Option<Arc<TurnView>>) -> Self {
        let now = caller.adapter.clock.now();
        let mut stream = Self {
            turn,
            id: completion_id(turn),
            created: now.as_millis() / 1000,
            watch,
            drafts: caller.adapter.drafts.follow(turn),
            view,
            told: None,
            written: Written::default(),
            events: VecDeque::new(),
            alarm: {
                let (clock, patience) = (Arc::clone(&caller.adapter.clock), caller.patience());
                Box::pin(async move { clock.sleep(patience).await })
            },
            is_over: false,
            caller,
        };
        stream.push_delta(Delta { role: Some("assistant"), content: Some("") }, None, None);
        stream
    }

    /// The next event; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        while self.events.is_empty() && !self.is_over {
            self.go_on().await;
        }
        self.events.pop_front()
    }

    /// Waits for what comes next, and writes it.
    async fn go_on(&mut self) {
        if self.view.as_ref().is_some_and(|view| view.status.is_final()) {
            return self.end().await;
        }
        self.tell_deferral();
        if !self.events.is_empty() {
            return;
        }
        let clock = Arc::clone(&self.caller.adapter.clock);
        let mut pause = clock.sleep(KEEP_ALIVE);
        tokio::select! {
            biased;
            view = self.watch.changed() => self.view = Some(view),
            draft = self.drafts.changed() => {
                if let Some(new) = self.written.draft(&draft) {
                    self.push_delta(Delta { role: None, content: Some(&new) }, None, None);
                }
            }
            () = &mut self.alarm => self.end().await,
            () = self.caller.adapter.stop_waiting.cancelled() => self.end().await,
            () = &mut pause => self.events.push_back(Bytes::from_static(COMMENT)),
        }
    }

    /// Tells of a deferral, once. It is no content: clients would show it as the answer.
    fn tell_deferral(&mut self) {
        let Some(view) = self.view.clone().filter(|view| view.status == TurnStatus::Deferred) else { return };
        let text = view.shown.as_ref().map(|shown| shown.text.clone());
        if text.is_some() && text != self.told {
            self.push_delta(Delta::default(), None, Some(&About::deferral(&view)));
            self.told = text;
        }
    }

    /// Writes the rest of the answer, or of what says that it takes longer than the caller waits.
    async fn end(&mut self) {
        let Caller { adapter, context, .. } = &self.caller;
        let view = self.view.clone().map(|view| with_links(&context.intake, view, &adapter.base));
        let usage = if self.caller.wants_usage { self.caller.usage(self.turn).await } else { None };
        let answer = self.caller.read(self.turn, view.as_deref());
        let (rest, about) = (self.written.end(&answer.text), answer.about.clone());
        let mut events = VecDeque::new();
        if let Some(rest) = &rest {
            events.push_back(self.delta(Delta { role: None, content: Some(rest) }, None, None));
        }
        events.push_back(self.delta(Delta::default(), Some("stop"), Some(&about)));
        if let Some(usage) = usage {
            events.push_back(self.chunk(Vec::new(), Some(usage.into()), None));
        }
        events.push_back(Bytes::from_static(DONE));
        self.caller.note_read(self.turn, view.as_ref().map(|view| view.status));
        self.events.append(&mut events);
        self.is_over = true;
    }

    fn push_delta(&mut self, delta: Delta<'_>, finish: Option<&'static str>, about: Option<&About<'_>>) {
        let event = self.delta(delta, finish, about);
        self.events.push_back(event);
    }

    fn delta(&self, delta: Delta<'_>, finish_reason: Option<&'static str>, about: Option<&About<'_>>) -> Bytes {
        self.chunk(vec![ChunkChoice { index: 0, delta, logprobs: None, finish_reason }], None, about)
    }

    fn chunk(&self, choices: Vec<ChunkChoice<'_>>, usage: Option<UsageObject>, about: Option<&About<'_>>) -> Bytes {
        let chunk = Chunk {
            id: &self.id,
            object: "chat.completion.chunk",
            created: self.created,
            model: &self.caller.model,
            choices,
            usage,
            rejoinder: about,
        };
        let json = serde_json::to_string(&chunk).expect("texts and numbers serialise to JSON");
        format!("data: {json}\n\n").into()
    }
}

impl IntoResponse for Stream {
    fn into_response(self) -> Response {
        let body = Body::from_stream(stream::unfold(self, |mut stream| async move {
            let event = stream.next().await?;
            Some((Ok::<Bytes, Infallible>(event), stream))
        }));
        ([(header::CONTENT_TYPE, "text/event-stream"), (X_ACCEL_BUFFERING, "no")], body).into_response()
    }
}
