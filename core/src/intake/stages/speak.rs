//! Decides whether the answer to a message is spoken as well.

use crate::{
    base::channels::Channels,
    conversations::addresses::Addresses,
    intake::arrival::{Arrival, Verdict},
};

/// `can_speak`: whether there is a server for that.
pub(in crate::intake) async fn speak(
    arrival: &mut Arrival,
    can_speak: bool,
    channels: &Channels,
    addresses: &Addresses,
) -> Verdict {
    arrival.event.speaks = false;
    let is_voice = arrival.event.voice.is_some();
    let address = &arrival.event.conversation;
    // A command that is typed is answered in words.
    if !can_speak || !arrival.is_owed() || (arrival.is_command() && !is_voice) || !channels.may_speak(address) {
        return Ok(());
    }
    let configured = arrival.settings.voice_mode(&address.channel);
    let chosen = arrival.conversation(addresses).await?.voice;
    arrival.event.speaks = chosen.unwrap_or(configured).speaks(is_voice);
    Ok(())
}
