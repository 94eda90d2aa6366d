//! Whether a sealed answer is an armoured age file, as <https://age-encryption.org/v1> describes it. What is in it cannot be read here.

use base64::{Engine, prelude::BASE64_STANDARD};

use crate::report::MAX_ANSWER;

const BEGIN: &str = "-----BEGIN AGE ENCRYPTED FILE-----";
const END: &str = "-----END AGE ENCRYPTED FILE-----";

/// The longest line of an armoured file.
const LINE: usize = 64;

const VERSION: &[u8] = b"age-encryption.org/v1\n";

/// Begins the part of the header that is for the holder of an X25519 key.
const X25519: &[u8] = b"\n-> X25519 ";

/// Ends the header.
const MAC: &[u8] = b"\n--- ";

/// Checks a sealed answer. The error quotes nothing of it.
pub(super) fn check(armour: &str) -> Result<(), String> {
    let wrong = |why: &str| {
        Err(format!(
            "`sealed` is no armoured age file: {why}; encrypt the answer with `age -a -r`, and the turn's `seal_to`"
        ))
    };
    if armour.len() > MAX_ANSWER {
        return Err(format!("`sealed` has {} bytes, and a text has at most {MAX_ANSWER}", armour.len()));
    }
    let lines: Vec<_> = armour.trim_matches(|c: char| c.is_ascii_whitespace()).lines().collect();
    let [BEGIN, body @ .., END] = &lines[..] else {
        return wrong("it does not begin and end with the lines that say so");
    };
    let is_whole = |(last, before): (&&str, &[&str])| {
        before.iter().all(|line| line.len() == LINE) && (1..=LINE).contains(&last.len())
    };
    if !body.split_last().is_some_and(is_whole) {
        return wrong("a line but the last has not 64 characters");
    }
    let Ok(file) = BASE64_STANDARD.decode(body.concat()) else { return wrong("it is not in Base64") };
    if !file.starts_with(VERSION) {
        return wrong("its header is not `age-encryption.org/v1`");
    }
    let Some(end) = find(&file, MAC) else { return wrong("its header has no end") };
    match find(&file[..end], X25519) {
        Some(_) => Ok(()),
        None => wrong("it is not encrypted to an X25519 recipient"),
    }
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// What `age -a` writes, with this file in it.
    fn armoured(file: &[u8]) -> String {
        let text = BASE64_STANDARD.encode(file);
        let lines: Vec<_> =
            text.as_bytes().chunks(LINE).map(|line| std::str::from_utf8(line).expect("ASCII")).collect();
        format!("{BEGIN}\n{}\n{END}\n", lines.join("\n"))
    }

    /// Made with pyrage, which is the Rust implementation of age.
    #[test]
    fn what_age_writes_is_accepted_with_each_end_of_line() {
        let file = include_str!("sealed_by_age.txt");

        assert_eq!(check(file), Ok(()));
        assert_eq!(check(&file.replace('\n', "\r\n")), Ok(()));
        assert_eq!(check(file.trim()), Ok(()));
    }

    #[rstest]
    #[case::a_text("It is the heart.".to_owned(), "does not begin and end")]
    #[case::half_a_file(format!("{BEGIN}\nYWdl\n"), "does not begin and end")]
    #[case::more_than_a_file(format!("In short: yes.\n{}", armoured(b"age")), "does not begin and end")]
    #[case::a_text_between(format!("{BEGIN}\nIt is the heart.\n{END}"), "not in Base64")]
    #[case::long_lines(format!("{BEGIN}\n{}\n{END}", "YWdl".repeat(17)), "64 characters")]
    #[case::short_lines(armoured(b"age-encryption.org/v1\n-> X25519 a\nb\n--- c\n").replacen('\n', "\nYWdl\n", 1), "64 characters")]
    #[case::another_file(armoured(b"age-encryption.org/v2\n"), "age-encryption.org/v1")]
    #[case::half_a_header(armoured(b"age-encryption.org/v1\n-> X25519 a\nb\n"), "has no end")]
    #[case::a_passphrase(armoured(b"age-encryption.org/v1\n-> scrypt a 18\nb\n--- c\n\n-> X25519 "), "X25519")]
    #[case::too_long(armoured(&vec![0; MAX_ANSWER]), "at most 1048576")]
    fn what_is_none_is_refused_and_not_quoted(#[case] sealed: String, #[case] why: &str) {
        let error = check(&sealed).expect_err("it is none");

        assert!(error.contains(why) && !error.contains("heart"), "{error}");
    }
}
