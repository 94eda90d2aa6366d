//! The stages of the way in. Each is a file with one function of its name: it is given the event with what was decided so
//! far and the handles that it uses, and hands the event on, changed or not, or ends it.
//!
//! To add one: write its file, and add a line to `EventRouter::pass`.

pub(crate) mod access;
pub(crate) mod album;
pub(crate) mod backlog;
pub(crate) mod handling;
pub(crate) mod hear;
pub(crate) mod limits;
pub(crate) mod line;
pub(crate) mod own_question;
pub(crate) mod pair;
pub(crate) mod pick;
pub(crate) mod retry;
pub(crate) mod screen;
pub(crate) mod speak;
