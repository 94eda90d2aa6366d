//! Keyed digests.

use hmac::{Hmac, Mac};
use sha2::Sha256;

/// HMAC-SHA256 with `secret` as its key.
pub(crate) fn keyed(secret: &str) -> Hmac<Sha256> {
    Hmac::new_from_slice(secret.as_bytes()).expect("HMAC accepts a key of any length")
}
