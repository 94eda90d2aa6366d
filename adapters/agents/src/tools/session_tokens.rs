//! Tokens that open the gateway's tools, also those of sessions that outlive their runs.

use std::sync::Arc;

/// What each token begins with. Hexadecimal digits follow, so that it is known in what a program writes.
pub const TOKEN_PREFIX: &str = "rjt_";

/// How many of its last digits may be seen: too few to guess the others.
const HARMLESS: usize = 32;

/// The text without tokens.
pub(crate) fn without_tokens(text: String) -> String {
    if !text.contains(TOKEN_PREFIX) {
        return text;
    }
    let mut parts = text.split(TOKEN_PREFIX);
    let mut masked = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        masked.push_str("••••");
        masked.push_str(part.trim_start_matches(|digit: char| digit.is_ascii_hexdigit()));
    }
    masked
}

/// How many bytes at the beginning may be the end of a token.
pub(crate) fn end_of_token(text: &[u8]) -> usize {
    let prefix = (1..=TOKEN_PREFIX.len()).find(|&start| text.starts_with(&TOKEN_PREFIX.as_bytes()[start..]));
    let prefix = TOKEN_PREFIX.len() - prefix.unwrap_or(TOKEN_PREFIX.len());
    let digits = text[prefix..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    if digits >= HARMLESS { prefix + digits } else { 0 }
}

/// Gives sessions tokens for the tools. An agent is told the token of its session once, and with it calls the tools of the run that the
/// session has in that moment.
pub trait SessionTokens: Send + Sync {
    /// A new token. It opens nothing yet.
    fn issue(&self) -> Arc<str>;

    /// The token of a session opens the tools of the run with the token `run`, until that ends, and no longer those of an earlier run.
    fn lend(&self, session: &str, run: &str);

    /// The token of a session opens nothing any more.
    fn revoke(&self, session: &str);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_token_is_left() {
        let token = format!("{TOKEN_PREFIX}{}", "0f".repeat(32));

        assert_eq!(without_tokens(format!("Bearer {token}, {token}.")), "Bearer ••••, ••••.");
        assert_eq!(without_tokens("nothing".to_owned()), "nothing");
    }

    #[test]
    fn the_end_of_a_token_is_known() {
        let token = format!("{TOKEN_PREFIX}{}", "0f".repeat(32));
        for cut in 1..=36 {
            let rest = &token[cut..];
            assert_eq!(end_of_token(format!("{rest} is wrong").as_bytes()), rest.len(), "{rest}");
        }
        assert_eq!([end_of_token(b"deadbeef is a word"), end_of_token(b"")], [0, 0]);
    }
}
