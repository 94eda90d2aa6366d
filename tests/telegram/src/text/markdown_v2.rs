//! `parse_mode = "MarkdownV2"` (<https://core.telegram.org/bots/api#markdownv2-style>).

use super::{Builder, Formatted, markdown::block_start};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Bold,
    Italic,
    Underline,
    Strikethrough,
    Spoiler,
    Code,
    Pre,
    TextUrl,
    CustomEmoji,
    BlockQuote,
}

struct Open {
    mark: Mark,
    /// Position in the markup, in bytes.
    byte: usize,
    /// Position in the text, in UTF-16 units.
    at: usize,
    /// Position in the text, in bytes.
    start: usize,
    language: Option<String>,
}

const RESERVED: &str = "_*[]()~`>#+-=|{}.!";

/// Parses markup into a text with entities.
///
/// # Errors
/// The server's error text, with a byte offset.
pub(super) fn parse(markup: &str) -> Result<Formatted, String> {
    let mut parser = Parser { markup, at: 0, out: Builder::default(), open: Vec::new() };
    while let Some(it) = parser.rest().chars().next() {
        parser.step(it)?;
    }
    parser.finish()
}

struct Parser<'a> {
    markup: &'a str,
    /// Position in the markup, in bytes.
    at: usize,
    out: Builder,
    open: Vec<Open>,
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        &self.markup[self.at..]
    }

    fn step(&mut self, it: char) -> Result<(), String> {
        let escaped = self.rest()[it.len_utf8()..].chars().next().filter(|next| (1..=126).contains(&u32::from(*next)));
        if let ('\\', Some(next)) = (it, escaped) {
            self.out.push(next);
            self.at += 2;
            return Ok(());
        }
        let inside = self.open.last().map(|open| open.mark);
        let verbatim = matches!(inside, Some(Mark::Code | Mark::Pre));
        if (verbatim && it != '`') || (it != '\n' && !RESERVED.contains(it)) {
            self.out.push(it);
            self.at += it.len_utf8();
            return Ok(());
        }
        if it == '\n' {
            return self.line_end();
        }
        match inside {
            Some(mark) if self.ends(mark) => self.close(),
            // A single backtick inside a code block is literal.
            Some(Mark::Pre) => {
                self.out.push(it);
                self.at += 1;
                Ok(())
            }
            _ => self.begin(it),
        }
    }

    fn line_end(&mut self) -> Result<(), String> {
        let quoted_next = self.rest()[1..].starts_with('>');
        let in_quote = self.open.iter().any(|open| open.mark == Mark::BlockQuote);
        if in_quote && !quoted_next {
            self.end_quote()?;
        }
        self.out.push('\n');
        self.at += 1;
        if quoted_next {
            if !in_quote {
                self.push(Mark::BlockQuote, 0, None);
            }
            self.at += 1;
        }
        Ok(())
    }

    fn end_quote(&mut self) -> Result<(), String> {
        // `||` at the end of a quote makes it expandable.
        let mut kind = "blockquote";
        if self.open.len() >= 2
            && self.open.last().is_some_and(|last| last.mark == Mark::Spoiler && last.at == self.out.at)
        {
            self.open.pop();
            kind = "expandable_blockquote";
        }
        let last = self.open.pop().expect("a quote is open");
        if last.mark != Mark::BlockQuote {
            return Err(unended(&last));
        }
        self.out.mark(kind, last.at, |_| ());
        Ok(())
    }

    fn ends(&self, mark: Mark) -> bool {
        let rest = self.rest();
        match mark {
            Mark::Bold => rest.starts_with('*'),
            Mark::Italic => rest.starts_with('_') && !rest.starts_with("__"),
            Mark::Underline => rest.starts_with("__"),
            Mark::Strikethrough => rest.starts_with('~'),
            Mark::Spoiler => rest.starts_with("||"),
            Mark::Code => rest.starts_with('`'),
            Mark::Pre => rest.starts_with("```"),
            Mark::TextUrl | Mark::CustomEmoji => rest.starts_with(']'),
            Mark::BlockQuote => false,
        }
    }

    fn push(&mut self, mark: Mark, bytes: usize, language: Option<String>) {
        let start = self.out.text.len();
        self.open.push(Open { mark, byte: self.at, at: self.out.at, start, language });
        self.at += bytes;
    }

    fn begin(&mut self, it: char) -> Result<(), String> {
        let rest = self.rest();
        let (mark, bytes) = match it {
            '_' if rest.starts_with("__") => (Mark::Underline, 2),
            '_' => (Mark::Italic, 1),
            '*' => (Mark::Bold, 1),
            '~' => (Mark::Strikethrough, 1),
            '|' if rest.starts_with("||") => (Mark::Spoiler, 2),
            '[' => (Mark::TextUrl, 1),
            '!' if rest.starts_with("![") => (Mark::CustomEmoji, 2),
            '`' if rest.starts_with("```") => {
                let (language, skip) = block_start(&rest[3..]);
                self.push(Mark::Pre, 3 + skip, language);
                return Ok(());
            }
            '`' => (Mark::Code, 1),
            '>' if self.at == 0 => (Mark::BlockQuote, 1),
            _ => return Err(format!("Character '{it}' is reserved and must be escaped with the preceding '\\'")),
        };
        self.push(mark, bytes, None);
        Ok(())
    }

    fn close(&mut self) -> Result<(), String> {
        let opened = self.open.pop().expect("what ends was open");
        let (kind, bytes) = match opened.mark {
            Mark::Bold => ("bold", 1),
            Mark::Italic => ("italic", 1),
            Mark::Underline => ("underline", 2),
            Mark::Strikethrough => ("strikethrough", 1),
            Mark::Spoiler => ("spoiler", 2),
            Mark::Code => ("code", 1),
            Mark::Pre => ("pre", 3),
            Mark::TextUrl | Mark::CustomEmoji => return self.link(&opened),
            Mark::BlockQuote => ("blockquote", 0),
        };
        self.at += bytes;
        self.out.mark(kind, opened.at, |entity| entity.language.clone_from(&opened.language));
        Ok(())
    }

    fn link(&mut self, opened: &Open) -> Result<(), String> {
        self.at += 1;
        let given = self.rest().starts_with('(');
        let url = if given { self.url()? } else { self.out.text[opened.start..].to_owned() };
        if opened.mark == Mark::CustomEmoji {
            let id = url.strip_prefix("tg://emoji?id=").filter(|_| given);
            let id = id.ok_or("Custom emoji entity must contain a tg://emoji URL")?.to_owned();
            self.out.mark("custom_emoji", opened.at, |entity| entity.custom_emoji_id = Some(id));
        } else {
            self.out.link(&url, opened.at);
        }
        Ok(())
    }

    /// The URL in the parentheses at the current position.
    fn url(&mut self) -> Result<String, String> {
        self.at += 1;
        let begin = self.at;
        let mut url = String::new();
        let mut rest = self.markup[begin..].char_indices();
        while let Some((at, it)) = rest.next() {
            match it {
                ')' => {
                    self.at = begin + at + 1;
                    return Ok(url);
                }
                '\\' => url.push(rest.next().map_or('\\', |(_, next)| next)),
                it => url.push(it),
            }
        }
        Err(format!("Can't find end of a URL at byte offset {begin}"))
    }

    fn finish(mut self) -> Result<Formatted, String> {
        if self.open.iter().any(|open| open.mark == Mark::BlockQuote) {
            self.end_quote()?;
        }
        match self.open.last() {
            Some(last) => Err(unended(last)),
            None => Ok(self.out.finish()),
        }
    }
}

fn unended(open: &Open) -> String {
    format!("Can't find end of {:?} entity at byte offset {}", open.mark, open.byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(markup: &str) -> (String, Vec<(String, usize, usize)>) {
        let it = parse(markup).unwrap();
        (it.text, it.entities.into_iter().map(|it| (it.kind, it.offset, it.length)).collect())
    }

    #[test]
    fn marks_nest() {
        let (text, entities) = kinds("*b _i __u___ ~s~* ||x|| `a*b`");
        assert_eq!(text, "b i u s x a*b");
        assert_eq!(
            entities,
            [
                ("underline".to_owned(), 4, 1),
                ("italic".to_owned(), 2, 3),
                ("strikethrough".to_owned(), 6, 1),
                ("bold".to_owned(), 0, 7),
                ("spoiler".to_owned(), 8, 1),
                ("code".to_owned(), 10, 3),
            ]
        );
    }

    #[test]
    fn quotes_end_with_their_lines() {
        let (text, entities) = kinds(">one\n>two\nthree");
        assert_eq!(text, "one\ntwo\nthree");
        assert_eq!(entities, [("blockquote".to_owned(), 0, 7)]);
        assert_eq!(kinds(">more||").1, [("expandable_blockquote".to_owned(), 0, 4)]);
    }

    #[test]
    fn links_escape_their_parentheses() {
        let it = parse("[l](https://e.org/\\))").unwrap();
        assert_eq!(it.entities[0].url.as_deref(), Some("https://e.org/)"));
    }

    #[test]
    fn bad_markup_says_where() {
        assert_eq!(parse("a.").unwrap_err(), "Character '.' is reserved and must be escaped with the preceding '\\'");
        assert_eq!(parse("é *a").unwrap_err(), "Can't find end of Bold entity at byte offset 3");
        assert_eq!(parse("[a](b").unwrap_err(), "Can't find end of a URL at byte offset 4");
    }
}
