//! A synthesizer that does what a test says.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;

use super::agent::Gate;
use crate::ports::{Sound, SoundFormat, SpeechError, Synthesizer};

/// Speaks: the sound of a text has the text in it, and how many were spoken before it.
#[derive(Default)]
pub struct ScriptedSynthesizer {
    is_down: AtomicBool,
    gate: Option<Gate>,
    most_per_day: Option<Duration>,
    spoken: Mutex<Vec<String>>,
}

impl ScriptedSynthesizer {
    /// It waits at a gate before it answers.
    #[must_use]
    pub fn waiting_at(self, gate: &Gate) -> Self {
        Self { gate: Some(gate.clone()), ..self }
    }

    /// It may speak for so long on a day.
    #[must_use]
    pub fn at_most(self, per_day: Duration) -> Self {
        Self { most_per_day: Some(per_day), ..self }
    }

    /// From now on it cannot be reached, or can be again.
    pub fn set_down(&self, is_down: bool) {
        self.is_down.store(is_down, Ordering::SeqCst);
    }

    /// The texts that it was given, in order.
    #[must_use]
    pub fn spoken(&self) -> Vec<String> {
        self.spoken.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl Synthesizer for ScriptedSynthesizer {
    fn most_per_day(&self) -> Option<Duration> {
        self.most_per_day
    }

    async fn synthesize(&self, text: &str, _format: SoundFormat) -> Result<Sound, SpeechError> {
        let number = {
            let mut spoken = self.spoken.lock().unwrap_or_else(PoisonError::into_inner);
            spoken.push(text.to_owned());
            spoken.len()
        };
        if let Some(gate) = &self.gate {
            gate.wait().await;
        }
        if self.is_down.load(Ordering::SeqCst) {
            return Err(SpeechError::Unreachable("no route".to_owned()));
        }
        Ok(Sound { media_type: "audio/ogg", bytes: format!("OggS {number} {text}").into_bytes() })
    }
}
