//! Prepares an event before another stage reads it: cleans the names in it, marks or removes what a stranger said, and reads a
//! command that does not begin with a slash.

use crate::{
    base::channels::Channels,
    commands::bang,
    intake::arrival::{Arrival, Verdict, end},
    model::{
        Access, Author, EventKind, InboundEvent, KnownPeople, Quote, SenderKind, clean, name::file_name,
        refuse_references,
    },
};

/// How many characters of a name are kept. Names are chosen by people who may mean harm.
const MAX_NAME: usize = 100;

/// The same of an emoji. One of several code points has up to 10; some platforms have any text.
const MAX_EMOJI: usize = 32;

pub(in crate::intake) fn screen(arrival: &mut Arrival, channels: &Channels) -> Verdict {
    let Arrival { event, settings, known, .. } = arrival;
    let access = settings.access.get(&event.conversation.channel);
    // What the gateway begins on its own says whose words it quotes.
    if event.sender.kind != SenderKind::Operator {
        screen_strangers(event, access, known);
    }
    clean_names(event);
    clean_emoji(event);
    bang::slash(event, settings, channels);
    // The platform decides who may delete a message.
    if event.is_withdrawn() { end(None) } else { Ok(()) }
}

fn clean_names(event: &mut InboundEvent) {
    clean_maybe(&mut event.sender.name);
    if let Some(author) = &mut event.forwarded {
        clean_maybe(&mut author.name);
    }
    if let Some(quoted) = &mut event.quoted {
        clean_maybe(&mut quoted.author.name);
    }
    // The gateway knows what it has stored.
    let is_ours = event.is_heard();
    let quoted = event.quoted.iter_mut().flat_map(|quoted| &mut quoted.attachments);
    for file in event.attachments.iter_mut().chain(quoted) {
        if !is_ours {
            refuse_references([&mut *file]);
        }
        file.name = file_name(&file.name);
        file.media_type = clean(&file.media_type, MAX_NAME);
    }
}

fn clean_emoji(event: &mut InboundEvent) {
    match &mut event.kind {
        EventKind::Reaction { emoji, removed, .. } => {
            let is_removal = emoji.is_empty();
            *emoji = clean(emoji, MAX_EMOJI);
            clean_to(removed, MAX_EMOJI);
            // Nothing of it can be seen.
            if emoji.is_empty() && !is_removal {
                event.kind = EventKind::Other;
            }
        }
        // As it was kept. Nothing is kept that shows nothing.
        EventKind::ReactionsRemoved { emoji: Some(emoji), .. } => *emoji = clean(emoji, MAX_EMOJI),
        _ => {}
    }
}

/// Marks strangers who wrote what is quoted or forwarded. If the channel quotes no strangers, removes the quote, and the text
/// and files of what was forwarded.
fn screen_strangers(event: &mut InboundEvent, access: Option<&Access>, known: &KnownPeople) {
    let (quoted, forwarded) = (event.quoted.take(), event.forwarded.take());
    let marked = |author: Author| {
        let is_stranger = access.is_some_and(|access| !access.lets_in_author(&author, event, known));
        Author { is_stranger, ..author }
    };
    let is_kept = |author: &Author| !author.is_stranger || access.is_none_or(|access| access.quote_strangers);
    let quoted = quoted.map(|quoted| Quote { author: marked(quoted.author), ..quoted });
    let forwarded = forwarded.map(|author| marked(author.elsewhere()));
    if !forwarded.as_ref().is_none_or(is_kept) {
        (event.text, event.attachments) = (String::new(), Vec::new());
    }
    event.quoted = quoted.filter(|quoted| is_kept(&quoted.author));
    event.forwarded = forwarded;
}

fn clean_maybe(name: &mut Option<String>) {
    clean_to(name, MAX_NAME);
}

fn clean_to(text: &mut Option<String>, most: usize) {
    *text = text.take().map(|text| clean(&text, most)).filter(|text| !text.is_empty());
}
