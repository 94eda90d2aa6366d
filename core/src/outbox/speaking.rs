//! Has answers spoken. The sound is stored with its delivery before the attempt, so what is sent again has the same bytes. An answer that
//! cannot be spoken has a sentence in that place.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt;
use rejoinder_guard::Attachment;
use tracing::warn;

use super::attempts::{Attempts, UNSPOKEN, unwanted};
use crate::{
    base::{crash::crash_point, lifecycle::Lifecycle},
    ledger::Ledger,
    model::{
        Action, ChannelId, Content, DeliveryRecord, LiveSettings, NewFile, TurnFile, TurnRecord, data_url, detach,
    },
    nodes::leases::Hold,
    ports::{DeliveryChange, SharedClock, Sound, SoundFormat, SpeechError, StoreError, Synthesizer},
};

/// The longest text that is spoken, in bytes: ten minutes or so.
const MOST: usize = 10_000;

/// How long an answer may take to be spoken: what is sent after it waits.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Speaker {
    /// `None`: nobody speaks any more.
    pub(crate) synthesizer: Option<Arc<dyn Synthesizer>>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) attempts: Arc<Attempts>,
    pub(crate) settings: LiveSettings,
    pub(crate) clock: SharedClock,
    pub(crate) lifecycle: Lifecycle,
}

impl Speaker {
    /// Has the words of a delivery spoken, and stores what is sent of them. Until then nothing is attempted: after a crash they are spoken
    /// again.
    pub(crate) async fn speak(&self, delivery: &DeliveryRecord, hold: &Hold) -> Result<(), StoreError> {
        if self.attempts.drop_unwanted(delivery, Some(hold)).await? {
            return Ok(());
        }
        let Some(words) = delivery.action.to_speak() else { return Ok(()) };
        crash_point!("speaking");
        let sound = tokio::select! {
            biased;
            () = self.lifecycle.ended.cancelled() => return Ok(()),
            sound = self.sound(words, &delivery.conversation.channel) => sound,
        };
        crash_point!("spoken");
        loop {
            let turn = self.ledger.turn(delivery.turn).await?;
            let (change, files) = match unwanted(delivery, &turn) {
                Some(change) => (change, Vec::new()),
                None => self.spoken(delivery, &turn, words, sound.as_ref()),
            };
            if self.ledger.change_delivery_with(&turn, change, files, hold.fence()).await? {
                return Ok(());
            }
        }
    }

    /// The sound of these words; `None` if they cannot be spoken.
    async fn sound(&self, words: &str, channel: &ChannelId) -> Option<Sound> {
        let synthesizer = self.synthesizer.as_ref().filter(|_| words.len() <= MOST)?;
        let speaking = AssertUnwindSafe(synthesizer.synthesize(words, SoundFormat::Opus)).catch_unwind();
        let spoken = tokio::select! {
            spoken = speaking => {
                spoken.unwrap_or_else(|_| Err(SpeechError::Broken("the synthesizer panicked".to_owned())))
            }
            () = self.clock.sleep(PATIENCE) => Err(SpeechError::Stalled(PATIENCE)),
        };
        let spoken = spoken.inspect_err(|error| warn!(%channel, error = error.summary(), "an answer is not spoken"));
        spoken.ok().filter(|sound| !sound.bytes.is_empty())
    }

    /// The delivery with its sound or the sentence, and the files that it refers to.
    fn spoken(
        &self,
        delivery: &DeliveryRecord,
        turn: &TurnRecord,
        words: &str,
        sound: Option<&Sound>,
    ) -> (DeliveryChange, Vec<TurnFile>) {
        let mut content = if let Some(sound) = sound {
            let spoken = Some(words.to_owned());
            Content { attachments: vec![file(sound)], spoken, ..Content::default() }
        } else {
            let (settings, channel) = (self.settings.get(), &delivery.conversation.channel);
            let text = settings.templates.template(channel, turn.event.language, UNSPOKEN).to_owned();
            Content { text, ..Content::default() }
        };
        let spoken_at = Some(self.clock.now());
        let kept = detach(&mut content.attachments).into_iter().map(|file| NewFile { spoken_at, ..file });
        let files = kept.map(|file| TurnFile { turn: turn.id, file }).collect();
        let action = Some(Action::Send { content, reply_to: None });
        (DeliveryChange { action, ..DeliveryChange::of(delivery) }, files)
    }
}

/// A sound as an agent's own file would be sent: its bytes are in its URL.
fn file(Sound { media_type, bytes }: &Sound) -> Attachment {
    let ending = match *media_type {
        "audio/mpeg" => "mp3",
        "audio/mp4" => "m4a",
        other => other.rsplit('/').next().unwrap_or_default(),
    };
    let url = data_url(media_type, bytes);
    Attachment { name: format!("voice.{ending}"), media_type: (*media_type).to_owned(), url }
}
