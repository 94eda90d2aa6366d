//! Verifies what authenticators of people say and sign: Web Authentication, Level 2, sections 7.1 and 7.2, without attestation. Pure.
//!
//! Where a passkey is made, and by what, is not proved and not asked for: so the browser's own account of the public key
//! (`getPublicKey()`) is as good as the one in the authenticator's data, and nothing here reads CBOR.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ED25519, ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey,
    VerificationAlgorithm,
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The COSE numbers of the algorithms that a passkey may have, the preferred one first: `EdDSA`, `ES256`, `RS256`.
pub(crate) const ALGORITHMS: [i64; 3] = [-8, -7, -257];

/// The longest public key, in bytes: one of RSA with 8192 bits.
const MAX_KEY: usize = 1100;

/// The longest id of a passkey, in bytes (section 4, "Credential ID").
const MAX_ID: usize = 1023;

/// What the authenticator's data has before what is optional: a digest, the flags and the counter (section 6.1).
const HEAD: usize = 37;

const USER_PRESENT: u8 = 0x01;
const BACKUP_ELIGIBLE: u8 = 0x08;
const BACKED_UP: u8 = 0x10;
const HAS_CREDENTIAL: u8 = 0x40;
const HAS_EXTENSIONS: u8 = 0x80;

/// The page for which passkeys are: a relying party.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Party {
    /// The host of the page.
    pub(crate) id: String,
    /// The origin of the page, as browsers write it.
    pub(crate) origin: String,
}

/// Why a passkey is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PasskeyError {
    #[error("what the authenticator sent cannot be read")]
    Malformed,
    #[error("it is for something else")]
    OtherUse,
    #[error("it is for a page of another origin")]
    OtherOrigin,
    #[error("it is for another host")]
    OtherParty,
    #[error("nobody was there")]
    NotPresent,
    #[error("the kind of key is not supported")]
    OtherAlgorithm,
    #[error("the signature is wrong")]
    WrongSignature,
    #[error("a copy of the passkey was used")]
    Copied,
}

/// What the browser says that was signed.
#[derive(Debug, Deserialize)]
pub(crate) struct ClientData {
    r#type: String,
    challenge: String,
    origin: String,
    #[serde(default, rename = "crossOrigin")]
    is_cross_origin: bool,
}

impl ClientData {
    pub(crate) fn read(json: &[u8]) -> Result<Self, PasskeyError> {
        serde_json::from_slice(json).map_err(|_| PasskeyError::Malformed)
    }

    /// The challenge that was signed. The gateway must have given it, and nobody may have signed it before.
    pub(crate) fn challenge(&self) -> Result<Vec<u8>, PasskeyError> {
        BASE64_URL_SAFE_NO_PAD.decode(&self.challenge).map_err(|_| PasskeyError::Malformed)
    }

    fn check(&self, kind: &str, party: &Party) -> Result<(), PasskeyError> {
        if self.r#type != kind {
            return Err(PasskeyError::OtherUse);
        }
        if self.origin != party.origin || self.is_cross_origin {
            return Err(PasskeyError::OtherOrigin);
        }
        Ok(())
    }
}

/// A passkey as an authenticator has made it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NewPasskey {
    pub(crate) id: Vec<u8>,
    pub(crate) counter: u32,
}

/// What a browser sends of a new passkey.
pub(crate) struct Registration<'a> {
    pub(crate) client_data: &'a ClientData,
    pub(crate) authenticator_data: &'a [u8],
    /// Its public key, as a `SubjectPublicKeyInfo` in DER.
    pub(crate) key: &'a [u8],
    pub(crate) algorithm: i64,
}

impl Registration<'_> {
    /// The passkey, if it is one for `party` and can be used.
    pub(crate) fn verify(&self, party: &Party) -> Result<NewPasskey, PasskeyError> {
        self.client_data.check("webauthn.create", party)?;
        let data = AuthenticatorData::read(self.authenticator_data)?;
        data.check(party)?;
        let id = data.credential.ok_or(PasskeyError::Malformed)?;
        let algorithm = algorithm(self.algorithm)?;
        if self.key.len() > MAX_KEY {
            return Err(PasskeyError::OtherAlgorithm);
        }
        ParsedPublicKey::new(algorithm, self.key).map_err(|_| PasskeyError::OtherAlgorithm)?;
        Ok(NewPasskey { id: id.to_vec(), counter: data.counter })
    }
}

/// What a browser sends of a passkey that has signed.
pub(crate) struct Assertion<'a> {
    pub(crate) client_data: &'a ClientData,
    /// The client data as they were sent, which are signed.
    pub(crate) client_json: &'a [u8],
    pub(crate) authenticator_data: &'a [u8],
    pub(crate) signature: &'a [u8],
}

impl Assertion<'_> {
    /// The new counter of the passkey with this key, algorithm and counter, if it has signed for `party`.
    pub(crate) fn verify(&self, party: &Party, (key, number, counter): (&[u8], i64, u32)) -> Result<u32, PasskeyError> {
        self.client_data.check("webauthn.get", party)?;
        let data = AuthenticatorData::read(self.authenticator_data)?;
        data.check(party)?;
        let signed = [self.authenticator_data, &Sha256::digest(self.client_json)[..]].concat();
        let key = UnparsedPublicKey::new(algorithm(number)?, key);
        key.verify(&signed, self.signature).map_err(|_| PasskeyError::WrongSignature)?;
        // Authenticators that do not count say 0.
        if (data.counter, counter) != (0, 0) && data.counter <= counter {
            return Err(PasskeyError::Copied);
        }
        Ok(data.counter)
    }
}

fn algorithm(number: i64) -> Result<&'static dyn VerificationAlgorithm, PasskeyError> {
    match number {
        -8 => Ok(&ED25519),
        -7 => Ok(&ECDSA_P256_SHA256_ASN1),
        -257 => Ok(&RSA_PKCS1_2048_8192_SHA256),
        _ => Err(PasskeyError::OtherAlgorithm),
    }
}

/// What an authenticator says beside its signature.
struct AuthenticatorData<'a> {
    party: &'a [u8],
    flags: u8,
    counter: u32,
    /// The id of the passkey, if it is new.
    credential: Option<&'a [u8]>,
}

impl<'a> AuthenticatorData<'a> {
    fn read(data: &'a [u8]) -> Result<Self, PasskeyError> {
        let (head, rest) = data.split_at_checked(HEAD).ok_or(PasskeyError::Malformed)?;
        let (party, head) = head.split_at(32);
        let [flags, counter @ ..] = head else { return Err(PasskeyError::Malformed) };
        let flags = *flags;
        let counter = counter.try_into().map(u32::from_be_bytes).map_err(|_| PasskeyError::Malformed)?;
        let credential = if flags & HAS_CREDENTIAL == 0 { None } else { Some(credential(rest)?) };
        let has_more = flags & (HAS_CREDENTIAL | HAS_EXTENSIONS) != 0;
        let is_whole = has_more != rest.is_empty();
        let is_copied_only_if_it_may = flags & BACKED_UP == 0 || flags & BACKUP_ELIGIBLE != 0;
        if !is_whole || !is_copied_only_if_it_may {
            return Err(PasskeyError::Malformed);
        }
        Ok(Self { party, flags, counter, credential })
    }

    fn check(&self, party: &Party) -> Result<(), PasskeyError> {
        if !bool::from(self.party.ct_eq(&Sha256::digest(&party.id)[..])) {
            return Err(PasskeyError::OtherParty);
        }
        if self.flags & USER_PRESENT == 0 {
            return Err(PasskeyError::NotPresent);
        }
        Ok(())
    }
}

/// The id of a new passkey: behind the kind of authenticator, and before the key.
fn credential(data: &[u8]) -> Result<&[u8], PasskeyError> {
    let (length, rest) = data.get(16..).and_then(|data| data.split_at_checked(2)).ok_or(PasskeyError::Malformed)?;
    let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
    let (id, key) = rest.split_at_checked(length).ok_or(PasskeyError::Malformed)?;
    if id.is_empty() || id.len() > MAX_ID || key.is_empty() {
        return Err(PasskeyError::Malformed);
    }
    Ok(id)
}

#[cfg(test)]
pub(crate) mod tests;
