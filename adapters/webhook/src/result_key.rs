//! What opens one result without the hook's token.

use hmac::{Hmac, Mac};
use rejoinder_core::TurnId;
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;

use crate::keyed::keyed;

/// How many bytes of the keyed digest stand in a result's address.
const BYTES: usize = 16;

/// Makes and judges the keys of results. They belong to the gateway and not to a hook: a result is read also when
/// its hook has other secrets since, or is not configured any more.
#[derive(Clone)]
pub struct ResultKeys(Hmac<Sha256>);

impl ResultKeys {
    /// The keys under `secret`.
    #[must_use]
    pub fn new(secret: &SecretString) -> Self {
        Self(keyed(secret.expose_secret()).chain_update(b"rejoinder result\0"))
    }

    fn code(&self, turn: TurnId) -> Hmac<Sha256> {
        self.0.clone().chain_update(turn.as_uuid().as_bytes())
    }

    /// What opens the result of `turn`: part of its address.
    pub(crate) fn of(&self, turn: TurnId) -> String {
        hex::encode(&self.code(turn).finalize().into_bytes()[..BYTES])
    }

    /// Whether `key` opens the result of `turn`.
    pub(crate) fn opens(&self, turn: TurnId, key: &str) -> bool {
        let mut shown = [0; BYTES];
        hex::decode_to_slice(key, &mut shown).is_ok() && self.code(turn).verify_truncated_left(&shown).is_ok()
    }
}
