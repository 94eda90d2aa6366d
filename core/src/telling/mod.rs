//! The loops that tell people what changed: owners and approvers who asks, people that they were let in, an answer on
//! another channel. The texts are in `notices`.

pub(crate) mod elsewhere;
pub(crate) mod owners;
pub(crate) mod welcome;
