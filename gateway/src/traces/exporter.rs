//! The connection to a collector.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result, anyhow};
use async_trait::async_trait;
use opentelemetry::KeyValue;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, SpanExporter as OtlpExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{
    Resource,
    trace::{SpanData, SpanExporter},
};
use rejoinder_config::Telemetry;
use rejoinder_kit::secret_headers;
use reqwest::{StatusCode, header::CONTENT_TYPE};
use tracing::warn;

use crate::client;

/// How long the collector may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The length of an answer that says nothing, as some collectors write it.
const EMPTY: usize = 2;

pub(crate) struct Exporter {
    endpoint: String,
    otlp: OtlpExporter,
    answer: Arc<Mutex<Answer>>,
}

/// Why spans were not taken.
#[derive(Clone, Debug)]
pub(super) enum ExportError {
    /// They will never be.
    Refused(String),
    Failed(String),
}

impl Exporter {
    /// The one that is configured; `None` without a collector.
    pub(crate) fn of(settings: &Telemetry) -> Result<Option<Self>> {
        let Some(base) = &settings.otlp_endpoint else { return Ok(None) };
        let base = base.as_str().trim_end_matches('/');
        let endpoint = if base.ends_with("/v1/traces") { base.to_owned() } else { format!("{base}/v1/traces") };
        let headers = secret_headers(settings.headers.iter().map(|(name, value)| (&**name, value.expose())));
        let headers = headers.map_err(|name| anyhow!("telemetry.headers.{name} cannot be used"))?;
        let answer = Arc::<Mutex<Answer>>::default();
        let http = client::http_client_with(headers)?;
        let mut otlp = OtlpExporter::builder()
            .with_http()
            .with_http_client(Client { http, answer: Arc::clone(&answer) })
            .with_endpoint(&endpoint)
            .with_protocol(Protocol::HttpBinary)
            .with_timeout(TIMEOUT)
            .build()
            .context("telemetry.otlp_endpoint cannot be used")?;
        // With what OTEL_RESOURCE_ATTRIBUTES says of the place.
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let resource = Resource::builder().with_service_name("rejoinder").with_attribute(version).build();
        otlp.set_resource(&resource);
        Ok(Some(Self { endpoint, otlp, answer }))
    }

    pub(super) async fn export(&self, spans: Vec<SpanData>) -> Result<(), ExportError> {
        *self.answer() = Answer::default();
        let Err(error) = self.otlp.export(spans).await else { return Ok(()) };
        let (endpoint, answer) = (&self.endpoint, self.answer().clone());
        Err(match answer {
            Answer::Status(status) if is_final(status) => ExportError::Refused(format!("{endpoint} answers {status}")),
            Answer::Status(status) => ExportError::Failed(format!("{endpoint} answers {status}")),
            Answer::Failed(why) => ExportError::Failed(format!("{endpoint}: {why}")),
            Answer::None => ExportError::Failed(format!("{endpoint}: {error}")),
        })
    }

    fn answer(&self) -> std::sync::MutexGuard<'_, Answer> {
        self.answer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether spans that were answered so must not be sent again. With a wrong token or path they may be taken later.
fn is_final(status: StatusCode) -> bool {
    use StatusCode as Is;
    let may_be_mended =
        [Is::UNAUTHORIZED, Is::FORBIDDEN, Is::NOT_FOUND, Is::REQUEST_TIMEOUT, Is::TOO_MANY_REQUESTS].contains(&status);
    status.is_client_error() && !may_be_mended
}

/// What the collector said last.
#[derive(Clone, Debug, Default)]
enum Answer {
    #[default]
    None,
    Status(StatusCode),
    Failed(String),
}

/// The client of the exporter, which tells only that something failed.
#[derive(Debug)]
struct Client {
    http: reqwest::Client,
    answer: Arc<Mutex<Answer>>,
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let answer = match tokio::time::timeout(TIMEOUT, self.http.send_bytes(request)).await {
            Err(_) => Err(format!("no answer within {} s", TIMEOUT.as_secs())),
            Ok(Err(error)) => Err(format!("{:#}", anyhow::Error::from_boxed(error))),
            Ok(Ok(response)) if response.status().is_success() && !is_otlp(&response) => {
                Err("what answers there is no collector".to_owned())
            }
            Ok(Ok(response)) => Ok(response),
        };
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = match &answer {
            Ok(response) => Answer::Status(response.status()),
            Err(why) => Answer::Failed(why.clone()),
        };
        let response = answer?;
        if response.status().is_success() && response.body().len() > EMPTY {
            let says = String::from_utf8_lossy(response.body());
            let says = says.chars().filter(|letter| !letter.is_control()).take(200).collect::<String>();
            warn!(says, "the collector took only a part of the traces, or has something to say about them");
        }
        Ok(response)
    }
}

/// Whether a response is a collector's: OTLP, or empty.
fn is_otlp(response: &Response<Bytes>) -> bool {
    let media_type = response.headers().get(CONTENT_TYPE);
    response.body().is_empty() || media_type.is_some_and(|it| it.as_bytes().starts_with(b"application/x-protobuf"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_will_never_be_taken_is_refused() {
        let statuses = [400, 401, 403, 404, 413, 415, 422, 429, 500, 503];
        let refused = statuses.into_iter().filter(|status| is_final(StatusCode::from_u16(*status).unwrap()));

        assert_eq!(refused.collect::<Vec<_>>(), [400, 413, 415, 422]);
    }
}
