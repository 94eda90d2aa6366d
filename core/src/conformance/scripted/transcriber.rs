//! A transcriber that does what a test says.

use std::{
    collections::VecDeque,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;

use super::agent::Gate;
use crate::ports::{SpeechError, Transcriber};

/// Writes down what a test says that people say.
pub struct ScriptedTranscriber {
    longest: Duration,
    most_per_day: Option<Duration>,
    /// What is said in the next recordings. The last one repeats.
    said: Mutex<VecDeque<Result<String, SpeechError>>>,
    gate: Option<Gate>,
    recordings: AtomicUsize,
}

impl ScriptedTranscriber {
    /// Understands recordings of up to five minutes.
    fn saying(said: impl IntoIterator<Item = Result<String, SpeechError>>) -> Self {
        let said = Mutex::new(said.into_iter().collect());
        Self { longest: Duration::from_mins(5), most_per_day: None, said, gate: None, recordings: AtomicUsize::new(0) }
    }

    /// These words are said in the recordings, one after the other, and the last ones in all that follow.
    #[must_use]
    pub fn hearing(words: &[&str]) -> Self {
        Self::saying(words.iter().map(|words| Ok((*words).to_owned())))
    }

    /// It cannot be reached.
    #[must_use]
    pub fn down() -> Self {
        Self::saying([Err(SpeechError::Unreachable("no route".to_owned()))])
    }

    /// It may be given so much of recordings on a day.
    #[must_use]
    pub fn at_most(self, per_day: Duration) -> Self {
        Self { most_per_day: Some(per_day), ..self }
    }

    /// It waits at a gate before it answers.
    #[must_use]
    pub fn waiting_at(self, gate: &Gate) -> Self {
        Self { gate: Some(gate.clone()), ..self }
    }

    /// How many recordings it was given.
    #[must_use]
    pub fn recordings(&self) -> usize {
        self.recordings.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Transcriber for ScriptedTranscriber {
    fn model(&self) -> Option<&str> {
        Some("ears-1")
    }

    fn longest(&self) -> Duration {
        self.longest
    }

    fn most_per_day(&self) -> Option<Duration> {
        self.most_per_day
    }

    async fn transcribe(&self, _recording: Vec<u8>) -> Result<String, SpeechError> {
        self.recordings.fetch_add(1, Ordering::SeqCst);
        let said = {
            let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
            let last = if said.len() > 1 { said.pop_front() } else { said.front().cloned() };
            last.unwrap_or_else(|| Ok(String::new()))
        };
        if let Some(gate) = &self.gate {
            gate.wait().await;
        }
        said
    }
}
