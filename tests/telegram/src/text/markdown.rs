//! The legacy `parse_mode = "Markdown"` (<https://core.telegram.org/bots/api#markdown-style>), and what all modes share:
//! link targets and the start of a code block.

use super::{Builder, Formatted};

/// What a link refers to.
pub(super) enum Target {
    Link(String),
    Person(i64),
}

/// The target of `url`; `None` when it is not a link.
pub(super) fn target(url: &str) -> Option<Target> {
    let url = url.trim();
    if let Some(id) = url.strip_prefix("tg://user?id=") {
        return id.parse().ok().map(Target::Person);
    }
    if url.starts_with("tg://") || url.contains("://") {
        return Some(Target::Link(url.to_owned()));
    }
    // Like the server, a bare host becomes a web address.
    let host = url.split(['/', '?', '#']).next().unwrap_or_default();
    let dotted = host.contains('.') && !host.starts_with('.') && !host.ends_with('.');
    let plain = host.chars().all(|it| it.is_alphanumeric() || matches!(it, '.' | '-' | ':'));
    (dotted && plain).then(|| Target::Link(format!("http://{url}{}", if url.len() == host.len() { "/" } else { "" })))
}

/// After the backticks of a code block: its language, and the number of bytes before its first character.
pub(super) fn block_start(rest: &str) -> (Option<String>, usize) {
    let word = rest.find(|it: char| it.is_whitespace() || it == '`').unwrap_or(rest.len());
    let named = word > 0 && rest[word..].chars().next().is_some_and(char::is_whitespace);
    let language = named.then(|| rest[..word].to_owned());
    let skip = if named { word } else { 0 };
    let line_end = ["\r\n", "\n\r", "\n", "\r"].into_iter().find(|end| rest[skip..].starts_with(end));
    (language, skip + line_end.map_or(0, str::len))
}

/// Parses markup into a text with entities.
///
/// # Errors
/// The server's error text, with a byte offset.
pub(super) fn parse(markup: &str) -> Result<Formatted, String> {
    let mut out = Builder::default();
    let mut at = 0;
    while let Some(it) = markup[at..].chars().next() {
        let next = markup[at + it.len_utf8()..].chars().next();
        match it {
            '\\' if next.is_some_and(|next| "_*`[".contains(next)) => {
                out.push(next.unwrap_or_default());
                at += 2;
            }
            '_' | '*' | '`' | '[' => at += entity(&mut out, &markup[at..], at)?,
            it => {
                out.push(it);
                at += it.len_utf8();
            }
        }
    }
    Ok(out.finish())
}

/// Parses one entity, which cannot contain another; returns the number of bytes it took.
fn entity(out: &mut Builder, rest: &str, offset: usize) -> Result<usize, String> {
    let unended = || format!("Can't find end of the entity starting at byte offset {offset}");
    let from = out.at;
    if let Some(block) = rest.strip_prefix("```") {
        let (language, skip) = block_start(block);
        let length = block[skip..].find("```").ok_or_else(unended)?;
        block[skip..skip + length].chars().for_each(|it| out.push(it));
        out.mark("pre", from, |entity| entity.language = language);
        return Ok(3 + skip + length + 3);
    }
    let (kind, end) = match rest.as_bytes()[0] {
        b'_' => ("italic", '_'),
        b'*' => ("bold", '*'),
        b'`' => ("code", '`'),
        _ => ("", ']'),
    };
    let length = rest[1..].find(end).ok_or_else(unended)?;
    let inside = &rest[1..=length];
    inside.chars().for_each(|it| out.push(it));
    let after = length + 2;
    if end != ']' {
        out.mark(kind, from, |_| ());
        return Ok(after);
    }
    let (url, after) = match rest[after..].strip_prefix('(') {
        Some(link) => {
            let length = link.find(')').unwrap_or(link.len());
            (&link[..length], (after + 1 + length + 1).min(rest.len()))
        }
        None => (inside, after),
    };
    out.link(url, from);
    Ok(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_become_entities() {
        let it = parse("*b* _i_ `c` [l](https://e.org) \\*").unwrap();
        assert_eq!(it.text, "b i c l *");
        let kinds: Vec<_> = it.entities.iter().map(|it| (&*it.kind, it.offset, it.length)).collect();
        assert_eq!(kinds, [("bold", 0, 1), ("italic", 2, 1), ("code", 4, 1), ("text_link", 6, 1)]);
    }

    #[test]
    fn a_lone_underscore_says_where() {
        assert_eq!(parse("é zephyr_z9").unwrap_err(), "Can't find end of the entity starting at byte offset 9");
    }

    #[test]
    fn a_block_has_its_language() {
        let it = parse("```rust\nfn```").unwrap();
        assert_eq!((&*it.text, it.entities[0].language.as_deref()), ("fn", Some("rust")));
    }
}
