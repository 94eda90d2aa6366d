//! The text of documents, for agents that cannot open them: PDF, Office Open XML, OpenDocument, HTML, and values with commas.
//!
//! [`ChildReader`] has each document read in a process of its own, with little memory and time and without an environment, which is the
//! gateway's program started again ([`read_file`]). Only the text comes back, or [why there is none](rejoinder_core::Unread).
//!
//! | File | Contains |
//! | --- | --- |
//! | `child` | the side of the gateway |
//! | `command` | the process, and its limits |
//! | `document` | which of the following reads a document |
//! | `pdf`, `office`, `page`, `plain` | one kind of documents each |
//! | `archive`, `markup` | ZIP, and the tags of HTML and XML |
//! | `output` | the text, of bounded size |
//!
//! To add a kind of documents, add a variant of `Kind` with its media types, and a module with a function that reads its bytes into an
//! `Output`.

#![warn(missing_docs)]

mod archive;
mod child;
mod command;
mod document;
mod kind;
mod markup;
mod office;
mod output;
mod page;
mod pdf;
mod plain;

pub use self::{child::ChildReader, command::read_file};
