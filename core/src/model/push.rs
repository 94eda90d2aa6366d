//! Where a browser can be told something while no page is open.

/// A browser's subscription at its push service (RFC 8030), with the keys of the browser (RFC 8291).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushSubscription {
    /// The URL to which messages are posted. The browser gives it, so it may be any URL.
    pub endpoint: String,
    /// The public key, an uncompressed point of P-256.
    pub key: Vec<u8>,
    /// The secret that authenticates messages.
    pub auth: Vec<u8>,
}
