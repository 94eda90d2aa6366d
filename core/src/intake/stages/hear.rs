//! Lets a voice note wait for its words, if somebody writes them down.

use crate::{
    intake::arrival::Arrival,
    model::{Heard, Voice},
};

/// `is_written_down`: whether there is a server for that. What nobody is owed an answer to is not worth its time.
pub(in crate::intake) fn hear(arrival: &mut Arrival, is_written_down: bool) {
    if !is_written_down || !arrival.is_owed() || arrival.is_command() {
        return;
    }
    let files = arrival.event.attachments.len();
    let is_new = |voice: &&mut Voice| voice.heard == Heard::NotTried && voice.file < files;
    if let Some(voice) = arrival.event.voice.as_mut().filter(is_new) {
        voice.heard = Heard::Awaited;
    }
}
