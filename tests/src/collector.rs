//! A collector of traces: takes OTLP over HTTP, as a third-party's types read it.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::IntoResponse,
    routing::post,
};
use opentelemetry_proto::tonic::{
    collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse},
    common::v1::{KeyValue, any_value::Value},
    trace::v1::Span,
};
use prost::Message;
use tokio::net::TcpListener;

/// A collector in the test's own process.
#[derive(Clone, Debug)]
pub struct Collector {
    port: u16,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    is_down: AtomicBool,
    spans: Mutex<Vec<CollectedSpan>>,
}

/// A span that the collector got.
#[derive(Clone, Debug)]
pub struct CollectedSpan {
    /// The trace, in hex.
    pub trace: String,
    /// The span, in hex.
    pub id: String,
    /// The span that it is in, in hex; empty without one.
    pub parent: String,
    /// Its name.
    pub name: String,
    /// How long it took, in nanoseconds.
    pub took: u64,
    /// Its attributes, as text.
    pub attributes: Vec<(String, String)>,
}

impl CollectedSpan {
    /// An attribute, as text.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find_map(|(key, value)| (key == name).then_some(&**value))
    }
}

impl Collector {
    /// Starts it.
    ///
    /// # Panics
    /// If it cannot listen.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("the listener has an address").port();
        let shared = Arc::<Shared>::default();
        let router = Router::new().route("/v1/traces", post(collect)).with_state(Arc::clone(&shared));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { port, shared }
    }

    /// The configuration section that has traces sent here.
    #[must_use]
    pub fn section(&self) -> String {
        format!(
            "[telemetry]\notlp_endpoint = \"http://127.0.0.1:{}\"\nheaders = {{ x-key = \"of-the-test\" }}\n",
            self.port
        )
    }

    /// Whether it refuses what it gets.
    pub fn set_down(&self, is_down: bool) {
        self.shared.is_down.store(is_down, Ordering::SeqCst);
    }

    /// The spans that it got, in order.
    ///
    /// # Panics
    /// If a request has panicked.
    #[must_use]
    pub fn spans(&self) -> Vec<CollectedSpan> {
        self.shared.spans.lock().expect("no request has panicked").clone()
    }

    /// The spans with this name.
    #[must_use]
    pub fn named(&self, name: &str) -> Vec<CollectedSpan> {
        self.spans().into_iter().filter(|span| span.name == name).collect()
    }
}

async fn collect(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<impl IntoResponse, StatusCode> {
    if shared.is_down.load(Ordering::SeqCst) {
        return Err(StatusCode::SERVICE_UNAVAILABLE);
    }
    let has = |name, value: &str| headers.get(name).is_some_and(|it| it.as_bytes() == value.as_bytes());
    if !has(header::CONTENT_TYPE, "application/x-protobuf") || !has("x-key".parse().expect("a name"), "of-the-test") {
        return Err(StatusCode::BAD_REQUEST);
    }
    let request = ExportTraceServiceRequest::decode(body).map_err(|_| StatusCode::BAD_REQUEST)?;
    let spans = request.resource_spans.into_iter().flat_map(|one| one.scope_spans).flat_map(|one| one.spans);
    shared.spans.lock().expect("no request has panicked").extend(spans.map(collected));
    let answer = ExportTraceServiceResponse::default().encode_to_vec();
    Ok(([(header::CONTENT_TYPE, "application/x-protobuf")], answer))
}

fn collected(span: Span) -> CollectedSpan {
    CollectedSpan {
        trace: hex::encode(span.trace_id),
        id: hex::encode(span.span_id),
        parent: hex::encode(span.parent_span_id),
        name: span.name,
        took: span.end_time_unix_nano - span.start_time_unix_nano,
        attributes: span.attributes.into_iter().filter_map(attribute).collect(),
    }
}

fn attribute(KeyValue { key, value, .. }: KeyValue) -> Option<(String, String)> {
    let text = match value?.value? {
        Value::StringValue(text) => text,
        Value::IntValue(number) => number.to_string(),
        other => format!("{other:?}"),
    };
    Some((key, text))
}
