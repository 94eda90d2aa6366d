//! The items of a digest: chosen when it begins, so that a later press refers to what was shown.

use std::{collections::HashSet, sync::Arc};

use rejoinder_guard::Timestamp;

use super::recipients::Recipient;
use crate::{
    conversations::loops::{OpenLoop, open_loops},
    model::{ApprovalFilter, EventKind, InboundEvent, LiveSettings, NotASchedule, PersonFilter, PersonId},
    notices::message,
    operator::error::OperationError,
    people::People,
    ports::{LogStore, OperatorStore, SharedClock, StoreError, TurnFilter},
    questions::{
        approvals::Approvals,
        digest::{LISTED, is_theirs, snoozed},
    },
};

/// Chooses what digests tell.
pub(crate) struct Digests {
    pub(crate) store: Arc<dyn OperatorStore>,
    pub(crate) log: Arc<dyn LogStore>,
    pub(crate) approvals: Arc<Approvals>,
    pub(crate) people: Arc<People>,
    pub(crate) settings: LiveSettings,
    pub(crate) clock: SharedClock,
}

impl Digests {
    /// The event that tells somebody what is open: an owner everything, others their own turns.
    pub(super) async fn event(&self, to: &Recipient, by: &str) -> Result<InboundEvent, OperationError> {
        let person = to.person.ok_or_else(|| OperationError::Unfit(NotASchedule::Digest.to_string()))?;
        let now = self.clock.now();
        let open = if to.is_owner {
            open_loops(&*self.store, &TurnFilter::default(), now).await?
        } else {
            self.open_of(person, now).await?
        };
        let snoozed = snoozed(&*self.log, person, now).await?;
        let is_listed = |open: &OpenLoop| {
            let turn = &open.turn;
            !turn.is_unreadable && turn.state != "merged" && !snoozed.contains(&turn.turn_id)
        };
        let mut items: Vec<_> = open.into_iter().filter(is_listed).map(|open| open.turn.turn_id).collect();
        let more = items.len().saturating_sub(LISTED);
        items.truncate(LISTED);
        let kind = EventKind::Digest { person, items, more };
        Ok(InboundEvent { kind, ..message(&to.address, String::new(), by, "", now) })
    }

    /// A person's open turns: those that they wrote, and those in their direct chats.
    async fn open_of(&self, person: PersonId, now: Timestamp) -> Result<Vec<OpenLoop>, StoreError> {
        let known = self.people.known();
        let identities = known.identities(person).to_vec();
        let theirs = PersonFilter { identities, chats: self.people.direct_chats(person), ..PersonFilter::default() };
        let among = TurnFilter { person: Some(theirs), ..TurnFilter::default() };
        let mut open = open_loops(&*self.store, &among, now).await?;
        let seen: HashSet<_> = open.iter().map(|one| one.turn.turn_id).collect();
        open.retain(|OpenLoop { turn, .. }| {
            turn.sender.as_ref().is_some_and(|sender| is_theirs(sender, &turn.conversation, person, &self.people))
        });
        if known.identities(person).iter().any(|one| self.settings.get().approvals.is_approver(one, &known)) {
            let waiting = self.approvals.list(ApprovalFilter::Waiting).await?;
            let waiting: HashSet<_> = waiting.into_iter().map(|approval| approval.turn).collect();
            let all = open_loops(&*self.store, &TurnFilter::default(), now).await?;
            let is_new = |one: &OpenLoop| waiting.contains(&one.turn.turn_id) && !seen.contains(&one.turn.turn_id);
            open.extend(all.into_iter().filter(is_new));
        }
        open.sort_by_key(|open| std::cmp::Reverse(open.score));
        Ok(open)
    }
}
