//! The tokens with which operators use the admin API.

use rejoinder_guard::Timestamp;
use uuid::Uuid;

use crate::model::conversation::ChannelId;

named! {
    /// What a token allows. Each role from the viewer on may do what the ones before it may in the admin API, of which `Chat` may
    /// do nothing; agents are run by all roles but the viewer.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Role {
        /// Talks to agents over HTTP, and does nothing else.
        Chat = "chat",
        /// Reads everything but the audit and the tokens.
        Viewer = "viewer",
        /// Mends deliveries: retries, redirects, discards, cancels, holds, sends.
        Operator = "operator",
        /// Also manages tokens.
        Admin = "admin",
    }
}

/// A token, as it is stored: never the token itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRecord {
    pub id: Uuid,
    /// The name that the audit shows.
    pub name: String,
    /// The SHA-256 of the token.
    pub hash: [u8; 32],
    pub role: Role,
    /// The channels that it is limited to; `None` for all.
    pub channels: Option<Vec<ChannelId>>,
    pub created_at: Timestamp,
    /// The name of the token with which it was made.
    pub created_by: String,
    /// From when on it opens nothing.
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

/// A session of the operator's page, as it is stored: never its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignInRecord {
    pub id: Uuid,
    /// A keyed digest of its secret.
    pub hash: [u8; 32],
    /// The token with which it was opened; `None`: the one of the configuration.
    pub token: Option<Uuid>,
    /// What the browser calls itself.
    pub browser: String,
    pub opened_at: Timestamp,
    /// From when on it opens nothing.
    pub expires_at: Timestamp,
}

/// A link that opens the operator's page once, as it is stored: never its code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkRecord {
    /// A digest of its code.
    pub code: [u8; 32],
    /// The token with which it was made; `None`: the one of the configuration.
    pub token: Option<Uuid>,
    /// The session in which it was made, if it was made in one.
    pub session: Option<Uuid>,
    /// From when on it opens nothing.
    pub expires_at: Timestamp,
}

/// A change of the sessions of the operator's page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignInChange {
    /// A new session.
    Open(SignInRecord),
    /// The session with this id is over.
    End(Uuid),
    MakeLink(LinkRecord),
    /// The link with this digest was opened: a conflict if that happened before.
    UseLink([u8; 32]),
    /// The link with this digest opens nothing any more.
    EndLink([u8; 32]),
}

/// A change of the tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenChange {
    Create(TokenRecord),
    /// This one opens nothing any more, and its sessions are over.
    Revoke {
        id: Uuid,
        at: Timestamp,
    },
}
