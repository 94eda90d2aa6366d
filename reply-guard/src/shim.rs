//! Removes silence markers and reasoning from the text of agent runtimes.
//!
//! Silence is a field of an outcome, never a word in a text. Some runtimes emit a marker word all the same,
//! and some models write their reasoning before the answer. [`Shim`] removes from a stream:
//!
//! * a reasoning block (`<think>…</think>`, `<thinking>…</thinking>`) at the start, closed or not;
//! * everything up to a closing tag without an opening tag (`…</think>`): some chat templates contain the opening tag,
//!   and the server returns only what follows it. A closing tag in quotes or backticks is ordinary text;
//! * a marker ([`MARKERS`], in any case) that is the first or the last word, or alone on its line, also when it is
//!   repeated without a space. Alone on its line it may carry markup or a full stop (`` `NO_REPLY`. ``). Inside a
//!   sentence it is ordinary text: people do ask what `NO_REPLY` means;
//! * white space, visible or not, at both ends.

#[cfg(test)]
mod tests;

/// The known markers, in the spelling that records use.
const MARKERS: [&str; 4] = ["NO_REPLY", "[SILENT]", "HEARTBEAT_OK", "<no-reply/>"];

/// The one marker that needs no white space around it.
const SELF_DELIMITED: &str = "<no-reply/>";

/// It may contain white space before its bytes at these offsets.
const SPACES: [usize; 3] = [1, 9, 10];

/// The opening and closing tags of a reasoning block.
const REASONING: [(&str, &str); 2] = [("<think>", "</think>"), ("<thinking>", "</thinking>")];

/// How many bytes are held back at most because they may become a marker.
const LONGEST_HELD: usize = 32;

/// The stream meant silence: it contained a marker and nothing else that a person could see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Silence {
    /// The first marker, in its usual spelling.
    pub marker: String,
}

/// A whole text after filtering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Normal {
    /// Text for the person; never blank.
    Text(String),
    /// Nothing visible.
    Empty,
    /// A marker and nothing else.
    Marker(String),
}

/// Filters a whole text exactly as a stream of it.
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

/// Whether `c` shows nothing: white space, control characters, zero-width marks, fillers.
fn is_invisible(c: char) -> bool {
    if c.is_ascii() {
        return c == ' ' || c.is_ascii_control();
    }
    c.is_whitespace()
        || c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}'
            | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}'
            | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}')
}

/// Whether `c` only changes how the character before it looks: variation selectors, tags.
const fn is_modifier(c: char) -> bool {
    matches!(c, '\u{180b}'..='\u{180d}' | '\u{180f}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0000}'..='\u{e0fff}')
}

/// Whether a text, shown unfiltered, has nothing visible in it.
pub fn is_blank(text: &str) -> bool {
    text.chars().all(|c| is_invisible(c) || is_modifier(c))
}

/// Whether `c` may surround a marker that is alone on its line.
const fn is_wrapping(c: char) -> bool {
    matches!(c, '*' | '_' | '`' | '"' | '\'' | '~' | '.' | '!' | '“' | '”')
}

const fn is_quote(c: char) -> bool {
    matches!(c, '`' | '"' | '\'' | '“' | '‘' | '„' | '«')
}

fn is_before_quotation(c: char) -> bool {
    is_invisible(c) || "([{=,:;<>/|-–—".contains(c)
}

/// Whether a word that begins with `c` could be a marker, with wrapping or not, or a reasoning tag.
fn may_begin_special(c: char) -> bool {
    let begins = |name: &str| name.starts_with(|first: char| first.eq_ignore_ascii_case(&c));
    c == '<' || is_wrapping(c) || MARKERS.into_iter().any(begins)
}

fn starts(whole: &str, part: &str) -> bool {
    whole.get(..part.len()).is_some_and(|head| head.eq_ignore_ascii_case(part))
}

/// How many bytes of the marker `name` are in `text`; `None` if it contains anything else.
fn progress(text: &str, name: &str) -> Option<usize> {
    let mut at = 0;
    for c in text.chars() {
        if name[at..].chars().next().is_some_and(|next| next.eq_ignore_ascii_case(&c)) {
            at += 1;
        } else if !(name == SELF_DELIMITED && SPACES.contains(&at) && is_invisible(c)) {
            return None;
        }
    }
    Some(at)
}

/// A word that is held back.
#[derive(Debug, Default)]
struct Word {
    text: String,
    /// How many of its bytes are markers and their wrapping.
    matched: usize,
    marker: Option<&'static str>,
    has_wrapping: bool,
}

impl Word {
    fn push(&mut self, c: char) {
        self.text.push(c);
        let rest = self.rest();
        if rest.len() == c.len_utf8() && is_wrapping(c) {
            self.has_wrapping = true;
            self.matched = self.text.len();
        } else if let Some(name) = MARKERS.into_iter().find(|name| progress(rest, name) == Some(name.len())) {
            self.marker.get_or_insert(name);
            self.matched = self.text.len();
        }
    }

    /// The part after that, which may become a marker.
    fn rest(&self) -> &str {
        &self.text[self.matched..]
    }

    /// Its first marker, if it consists of markers and wrapping only.
    fn as_marker(&self) -> Option<&'static str> {
        self.marker.filter(|_| self.rest().is_empty())
    }

    /// Whether it is [`SELF_DELIMITED`] without wrapping.
    fn is_tag(&self) -> bool {
        self.as_marker() == Some(SELF_DELIMITED) && !self.has_wrapping
    }

    /// Whether white space may come next without ending it.
    fn may_hold_space(&self) -> bool {
        let rest = self.rest();
        rest.len() < LONGEST_HELD && progress(rest, SELF_DELIMITED).is_some_and(|at| SPACES.contains(&at))
    }

    /// Whether it could still become a marker, or a reasoning tag.
    fn may_become_special(&self) -> bool {
        let rest = self.rest();
        if rest.len() > LONGEST_HELD || (self.marker.is_none() && self.matched > LONGEST_HELD) {
            return false;
        }
        MARKERS.into_iter().any(|name| progress(rest, name).is_some())
            || REASONING.into_iter().any(|(open, close)| starts(open, &self.text) || starts(close, &self.text))
    }
}

/// White space between two words.
#[derive(Debug, Default)]
struct Gap {
    text: String,
    line_ends: usize,
    /// Byte offset of its last line.
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

    fn clear(&mut self) {
        self.text.clear();
        (self.line_ends, self.last_line) = (0, 0);
    }

    const fn ends_line(&self) -> bool {
        self.line_ends > 0
    }

    /// Joins the gaps around a removed line: the wider of the two, with the indentation of what follows.
    fn join(mut self, right: Self) -> Self {
        if self.line_ends <= right.line_ends {
            return right;
        }
        self.text.truncate(self.last_line);
        self.text.push_str(&right.text[right.last_line..]);
        self
    }
}

/// A complete marker; the word after it is not known yet.
#[derive(Debug)]
struct Held {
    before: Gap,
    word: String,
    bare: bool,
}

#[derive(Debug, Default)]
enum Mode {
    /// Between two words.
    #[default]
    Gap,
    /// In a word that may be a marker or a reasoning tag.
    Word,
    /// In a word that is passed through.
    Text,
    /// In a reasoning block; `seen` bytes of its closing tag have matched.
    Reasoning { close: &'static str, seen: usize },
}

/// Removes reasoning and silence markers from a stream of text.
///
/// What [`push`](Self::push) returns may be shown at once. It has to be removed again only when it turns out to be
/// reasoning without an opening tag ([`retractions`](Self::retractions)). The output does not depend on how the text
/// is cut into chunks.
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
    /// The current word while it is held back.
    word: Word,
    /// The marker before the current gap, if one is there.
    held: Option<Held>,
    /// Earlier markers with the gaps between them: dropped if nothing but markers follows, shown otherwise.
    chain: String,
    /// Whether anything was shown.
    shown: bool,
    /// The last two characters that were shown.
    last: [Option<char>; 2],
    /// The first marker.
    marker: Option<&'static str>,
    /// Whether an opening reasoning tag was shown whose closing tag has not come yet.
    has_open_tag: bool,
    has_ended_reasoning: bool,
    retractions: u32,
}

impl Shim {
    /// Filters a whole text.
    pub fn whole(text: &str) -> String {
        let mut shim = Self::default();
        shim.push(text) + &shim.finish().0
    }

    /// Filters the next chunk and returns what may be shown now. Text that may be the beginning of a marker or a tag is
    /// held back.
    pub fn push(&mut self, chunk: &str) -> String {
        let mut out = String::with_capacity(chunk.len());
        let mut rest = chunk;
        while let Some(c) = rest.chars().next() {
            let length = if matches!(self.mode, Mode::Text) {
                rest.find(|c| c == '<' || is_invisible(c)).unwrap_or(rest.len())
            } else {
                0
            };
            if length > 0 {
                self.emit(&rest[..length], &mut out);
                rest = &rest[length..];
            } else {
                self.step(c, &mut out);
                rest = &rest[c.len_utf8()..];
            }
        }
        out
    }

    /// How often all the text shown so far had to be removed, because a closing reasoning tag came without an opening one.
    pub const fn retractions(&self) -> u32 {
        self.retractions
    }

    /// Whether reasoning has ended: what follows is meant for the person.
    pub const fn has_ended_reasoning(&self) -> bool {
        self.has_ended_reasoning
    }

    /// Ends the stream. Returns the rest of the text to show, and whether the stream meant silence.
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
                // No closing tag contains `<` twice, so after a mismatch matching restarts at `c` or after it.
                if close.as_bytes()[*seen].eq_ignore_ascii_case(&u8::try_from(c).unwrap_or(0)) {
                    *seen += 1;
                } else {
                    *seen = usize::from(c == '<');
                }
                if *seen == close.len() {
                    self.has_ended_reasoning = true;
                    self.mode = Mode::Gap;
                }
            }
            Mode::Gap if is_invisible(c) || is_modifier(c) => self.gap.push(c),
            Mode::Gap => self.begin_word(c, out),
            Mode::Text if is_invisible(c) => {
                self.mode = Mode::Gap;
                self.gap.push(c);
            }
            // Tags need no white space around them, so one may begin within a word.
            Mode::Text if c == '<' => {
                self.mode = Mode::Word;
                self.word.push(c);
            }
            Mode::Text => self.emit(c.encode_utf8(&mut [0; 4]), out),
            Mode::Word if is_invisible(c) && !self.word.may_hold_space() => {
                self.end_word(out);
                self.mode = Mode::Gap;
                self.gap.push(c);
            }
            Mode::Word if self.word.is_tag() && !is_wrapping(c) => {
                self.end_word(out);
                self.mode = Mode::Gap;
                self.step(c, out);
            }
            Mode::Word => self.extend_word(c, out),
        }
    }

    fn begin_word(&mut self, c: char, out: &mut String) {
        self.settle_held(out);
        if may_begin_special(c) {
            self.mode = Mode::Word;
            self.extend_word(c, out);
        } else {
            self.mode = Mode::Text;
            self.show(c.encode_utf8(&mut [0; 4]), out);
        }
    }

    fn extend_word(&mut self, c: char, out: &mut String) {
        self.word.push(c);
        let is = |tag: &str| tag.eq_ignore_ascii_case(&self.word.text);
        if let Some((_, close)) = REASONING.into_iter().find(|(open, _)| is(open)) {
            if self.is_at_start() {
                self.word = Word::default();
                self.mode = Mode::Reasoning { close, seen: 0 };
            } else {
                self.has_open_tag |= !self.is_quoted();
                self.show_word(out);
            }
        } else if REASONING.into_iter().any(|(_, close)| is(close)) {
            if self.is_quoted() || std::mem::take(&mut self.has_open_tag) {
                self.show_word(out);
            } else {
                self.discard_reasoning(out);
            }
        } else if !self.word.may_become_special() {
            self.show_word(out);
        }
    }

    /// Whether a quotation begins right before the word.
    fn is_quoted(&self) -> bool {
        let [before, last] = self.last;
        let is_next = self.gap.text.is_empty() && self.chain.is_empty();
        is_next && last.is_some_and(is_quote) && before.is_none_or(is_before_quotation)
    }

    /// Discards everything so far as reasoning.
    fn discard_reasoning(&mut self, out: &mut String) {
        out.clear();
        *self = Self { has_ended_reasoning: true, retractions: self.retractions + 1, ..Self::default() };
    }

    /// Shows a word that is neither marker nor tag. A tag may begin within it.
    fn show_word(&mut self, out: &mut String) {
        let word = std::mem::take(&mut self.word).text;
        let within = word.char_indices().skip(1).find(|&(_, c)| c == '<' || is_invisible(c));
        let (first, rest) = word.split_at(within.map_or(word.len(), |(at, _)| at));
        self.show(first, out);
        self.mode = Mode::Text;
        for c in rest.chars() {
            self.step(c, out);
        }
    }

    /// Ends a word that could still become special: holds it if it is a marker, shows it otherwise.
    fn end_word(&mut self, out: &mut String) {
        let word = std::mem::take(&mut self.word);
        let Some(marker) = word.as_marker() else {
            for word in word.text.split_inclusive(is_invisible) {
                let end = word.trim_end_matches(is_invisible);
                if !end.is_empty() {
                    self.show(end, out);
                }
                word[end.len()..].chars().for_each(|c| self.gap.push(c));
            }
            return;
        };
        let first = self.is_at_start();
        self.marker.get_or_insert(marker);
        let held = Held { before: std::mem::take(&mut self.gap), bare: !word.has_wrapping, word: word.text };
        self.held = (word.has_wrapping || !first).then_some(held);
    }

    /// Decides about the held marker when a word follows it.
    fn settle_held(&mut self, out: &mut String) {
        let Some(held) = self.held.take() else { return };
        if self.begins_line(&held) && self.gap.ends_line() {
            self.gap = held.before.join(std::mem::take(&mut self.gap));
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

    fn show(&mut self, word: &str, out: &mut String) {
        if self.shown || !self.chain.is_empty() {
            let (chain, gap) = (std::mem::take(&mut self.chain), std::mem::take(&mut self.gap.text));
            self.emit(&chain, out);
            self.emit(&gap, out);
            // Keeps what they have allocated.
            (self.chain, self.gap.text) = (chain, gap);
        }
        self.chain.clear();
        self.gap.clear();
        self.emit(word, out);
        self.shown = true;
    }

    fn emit(&mut self, text: &str, out: &mut String) {
        let mut backwards = text.chars().rev();
        match (backwards.next(), backwards.next()) {
            (Some(last), None) => self.last = [self.last[1], Some(last)],
            (Some(last), before) => self.last = [before, Some(last)],
            (None, _) => {}
        }
        out.push_str(text);
    }

    fn begins_line(&self, held: &Held) -> bool {
        held.before.ends_line() || (!self.shown && self.chain.is_empty())
    }

    fn is_at_start(&self) -> bool {
        !self.shown && self.held.is_none() && self.chain.is_empty()
    }
}
