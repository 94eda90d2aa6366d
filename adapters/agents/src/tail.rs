//! The end of what a program writes for the operator, without the secrets that it was given.

use std::{collections::BTreeMap, env};

use parking_lot::Mutex;
use rejoinder_config::Secret;
use rejoinder_core::Masker;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::tools::{end_of_token, without_tokens};

/// How many bytes are kept.
const KEPT: usize = 4 * 1024;

/// The last bytes of a stream, while it is read.
#[derive(Default)]
pub struct Tail {
    secrets: Vec<String>,
    masker: Masker,
    kept: Mutex<Vec<u8>>,
}

impl Tail {
    /// For a program with these variables of its own, and these of the gateway: their values are masked.
    #[must_use]
    pub fn of(own: &BTreeMap<String, Secret>, inherited: &[String]) -> Self {
        let own = own.values().map(|value| value.expose().to_owned());
        let inherited = inherited.iter().filter_map(|name| env::var(name).ok());
        let secrets: Vec<String> = own.chain(inherited).collect();
        let masker = Masker::new(secrets.iter().map(String::as_str));
        Self { secrets, masker, kept: Mutex::default() }
    }

    /// Reads a stream to its end.
    pub async fn follow(&self, mut stream: impl AsyncRead + Unpin) {
        let mut piece = [0; 1024];
        while let Ok(read @ 1..) = stream.read(&mut piece).await {
            self.push(&piece[..read]);
        }
    }

    fn push(&self, piece: &[u8]) {
        let mut kept = self.kept.lock();
        kept.extend_from_slice(piece);
        let excess = kept.len().saturating_sub(KEPT);
        kept.drain(..excess);
    }

    /// The text, without white space at its ends, and without secrets.
    pub fn text(&self) -> String {
        let kept = self.kept.lock();
        let half_a_secret = if kept.len() < KEPT { 0 } else { self.end_of_secret(&kept).max(end_of_token(&kept)) };
        // Its beginning may be half a character.
        let text = String::from_utf8_lossy(&kept[half_a_secret..]);
        self.masked(text.trim_start_matches(char::REPLACEMENT_CHARACTER).trim().to_owned())
    }

    /// The text without secrets, and without tokens of the gateway's tools.
    pub fn masked(&self, text: String) -> String {
        self.masker.text(without_tokens(text))
    }

    /// How many bytes of a secret whose beginning was not kept may stand first.
    fn end_of_secret(&self, kept: &[u8]) -> usize {
        let ends = |secret: &String| (1..secret.len()).find(|&start| kept.starts_with(&secret.as_bytes()[start..]));
        let lengths = self.secrets.iter().filter_map(|secret| Some(secret.len() - ends(secret)?));
        lengths.max().unwrap_or(0)
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

    #[tokio::test]
    async fn secrets_are_masked_also_where_the_text_begins() {
        let secret = "sk-0123456789";
        let own = [("KEY".to_owned(), secret.into())].into_iter().collect();
        let tail = Tail::of(&own, &["CARGO_PKG_NAME".to_owned()]);
        let rest = format!(" is {secret} of {}", env!("CARGO_PKG_NAME"));
        // Of the first one, its last ten bytes are kept.
        let filler = "x".repeat(KEPT - rest.len() - 10);
        tail.follow(format!("{secret}{filler}{rest}").as_bytes()).await;

        assert_eq!(tail.text(), format!("{filler} is •••• of ••••"));
    }
}
