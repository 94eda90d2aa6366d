//! Extracts the text of messages and mentions, and the numbers on reactions.

use super::context::EventContext;
use crate::payload::{Event, Message};

/// The text of a message, without the quote and the mention that clients put before it.
pub(super) fn message_text(event: &Event, message: &Message, context: &EventContext<'_>) -> String {
    let body = if message.relates_to.in_reply_to.is_some() { without_quote(&message.body) } else { &message.body };
    let body = body.trim();
    if event.kind == "m.sticker" {
        return body.to_owned();
    }
    match &*message.msgtype {
        "m.image" | "m.audio" | "m.video" | "m.file" => {
            // The body is a caption if there is a different `filename`; otherwise it is the file's name.
            let has_caption = message.filename.as_deref().is_some_and(|name| name != body);
            if has_caption { without_mention(body, context).to_owned() } else { String::new() }
        }
        "m.location" => {
            let place = message.geo_uri.as_deref().unwrap_or_default();
            format!("📍 {body} ({place})").replace(" ()", "")
        }
        _ => without_mention(body, context).to_owned(),
    }
}

/// Removes the quote that older clients put before a reply
/// (<https://spec.matrix.org/v1.12/client-server-api/#fallbacks-for-rich-replies>).
fn without_quote(body: &str) -> &str {
    if !(body.starts_with("> <@") || body.starts_with("> * <@")) {
        return body;
    }
    let mut rest = body;
    while let Some(line) = rest.strip_prefix('>') {
        rest = line.split_once('\n').map_or("", |(_, after)| after);
    }
    rest.trim_start_matches('\n')
}

/// Removes our name, which clients put before a message to us.
fn without_mention<'a>(body: &'a str, context: &EventContext<'_>) -> &'a str {
    let bare = body.strip_prefix('@').unwrap_or(body);
    let names = std::iter::once(context.me).chain(context.names.iter().map(String::as_str));
    let after = names.filter_map(|name| starts_with(body, name).or_else(|| starts_with(bare, name)));
    let after = after.filter(|rest| rest.starts_with([':', ',']) || rest.starts_with(char::is_whitespace));
    // The localpart of our id may be an ordinary word, so it must be followed by `:` or `,`.
    let short = localpart(context.me).and_then(|name| starts_with(bare, name));
    let rest = after.chain(short.filter(|rest| rest.starts_with([':', ',']))).next();
    let text = rest.map(|rest| rest.trim_start_matches([':', ',']).trim_start());
    // A message of nothing but our name is kept as it is.
    text.filter(|text| !text.is_empty()).unwrap_or(body)
}

/// The rest of `body` after `name`, ignoring case.
fn starts_with<'a>(body: &'a str, name: &str) -> Option<&'a str> {
    let end = body.char_indices().nth(name.chars().count()).map_or(body.len(), |(at, _)| at);
    let (start, rest) = body.split_at(end);
    (!name.is_empty() && start.to_lowercase() == name.to_lowercase()).then_some(rest)
}

fn localpart(user: &str) -> Option<&str> {
    user.strip_prefix('@')?.split_once(':').map(|(name, _)| name)
}

/// Whether a message mentions us (<https://spec.matrix.org/latest/client-server-api/#user-and-room-mentions>).
pub(super) fn mentions(message: &Message, context: &EventContext<'_>) -> bool {
    if let Some(mentions) = &message.mentions {
        return mentions.user_ids.iter().any(|user| user == context.me);
    }
    // The client does not support `m.mentions`: look for a link to us, or our name.
    let links = [format!("matrix.to/#/{}", context.me), format!("matrix.to/#/{}", context.me.replacen('@', "%40", 1))];
    let html = message.formatted_body.as_deref().unwrap_or_default();
    let body = without_quote(&message.body);
    links.iter().any(|link| html.contains(link.as_str()))
        || std::iter::once(context.me).chain(context.names.iter().map(String::as_str)).any(|name| is_in(body, name))
}

/// Whether a name occurs in a text as a whole word, ignoring case.
fn is_in(text: &str, name: &str) -> bool {
    let (text, name) = (text.to_lowercase(), name.to_lowercase());
    let is_word = |character: Option<char>| character.is_some_and(|it| it.is_alphanumeric() || it == '_');
    !name.is_empty()
        && text
            .match_indices(&name)
            .any(|(at, _)| !is_word(text[..at].chars().next_back()) && !is_word(text[at + name.len()..].chars().next()))
}

/// The index, from 0, of a number that counts from 1: `2`, `2.`, `2)`, `2️⃣`.
pub(super) fn number(text: &str) -> Option<usize> {
    if text.trim_end_matches('\u{fe0f}') == "🔟" {
        return Some(9);
    }
    let digits = text.trim_end_matches(['\u{fe0f}', '\u{20e3}', '.', ')']);
    let number: usize = digits.parse().ok().filter(|_| digits.len() <= 2)?;
    number.checked_sub(1)
}

/// The number emoji for an index from 0; `None` after the tenth.
pub(crate) fn keycap(index: usize) -> Option<String> {
    match index {
        0..9 => Some(format!("{}\u{fe0f}\u{20e3}", index + 1)),
        9 => Some("🔟".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_a_place_whatever_it_looks_like() {
        for text in ["2", "2.", "2)", "2\u{fe0f}\u{20e3}", "2\u{20e3}"] {
            assert_eq!(number(text), Some(1), "{text}");
        }
        for index in 0..10 {
            assert_eq!(keycap(index).as_deref().and_then(number), Some(index));
        }
        for text in ["", "0", "two", "-1", "👍", "100"] {
            assert_eq!(number(text), None, "{text}");
        }
        assert_eq!(keycap(10), None);
    }

    #[test]
    fn the_fallback_of_a_reply_is_no_part_of_it() {
        assert_eq!(without_quote("> <@ada:example.org> one\n> two\n\nyes"), "yes");
        assert_eq!(without_quote("> a quote of mine\nyes"), "> a quote of mine\nyes");
        assert_eq!(without_quote("yes"), "yes");
    }

    #[test]
    fn a_name_is_a_word() {
        assert!(is_in("hey Agent, hello", "agent"));
        assert!(is_in("agent", "Agent"));
        assert!(!is_in("agents are many", "agent"));
        assert!(!is_in("reagent", "agent"));
        assert!(!is_in("hello", ""));
    }
}
