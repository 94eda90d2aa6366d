//! Who calls, by the token that was sent, and which conversations the caller may use.

use std::{fmt, sync::Arc};

use axum::http::HeaderMap;
use futures_util::future::BoxFuture;
use rejoinder_core::StoreError;
use rejoinder_kit::{Guesses, Peer, Tokens, bearer};

use crate::error::ApiError;

/// Finds the operators' token that opens the API; `None` if there is no such token. Fails while it cannot be read which ones there are.
pub type OperatorTokens =
    Arc<dyn for<'a> Fn(&'a [u8]) -> BoxFuture<'a, Result<Option<OperatorToken>, StoreError>> + Send + Sync>;

/// A token of an operator's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorToken {
    /// Its name; `None` for the one of the configuration.
    pub name: Option<String>,
    /// Whether it may run agents on this channel.
    pub may_ask: bool,
}

/// Whose token was sent. Conversations belong to it, and so do the persons that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TokenHolder(String);

impl TokenHolder {
    pub(crate) fn channel() -> Self {
        Self("own".to_owned())
    }

    /// The operators' token.
    pub(crate) fn operator(token: &OperatorToken) -> Self {
        Self(token.name.as_ref().map_or_else(|| "admin".to_owned(), |name| format!("token:{}", without_slash(name))))
    }

    /// The id of a person that the holder names; of the holder if it names none.
    pub(crate) fn sender(&self, user: Option<&str>) -> String {
        user.map_or_else(|| self.0.clone(), |user| format!("{}/{user}", self.0))
    }

    /// The conversation of a person that the holder names.
    pub(crate) fn conversation(&self, user: &str) -> String {
        format!("user:{}/{user}", self.0)
    }

    /// The conversation of one call alone.
    pub(crate) fn own_conversation(&self, external_id: &str) -> String {
        format!("once:{}/{external_id}", self.0)
    }

    /// Whether a conversation is one of the holder's.
    pub(crate) fn has(&self, chat: &str) -> bool {
        let path = chat.strip_prefix("user:").or_else(|| chat.strip_prefix("once:"));
        path.and_then(|path| path.split_once('/')).is_some_and(|(holder, _)| holder == self.0)
    }
}

impl fmt::Display for TokenHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// So that no name can end where the name of a person begins.
fn without_slash(name: &str) -> String {
    name.replace('%', "%25").replace('/', "%2F")
}

/// Who may use one API.
pub(crate) struct Access {
    pub(crate) own: Option<Tokens>,
    pub(crate) guesses: Arc<Guesses>,
    /// The channel, for the log and the metrics.
    pub(crate) surface: String,
}

impl Access {
    /// Finds out whose token a request has.
    /// Fails when it has none that opens the API, too many wrong ones came from the peer, or it cannot be read which ones there are.
    pub(crate) async fn identify(
        &self,
        headers: &HeaderMap,
        peer: Peer,
        operators: &OperatorTokens,
    ) -> Result<TokenHolder, ApiError> {
        let Some(sent) = bearer(headers) else {
            self.guesses.missing(peer, &self.surface);
            return Err(ApiError::unauthorized("send a token as `Authorization: Bearer TOKEN`"));
        };
        self.guesses.turn_of(peer, &self.surface, sent).await?;
        let is_own = self.own.as_ref().is_some_and(|tokens| tokens.open_for(sent));
        let undecided = |_: &StoreError| self.guesses.undecided(peer, &self.surface);
        let operator = if is_own { None } else { operators(sent).await.inspect_err(undecided)? };
        if is_own || operator.is_some() {
            self.guesses.right(peer, &self.surface, sent);
        }
        match operator {
            _ if is_own => Ok(TokenHolder::channel()),
            Some(token) if token.may_ask => Ok(TokenHolder::operator(&token)),
            Some(_) => Err(ApiError::forbidden()),
            None => {
                self.guesses.wrong(peer, &self.surface);
                Err(ApiError::unauthorized("this token opens nothing here"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(name: &str) -> TokenHolder {
        TokenHolder::operator(&OperatorToken { name: Some(name.to_owned()), may_ask: true })
    }

    #[test]
    fn an_owner_has_what_is_theirs_and_nothing_else() {
        let holders = [TokenHolder::channel(), stored("ada"), stored("ada/x"), stored("own"), stored("ada%2Fx")];
        for holder in &holders {
            for other in &holders {
                let is_theirs = holder == other;
                assert_eq!(holder.has(&other.conversation("x/y")), is_theirs, "{holder} {other}");
                assert_eq!(holder.has(&other.own_conversation("1")), is_theirs, "{holder} {other}");
            }
        }
        assert!(!stored("ada").has("user:token:ada"));
    }

    #[test]
    fn no_two_people_share_an_id() {
        assert_eq!(TokenHolder::channel().sender(Some("ada")), "own/ada");
        assert_ne!(stored("ada").sender(Some("x/y")), stored("ada/x").sender(Some("y")));
        assert_ne!(TokenHolder::channel().sender(None), stored("own").sender(None));
    }
}
