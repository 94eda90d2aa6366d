//! Requests of agents for an approval: each is decided once, and its approvers are told of it.

use std::sync::Arc;

use rejoinder_guard::ApprovalRequest;
use tokio::sync::Notify;

use crate::{
    model::{Approval, ApprovalChange, ApprovalFilter, ApprovalId, ApprovalState},
    ports::{QuestionStore, StoreError},
};

pub(crate) const PAGE: u32 = 500;

/// The limit of waiting requests of the turns of one person.
pub(crate) const MOST_WAITING: u32 = 20;

const AT_ONCE: u32 = 100;

/// The approvals that agents ask for. They are rows; memory holds none.
pub(crate) struct Approvals {
    store: Arc<dyn QuestionStore>,
    asked: Notify,
}

impl Approvals {
    pub(crate) fn new(store: Arc<dyn QuestionStore>) -> Self {
        Self { store, asked: Notify::new() }
    }

    /// Notes changes that were stored.
    pub(crate) fn note(&self, changes: &[ApprovalChange]) {
        let asks = |change: &ApprovalChange| matches!(change, ApprovalChange::Asked { approval, .. } if approval.state == ApprovalState::Waiting);
        if changes.iter().any(asks) {
            self.asked.notify_one();
        }
    }

    /// Has those look who wait for requests: another node may have stored one.
    pub(crate) fn look_again(&self) {
        self.asked.notify_one();
    }

    pub(crate) async fn until_asked(&self) {
        self.asked.notified().await;
    }

    /// The next approvals that wait after this one, or the first, oldest first. None if there are no more.
    pub(crate) async fn waiting_after(&self, last: Option<ApprovalId>) -> Result<Vec<Approval>, StoreError> {
        self.store.approvals(last.map_or(ApprovalFilter::Waiting, ApprovalFilter::WaitingAfter), AT_ONCE).await
    }

    /// The first approvals that match `filter`.
    pub(crate) async fn list(&self, filter: ApprovalFilter) -> Result<Vec<Approval>, StoreError> {
        self.store.approvals(filter, PAGE).await
    }

    /// The whole of what was asked for, if there is more of it and it was kept.
    pub(crate) async fn whole(&self, approval: &Approval) -> Result<Option<ApprovalRequest>, StoreError> {
        if approval.has_whole { self.store.whole_request(approval.id).await } else { Ok(None) }
    }

    pub(crate) async fn get(&self, id: ApprovalId) -> Result<Option<Approval>, StoreError> {
        Ok(self.list(ApprovalFilter::Is(id)).await?.pop())
    }
}
