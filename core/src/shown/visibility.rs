//! Checks what a person would see of an agent's text on its channel. The guard judges the text itself; here it is judged
//! after the platform's markup is rendered.

use rejoinder_guard::{Outcome, Reply, Shim};
use std::panic::AssertUnwindSafe;
use tracing::warn;

use crate::ports::ChannelAdapter;

/// Replaces text that shows nothing on the channel: an answer without visible text or files becomes silence, and an
/// invisible note of a deferral is dropped.
pub(crate) fn visible_outcome(outcome: Outcome, channel: Option<&dyn ChannelAdapter>) -> Outcome {
    match outcome {
        Outcome::Reply(mut reply) => {
            if is_invisible(&reply.text, channel) {
                if reply.attachments.is_empty() {
                    return Outcome::Silent("nothing that can be seen".to_owned());
                }
                reply.text.clear();
            }
            Outcome::Reply(reply)
        }
        Outcome::Defer { note, due } => Outcome::Defer { note: note.filter(|note| !is_invisible(note, channel)), due },
        Outcome::React(_) | Outcome::Approval(_) | Outcome::Silent(_) => outcome,
    }
}

/// Clears a reply's text if the channel would show nothing of it.
pub(crate) fn visible_reply(mut reply: Reply, channel: Option<&dyn ChannelAdapter>) -> Reply {
    if is_invisible(&reply.text, channel) {
        reply.text.clear();
    }
    reply
}

/// Whether a channel shows anything of a text. If the adapter panics, the text counts as visible.
pub(crate) fn shows_anything(text: &str, channel: Option<&dyn ChannelAdapter>) -> bool {
    let Some(channel) = channel else { return true };
    std::panic::catch_unwind(AssertUnwindSafe(|| channel.shows_anything(text))).unwrap_or_else(|_| {
        warn!(channel = %channel.channel(), "an adapter panicked while checking whether a text is visible");
        true
    })
}

/// Whether the channel shows nothing of a text that the guard would not judge empty.
fn is_invisible(text: &str, channel: Option<&dyn ChannelAdapter>) -> bool {
    channel.is_some() && {
        let filtered = Shim::whole(text);
        !filtered.is_empty() && !shows_anything(&filtered, channel)
    }
}
