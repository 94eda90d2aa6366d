//! Links that open a file of a turn without a token, for a time.

use std::{sync::Arc, time::Duration};

use hmac::{Hmac, Mac};
use rejoinder_guard::Timestamp;
use sha2::Sha256;

use crate::model::{
    ids::TurnId,
    stored_file::{FileDigest, StoredFile},
};

/// How many bytes of the HMAC a link contains.
const BYTES: usize = 16;

/// Makes and verifies links. All nodes have the same secret. Cheap to clone.
#[derive(Clone)]
pub struct FileLinks {
    keyed: Arc<Hmac<Sha256>>,
    /// How long a link opens its file.
    link_for: Duration,
    /// The gateway's URL as everybody reaches it, without a final slash.
    public_url: Option<Arc<str>>,
}

impl FileLinks {
    /// # Panics
    /// Never: HMAC takes keys of any length.
    pub fn new(secret: &str, link_for: Duration) -> Self {
        let keyed = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of any length");
        Self { keyed: Arc::new(keyed.chain_update(b"rejoinder file\0")), link_for, public_url: None }
    }

    /// The same for a gateway that everybody reaches at this URL.
    #[must_use]
    pub fn at(self, public_url: &str) -> Self {
        Self { public_url: Some(public_url.trim_end_matches('/').into()), ..self }
    }

    /// The path of a link from `now` on to a file of `turn` with this URL; `None` if the gateway does not store it.
    pub(crate) fn path_to(&self, turn: TurnId, url: &str, now: Timestamp) -> Option<String> {
        Some(self.path(turn, StoredFile::in_url(url)?.digest, now + self.link_for))
    }

    /// The same as a whole URL; `None` also if not everybody reaches the gateway.
    pub(crate) fn url_to(&self, turn: TurnId, url: &str, now: Timestamp) -> Option<String> {
        let public_url = self.public_url.as_ref()?;
        Some(format!("{public_url}{}", self.path_to(turn, url, now)?))
    }

    /// The path of a link, which is to stand behind the URL of the gateway. It opens a file of `turn` until `until`, as long as the turn
    /// has the file.
    pub fn path(&self, turn: TurnId, digest: FileDigest, until: Timestamp) -> String {
        let key = hex::encode(&self.code(turn, digest, until).finalize().into_bytes()[..BYTES]);
        format!("/files/{}?turn={turn}&until={}&key={key}", digest.digits(), until.as_millis())
    }

    /// Whether a link has the right `key`. Takes the same time for all keys of a length.
    pub fn verify(&self, turn: TurnId, digest: FileDigest, until: Timestamp, key: &str) -> bool {
        let mut sent = [0; BYTES];
        hex::decode_to_slice(key, &mut sent).is_ok()
            && self.code(turn, digest, until).verify_truncated_left(&sent).is_ok()
    }

    fn code(&self, turn: TurnId, digest: FileDigest, until: Timestamp) -> Hmac<Sha256> {
        let code = Hmac::clone(&self.keyed).chain_update(turn.as_uuid().as_bytes()).chain_update(digest.as_bytes());
        code.chain_update(until.as_millis().to_be_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(secret: &str) -> FileLinks {
        FileLinks::new(secret, Duration::from_millis(7))
    }

    /// The key of a link.
    fn key(path: &str) -> &str {
        path.split_once("&key=").expect("a key").1
    }

    #[test]
    fn a_key_opens_its_file_of_its_turn_until_its_time_only() {
        let links = links("a secret");
        let [turn, other] = [1, 2].map(|millis| TurnId::new(Timestamp::from_millis(millis)));
        let [file, picture] = [&b"a file"[..], b"a picture"].map(FileDigest::of);
        let [until, later] = [10, 11].map(Timestamp::from_millis);
        let path = links.path(turn, file, until);
        let key = key(&path);

        assert_eq!(path, format!("/files/{}?turn={turn}&until=10&key={key}", file.digits()));
        assert!(links.verify(turn, file, until, key));
        assert!(!links.verify(other, file, until, key));
        assert!(!links.verify(turn, picture, until, key));
        assert!(!links.verify(turn, file, later, key));
        assert!(!self::links("another secret").verify(turn, file, until, key));
        for wrong in ["", &key[2..], &"0".repeat(32), "not in hexadecimal digits, and longer"] {
            assert!(!links.verify(turn, file, until, wrong), "{wrong}");
        }
    }

    #[test]
    fn a_link_leads_to_a_stored_file_for_a_time() {
        let (now, file) = (Timestamp::from_millis(3), StoredFile::of(b"a file"));
        let (turn, url) = (TurnId::new(now), file.to_string());
        let links = links("a secret");
        let path = links.path(turn, file.digest, Timestamp::from_millis(10));

        assert_eq!((links.path_to(turn, &url, now).as_ref(), links.url_to(turn, &url, now)), (Some(&path), None));
        let links = links.at("https://a.example/");
        assert_eq!(links.url_to(turn, &url, now), Some(format!("https://a.example{path}")));
        for elsewhere in ["https://b.example/a", "data:text/plain;base64,aGk=", "/files/1", ""] {
            assert_eq!(links.path_to(turn, elsewhere, now), None, "{elsewhere}");
        }
    }
}
