//! Lets a voice note wait for its words, if a server writes them down.

use crate::{
    intake::arrival::Arrival,
    model::{Heard, Voice},
};

/// `writes_down`: whether there is a server for that. It is not asked for a message that is owed no answer.
pub(in crate::intake) fn hear(arrival: &mut Arrival, writes_down: bool) {
    if !writes_down || !arrival.is_owed() || arrival.is_command() {
        return;
    }
    let files = arrival.event.attachments.len();
    let is_new = |voice: &&mut Voice| voice.heard == Heard::NotTried && voice.file < files;
    if let Some(voice) = arrival.event.voice.as_mut().filter(is_new) {
        voice.heard = Heard::Awaited;
    }
}
