//! The loops that tell people what changed: owners and approvers, what waits for their decision; people, that they were
//! let in, or an answer on another channel. The texts are in `notices`.

pub(crate) mod elsewhere;
pub(crate) mod owners;
pub(crate) mod welcome;
