//! Prepares an event before anything else reads it: cleans the names in it, and marks or removes what a stranger said.

use crate::model::{
    access::Access,
    event::{Author, InboundEvent, Quote},
    people::KnownPeople,
    settings::Settings,
};

/// How many characters of a name are kept. Names are chosen by people who may mean harm.
const MAX_NAME: usize = 100;

/// The name of a file that has none.
const UNNAMED_FILE: &str = "file";

/// An event with clean names, and with the words of strangers as the channel's access rules want them.
pub(super) fn screen(event: InboundEvent, settings: &Settings, known: &KnownPeople) -> InboundEvent {
    let access = settings.access.get(&event.conversation.channel);
    let mut event = screened(event, access, known);
    clean_maybe(&mut event.sender.name);
    if let Some(author) = &mut event.forwarded {
        clean_maybe(&mut author.name);
    }
    if let Some(quoted) = &mut event.quoted {
        clean_maybe(&mut quoted.author.name);
    }
    let quoted = event.quoted.iter_mut().flat_map(|quoted| &mut quoted.attachments);
    for file in event.attachments.iter_mut().chain(quoted) {
        file.name = clean(&file.name);
        file.media_type = clean(&file.media_type);
        if file.name.is_empty() {
            UNNAMED_FILE.clone_into(&mut file.name);
        }
    }
    event
}

/// Marks strangers who wrote what is quoted or forwarded. If the channel quotes no strangers, removes the quote, and the text
/// and files of what was forwarded.
fn screened(mut event: InboundEvent, access: Option<&Access>, known: &KnownPeople) -> InboundEvent {
    let (quoted, forwarded) = (event.quoted.take(), event.forwarded.take());
    let marked = |author: Author| {
        let is_stranger = access.is_some_and(|access| !access.lets_in_author(&author, &event, known));
        Author { is_stranger, ..author }
    };
    let is_kept = |author: &Author| !author.is_stranger || access.is_none_or(|access| access.quote_strangers);
    let quoted = quoted.map(|quoted| Quote { author: marked(quoted.author), ..quoted });
    let quoted = quoted.filter(|quoted| is_kept(&quoted.author));
    let forwarded = forwarded.map(|author| marked(author.elsewhere()));
    if forwarded.as_ref().is_none_or(is_kept) {
        return InboundEvent { quoted, forwarded, ..event };
    }
    InboundEvent { quoted, forwarded, text: String::new(), attachments: Vec::new(), ..event }
}

fn clean_maybe(name: &mut Option<String>) {
    *name = name.take().map(|name| clean(&name)).filter(|name| !name.is_empty());
}

/// A name in one line of at most [`MAX_NAME`] characters, without characters that show nothing or turn the direction of
/// the text.
fn clean(name: &str) -> String {
    let visible: String =
        name.chars().filter(|c| !is_hidden(*c)).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let one_line = visible.split_whitespace().collect::<Vec<_>>().join(" ");
    one_line.chars().take(MAX_NAME).collect()
}

/// Whether a character shows nothing: zero-width marks, fillers, tags, and the marks of bidirectional text.
#[must_use]
pub const fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_short_line_of_what_can_be_seen() {
        assert_eq!(clean("Ada\u{202e} \u{200b}Love\u{ad}lace\u{e0041}"), "Ada Lovelace");
        assert_eq!(clean(" a\n\tb\u{0}\u{2028}c "), "a b c");
        assert_eq!(clean("Ḁ́ 👩‍🚀 زهرا"), "Ḁ́ 👩🚀 زهرا");
        assert_eq!(clean("\u{3164}\u{200d}"), "");
        assert_eq!(clean(&"ä".repeat(1000)).chars().count(), MAX_NAME);
    }
}
