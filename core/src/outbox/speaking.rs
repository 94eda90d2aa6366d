//! Has answers spoken. The sound is stored with its delivery before the attempt, so what is sent again has the same bytes. An answer that
//! cannot be spoken has a sentence in that place.

use std::{sync::Arc, time::Duration};

use rejoinder_guard::Attachment;

use super::attempts::{Attempts, refused_files::UNSPOKEN, unwanted};
use crate::{
    base::{bounded_speech::BoundedSpeech, crash::crash_point, lifecycle::Lifecycle},
    ledger::Ledger,
    model::{Action, Content, DeliveryRecord, LiveSettings, NewFile, TurnFile, TurnRecord, data_url, detach},
    nodes::leases::Hold,
    ports::{DeliveryChange, SharedClock, Sound, SoundFormat, SpeechDesk as _, StoreError},
};

/// How long an answer may take to be spoken: what is sent after it waits.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Speaker {
    pub(crate) speech: Arc<BoundedSpeech>,
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
        let channel = &delivery.conversation.channel;
        crash_point!("speaking");
        let sound = tokio::select! {
            biased;
            () = self.lifecycle.ended.cancelled() => return Ok(()),
            sound = self.speech.speak(channel, words, SoundFormat::Opus, PATIENCE) => sound,
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
