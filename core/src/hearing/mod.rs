//! Has voice notes written down, and tells their turns the words. What a person is told if there are none is decided in `ledger`, and who
//! waits for the words in `scheduler`.
//!
//! The words come as an edit of the message that the gateway makes: the turn keeps its place, and words that are a command are executed
//! ahead of what runs. An edit of the person meanwhile comes first: then the recording is written down once more.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt;
use rejoinder_guard::{Attachment, CancelledBy, Event};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, mpsc};
use tracing::{error, warn};

use crate::{
    base::{
        bounded_speech::BoundedSpeech,
        channels::Channels,
        crash::crash_point,
        lifecycle::Lifecycle,
        pauses::{self, GrowingPause},
    },
    handles::hearings::Hearings,
    ledger::{Ledger, trigger::Trigger},
    model::{
        Amends, ChannelId, FileBudget, InboundEvent, LiveSettings, StoredFile, TurnId, TurnRecord, Unheard, data_url,
    },
    ports::{
        Accepted, FetchError, FileStore, Inlet, IntakeError, SharedClock, SpeechDesk as _, StoreError, Transcript,
        TurnStore, count_heard,
    },
    scheduler::Scheduler,
};

/// How many recordings are written down at once.
const AT_ONCE: usize = 8;

/// How long a platform may take to give a recording.
const FETCHING: Duration = Duration::from_secs(30);

/// Has voice notes written down, several at once.
pub(crate) struct Hearer {
    pub(crate) speech: Arc<BoundedSpeech>,
    pub(crate) store: Arc<dyn TurnStore>,
    pub(crate) files: Arc<dyn FileStore>,
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
    heard: Result<Transcript, Unheard>,
}

/// A recording in memory.
struct Recording {
    bytes: Vec<u8>,
    /// Its part of the bytes that files may have in memory.
    _share: OwnedSemaphorePermit,
}

impl From<Unheard> for Hearing {
    fn from(why: Unheard) -> Self {
        Self { recording: None, heard: Err(why) }
    }
}

impl Hearer {
    /// Has voice notes written down until the gateway stops. One that is not finished then is written down after the next start.
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
        let Some(longest) = self.speech.longest() else { return Unheard::NoServer.into() };
        let recorded = event.voice.and_then(|voice| Some((voice.seconds, event.attachments.get(voice.file)?)));
        let Some((seconds, file)) = recorded else { return Unheard::NoFile.into() };
        if seconds.is_some_and(|seconds| seconds > longest.as_secs()) {
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
        let heard = self.speech.hear(channel, recording.bytes.clone(), seconds).await;
        Hearing { recording: Some(recording), heard }
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
        Ok(Recording { bytes, _share: share })
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
    async fn tell(&self, mut turn: TurnRecord, mut hearing: Hearing) {
        if self.settings.get().lifetimes.voice.is_some_and(|lifetime| lifetime.is_zero()) {
            // An agent that listens to it fetches it once more.
            hearing.recording = None;
        }
        let channel = turn.event.conversation.channel.clone();
        count_heard(&channel, &hearing.heard);
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
fn told(event: &InboundEvent, Hearing { recording, heard }: &Hearing) -> InboundEvent {
    let mut told = InboundEvent { revision: event.revision + 1, amends: Some(Amends::Replaces), ..event.clone() };
    if let Ok(Transcript { words, model, .. }) = heard {
        let caption = told.text.trim();
        told.text = if caption.is_empty() { words.clone() } else { format!("{caption}\n\n{words}") };
        told.heard_by.clone_from(model);
    }
    if let Some(voice) = &mut told.voice {
        *voice = match heard {
            Ok(Transcript { seconds, .. }) => voice.written_down(*seconds),
            Err(why) => voice.failed(*why),
        };
        // What the store has already keeps its reference.
        if let (Some(file), Some(recording)) = (told.attachments.get_mut(voice.file), recording)
            && StoredFile::in_url(&file.url).is_none()
        {
            file.url = data_url(&file.media_type, &recording.bytes);
        }
    }
    told
}
