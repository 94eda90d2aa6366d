//! What is searched for in the lines of turns, and the part of a line that is shown.

use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

/// How many characters of a line are shown.
const EXCERPT: usize = 200;

/// How many of them come before the match.
const BEFORE: usize = 60;

/// How many characters the beginning of a word has at least. A shorter one is in so many words that a search for it would take
/// long, and tell little.
const BEGINNING: usize = 3;

/// What is searched for: lines with all of its terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchQuery {
    terms: Vec<SearchTerm>,
}

/// A word, or several that follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchTerm {
    /// The words, as they were typed. Signs between them do not matter.
    pub text: String,
    /// Whether the last word may go on.
    pub is_prefix: bool,
}

impl SearchQuery {
    /// Reads what somebody typed: words, and phrases in quotation marks. The last word may go on, unless it is quoted or has
    /// only one or two characters. `None` if there is no word in it.
    pub fn parse(typed: &str) -> Option<Self> {
        let typed: String = typed.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let mut terms = Vec::new();
        for (index, part) in typed.split(['"', '“', '”', '„']).enumerate() {
            if index % 2 == 1 {
                terms.push(SearchTerm { text: part.trim().to_owned(), is_prefix: false });
            } else {
                terms.extend(part.split_whitespace().map(|word| SearchTerm { text: word.to_owned(), is_prefix: true }));
            }
        }
        terms.retain(|term| words(&term.text).next().is_some());
        let last = terms.len().checked_sub(1)?;
        terms[..last].iter_mut().for_each(|term| term.is_prefix = false);
        terms[last].is_prefix &= terms[last].split_last().1.chars().count() >= BEGINNING;
        Some(Self { terms })
    }

    /// The terms, of which there is at least one.
    pub fn terms(&self) -> &[SearchTerm] {
        &self.terms
    }

    /// The part of a line around the first term in it, at most about 200 characters, on one line. `…` stands for what is left
    /// out.
    pub fn excerpt(&self, line: &str) -> String {
        let (begin, end) = self.first_match(line).unwrap_or((0, 0));
        let mut from = nth_before(line, begin, BEFORE);
        if from > 0 {
            // Not in the middle of a word, if there are spaces.
            from = line[from..begin].find(char::is_whitespace).map_or(from, |space| from + space);
        }
        let mut to = line[from..].char_indices().nth(EXCERPT).map_or(line.len(), |(index, _)| from + index);
        if to < line.len() {
            let kept = end.clamp(from, to);
            to = line[kept..to].rfind(char::is_whitespace).map_or(to, |space| kept + space);
        }
        let shown = line[from..to].split_whitespace().collect::<Vec<_>>().join(" ");
        let (before, after) = (if from > 0 { "…" } else { "" }, if to < line.len() { "…" } else { "" });
        format!("{before}{shown}{after}")
    }

    /// Whether a line has all terms.
    pub fn is_in(&self, line: &str) -> bool {
        let line: Vec<(usize, &str)> = words(line).collect();
        let is_in = |(wanted, is_prefix): &(Vec<String>, bool)| {
            (0..line.len()).any(|at| is_match(&line[at..], wanted, *is_prefix))
        };
        self.folded().iter().all(is_in)
    }

    /// The words of each term, and whether the last one may go on.
    fn folded(&self) -> Vec<(Vec<String>, bool)> {
        self.terms.iter().map(|term| (folded_words(&term.text).collect(), term.is_prefix)).collect()
    }

    /// Where the first term of a line begins and ends.
    fn first_match(&self, line: &str) -> Option<(usize, usize)> {
        let terms = self.folded();
        let line: Vec<(usize, &str)> = words(line).collect();
        (0..line.len()).find_map(|at| {
            let here = &line[at..];
            let (wanted, _) = terms.iter().find(|(wanted, is_prefix)| is_match(here, wanted, *is_prefix))?;
            let (begin, _) = here[0];
            let (last, word) = here[wanted.len() - 1];
            Some((begin, last + word.len()))
        })
    }
}

impl SearchTerm {
    /// What comes before the last word, and that word in lower case, without diacritics.
    pub fn split_last(&self) -> (&str, String) {
        let (begin, word) = words(&self.text).last().unwrap_or((self.text.len(), ""));
        (&self.text[..begin], folded(word).collect())
    }
}

/// Whether `words` begin with those that are wanted.
fn is_match(words: &[(usize, &str)], wanted: &[String], is_prefix: bool) -> bool {
    let is_word = |(index, wanted_word): (usize, &String)| {
        let mut word = words.get(index).into_iter().flat_map(|(_, word)| folded(word));
        let may_go_on = is_prefix && index + 1 == wanted.len();
        wanted_word.chars().all(|c| word.next() == Some(c)) && (may_go_on || word.next().is_none())
    };
    wanted.len() <= words.len() && wanted.iter().enumerate().all(is_word)
}

/// The words of a text as they are compared: in lower case, without diacritics.
pub fn folded_words(text: &str) -> impl Iterator<Item = String> {
    words(text).map(|(_, word)| folded(word).collect())
}

/// The words of a text, with the places where they begin.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut rest = text.char_indices().peekable();
    std::iter::from_fn(move || {
        let (begin, first) = rest.find(|(_, c)| c.is_alphanumeric())?;
        let mut end = begin + first.len_utf8();
        if !is_word_alone(first) {
            while let Some((index, c)) = rest.next_if(|(_, c)| is_in_word(*c)) {
                end = index + c.len_utf8();
            }
        }
        Some((begin, &text[begin..end]))
    })
}

fn is_in_word(c: char) -> bool {
    (c.is_alphanumeric() || is_combining_mark(c)) && !is_word_alone(c)
}

/// A word in lower case, without diacritics, unless it is only one.
fn folded(word: &str) -> impl Iterator<Item = char> {
    let is_mark_alone = word.nfd().all(is_combining_mark);
    word.nfd().filter(move |c| is_mark_alone || !is_combining_mark(*c)).flat_map(char::to_lowercase)
}

/// Whether a character is searched for like a word, because its script has no spaces between words: Thai, Lao, Burmese,
/// Khmer, Japanese, Chinese.
pub const fn is_word_alone(c: char) -> bool {
    matches!(c,
        '\u{0E00}'..='\u{0EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}' | '\u{3005}'..='\u{3007}'
        | '\u{3040}'..='\u{312F}' | '\u{31F0}'..='\u{31FF}' | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}'
        | '\u{F900}'..='\u{FAFF}' | '\u{FF66}'..='\u{FF9F}' | '\u{20000}'..='\u{3FFFF}')
}

/// The place `count` characters before `at`, or the beginning.
fn nth_before(text: &str, at: usize, count: usize) -> usize {
    text[..at].char_indices().rev().take(count).last().map_or(at, |(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(typed: &str) -> Vec<(String, bool)> {
        let query = SearchQuery::parse(typed).expect("there is a word");
        query.terms.into_iter().map(|term| (term.text, term.is_prefix)).collect()
    }

    fn excerpt(typed: &str, line: &str) -> String {
        SearchQuery::parse(typed).expect("there is a word").excerpt(line)
    }

    #[test]
    fn the_last_word_may_go_on_and_a_phrase_may_not() {
        let term = |text: &str, is_prefix| (text.to_owned(), is_prefix);

        assert_eq!(terms("late tra"), [term("late", false), term("tra", true)]);
        assert_eq!(terms("“late trains” and"), [term("late trains", false), term("and", true)]);
        assert_eq!(terms(" an \"late trains\" "), [term("an", false), term("late trains", false)]);
        assert_eq!(terms("\"late tra"), [term("late tra", false)]);
        assert_eq!(terms("late tr"), [term("late", false), term("tr", false)]);
        assert_eq!(terms("a\0b - e-mail"), [term("a", false), term("b", false), term("e-mail", true)]);
    }

    #[test]
    fn the_last_word_of_a_term_is_split_off_as_it_is_indexed() {
        let split = |text: &str| SearchTerm { text: text.to_owned(), is_prefix: true }.split_last().1;

        assert_eq!((split("Zür"), split("e-MAIL!"), split("the late")), ("zur".into(), "mail".into(), "late".into()));
    }

    #[test]
    fn what_has_no_word_is_no_query() {
        for typed in ["", " ", "?!", "\"\"", "\" - \"", "\0", "👍"] {
            assert_eq!(SearchQuery::parse(typed), None, "{typed:?}");
        }
    }

    #[test]
    fn an_excerpt_is_cut_around_the_first_match_at_spaces() {
        let line = format!("{}the Café\nis closed {}", "before ".repeat(40), "after ".repeat(60));

        let shown = excerpt("cafe", &line);

        assert!(shown.starts_with("…before before") && shown.contains("before the Café is closed after"), "{shown}");
        assert!(shown.ends_with("after…") && shown.chars().count() <= EXCERPT + 2, "{shown}");
        assert_eq!(excerpt("closed", "The café is closed."), "The café is closed.");
        assert_eq!(excerpt("missing", "The café is closed."), "The café is closed.");
        assert_eq!(excerpt("missing", ""), "");
    }

    #[test]
    fn a_match_is_a_whole_word_a_phrase_or_a_beginning() {
        let at = |typed: &str, line: &str| SearchQuery::parse(typed).expect("a word").first_match(line);

        assert_eq!(at("train", "untrained trainer"), Some((10, 17)));
        assert_eq!(at("\"train\"", "untrained trainer train"), Some((18, 23)));
        assert_eq!(at("\"late train\"", "late, a late-train"), Some((8, 18)));
        assert_eq!(at("ÉCOLE", "une école"), Some((4, 10)));
        assert_eq!(at("e\u{301}cole", "une école"), Some((4, 10)));
    }

    #[test]
    fn a_line_has_all_terms_or_it_does_not_match() {
        let is_in = |typed: &str, line: &str| SearchQuery::parse(typed).expect("a word").is_in(line);

        assert!(is_in("\"late train\" tra", "a train, a Late-Train"));
        assert!(!is_in("\"late train\" tram", "a late train"));
        assert!(!is_in("\"late train\"", "late, a train"));
        assert!(!is_in("late", ""));
    }

    #[test]
    fn words_are_compared_without_case_and_diacritics() {
        let folded = |text: &str| folded_words(text).collect::<Vec<_>>();

        assert_eq!(folded("E-Mail: ÉCOLE, e\u{301}cole!"), ["e", "mail", "ecole", "ecole"]);
        assert_eq!(folded("昨日x"), ["昨", "日", "x"]);
        assert_eq!(folded("\u{E31}"), ["\u{E31}"], "a vowel sign of Thai is a diacritic, and all that there is");
        assert_eq!(folded(" ?! "), [""; 0]);
    }

    #[test]
    fn without_spaces_each_character_is_a_word() {
        let at = |typed: &str, line: &str| SearchQuery::parse(typed).expect("a word").first_match(line);

        assert_eq!(at("東京", "昨日は東京タワーへ"), Some((9, 15)));
        assert_eq!(at("京東", "昨日は東京タワーへ"), None);
        let long = excerpt("東京", &format!("{}東京{}", "あ".repeat(300), "い".repeat(300)));
        assert!(long.starts_with("…あ") && long.contains("東京い") && long.ends_with("い…"), "{long}");
        assert_eq!(long.chars().count(), EXCERPT + 2);
    }
}
