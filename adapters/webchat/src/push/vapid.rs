//! Says to push services who sends (RFC 8292).

use aws_lc_rs::{
    agreement::{ECDH_P256, PrivateKey},
    error::Unspecified,
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair},
};
use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use rejoinder_core::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use url::Url;

/// How long a token holds, in seconds: half of what a push service may allow at most.
const LIFETIME: i64 = 12 * 60 * 60;

/// The key of the gateway. Browsers subscribe for it, and their push services take messages that it signs.
pub(crate) struct VapidKey {
    pair: EcdsaKeyPair,
    public: String,
}

impl VapidKey {
    /// The key that belongs to `secret`.
    pub(crate) fn of(secret: &SecretString) -> Self {
        let number = |count: u8| {
            let text = [&b"rejoinder push key "[..], &[count], secret.expose_secret().as_bytes()].concat();
            Sha256::digest(text)
        };
        // Of 2^32 numbers one is no key.
        (0..=u8::MAX).find_map(|count| Self::of_number(&number(count))).expect("some number is a key")
    }

    fn of_number(number: &[u8]) -> Option<Self> {
        let public = PrivateKey::from_private_key(&ECDH_P256, number).ok()?.compute_public_key().ok()?;
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let pair = EcdsaKeyPair::from_private_key_and_public_key(algorithm, number, public.as_ref()).ok()?;
        Some(Self { pair, public: BASE64_URL_SAFE_NO_PAD.encode(public) })
    }

    /// The public key, as browsers take it.
    pub(crate) fn public(&self) -> &str {
        &self.public
    }

    /// The header `Authorization` of a message to `endpoint`. `contact` says where the operator is reached.
    pub(super) fn authorization(&self, endpoint: &Url, contact: &str, now: Timestamp) -> Result<String, Unspecified> {
        let encoded = |json: String| BASE64_URL_SAFE_NO_PAD.encode(json);
        let audience = endpoint.origin().ascii_serialization();
        let claims = json!({ "aud": audience, "exp": now.as_millis() / 1000 + LIFETIME, "sub": contact });
        let header = json!({ "typ": "JWT", "alg": "ES256" });
        let signed = format!("{}.{}", encoded(header.to_string()), encoded(claims.to_string()));
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes())?;
        Ok(format!("vapid t={signed}.{}, k={}", BASE64_URL_SAFE_NO_PAD.encode(signature), self.public))
    }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
    use serde_json::Value;

    use super::*;

    fn decoded(text: &str) -> Vec<u8> {
        BASE64_URL_SAFE_NO_PAD.decode(text).expect("base64")
    }

    #[test]
    fn a_secret_has_one_key() {
        let [one, same, other] = ["one", "one", "other"].map(|secret| VapidKey::of(&secret.into()).public);

        assert_eq!((one.len(), &one), (87, &same));
        assert_ne!(one, other);
    }

    #[test]
    fn a_token_is_for_one_push_service_and_signed() {
        let key = VapidKey::of(&"secret".into());
        let endpoint: Url = "https://push.example.org:8443/x/y?z".parse().expect("a URL");

        let header =
            key.authorization(&endpoint, "mailto:a@example.org", Timestamp::from_millis(5_000)).expect("signed");

        let (token, public) = header.strip_prefix("vapid t=").and_then(|rest| rest.split_once(", k=")).expect("both");
        assert_eq!(public, key.public());
        let (signed, signature) = token.rsplit_once('.').expect("it is signed");
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, decoded(public));
        public.verify(signed.as_bytes(), &decoded(signature)).expect("the signature is right");
        let (_, claims) = signed.split_once('.').expect("it has claims");
        let claims: Value = serde_json::from_slice(&decoded(claims)).expect("JSON");
        assert_eq!(
            claims,
            json!({ "aud": "https://push.example.org:8443", "exp": 5 + LIFETIME, "sub": "mailto:a@example.org" })
        );
    }
}
