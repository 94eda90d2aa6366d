//! A run of the channel.

use rejoinder_kit::Receiver;

use crate::{Matrix, Session};

/// A run of the channel, with an open session.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    pub(crate) matrix: &'a Matrix,
    pub(crate) session: &'a Session,
    pub(crate) receiver: &'a Receiver<'a>,
}
