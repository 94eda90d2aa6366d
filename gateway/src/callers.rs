//! Who uses the gateway with an operator's token: the callers of the admin API and of the routes that share its tokens.

use std::{
    sync::{
        PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use rejoinder_core::{
    ChannelId, SharedClock, StoreError, Timestamp,
    store::{Role, TokenRecord, TokenStore},
};
use rejoinder_kit::token_digest;
use subtle::ConstantTimeEq;
use uuid::Uuid;

/// The name under which the token of the configuration is in the audit.
pub(crate) const CONFIGURED: &str = "admin";

/// Who calls, by the token that was sent.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// The id of the stored token; `None` for the one of the configuration.
    pub(crate) token: Option<Uuid>,
    pub(crate) name: String,
    pub(crate) role: Role,
    /// The channels that the token is limited to.
    pub(crate) channels: Option<Vec<ChannelId>>,
    /// The session that was used; `None` if the token itself was sent.
    pub(crate) session: Option<SessionEnd>,
}

/// A session of the page, and when it ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionEnd {
    pub(crate) id: Uuid,
    pub(crate) at: Timestamp,
}

impl Caller {
    /// The caller with the token of the configuration.
    pub(crate) fn configured() -> Self {
        Self { token: None, name: CONFIGURED.to_owned(), role: Role::Admin, channels: None, session: None }
    }

    /// The channels to list: `asked`, as far as the caller may see them.
    pub(crate) fn channels(&self, asked: Option<&str>) -> Option<Vec<ChannelId>> {
        match (asked.map(ChannelId::from_stored), &self.channels) {
            (None, allowed) => allowed.clone(),
            (Some(asked), Some(allowed)) if !allowed.contains(&asked) => Some(Vec::new()),
            (Some(asked), _) => Some(vec![asked]),
        }
    }

    pub(crate) fn may_see(&self, channel: &ChannelId) -> bool {
        self.channels.as_ref().is_none_or(|channels| channels.contains(channel))
    }
}

impl From<&TokenRecord> for Caller {
    fn from(token: &TokenRecord) -> Self {
        Self {
            token: Some(token.id),
            name: token.name.clone(),
            role: token.role,
            channels: token.channels.clone(),
            session: None,
        }
    }
}

fn is_open(token: &TokenRecord, now: Timestamp) -> bool {
    token.revoked_at.is_none() && token.expires_at.is_none_or(|at| at > now)
}

/// The stored tokens, in memory: also those that were revoked, because their names are not given again.
pub(crate) struct StoredTokens {
    clock: SharedClock,
    known: RwLock<Vec<TokenRecord>>,
    /// How often they were changed here.
    changes: AtomicU64,
    /// Until when they count, in milliseconds of the [clock](rejoinder_core::Clock::boottime) that does not stand still: after that,
    /// another node may have revoked them.
    count_until: AtomicU64,
}

impl StoredTokens {
    pub(crate) async fn read(store: &dyn TokenStore, clock: SharedClock) -> Result<Self, StoreError> {
        Ok(Self::new(clock, store.tokens().await?))
    }

    fn new(clock: SharedClock, tokens: Vec<TokenRecord>) -> Self {
        let (changes, count_until) = (AtomicU64::default(), AtomicU64::new(u64::MAX));
        Self { clock, known: RwLock::new(tokens), changes, count_until }
    }

    #[cfg(test)]
    pub(crate) fn none(clock: SharedClock) -> Self {
        Self::new(clock, Vec::new())
    }

    pub(crate) fn add(&self, token: TokenRecord) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        self.changes.fetch_add(1, Ordering::Relaxed);
        // They may have been read again meanwhile.
        if known.iter().all(|other| other.id != token.id) {
            known.push(token);
        }
    }

    /// How often they were changed here: not by [`replace`](Self::replace).
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// Has these in place of those that are known: they were read again. `false` if they were changed here meanwhile, after so many
    /// `changes`.
    pub(crate) fn replace(&self, tokens: Vec<TokenRecord>, changes: u64) -> bool {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let is_unchanged = self.changes() == changes;
        if is_unchanged {
            *known = tokens;
        }
        is_unchanged
    }

    /// They are as the store has them, and count until then, by the clock that does not stand still.
    pub(crate) fn count_until(&self, until: Duration) {
        self.count_until.store(u64::try_from(until.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Whether they, and sessions, open anything: not if another node may have revoked them long ago.
    pub(crate) fn do_count(&self) -> bool {
        match self.count_until.load(Ordering::Relaxed) {
            u64::MAX => true,
            until => self.clock.boottime() < Duration::from_millis(until),
        }
    }

    /// Notes that a token was revoked.
    pub(crate) fn revoke(&self, id: Uuid, at: Timestamp) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        self.changes.fetch_add(1, Ordering::Relaxed);
        if let Some(token) = known.iter_mut().find(|token| token.id == id) {
            token.revoked_at = Some(at);
        }
    }

    /// `viewer-1`, or the next number that no token has or had.
    pub(crate) fn free_name(&self, role: Role) -> String {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let is_free = |name: &String| known.iter().all(|token| token.name != *name);
        let name = |number: u32| format!("{}-{number}", role.as_str());
        // Of as many numbers as there are names, and one more, one is free.
        (1..=u32::MAX).map(name).find(is_free).unwrap_or_else(|| role.as_str().to_owned())
    }

    /// The caller with this token. Takes the same time for every token, except that it grows with their number.
    pub(crate) fn caller(&self, sent: &[u8]) -> Option<Caller> {
        let (sent, now) = (token_digest(sent), self.clock.now());
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let mut found = None;
        for token in known.iter() {
            if bool::from(token.hash.ct_eq(&sent)) {
                found = Some(token);
            }
        }
        found.filter(|token| self.do_count() && is_open(token, now)).map(Caller::from)
    }

    pub(crate) fn caller_with(&self, id: Uuid) -> Option<Caller> {
        let now = self.clock.now();
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let found = known.iter().find(|token| token.id == id && is_open(token, now));
        found.filter(|_| self.do_count()).map(Caller::from)
    }

    /// Those that were not revoked.
    pub(crate) fn list(&self) -> Vec<TokenRecord> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.iter().filter(|token| token.revoked_at.is_none()).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rejoinder_core::{Clock, conformance::clock::TestClock};

    use super::*;

    fn token(name: &str) -> TokenRecord {
        TokenRecord {
            id: Uuid::now_v7(),
            name: name.to_owned(),
            hash: token_digest(name.as_bytes()),
            role: Role::Viewer,
            channels: None,
            created_at: Timestamp::from_millis(0),
            created_by: "ada".to_owned(),
            expires_at: None,
            revoked_at: None,
        }
    }

    /// It is stored after the rows were read, and noted before they are copied.
    #[test]
    fn what_is_revoked_while_the_rows_are_read_stays_revoked() {
        let tokens = StoredTokens::none(TestClock::new());
        let mine = token("mine");
        assert!(tokens.replace(vec![mine.clone()], tokens.changes()));
        let changes = tokens.changes();

        tokens.revoke(mine.id, Timestamp::from_millis(1));

        assert!(!tokens.replace(vec![mine.clone()], changes));
        assert!(tokens.caller(b"mine").is_none());
        assert!(tokens.replace(vec![mine], tokens.changes()) && tokens.caller(b"mine").is_some());
    }

    #[test]
    fn tokens_that_were_not_read_for_long_open_nothing() {
        let clock = TestClock::new();
        let tokens = StoredTokens::none(Arc::<TestClock>::clone(&clock));
        let mine = token("mine");
        tokens.add(mine.clone());
        clock.advance(Duration::from_hours(1));
        assert!(tokens.caller(b"mine").is_some());

        tokens.count_until(clock.boottime() + Duration::from_secs(30));
        clock.advance(Duration::from_secs(29));
        assert!(tokens.caller(b"mine").is_some() && tokens.caller_with(mine.id).is_some());
        clock.advance(Duration::from_secs(1));
        assert!(tokens.caller(b"mine").is_none() && tokens.caller_with(mine.id).is_none());
    }
}
