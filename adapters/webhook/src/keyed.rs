//! Keyed digests.

use hmac::{Hmac, Mac};
use sha2::Sha256;

/// HMAC-SHA256 with `secret` as its key.
pub(crate) fn keyed(secret: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(secret).expect("HMAC accepts a key of any length")
}
