//! The options of a request for permission: which of them a decision chooses. No I/O.
//!
//! Options are chosen by their kind, never by their position: some agents list "always" first. Nothing is ever allowed or rejected
//! "always", because that would also hold for other people's turns.

use crate::protocol::PermissionOption;

/// The kind that a yes chooses, and the kind that a no chooses.
const ALLOWS: &str = "allow_once";
const REJECTS: &str = "reject_once";

/// Those of the options of a request that a yes and a no choose.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offer<'a> {
    allows: Option<&'a PermissionOption>,
    rejects: Option<&'a PermissionOption>,
}

impl<'a> Offer<'a> {
    /// Of several options of a kind the one that the agent lists first.
    pub(crate) fn of(options: &'a [PermissionOption]) -> Self {
        let first = |kind: &str| options.iter().find(|option| option.kind == kind);
        Self { allows: first(ALLOWS), rejects: first(REJECTS) }
    }

    /// The id of the option that a decision chooses. `None`: there is none, and the request is cancelled.
    pub(crate) fn chosen(&self, is_allowed: bool) -> Option<String> {
        let chosen = if is_allowed { self.allows } else { self.rejects };
        chosen.map(|option| option.option_id.clone())
    }
}
