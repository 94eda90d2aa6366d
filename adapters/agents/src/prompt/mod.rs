//! What a model reads of a turn, in no protocol's form. No I/O.
//!
//! | File | Contains |
//! | --- | --- |
//! | `frame` | who said what, as JSON that nobody can forge |
//! | `handoff` | why the ladder handed the turn to the agent |
//! | `last_answer` | what became of the last answer, if the history does not say it |
//! | `budget` | what is left of the agent's budget of the day |
//! | `files` | the files of a turn: pictures, texts, names |
//! | `instructions` | the operator's prompt, and where the model speaks |
//! | `history` | which earlier lines a model gets |
//! | `messages` | all of it, in order |
//! | `blocks` | what an agent with a memory of its own reads of it |

pub mod blocks;
mod budget;
pub mod files;
pub mod frame;
pub(crate) mod handoff;
pub mod history;
pub mod instructions;
pub(crate) mod last_answer;
pub(crate) mod messages;
