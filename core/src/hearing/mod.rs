//! Has voice notes written down, and tells their turns the words. What a person is told if there are none is decided in `ledger`, and who
//! waits for the words in `scheduler`.
//!
//! The words come as an edit of the message that the gateway makes: the turn keeps its place, and words that are a command are executed
//! ahead of what runs. An edit of the person meanwhile comes first: then the recording is written down once more.

pub(crate) mod allowance;

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt;
use rejoinder_guard::{Attachment, CancelledBy, Event};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, mpsc};
use tracing::{error, warn};

use self::allowance::{Allowance, least_seconds};
use crate::{
    base::{
        channels::Channels,
        crash::crash_point,
        lifecycle::Lifecycle,
        pauses::{self, GrowingPause},
    },
    handles::hearings::Hearings,
    ledger::{Ledger, trigger::Trigger},
    model::{
        Amends, ChannelId, FileBudget, Heard, InboundEvent, LiveSettings, StoredFile, TurnId, TurnRecord, Unheard,
        data_url,
    },
    ports::{
        Accepted, FetchError, FileStore, Inlet, IntakeError, SharedClock, SpeechError, StoreError, Transcriber,
        TurnStore,
    },
    scheduler::Scheduler,
};

/// How many recordings are written down at once.
const AT_ONCE: usize = 8;

/// How long a platform may take to give a recording.
const FETCHING: Duration = Duration::from_secs(30);

/// Has voice notes written down, several at once.
pub(crate) struct Hearer {
    /// `None`: nobody does.
    pub(crate) transcriber: Option<Arc<dyn Transcriber>>,
    pub(crate) store: Arc<dyn TurnStore>,
    pub(crate) files: Arc<dyn FileStore>,
    pub(crate) allowance: Allowance,
    pub(crate) channels: Arc<Channels>,
    pub(crate) hearings: Arc<Hearings>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) inlet: Arc<dyn Inlet>,
    pub(crate) settings: LiveSettings,
    pub(crate) file_budget: FileBudget,
    pub(crate) clock: SharedClock,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) turns: Mutex<mpsc::UnboundedReceiver<TurnId>>,
}

/// What became of a recording.
struct Hearing {
    /// `None` if it was not fetched.
    recording: Option<Recording>,
    words: Result<String, Unheard>,
}

/// A recording in memory.
struct Recording {
    bytes: Vec<u8>,
    /// Its part of the bytes that files may have in memory.
    _share: Option<OwnedSemaphorePermit>,
}

impl From<Unheard> for Hearing {
    fn from(why: Unheard) -> Self {
        Self { recording: None, words: Err(why) }
    }
}

impl Hearer {
    /// Has voice notes written down until the gateway stops. It is done again after the next start.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut turns = self.turns.lock().await;
        let places = Arc::new(Semaphore::new(AT_ONCE));
        loop {
            let next = async {
                let place = Arc::clone(&places).acquire_owned().await.ok()?;
                Some((place, turns.recv().await?))
            };
            let (place, turn) = tokio::select! {
                next = next => match next {
                    Some(next) => next,
                    None => return,
                },
                () = self.lifecycle.stopping.cancelled() => return,
            };
            let hearer = Arc::clone(&self);
            self.lifecycle.work.spawn(async move {
                hearer.hear(turn).await;
                drop(place);
            });
        }
    }

    /// Has the voice note of a turn written down, and stores the words.
    async fn hear(&self, id: TurnId) {
        let _ends = self.hearings.ends(id);
        let Some(turn) = self.read(id).await else { return };
        if !turn.event.awaits_words() || !turn.obligation.is_waiting() {
            return;
        }
        let hearing = tokio::select! {
            biased;
            () = self.lifecycle.stopping.cancelled() => return,
            hearing = self.listen(&turn.event) => hearing,
        };
        crash_point!("heard");
        self.tell(turn, hearing).await;
    }

    /// Reads a turn, again while the store is away. `None` if it is gone, cannot be read, or the gateway stops.
    async fn read(&self, id: TurnId) -> Option<TurnRecord> {
        loop {
            match self.store.readable_turn(id).await {
                Ok(turn) => return turn,
                Err(error) => warn!(turn = %id, %error, "cannot read the turn of a voice note, retrying"),
            }
            if !self.lifecycle.pause_unless_stopping(pauses::READ_AGAIN).await {
                return None;
            }
        }
    }

    /// Fetches the recording of an event, and has it written down.
    async fn listen(&self, event: &InboundEvent) -> Hearing {
        let Some(transcriber) = &self.transcriber else { return Unheard::NoServer.into() };
        let recorded = event.voice.and_then(|voice| Some((voice.seconds, event.attachments.get(voice.file)?)));
        let Some((seconds, file)) = recorded else { return Unheard::NoFile.into() };
        let longest = transcriber.longest().as_secs();
        if seconds.is_some_and(|seconds| seconds > longest) {
            return Unheard::TooLong.into();
        }
        let channel = &event.conversation.channel;
        let recording = match self.fetch(channel, file).await {
            Ok(recording) => recording,
            Err(error) => {
                warn!(%channel, %error, "cannot fetch a voice note");
                return Unheard::NoFile.into();
            }
        };
        let seconds = seconds.unwrap_or_default().max(least_seconds(&recording.bytes));
        let words = if seconds > longest {
            Err(Unheard::TooLong)
        } else if self.spend(transcriber.as_ref(), seconds).await {
            self.write_down(transcriber.as_ref(), &recording, channel).await
        } else {
            Err(Unheard::OverBudget)
        };
        Hearing { recording: Some(recording), words }
    }

    async fn write_down(
        &self,
        transcriber: &dyn Transcriber,
        recording: &Recording,
        channel: &ChannelId,
    ) -> Result<String, Unheard> {
        crash_point!("hearing");
        let written = AssertUnwindSafe(transcriber.transcribe(recording.bytes.clone())).catch_unwind().await;
        let written = written.unwrap_or_else(|_| Err(SpeechError::Broken("the transcriber panicked".to_owned())));
        match written {
            Ok(words) if words.trim().is_empty() => Err(Unheard::NoWords),
            Ok(words) => Ok(words),
            Err(error) => {
                warn!(%channel, error = error.summary(), "a voice note cannot be written down");
                Err(Unheard::Failed)
            }
        }
    }

    /// Counts a recording among those of today, again while the store is away. `false` if they would be too many.
    async fn spend(&self, transcriber: &dyn Transcriber, seconds: u64) -> bool {
        loop {
            match self.allowance.spend(transcriber, seconds).await {
                Ok(may_be_heard) => return may_be_heard,
                Err(error) => warn!(%error, "cannot count a voice note, retrying"),
            }
            if !self.lifecycle.pause_unless_stopping(pauses::READ_AGAIN).await {
                return false;
            }
        }
    }

    /// Fetches a recording, from the store if it was stored before.
    async fn fetch(&self, channel: &ChannelId, file: &Attachment) -> Result<Recording, FetchError> {
        let failed = |why: &str| FetchError::Failed(why.to_owned());
        let stored = StoredFile::in_url(&file.url);
        let largest = stored.map_or(self.settings.read().max_attachment, |stored| stored.size);
        let mut reserved = self.file_budget.reserve(largest);
        let limit = reserved.num_permits();
        let bytes = match stored {
            Some(StoredFile { size, .. }) if size > limit => return Err(FetchError::TooLarge { limit }),
            Some(stored) => self.stored(stored).await?.ok_or_else(|| failed("its bytes are not stored any more"))?,
            None => {
                let channel =
                    self.channels.get(channel).ok_or_else(|| failed("its channel is not configured any more"))?;
                let fetching = AssertUnwindSafe(channel.fetch(file, limit)).catch_unwind();
                tokio::select! {
                    biased;
                    fetched = fetching => fetched.unwrap_or_else(|_| Err(failed("the adapter panicked")))?,
                    () = self.clock.sleep(FETCHING) => return Err(failed("timed out")),
                }
            }
        };
        let share = reserved.split(bytes.len()).ok_or(FetchError::TooLarge { limit })?;
        Ok(Recording { bytes, _share: Some(share) })
    }

    /// The bytes of a stored file, read again while the store is away.
    async fn stored(&self, file: StoredFile) -> Result<Option<Vec<u8>>, FetchError> {
        loop {
            match self.files.file(file.digest).await {
                Err(error) if error.is_outage() && self.lifecycle.pause_unless_stopping(pauses::READ_AGAIN).await => {}
                read => return read.map_err(|error: StoreError| FetchError::Failed(error.to_string())),
            }
        }
    }

    /// Tells a turn what became of its voice note.
    async fn tell(&self, mut turn: TurnRecord, hearing: Hearing) {
        let channel = turn.event.conversation.channel.clone();
        count(&channel, &hearing.words);
        let (id, event) = (TurnId::new(self.clock.now()), told(&turn.event, &hearing));
        let mut pauses = GrowingPause::new(pauses::STORE);
        let accepted = loop {
            match self.inlet.accept(&channel, vec![(id, event.clone())], None).await {
                Ok(accepted) => break accepted.into_iter().next(),
                Err(IntakeError::ShuttingDown) => return,
                Err(error) => {
                    warn!(turn = %turn.id, %error, "cannot store the words of a voice note, retrying");
                    if !self.lifecycle.pause_unless_stopping(pauses.next()).await {
                        return;
                    }
                }
            }
        };
        match accepted {
            Some(Accepted::Amended(heard)) => Box::pin(self.scheduler.note_words(heard)).await,
            // The words are a command, which cancels the turn as well. Until then it would be found without words.
            Some(
                Accepted::Turn(by) | Accepted::Answers { turn: by, .. } | Accepted::Duplicate { turn: Some(by), .. },
            ) if by != turn.id => {
                let edited = Event::Cancelled { by: CancelledBy::Edit(by.to_string()) };
                self.ledger.decide_until_stored(&mut turn, edited, Trigger::Event).await;
            }
            _ => self.give_up(&turn).await,
        }
    }

    /// Ends a turn whose words the store does not take. If the person has edited the message meanwhile, it is heard again.
    async fn give_up(&self, turn: &TurnRecord) {
        let is_as_it_was = |now: &TurnRecord| {
            let is_same = now.event.revision == turn.event.revision;
            is_same && now.event.awaits_words() && now.obligation.is_waiting()
        };
        let Some(mut now) = self.read(turn.id).await.filter(is_as_it_was) else { return };
        error!(turn = %turn.id, "the store does not take the words of a voice note");
        let why = "its words cannot be stored".to_owned();
        self.ledger.decide_until_stored(&mut now, Event::Unreadable(why), Trigger::Event).await;
    }
}

/// The event that tells a turn what became of its voice note, which is stored with it.
fn told(event: &InboundEvent, Hearing { recording, words }: &Hearing) -> InboundEvent {
    let mut told = InboundEvent { revision: event.revision + 1, amends: Some(Amends::Replaces), ..event.clone() };
    if let Ok(words) = words {
        let caption = told.text.trim();
        told.text = if caption.is_empty() { words.clone() } else { format!("{caption}\n\n{words}") };
    }
    if let Some(voice) = &mut told.voice {
        match words {
            Ok(_) => voice.heard = Heard::Words,
            Err(why) => *voice = voice.failed(*why),
        }
        if let (Some(file), Some(recording)) = (told.attachments.get_mut(voice.file), recording) {
            file.url = data_url(&file.media_type, &recording.bytes);
        }
    }
    told
}

fn count(channel: &ChannelId, words: &Result<String, Unheard>) {
    let result = words.as_ref().map_or_else(|why| why.as_str(), |_| "words");
    metrics::counter!("rejoinder_voice_notes_total", "channel" => channel.to_string(), "result" => result).increment(1);
}
