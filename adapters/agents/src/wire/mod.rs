//! The JSON that agents of the operator read and write: a turn, and what they say. No I/O.
//!
//! | File | Contains |
//! | --- | --- |
//! | `turn` | a turn, as an agent gets it |
//! | `session` | what happened to a session |
//! | `answer` | one object of an answer |
//! | `ends` | how an object ends the run: a reply, a reaction, a question, … |
//! | `files` | the files beside an answer, and why some are left out |
//! | `sealed` | whether a sealed answer is an armoured age file |
//! | `said` | what an agent has said so far in a run, and the outcome of it |
//! | `lines` | the lines of a stream, of bounded length |
//! | `body` | an answer as bytes, which are text or objects |
//!
//! [`WireTurn`] is the turn. [`Said`] reads an answer that comes as texts or objects, [`Body`] one that comes as bytes, from the kind's
//! own module, which also says when they have ended.

mod answer;
mod body;
mod checked;
mod ends;
mod files;
mod lines;
mod said;
mod sealed;
mod session;
mod turn;

#[cfg(test)]
mod tests;

pub(crate) use self::{
    answer::{WireObject, end_key},
    body::{Body, Format},
    checked::CheckedObject,
    ends::short_error,
    said::{MAX_OBJECT, Said},
    session::WireSession,
    turn::{MAX_FILE, WireTurn},
};
