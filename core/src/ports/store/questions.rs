//! Questions and approvals.

use rejoinder_guard::{ApprovalRequest, Timestamp};

use super::{error::StoreError, turns::TurnStore};
use crate::model::{Approval, ApprovalFilter, ApprovalId, ChannelId, QuestionFilter, QuestionRecord};

store_trait! {
    /// Questions and approvals: what waits for a person.
    pub trait QuestionStore: TurnStore {
        /// The first `limit` questions that match `filter`.
        read fn questions(filter: QuestionFilter<'_>, limit: u32) -> Vec<QuestionRecord>;

        /// When the next open question expires.
        read fn next_question_expiry() -> Option<Timestamp>;

        /// The first `limit` approvals that match `filter`.
        read fn approvals(filter: ApprovalFilter, limit: u32) -> Vec<Approval>;

        /// The request of an approval as the agent made it; `None` if its stored form is all of it, or it was not kept.
        read fn whole_request(approval: ApprovalId) -> Option<ApprovalRequest>;

        /// How many approvals wait that agents asked for in turns of a [person](crate::InboundEvent::person), counted up to `limit`.
        read fn approvals_for(channel: &ChannelId, person: &str, limit: u32) -> u32;
    }
}
