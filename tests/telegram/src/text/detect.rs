//! Detects commands, mentions, links, hashtags and addresses, as the server does.

use super::{Entity, utf16};

/// All detected entities, in order.
pub(super) fn find(text: &str) -> Vec<Entity> {
    // A fast path for most texts.
    if !text.contains(['/', '@', '#']) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut before = None;
    let mut at = 0;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (kind, bytes) = match first {
            '/' if !before.is_some_and(|it: char| is_word(it) || matches!(it, '/' | '<' | '>')) => {
                ("bot_command", command(rest))
            }
            '@' if !before.is_some_and(is_word) => ("mention", mention(rest)),
            '#' if !before.is_some_and(is_word) => ("hashtag", hashtag(rest)),
            _ if !before.is_some_and(is_word) => url_or_email(rest),
            _ => ("", 0),
        };
        if bytes == 0 {
            at += first.len_utf16();
            before = Some(first);
            rest = &rest[first.len_utf8()..];
        } else {
            let length = utf16(&rest[..bytes]);
            found.push(Entity::new(kind, at, length));
            at += length;
            before = rest[..bytes].chars().next_back();
            rest = &rest[bytes..];
        }
    }
    found
}

fn is_word(it: char) -> bool {
    it.is_alphanumeric() || it == '_'
}

fn is_name(it: char) -> bool {
    it.is_ascii_alphanumeric() || it == '_'
}

/// The length in bytes of the name at the start.
fn name(text: &str) -> usize {
    text.find(|it| !is_name(it)).unwrap_or(text.len())
}

fn command(rest: &str) -> usize {
    let name = 1 + name(&rest[1..]);
    let after = &rest[name..];
    if !(2..=65).contains(&name) || after.starts_with('/') {
        return 0;
    }
    name + mention(after)
}

fn mention(rest: &str) -> usize {
    let Some(after) = rest.strip_prefix('@') else { return 0 };
    let name = name(after);
    if (4..=32).contains(&name) && !after[name..].chars().next().is_some_and(is_word) { 1 + name } else { 0 }
}

fn hashtag(rest: &str) -> usize {
    let length = rest[1..].find(|it| !is_word(it)).unwrap_or(rest.len() - 1);
    let tag = &rest[1..=length];
    if tag.chars().any(|it| !it.is_numeric()) { 1 + length } else { 0 }
}

fn url_or_email(rest: &str) -> (&'static str, usize) {
    for scheme in ["https://", "http://"] {
        if rest.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)) {
            let end = rest.find(|it: char| it.is_whitespace() || matches!(it, '<' | '>' | '"')).unwrap_or(rest.len());
            let link = rest[..end].trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '\'']);
            return ("url", if link.len() > scheme.len() { link.len() } else { 0 });
        }
    }
    ("email", email(rest).unwrap_or(0))
}

fn email(rest: &str) -> Option<usize> {
    let user = rest.find(|it: char| !(is_name(it) || matches!(it, '.' | '-' | '+')))?;
    let after = rest[user..].strip_prefix('@')?;
    let host = after.find(|it: char| !(it.is_ascii_alphanumeric() || matches!(it, '.' | '-'))).unwrap_or(after.len());
    let host = after[..host].trim_end_matches(['.', '-']);
    (user > 0 && host.contains('.')).then_some(user + 1 + host.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(String, usize, usize)> {
        find(text).into_iter().map(|it| (it.kind, it.offset, it.length)).collect()
    }

    #[test]
    fn commands_and_mentions_are_found_in_utf16_units() {
        assert_eq!(found("/start"), [("bot_command".to_owned(), 0, 6)]);
        assert_eq!(found("😎 /new@house_bot x"), [("bot_command".to_owned(), 3, 14)]);
        assert_eq!(found("hey @house_bot!"), [("mention".to_owned(), 4, 10)]);
        assert_eq!(found("a/b 1/2 // x@y"), []);
    }

    #[test]
    fn links_end_before_the_full_stop() {
        assert_eq!(found("see https://example.org/a?b=c."), [("url".to_owned(), 4, 25)]);
        assert_eq!(found("write ada@example.org, #now"), [("email".to_owned(), 6, 15), ("hashtag".to_owned(), 23, 4)]);
    }
}
