//! Silence markers of other people's runtimes, and text that is not for the person.
//!
//! Silence is a field of an outcome, never a word in a text. Some runtimes write a word all the same,
//! and some models think aloud before they answer. [`Shim`] takes both out of a stream:
//!
//! * a reasoning block (`<think>…</think>`, `<thinking>…</thinking>`) at the start, closed or not;
//! * a marker ([`MARKERS`], in any case) that is the first or the last word, or alone on its line,
//!   where it may wear markup or a full stop (`` `NO_REPLY`. ``). Inside a sentence it is a word like
//!   any other: people do ask what `NO_REPLY` means;
//! * white space, visible or not, at both ends.

#[cfg(test)]
mod tests;

/// The known markers, as they are named in records.
const MARKERS: [&str; 4] = ["NO_REPLY", "[SILENT]", "HEARTBEAT_OK", "<no-reply/>"];

/// The one marker that ends by itself: it needs no white space around it.
const SELF_DELIMITED: &str = "<no-reply/>";

/// What opens and closes a reasoning block.
const REASONING: [(&str, &str); 2] = [("<think>", "</think>"), ("<thinking>", "</thinking>")];

/// The longest word that is held back because a marker may stand in it, in bytes.
const LONGEST_HELD: usize = 32;

/// The stream meant silence: a marker stood in it, and nothing else that a person could see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Silence {
    /// The first marker, by its usual spelling.
    pub marker: String,
}

/// A whole text, after the shim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Normal {
    /// What a person may see; never blank.
    Text(String),
    /// Nothing that a person could see.
    Empty,
    /// A marker and nothing else.
    Marker(String),
}

/// Judges a whole text exactly as a stream of it would be.
pub(crate) fn normalise(text: &str) -> Normal {
    let mut shim = Shim::default();
    let mut shown = shim.push(text);
    let (rest, silence) = shim.finish();
    shown.push_str(&rest);
    match silence {
        Some(Silence { marker }) => Normal::Marker(marker),
        None if shown.is_empty() => Normal::Empty,
        None => Normal::Text(shown),
    }
}

/// Whether `c` leaves nothing to see: white space, control characters, zero-width marks, fillers.
fn is_invisible(c: char) -> bool {
    if c.is_ascii() {
        return c == ' ' || c.is_ascii_control();
    }
    c.is_whitespace()
        || c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}'
            | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}'
            | '\u{3164}' | '\u{feff}' | '\u{ffa0}')
}

/// Whether `c` may surround a marker that is alone on its line.
const fn is_wrapping(c: char) -> bool {
    matches!(c, '*' | '_' | '`' | '"' | '\'' | '~' | '.' | '!' | '“' | '”')
}

/// `text` without `prefix`, in any ASCII case.
fn strip_prefix<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (head, tail) = text.split_at_checked(prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then_some(tail)
}

fn starts(whole: &str, part: &str) -> bool {
    strip_prefix(whole, part).is_some()
}

/// The marker that `word` is, bare or in wrapping.
fn marker_of(word: &str) -> Option<&'static str> {
    let stripped = word.trim_start_matches(is_wrapping);
    MARKERS.into_iter().find(|name| strip_prefix(stripped, name).is_some_and(|tail| tail.chars().all(is_wrapping)))
}

/// Whether `word` could still become a marker, or, at the start of the text, a reasoning tag.
fn may_become_special(word: &str, at_start: bool) -> bool {
    if word.len() > LONGEST_HELD {
        return false;
    }
    let stripped = word.trim_start_matches(is_wrapping);
    MARKERS.into_iter().any(|name| starts(name, stripped))
        || marker_of(word).is_some()
        || (at_start && REASONING.into_iter().any(|(open, _)| starts(open, word)))
}

/// White space between two words.
#[derive(Debug, Default)]
struct Gap {
    text: String,
    line_ends: usize,
    /// Where the last line of it begins, in bytes.
    last_line: usize,
}

impl Gap {
    fn push(&mut self, c: char) {
        self.text.push(c);
        if c == '\n' {
            self.line_ends += 1;
            self.last_line = self.text.len();
        }
    }

    const fn ends_line(&self) -> bool {
        self.line_ends > 0
    }

    /// The gap that is left when the line between `self` and `right` is gone: the wider of the two,
    /// with the indentation of what follows.
    fn close_up(mut self, right: Self) -> Self {
        if self.line_ends <= right.line_ends {
            return right;
        }
        self.text.truncate(self.last_line);
        self.text.push_str(&right.text[right.last_line..]);
        self
    }
}

/// A whole marker whose right neighbour is not known yet.
#[derive(Debug)]
struct Held {
    before: Gap,
    word: String,
    /// Whether it stands without wrapping.
    bare: bool,
}

#[derive(Debug, Default)]
enum Mode {
    /// Between two words.
    #[default]
    Gap,
    /// In a word that may be a marker or a reasoning tag.
    Word,
    /// In a word that is being shown.
    Text,
    /// In a reasoning block, with so many bytes of its end seen.
    Reasoning { close: &'static str, seen: usize },
}

/// Takes reasoning and silence markers out of a stream of text.
///
/// What [`push`](Self::push) returns may be shown at once; it never has to be taken back. However the
/// text is cut into chunks, the same text comes out.
///
/// ```
/// # use rejoinder_guard::Shim;
/// let mut shim = Shim::default();
/// assert_eq!(shim.push("<think>a greeting</th"), "");
/// assert_eq!(shim.push("ink> Hello, Ada. NO_"), "Hello, Ada.");
/// assert_eq!(shim.push("REPLY\n"), "");
/// let (rest, silence) = shim.finish();
/// assert_eq!((rest.as_str(), silence), ("", None));
/// ```
#[derive(Debug, Default)]
pub struct Shim {
    mode: Mode,
    /// The white space before the current word.
    gap: Gap,
    /// The current word, as long as it is held back.
    word: String,
    /// The marker before the current gap.
    held: Option<Held>,
    /// Markers before that one, with the gaps between: taken out if nothing but markers follows.
    chain: String,
    /// Whether anything was shown.
    shown: bool,
    /// The first marker.
    marker: Option<&'static str>,
}

impl Shim {
    /// Takes in the next chunk and returns what may be shown now: all but what may be the beginning
    /// of something that is taken out.
    #[must_use]
    pub fn push(&mut self, chunk: &str) -> String {
        let mut out = String::with_capacity(chunk.len());
        let mut rest = chunk;
        while let Some(c) = rest.chars().next() {
            if matches!(self.mode, Mode::Text) {
                let end = rest.find(|c| c == '<' || is_invisible(c)).unwrap_or(rest.len());
                out.push_str(&rest[..end]);
                rest = &rest[end..];
                let Some(c) = rest.chars().next() else { break };
                self.leave_text(c);
                rest = &rest[c.len_utf8()..];
            } else {
                self.step(c, &mut out);
                rest = &rest[c.len_utf8()..];
            }
        }
        out
    }

    /// Ends the stream: the rest that may be shown, and whether the stream meant silence.
    #[must_use]
    pub fn finish(mut self) -> (String, Option<Silence>) {
        let mut out = String::new();
        if matches!(self.mode, Mode::Word) {
            self.end_word(&mut out);
        }
        if let Some(held) = self.held.take()
            && !held.bare
            && !self.begins_line(&held)
        {
            self.gap = held.before;
            self.show(&held.word, &mut out);
        }
        let silence = self.marker.filter(|_| !self.shown).map(|marker| Silence { marker: marker.to_owned() });
        (out, silence)
    }

    fn step(&mut self, c: char, out: &mut String) {
        match &mut self.mode {
            Mode::Reasoning { close, seen } => {
                // No end tag contains its first character twice, so a mismatch restarts at it or after it.
                if close.as_bytes()[*seen].eq_ignore_ascii_case(&u8::try_from(c).unwrap_or(0)) {
                    *seen += 1;
                } else {
                    *seen = usize::from(c == '<');
                }
                if *seen == close.len() {
                    self.mode = Mode::Gap;
                }
            }
            Mode::Gap | Mode::Text if is_invisible(c) => {
                self.gap.push(c);
            }
            Mode::Gap | Mode::Text => self.begin_word(c, out),
            Mode::Word if is_invisible(c) => {
                self.end_word(out);
                self.mode = Mode::Gap;
                self.gap.push(c);
            }
            Mode::Word if self.word.eq_ignore_ascii_case(SELF_DELIMITED) && !is_wrapping(c) => {
                self.end_word(out);
                self.begin_word(c, out);
            }
            Mode::Word => self.extend_word(c, out),
        }
    }

    /// A word that is being shown ends, or a self-delimited marker may begin in it.
    fn leave_text(&mut self, c: char) {
        if is_invisible(c) {
            self.mode = Mode::Gap;
            self.gap.push(c);
        } else {
            self.mode = Mode::Word;
            self.word.push(c);
        }
    }

    fn begin_word(&mut self, c: char, out: &mut String) {
        self.settle_held(out);
        self.mode = Mode::Word;
        self.extend_word(c, out);
    }

    fn extend_word(&mut self, c: char, out: &mut String) {
        self.word.push(c);
        let at_start = self.is_at_start();
        if at_start
            && let Some((_, close)) = REASONING.into_iter().find(|(open, _)| open.eq_ignore_ascii_case(&self.word))
        {
            self.word.clear();
            self.mode = Mode::Reasoning { close, seen: 0 };
        } else if !may_become_special(&self.word, at_start) {
            if c == '<' && self.word.len() > 1 {
                self.word.pop();
                self.show_word(out);
                self.word.push('<');
            } else {
                self.show_word(out);
                self.mode = Mode::Text;
            }
        }
    }

    /// The word has ended before anything ruled out that it is special.
    fn end_word(&mut self, out: &mut String) {
        let Some(marker) = marker_of(&self.word) else { return self.show_word(out) };
        let bare = self.word.len() == marker.len();
        let first = self.is_at_start();
        self.marker.get_or_insert(marker);
        let (before, word) = (std::mem::take(&mut self.gap), std::mem::take(&mut self.word));
        self.held = (!bare || !first).then_some(Held { before, word, bare });
    }

    /// Something follows the held marker.
    fn settle_held(&mut self, out: &mut String) {
        let Some(held) = self.held.take() else { return };
        if self.begins_line(&held) && self.gap.ends_line() {
            self.gap = held.before.close_up(std::mem::take(&mut self.gap));
        } else if held.bare || self.begins_line(&held) {
            if self.shown || !self.chain.is_empty() {
                self.chain.push_str(&held.before.text);
            }
            self.chain.push_str(&held.word);
        } else {
            let after = std::mem::replace(&mut self.gap, held.before);
            self.show(&held.word, out);
            self.gap = after;
        }
    }

    fn show_word(&mut self, out: &mut String) {
        let word = std::mem::take(&mut self.word);
        self.show(&word, out);
    }

    fn show(&mut self, word: &str, out: &mut String) {
        let (chain, gap) = (std::mem::take(&mut self.chain), std::mem::take(&mut self.gap));
        if self.shown || !chain.is_empty() {
            out.push_str(&chain);
            out.push_str(&gap.text);
        }
        out.push_str(word);
        self.shown = true;
    }

    fn begins_line(&self, held: &Held) -> bool {
        held.before.ends_line() || (!self.shown && self.chain.is_empty())
    }

    fn is_at_start(&self) -> bool {
        !self.shown && self.held.is_none() && self.chain.is_empty()
    }
}
