//! The ports of the core: platforms, agents, the store and the clock, as traits, and what channels and agents use of the core.
//! Nothing here knows an implementation.

pub(crate) mod agent;
pub(crate) mod channel;
pub(crate) mod clock;
pub(crate) mod handed_out;
pub(crate) mod hub;
pub(crate) mod intake;
pub(crate) mod keyring;
pub(crate) mod reader;
pub(crate) mod refusals;
pub(crate) mod speech;
pub(crate) mod store;
pub(crate) mod visitors;

pub(crate) use self::store::{
    Store, accept::*, agent_sessions::*, agreements::*, channels::*, day_use::*, error::*, files::*, hints::*,
    housekeeping::*, keyring::*, list::*, log::*, nodes::*, outbox::*, people::*, pushes::*, questions::*, record::*,
    schedules::*, sessions::*, state::*, transition::*, turns::*, visitors::*,
};
pub(crate) use self::{
    agent::*, channel::*, clock::*, handed_out::*, hub::*, intake::*, reader::*, refusals::*, speech::*,
};
