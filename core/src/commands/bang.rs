//! `!` in place of the slash: many clients do not send a text that begins with a slash.

use std::collections::BTreeMap;

use super::find;
use crate::{
    base::channels::Channels,
    model::{EventKind, InboundEvent, OwnCommand, Rule, Settings},
    operator::own_commands,
};

/// Puts a slash in place of the `!` of a command if the channel's people write it so. Any other `!` stays.
pub(crate) fn slash(event: &mut InboundEvent, settings: &Settings, channels: &Channels) {
    if event.kind != EventKind::Message || event.forwarded.is_some() {
        return;
    }
    let address = &event.conversation;
    if let Some(text) = command(&event.text, &settings.commands, &settings.rules)
        && channels.get(&address.channel).is_some_and(|channel| channel.capabilities(address).bang_commands)
    {
        event.text = text;
    }
}

/// The command that a text with a `!` is: one of the gateway's, one of the operator's, or the first word that a rule names.
pub(super) fn command(text: &str, own: &BTreeMap<String, OwnCommand>, rules: &[Rule]) -> Option<String> {
    let text = format!("/{}", text.trim_start().strip_prefix('!')?);
    let is_of_rule = || rules.iter().any(|rule| rule.names_command(&text));
    let is_known = find(&text).is_some() || own_commands::find(&text, own).is_some() || is_of_rule();
    is_known.then_some(text)
}
