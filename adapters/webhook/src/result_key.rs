//! The keys that open a single result without the hook's token.

use hmac::{Hmac, Mac};
use rejoinder_core::TurnId;
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;

/// How many bytes of the HMAC a result's URL contains.
const BYTES: usize = 16;

/// Makes and verifies the keys of results. They depend on a secret of the gateway, not of a hook, so a result stays
/// readable when its hook changes its secrets or is removed.
#[derive(Clone)]
pub struct ResultKeys(Hmac<Sha256>);

impl ResultKeys {
    #[must_use]
    pub fn new(secret: &SecretString) -> Self {
        Self(keyed(secret.expose_secret().as_bytes()).chain_update(b"rejoinder result\0"))
    }

    fn code(&self, turn: TurnId) -> Hmac<Sha256> {
        self.0.clone().chain_update(turn.as_uuid().as_bytes())
    }

    /// The key that opens the result of `turn`; it is part of the result's URL.
    pub(crate) fn of(&self, turn: TurnId) -> String {
        hex::encode(&self.code(turn).finalize().into_bytes()[..BYTES])
    }

    pub(crate) fn opens(&self, turn: TurnId, key: &str) -> bool {
        let mut shown = [0; BYTES];
        hex::decode_to_slice(key, &mut shown).is_ok() && self.code(turn).verify_truncated_left(&shown).is_ok()
    }
}

/// HMAC-SHA256 with `secret` as its key.
pub(crate) fn keyed(secret: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(secret).expect("HMAC accepts a key of any length")
}
