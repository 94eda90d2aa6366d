//! What a model reads of a turn, in no protocol's form. No I/O.
//!
//! | File | Contains |
//! | --- | --- |
//! | `frame` | who said what, as JSON that nobody can forge |
//! | `files` | the files of a turn: pictures, texts, names |

pub(crate) mod files;
pub(crate) mod frame;
