//! Takes files out of Markdown that embeds them: pictures and links whose URL is a `data:` URL with Base64.

use std::mem::take;

use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD},
};
use rejoinder_guard::{Attachment, Reply};

use crate::model::data_url;

/// How many files a text embeds at most.
const MOST_FILES: usize = 10;

const TOO_MANY: &str = "an answer has at most 10 files";

/// How many bytes of Base64 they have in total at most.
const MOST_DATA: usize = 32 << 20;

/// The most bytes before the data, and after it. What is longer is no file.
const LONGEST_BEGIN: usize = 1_000;
const LONGEST_END: usize = 200;

/// Data that is shorter and breaks off is an example of how a URL is written, as in `data:image/png;base64,iVBOR…`.
const EXAMPLE: usize = 64;

/// Takes the files out of a text that comes in pieces. Their words stay, and nothing of their data is ever returned, except in blocks
/// of code. The text does not depend on how it is cut into pieces.
///
/// ```
/// # use rejoinder_core::EmbeddedFiles;
/// let mut embedded = EmbeddedFiles::default();
/// assert_eq!(embedded.push("Look: ![a cat](data:image/gif;base64,R0lG"), "Look: ");
/// assert_eq!(embedded.push("ODlh), my"), "a cat, my");
/// assert_eq!(embedded.end(), "");
/// assert_eq!(embedded.take_files()[0].name, "a cat.gif");
/// ```
#[derive(Debug, Default)]
pub struct EmbeddedFiles {
    /// What may be the beginning of a file, or what follows the data of the open one.
    held: String,
    /// The file whose data arrives.
    open: Option<OpenFile>,
    code: Code,
    files: Vec<Attachment>,
    /// How many bytes of Base64 came so far.
    size: usize,
    /// Each with its name and why.
    left_out: Vec<(String, String)>,
}

#[derive(Debug, Default)]
struct OpenFile {
    /// All before the data.
    begin: String,
    label: String,
    is_picture: bool,
    media_type: String,
    data: String,
    /// Whether there is no room for it.
    is_left_out: bool,
    has_all_data: bool,
}

/// What stands before the data.
struct FileBegin<'a> {
    is_picture: bool,
    label: &'a str,
    media_type: &'a str,
    length: usize,
}

/// Why something is not read from a text.
enum Unread {
    /// It is something else.
    Never,
    /// More of the text is needed.
    Later,
}

impl EmbeddedFiles {
    /// Reads more of the text, and returns what is certainly no part of a file.
    pub fn push(&mut self, piece: &str) -> String {
        let mut shown = String::with_capacity(piece.len());
        let text = take(&mut self.held) + piece;
        let mut rest = &*text;
        while !rest.is_empty() {
            if let Some(file) = self.open.take() {
                match self.read_data(file, rest, &mut shown) {
                    Some(more) => rest = more,
                    None => break,
                }
                continue;
            }
            let at = self.code.pass_until_bracket(rest);
            shown.push_str(&rest[..at]);
            rest = &rest[at..];
            match within(rest, LONGEST_BEGIN, begin) {
                Ok(FileBegin { is_picture, label, media_type, length }) => {
                    let (label, media_type) = (label.to_owned(), media_type.to_owned());
                    let (begin, data) = rest.split_at(length);
                    let begin = begin.to_owned();
                    self.open = Some(OpenFile { begin, label, is_picture, media_type, ..OpenFile::default() });
                    rest = data;
                }
                Err(Unread::Later) => {
                    rest.clone_into(&mut self.held);
                    break;
                }
                Err(Unread::Never) => {
                    let next = rest.chars().next().map_or(0, char::len_utf8);
                    self.show(&rest[..next], &mut shown);
                    rest = &rest[next..];
                }
            }
        }
        shown
    }

    /// Ends the text, and returns the rest of it.
    pub fn end(&mut self) -> String {
        let (mut shown, held) = (String::new(), take(&mut self.held));
        match self.open.take() {
            None => {}
            Some(file) if file.has_all_data => {
                self.close(&file, &mut shown);
                shown += &self.push(&held);
                return shown + &self.end();
            }
            Some(file) if file.is_example() => shown = file.begin + &file.data,
            Some(file) => {
                self.leave_out(&file.name(), "its data breaks off");
                shown = file.label;
            }
        }
        self.code = Code::default();
        shown + &held
    }

    /// The files so far.
    pub fn take_files(&mut self) -> Vec<Attachment> {
        take(&mut self.files)
    }

    /// The names of those that are left out, and why.
    pub fn take_left_out(&mut self) -> Vec<(String, String)> {
        take(&mut self.left_out)
    }

    /// Whether more data came than a text may embed: it has no end.
    pub const fn is_too_much(&self) -> bool {
        self.size > MOST_DATA
    }

    /// Takes the files out of the text of a reply, and adds them to those that it has. Returns the names of those that are left out,
    /// and why.
    pub fn take_from(reply: &mut Reply) -> Vec<(String, String)> {
        if reply.sealed.is_some() || !reply.text.contains("](") {
            return Vec::new();
        }
        let mut embedded = Self::default();
        reply.text = embedded.push(&reply.text) + &embedded.end();
        let room = MOST_FILES.saturating_sub(reply.attachments.len()).min(embedded.files.len());
        for file in embedded.files.split_off(room) {
            embedded.leave_out(&file.name, TOO_MANY);
        }
        reply.attachments.append(&mut embedded.files);
        embedded.left_out
    }

    /// Reads what follows the beginning of a file. Returns the rest; `None` if more of the text is needed.
    fn read_data<'a>(&mut self, mut file: OpenFile, text: &'a str, shown: &mut String) -> Option<&'a str> {
        let mut rest = text;
        if !file.has_all_data {
            let end = text.bytes().position(|byte| !is_base64(byte)).unwrap_or(text.len());
            let (data, after) = text.split_at(end);
            self.keep_data(&mut file, data);
            let Some(next) = after.chars().next() else {
                self.open = Some(file);
                return None;
            };
            if file.is_example() && !(next.is_whitespace() || matches!(next, ')' | '>')) {
                self.show(&(file.begin + &file.data), shown);
                return Some(after);
            }
            file.has_all_data = true;
            rest = after;
        }
        match within(rest, LONGEST_END, end_of_link) {
            Ok(end) => {
                self.close(&file, shown);
                Some(&rest[end..])
            }
            Err(Unread::Later) => {
                rest.clone_into(&mut self.held);
                self.open = Some(file);
                None
            }
            Err(Unread::Never) => {
                self.close(&file, shown);
                Some(rest)
            }
        }
    }

    fn keep_data(&mut self, file: &mut OpenFile, data: &str) {
        self.size = self.size.saturating_add(data.len());
        if self.files.len() < MOST_FILES && !self.is_too_much() {
            file.data.push_str(data);
        } else if !data.is_empty() {
            (file.is_left_out, file.data) = (true, String::new());
        }
    }

    /// Keeps a file whose data has ended, and shows its words.
    fn close(&mut self, file: &OpenFile, shown: &mut String) {
        let name = file.name();
        self.show(&file.label, shown);
        if file.is_left_out {
            let why =
                if self.is_too_much() { "the files of an answer have at most 32 MiB of Base64" } else { TOO_MANY };
            return self.leave_out(&name, why);
        }
        let data = file.data.trim_end_matches('=');
        match BASE64_STANDARD_NO_PAD.decode(data).or_else(|_| BASE64_URL_SAFE_NO_PAD.decode(data)) {
            Ok(bytes) if !bytes.is_empty() => {
                let media_type = file.media_type().to_owned();
                self.files.push(Attachment { url: data_url(&media_type, &bytes), name, media_type });
            }
            _ => self.leave_out(&name, "its data is not Base64"),
        }
    }

    fn leave_out(&mut self, name: &str, why: &str) {
        if self.left_out.len() < MOST_FILES {
            self.left_out.push((name.to_owned(), why.to_owned()));
        }
    }

    fn show(&mut self, text: &str, shown: &mut String) {
        text.chars().for_each(|c| self.code.pass(c));
        shown.push_str(text);
    }
}

impl OpenFile {
    fn is_example(&self) -> bool {
        self.data.len() < EXAMPLE && !self.is_left_out
    }

    fn media_type(&self) -> &str {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"/.+-_".contains(&byte);
        match &*self.media_type {
            // RFC 2397.
            "" => "text/plain",
            media_type if media_type.contains('/') && media_type.bytes().all(is_allowed) => media_type,
            _ => "application/octet-stream",
        }
    }

    /// Its words, with an extension.
    fn name(&self) -> String {
        let label = self.label.trim().replace('\\', "").replace('/', "-");
        let label = if label.is_empty() { if self.is_picture { "picture" } else { "file" } } else { &label };
        let is_extension =
            |text: &&str| (1..=5).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric());
        if label.rsplit_once('.').is_some_and(|(_, end)| is_extension(&end)) {
            return label.to_owned();
        }
        let extension = match self.media_type() {
            "text/plain" => Some("txt"),
            "image/svg+xml" => Some("svg"),
            media_type => media_type.split_once('/').map(|(_, subtype)| subtype).filter(is_extension),
        };
        extension.map_or_else(|| label.to_owned(), |extension| format!("{label}.{extension}"))
    }
}

/// Reads no more than `most` bytes of a text.
fn within<'a, T>(text: &'a str, most: usize, read: impl FnOnce(&'a str) -> Result<T, Unread>) -> Result<T, Unread> {
    match read(&text[..text.floor_char_boundary(most)]) {
        Err(Unread::Later) if text.len() > most => Err(Unread::Never),
        read => read,
    }
}

/// Reads `![label](data:type;base64,` or the same of a link. A label with a bracket is none: the picture in a link is found by itself.
fn begin(text: &str) -> Result<FileBegin<'_>, Unread> {
    let is_picture = text.starts_with('!');
    let rest = after(&text[usize::from(is_picture)..], "[")?;
    let (label, rest) = rest.split_at(end_of_label(rest)?);
    let url = after(rest, "](")?.trim_start();
    let head = after(url.strip_prefix('<').unwrap_or(url), "data:")?;
    let end = head.find(|c: char| c.is_whitespace() || ",)<>[]`".contains(c)).ok_or(Unread::Later)?;
    let (media_type, parameters) = head[..end].split_once(';').ok_or(Unread::Never)?;
    let is_base64 = parameters.rsplit(';').next().is_some_and(|last| last.eq_ignore_ascii_case("base64"));
    if !is_base64 || !head[end..].starts_with(',') {
        return Err(Unread::Never);
    }
    Ok(FileBegin { is_picture, label, media_type, length: text.len() - head.len() + end + 1 })
}

/// Reads the end of a link after its URL, with a title if it has one. Returns where it ends.
fn end_of_link(text: &str) -> Result<usize, Unread> {
    let rest = text.trim_start();
    let rest = rest.strip_prefix('>').unwrap_or(rest).trim_start();
    let rest = match rest.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        Some(quote) => {
            let (_, rest) = rest[1..].split_once(quote).ok_or(Unread::Later)?;
            rest.trim_start()
        }
        None => rest,
    };
    let rest = after(rest, ")")?;
    Ok(text.len() - rest.len())
}

/// What follows `prefix`, in any case.
fn after<'a>(text: &'a str, prefix: &str) -> Result<&'a str, Unread> {
    let length = text.len().min(prefix.len());
    if !text.as_bytes()[..length].eq_ignore_ascii_case(&prefix.as_bytes()[..length]) {
        return Err(Unread::Never);
    }
    if length < prefix.len() { Err(Unread::Later) } else { Ok(&text[length..]) }
}

/// Where a label ends: before its bracket.
fn end_of_label(text: &str) -> Result<usize, Unread> {
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            ']' if !is_escaped => return Ok(at),
            '[' if !is_escaped => return Err(Unread::Never),
            '\n' if text[..at].ends_with('\n') => return Err(Unread::Never),
            _ => is_escaped = c == '\\' && !is_escaped,
        }
    }
    Err(Unread::Later)
}

const fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_')
}

/// Whether a text is in a fenced block of code.
#[derive(Debug, Default)]
struct Code {
    line: Line,
    /// The mark that opened the block, and how often it stood there.
    fence: Option<(char, usize)>,
}

/// What the current line is so far.
#[derive(Clone, Copy, Debug, Default)]
enum Line {
    /// Space, and the marks of lists and quotations.
    #[default]
    Begin,
    Fence {
        mark: char,
        length: usize,
        has_words: bool,
    },
    Other,
}

impl Code {
    fn pass(&mut self, c: char) {
        self.line = match (self.line, c) {
            (line, '\n') => {
                self.end_line(line);
                Line::Begin
            }
            (Line::Begin, '`' | '~') => Line::Fence { mark: c, length: 1, has_words: false },
            (Line::Begin, _) if c.is_whitespace() || c.is_ascii_digit() || "-+*>.)".contains(c) => Line::Begin,
            (Line::Fence { mark, length, has_words: false }, _) if c == mark => {
                Line::Fence { mark, length: length + 1, has_words: false }
            }
            // Backticks cannot stand behind a fence of backticks: those are code in a line.
            (Line::Fence { mark, length, has_words }, _) if length >= 3 && !(mark == '`' && c == '`') => {
                Line::Fence { mark, length, has_words: has_words || !c.is_whitespace() }
            }
            _ => Line::Other,
        };
    }

    fn end_line(&mut self, line: Line) {
        let Line::Fence { mark, length, has_words } = line else { return };
        if length < 3 {
            return;
        }
        match self.fence {
            None => self.fence = Some((mark, length)),
            Some((open, least)) if open == mark && length >= least && !has_words => self.fence = None,
            Some(_) => {}
        }
    }

    const fn is_code(&self) -> bool {
        self.fence.is_some() || matches!(self.line, Line::Fence { length: 3.., .. })
    }

    /// Passes a text up to what may begin a file. Returns where that is, or the end.
    fn pass_until_bracket(&mut self, text: &str) -> usize {
        for (at, c) in text.char_indices() {
            if matches!(c, '[' | '!') && !self.is_code() {
                return at;
            }
            self.pass(c);
        }
        text.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    /// A picture.
    const DATA: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGMAAQAABQABDQottAAAAABJRU5ErkJggg==";

    type Pairs = Vec<(String, String)>;

    /// The text without its files, the names and types of these, and what is left out.
    fn read(pieces: &[&str]) -> (String, Pairs, Pairs) {
        let mut embedded = EmbeddedFiles::default();
        let mut text: String = pieces.iter().map(|piece| embedded.push(piece)).collect();
        text.push_str(&embedded.end());
        let files = embedded.take_files().into_iter().map(|file| (file.name, file.media_type)).collect();
        (text, files, embedded.take_left_out())
    }

    #[rstest]
    #[case::a_picture("See: ![a cat](data:image/png;base64,DATA).", "See: a cat.", "a cat.png image/png")]
    #[case::no_words("![](data:image/webp;base64,DATA)", "", "picture.webp image/webp")]
    #[case::a_link(
        "The [report.pdf](data:application/pdf;base64,DATA)!",
        "The report.pdf!",
        "report.pdf application/pdf"
    )]
    #[case::a_link_without_a_name("[](data:application/octet-stream;base64,DATA)", "", "file application/octet-stream")]
    #[case::a_title("![a](data:image/png;base64,DATA \"A cat\") b", "a b", "a.png image/png")]
    #[case::brackets("![a](<data:image/png;base64,DATA>) b", "a b", "a.png image/png")]
    #[case::a_picture_in_a_link(
        "[![a](data:image/png;base64,DATA)](https://b.example)",
        "[a](https://b.example)",
        "a.png image/png"
    )]
    #[case::an_escaped_label("![a \\[b\\]](data:image/png;base64,DATA)", "a \\[b\\]", "a [b].png image/png")]
    #[case::parameters("[a](data:text/plain;charset=utf-8;base64,DATA)", "a", "a.txt text/plain")]
    #[case::no_type("[a](DATA:;BASE64,DATA)", "a", "a.txt text/plain")]
    #[case::a_path("[a/b.csv](data:text/csv;base64,DATA)", "a/b.csv", "a-b.csv text/csv")]
    #[case::code_before("```sh\nls\n```\n![a](data:image/png;base64,DATA)", "```sh\nls\n```\na", "a.png image/png")]
    #[case::code_in_a_list(
        "- ```\n  x\n  ```\n- ![a](data:image/png;base64,DATA)",
        "- ```\n  x\n  ```\n- a",
        "a.png image/png"
    )]
    #[case::an_exclamation("Hi![a](data:image/png;base64,DATA)", "Hia", "a.png image/png")]
    fn a_file_is_taken_out_and_its_words_stay(#[case] markdown: &str, #[case] text: &str, #[case] file: &str) {
        let markdown = markdown.replace(",DATA", &format!(",{DATA}"));
        let (shown, files, left_out) = read(&[&markdown]);

        let files: Vec<_> = files.iter().map(|(name, media_type)| format!("{name} {media_type}")).collect();
        assert_eq!((&*shown, files, left_out), (text, vec![file.to_owned()], Vec::new()));
    }

    #[rstest]
    #[case("A list: [ ] milk, [x] bread, a[0], !important, ![")]
    #[case("[a](https://example.org) ![b](https://example.org/b.png) [c]: https://example.org")]
    #[case("[a](data:text/plain,hello) and data:image/png;base64,AAAA alone")]
    #[case("It is `![a](data:image/png;base64,...)` or ![a](data:image/png;base64,iVBORw0KGgo…)")]
    #[case("```\n![a](data:image/png;base64,AAAA)\n```")]
    #[case("~~~ md\n```\n![a](data:image/png;base64,AAAA)\n~~~~")]
    #[case("![a](data:image/png;base64")]
    #[case("[a\n\n](data:image/png;base64,AAAA)")]
    fn everything_else_stays_as_it_is(#[case] markdown: &str) {
        assert_eq!(read(&[markdown]), (markdown.to_owned(), Vec::new(), Vec::new()));
    }

    #[rstest]
    #[case::it_breaks_off(format!("![a](data:image/png;base64,{DATA}"), "its data breaks off")]
    #[case::it_is_not_base64("![a](data:image/png;base64,A)".to_owned(), "its data is not Base64")]
    #[case::it_is_empty("![a](data:image/png;base64,)".to_owned(), "its data is not Base64")]
    #[case::too_large(
        format!("![a](data:image/png;base64,{})", "A".repeat(MOST_DATA + 4)),
        "the files of an answer have at most 32 MiB of Base64"
    )]
    fn what_is_no_file_leaves_its_words(#[case] markdown: String, #[case] why: &str) {
        let (text, files, left_out) = read(&[&markdown]);

        assert_eq!((&*text, files.len(), left_out), ("a", 0, vec![("a.png".to_owned(), why.to_owned())]));
    }

    #[test]
    fn an_answer_has_so_many_files_at_most() {
        let mut reply = Reply::text("![a](data:image/png;base64,AAAA)".repeat(12));
        let file = Attachment { name: "b".to_owned(), media_type: "text/plain".to_owned(), url: String::new() };
        reply.attachments = vec![file];

        let left_out = EmbeddedFiles::take_from(&mut reply);

        assert_eq!((reply.text, reply.attachments.len()), ("a".repeat(12), MOST_FILES));
        assert_eq!(left_out, vec![("a.png".to_owned(), TOO_MANY.to_owned()); 3]);
    }

    proptest! {
        /// Also of a file that does not end.
        #[test]
        fn nothing_of_a_file_is_shown_however_its_text_is_cut(
            words in prop::collection::vec("(a|[ !\n`~>-]|\\[|\\]|\\(|\\)|data:|!\\[a\\]\\(|\\(data:image/png;base64,){0,12}", 1..5),
            cuts in prop::collection::vec(1_usize..40, 1..40),
        ) {
            let file = format!("\n\n![a](data:image/png;base64,{DATA})");
            let markdown = words.join(&file);
            let (mut pieces, mut rest, mut cut) = (Vec::new(), &*markdown, cuts.iter().cycle());
            while !rest.is_empty() {
                let (piece, after) = rest.split_at((*cut.next().expect("endless")).min(rest.len()));
                pieces.push(piece);
                rest = after;
            }

            let (shown, whole) = (read(&pieces), read(&[&*markdown]));

            prop_assert_eq!(&shown, &whole);
            let is_code = markdown.contains("```") || markdown.contains("~~~");
            prop_assert!(is_code || !shown.0.contains(&DATA[..EXAMPLE]), "{}", shown.0);
        }
    }
}
