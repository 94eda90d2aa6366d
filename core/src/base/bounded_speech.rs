//! What hears and speaks, within what is configured for a recording, a text and a day. What a person is told if there are no words, or no
//! sound, is the caller's business.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::FutureExt;
use tracing::warn;

use crate::{
    base::{crash::crash_point, pauses},
    model::{
        AgentName, Budget, ChannelId, Day, LiveSettings, SpeechOfToday, SpeechUse, Unheard, Used,
        sound_length::least_seconds,
    },
    ports::{
        AgentUse, DayUse, PeopleStore, SharedClock, Sound, SoundFormat, Speech, SpeechDesk, SpeechError, StoreError,
        Transcript, Transition,
    },
};

/// Under these names it is counted what is heard and spoken on a day: seconds in place of tokens.
const HEARING: &str = "voice.hear";
const SPEAKING: &str = "voice.speak";

/// The longest text that is spoken, in bytes: ten minutes or so.
const MOST: usize = 10_000;

/// How many characters are spoken in a second, for what counts on a day.
const A_SECOND: u64 = 15;

/// Hears and speaks, and counts it first: also what is lost has its price.
pub(crate) struct BoundedSpeech {
    pub(crate) speech: Speech,
    pub(crate) usage: Arc<dyn PeopleStore>,
    pub(crate) settings: LiveSettings,
    pub(crate) clock: SharedClock,
}

impl BoundedSpeech {
    /// How long a recording may be; `None`: nobody hears it.
    pub(crate) fn longest(&self) -> Option<Duration> {
        self.speech.transcriber.as_ref().map(|transcriber| transcriber.longest())
    }

    /// What is used of today, as far as it is bounded.
    pub(crate) async fn today(&self) -> Result<SpeechOfToday, StoreError> {
        let Speech { transcriber, synthesizer } = &self.speech;
        let heard = transcriber.as_ref().and_then(|it| it.most_per_day());
        let spoken = synthesizer.as_ref().and_then(|it| it.most_per_day());
        Ok(SpeechOfToday { heard: self.used(HEARING, heard).await?, spoken: self.used(SPEAKING, spoken).await? })
    }

    async fn used(&self, what: &str, most: Option<Duration>) -> Result<Option<SpeechUse>, StoreError> {
        let Some(most) = most else { return Ok(None) };
        let DayUse { tokens, .. } = self.usage.agent_use(&AgentName::from(what), self.today_number()).await?;
        Ok(Some(SpeechUse { used: Duration::from_secs(tokens), most }))
    }

    fn today_number(&self) -> i64 {
        Day::of(self.clock.now(), &self.settings.get().time_zone).number
    }

    /// Counts what is about to be heard or spoken among that of today, as soon as the store can. `false` if it would be too much.
    async fn spend(&self, what: &str, most: Option<Duration>, seconds: u64) -> bool {
        let Some(most) = most.map(|most| most.as_secs()) else { return true };
        loop {
            match self.try_to_spend(what, most, seconds).await {
                Ok(is_within) => return is_within,
                Err(error) => warn!(what, %error, "cannot count what is heard and spoken, retrying"),
            }
            self.clock.sleep(pauses::READ_AGAIN).await;
        }
    }

    async fn try_to_spend(&self, what: &str, most: u64, seconds: u64) -> Result<bool, StoreError> {
        let (agent, day) = (AgentName::from(what), self.today_number());
        let DayUse { tokens: before, .. } = self.usage.agent_use(&agent, day).await?;
        if before.saturating_add(seconds) > most {
            return Ok(false);
        }
        let (used, budget) = (Used { tokens: seconds, ..Used::default() }, Budget { tokens: Some(most), micros: None });
        let used = Some((AgentUse { agent, day, used, budget }, self.clock.now()));
        self.usage.commit(Transition { used, ..Transition::default() }).await?.is_done()
    }
}

#[async_trait]
impl SpeechDesk for BoundedSpeech {
    fn hears(&self) -> bool {
        self.speech.transcriber.is_some()
    }

    fn speaks(&self) -> bool {
        self.speech.synthesizer.is_some()
    }

    async fn hear(&self, channel: &ChannelId, recording: Vec<u8>, said: Option<u64>) -> Result<Transcript, Unheard> {
        let transcriber = self.speech.transcriber.as_ref().ok_or(Unheard::NoServer)?;
        let seconds = said.unwrap_or_default().max(least_seconds(&recording));
        if seconds > transcriber.longest().as_secs() {
            return Err(Unheard::TooLong);
        }
        // None is free: many short ones have their price.
        if !self.spend(HEARING, transcriber.most_per_day(), seconds.max(1)).await {
            return Err(Unheard::OverBudget);
        }
        count("heard", seconds);
        crash_point!("hearing");
        let written = AssertUnwindSafe(transcriber.transcribe(recording)).catch_unwind().await;
        let written = written.unwrap_or_else(|_| Err(SpeechError::Broken("the transcriber panicked".to_owned())));
        let words = written.map_err(|error| {
            warn!(%channel, error = error.summary(), "what was spoken cannot be written down");
            Unheard::Failed
        })?;
        // No store keeps the character.
        let words = words.replace('\0', "");
        if words.trim().is_empty() {
            return Err(Unheard::NoWords);
        }
        Ok(Transcript {
            words,
            model: transcriber.model().map(Into::into),
            seconds: Some(seconds).filter(|it| *it > 0),
        })
    }

    async fn speak(&self, channel: &ChannelId, text: &str, format: SoundFormat, within: Duration) -> Option<Sound> {
        let is_spoken = text.len() <= MOST && !text.trim().is_empty();
        let synthesizer = self.speech.synthesizer.as_ref().filter(|_| is_spoken)?;
        let speaking = async {
            let seconds = u64::try_from(text.chars().count()).unwrap_or(u64::MAX).div_ceil(A_SECOND);
            if !self.spend(SPEAKING, synthesizer.most_per_day(), seconds).await {
                return Err("what may be spoken in a day is used up".to_owned());
            }
            count("spoken", seconds);
            let spoken = AssertUnwindSafe(synthesizer.synthesize(text, format)).catch_unwind().await;
            let spoken = spoken.unwrap_or_else(|_| Err(SpeechError::Broken("the synthesizer panicked".to_owned())));
            spoken.map_err(|error| error.summary())
        };
        let spoken = tokio::select! {
            spoken = speaking => spoken,
            () = self.clock.sleep(within) => Err(format!("it took more than {within:?}")),
        };
        let spoken = spoken.inspect_err(|error| warn!(%channel, %error, "an answer is not spoken"));
        spoken.ok().filter(|sound| !sound.bytes.is_empty())
    }
}

fn count(what: &'static str, seconds: u64) {
    metrics::counter!("rejoinder_voice_seconds_total", "what" => what).increment(seconds);
}
