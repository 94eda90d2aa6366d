//! Fetches the files of a turn for its run.

use std::{
    panic::AssertUnwindSafe,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use futures_util::{FutureExt, StreamExt, stream};
use rejoinder_guard::{Attachment, Timestamp};
use tracing::warn;

use super::{reads::Reads, result::RunResult};
use crate::{
    model::{AgentFile, FileBudget, FileBytes, FileDigest, StoredFile, Unread, file_type::sniffed},
    ports::{AgentRuntime, ChannelAdapter, FetchError, FileStore, StoreError, TextReader},
};

/// The time limit for fetching all files of a turn from its platform, and for reading documents.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How often a stored file may not come although the store answers: one may be too large to be read in time.
const MOST_TRIES: usize = 3;

/// How many files are fetched at once.
const AT_ONCE: usize = 4;

/// Fetches the files of one turn.
pub(super) struct Files<'a> {
    pub(super) budget: &'a FileBudget,
    pub(super) channel: &'a dyn ChannelAdapter,
    pub(super) store: &'a dyn FileStore,
    pub(super) reader: Option<&'a dyn TextReader>,
    /// The largest file, in bytes.
    pub(super) limit: usize,
    pub(super) reads: Reads<'a>,
}

impl Files<'_> {
    /// The files, with the bytes of those that the runtime reads and the platform stores. A file that cannot be fetched is
    /// given by name.
    pub(super) async fn fetch(&self, attachments: &[&Attachment], runtime: &dyn AgentRuntime) -> Vec<AgentFile> {
        let (deadline, left) = (self.reads.clock.now() + TIMEOUT, AtomicUsize::new(self.budget.half()));
        // Collected, because the compiler cannot prove that a stream of a lazy map is `Send`.
        let files: Vec<_> =
            attachments.iter().map(|attachment| self.file(attachment, runtime, deadline, &left)).collect();
        stream::iter(files).buffered(AT_ONCE).collect().await
    }

    async fn file(
        &self,
        attachment: &Attachment,
        runtime: &dyn AgentRuntime,
        deadline: Timestamp,
        left: &AtomicUsize,
    ) -> AgentFile {
        let mut attachment = attachment.clone();
        let document = self.document(&attachment.media_type, runtime);
        let bytes = match runtime.reads(&attachment.media_type).max(document.map(|(_, largest)| largest)) {
            Some(largest) => self.bytes(&attachment, largest.min(self.limit), deadline, left).await,
            None => None,
        };
        let Some(bytes) = bytes else {
            return AgentFile { attachment, bytes: None, text: document.map(|_| Err(Unread::NotFetched)) };
        };
        // The platform repeats what the sender claims.
        attachment.media_type = sniffed(&bytes, &attachment.media_type);
        let text = match self.document(&attachment.media_type, runtime) {
            Some((_, largest)) if bytes.len() > largest => Some(Err(Unread::NotFetched)),
            Some((reader, _)) => Some(self.text(reader, &attachment.media_type, &bytes, deadline).await),
            None => None,
        };
        let is_read = runtime.reads(&attachment.media_type).is_some_and(|largest| bytes.len() <= largest);
        AgentFile { attachment, bytes: is_read.then_some(bytes), text }
    }

    /// What reads files of this type for the runtime, and the size of the largest one. `None`: the runtime opens them by itself, or
    /// nobody does.
    fn document(&self, media_type: &str, runtime: &dyn AgentRuntime) -> Option<(&dyn TextReader, usize)> {
        let reader = self.reader?;
        let largest = reader.reads(media_type)?;
        // What opens documents makes its own sense of markup, too.
        let opened = if media_type.starts_with("text/") { "application/pdf" } else { media_type };
        (runtime.reads("text/plain").is_some() && runtime.reads(opened).is_none()).then_some((reader, largest))
    }

    /// The text of a document, which counts as bytes of a file do.
    async fn text(
        &self,
        reader: &dyn TextReader,
        media_type: &str,
        bytes: &[u8],
        deadline: Timestamp,
    ) -> Result<FileBytes, Unread> {
        let text = tokio::select! {
            biased;
            text = reader.text(media_type, bytes) => text,
            () = self.reads.clock.sleep_until(deadline) => Err(Unread::Failed),
        };
        let counted = |text: String| {
            let share = self.budget.reserve(text.len());
            (share.num_permits() >= text.len()).then(|| FileBytes::counted(text.into(), share)).ok_or(Unread::Failed)
        };
        // The log has no names of files.
        text.and_then(counted)
            .inspect_err(|why| warn!(channel = %self.channel.channel(), %why, "a document has no text"))
    }

    /// The bytes of a file, from the store if it came in an event, else from the platform, which has until `deadline`.
    async fn read(&self, attachment: &Attachment, limit: usize, deadline: Timestamp) -> Result<Vec<u8>, FetchError> {
        let failed = |why: &str| FetchError::Failed(why.to_owned());
        let Some(StoredFile { digest, size }) = StoredFile::in_url(&attachment.url) else {
            return tokio::select! {
                biased;
                fetched = self.channel.fetch(attachment, limit) => fetched,
                () = self.reads.clock.sleep_until(deadline) => Err(failed("timed out")),
            };
        };
        if size > limit {
            return Err(FetchError::TooLarge { limit });
        }
        let tries = AtomicUsize::new(0);
        let bytes = self.reads.get("a file", || self.stored(digest, &tries)).await.map_err(|ended| match ended {
            RunResult::Unread(why) => FetchError::Failed(why),
            _ => failed("the run was stopped"),
        })?;
        bytes.ok_or_else(|| failed("its bytes are not stored any more"))
    }

    /// The bytes of a stored file. While the store answers, it is not tried for long: the turn would wait for nothing, and others for the
    /// store.
    async fn stored(&self, digest: FileDigest, tries: &AtomicUsize) -> Result<Option<Vec<u8>>, StoreError> {
        match self.store.file(digest).await {
            // An empty file is read at once, whether there is one or not.
            Err(error) if error.is_outage() && self.store.file(FileDigest::of(&[])).await.is_ok() => {
                let is_last = tries.fetch_add(1, Ordering::Relaxed) + 1 >= MOST_TRIES;
                Err(if is_last { StoreError::TooSlow } else { error })
            }
            read => read,
        }
    }

    /// The bytes of a file, taken from what is `left` for the turn, and from the budget.
    async fn bytes(
        &self,
        attachment: &Attachment,
        largest: usize,
        deadline: Timestamp,
        left: &AtomicUsize,
    ) -> Option<FileBytes> {
        // A stored one may wait for the store, and others need the rest meanwhile.
        let largest = StoredFile::in_url(&attachment.url).map_or(largest, |file| file.size.min(largest));
        let mut reserved = self.budget.reserve(largest.min(left.load(Ordering::Relaxed)));
        let limit = reserved.num_permits();
        let fetched = AssertUnwindSafe(self.read(attachment, limit, deadline)).catch_unwind().await;
        let fetched = fetched.unwrap_or_else(|_| Err(FetchError::Failed("the adapter panicked".to_owned())));
        let fetched = fetched.and_then(|bytes| {
            let share = reserved.split(bytes.len()).ok_or(FetchError::TooLarge { limit })?;
            let take = |left: usize| left.checked_sub(bytes.len());
            match left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
                Ok(_) => Ok(FileBytes::counted(bytes, share)),
                Err(limit) => Err(FetchError::TooLarge { limit }),
            }
        });
        match fetched {
            Ok(fetched) => Some(fetched),
            Err(FetchError::NotOurs(_)) => None,
            // The agent gets the text and the file's name nevertheless.
            Err(error) => {
                warn!(channel = %self.channel.channel(), %error, "cannot fetch a file, the agent gets its name only");
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use async_trait::async_trait;
    use rejoinder_guard::Outcome;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::{
        AgentError, AgentTurn, Capabilities, ChannelError, ChannelHealth, ChannelId, ConversationRef, Delivery,
        DeliveryError, Intake, Receipt, RunEvents, TurnId,
        base::lifecycle::Lifecycle,
        conformance::{clock::TestClock, scripted::capabilities},
        ports::{SharedClock, store::layered::NullStore},
    };

    /// Reads texts up to a size, and all other files too if it `opens` them.
    struct Reader {
        largest: usize,
        opens: bool,
    }

    #[async_trait]
    impl AgentRuntime for Reader {
        fn describe(&self) -> String {
            "a reader".to_owned()
        }

        fn reads(&self, media_type: &str) -> Option<usize> {
            (self.opens || media_type.starts_with("text/")).then_some(self.largest)
        }

        async fn run(&self, _: AgentTurn, _: RunEvents, _: CancellationToken) -> Result<Outcome, AgentError> {
            Ok(Outcome::Silent("it only reads".to_owned()))
        }
    }

    /// Stores files whose URLs say how they are fetched.
    struct Platform {
        channel: ChannelId,
        clock: SharedClock,
    }

    #[async_trait]
    impl ChannelAdapter for Platform {
        fn channel(&self) -> &ChannelId {
            &self.channel
        }

        fn capabilities(&self, _: &ConversationRef) -> Capabilities {
            capabilities()
        }

        fn health(&self) -> ChannelHealth {
            ChannelHealth { inbound_at: None, stale_after: None, problem: None, notice: None }
        }

        async fn run(&self, _: Intake, _: CancellationToken) -> Result<(), ChannelError> {
            Ok(())
        }

        async fn fetch(&self, attachment: &Attachment, limit: usize) -> Result<Vec<u8>, FetchError> {
            match attachment.url.as_str() {
                "panic" => panic!("a bug in the adapter"),
                "hang" => std::future::pending().await,
                "slow" => {
                    self.clock.sleep(Duration::from_secs(20)).await;
                    Ok(b"slow".to_vec())
                }
                "picture" => Ok(b"\x89PNG\r\n\x1a\n".to_vec()),
                // Ignores the limit.
                size => Ok(vec![b'x'; size.parse::<usize>().unwrap_or(limit)]),
            }
        }

        async fn deliver(&self, _: &Delivery) -> Result<Receipt, DeliveryError> {
            Err(DeliveryError::Unsupported("nothing is sent".to_owned()))
        }
    }

    const SCROLL: &str = "application/x-scroll";

    /// Reads scrolls of up to 100 bytes. It never ends with one of one byte, and cannot open one of two.
    struct Library;

    #[async_trait]
    impl TextReader for Library {
        fn reads(&self, media_type: &str) -> Option<usize> {
            (media_type == SCROLL).then_some(100)
        }

        async fn text(&self, _: &str, bytes: &[u8]) -> Result<String, Unread> {
            match bytes.len() {
                1 => std::future::pending().await,
                2 => Err(Unread::Protected),
                many => Ok(format!("{many} bytes")),
            }
        }
    }

    /// The files of a turn may have half of it.
    const BUDGET: usize = 1 << 20;

    /// A store with one file, which may not come in time. Others are not there.
    struct OneFile {
        digest: FileDigest,
        bytes: Option<Vec<u8>>,
        budget: FileBudget,
        /// How many bytes of the budget were left when it was read last.
        left: AtomicUsize,
    }

    #[async_trait]
    impl FileStore for OneFile {
        async fn file(&self, digest: FileDigest) -> Result<Option<Vec<u8>>, StoreError> {
            if digest != self.digest {
                return Ok(None);
            }
            self.left.store(self.budget.left(), Ordering::Relaxed);
            let late = || StoreError::Unavailable("the database did not answer in time".to_owned());
            self.bytes.clone().map(Some).ok_or_else(late)
        }

        async fn file_part(&self, _: FileDigest, _: usize, _: usize) -> Result<Option<Vec<u8>>, StoreError> {
            Ok(None)
        }
    }

    /// The size of a stored file, if it comes; how many bytes of the budget of 1000 were left meanwhile; and how long that took.
    async fn fetched_from_store(comes: bool) -> (Option<usize>, usize, Duration) {
        let (budget, bytes) = (FileBudget::new(1000), b"ten bytes!".to_vec());
        let (file, left) = (StoredFile::of(&bytes), AtomicUsize::new(0));
        let store = OneFile { digest: file.digest, bytes: comes.then_some(bytes), budget: budget.clone(), left };
        let url = file.to_string();
        let (files, took) = fetched_of(&store, (&budget, 600, usize::MAX), &[&*url]).await;
        (sizes(&files)[0], store.left.into_inner(), took)
    }

    /// The sizes of the files, as far as they were fetched, and how long that took.
    async fn fetched(urls: &[&str], limit: usize) -> (Vec<Option<usize>>, Duration) {
        let (files, took) = fetched_within(&FileBudget::new(BUDGET), urls, limit, usize::MAX).await;
        (sizes(&files), took)
    }

    /// The files, for a runtime that reads them up to a size.
    async fn fetched_within(
        budget: &FileBudget,
        urls: &[&str],
        limit: usize,
        largest: usize,
    ) -> (Vec<AgentFile>, Duration) {
        fetched_of(&NullStore, (budget, limit, largest), urls).await
    }

    async fn fetched_of(
        store: &dyn FileStore,
        (budget, limit, largest): (&FileBudget, usize, usize),
        urls: &[&str],
    ) -> (Vec<AgentFile>, Duration) {
        fetched_as("text/plain", store, (budget, limit), Reader { largest, opens: false }, urls).await
    }

    /// Files of a type.
    async fn fetched_as(
        media_type: &str,
        store: &dyn FileStore,
        (budget, limit): (&FileBudget, usize),
        runtime: Reader,
        urls: &[&str],
    ) -> (Vec<AgentFile>, Duration) {
        let clock = TestClock::new();
        let shared: SharedClock = Arc::clone(&clock) as SharedClock;
        let channel = Platform { channel: ChannelId::new("test", "main"), clock: Arc::clone(&shared) };
        let attachment = |url: &&str| Attachment {
            name: (*url).to_owned(),
            media_type: media_type.to_owned(),
            url: (*url).to_owned(),
        };
        let attachments: Vec<_> = urls.iter().map(attachment).collect();
        let begun = shared.now();
        let (lifecycle, stop) = (Lifecycle::new(Arc::clone(&shared)), CancellationToken::new());
        let turn = TurnId::new(begun);
        let deadline = Some(begun + TIMEOUT * 2);
        let reads = Reads { lifecycle: &lifecycle, clock: &shared, turn, stop: &stop, deadline };
        let files = Files { budget, channel: &channel, store, reader: Some(&Library), limit, reads };
        let attachments: Vec<_> = attachments.iter().collect();
        let fetching = files.fetch(&attachments, &runtime);
        tokio::pin!(fetching);
        let files = loop {
            tokio::select! {
                biased;
                files = &mut fetching => break files,
                () = tokio::task::yield_now() => clock.advance(Duration::from_secs(1)),
            }
        };
        (files, shared.now().since(begun))
    }

    fn sizes(files: &[AgentFile]) -> Vec<Option<usize>> {
        files.iter().map(|file| file.bytes.as_ref().map(|bytes| bytes.len())).collect()
    }

    type Text = Option<Result<String, Unread>>;

    /// The texts of scrolls, whether the runtime has the bytes of the first one, and how long that took.
    async fn scrolls(budget: usize, opens: bool, urls: &[&str]) -> (Vec<Text>, bool, Duration) {
        let budget = FileBudget::new(budget);
        let runtime = Reader { largest: 1000, opens };
        let (files, took) = fetched_as(SCROLL, &NullStore, (&budget, 1000), runtime, urls).await;
        let text = |text: &FileBytes| String::from_utf8_lossy(text).into_owned();
        let texts = files.iter().map(|file| file.text.as_ref().map(|it| it.as_ref().map(text).map_err(|why| *why)));
        (texts.collect(), files[0].bytes.is_some(), took)
    }

    #[tokio::test]
    async fn a_runtime_that_reads_only_texts_gets_those_of_documents_or_a_word_why_not() {
        let (texts, has_bytes, took) = scrolls(BUDGET, false, &["3", "2", "1", "101"]).await;

        let failed = |why| Some(Err(why));
        let read = Some(Ok("3 bytes".to_owned()));
        assert_eq!(texts, [read, failed(Unread::Protected), failed(Unread::Failed), failed(Unread::NotFetched)]);
        assert_eq!((has_bytes, took), (false, TIMEOUT));
    }

    #[tokio::test]
    async fn a_runtime_that_opens_documents_gets_their_bytes() {
        let (texts, has_bytes, _) = scrolls(BUDGET, true, &["3"]).await;

        assert_eq!((texts, has_bytes), (vec![Text::None], true));
    }

    #[tokio::test]
    async fn the_text_of_a_document_counts_as_a_file_does() {
        // Of these, three are the document, and a text may have half of the rest.
        let (texts, ..) = scrolls(3 + 2 * 7 - 1, false, &["3"]).await;
        let (enough, ..) = scrolls(3 + 2 * 7, false, &["3"]).await;

        assert_eq!([texts, enough], [[Some(Err(Unread::Failed))], [Some(Ok("3 bytes".to_owned()))]]);
    }

    #[tokio::test]
    async fn a_file_that_panics_or_hangs_costs_only_itself() {
        let (files, took) = fetched(&["hang", "3", "panic", "hang", "4", "hang", "5"], 100).await;

        assert_eq!(files, [None, Some(3), None, None, Some(4), None, Some(5)]);
        assert_eq!(took, TIMEOUT);
    }

    #[tokio::test]
    async fn the_files_of_a_turn_are_fetched_at_once() {
        let (files, took) = fetched(&["slow"; AT_ONCE], 100).await;

        assert_eq!(files, [Some(4); AT_ONCE]);
        assert_eq!(took, Duration::from_secs(20));
    }

    #[tokio::test]
    async fn the_files_of_a_turn_have_a_limit_in_all() {
        let most = BUDGET / 8;
        let part = most.to_string();
        let (files, _) = fetched(&[&part, &part, &part, "1", &part, "2"], most).await;

        assert_eq!(files.iter().flatten().sum::<usize>(), 3 * most + 3, "{files:?}");
    }

    #[tokio::test]
    async fn a_runtime_reads_no_file_that_is_larger_than_it_wants() {
        let (files, _) = fetched_within(&FileBudget::new(BUDGET), &["11", "10", "whatever is allowed"], 100, 10).await;

        assert_eq!(sizes(&files), [None, Some(10), Some(10)]);
    }

    #[tokio::test]
    async fn a_runtime_gets_no_file_that_is_something_else_than_it_reads() {
        let (files, _) = fetched_within(&FileBudget::new(BUDGET), &["picture", "3"], 100, usize::MAX).await;

        let types: Vec<_> = files.iter().map(|file| (&*file.attachment.media_type, file.bytes.is_some())).collect();
        assert_eq!(types, [("image/png", false), ("text/plain", true)]);
    }

    #[tokio::test]
    async fn the_files_of_all_turns_have_a_limit_in_all_and_leave_room_for_a_small_one() {
        let budget = FileBudget::new(1000);
        let mut turns = Vec::new();
        for _ in 0..5 {
            turns.push(fetched_within(&budget, &["whatever is allowed"], 600, usize::MAX).await);
        }
        let (small, _) = fetched_within(&budget, &["3", "900", "3"], 600, usize::MAX).await;

        let of_turns: Vec<_> = turns.iter().flat_map(|(files, _)| sizes(files)).collect();
        assert_eq!(of_turns, [Some(500), Some(250), Some(125), Some(62), Some(31)]);
        assert_eq!(sizes(&small), [Some(3), None, Some(3)]);
        drop((turns, small));
        let (again, _) = fetched_within(&budget, &["500"], 600, usize::MAX).await;
        assert_eq!(sizes(&again), [Some(500)]);
    }

    /// Many wait while the store is away.
    #[tokio::test]
    async fn a_stored_file_reserves_no_more_than_it_has() {
        let (size, left, _) = fetched_from_store(true).await;

        assert_eq!((size, left), (Some(10), 990));
    }

    #[tokio::test]
    async fn a_stored_file_that_never_comes_in_time_costs_only_itself() {
        let (size, _, took) = fetched_from_store(false).await;

        assert!(size.is_none() && took < TIMEOUT, "{size:?}, {took:?}");
    }

    #[tokio::test]
    async fn a_file_that_hangs_or_fails_gives_its_share_back() {
        let budget = FileBudget::new(1000);
        fetched_within(&budget, &["hang", "panic", "900", "hang"], 600, usize::MAX).await;

        assert_eq!(budget.left(), 1000);
    }
}
