//! The end of what a program writes for the operator.

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt};

/// How many bytes are kept.
const KEPT: usize = 4 * 1024;

/// The last bytes of a stream, while it is read.
#[derive(Debug, Default)]
pub(super) struct Tail(Mutex<Vec<u8>>);

impl Tail {
    /// Reads a stream to its end.
    pub(super) async fn follow(&self, mut stream: impl AsyncRead + Unpin) {
        let mut piece = [0; 1024];
        while let Ok(read @ 1..) = stream.read(&mut piece).await {
            self.push(&piece[..read]);
        }
    }

    fn push(&self, piece: &[u8]) {
        let mut kept = self.0.lock();
        kept.extend_from_slice(piece);
        let excess = kept.len().saturating_sub(KEPT);
        kept.drain(..excess);
    }

    /// The text, without white space at its ends.
    pub(super) fn text(&self) -> String {
        let kept = self.0.lock();
        // Its beginning may be half a character.
        String::from_utf8_lossy(&kept).trim_start_matches(char::REPLACEMENT_CHARACTER).trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_end_is_kept() {
        let tail = Tail::default();
        let text = "ä".repeat(KEPT) + "x\n";
        tail.follow(text.as_bytes()).await;

        let kept = tail.text();
        assert!(kept.len() <= KEPT && kept.starts_with('ä') && kept.ends_with("äx"), "{} bytes", kept.len());
    }
}
