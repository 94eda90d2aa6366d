//! Tells people when something is wrong, once, and when it is over.
//!
//! [`Board`](board::Board) decides which alerts are sent and when; [`Sender`](send::Sender) tells it. What is wrong is
//! found by [`Problems`](crate::problems::Problems), like for the overview.

mod alerter;
mod board;
mod digest;
mod live;
mod send;

pub(crate) use self::{
    alerter::{Means, Sources, Told},
    live::LiveAlerts,
};
