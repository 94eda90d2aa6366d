//! What all stores share: values as columns, requests to the writer, and what a store keeps in memory. Nothing here has SQL.

pub(crate) mod background;
pub(crate) mod bounds;
#[cfg(feature = "postgres")]
pub(crate) mod copying;
pub(crate) mod known;
pub(crate) mod patterns;
pub(crate) mod positions;
pub(crate) mod request;
pub(crate) mod stored;
pub(crate) mod transcript_lines;
pub(crate) mod transcripts;
pub(crate) mod trouble;
pub(crate) mod writes;
