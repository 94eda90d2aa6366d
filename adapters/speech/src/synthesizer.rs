//! `POST /audio/speech`: the sound of a text.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use rejoinder_config::Speech;
use rejoinder_core::{Sound, SoundFormat, SpeechError, Synthesizer};
use reqwest::Client;
use serde_json::json;
use tracing::warn;

use crate::{
    conversion::convert,
    endpoint::{Endpoint, KeyError, unknown_format},
    kind::kind_of,
    ogg_opus,
};

/// The largest sound, in bytes: an answer of some minutes without compression.
const MAX_SOUND: usize = 16 << 20;

/// The longest sound that is converted: twice what the longest answers take.
const LONGEST: Duration = Duration::from_mins(20);

/// What Opus is kept in.
const OGG: &str = "audio/ogg";

/// A server that speaks.
pub struct HttpSynthesizer {
    endpoint: Endpoint,
    model: String,
    voice: String,
    most_per_day: Option<Duration>,
}

impl HttpSynthesizer {
    /// `http` follows no redirects.
    ///
    /// # Errors
    /// When the key cannot be sent.
    pub fn new(server: &Speech, http: Client) -> Result<Self, KeyError> {
        let Speech { base_url, model, voice, api_key, timeout } = server;
        let endpoint = Endpoint::new(http, base_url, "speech", api_key.as_ref(), *timeout)?;
        Ok(Self { endpoint, model: model.clone(), voice: voice.clone(), most_per_day: None })
    }

    /// No more may be spoken by it on one day.
    #[must_use]
    pub fn at_most(self, most_per_day: Option<Duration>) -> Self {
        Self { most_per_day, ..self }
    }

    async fn ask(&self, text: &str, format: SoundFormat) -> Result<Sound, SpeechError> {
        let format = match format {
            SoundFormat::Mp3 => "mp3",
            SoundFormat::Opus => "opus",
            SoundFormat::Wav => "wav",
        };
        let body = json!({ "model": self.model, "voice": self.voice, "input": text, "response_format": format });
        let bytes = self.endpoint.answer(self.endpoint.request().json(&body), MAX_SOUND).await?;
        match kind_of(&bytes) {
            Some((media_type, _)) => Ok(Sound { media_type, bytes }),
            None => Err(SpeechError::Broken("it is no sound of a known kind".to_owned())),
        }
    }
}

#[async_trait]
impl Synthesizer for HttpSynthesizer {
    fn most_per_day(&self) -> Option<Duration> {
        self.most_per_day
    }

    async fn synthesize(&self, text: &str, format: SoundFormat) -> Result<Sound, SpeechError> {
        let mut spoken = self.ask(text, format).await;
        if format != SoundFormat::Wav && spoken.as_ref().err().and_then(unknown_format).is_some() {
            spoken = self.ask(text, SoundFormat::Wav).await;
        }
        let spoken = spoken?;
        if format != SoundFormat::Opus || spoken.media_type == OGG {
            return Ok(spoken);
        }
        let bytes = Bytes::from(spoken.bytes);
        match convert(bytes.clone(), LONGEST, ogg_opus::write).await {
            Ok(bytes) => Ok(Sound { media_type: OGG, bytes }),
            Err(error) => {
                warn!(media_type = spoken.media_type, %error, "a sound is not made a voice note");
                Ok(Sound { bytes: bytes.into(), ..spoken })
            }
        }
    }
}
