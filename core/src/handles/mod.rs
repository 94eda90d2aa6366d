//! Who wakes whom: the slots, lanes, drafts, marks, leftovers and hearings through which a later part of a turn's path notifies
//! an earlier one. No handle knows a component.

pub(crate) mod drafts;
pub(crate) mod hearings;
pub(crate) mod lanes;
pub(crate) mod leftovers;
pub(crate) mod marks;
pub(crate) mod slots;
pub(crate) mod steps;
