//! The gateway's own words in forms. They are English, whatever the person speaks, as are most forms.

/// Refuses a request. Also as a word, in any case.
pub(super) const DECLINE: &str = "Decline";

/// Leaves a property out. Also as a word.
pub(super) const SKIP: &str = "Skip";

/// The person has done what stands at a link.
pub(super) const DONE: &str = "Done";

/// Confirms a form without properties.
pub(super) const OK: &str = "OK";

pub(super) const YES: &str = "Yes";
pub(super) const NO: &str = "No";

/// The word for the default of a property.
pub(super) const DEFAULT: &str = "default";

/// The word for no value of a list.
pub(super) const NONE: &str = "none";

/// Follows what is wrong about the answer before the last one that is read.
pub(super) const LAST_TRY: &str = "This is the last try.";
