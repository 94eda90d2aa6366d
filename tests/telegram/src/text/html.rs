//! `parse_mode = "HTML"` (<https://core.telegram.org/bots/api#html-style>).

use super::{Builder, Entity, Formatted};

struct Open {
    tag: String,
    /// Position in the text, in UTF-16 units.
    at: usize,
    /// Position in the text, in bytes.
    start: usize,
    argument: Option<String>,
}

/// Parses markup into a text with entities.
///
/// # Errors
/// The server's error text, with a byte offset.
pub(super) fn parse(markup: &str) -> Result<Formatted, String> {
    let mut out = Builder::default();
    let mut open: Vec<Open> = Vec::new();
    let mut at = 0;
    while let Some(it) = markup[at..].chars().next() {
        match it {
            '&' => {
                let (meant, bytes) = character(&markup[at..]).unwrap_or(('&', 1));
                out.push(meant);
                at += bytes;
            }
            '<' if markup[at + 1..].starts_with('/') => {
                let end = markup[at..].find('>').ok_or_else(|| format!("Unclosed end tag at byte offset {at}"))?;
                let name = markup[at + 2..at + end].trim().to_ascii_lowercase();
                let opened = open.pop().ok_or_else(|| format!("Unexpected end tag at byte offset {at}"))?;
                if !name.is_empty() && name != opened.tag {
                    return Err(format!(
                        "Unmatched end tag at byte offset {at}, expected \"</{}>\", found \"</{name}>\"",
                        opened.tag
                    ));
                }
                close(&mut out, &opened);
                at += end + 1;
            }
            '<' => {
                let (opened, bytes) = start_tag(&markup[at..], at, &out)?;
                open.push(opened);
                at += bytes;
            }
            it => {
                out.push(it);
                at += it.len_utf8();
            }
        }
    }
    match open.pop() {
        Some(unclosed) => Err(format!("Can't find end tag corresponding to start tag \"{}\"", unclosed.tag)),
        None => Ok(merge_pre(out.finish())),
    }
}

fn close(out: &mut Builder, opened: &Open) {
    let argument = opened.argument.clone();
    let kind = match &*opened.tag {
        "b" | "strong" => "bold",
        "i" | "em" => "italic",
        "u" | "ins" => "underline",
        "s" | "strike" | "del" => "strikethrough",
        "span" | "tg-spoiler" => "spoiler",
        "tg-emoji" => return out.mark("custom_emoji", opened.at, |entity| entity.custom_emoji_id = argument),
        "a" => {
            // Without `href` the text itself is the URL.
            let url = argument.filter(|url| !url.is_empty()).unwrap_or_else(|| out.text[opened.start..].to_owned());
            return out.link(&url, opened.at);
        }
        "code" => return out.mark("code", opened.at, |entity| entity.language = argument),
        "pre" => "pre",
        _ if opened.argument.is_some() => "expandable_blockquote",
        _ => "blockquote",
    };
    out.mark(kind, opened.at, |_| ());
}

/// `<pre><code class="language-x">` is one `pre` with a language; other `code` has no language.
fn merge_pre(mut formatted: Formatted) -> Formatted {
    let codes: Vec<Entity> = formatted.entities.iter().filter(|it| it.kind == "code").cloned().collect();
    for pre in formatted.entities.iter_mut().filter(|it| it.kind == "pre") {
        let same = codes.iter().find(|code| code.offset == pre.offset && code.length == pre.length);
        if let Some(language) = same.and_then(|code| code.language.clone()) {
            pre.language = Some(language);
        }
    }
    let pres: Vec<_> =
        formatted.entities.iter().filter(|it| it.kind == "pre").map(|it| (it.offset, it.length)).collect();
    formatted.entities.retain(|it| it.kind != "code" || !pres.contains(&(it.offset, it.length)));
    for code in formatted.entities.iter_mut().filter(|it| it.kind == "code") {
        code.language = None;
    }
    formatted
}

fn start_tag(rest: &str, offset: usize, out: &Builder) -> Result<(Open, usize), String> {
    let end = tag_end(rest).ok_or_else(|| format!("Unclosed start tag at byte offset {offset}"))?;
    let inside = &rest[1..end];
    let name_end = inside.find(char::is_whitespace).unwrap_or(inside.len());
    let tag = inside[..name_end].to_ascii_lowercase();
    let attributes = attributes(&inside[name_end..]);
    let value = |name: &str| attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
    let argument = match &*tag {
        "b" | "strong" | "i" | "em" | "u" | "ins" | "s" | "strike" | "del" | "tg-spoiler" | "pre" => None,
        "a" => Some(value("href").unwrap_or_default()),
        "code" => value("class").and_then(|class| class.strip_prefix("language-").map(str::to_owned)),
        "blockquote" => value("expandable"),
        "tg-emoji" => value("emoji-id"),
        "span" if value("class").as_deref() == Some("tg-spoiler") => None,
        "span" => return Err(format!("Tag \"span\" must have class \"tg-spoiler\" at byte offset {offset}")),
        _ => return Err(format!("Unsupported start tag \"{tag}\" at byte offset {offset}")),
    };
    Ok((Open { tag, at: out.at, start: out.text.len(), argument }, end + 1))
}

/// The position of the `>` that ends a tag, outside quotes.
fn tag_end(rest: &str) -> Option<usize> {
    let mut quote = None;
    for (at, it) in rest.char_indices().skip(1) {
        match (quote, it) {
            (None, '>') => return Some(at),
            (None, '"' | '\'') => quote = Some(it),
            (Some(opened), it) if opened == it => quote = None,
            _ => (),
        }
    }
    None
}

fn attributes(mut text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    loop {
        text = text.trim_start();
        let name = text.find(|it: char| it == '=' || it.is_whitespace()).unwrap_or(text.len());
        if name == 0 {
            return found;
        }
        let key = text[..name].to_ascii_lowercase();
        text = text[name..].trim_start();
        let Some(after) = text.strip_prefix('=') else {
            found.push((key, String::new()));
            continue;
        };
        let after = after.trim_start();
        let (value, rest) = match after.chars().next() {
            Some(quote @ ('"' | '\'')) => after[1..].split_once(quote).unwrap_or((&after[1..], "")),
            _ => after.split_at(after.find(char::is_whitespace).unwrap_or(after.len())),
        };
        found.push((key, unescape(value)));
        text = rest;
    }
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(it) = text[at..].chars().next() {
        let (meant, bytes) = if it == '&' { character(&text[at..]).unwrap_or((it, 1)) } else { (it, it.len_utf8()) };
        out.push(meant);
        at += bytes;
    }
    out
}

/// The meaning of a character reference and its length in bytes.
fn character(rest: &str) -> Option<(char, usize)> {
    let end = rest.find(';').filter(|end| *end <= 10)?;
    let name = &rest[1..end];
    let meant = match name {
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        "quot" => '"',
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?)?
        }
    };
    Some((meant, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_become_entities() {
        let it = parse("<b>b<i>i</i></b> &lt;<a href=\"https://e.org/?a=1&amp;b=2\">l</a>").unwrap();
        assert_eq!(it.text, "bi <l");
        let kinds: Vec<_> = it.entities.iter().map(|it| (&*it.kind, it.offset, it.length)).collect();
        assert_eq!(kinds, [("italic", 1, 1), ("bold", 0, 2), ("text_link", 4, 1)]);
        assert_eq!(it.entities[2].url.as_deref(), Some("https://e.org/?a=1&b=2"));
    }

    #[test]
    fn code_in_pre_gives_the_language() {
        let it = parse("<pre><code class=\"language-rust\">fn</code></pre>").unwrap();
        assert_eq!(it.entities.len(), 1);
        assert_eq!(it.entities[0].language.as_deref(), Some("rust"));
    }

    #[test]
    fn bad_markup_says_where() {
        let error = |markup| parse(markup).unwrap_err();
        assert_eq!(error("a <x>"), "Unsupported start tag \"x\" at byte offset 2");
        assert_eq!(error("é < b"), "Unclosed start tag at byte offset 3");
        assert_eq!(error("a</b>"), "Unexpected end tag at byte offset 1");
        assert_eq!(error("<b>a"), "Can't find end tag corresponding to start tag \"b\"");
        assert_eq!(error("<b><i>a</b></i>"), "Unmatched end tag at byte offset 7, expected \"</i>\", found \"</b>\"");
    }
}
