use aws_lc_rs::{
    encoding::{AsDer, PublicKeyX509Der},
    rand::SystemRandom,
    rsa::{KeyPair as RsaKeyPair, KeySize},
    signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256},
};
use proptest::{collection::vec, prelude::*};
use rstest::rstest;
use serde_json::{Value, json};

use super::*;

/// A key of an authenticator.
enum Key {
    Ed25519(Ed25519KeyPair),
    P256(EcdsaKeyPair),
    Rsa(RsaKeyPair),
}

/// An authenticator with one passkey.
pub(crate) struct Authenticator {
    key: Key,
    pub(crate) algorithm: i64,
    pub(crate) party: String,
    pub(crate) origin: String,
    pub(crate) counter: u32,
    pub(crate) flags: u8,
}

impl Authenticator {
    pub(crate) fn new(algorithm: i64, party: &Party) -> Self {
        let key = match algorithm {
            -8 => Key::Ed25519(Ed25519KeyPair::generate().unwrap()),
            -7 => Key::P256(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).unwrap()),
            _ => Key::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).unwrap()),
        };
        let (party, origin) = (party.id.clone(), party.origin.clone());
        Self { key, algorithm, party, origin, counter: 1, flags: USER_PRESENT }
    }

    pub(crate) fn public_key(&self) -> Vec<u8> {
        let key: PublicKeyX509Der<'_> = match &self.key {
            Key::Ed25519(key) => key.public_key().as_der().unwrap(),
            Key::P256(key) => key.public_key().as_der().unwrap(),
            Key::Rsa(key) => key.public_key().as_der().unwrap(),
        };
        key.as_ref().to_vec()
    }

    pub(crate) const ID: [u8; 16] = [7; 16];

    pub(crate) fn client_data(&self, kind: &str, challenge: &[u8]) -> Value {
        let challenge = BASE64_URL_SAFE_NO_PAD.encode(challenge);
        json!({ "type": kind, "challenge": challenge, "origin": self.origin, "crossOrigin": false })
    }

    fn head(&self, flags: u8) -> Vec<u8> {
        let counter = self.counter.to_be_bytes();
        [&Sha256::digest(&self.party)[..], &[self.flags | flags], &counter].concat()
    }

    /// The authenticator's data of the new passkey.
    pub(crate) fn registered(&self) -> Vec<u8> {
        let credential = [&[0; 16][..], &16_u16.to_be_bytes(), &Self::ID, b"a key in CBOR"].concat();
        [self.head(HAS_CREDENTIAL), credential].concat()
    }

    /// The authenticator's data, and the signature.
    pub(crate) fn sign(&self, client_json: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let data = self.head(0);
        let message = [&data[..], &Sha256::digest(client_json)[..]].concat();
        let random = SystemRandom::new();
        let signature = match &self.key {
            Key::Ed25519(key) => key.sign(&message).as_ref().to_vec(),
            Key::P256(key) => key.sign(&random, &message).unwrap().as_ref().to_vec(),
            Key::Rsa(key) => {
                let mut signature = vec![0; key.public_modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, &message, &mut signature).unwrap();
                signature
            }
        };
        (data, signature)
    }
}

fn party() -> Party {
    Party { id: "chat.example.org".to_owned(), origin: "https://chat.example.org".to_owned() }
}

fn registered(authenticator: &Authenticator, client: &Value) -> Result<NewPasskey, PasskeyError> {
    let client_data = &ClientData::read(client.to_string().as_bytes())?;
    let (authenticator_data, key) = (&*authenticator.registered(), &*authenticator.public_key());
    Registration { client_data, authenticator_data, key, algorithm: authenticator.algorithm }.verify(&party())
}

/// What becomes of a signature by `authenticator`, with the key, the algorithm and the counter that are stored.
fn signed(authenticator: &Authenticator, client: &Value, stored: (&[u8], i64, u32)) -> Result<u32, PasskeyError> {
    let json = client.to_string();
    let (data, signature) = authenticator.sign(json.as_bytes());
    let client_data = &ClientData::read(json.as_bytes())?;
    let (client_json, authenticator_data, signature) = (json.as_bytes(), &*data, &*signature);
    Assertion { client_data, client_json, authenticator_data, signature }.verify(&party(), stored)
}

#[rstest]
#[case(-8)]
#[case(-7)]
#[case(-257)]
fn a_passkey_is_registered_and_signs(#[case] algorithm: i64) {
    let mut authenticator = Authenticator::new(algorithm, &party());
    let key = authenticator.public_key();

    let new = registered(&authenticator, &authenticator.client_data("webauthn.create", b"challenge"));
    assert_eq!(new, Ok(NewPasskey { id: Authenticator::ID.to_vec(), counter: 1 }));

    authenticator.counter = 2;
    let client = authenticator.client_data("webauthn.get", b"challenge");
    assert_eq!(signed(&authenticator, &client, (&key, algorithm, 1)), Ok(2));
    assert_eq!(ClientData::read(client.to_string().as_bytes()).unwrap().challenge(), Ok(b"challenge".to_vec()));
}

#[rstest]
#[case("type", json!("webauthn.get"), PasskeyError::OtherUse)]
#[case("origin", json!("https://evil.example"), PasskeyError::OtherOrigin)]
#[case("origin", json!("https://chat.example.org.evil.example"), PasskeyError::OtherOrigin)]
#[case("origin", json!("http://chat.example.org"), PasskeyError::OtherOrigin)]
#[case("origin", json!("https://chat.example.org:444"), PasskeyError::OtherOrigin)]
#[case("crossOrigin", json!(true), PasskeyError::OtherOrigin)]
#[case("challenge", json!(7), PasskeyError::Malformed)]
fn a_passkey_of_another_page_is_not_registered(
    #[case] field: &str,
    #[case] value: Value,
    #[case] problem: PasskeyError,
) {
    let authenticator = Authenticator::new(-7, &party());
    let mut client = authenticator.client_data("webauthn.create", b"challenge");
    client[field] = value;

    assert_eq!(registered(&authenticator, &client), Err(problem));
}

#[rstest]
#[case::elsewhere(|it: &mut Authenticator| it.party = "evil.example".to_owned(), PasskeyError::OtherParty)]
#[case::nobody_there(|it: &mut Authenticator| it.flags = 0, PasskeyError::NotPresent)]
#[case::backed_up_though_it_cannot_be(|it: &mut Authenticator| it.flags |= BACKED_UP, PasskeyError::Malformed)]
#[case::extensions_that_are_not_there(|it: &mut Authenticator| it.flags |= HAS_EXTENSIONS, PasskeyError::Malformed)]
#[case::copied(|it: &mut Authenticator| it.counter = 4, PasskeyError::Copied)]
#[case::behind(|it: &mut Authenticator| it.counter = 0, PasskeyError::Copied)]
fn a_signature_that_proves_nothing_is_refused(#[case] change: fn(&mut Authenticator), #[case] problem: PasskeyError) {
    let mut authenticator = Authenticator::new(-7, &party());
    authenticator.counter = 5;
    change(&mut authenticator);
    let client = authenticator.client_data("webauthn.get", b"challenge");

    assert_eq!(signed(&authenticator, &client, (&authenticator.public_key(), -7, 4)), Err(problem));
}

#[test]
fn a_signature_is_one_of_the_passkey_over_all_that_was_sent() {
    let (authenticator, other) = (Authenticator::new(-7, &party()), Authenticator::new(-7, &party()));
    let key = authenticator.public_key();
    let client = authenticator.client_data("webauthn.get", b"challenge");
    let by_another = signed(&other, &client, (&key, -7, 0));
    let of_another_kind = signed(&authenticator, &client, (&key, -8, 0));
    let of_no_kind = signed(&authenticator, &client, (&key, -37, 0));
    assert_eq!((by_another, of_another_kind), (Err(PasskeyError::WrongSignature), Err(PasskeyError::WrongSignature)));
    assert_eq!(of_no_kind, Err(PasskeyError::OtherAlgorithm));

    let json = client.to_string();
    let (data, signature) = authenticator.sign(json.as_bytes());
    let with = |json: &str, data: &[u8], signature: &[u8]| {
        let client_data = &ClientData::read(json.as_bytes())?;
        let assertion = Assertion { client_data, client_json: json.as_bytes(), authenticator_data: data, signature };
        assertion.verify(&party(), (&key, -7, 0))
    };
    assert_eq!(with(&json, &data, &signature), Ok(1));
    assert_eq!(with(&format!("{json} "), &data, &signature), Err(PasskeyError::WrongSignature));
    let counted = [&data[..HEAD - 1], &[9]].concat();
    assert_eq!(with(&json, &counted, &signature), Err(PasskeyError::WrongSignature));
    assert_eq!(with(&json, &data, &[]), Err(PasskeyError::WrongSignature));
}

/// Passkeys that are synchronised between devices do not count.
#[test]
fn an_authenticator_need_not_count() {
    let mut authenticator = Authenticator::new(-7, &party());
    authenticator.counter = 0;
    let client = authenticator.client_data("webauthn.get", b"challenge");

    assert_eq!(signed(&authenticator, &client, (&authenticator.public_key(), -7, 0)), Ok(0));
}

#[test]
fn a_key_of_another_kind_is_not_registered() {
    let mut authenticator = Authenticator::new(-7, &party());
    let client = authenticator.client_data("webauthn.create", b"challenge");

    for algorithm in [-8, -257, -37, 0] {
        authenticator.algorithm = algorithm;
        assert_eq!(registered(&authenticator, &client), Err(PasskeyError::OtherAlgorithm), "{algorithm}");
    }
}

proptest! {
    #[test]
    fn any_data_are_read_or_refused(data in vec(any::<u8>(), 0..100)) {
        let _ = AuthenticatorData::read(&data);
        let _ = ClientData::read(&data).and_then(|client| client.challenge());
    }
}

#[rstest]
#[case::nothing(0)]
#[case::half_a_head(36)]
#[case::no_credential(37)]
#[case::half_a_credential(60)]
#[case::no_key(37 + 16 + 2 + 16)]
fn data_that_end_early_are_refused(#[case] length: usize) {
    let whole = Authenticator::new(-7, &party()).registered();

    let read = AuthenticatorData::read(&whole[..length]);

    assert!(matches!(read, Err(PasskeyError::Malformed)));
}
