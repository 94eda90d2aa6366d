//! Fetches the files of a turn for its run.

use std::{
    panic::AssertUnwindSafe,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use futures_util::{FutureExt, StreamExt, stream};
use rejoinder_guard::{Attachment, Timestamp};
use tracing::warn;

use crate::{
    model::agent::AgentFile,
    ports::{
        agent::AgentRuntime,
        channel::{ChannelAdapter, FetchError},
        clock::SharedClock,
    },
};

/// The time limit for fetching all files of a turn.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How many files are fetched at once.
const AT_ONCE: usize = 4;

/// How many bytes the fetched files of a turn may have in total, unless one alone may have more.
const MAX_BYTES: usize = 64 << 20;

/// Fetches the files of one turn.
pub(super) struct Files<'a> {
    pub(super) channel: &'a dyn ChannelAdapter,
    /// The largest file, in bytes.
    pub(super) limit: usize,
    pub(super) clock: &'a SharedClock,
}

impl Files<'_> {
    /// The files, with the bytes of those that the runtime reads and the platform stores. A file that cannot be fetched is
    /// given by name.
    pub(super) async fn fetch(&self, attachments: &[&Attachment], runtime: &dyn AgentRuntime) -> Vec<AgentFile> {
        let (deadline, left) = (self.clock.now() + TIMEOUT, AtomicUsize::new(self.limit.max(MAX_BYTES)));
        // Collected, because the compiler cannot prove that a stream of a lazy map is `Send`.
        let files: Vec<_> = attachments
            .iter()
            .map(|attachment| self.file(attachment, runtime.reads(&attachment.media_type), deadline, &left))
            .collect();
        stream::iter(files).buffered(AT_ONCE).collect().await
    }

    async fn file(&self, attachment: &Attachment, is_read: bool, deadline: Timestamp, left: &AtomicUsize) -> AgentFile {
        let bytes = if is_read { self.bytes(attachment, deadline, left).await } else { None };
        AgentFile { attachment: attachment.clone(), bytes }
    }

    /// The bytes of a file, taken from what is `left` for the turn.
    async fn bytes(&self, attachment: &Attachment, deadline: Timestamp, left: &AtomicUsize) -> Option<Vec<u8>> {
        let limit = self.limit.min(left.load(Ordering::Relaxed));
        let fetching = AssertUnwindSafe(self.channel.fetch(attachment, limit)).catch_unwind();
        let fetched = tokio::select! {
            biased;
            fetched = fetching => {
                fetched.unwrap_or_else(|_| Err(FetchError::Failed("the adapter panicked".to_owned())))
            }
            () = self.clock.sleep_until(deadline) => Err(FetchError::Failed("timed out".to_owned())),
        };
        let fetched = fetched.and_then(|bytes| {
            let take = |left: usize| left.checked_sub(bytes.len());
            match left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
                Ok(_) => Ok(bytes),
                Err(limit) => Err(FetchError::TooLarge { limit }),
            }
        });
        match fetched {
            Ok(bytes) => Some(bytes),
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
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::{
        Capabilities, ChannelError, ChannelHealth, ChannelId, ConversationRef, Delivery, DeliveryError, Intake,
        Receipt,
        conformance::{
            clock::TestClock,
            scripted::{Script, ScriptedAgent, capabilities},
        },
    };

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
                // Ignores the limit.
                size => Ok(vec![b'x'; size.parse::<usize>().unwrap_or(limit)]),
            }
        }

        async fn deliver(&self, _: &Delivery) -> Result<Receipt, DeliveryError> {
            Err(DeliveryError::Unsupported("nothing is sent".to_owned()))
        }
    }

    /// The sizes of the files, as far as they were fetched, and how long that took.
    async fn fetched(urls: &[&str], limit: usize) -> (Vec<Option<usize>>, Duration) {
        let clock = TestClock::new();
        let shared: SharedClock = Arc::clone(&clock) as SharedClock;
        let runtime = ScriptedAgent::new(Arc::clone(&shared), |_| Script::hangs()).reading(&["text/"]);
        let channel = Platform { channel: ChannelId::new("test", "main"), clock: Arc::clone(&shared) };
        let attachment = |url: &&str| Attachment {
            name: (*url).to_owned(),
            media_type: "text/plain".to_owned(),
            url: (*url).to_owned(),
        };
        let attachments: Vec<_> = urls.iter().map(attachment).collect();
        let begun = shared.now();
        let files = Files { channel: &channel, limit, clock: &shared };
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
        (files.into_iter().map(|file| file.bytes.map(|bytes| bytes.len())).collect(), shared.now().since(begun))
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
        let part = (MAX_BYTES / 4).to_string();
        let (files, _) = fetched(&[&part, &part, &part, "1", &part, "2"], MAX_BYTES / 4).await;

        assert_eq!(files.iter().flatten().sum::<usize>(), 3 * (MAX_BYTES / 4) + 3, "{files:?}");
        let (files, _) = fetched(&["whatever is allowed", "1"], 2 * MAX_BYTES).await;
        assert_eq!(files, [Some(2 * MAX_BYTES), None]);
    }
}
