//! The tokens that callers send.

use std::fmt;

use axum::http::{HeaderMap, header};
use hmac::{Hmac, Mac};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

/// The tokens that one surface accepts: one, or two while the operator changes it.
#[derive(Clone)]
pub struct Tokens(
    /// SHA-256 of each. All hashes have the same length, so comparing them does not reveal the length of a token.
    Vec<[u8; 32]>,
);

impl Tokens {
    /// White space around a token does not count.
    #[must_use]
    pub fn new<'a>(tokens: impl IntoIterator<Item = &'a SecretString>) -> Self {
        Self(tokens.into_iter().map(|token| token_digest(token.expose_secret().as_bytes())).collect())
    }

    /// Whether `sent` is one of them. Takes the same time for every text of a length.
    #[must_use]
    pub fn open_for(&self, sent: &[u8]) -> bool {
        let sent = token_digest(sent);
        self.0.iter().fold(Choice::from(0), |is_known, token| is_known | token.ct_eq(&sent)).into()
    }

    /// A keyed hash of `message`, which nobody makes who does not know the tokens.
    ///
    /// # Panics
    /// Never: HMAC takes keys of any length.
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> [u8; 32] {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.0.as_flattened()).expect("HMAC takes keys of any length");
        mac.update(message);
        mac.finalize().into_bytes().into()
    }
}

impl From<&str> for Tokens {
    fn from(token: &str) -> Self {
        Self::new([&token.into()])
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tokens")
    }
}

/// The SHA-256 of a token, without the white space around it.
#[must_use]
pub fn token_digest(token: &[u8]) -> [u8; 32] {
    Sha256::digest(token.trim_ascii()).into()
}

/// The token of the one `Authorization: Bearer …` of a request; `None` if it has none.
#[must_use]
pub fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut sent = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(sent), None) = (sent.next(), sent.next()) else { return None };
    let (scheme, token) = sent.as_bytes().split_at_checked(6)?;
    (scheme.eq_ignore_ascii_case(b"bearer") && token.starts_with(b" ")).then_some(token)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(&["Bearer secret"], true)]
    #[case(&["bearer  secret "], true)]
    #[case(&["Bearer Secret"], false)]
    #[case(&["Bearer secret2"], false)]
    #[case(&["Bearer "], false)]
    #[case(&["Bearersecret"], false)]
    #[case(&["secret"], false)]
    #[case(&["Basic secret"], false)]
    #[case(&["Bearer secret", "Bearer secret"], false)]
    #[case(&[], false)]
    fn only_the_token_opens(#[case] authorization: &[&str], #[case] opens: bool) {
        let headers = authorization.iter().map(|value| (header::AUTHORIZATION, value.parse().unwrap())).collect();

        assert_eq!(bearer(&headers).is_some_and(|sent| Tokens::from("secret").open_for(sent)), opens);
    }

    #[test]
    fn while_it_is_changed_the_new_and_the_old_token_open() {
        let tokens = Tokens::new([&"new".into(), &"old\n".into()]);

        assert_eq!(["new", "old", "other"].map(|sent| tokens.open_for(sent.as_bytes())), [true, true, false]);
    }

    #[test]
    fn no_token_is_in_the_debug_output() {
        assert_eq!(format!("{:?}", Tokens::from("hunter2")), "Tokens");
    }
}
