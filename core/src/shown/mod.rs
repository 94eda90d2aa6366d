//! What a signal looks like: its rendering as deliveries, its Markdown, whether anything of it is seen, when it is sent
//! again. Nothing here is stored, sent or decided.

mod albums;
pub(crate) mod in_words;
pub(crate) mod markdown;
pub(crate) mod render;
pub(crate) mod retry;
pub(crate) mod visibility;
