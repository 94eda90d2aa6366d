//! One address of a server: requests and their answers, within bounds.

use std::time::Duration;

use rejoinder_agents::response::{chain, error_body, error_detail, error_text, read_body};
use rejoinder_config::Secret;
use rejoinder_core::SpeechError;
use rejoinder_kit::secret_headers;
use reqwest::{Client, RequestBuilder, header::HeaderMap};
use secrecy::SecretString;
use tokio::time::timeout;
use url::Url;

/// The key of a server is not valid in a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the key cannot be sent in a header")]
pub struct KeyError;

pub(crate) struct Endpoint {
    http: Client,
    url: Url,
    headers: HeaderMap,
    /// What errors must not contain.
    key: Option<SecretString>,
    timeout: Duration,
}

impl Endpoint {
    /// `name` is the last part of the path: `/audio/NAME`.
    pub(crate) fn new(
        http: Client,
        base_url: &Url,
        name: &str,
        key: Option<&Secret>,
        timeout: Duration,
    ) -> Result<Self, KeyError> {
        let mut url = base_url.clone();
        // Fails for URLs without a path, which the configuration refuses.
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(["audio", name]);
        }
        let bearer = key.map(|key| format!("Bearer {}", key.expose()));
        let headers = secret_headers(bearer.iter().map(|bearer| ("authorization", &**bearer))).map_err(|_| KeyError)?;
        Ok(Self { http, url, headers, key: key.map(|key| key.get().clone()), timeout })
    }

    pub(crate) fn request(&self) -> RequestBuilder {
        self.http.post(self.url.clone()).headers(self.headers.clone())
    }

    /// Sends a request and reads its answer: at most `most` bytes.
    pub(crate) async fn answer(&self, request: RequestBuilder, most: usize) -> Result<Vec<u8>, SpeechError> {
        let answer = timeout(self.timeout, self.ask(request, most)).await;
        answer.unwrap_or(Err(SpeechError::Stalled(self.timeout)))
    }

    async fn ask(&self, request: RequestBuilder, most: usize) -> Result<Vec<u8>, SpeechError> {
        let unreachable = |error| SpeechError::Unreachable(self.told(&chain(error)));
        let mut response = request.send().await.map_err(unreachable)?;
        if !response.status().is_success() {
            let (status, body) = (response.status().as_u16(), error_body(&mut response).await);
            return Err(SpeechError::Refused { status, message: self.told(&error_text(&body)) });
        }
        let body = read_body(&mut response, most + 1).await.map_err(unreachable)?;
        if body.len() > most {
            return Err(SpeechError::Broken(format!("it has more than {most} bytes")));
        }
        Ok(body)
    }

    /// A text of the server or of a library, in one short line without the key.
    fn told(&self, text: &str) -> String {
        error_detail(text, &self.key)
    }
}

/// The status with which a server refuses a format that it does not know, perhaps.
pub(crate) fn unknown_format(error: &SpeechError) -> Option<u16> {
    match error {
        SpeechError::Refused { status: status @ (400 | 415 | 422), .. } => Some(*status),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1/audio/speech")]
    #[case("http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000/v1/audio/speech")]
    #[case("http://127.0.0.1:8000", "http://127.0.0.1:8000/audio/speech")]
    fn an_address_is_below_the_base_url(#[case] base_url: &str, #[case] url: &str) {
        let (http, base_url) = (Client::builder().build().unwrap(), base_url.parse().unwrap());
        let endpoint = Endpoint::new(http, &base_url, "speech", None, Duration::from_secs(1)).unwrap();

        assert_eq!(endpoint.url.as_str(), url);
    }
}
