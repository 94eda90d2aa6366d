//! Names that people choose: in one line, and of what can be seen.

/// How many characters of the name of a file are kept.
const MOST_FILE_NAME: usize = 100;

/// How many characters the extension of a file has at most; what is longer is no extension.
const LONGEST_EXTENSION: usize = 10;

/// The name of a file that has none.
const UNNAMED_FILE: &str = "file";

/// A name in one line of at most `most` characters, without characters that show nothing or turn the direction of the text.
pub(crate) fn clean(name: &str, most: usize) -> String {
    let visible: String =
        name.chars().filter(|c| !is_hidden(*c)).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let one_line = visible.split_whitespace().collect::<Vec<_>>().join(" ");
    one_line.chars().take(most).collect()
}

/// The name of a file: the last part of what may be a path, in one line, not hidden by a dot, and short. Its extension stays.
pub(crate) fn file_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let clean = clean(last, usize::MAX);
    let whole = clean.trim_matches(['.', ' ']);
    let begin = |text: &str, most| text.chars().take(most).collect::<String>();
    match whole.rsplit_once('.').map(|(stem, extension)| (stem, extension, extension.chars().count())) {
        _ if whole.is_empty() => UNNAMED_FILE.to_owned(),
        Some((stem, extension, length)) if length <= LONGEST_EXTENSION => {
            format!("{}.{extension}", begin(stem, MOST_FILE_NAME - 1 - length))
        }
        _ => begin(whole, MOST_FILE_NAME),
    }
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

    #[test]
    fn the_name_of_a_file_is_no_path_and_hides_nothing() {
        let names = [
            ("/home/ada/a.png", "a.png"),
            ("..\\a\\b.txt", "b.txt"),
            ("../../.ssh/authorized_keys", "authorized_keys"),
            (".bashrc", "bashrc"),
            (" my\n scan.pdf ", "my scan.pdf"),
            ("cat\u{202e}gpj.exe", "catgpj.exe"),
            ("\u{200b}\0", "file"),
            ("..", "file"),
            ("a/", "file"),
            ("", "file"),
        ];
        for (given, expected) in names {
            assert_eq!(file_name(given), expected);
        }
    }

    #[test]
    fn a_long_name_of_a_file_keeps_its_extension() {
        let archive = "ä".repeat(200) + ".tar.gz";
        let no_extension = "a.".to_owned() + &"b".repeat(200);

        assert_eq!(file_name(&archive), "ä".repeat(97) + ".gz");
        assert_eq!(file_name(&no_extension), no_extension[..MOST_FILE_NAME]);
    }
}
