//! Approvals: actions that agents ask permission for, and the decisions.

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use rejoinder_guard::{ApprovalRequest, Timestamp};
use sha2::{Digest, Sha256};

use crate::{
    base::words::excerpt,
    model::{
        agent::AgentName,
        conversation::ChannelId,
        ids::{ApprovalId, PersonId, TurnId},
    },
};

/// How many characters are kept of the action, the details and the kind of a request for an approval.
const MOST_ACTION: usize = 300;
const MOST_DETAILS: usize = 2000;
const MOST_KIND: usize = 64;

/// How many characters are kept of an action before the digest of its request.
const MOST_BEFORE_DIGEST: usize = 270;

/// A request as it is stored and shown: the action on one line, and all of bounded length. Where this changes the request, the action ends
/// with a digest of the whole request, so that the stored form of two requests is the same only if the requests are.
pub fn as_stored(request: ApprovalRequest) -> ApprovalRequest {
    let short = |text: &str, most| text.trim().chars().take(most).collect::<String>().trim_end().to_owned();
    let optional = |text: Option<&str>, most| text.map(|text| short(text, most)).filter(|text| !text.is_empty());
    let stored = ApprovalRequest {
        action: excerpt(&request.action, MOST_ACTION),
        details: optional(request.details.as_deref(), MOST_DETAILS),
        kind: optional(request.kind.as_deref(), MOST_KIND),
    };
    if stored == request {
        return stored;
    }
    let ApprovalRequest { action, details, kind } = &request;
    let whole = serde_json::to_vec(&(action, details, kind)).expect("texts serialise to JSON");
    let digest = BASE64_URL_SAFE_NO_PAD.encode(&Sha256::digest(whole)[..16]);
    ApprovalRequest { action: format!("{} ({digest})", excerpt(action, MOST_BEFORE_DIGEST)), ..stored }
}

named! {
    /// What became of an approval that an agent asked for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ApprovalState {
        /// Nobody has decided it yet.
        Waiting = "waiting",
        /// The answer was yes.
        Approved = "approved",
        Declined = "declined",
        /// Nobody decided it in time.
        Expired = "expired",
        /// The turn was cancelled, or ended in another way.
        Dropped = "dropped",
    }
}

impl ApprovalState {
    pub(crate) const fn audit_action(self) -> &'static str {
        match self {
            Self::Approved => "approve_action",
            Self::Declined => "decline_action",
            Self::Expired => "expire_action",
            Self::Waiting | Self::Dropped => "drop_action",
        }
    }

    pub(crate) const fn of_decision(approves: bool) -> Self {
        if approves { Self::Approved } else { Self::Declined }
    }
}

/// An approval that an agent asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    pub id: ApprovalId,
    /// The turn that waits for it.
    pub turn: TurnId,
    pub channel: ChannelId,
    pub agent: Arc<str>,
    /// The name of the turn's writer, or their id.
    pub person: String,
    pub request: ApprovalRequest,
    pub asked_at: Timestamp,
    /// Until when it can be decided; `None` if a rule has decided it.
    pub expires_at: Option<Timestamp>,
    pub state: ApprovalState,
    /// When it was decided, or closed.
    pub decided_at: Option<Timestamp>,
    /// Who decided: the name of a person or a token, or the rule.
    pub decided_by: Option<String>,
    /// What they say to the agent about it.
    pub note: Option<String>,
    /// The number of the run that was given the approval; `None` if none was.
    pub given_to: Option<u32>,
    /// Who was told of it, to decide it.
    pub told: Vec<PersonId>,
}

impl Approval {
    pub(crate) fn is_open(&self, now: Timestamp) -> bool {
        self.state == ApprovalState::Waiting && self.expires_at.is_none_or(|at| at > now)
    }
}

/// A change of an approval's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalChange {
    /// An agent asks for it, or has asked, and a rule has decided.
    Asked(Box<Approval>),
    /// Somebody decided one that waits.
    Decided { id: ApprovalId, state: ApprovalState, at: Timestamp, by: String, note: Option<String> },
    /// The approvals that this agent has in a turn, and that no run was given, are given to run `run`.
    Given { turn: TurnId, agent: AgentName, run: u32 },
    /// The latest approval of a turn was given to run `run`, which ended without it: the next run may have it.
    GivenBack { turn: TurnId, run: u32 },
    /// The one that a turn waits for is closed: nobody decided it in time, or it is not waited for any more.
    Closed {
        turn: TurnId,
        /// `Expired` or `Dropped`.
        state: ApprovalState,
        at: Timestamp,
    },
}

/// Which approvals are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalFilter {
    Is(ApprovalId),
    /// Those of a turn, in the order in which its agent asked.
    Of(TurnId),
    /// Those that wait, oldest first.
    Waiting,
    /// Those that have waited less long than this one, oldest first; all if it is gone.
    WaitingAfter(ApprovalId),
    /// All, newest first.
    Latest,
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn request(action: &str, details: Option<&str>) -> ApprovalRequest {
        ApprovalRequest { action: action.to_owned(), details: details.map(str::to_owned), kind: None }
    }

    /// What was approved for one must not be approved for the other.
    #[rstest]
    #[case::lines(request("rm a\nb", None), request("rm a b", None))]
    #[case::length(request(&"x".repeat(301), None), request(&"x".repeat(302), None))]
    #[case::details(request("rm a", Some(&"x".repeat(2001))), request("rm a", Some(&"x".repeat(2000))))]
    #[case::blanks(request("rm  a", None), request("rm a", None))]
    fn two_requests_are_stored_differently(#[case] one: ApprovalRequest, #[case] other: ApprovalRequest) {
        assert_ne!(as_stored(one), as_stored(other));
    }

    /// It may be stored when it was stored: a blank is the last character that is kept.
    #[rstest]
    #[case(request("pay the rent", Some("to Grace")))]
    #[case(request(&"x ".repeat(400), Some(&format!("{} y", "x".repeat(1999)))))]
    fn what_is_stored_stays_as_it_is(#[case] request: ApprovalRequest) {
        let stored = as_stored(request);

        assert_eq!(as_stored(stored.clone()), stored);
        assert!(stored.action.chars().count() <= MOST_ACTION);
    }

    #[test]
    fn a_short_request_is_stored_as_it_is() {
        let short = request("pay the rent", Some("to Grace"));

        assert_eq!(as_stored(short.clone()), short);
    }
}
