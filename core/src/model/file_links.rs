//! Links that open a file of a turn without a token, for a time.

use hmac::{Hmac, Mac};
use rejoinder_guard::Timestamp;
use sha2::Sha256;

use crate::model::{ids::TurnId, stored_file::FileDigest};

/// How many bytes of the HMAC a link contains.
const BYTES: usize = 16;

/// Makes and verifies links. All nodes have the same secret.
#[derive(Clone)]
pub struct FileLinks(Hmac<Sha256>);

impl FileLinks {
    /// # Panics
    /// Never: HMAC takes keys of any length.
    pub fn new(secret: &str) -> Self {
        let keyed = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of any length");
        Self(keyed.chain_update(b"rejoinder file\0"))
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
        let code = self.0.clone().chain_update(turn.as_uuid().as_bytes()).chain_update(digest.as_bytes());
        code.chain_update(until.as_millis().to_be_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key of a link.
    fn key(path: &str) -> &str {
        path.split_once("&key=").expect("a key").1
    }

    #[test]
    fn a_key_opens_its_file_of_its_turn_until_its_time_only() {
        let links = FileLinks::new("a secret");
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
        assert!(!FileLinks::new("another secret").verify(turn, file, until, key));
        for wrong in ["", &key[2..], &"0".repeat(32), "not in hexadecimal digits, and longer"] {
            assert!(!links.verify(turn, file, until, wrong), "{wrong}");
        }
    }
}
