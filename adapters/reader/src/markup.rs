//! HTML and XML as a row of tags and texts. Takes linear time, and no entity of a document is used.

use std::borrow::Cow;

/// How many characters the name of a character has at most.
const LONGEST_NAME: usize = 10;

/// The names of the characters 160 to 255, in order.
const LATIN: [&str; 96] = [
    "nbsp", "iexcl", "cent", "pound", "curren", "yen", "brvbar", "sect", "uml", "copy", "ordf", "laquo", "not", "shy",
    "reg", "macr", "deg", "plusmn", "sup2", "sup3", "acute", "micro", "para", "middot", "cedil", "sup1", "ordm",
    "raquo", "frac14", "frac12", "frac34", "iquest", "Agrave", "Aacute", "Acirc", "Atilde", "Auml", "Aring", "AElig",
    "Ccedil", "Egrave", "Eacute", "Ecirc", "Euml", "Igrave", "Iacute", "Icirc", "Iuml", "ETH", "Ntilde", "Ograve",
    "Oacute", "Ocirc", "Otilde", "Ouml", "times", "Oslash", "Ugrave", "Uacute", "Ucirc", "Uuml", "Yacute", "THORN",
    "szlig", "agrave", "aacute", "acirc", "atilde", "auml", "aring", "aelig", "ccedil", "egrave", "eacute", "ecirc",
    "euml", "igrave", "iacute", "icirc", "iuml", "eth", "ntilde", "ograve", "oacute", "ocirc", "otilde", "ouml",
    "divide", "oslash", "ugrave", "uacute", "ucirc", "uuml", "yacute", "thorn", "yuml",
];

/// Other characters that pages name.
const NAMED: [(&str, char); 26] = [
    ("amp", '&'),
    ("lt", '<'),
    ("gt", '>'),
    ("quot", '"'),
    ("apos", '\''),
    ("ndash", '–'),
    ("mdash", '—'),
    ("hellip", '…'),
    ("lsquo", '‘'),
    ("rsquo", '’'),
    ("sbquo", '‚'),
    ("ldquo", '“'),
    ("rdquo", '”'),
    ("bdquo", '„'),
    ("lsaquo", '‹'),
    ("rsaquo", '›'),
    ("euro", '€'),
    ("bull", '•'),
    ("trade", '™'),
    ("ensp", ' '),
    ("emsp", ' '),
    ("thinsp", ' '),
    ("larr", '←'),
    ("rarr", '→'),
    ("minus", '−'),
    ("permil", '‰'),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// A text, of which [`decoded`] gives the characters.
    Text(&'a str),
    /// A text in which no characters are named.
    Verbatim(&'a str),
    Open {
        name: &'a str,
        /// See [`attribute`].
        attributes: &'a str,
        /// Whether it closes itself.
        is_empty: bool,
    },
    Close(&'a str),
}

pub(crate) struct Markup<'a> {
    rest: &'a str,
}

impl<'a> Markup<'a> {
    pub(crate) const fn new(source: &'a str) -> Self {
        Self { rest: source }
    }

    /// Leaves out everything before the end of the element that was opened last.
    pub(crate) fn skip_to_close(&mut self, name: &str) {
        let closes = |window: &[u8]| window.starts_with(b"</") && window[2..].eq_ignore_ascii_case(name.as_bytes());
        let found = self.rest.as_bytes().windows(name.len() + 2).position(closes);
        self.rest = found.map_or("", |at| &self.rest[at..]);
    }
}

impl<'a> Iterator for Markup<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        loop {
            let rest = self.rest;
            let Some(tag) = rest.strip_prefix('<') else {
                if rest.is_empty() {
                    return None;
                }
                let (text, rest) = rest.split_at(rest.find('<').unwrap_or(rest.len()));
                self.rest = rest;
                return Some(Piece::Text(text));
            };
            if let Some(comment) = tag.strip_prefix("!--") {
                self.rest = comment.split_once("-->").map_or("", |(_, rest)| rest);
            } else if let Some(data) = tag.strip_prefix("![CDATA[") {
                let (text, rest) = data.split_once("]]>").unwrap_or((data, ""));
                self.rest = rest;
                return Some(Piece::Verbatim(text));
            } else if tag.starts_with(['!', '?']) {
                self.rest = tag.split_once('>').map_or("", |(_, rest)| rest);
            } else if tag.starts_with(|c: char| c == '/' || c.is_alphabetic() || c == '_') {
                let (inside, rest) = tag.split_at(tag_end(tag));
                self.rest = rest.strip_prefix('>').unwrap_or(rest);
                return Some(read_tag(inside));
            } else {
                self.rest = tag;
                return Some(Piece::Verbatim("<"));
            }
        }
    }
}

/// Where a tag ends. Values of attributes may contain what else ends one.
fn tag_end(tag: &str) -> usize {
    let bytes = tag.as_bytes();
    let (mut at, mut is_value) = (0, false);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'>' => return at,
            b'"' | b'\'' if is_value => {
                at += bytes[at + 1..].iter().position(|other| other == byte).map_or(0, |length| length + 1);
                is_value = false;
            }
            b'=' => is_value = true,
            byte => is_value &= byte.is_ascii_whitespace(),
        }
        at += 1;
    }
    bytes.len()
}

fn read_tag(inside: &str) -> Piece<'_> {
    if let Some(name) = inside.strip_prefix('/') {
        return Piece::Close(name.trim());
    }
    let is_empty = inside.ends_with('/');
    let inside = inside.strip_suffix('/').unwrap_or(inside);
    let (name, attributes) = inside.split_once(|c: char| c.is_whitespace() || c == '/').unwrap_or((inside, ""));
    Piece::Open { name, attributes, is_empty }
}

/// A name without the prefix of its namespace.
pub(crate) fn local(name: &str) -> &str {
    name.rsplit_once(':').map_or(name, |(_, local)| local)
}

/// The value of an attribute of a tag in XML.
pub(crate) fn attribute<'a>(attributes: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = attributes;
    loop {
        let (key, after) = rest.split_once('=')?;
        let after = after.trim_start();
        let quote = after.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let (value, next) = after[1..].split_once(quote)?;
        if local(key.trim()) == name {
            return Some(value);
        }
        rest = next;
    }
}

/// A text with the characters that it names.
pub(crate) fn decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let (mut decoded, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once('&') {
        decoded.push_str(before);
        let end = after.bytes().take(LONGEST_NAME + 1).position(|byte| byte == b';');
        if let Some((character, end)) = end.and_then(|end| Some((character(&after[..end])?, end))) {
            decoded.push(character);
            rest = &after[end + 1..];
        } else {
            decoded.push('&');
            rest = after;
        }
    }
    decoded.push_str(rest);
    decoded.into()
}

fn character(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(digits) => u32::from_str_radix(digits, 16),
            None => number.parse(),
        };
        return char::from_u32(code.ok()?);
    }
    let latin = || (160..).zip(LATIN).find_map(|(code, latin)| (latin == name).then(|| char::from_u32(code))?);
    NAMED.iter().find_map(|(other, character)| (*other == name).then_some(*character)).or_else(latin)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn texts(source: &str) -> String {
        let text = |piece| match piece {
            Piece::Text(text) => decoded(text).into_owned(),
            Piece::Verbatim(text) => text.to_owned(),
            Piece::Open { name, is_empty, .. } => format!("[{name}{}]", if is_empty { "/" } else { "" }),
            Piece::Close(name) => format!("[/{name}]"),
        };
        Markup::new(source).map(text).collect()
    }

    #[rstest]
    #[case("<p class=\"a>b\" id='>'>Hi</p >", "[p]Hi[/p]")]
    #[case("<br/><hr /><a href=x/y>z", "[br/][hr/][a]z")]
    #[case("<?xml version=\"1.0\"?><!DOCTYPE html><!-- <b> -->x", "x")]
    #[case("<w:t><![CDATA[a & <b>]]></w:t>", "[w:t]a & <b>[/w:t]")]
    #[case("1 < 2 and it's <i title=it's>so</i>", "1 < 2 and it's [i]so[/i]")]
    #[case("a<", "a<")]
    #[case("a<b title=\"", "a[b]")]
    #[case("<!-- never ends", "")]
    #[case("", "")]
    fn markup_is_tags_and_texts(#[case] source: &str, #[case] expected: &str) {
        assert_eq!(texts(source), expected);
    }

    #[rstest]
    #[case("&lt;b&gt; &amp;amp; &quot;", "<b> &amp; \"")]
    #[case("Gr&uuml;&szlig;e &ndash; &yuml;&nbsp;&euro;", "Grüße – ÿ\u{a0}€")]
    #[case("&#228;&#xE4;&#x1F600;", "ää😀")]
    #[case("&lol9; &; & &#x110000; &#; AT&T &longest-of-them;", "&lol9; &; & &#x110000; &#; AT&T &longest-of-them;")]
    fn a_text_names_characters(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(decoded(text), expected);
    }

    #[test]
    fn attributes_are_found_by_their_local_names() {
        let attributes = " r = \"B2\" x:t='s' empty=\"\"";

        let found = ["r", "t", "empty", "x"].map(|name| attribute(attributes, name));

        assert_eq!(found, [Some("B2"), Some("s"), Some(""), None]);
    }

    #[test]
    fn what_an_element_contains_can_be_left_out() {
        let mut markup = Markup::new("if (a < b) \"<p>\"</SCRIPT >x");

        markup.skip_to_close("script");

        assert_eq!(markup.collect::<Vec<_>>(), [Piece::Close("SCRIPT"), Piece::Text("x")]);
    }
}
