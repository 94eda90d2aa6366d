//! The runtimes as the core sees them.

mod detect;
mod double;
mod front_desk;
mod openai;
