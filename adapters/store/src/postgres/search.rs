//! What the index of lines holds, and how it is asked: a `tsvector` of the words as the core cuts and folds them, and a `tsquery`. Both
//! are made as texts here, <https://www.postgresql.org/docs/15/datatype-textsearch.html>.
//!
//! A word has letters and digits only. With other signs begin what stands for the channel and the conversation of a line, and
//! [`INCOMPLETE`].

use std::{collections::BTreeMap, fmt::Write};

use rejoinder_core::{
    ChannelId, ConversationId,
    store::{SearchFilter, SearchQuery, SearchTerm, folded_words},
};

/// How long a word is at most, in bytes. Longer ones are cut.
const LONGEST_WORD: usize = 2046;

/// How many places of a word are kept.
const MOST_PLACES: usize = 255;

/// The last place that can be kept.
const LAST_PLACE: u32 = 16_383;

/// Stands in lines of which not all places are kept. They are found by the words of a phrase in any order, and must be
/// [checked](must_be_checked).
const INCOMPLETE: &str = "'+'";

/// A text as a `tsvector`, with where it is.
pub(super) fn indexed(text: &str, channel: &ChannelId, conversation: ConversationId) -> String {
    let mut words = BTreeMap::<_, Vec<u32>>::new();
    let mut is_complete = true;
    for (place, word) in (1..).zip(folded_words(text)) {
        let places = words.entry(quoted(&word)).or_default();
        let is_kept = place <= LAST_PLACE && places.len() < MOST_PLACES;
        is_complete &= is_kept;
        if is_kept {
            places.push(place);
        }
    }
    let mut vector = format!("{} {}", word_of_channel(channel), word_of_conversation(conversation));
    if !is_complete {
        let _ = write!(vector, " {INCOMPLETE}");
    }
    for (word, places) in words {
        let _ = write!(vector, " {word}");
        for (index, place) in places.iter().enumerate() {
            let _ = write!(vector, "{}{place}", if index == 0 { ':' } else { ',' });
        }
    }
    vector
}

fn word_of_channel(channel: &ChannelId) -> String {
    quoted(&format!("#{}", channel.as_str()))
}

fn word_of_conversation(conversation: ConversationId) -> String {
    quoted(&format!("@{}", conversation.as_uuid().simple()))
}

/// The `tsquery` for a search. Channels are only narrowed down: the statement must check them.
pub(super) fn condition(filter: &SearchFilter) -> String {
    let mut all: Vec<String> = filter.query.terms().iter().map(matching).collect();
    if let Some(channels) = &filter.channels {
        let words: Vec<String> = channels.iter().map(word_of_channel).collect();
        all.push(format!("({})", words.join(" | ")));
    }
    if let Some(conversations) = &filter.conversations {
        let words: Vec<String> = conversations.iter().copied().map(word_of_conversation).collect();
        all.push(format!("({})", words.join(" | ")));
    }
    all.join(" & ")
}

fn matching(term: &SearchTerm) -> String {
    let mut words: Vec<String> = folded_words(&term.text).map(|word| quoted(&word)).collect();
    if let Some(last) = words.last_mut().filter(|_| term.is_prefix) {
        last.push_str(":*");
    }
    match &words[..] {
        [word] => word.clone(),
        words => format!("({} | {INCOMPLETE} & {})", words.join(" <-> "), words.join(" & ")),
    }
}

/// Whether the index may find lines without what is searched for: for a phrase, or for a word that is cut.
pub(super) fn must_be_checked(query: &SearchQuery) -> bool {
    let is_cut = |word: String| word.len() > LONGEST_WORD;
    query.terms().iter().any(|term| folded_words(&term.text).count() > 1 || folded_words(&term.text).any(is_cut))
}

/// A word between quotation marks, cut if it is too long.
fn quoted(word: &str) -> String {
    format!("'{}'", word[..word.floor_char_boundary(LONGEST_WORD)].replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(text: &str) -> String {
        let vector = indexed(text, &ChannelId::from_stored("o'b"), ConversationId::from(uuid::Uuid::nil()));
        let of_words = vector.strip_prefix("'#o''b' '@00000000000000000000000000000000'").map(str::trim_start);
        of_words.expect("it tells where it is").to_owned()
    }

    fn asked(typed: &str) -> (String, bool) {
        let query = SearchQuery::parse(typed).expect("there is a word");
        let is_checked = must_be_checked(&query);
        let filter = SearchFilter { query, channels: None, conversations: None, session: None, before: None, limit: 1 };
        (condition(&filter), is_checked)
    }

    #[test]
    fn a_line_is_indexed_by_its_folded_words_and_their_places() {
        assert_eq!(vector("Zürich, late: the LATE train"), "'late':2,4 'the':3 'train':5 'zurich':1");
        assert_eq!(vector("東京 \\ '"), "'京':2 '東':1");
        assert_eq!(vector("?!"), "");
    }

    #[test]
    fn what_is_too_much_for_a_vector_is_left_out_and_marked() {
        assert_eq!(vector(&"x".repeat(3000)), format!("'{}':1", "x".repeat(2046)));
        assert_eq!(vector(&"é".repeat(2000).to_uppercase()), format!("'{}':1", "e".repeat(2000)));
        assert!(!vector(&"a ".repeat(255)).starts_with(INCOMPLETE));
        let many = vector(&"a ".repeat(256));
        assert!(many.starts_with("'+' 'a':1,2,") && many.ends_with(",255"), "{many}");
        let words: Vec<String> = (0..17_000).map(|number| format!("w{number}")).collect();
        let long = vector(&words.join(" "));
        assert!(long.starts_with("'+' 'w0':1 ") && long.contains(" 'w16382':16383 'w16383' 'w16384' "));
    }

    #[test]
    fn terms_are_asked_for_with_their_words_in_order() {
        assert_eq!(asked("late tra"), ("'late' & 'tra':*".to_owned(), false));
        assert_eq!(asked("\"Late Train\""), ("('late' <-> 'train' | '+' & 'late' & 'train')".to_owned(), true));
        assert_eq!(asked("a e-mail"), ("'a' & ('e' <-> 'mail':* | '+' & 'e' & 'mail':*)".to_owned(), true));
        assert_eq!(asked(&"x".repeat(3000)), (format!("'{}':*", "x".repeat(2046)), true));
    }

    #[test]
    fn a_search_may_be_narrowed_down_to_channels_and_conversations() {
        let filter = SearchFilter {
            query: SearchQuery::parse("\"late\"").expect("there is a word"),
            channels: Some(vec![ChannelId::from_stored("a.b"), ChannelId::from_stored("c.d")]),
            conversations: Some([10, 11].map(|id| ConversationId::from(uuid::Uuid::from_u128(id))).into()),
            session: None,
            before: None,
            limit: 1,
        };

        let conversations = "('@0000000000000000000000000000000a' | '@0000000000000000000000000000000b')";
        assert_eq!(condition(&filter), format!("'late' & ('#a.b' | '#c.d') & {conversations}"));
    }
}
