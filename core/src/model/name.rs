//! Names that people choose: in one line, and of what can be seen.

/// A name in one line of at most `most` characters, without characters that show nothing or turn the direction of the text.
pub(crate) fn clean(name: &str, most: usize) -> String {
    let visible: String =
        name.chars().filter(|c| !is_hidden(*c)).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let one_line = visible.split_whitespace().collect::<Vec<_>>().join(" ");
    one_line.chars().take(most).collect()
}

/// Whether a character shows nothing: zero-width marks, fillers, tags, and the marks of bidirectional text.
pub const fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_short_line_of_what_can_be_seen() {
        assert_eq!(clean("Ada\u{202e} \u{200b}Love\u{ad}lace\u{e0041}", 100), "Ada Lovelace");
        assert_eq!(clean(" a\n\tb\u{0}\u{2028}c ", 100), "a b c");
        assert_eq!(clean("Ḁ́ 👩‍🚀 زهرا", 100), "Ḁ́ 👩🚀 زهرا");
        assert_eq!(clean("\u{3164}\u{200d}", 100), "");
        assert_eq!(clean(&"ä".repeat(1000), 100).chars().count(), 100);
    }
}
