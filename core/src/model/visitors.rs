//! People who sign in to a chat page: their passkeys, their visits, and the invitations to register a passkey.

use rejoinder_guard::Timestamp;
use uuid::Uuid;

use crate::model::{conversation::ChannelId, people::Identity};

/// A passkey of a person, as it is stored: never its private key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passkey {
    /// The id that the authenticator gave it.
    pub id: Vec<u8>,
    pub channel: ChannelId,
    /// The id of the person on the channel.
    pub account: String,
    /// The host of the page for which it was made: the relying party.
    pub party: String,
    /// The COSE number of its algorithm.
    pub algorithm: i64,
    /// Its public key, as a `SubjectPublicKeyInfo` in DER.
    pub key: Vec<u8>,
    /// How many signatures it has made, as its authenticator says; 0: it does not count.
    pub counter: u32,
    /// What the browser calls itself in which it was made.
    pub browser: String,
    pub added_at: Timestamp,
    pub used_at: Option<Timestamp>,
}

/// A session of a person on a chat page, as it is stored: never its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    pub id: Uuid,
    /// The SHA-256 of its secret.
    pub hash: [u8; 32],
    pub channel: ChannelId,
    /// The id of the person on the channel.
    pub account: String,
    /// The SHA-256 of the challenge that was signed to open it. No other visit is opened with the same.
    pub challenge: [u8; 32],
    /// What the browser calls itself.
    pub browser: String,
    pub opened_at: Timestamp,
    /// From when on it opens nothing.
    pub expires_at: Timestamp,
}

impl Visit {
    /// Whose it is.
    pub fn identity(&self) -> Identity {
        Identity { channel: self.channel.clone(), id: self.account.clone() }
    }
}

/// A link with which a person registers a passkey once, as it is stored: never its code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invitation {
    /// The SHA-256 of its code.
    pub code: [u8; 32],
    pub channel: ChannelId,
    /// The id of the person on the channel.
    pub account: String,
    /// From when on it opens nothing.
    pub expires_at: Timestamp,
}

/// A change of what people sign in with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VisitorChange {
    /// In place of an earlier invitation of the same person.
    Invite(Invitation),
    /// A new passkey, and the digest of the invitation's code, which is used up. A conflict if that was used or is over, or if there is a
    /// passkey with this id.
    Register { passkey: Passkey, invitation: [u8; 32] },
    /// The passkey has signed. A conflict if its counter is not `from` any more.
    Sign { passkey: Vec<u8>, from: u32, to: u32, at: Timestamp },
    /// A new visit. A conflict if its challenge was used before.
    Open(Visit),
    /// The visit with this id is over.
    End { id: Uuid, at: Timestamp },
    /// All visits and invitations of somebody are over, and no browser of theirs is told of answers any more.
    EndAll { of: Identity, at: Timestamp },
    /// All passkeys of somebody are removed.
    RemovePasskeys(Identity),
}

/// A conversation of a person, as one of their list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadSummary {
    /// The id of its thread.
    pub thread: String,
    /// The beginning of the first message that is no command; `None` if there is none, or it is not kept any more.
    pub first: Option<String>,
    /// The beginning of the last message; `None` if it is not kept any more.
    pub last: Option<String>,
    /// When the last message was accepted.
    pub at: Timestamp,
}
