//! What a person would see of an agent's words, on the channel that they go to. What is judged here is not what the
//! words are, which the guard does, but what a platform's markup leaves of them.

use rejoinder_guard::{Outcome, Reply, Shim};
use std::panic::AssertUnwindSafe;
use tracing::warn;

use crate::ports::channel::ChannelAdapter;

/// What an outcome is where it is shown: words of which nothing would be seen are silence, or left out.
pub(crate) fn seen(outcome: Outcome, channel: Option<&dyn ChannelAdapter>) -> Outcome {
    match outcome {
        Outcome::Reply(reply) if reply.attachments.is_empty() && is_unseen(&reply.text, channel) => {
            Outcome::Silent("nothing that can be seen".to_owned())
        }
        Outcome::Reply(reply) => Outcome::Reply(seen_reply(reply, channel)),
        Outcome::Defer { note, due } => Outcome::Defer { note: note.filter(|note| !is_unseen(note, channel)), due },
        Outcome::React(_) | Outcome::Silent(_) => outcome,
    }
}

/// A reply without words of which nothing would be seen.
pub(crate) fn seen_reply(mut reply: Reply, channel: Option<&dyn ChannelAdapter>) -> Reply {
    if is_unseen(&reply.text, channel) {
        reply.text.clear();
    }
    reply
}

/// Whether a channel shows anything of a text. An adapter that fails at it is no reason to say nothing.
pub(crate) fn shows_anything(text: &str, channel: Option<&dyn ChannelAdapter>) -> bool {
    let Some(channel) = channel else { return true };
    std::panic::catch_unwind(AssertUnwindSafe(|| channel.shows_anything(text))).unwrap_or_else(|_| {
        warn!(channel = %channel.channel(), "an adapter failed to tell what is seen of a text");
        true
    })
}

/// Whether nothing would be seen of words in which the guard would find some.
fn is_unseen(text: &str, channel: Option<&dyn ChannelAdapter>) -> bool {
    let words = Shim::whole(text);
    !words.is_empty() && !shows_anything(&words, channel)
}
