//! `POST /audio/transcriptions`: what is said in a recording.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use rejoinder_config::Transcriptions;
use rejoinder_core::{Language, SpeechError, Transcriber};
use reqwest::{
    Client,
    multipart::{Form, Part},
};
use serde::Deserialize;

use crate::{
    conversion::convert,
    endpoint::{Endpoint, KeyError, unknown_format},
    kind::kind_of,
    wav,
};

/// The largest answer, in bytes: more words than an hour has.
const MAX_ANSWER: usize = 1 << 20;

/// The kind of a recording that is not recognised here: the server may know it.
const UNKNOWN: (&str, &str) = ("application/octet-stream", "bin");

/// A server that writes down what is said.
pub struct HttpTranscriber {
    endpoint: Endpoint,
    model: String,
    language: Option<Language>,
    longest: Duration,
    most_per_day: Option<Duration>,
}

#[derive(Deserialize)]
struct Transcript {
    text: String,
}

impl HttpTranscriber {
    /// `longest` is how long a recording may be. `http` follows no redirects.
    ///
    /// # Errors
    /// When the key cannot be sent.
    pub fn new(server: &Transcriptions, longest: Duration, http: Client) -> Result<Self, KeyError> {
        let Transcriptions { base_url, model, api_key, language, timeout } = server;
        let endpoint = Endpoint::new(http, base_url, "transcriptions", api_key.as_ref(), *timeout)?;
        Ok(Self { endpoint, model: model.clone(), language: *language, longest, most_per_day: None })
    }

    /// Limits how much of recordings it is given on one day.
    #[must_use]
    pub fn at_most(self, most_per_day: Option<Duration>) -> Self {
        Self { most_per_day, ..self }
    }

    async fn ask(&self, recording: Bytes) -> Result<String, SpeechError> {
        let (media_type, ending) = kind_of(&recording).unwrap_or(UNKNOWN);
        let file = Part::stream(recording).file_name(format!("recording.{ending}")).mime_str(media_type);
        let file = file.map_err(|error| SpeechError::Broken(error.to_string()))?;
        let mut form = Form::new().text("model", self.model.clone()).text("response_format", "json").part("file", file);
        if let Some(language) = self.language {
            form = form.text("language", language.to_string());
        }
        let answer = self.endpoint.answer(self.endpoint.request().multipart(form), MAX_ANSWER).await?;
        let transcript: Transcript =
            serde_json::from_slice(&answer).map_err(|_| SpeechError::Broken("it is no JSON with a `text`".into()))?;
        Ok(transcript.text.trim().to_owned())
    }
}

#[async_trait]
impl Transcriber for HttpTranscriber {
    fn model(&self) -> Option<&str> {
        Some(&self.model)
    }

    fn longest(&self) -> Duration {
        self.longest
    }

    fn most_per_day(&self) -> Option<Duration> {
        self.most_per_day
    }

    async fn transcribe(&self, recording: Vec<u8>) -> Result<String, SpeechError> {
        let recording = Bytes::from(recording);
        let heard = self.ask(recording.clone()).await;
        let Some(status) = heard.as_ref().err().and_then(unknown_format) else { return heard };
        match convert(recording, self.longest, wav::write).await {
            Ok(wav) => self.ask(wav.into()).await,
            Err(why) => Err(SpeechError::Unconverted { status, why: why.to_string() }),
        }
    }
}
