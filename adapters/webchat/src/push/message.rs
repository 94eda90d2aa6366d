//! Encrypts messages for browsers (RFC 8291, in the coding of RFC 8188).

use aws_lc_rs::{
    aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey},
    agreement::{ECDH_P256, PrivateKey, UnparsedPublicKey, agree},
    error::Unspecified,
    hmac, rand,
};
use rejoinder_core::store::PushSubscription;

/// How many bytes a record may have, of which a message is one.
const RECORD: u32 = 4096;

/// How many bytes a public key has: an uncompressed point of P-256.
pub(super) const KEY: u8 = 65;

/// How many bytes the secret of a subscription has.
pub(super) const AUTH: usize = 16;

/// `text` for the browser of a subscription.
///
/// # Errors
/// When its key is none.
pub(super) fn encrypted(text: &[u8], to: &PushSubscription) -> Result<Vec<u8>, Unspecified> {
    let mut salt = [0; 16];
    rand::fill(&mut salt)?;
    sealed(text, to, &PrivateKey::generate(&ECDH_P256)?, &salt)
}

/// With the key pair of this message alone, and its salt.
fn sealed(text: &[u8], to: &PushSubscription, own: &PrivateKey, salt: &[u8; 16]) -> Result<Vec<u8>, Unspecified> {
    let public = own.compute_public_key()?;
    let info = [&b"WebPush: info\0"[..], &to.key, public.as_ref()].concat();
    let peer = UnparsedPublicKey::new(&ECDH_P256, &to.key);
    let secret: [u8; 32] = agree(own, peer, Unspecified, |shared| Ok(derived(&to.auth, shared, &info)))?;
    let key: [u8; 16] = derived(salt, &secret, b"Content-Encoding: aes128gcm\0");
    let nonce: [u8; 12] = derived(salt, &secret, b"Content-Encoding: nonce\0");
    // The byte says that this is the last record.
    let mut record = [text, &[2]].concat();
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key)?);
    key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut record)?;
    Ok([&salt[..], &RECORD.to_be_bytes(), &[KEY], public.as_ref(), &record].concat())
}

/// HKDF with SHA-256 (RFC 5869), for at most 32 bytes.
fn derived<const N: usize>(salt: &[u8], secret: &[u8], info: &[u8]) -> [u8; N] {
    let extracted = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, salt), secret);
    let key = hmac::Key::new(hmac::HMAC_SHA256, extracted.as_ref());
    let expanded = hmac::sign(&key, &[info, &[1]].concat());
    let mut bytes = [0; N];
    bytes.copy_from_slice(&expanded.as_ref()[..N]);
    bytes
}

#[cfg(test)]
mod tests {
    use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};

    use super::*;

    fn decoded(text: &str) -> Vec<u8> {
        BASE64_URL_SAFE_NO_PAD.decode(text).expect("base64")
    }

    /// RFC 8291, section 5 and appendix A.
    #[test]
    fn a_message_is_encrypted_as_the_standard_shows_it() {
        let to = PushSubscription {
            endpoint: String::new(),
            key: decoded("BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"),
            auth: decoded("BTBZMqHH6r4Tts7J_aSIgg"),
        };
        let own = decoded("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw");
        let own = PrivateKey::from_private_key(&ECDH_P256, &own).expect("a key");
        let salt: [u8; 16] = decoded("DGv6ra1nlYgDCS1FRnbzlw").try_into().expect("16 bytes");

        let sealed = sealed(b"When I grow up, I want to be a watermelon", &to, &own, &salt).expect("it is encrypted");

        let expected = "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6Tlz\
            AC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN";
        assert_eq!(BASE64_URL_SAFE_NO_PAD.encode(sealed), expected);
    }

    #[test]
    fn a_key_that_is_none_gets_nothing() {
        let to = PushSubscription { endpoint: String::new(), key: vec![4; 65], auth: vec![1; AUTH] };

        assert!(encrypted(b"text", &to).is_err());
    }
}
