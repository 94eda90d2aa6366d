//! Reads documents, each in a process of its own: libraries for them panic, overflow their stacks and take what memory there is.

use std::{io, path::PathBuf, process::Stdio, time::Duration};

use async_trait::async_trait;
use rejoinder_core::{TextReader, Unread};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::Command,
    sync::Semaphore,
    time::timeout,
};
use tracing::warn;

use crate::{
    command::{READ_FILE, own_program, reason},
    document::text_of,
    kind::{Kind, MAX_FILE},
    output::MOST_TEXT,
};

/// How many documents are read at once. The others wait.
const AT_ONCE: usize = 2;

/// How long a process has for a document.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The exit code of a program that panicked.
const PANICKED: i32 = 101;

/// Reads documents in child processes.
#[derive(Debug)]
pub struct ChildReader {
    program: PathBuf,
    free: Semaphore,
}

impl ChildReader {
    /// With a program that calls [`read_file`](crate::read_file) first of all.
    pub fn new(program: PathBuf) -> Self {
        Self { program, free: Semaphore::new(AT_ONCE) }
    }

    /// With the running program.
    ///
    /// # Errors
    /// When its path is unknown.
    pub fn own() -> io::Result<Self> {
        own_program().map(Self::new)
    }

    async fn read(&self, kind: Kind, bytes: &[u8]) -> io::Result<Result<String, Unread>> {
        let mut command = Command::new(&self.program);
        command.arg0("rejoinder").args([READ_FILE, kind.name()]).env_clear().current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        // A group of its own: a signal to the gateway's group does not end it.
        let mut child = command.process_group(0).kill_on_drop(true).spawn()?;
        let (mut stdin, stdout) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        let write = async move {
            // One that has ended tells why.
            let _ = stdin.write_all(bytes).await;
        };
        let mut text = Vec::new();
        let mut stdout = stdout.take(MOST_TEXT as u64);
        let ((), read) = tokio::join!(write, stdout.read_to_end(&mut text));
        read?;
        let status = child.wait().await?;
        Ok(match status.code() {
            Some(0) => String::from_utf8(text).map_err(|_| Unread::Broken),
            Some(PANICKED) => Err(Unread::Broken),
            Some(code) => Err(reason(code).unwrap_or(Unread::Failed)),
            // Ended by a limit, by an overflow of its stack, or because there was no memory.
            None => Err(Unread::TooMuch),
        })
    }
}

#[async_trait]
impl TextReader for ChildReader {
    fn reads(&self, media_type: &str) -> Option<usize> {
        Kind::of(media_type).map(|_| MAX_FILE)
    }

    async fn text(&self, media_type: &str, bytes: &[u8]) -> Result<String, Unread> {
        let kind = Kind::of(media_type).ok_or(Unread::Broken)?;
        if kind == Kind::Table && bytes.len() <= MOST_TEXT {
            // Nothing in it has to be understood.
            return text_of(kind, bytes);
        }
        let _place = self.free.acquire().await.map_err(|_| Unread::Failed)?;
        match timeout(TIMEOUT, self.read(kind, bytes)).await {
            Ok(Ok(read)) => read,
            Ok(Err(error)) => {
                warn!(%error, "the process that reads documents cannot be run");
                Err(Unread::Failed)
            }
            Err(_) => Err(Unread::TooMuch),
        }
    }
}
