//! The text of documents, for agents that cannot open them.

use async_trait::async_trait;

use crate::model::Unread;

/// Reads documents.
#[async_trait]
pub trait TextReader: Send + Sync + 'static {
    /// The size of the largest file of this type that it reads, in bytes; `None`: it does not know the type.
    fn reads(&self, media_type: &str) -> Option<usize>;

    /// The text of such a file, or the beginning of a long one. It takes bounded time and memory, whatever the bytes are.
    ///
    /// # Errors
    /// When there is no text.
    async fn text(&self, media_type: &str, bytes: &[u8]) -> Result<String, Unread>;
}
